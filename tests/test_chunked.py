"""Predictions of rows in files and Dask frames equal those in memory, for any chunks."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.data import NewValuesWarning
from lanam.engines import writing

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dd = pytest.importorskip("dask.dataframe")

N_ROWS = 260
CUTS = [(0, 1), (1, 90), (90, 97), (97, 260)]
FEATURES = ["age", "city", "code", "night"]


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, N_ROWS).round(2)
    age[::11] = np.nan
    city = rng.choice(["Bern", "Oslo", "Rome"], N_ROWS).astype(object)
    city[::13] = None
    code = rng.choice(["07", "8", "9"], N_ROWS)
    night = rng.random(N_ROWS) < 0.4
    link = 0.08 * (np.nan_to_num(age, nan=40.0) - 40) + (city == "Oslo") - night + (code == "8")
    hours = rng.uniform(0.5, 3.0, N_ROWS).round(3)
    noisy = link + 0.3 * rng.normal(size=N_ROWS)
    return pd.DataFrame(
        {
            "id": [f"{k:04d}" for k in range(N_ROWS)],
            "night": night,
            "code": code,
            "age": age,
            "price": 1000.0 + noisy,
            "events": rng.poisson(hours * np.exp(0.5 * link)),
            "ill": np.where(noisy > 0.3, "yes", "no"),
            "grade": np.select([noisy > 1.0, noisy > 0.0], [3, 2], 1),
            "city": city,
            "hours": hours,
            "weight": rng.integers(0, 3, N_ROWS).astype(float),
        }
    )


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def models(rows):
    X = rows[FEATURES]
    options = {"interactions": [("age", "city")], "random_state": 0, "max_iter": 20, "tol": 1.0}
    fitted = {
        "price": LANAMRegressor(**options).fit(X, rows["price"]),
        "events": LANAMRegressor(likelihood="poisson", **options).fit(
            X, rows["events"], exposure=rows["hours"]
        ),
        "ill": LANAMClassifier(**options).fit(X, rows["ill"]),
        "grade": LANAMClassifier(**options).fit(X, rows["grade"]),
    }
    for name in ("price", "ill"):
        fitted[name].calibrate(X[::3], rows[name][::3])
    return fitted


def write(rows, folder, kind="parquet"):
    """The rows in several files, some of them in several parts."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (start, end) in enumerate(CUTS):
        table = pa.Table.from_pandas(rows[start:end], preserve_index=False)
        path = folder / f"part-{number}.{kind}"
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=37)
        elif kind == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, 41)
        else:
            rows[start:end].to_csv(path, index=False)
    return folder


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    return write(rows, tmp_path_factory.mktemp("chunks") / "rows")


@pytest.fixture(scope="module")
def ddf(rows):
    # Partitions of several sizes, one of them empty, and an index that is not 0, 1, 2, ...
    indexed = rows.set_index(np.arange(N_ROWS) * 10)
    parts = [dd.from_pandas(indexed[start:end], npartitions=1) for start, end in CUTS]
    empty = parts[0][parts[0]["hours"] < 0.0]
    return dd.concat([*parts[:2], empty, *parts[2:]])


METHODS = [
    ("price", "predict", {}, "prediction"),
    ("price", "predict", {"return_std": True}, ["prediction", "std"]),
    ("price", "predict_interval", {"coverage": 0.8}, ["lower", "upper"]),
    ("price", "predict_interval", {"kind": "mean"}, ["lower", "upper"]),
    ("price", "predict_quantile", {"quantiles": (0.1, 0.5)}, ["quantile_0.1", "quantile_0.5"]),
    ("price", "predict_quantile", {"quantiles": 0.25}, ["quantile_0.25"]),
    ("price", "predict_terms", {}, "terms"),
    ("price", "predict_terms", {"return_std": True}, "terms and std"),
    ("price", "transform", {}, "terms"),
    ("events", "predict", {}, "prediction"),
    ("events", "predict", {"exposure": "hours"}, "prediction"),
    ("events", "predict", {"exposure": 2.5, "return_std": True}, ["prediction", "std"]),
    ("events", "predict_interval", {"exposure": "hours"}, ["lower", "upper"]),
    ("events", "predict_quantile", {"quantiles": [0.5], "exposure": "hours"}, ["quantile_0.5"]),
    ("ill", "predict", {}, "prediction"),
    ("ill", "predict_proba", {}, ["no", "yes"]),
    ("ill", "predict_proba", {"method": "mc", "n_samples": 20}, ["no", "yes"]),
    ("ill", "decision_function", {}, "decision"),
    ("ill", "predict_interval", {"coverage": 0.8}, ["lower", "upper"]),
    ("ill", "predict_set", {"coverage": 0.7}, ["no", "yes"]),
    ("ill", "predict_terms", {}, "terms"),
    ("grade", "predict", {}, "prediction"),
    ("grade", "predict_proba", {}, ["1", "2", "3"]),
    ("grade", "decision_function", {}, ["1", "2", "3"]),
    (
        "grade",
        "predict_interval",
        {"n_samples": 50},
        ["lower_1", "upper_1", "lower_2", "upper_2", "lower_3", "upper_3"],
    ),
    ("grade", "predict_set", {"calibrated": False}, ["1", "2", "3"]),
    ("grade", "predict_terms", {"return_std": True}, "terms and std"),
    ("grade", "transform", {}, "terms"),
]
IDS = [f"{target}-{method}-{'-'.join(more)}" for target, method, more, _ in METHODS]


def in_memory(model, method, rows, arguments):
    values = dict(arguments)
    if isinstance(values.get("exposure"), str):
        values["exposure"] = rows[values["exposure"]].to_numpy()
    return getattr(model, method)(rows[FEATURES], **values)


def assert_same(actual, expected):
    assert isinstance(actual, tuple) == isinstance(expected, tuple)
    if isinstance(expected, tuple):
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
        return
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind == "f":
        # Sums of matrix products may round differently by the number of rows.
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)
    else:
        assert np.array_equal(actual, expected)


class TestFiles:
    @pytest.mark.parametrize(("target", "method", "arguments", "_"), METHODS, ids=IDS)
    def test_methods(self, models, rows, folder, target, method, arguments, _):
        model = models[target]
        actual = getattr(model, method)(folder, **arguments)
        assert_same(actual, in_memory(model, method, rows, arguments))

    @pytest.mark.parametrize("kind", ["csv", "arrow"])
    def test_kinds_of_files(self, models, rows, tmp_path, kind):
        write(rows, tmp_path, kind)
        # Codes look numeric, and are strings as in the training data.
        for target in ("price", "ill"):
            assert_same(models[target].predict(tmp_path), models[target].predict(rows[FEATURES]))

    def test_one_file_a_pattern_and_a_list(self, models, rows, folder):
        model = models["price"]
        all_rows = model.predict(rows[FEATURES])
        first = folder / "part-1.parquet"
        assert_same(model.predict(str(first)), all_rows[1:90])
        assert_same(model.predict(f"{folder}/part-[12].parquet"), all_rows[1:97])
        assert_same(
            model.predict([folder / "part-3.parquet", first]),
            np.concatenate([all_rows[97:], all_rows[1:90]]),
        )

    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_results_are_in_the_order_of_the_rows(self, models, rows, folder, n_jobs):
        model = models["events"].set_params(n_jobs=n_jobs)
        try:
            actual = model.predict(folder, return_std=True, exposure="hours")
        finally:
            model.set_params(n_jobs=None)
        expected = in_memory(
            model, "predict", rows, {"return_std": True, "exposure": rows["hours"].to_numpy()}
        )
        assert_same(actual, expected)

    def test_predictions_use_threads_for_any_number_of_rows(self, models, folder, monkeypatch):
        from lanam.chunked import open_for
        from lanam.engines import files

        monkeypatch.setattr(files, "_MANY_ROWS", 1)
        model = models["price"].set_params(n_jobs=2)
        assert files.open_files(folder, n_jobs=2).large
        assert not open_for(model, folder).large
        model.set_params(n_jobs=None)

    def test_positional_arguments(self, models, rows, folder):
        actual = models["events"].predict(folder, True, "hours")
        assert_same(actual, models["events"].predict(rows[FEATURES], True, rows["hours"]))

    def test_names_of_methods_stay(self):
        assert LANAMRegressor.predict.__name__ == "predict"
        assert "exposure" in LANAMRegressor.predict.__doc__

    def test_a_subclass_is_applied_once(self, models, rows, folder):
        class Twice(LANAMRegressor):
            def predict(self, X, return_std=False, exposure=None):
                return 2.0 * super().predict(X, return_std, exposure)

        model = models["price"]
        twice = Twice()
        twice.__dict__.update(model.__dict__)
        assert_same(twice.predict(folder), 2.0 * model.predict(rows[FEATURES]))


class TestDask:
    @pytest.mark.parametrize(("target", "method", "arguments", "names"), METHODS, ids=IDS)
    def test_methods(self, models, rows, ddf, target, method, arguments, names):
        model = models[target]
        lazy = getattr(model, method)(ddf, **arguments)
        assert type(lazy).__module__.startswith("dask.")
        assert lazy.npartitions == ddf.npartitions
        actual = lazy.compute(scheduler="threads")
        assert actual.index.tolist() == (np.arange(N_ROWS) * 10).tolist()
        expected = in_memory(model, method, rows, arguments)
        if isinstance(names, str) and names.startswith("terms"):
            terms = model.get_feature_names_out().tolist()
            names = terms + [f"{name} (std)" for name in terms] if "std" in names else terms
        if isinstance(names, str):
            assert actual.name == lazy.name == names
            assert_same(np.asarray(actual, expected.dtype), expected)
            return
        assert list(actual.columns) == list(lazy.columns) == names
        parts = expected if isinstance(expected, tuple) else (expected,)
        flat = np.hstack([part.reshape(N_ROWS, -1) for part in parts])
        assert_same(actual.to_numpy(), flat)

    def test_results_are_lazy(self, models, ddf):
        def explode(frame):
            raise RuntimeError("too early")

        lazy = models["price"].predict(ddf.map_partitions(explode, meta=ddf._meta))
        with pytest.raises(RuntimeError, match="too early"):
            lazy.compute(scheduler="threads")

    def test_dtypes_are_known(self, models, ddf):
        for target, kind in (("price", "f"), ("grade", "i")):
            lazy = models[target].predict(ddf)
            assert lazy.dtype.kind == kind
            assert lazy.compute(scheduler="threads").dtype == lazy.dtype
        assert pd.api.types.is_string_dtype(models["ill"].predict(ddf).dtype)

    def test_errors_name_the_partition(self, models, rows):
        bad = rows.assign(age=np.where(np.arange(N_ROWS) == 100, np.inf, rows["age"]))
        lazy = models["price"].predict(dd.from_pandas(bad, npartitions=4))
        with pytest.raises(ValueError, match=r"partition 1: .*'age'"):
            lazy.compute(scheduler="threads")

    @pytest.mark.usefixtures("client")
    def test_on_a_cluster(self, models, rows, ddf, tmp_path):
        """Other processes have nothing but the model."""
        model, X = models["events"], rows[FEATURES]
        actual = model.predict(ddf, exposure="hours").compute()
        likelihood = model.log_likelihood(ddf, "events", exposure="hours")
        score = model.score(ddf, "events", exposure="hours")
        n_rows = model.predict_files(ddf, tmp_path / "out", keep=["id"], exposure="hours")
        assert_same(actual.to_numpy(), model.predict(X, exposure=rows["hours"]))
        wanted = model.log_likelihood(X, rows["events"], exposure=rows["hours"])
        assert likelihood == pytest.approx(wanted, rel=1e-10)
        wanted = model.score(X, rows["events"], exposure=rows["hours"])
        assert score == pytest.approx(wanted, rel=1e-10)
        assert n_rows == N_ROWS
        written = parquet.read_table(tmp_path / "out")
        assert written["id"].to_pylist() == rows["id"].tolist()
        assert_same(written["prediction"].to_numpy(), actual.to_numpy())


def either(request, folder, ddf):
    return {"files": folder, "dask": ddf}[request]


@pytest.mark.parametrize("where", ["files", "dask"])
class TestSums:
    @pytest.mark.parametrize("weight", [None, "weight"])
    @pytest.mark.parametrize("target", ["price", "events", "ill", "grade"])
    @pytest.mark.parametrize("method", ["score", "log_likelihood"])
    def test_scores(self, models, rows, folder, ddf, where, method, target, weight):
        model, more = models[target], {}
        named = {"sample_weight": weight}
        if weight is not None:
            more["sample_weight"] = rows[weight]
        if target == "events":
            named["exposure"], more["exposure"] = "hours", rows["hours"]
        actual = getattr(model, method)(either(where, folder, ddf), target, **named)
        expected = getattr(model, method)(rows[FEATURES], rows[target], **more)
        assert isinstance(actual, float)
        assert actual == pytest.approx(expected, rel=1e-9)

    def test_a_weight_that_is_a_feature_as_well(self, models, rows, folder, ddf, where):
        model = LANAMRegressor(interactions=0, tol=10.0, random_state=0)
        model.fit(rows[["age", "hours"]], rows["price"])
        expected = model.score(rows[["age", "hours"]], rows["price"], rows["hours"])
        actual = model.score(either(where, folder, ddf), "price", "hours")
        assert actual == pytest.approx(expected, rel=1e-9)

    def test_a_target_with_a_large_mean(self, rows, where, tmp_path):
        far = rows.assign(price=rows["price"] + 1e9)
        model = LANAMRegressor(interactions=0, max_iter=5, tol=1.0, random_state=0)
        model.fit(far[FEATURES], far["price"])
        table = write(far, tmp_path) if where == "files" else dd.from_pandas(far, npartitions=3)
        expected = model.score(far[FEATURES], far["price"])
        assert model.score(table, "price") == pytest.approx(expected, rel=1e-6)

    def test_a_target_of_one_value(self, models, rows, where, tmp_path):
        same = rows.assign(price=1000.0)
        table = write(same, tmp_path) if where == "files" else dd.from_pandas(same, npartitions=3)
        assert models["price"].score(table, "price") == 0.0
        assert models["price"].score(same[FEATURES], same["price"]) == 0.0

    def test_errors(self, models, rows, folder, ddf, where, tmp_path):
        table = either(where, folder, ddf)
        with pytest.raises(ValueError, match="fitted with an exposure"):
            models["events"].score(table, "events")
        with pytest.raises(ValueError, match="target names the column 'prices'"):
            models["price"].score(table, "prices")
        for method in ("score", "log_likelihood"):
            with pytest.raises(TypeError, match="unexpected keyword argument 'sample_wieght'"):
                getattr(models["price"], method)(table, "price", sample_wieght="weight")
        with pytest.raises(ValueError, match=r"pass its name, for example"):
            models["price"].score(table, rows["price"])
        with pytest.raises(ValueError, match=r"sample_weight .* pass its name, not values"):
            models["price"].log_likelihood(table, "price", rows["weight"])
        with pytest.raises(ValueError, match="was not among the training data's"):
            models["ill"].log_likelihood(table, "code")
        none = rows.assign(weight=0.0)
        table = write(none, tmp_path) if where == "files" else dd.from_pandas(none, npartitions=3)
        with pytest.raises(ValueError, match="no row with a positive weight"):
            models["price"].score(table, "price", "weight")


@pytest.mark.parametrize("where", ["files", "dask"])
class TestErrors:
    def test_missing_columns_are_named(self, models, rows, where, tmp_path):
        for lost in (["city"], ["city", "age"]):
            few = rows.drop(columns=lost)
            table = write(few, tmp_path) if where == "files" else dd.from_pandas(few, npartitions=2)
            for method in ("predict", "predict_terms", "predict_interval"):
                names = r"'age', 'city'|'city', 'age'" if len(lost) > 1 else "'city'"
                with pytest.raises(ValueError, match=f"has no columns? ({names}), with which"):
                    getattr(models["price"], method)(table)
            with pytest.raises(ValueError, match="has no column"):
                models["price"].score(table, "price")

    def test_a_model_without_names(self, rows, folder, ddf, where):
        model = LANAMRegressor(tol=10.0, random_state=0)
        model.fit(rows[["hours"]].to_numpy(), rows["price"])
        with pytest.raises(ValueError, match="fitted to an array without: fit it to a frame"):
            model.predict(either(where, folder, ddf))

    def test_exposures(self, models, rows, folder, ddf, where):
        table = either(where, folder, ddf)
        with pytest.raises(ValueError, match="set likelihood='poisson', or leave exposure out"):
            models["price"].predict(table, exposure="hours")
        with pytest.raises(ValueError, match="exposure names the column 'hour'"):
            models["events"].predict(table, exposure="hour")
        with pytest.raises(ValueError, match=r"exposure .* pass its name, not values"):
            models["events"].predict(table, exposure=rows["hours"])
        with pytest.raises(ValueError, match="exposure must be positive"):
            models["events"].predict(table, exposure=0.0)

    def test_arguments_are_checked_before_anything_is_read(self, models, folder, ddf, where):
        table = either(where, folder, ddf)
        with pytest.raises(ValueError, match=r"^coverage"):
            models["price"].predict_interval(table, coverage=95)
        with pytest.raises(ValueError, match=r"^kind='noise'"):
            models["price"].predict_interval(table, kind="noise")
        with pytest.raises(ValueError, match=r"^method='best'"):
            models["ill"].predict_proba(table, method="best")
        with pytest.raises(TypeError, match="coverag"):
            models["price"].predict_interval(table, coverag=0.9)

    def test_methods_that_need_rows_in_memory(self, models, rows, folder, ddf, where):
        table = either(where, folder, ddf)
        model = models["price"]
        for call in (
            lambda: model.sample(table),
            lambda: model.explain_local(table),
            lambda: model.calibrate(table, "price"),
            lambda: model.predict_cdf(table, "price"),
        ):
            with pytest.raises(ValueError, match="this needs its rows in memory, and X is"):
                call()

    def test_not_fitted(self, folder, ddf, where):
        from sklearn.exceptions import NotFittedError

        for method in ("predict", "predict_terms"):
            with pytest.raises(NotFittedError):
                getattr(LANAMRegressor(), method)(either(where, folder, ddf))


class TestBadRows:
    def test_the_file_the_part_and_the_row_are_named(self, models, rows, tmp_path):
        bad = rows.assign(age=np.where(np.arange(N_ROWS) == 97 + 40, np.inf, rows["age"]))
        write(bad, tmp_path)
        words = r"part-3\.parquet, row group 1 \(of 0 to 4\): .*'age'.* row 4"
        with pytest.raises(ValueError, match=words):
            models["price"].predict(tmp_path)
        with pytest.raises(ValueError, match=words):
            models["price"].predict_files(tmp_path, tmp_path.parent / "out")

    def test_exposures(self, models, rows, tmp_path):
        write(rows.assign(hours=np.where(np.arange(N_ROWS) == 50, 0.0, rows["hours"])), tmp_path)
        words = r"part-1\.parquet, row group 1 .*, column 'hours': exposure must be positive"
        for method in ("predict", "predict_interval"):
            with pytest.raises(ValueError, match=words):
                getattr(models["events"], method)(tmp_path, exposure="hours")

    def test_another_type_than_the_models(self, models, rows, tmp_path):
        write(rows.assign(age=rows["city"]), tmp_path)
        with pytest.raises((ValueError, TypeError), match=r"part-1\.parquet.*'age'"):
            models["price"].predict(tmp_path)


class TestUnseenValues:
    @pytest.fixture
    def new(self, rows):
        """Unseen categories in three of the files."""
        odd = np.isin(np.arange(N_ROWS), [0, 50, 60, 200])
        return rows.assign(city=np.where(odd, "Ulm", rows["city"]))

    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_files_warn_once(self, models, new, tmp_path, n_jobs):
        write(new, tmp_path / "in")
        model = models["price"].set_params(n_jobs=n_jobs)
        calls = (
            lambda: model.predict(tmp_path / "in"),
            lambda: model.score(tmp_path / "in", "price"),
            lambda: model.predict_files(tmp_path / "in", tmp_path / "out"),
            lambda: model.predict_files(tmp_path / "in", tmp_path / "out.csv"),
        )
        for call in calls:
            with pytest.warns(NewValuesWarning) as caught:
                call()
            assert len(caught) == 1
            assert "'city': 4 of 260 values are unseen categories" in str(caught[0].message)
            assert caught[0].filename == __file__
        model.set_params(n_jobs=None)

    def test_a_sum_over_a_dask_frame_warns_once(self, models, new):
        table = dd.from_pandas(new, npartitions=5)
        with pytest.warns(NewValuesWarning) as caught:
            models["price"].score(table, "price")
        assert len(caught) == 1
        assert "4 of 260" in str(caught[0].message)

    def test_predictions_are_those_in_memory(self, models, new, tmp_path):
        write(new, tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NewValuesWarning)
            actual = models["price"].predict(tmp_path, return_std=True)
            assert_same(actual, models["price"].predict(new[FEATURES], return_std=True))


def read(path):
    return parquet.read_table(path).to_pandas()


def files_below(folder):
    actual = [path for path in Path(folder).rglob("*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in actual)


class TestPredictFiles:
    def test_a_file_for_every_file(self, models, rows, folder, tmp_path):
        model, X = models["price"], rows[FEATURES]
        out = tmp_path / "out"
        n_rows = model.predict_files(
            folder, out, interval=0.8, std=True, terms=True, keep=["id", "age"], prefix="m_"
        )
        assert n_rows == N_ROWS
        assert files_below(out) == [f"part-{k}.parquet" for k in range(4)]
        for number, (start, end) in enumerate(CUTS):
            part = read(out / f"part-{number}.parquet")
            assert part["id"].tolist() == rows["id"][start:end].tolist()
        actual = read(out)
        terms = [f"m_term_{name}" for name in model.get_feature_names_out()]
        ends = ["m_lower", "m_upper", "m_intercept"]
        assert list(actual.columns) == ["id", "age", "m_prediction", "m_std", *ends, *terms]
        mean, std = model.predict(X, return_std=True)
        assert_same(actual["m_prediction"].to_numpy(), mean)
        assert_same(actual["m_std"].to_numpy(), std)
        assert_same(actual[["m_lower", "m_upper"]].to_numpy(), model.predict_interval(X, 0.8))
        assert_same(actual[terms].to_numpy(), model.predict_terms(X))
        assert (actual["m_intercept"] == model.intercept_).all()
        np.testing.assert_array_equal(actual["age"], rows["age"])

    def test_classes(self, models, rows, folder, tmp_path):
        for target in ("ill", "grade"):
            model, X = models[target], rows[FEATURES]
            out = tmp_path / f"{target}.parquet"
            model.predict_files(folder, out, proba=True, interval=0.9)
            actual = read(out)
            labels = model.classes_.tolist()
            best = model.predict_proba(X).argmax(axis=1)
            assert actual["prediction"].tolist() == [labels[k] for k in best]
            names = [f"probability_{label}" for label in labels]
            assert_same(actual[names].to_numpy(), model.predict_proba(X))
            ends = [name for name in actual.columns if name.startswith(("lower", "upper"))]
            expected = model.predict_interval(X, 0.9).reshape(N_ROWS, -1)
            assert_same(actual[ends].to_numpy(), expected)

    def test_exposure(self, models, rows, folder, tmp_path):
        model = models["events"]
        for exposure, values in (("hours", rows["hours"]), (2.0, 2.0), (None, None)):
            out = tmp_path / f"{exposure}.parquet"
            model.predict_files(folder, out, exposure=exposure)
            expected = model.predict(rows[FEATURES], exposure=values)
            assert_same(read(out)["prediction"].to_numpy(), expected)

    @pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.tsv"])
    def test_one_file_of_csv(self, models, rows, folder, tmp_path, name):
        models["price"].predict_files(folder, tmp_path / name, keep=["id", "city"])
        separator = "\t" if "tsv" in name else ","
        actual = pd.read_csv(tmp_path / name, sep=separator, dtype={"id": str})
        assert actual["id"].tolist() == rows["id"].tolist()
        assert_same(actual["prediction"].to_numpy(), models["price"].predict(rows[FEATURES]))

    def test_cells_of_csv_files_are_kept_as_they_are(self, models, rows, tmp_path):
        write(rows, tmp_path / "in", "csv")
        kept = ["id", "code", "hours"]
        models["events"].predict_files(
            tmp_path / "in", tmp_path / "out", keep=kept, exposure="hours"
        )
        actual = read(tmp_path / "out")
        assert actual["id"].tolist() == rows["id"].tolist()
        assert actual["code"].tolist() == rows["code"].tolist()
        assert actual["hours"].tolist() == rows["hours"].tolist()
        expected = models["events"].predict(rows[FEATURES], exposure=rows["hours"])
        assert_same(actual["prediction"].to_numpy(), expected)

    def test_partitioned_folders(self, models, rows, tmp_path):
        for city in ("Bern", "Oslo"):
            part = rows[rows["city"] == city].drop(columns="city")
            write(part, tmp_path / f"in/city={city}")
        out = tmp_path / "out"
        models["price"].predict_files(tmp_path / "in", out, keep=["id", "city"])
        assert len(files_below(out)) == 8
        actual = pd.concat([parquet.ParquetFile(path).read().to_pandas() for path in out.rglob("*")
                           if path.is_file()]).set_index("id")  # fmt: skip
        for city in ("Bern", "Oslo"):
            part = rows[rows["city"] == city].set_index("id")
            assert (actual.loc[part.index, "city"] == city).all()
            expected = models["price"].predict(part[FEATURES])
            assert_same(actual.loc[part.index, "prediction"].to_numpy(), expected)

    def test_files_without_rows(self, models, rows, tmp_path):
        write(rows, tmp_path / "in")
        rows[:0].to_parquet(tmp_path / "in/none.parquet", index=False)
        out = tmp_path / "out"
        assert models["price"].predict_files(tmp_path / "in", out, keep=["id"]) == N_ROWS
        assert files_below(out)[0] == "none.parquet"
        assert parquet.read_table(out / "none.parquet").schema.names == ["id", "prediction"]
        assert len(read(out)) == N_ROWS

    def test_files_with_the_same_name(self, models, folder, tmp_path):
        table = parquet.read_table(folder / "part-1.parquet")
        for place in ("a", "b"):
            (tmp_path / place).mkdir()
            parquet.write_table(table, tmp_path / place / "x.parquet")
        models["price"].predict_files([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
        assert files_below(tmp_path / "out") == ["x-2.parquet", "x.parquet"]

    def test_types_that_differ_between_files(self, models, rows, tmp_path):
        whole = rows.assign(number=np.arange(N_ROWS))
        write(whole, tmp_path / "in")
        path = tmp_path / "in/part-2.parquet"
        table = parquet.read_table(path)
        at = table.schema.get_field_index("number")
        parquet.write_table(table.set_column(at, "number", table["number"].cast("int16")), path)
        models["price"].predict_files(tmp_path / "in", tmp_path / "out", keep=["number"])
        assert read(tmp_path / "out")["number"].tolist() == list(range(N_ROWS))

    def test_a_dask_frame(self, models, rows, ddf, tmp_path):
        out = tmp_path / "out"
        n_rows = models["ill"].predict_files(ddf, out, keep=["id", "city"], proba=True)
        assert n_rows == N_ROWS
        assert files_below(out) == [f"part-{k:05d}.parquet" for k in range(5)]
        actual = read(out)
        assert list(actual.columns) == [
            "id",
            "city",
            "prediction",
            "probability_no",
            "probability_yes",
        ]
        assert actual["id"].tolist() == rows["id"].tolist()
        assert actual["prediction"].tolist() == models["ill"].predict(rows[FEATURES]).tolist()
        expected = models["ill"].predict_proba(rows[FEATURES])
        assert_same(actual[["probability_no", "probability_yes"]].to_numpy(), expected)

    def test_errors(self, models, rows, folder, ddf, tmp_path):
        model, out = models["price"], tmp_path / "out"
        with pytest.raises(ValueError, match="predict_files takes names of files or a Dask frame"):
            model.predict_files(rows[FEATURES], out)
        with pytest.raises(ValueError, match="proba=True is for classes"):
            model.predict_files(folder, out, proba=True)
        with pytest.raises(ValueError, match="std=True is for numeric"):
            models["ill"].predict_files(folder, out, std=True)
        with pytest.raises(ValueError, match="keep names the column 'ids'"):
            model.predict_files(folder, out, keep=["ids"])
        with pytest.raises(ValueError, match=r"pass a list of names, \['id'\]"):
            model.predict_files(folder, out, keep="id")
        with pytest.raises(ValueError, match=r"^coverage"):
            model.predict_files(folder, out, interval=90)
        with pytest.raises(ValueError, match="a Dask frame is written as one file per partition"):
            model.predict_files(ddf, tmp_path / "out.parquet")
        with pytest.raises(ValueError, match="written as Parquet or CSV"):
            model.predict_files(folder, tmp_path / "out.feather")
        with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv"):
            model.predict_files(folder, tmp_path / "out.txt")
        with pytest.raises(
            FileNotFoundError, match=r"there is no folder .*nowhere: create it first"
        ):
            model.predict_files(folder, tmp_path / "nowhere/out")
        renamed = ddf.rename(columns={"id": "prediction"})
        with pytest.raises(ValueError, match=r"has the name of an output: .* prefix='model_'"):
            model.predict_files(renamed, out, keep=["prediction"])
        assert files_below(tmp_path) == []

    def test_inputs_are_not_overwritten(self, models, rows, tmp_path):
        write(rows, tmp_path / "in/deep")
        before = files_below(tmp_path)
        for output in ("in", "in/deep", "in/deep/part-1.parquet"):
            with pytest.raises(ValueError, match="would be overwritten while it is read"):
                models["price"].predict_files(tmp_path / "in", tmp_path / output, overwrite=True)
        assert files_below(tmp_path) == before


@pytest.mark.parametrize("where", ["files", "dask"])
class TestAtomicity:
    def test_existing_files_stay_unless_overwritten(self, models, folder, ddf, where, tmp_path):
        table, out = either(where, folder, ddf), tmp_path / "out"
        out.mkdir()
        models["price"].predict_files(table, out)  # an empty folder may be replaced
        old = read(out)
        (out / "old.parquet").write_bytes((out / files_below(out)[0]).read_bytes())
        with pytest.raises(FileExistsError, match="pass overwrite=True to replace them"):
            models["price"].predict_files(table, out)
        models["price"].predict_files(table, out, keep=["id"], overwrite=True)
        assert "old.parquet" not in files_below(out)
        pd.testing.assert_series_equal(read(out)["prediction"], old["prediction"])
        (out / "notes.txt").write_text("mine")
        with pytest.raises(
            FileExistsError, match=r"other files than \.parquet, such as notes\.txt"
        ):
            models["price"].predict_files(table, out, overwrite=True)
        assert (out / "notes.txt").read_text() == "mine"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]

    def test_an_error_leaves_no_files(self, models, rows, where, tmp_path):
        bad = rows.assign(age=np.where(np.arange(N_ROWS) == 255, np.inf, rows["age"]))
        table = (
            write(bad, tmp_path / "in") if where == "files" else dd.from_pandas(bad, npartitions=5)
        )
        done = tmp_path / "done"
        done.mkdir()
        for output in ("new", "out"):
            (done / "out").mkdir(exist_ok=True)
            (done / "out/old.parquet").write_text("precious")
            with pytest.raises(ValueError, match="'age'"):
                models["price"].predict_files(table, done / output, overwrite=True)
            assert files_below(done) == ["out/old.parquet"]
            assert (done / "out/old.parquet").read_text() == "precious"
            assert [path.name for path in done.iterdir()] == ["out"]


class FullDisk:
    """Writes a few parts, and then the disk is full."""

    def __init__(self, real, left):
        self.real, self.left = real, left

    def write_table(self, table):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.real.write_table(table)


class TestFullDisk:
    @pytest.mark.parametrize("output", ["out", "out.parquet", "out.csv"])
    def test_the_file_is_named_and_nothing_is_left(
        self, models, folder, tmp_path, monkeypatch, output
    ):
        from contextlib import contextmanager

        real = writing.arrow().parquet.ParquetWriter

        @contextmanager
        def full(file, schema):
            with real(file, schema) as writer:
                yield FullDisk(writer, left=2)

        monkeypatch.setattr(writing.arrow().parquet, "ParquetWriter", full)
        plain = writing.CsvWriter

        def full_csv(*arguments):
            return FullDisk(plain(*arguments), left=2)

        monkeypatch.setattr(writing, "CsvWriter", full_csv)
        with pytest.raises(OSError, match="not written: No space left on device") as error:
            models["price"].predict_files(folder, tmp_path / output)
        assert error.value.errno == errno.ENOSPC
        assert "out" in error.value.filename
        assert list(tmp_path.iterdir()) == []

    def test_an_old_file_stays(self, models, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(writing, "CsvWriter", lambda *_: FullDisk(None, left=0))
        out = tmp_path / "out.csv"
        out.write_text("precious")
        with pytest.raises(FileExistsError, match="pass overwrite=True"):
            models["price"].predict_files(folder, out)
        with pytest.raises(OSError, match="No space left"):
            models["price"].predict_files(folder, out, overwrite=True)
        assert out.read_text() == "precious"
        assert list(tmp_path.iterdir()) == [out]
