"""lanam fit and predict with folders and glob patterns, which are read in chunks."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest

from lanam import LANAMClassifier, LANAMRegressor, load
from tests.cli.conftest import make_table

COLUMNS = ["city", "age", "celsius", "zone", "holiday"]
DROP = {
    "price": "id,events,ill,colour,hours",
    "events": "id,price,ill,colour",
    "ill": "id,price,events,colour,hours",
    "colour": "id,price,events,ill,hours",
}
CUTS = [(0, 1), (1, 130), (130, 140), (140, 300)]


def cut(table, folder, kind="parquet"):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    for number, (start, end) in enumerate(CUTS):
        part = table.slice(start, end - start)
        if kind == "parquet":
            parquet.write_table(part, folder / f"part-{number}.parquet", row_group_size=50)
        else:
            arrow_csv.write_csv(part, folder / f"part-{number}.csv")
    return folder


@pytest.fixture
def rides(place):
    """The table as a folder of Parquet files, and as one of CSV files."""
    cut(make_table(), "rides")
    cut(make_table(), "rides-csv", "csv")
    return place


def fit(data, target, *more):
    arguments = ("--drop", DROP[target], "--categorical", "zone", "--interactions", "0")
    return ("fit", data, "-t", target, *arguments, *more, "-o", "m.lanam")


@cache
def in_memory(target):
    """The model that Python fits to the same rows."""
    table = make_table()
    kind = LANAMRegressor if target == "price" else LANAMClassifier
    model = kind(interactions=0, categorical_features=["zone"], random_state=0)
    return model.fit(table.select(COLUMNS), np.array(table[target].to_pylist()))


class TestFit:
    @pytest.mark.parametrize("data", ["rides", "rides-csv", "rides/*.parquet", "rides-csv/"])
    def test_regression(self, lanam, rides, data):
        done = lanam(*fit(data, "price"))
        assert "LANAMRegressor fitted to 300 rows of 5 columns" in done.out
        assert "target: 'price', as requested" in done.err
        assert "task: regression, 'price' is numeric" in done.err
        assert "4 files are read in chunks" in done.err
        assert "none are held out" in done.err
        assert "Next: lanam predict m.lanam NEW_FOLDER -o OUT_FOLDER" in done.err
        found = load("m.lanam")
        X = make_table().select(COLUMNS)
        np.testing.assert_allclose(found.predict(X), in_memory("price").predict(X), rtol=1e-5)
        assert found.metadata_["target"] == "price"
        assert found.metadata_["task"] == "regression"

    def test_counts_with_an_exposure(self, lanam, rides):
        done = lanam(*fit("rides", "events", "--task", "counts", "--exposure", "hours", "--json"))
        assert done.document["task"] == "counts"
        assert done.document["n_train"] == 300
        assert done.document["n_test"] == done.document["n_calibrate"] == 0
        assert done.document["held_out"] is None
        table = make_table()
        options = {"interactions": 0, "categorical_features": ["zone"], "random_state": 0}
        model = LANAMRegressor(likelihood="poisson", **options)
        hours = table["hours"].to_numpy()
        model.fit(table.select(COLUMNS), table["events"].to_numpy(), exposure=hours)
        found, X = load("m.lanam"), table.select(COLUMNS)
        np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=1e-4)
        assert found.metadata_["exposure"] == "hours"

    @pytest.mark.parametrize("data", ["rides", "rides-csv"])
    @pytest.mark.parametrize("target", ["ill", "colour"])
    def test_classes(self, lanam, rides, data, target):
        done = lanam(*fit(data, target))
        n_classes = 2 if target == "ill" else 3
        assert (
            f"task: classification, '{target}' holds strings with {n_classes} distinct" in done.err
        )
        model = in_memory(target)
        found, X = load("m.lanam"), make_table().select(COLUMNS)
        assert found.classes_.tolist() == model.classes_.tolist()
        np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-4)

    def test_the_task_is_inferred_from_all_files(self, lanam, place):
        table = make_table()
        for target, task in (
            (np.arange(300) % 2, "classification, 'y' has two distinct values"),
            (np.arange(300) % 4, "regression, 'y' has 4 distinct integers"),
            (np.where(np.arange(300) == 299, 7, np.arange(300) % 2), "regression, 'y' has 3"),
            (np.arange(300) % 3 == 0, "classification, 'y' is boolean"),
        ):
            for kind in ("parquet", "csv"):
                data = cut(table.select(["age", "hours"]).append_column("y", [target]), kind, kind)
                # The task is reported before the fit.
                quick = ("--force", "--interactions", "0", "--max-iter", "1")
                done = lanam("fit", data, "-o", "m.lanam", *quick)
                assert f"task: {task}" in done.err
                assert "target: 'y', by its name" in done.err

    def test_weights_and_options_reach_the_fit(self, lanam, rides):
        given = ("--weight", "hours", "--memory", "300MB", "--jobs", "2", "--max-iter", "40")
        drop = ("--drop", "id,events,ill,colour", "--categorical", "zone", "--interactions", "0")
        common = ("fit", "rides", "-t", "price", *drop)
        lanam(*common, *given, "-o", "w.lanam")
        found = load("w.lanam")
        assert (found.memory, found.n_jobs, found.max_iter) == ("300MB", 2, 40)
        table = make_table()
        model = LANAMRegressor(interactions=0, categorical_features=["zone"], random_state=0)
        X = table.select(COLUMNS)
        model.fit(X, table["price"].to_numpy(), sample_weight=table["hours"].to_numpy())
        np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=1e-5)

    @pytest.mark.parametrize("data", ["rides", "rides.csv"])
    def test_a_checkpoint(self, lanam, rides, data):
        lanam(*fit(data, "price", "--checkpoint", "part"))
        assert list(Path("part").glob("pass-*.npz"))
        done = lanam(
            *fit(data, "price", "--checkpoint", "part", "--max-iter", "7", "--force"), code=1
        )
        assert "belongs to another fit" in done.err

    def test_columns_without_a_name_are_left_out(self, lanam, place):
        table = make_table().select(["age", "price"])
        cut(table.rename_columns(["", "price"]).append_column("hours", table["age"]), "odd", "csv")
        done = lanam("fit", "odd", "-t", "price", "-o", "m.lanam", "--interactions", "0")
        assert "1 column(s) without a name are left out" in done.err
        assert load("m.lanam").feature_names_in_.tolist() == ["hours"]


class TestFitErrors:
    def test_shares(self, lanam, rides):
        for option in ("--test-share", "--calibrate-share"):
            done = lanam(*fit("rides", "price", option, "0.2"), code=2)
            assert f"{option} 0.2: rows of several files are not held out" in done.err
        lanam(*fit("rides", "price", "--test-share", "0"))  # that is what happens

    def test_columns(self, lanam, rides):
        done = lanam("fit", "rides", "-t", "prize", "-o", "m.lanam", code=2)
        assert (
            "--target names the column 'prize', which the table does not have; did you mean"
            in done.err
        )
        done = lanam("fit", "rides", "-t", "price", "--drop", "ids", "-o", "m.lanam", code=2)
        assert "--drop names the column 'ids'" in done.err
        done = lanam("fit", "rides", "-t", "price", "--weight", "w", "-o", "m.lanam", code=2)
        assert "--weight names the column 'w'" in done.err
        done = lanam(*fit("rides", "price", "--exposure", "hours"), code=2)
        assert "use --task counts as well" in done.err
        done = lanam("fit", "rides", "-t", "id", "-o", "m.lanam", code=1)
        assert "holds strings with 300 distinct values: is it the right column?" in done.err
        all_others = ",".join(name for name in make_table().column_names if name != "price")
        done = lanam("fit", "rides", "-t", "price", "--drop", all_others, "-o", "m.lanam", code=1)
        assert "has no column to predict 'price' from" in done.err
        assert not Path("m.lanam").exists()

    def test_targets(self, lanam, place):
        table = make_table().select(["age"])
        missing = pa.array([None if k == 200 else float(k) for k in range(300)])
        for y, words in (
            (pa.array(np.ones(300)), "is constant"),
            (pa.nulls(300, pa.float64()), "has no value in any row"),
            (missing, "part-3.parquet, row group 1"),
        ):
            cut(table.append_column("y", y), "in")
            done = lanam("fit", "in", "-o", "m.lanam", code=1)
            assert words in done.err
        assert "Input y contains NaN: 1 of 50 values, the first in row 11" in done.err
        assert "`X" not in done.err

    def test_files(self, lanam, place):
        os.mkdir("empty")
        done = lanam("fit", "empty", "-t", "price", "-o", "m.lanam", code=1)
        assert "the folder empty has no data files" in done.err
        done = lanam("fit", "none/*.csv", "-t", "price", "-o", "m.lanam", code=1)
        assert "no data file matches none/*.csv" in done.err
        done = lanam("fit", "none/", "-t", "price", "-o", "m.lanam", code=1)
        assert "there is no file or folder none/" in done.err

    def test_invalid_option_values(self, lanam, rides):
        done = lanam(*fit("rides", "price", "--memory", "lots"), code=1)
        assert "--memory lots is not known" in done.err
        done = lanam(*fit("rides", "price", "--jobs", "0"), code=1)
        assert "--jobs 0 is not known" in done.err


def outputs(folder):
    return {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.*")}


class TestPredict:
    @pytest.mark.parametrize("data", ["rides", "rides-csv", "rides-csv/*.csv"])
    def test_a_folder(self, lanam, rides, data):
        done = lanam("predict", "price.lanam", data, "-o", "out", "--keep", "id", "--std")
        assert "300 rows predicted in" in done.err
        assert done.err.rstrip().endswith(": out")
        assert outputs("out") == {f"part-{k}.parquet" for k in range(4)}
        found = parquet.read_table("out")
        assert found.column_names == ["id", "prediction", "std"]
        assert found["id"].to_pylist() == make_table()["id"].to_pylist()
        mean, std = load("price.lanam").predict(make_table().select(COLUMNS), return_std=True)
        np.testing.assert_allclose(found["prediction"], mean, rtol=1e-12)
        np.testing.assert_allclose(found["std"], std, rtol=1e-12)

    @pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
    def test_one_file_for_all(self, lanam, rides, output):
        lanam("predict", "colour.lanam", "rides", "-o", output, "--proba", "--terms")
        lanam("predict", "colour.lanam", "rides.csv", "-o", f"one-{output}", "--proba", "--terms")
        read = arrow_csv.read_csv if output.endswith("csv") else parquet.read_table
        found, expected = read(output), read(f"one-{output}")
        assert found.column_names == expected.column_names
        assert found["prediction"].to_pylist() == expected["prediction"].to_pylist()
        for name in found.column_names[1:]:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12)

    def test_the_document(self, lanam, rides):
        arguments = ("--all-columns", "--interval", "0.9", "--prefix", "m_", "--json")
        done = lanam("predict", "price.lanam", "rides", "-o", "out", *arguments)
        names = [*make_table().column_names, "m_prediction", "m_lower", "m_upper"]
        assert done.document["n_rows"] == 300
        assert done.document["columns"] == names == parquet.read_table("out").column_names
        assert done.document["output"] == "out"
        assert done.err == ""

    def test_exposures(self, lanam, rides):
        model, table = load("events.lanam"), make_table()
        lanam("predict", "events.lanam", "rides", "-o", "known")  # by the column of the fit
        lanam("predict", "events.lanam", "rides", "-o", "two", "--exposure", "2")
        lanam("predict", "events.lanam", "rides-csv", "-o", "age", "--exposure", "age")
        for folder, exposure in (
            ("known", table["hours"].to_numpy()),
            ("two", 2.0),
            ("age", table["age"].to_numpy()),
        ):
            expected = model.predict(table.select(COLUMNS), exposure=exposure)
            found = parquet.read_table(folder)["prediction"]
            np.testing.assert_allclose(found, expected, rtol=1e-10)

    def test_one_warning_for_unseen_categories(self, lanam, rides):
        table = make_table()
        city = ["Ulm" if k in (0, 135, 250) else name for k, name in
                enumerate(table["city"].to_pylist())]  # fmt: skip
        cut(table.set_column(1, "city", pa.array(city)), "new")
        done = lanam("predict", "price.lanam", "new", "-o", "out", "--all-columns")
        assert done.err.count("warning:") == 1
        assert "warning: column 'city': 3 of 300 values are unseen categories" in done.err

    def test_existing_outputs_are_kept(self, lanam, rides):
        predict = ("predict", "price.lanam", "rides", "-o")
        os.mkdir("out")
        lanam(*predict, "out")
        done = lanam(*predict, "out", code=1)
        assert "out is there already and has files in it: use --force" in done.err
        lanam(*predict, "out", "--force")
        Path("out/notes.txt").write_text("mine")
        done = lanam(*predict, "out", "--force", code=1)
        assert "notes.txt, which would be deleted" in done.err
        done = lanam(*predict, "rides", "--force", code=1)
        assert "rides would be overwritten while it is read" in done.err
        done = lanam(*predict, "rides.csv", code=1)
        assert "use --force" in done.err
        assert len(outputs("rides")) == 4

    @pytest.mark.parametrize(
        ("more", "name", "words"),
        [
            ((), "other.parquet", "out has files in it by now, and is not replaced"),
            (("--force",), "notes.txt", "out has other files than .parquet, such as notes.txt by"),
        ],
    )
    def test_files_that_appear_meanwhile_are_kept(
        self, lanam, rides, monkeypatch, more, name, words
    ):
        real = os.fsync

        def fsync(handle):
            Path("out").mkdir(exist_ok=True)
            Path("out", name).write_text("mine")
            real(handle)

        monkeypatch.setattr(os, "fsync", fsync)
        done = lanam("predict", "price.lanam", "rides", "-o", "out", *more, code=1)
        assert words in done.err
        assert os.listdir("out") == [name]
        (kept,) = Path().glob("out*.part")
        assert len(list(kept.glob("*.parquet"))) == 4
        assert f"{kept}; rename that" in done.err

    def test_errors(self, lanam, rides):
        def refused(*more, code, words, data="rides", model="price"):
            done = lanam("predict", f"{model}.lanam", data, *more, code=code)
            assert words in done.err
            assert not Path("out").exists()

        refused("-o", "-", code=2, words="-o - is for one file")
        refused("-o", "out", "--proba", code=2, words="--proba is for classes")
        refused("-o", "out", "--std", code=2, words="--std is for numeric", model="ill")
        refused("-o", "out", "--keep", "ids", code=2, words="--keep names the column 'ids'")
        refused("-o", "out", "--exposure", "1", code=2, words="--exposure is for counts")
        refused(
            "-o", "out", "--block-size", "999", code=2, words="--block-size is for a single file"
        )
        refused("-o", "no/out", code=1, words="there is no folder no: create it first")
        table = make_table()
        cut(table.drop_columns(["city", "age"]), "few")
        refused("-o", "out", code=1, words="few has no columns 'city', 'age'", data="few")
        cut(table.append_column("std", table["age"]), "more")
        keep = ("-o", "out", "--std", "--keep", "std")
        refused(*keep, code=2, words="use --prefix model_", data="more")
        cut(table.set_column(2, "age", table["city"]), "text")
        words = "column 'age' was numeric in the training data, and is string now"
        refused("-o", "out", code=1, words=words, data="text")
