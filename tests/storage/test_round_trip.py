"""A saved model loads bit for bit."""

import dataclasses
import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lanam
from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.model.scoring import link_moments
from lanam.persistence import _restored
from lanam.storage import from_bytes, of_estimator, to_bytes
from lanam.storage.container import unpack
from tests.storage.cases import NAMES, SMALL, case

#: Rows are hard on purpose, and fits are cut short.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def assert_same(one, two, place="model"):
    """The same values of the same types, however deep."""
    one = one.item() if isinstance(one, np.generic) else one
    assert type(one) is type(two), place
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype, place
        np.testing.assert_array_equal(one, two, err_msg=place)
        if one.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(one), np.signbit(two), err_msg=place)
        assert two.flags.writeable, place
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            name = field.name
            assert_same(getattr(one, name), getattr(two, name), f"{place}.{name}")
    elif isinstance(one, dict):
        assert list(one) == list(two), place
        for key in one:
            assert_same(one[key], two[key], f"{place}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), place
        for k, (left, right) in enumerate(zip(one, two, strict=True)):
            assert_same(left, right, f"{place}[{k}]")
    elif isinstance(one, float):
        assert one == two or (one != one and two != two), place
    else:
        assert one == two, place


@pytest.fixture(params=NAMES, scope="module")
def pair(request, tmp_path_factory):
    """A model, the same from a file, and rows; no test changes them."""
    model, rows = case(request.param)
    return model, lanam.load(model.save(tmp_path_factory.mktemp("pair") / "model.lanam")), rows


def test_fitted_state(pair):
    model, same, _ = pair
    assert type(same) is type(model)
    # What the fit did with its rows is of the fit, and of its machine.
    learned = {name for name in vars(model) if not name.startswith("__")} - {"plan_"}
    assert set(vars(same)) == learned
    for name in learned:
        assert_same(vars(model)[name], vars(same)[name], name)


def test_predictions(pair):
    model, same, rows = pair
    np.testing.assert_array_equal(same.predict(rows), model.predict(rows))
    assert_same(
        model.predict_terms(rows, return_std=True), same.predict_terms(rows, return_std=True)
    )
    moments = (link_moments(each._model, each._columns(rows)) for each in (model, same))
    assert_same(*moments)
    np.testing.assert_array_equal(
        model.sample(rows, 5, random_state=0), same.sample(rows, 5, random_state=0)
    )
    if isinstance(model, LANAMClassifier):
        assert same.predict(rows).dtype == model.predict(rows).dtype
        np.testing.assert_array_equal(same.predict_proba(rows), model.predict_proba(rows))
        np.testing.assert_array_equal(same.predict_set(rows), model.predict_set(rows))
    np.testing.assert_array_equal(
        same.predict_interval(rows, 0.9), model.predict_interval(rows, 0.9)
    )


def test_summary_and_explanations(pair):
    model, same, rows = pair
    assert str(same.summary()) == str(model.summary())
    assert_same(model.summary().to_dict(), same.summary().to_dict())
    assert_same(model.explain_global().to_dict(), same.explain_global().to_dict())
    local = [each.explain_local(rows[:5]).to_dict() for each in (model, same)]
    assert_same(*local)
    assert repr(same) == repr(model)
    assert same.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    left, right = (each.interaction_scores_.to_frame() for each in (model, same))
    assert type(left) is type(right)


def test_saved_again_it_is_the_same_file(pair):
    model, same, _ = pair
    assert to_bytes(of_estimator(same)) == to_bytes(of_estimator(model))


def test_pickled_and_cloned_it_is_the_same(pair):
    model, same, rows = pair
    again = pickle.loads(pickle.dumps(same))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert clone(same).get_params() == model.get_params()
    assert not hasattr(clone(same), "terms_")


def test_bands_are_kept_in_few_bytes(pair):
    """Neither a fit nor an edit leaves numbers that need all of their digits where bands are made."""
    names = set(unpack(to_bytes(of_estimator(pair[0]))).arrays)
    assert "root digits" in names
    assert not {name for name in names if name.endswith((" table", " coupling"))}


def test_a_report(tmp_path):
    model, _ = case("counts")
    same = lanam.load(model.save(tmp_path / "model.lanam"))
    left, right = (
        each.report(tmp_path / "r.html", title="T").read_bytes() for each in (model, same)
    )
    assert left == right


def test_pairs_can_be_added(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] * X[:, 2] + 0.1 * rng.normal(size=300)
    model = LANAMRegressor(**{**SMALL, "interactions": 0}).fit(X, y)
    same = lanam.load(model.save(tmp_path / "model.lanam"))
    model.add_interactions(X, y)
    same.add_interactions(X, y)
    assert any(term.kind == "pair" for term in same.terms_)
    assert_same(
        dataclasses.replace(model._model, history=()), dataclasses.replace(same._model, history=())
    )


def test_it_can_be_fitted_again(tmp_path):
    model, X = case("block")
    same = lanam.load(model.save(tmp_path / "model.lanam"))
    y = X[:, 0]
    np.testing.assert_array_equal(same.fit(X, y).predict(X), clone(model).fit(X, y).predict(X))


class TestArguments:
    X, y = np.random.default_rng(0).normal(size=(2, 60, 1))

    def back(self, **arguments):
        arguments = {"interactions": 0, "max_iter": 2, "hidden_sizes": (4,), **arguments}
        model = LANAMRegressor(**arguments).fit(self.X, self.y[:, 0])
        return model, restored(model)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("interactions", "auto"),
            ("interactions", None),
            ("interactions", []),
            ("interactions", ()),
            ("interactions", set()),
            ("hidden_sizes", [8, 4]),
            ("hidden_sizes", (8, 4)),
            ("init_scales", (1, 2.5)),
            ("tol", 1),
            ("tol", 1e-3),
            ("max_iter", 3),
            ("level_effects", False),
            ("random_state", 2**32 - 1),
            ("random_state", None),
            ("categorical_features", []),
            ("verbose", False),
        ],
    )
    def test_unchanged(self, name, value):
        model, same = self.back(**{name: value})
        found = same.get_params()[name]
        assert type(found) is type(value)
        assert found == value
        assert same.get_params() == model.get_params()

    def test_pairs(self):
        model, _ = case("edited")
        assert restored(model).interactions == [("b", "c")]
        assert type(restored(model).interactions[0]) is tuple

    @pytest.mark.parametrize("value", [np.int64(7), np.float64(0.5)])
    def test_numpys_numbers_become_plain(self, value):
        _, same = self.back(tol=value)
        assert same.tol == value

    @pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0)])
    def test_random_generators_are_noted(self, state):
        model, _ = self.back()
        model.set_params(random_state=state)
        assert restored(model).random_state is None
        assert "which files cannot store" in from_bytes(to_bytes(of_estimator(model))).notes[0]
        assert model.random_state is state

    def test_objects_are_rejected(self):
        model, _ = self.back()
        model.set_params(categorical_features=io.StringIO())
        with pytest.raises(ValueError, match=r"categorical_features=.* StringIO is not a plain"):
            to_bytes(of_estimator(model))

    def test_metadata(self):
        model, same = self.back()
        assert not hasattr(same, "metadata_")
        model.metadata_ = {"target": "y", "n": 3, "share": 0.5, "fine": True, "none": None}
        assert_same(restored(model).metadata_, model.metadata_)
        model.metadata_ = {"target": ["y"]}
        with pytest.raises(ValueError, match="metadata_ cannot be saved: it must map names"):
            to_bytes(of_estimator(model))

    def test_that_counts_had_an_exposure(self):
        X, y, hours = np.arange(40.0)[:, None], np.arange(40) % 3, np.full(40, 2.0)
        counts = LANAMRegressor(likelihood="poisson", interactions=0, random_state=0)
        with pytest.raises(ValueError, match="exposure="):
            restored(counts.fit(X, y, exposure=hours)).score(X, y)
        restored(counts.fit(X, y)).score(X, y)  # that had none
        saved = of_estimator(self.back()[0])
        with pytest.raises(ValueError, match="the exposure"):
            to_bytes(dataclasses.replace(saved, exposed=True))

    def test_set_output(self):
        model, _ = self.back()
        model.set_output(transform="pandas")
        assert isinstance(restored(model).transform(self.X), pd.DataFrame)


def restored(model):
    return _restored(from_bytes(to_bytes(of_estimator(model))))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype="<U40"),
        np.array(["no", "yes"], dtype=object),
        np.array(["", "ü 日\x00\ud800"], dtype=object),
        np.array([False, True]),
        np.array([False, True], dtype=object),
        np.array([-1, 2**62]),
        np.array([0, 2**64 - 1], dtype=np.uint64),
        np.array([1, 2], dtype=np.int8),
        np.array([1.0, 2.0]),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([3, 1, 2], dtype=">i4"),
    ],
    ids=lambda labels: f"{labels.dtype}-{labels[-1]!r}",
)
def test_labels_of_classes(labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 1))
    y = labels[np.arange(90) % len(labels)]
    model = LANAMClassifier(interactions=0, **SMALL).fit(X, y)
    same = restored(model)
    assert same.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert same.classes_.tolist() == model.classes_.tolist()
    assert [type(label) for label in same.predict(X).tolist()] == [
        type(label) for label in model.predict(X).tolist()
    ]


@pytest.mark.parametrize(
    "levels",
    [["a", "b", "c"], [1, 2, 3], [0.5, 1.5, 2.5], [True, False, True], ["", "x, y", "ü\x00"]],
    ids=repr,
)
def test_levels_of_columns(levels):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"c": np.array(levels, dtype=object)[np.arange(90) % 3]})
    model = LANAMRegressor(categorical_features=["c"], interactions=0, **SMALL)
    model.fit(rows, rng.normal(size=90) + 3.0 * (np.arange(90) % 3))
    assert_same(model._schema, restored(model)._schema)
    np.testing.assert_array_equal(restored(model).predict(rows), model.predict(rows))


class TestSave:
    def test_the_path_comes_back(self, tmp_path):
        path = case("block")[0].save(str(tmp_path / "m.anything"))
        assert path == tmp_path / "m.anything"
        assert os.listdir(tmp_path) == ["m.anything"]

    def test_another_process_reads_the_same(self, tmp_path):
        model, X = case("block")
        path = model.save(tmp_path / "m.lanam")
        np.save(tmp_path / "X.npy", X)
        code = (
            "import sys, numpy as np, lanam; folder = sys.argv[1]; "
            "mean, std = lanam.load(folder + '/m.lanam').predict(np.load(folder + '/X.npy'), True); "
            "np.save(folder + '/out.npy', [mean, std])"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
        np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.predict(X, True))
        assert path.exists()

    def test_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            LANAMRegressor().save(tmp_path / "m.lanam")
        assert not os.listdir(tmp_path)

    def test_a_file_that_is_there(self, tmp_path):
        path = tmp_path / "m.lanam"
        path.write_bytes(b"old")
        with pytest.raises(FileExistsError, match="is there already: pass overwrite=True"):
            case("block")[0].save(path, overwrite=False)
        assert path.read_bytes() == b"old"
        case("block")[0].save(path)
        lanam.load(path)

    def test_a_full_disk(self, tmp_path, monkeypatch):
        path = tmp_path / "m.lanam"
        path.write_bytes(b"old")

        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="the model was not written: No space left on device"):
            case("block")[0].save(path)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["m.lanam"]

    def test_folders(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere: create it"):
            case("block")[0].save(tmp_path / "nowhere" / "m.lanam")
        with pytest.raises(IsADirectoryError, match=r"such as model\.lanam"):
            case("block")[0].save(tmp_path)

    def test_a_user_defined_class(self, tmp_path):
        class Mine(LANAMRegressor):
            pass

        mine = Mine()
        mine.__dict__ |= vars(case("block")[0])
        with pytest.raises(
            ValueError, match="Mine is not a class of lanam, and model files have no code"
        ):
            mine.save(tmp_path / "m.lanam")

    def test_labels_that_cannot_be_saved(self):
        model, _ = case("adam")
        twin = LANAMClassifier()
        twin.__dict__ |= vars(model)
        twin.classes_ = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")
        with pytest.raises(ValueError, match=r"classes of type datetime64\[D\] cannot be saved"):
            to_bytes(of_estimator(twin))

    def test_ten_columns_and_ten_pairs_are_about_a_megabyte(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (2000, 10))
        pairs = [(k, (k + 1) % 10) for k in range(10)]
        y = np.sin(3.0 * X).sum(axis=1) + sum(2.0 * X[:, i] * X[:, j] for i, j in pairs)
        model = LANAMRegressor(interactions=pairs, random_state=0)
        model.fit(X, y + 0.3 * rng.normal(size=2000))
        assert sum(term.kind == "pair" and term.active for term in model.terms_) == 10
        # 1.03 MB: tables and the root of the covariance of 554 coordinates, and 5% for the 60 of the sides
        # beyond the data, whose rows of the root are zeros but for the diagonal and compress to little.
        assert model.save(tmp_path / "m.lanam").stat().st_size < 1.2e6


def test_a_model_of_a_constant_target(tmp_path):
    rows = np.arange(40.0)[:, None]
    model = LANAMRegressor(**SMALL).fit(rows, np.full(40, 7.0))
    same = lanam.load(model.save(tmp_path / "model.lanam"))
    assert same.history_[-1]["deviance_explained"] is None  # there is nothing to explain
    np.testing.assert_array_equal(same.predict(rows), model.predict(rows))


def test_a_dropped_column_beside_a_huge_target(tmp_path):
    """Its variances are squares: they may be as large as squares are."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(60, 1)), 1e91 * rng.normal(size=60)
    model = LANAMRegressor(**SMALL).fit(rows, y)
    (dropped,) = model._model.terms
    assert dropped.dropped_variance.max() > 1e150
    same = lanam.load(model.save(tmp_path / "model.lanam"))
    assert_same(same._model.terms[0].dropped_variance, dropped.dropped_variance)
