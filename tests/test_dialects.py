"""CSV files of other dialects give the model of the clean table, in Python and on the command line."""

import copy
import re
import shutil
from contextlib import chdir
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lanam import LANAMClassifier, LANAMRegressor, csv_files, load
from lanam.cli import main
from lanam.engines import delimited
from lanam.engines.dialects import Dialect
from lanam.engines.files import open_files
from lanam.storage import from_bytes, of_estimator, to_bytes

OPTIONS = {"delimiter": ";", "decimal": ",", "encoding": "latin-1", "missing": ["?"]}
FLAGS = ("--delimiter", ";", "--decimal", ",", "--encoding", "latin-1", "--missing", "?")
FEATURES = ["größe", "stadt", "zone"]
CUTS = [(0, 1), (1, 130), (130, 240)]
FIT = {"interactions": 0, "random_state": 0}  # what the command line can set as well
SMALL = {**FIT, "hidden_sizes": (4,), "level_effects": False, "noise": "constant"}


@cache
def rows():
    rng = np.random.default_rng(0)
    size = rng.normal(20, 5, 240).round(2)
    city = rng.choice(["Köln", "Zürich", "Bern"], 240).astype(object)
    zone = rng.integers(1, 4, 240).astype(float)
    price = (100 + np.sin(size / 3) + (city == "Köln") + 0.1 * rng.normal(size=240)).round(4)
    size[::9], city[::11], zone[::13] = np.nan, None, np.nan
    return pd.DataFrame({"größe": size, "stadt": city, "zone": zone, "preis": price})


def write(frame, path, **options):
    dialect = {"sep": ";", "decimal": ",", "encoding": "latin-1", "na_rep": "?", "index": False}
    frame.to_csv(path, **{**dialect, **options})


def write_folder():
    """The rows in three files, and in one."""
    Path("in").mkdir()
    for number, (start, end) in enumerate(CUTS):
        write(rows()[start:end], f"in/{number}.csv")
    write(rows(), "all.csv")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_folder()
    return tmp_path


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of a model that was fitted to the folder."""
    place = tmp_path_factory.mktemp("fitted")
    with chdir(place):
        write_folder()
        model = LANAMRegressor(**SMALL).fit(csv_files("in", **OPTIONS), target="preis")
        return place / model.save("m.lanam")


@cache
def in_memory(small=True):
    return LANAMRegressor(**(SMALL if small else FIT)).fit(rows()[FEATURES], rows()["preis"])


def lanam(capfd, *arguments, code=0):
    capfd.readouterr()
    assert main([str(each) for each in arguments]) == code, capfd.readouterr().err
    return capfd.readouterr()


def assert_same_model(model, rtol, small=True):
    expected = in_memory(small)
    X = rows()[FEATURES]
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=rtol)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, abs=1e-3)
    assert model.feature_names_in_.tolist() == FEATURES
    assert [column.levels for column in model._schema.columns] == [
        column.levels for column in expected._schema.columns
    ]


class TestFits:
    @pytest.mark.parametrize("path", ["in", "in/*.csv", "all.csv", ["in/0.csv", "in/1.csv"]])
    def test_in_python(self, folder, path):
        table = csv_files([*path, "in/2.csv"] if isinstance(path, list) else path, **OPTIONS)
        model = LANAMRegressor(**SMALL).fit(table, target="preis")
        assert_same_model(model, 1e-5)
        assert model.dialect_ == Dialect(";", ",", "latin-1", ("?",))

    def test_in_processes(self, folder, monkeypatch):
        monkeypatch.setattr("lanam.engines.files._MANY_BYTES", 50)
        model = LANAMRegressor(**SMALL, n_jobs=2).fit(csv_files("in", **OPTIONS), target="preis")
        assert_same_model(model, 1e-5)

    def test_folder_on_the_command_line(self, folder, capfd):
        lanam(capfd, "fit", "in", "-t", "preis", *FLAGS, "--interactions", "0", "-o", "m.lanam")
        assert_same_model(load("m.lanam"), 1e-5, small=False)

    def test_file_on_the_command_line(self, folder, capfd):
        lanam(
            *(capfd, "fit", "all.csv", "-t", "preis", *FLAGS, "--interactions", "0"),
            *("--test-share", "0", "-o", "m.lanam"),
        )
        assert_same_model(load("m.lanam"), 1e-12, small=False)

    def test_inferred_delimiter_is_reported(self, folder, capfd):
        more = ("--interactions", "0", "-o", "m.lanam")
        err = lanam(capfd, "fit", "in/*.csv", "-t", "preis", *FLAGS[2:], *more).err
        assert "in/*.csv is separated by semicolons (change with --delimiter)" in err
        model = load("m.lanam")
        assert model.dialect_.delimiter is None  # other files may have another one
        assert_same_model(model, 1e-5, small=False)

    def test_refit_drops_the_dialect(self, saved):
        model = load(saved)
        assert model.dialect_ is not None
        model.fit(rows()[FEATURES], rows()["preis"])
        assert not hasattr(model, "dialect_")

    def test_checkpoint_is_of_one_dialect(self, folder):
        fit = LANAMRegressor(**SMALL).fit
        fit(csv_files("in", **OPTIONS), target="preis", checkpoint="part")
        other = csv_files("in", **{**OPTIONS, "missing": ["?", "Bern"]})
        with pytest.raises(ValueError, match="belongs to another fit"):
            fit(other, target="preis", checkpoint="part")

    def test_files_with_any_suffix(self, folder):
        Path("all.csv").rename("all.dat")
        model = LANAMRegressor(**SMALL).fit(csv_files("all.dat", **OPTIONS), target="preis")
        assert_same_model(model, 1e-5)
        assert open_files(csv_files("*.dat", **OPTIONS)).names == (*FEATURES, "preis")


class TestStoredDialect:
    """A saved model applies its dialect to files that it is given later."""

    @pytest.fixture
    def model(self, folder, saved):
        shutil.copy(saved, "m.lanam")
        return load("m.lanam")

    def test_predict(self, model):
        expected = model.predict(rows()[FEATURES])
        np.testing.assert_allclose(model.predict("all.csv"), expected, rtol=1e-12)
        np.testing.assert_allclose(model.predict("in"), expected, rtol=1e-12)
        expected = model.score(rows()[FEATURES], rows()["preis"])
        assert model.score("in", "preis") == pytest.approx(expected)

    def test_predict_files(self, model):
        model.predict_files("in", "out.csv", keep=["stadt", "größe"])
        output = pd.read_csv("out.csv", dtype=str)
        written = pd.read_csv("all.csv", sep=";", dtype=str, encoding="latin-1")
        assert output["stadt"].tolist() == written["stadt"].tolist()
        assert output["größe"].tolist() == written["größe"].tolist()
        expected = model.predict(rows()[FEATURES])
        np.testing.assert_allclose(output["prediction"].astype(float), expected, rtol=1e-12)

    @pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
    def test_compressed_files(self, model, ending):
        with pa.output_stream(f"all.csv.{ending}", compression="detect") as file:
            file.write(Path("all.csv").read_bytes())
        expected = model.predict(rows()[FEATURES])
        np.testing.assert_allclose(model.predict(f"all.csv.{ending}"), expected, rtol=1e-12)
        if ending == "zst":
            with pytest.raises(ValueError, match=r"\.zst is read and not written"):
                model.predict_files("in", "out.csv.zst")
            return
        model.predict_files("in", f"out.csv.{ending}")
        output = pd.read_csv(f"out.csv.{ending}")["prediction"]
        np.testing.assert_allclose(output, expected, rtol=1e-12)

    def test_command_line(self, model, capfd):
        expected = model.predict(rows()[FEATURES])
        lanam(capfd, "predict", "m.lanam", "all.csv", "-o", "out.csv")
        np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], expected, rtol=1e-12)
        lanam(capfd, "predict", "m.lanam", "in", "-o", "out")
        np.testing.assert_allclose(pd.read_parquet("out")["prediction"], expected, rtol=1e-12)
        lanam(capfd, "report", "m.lanam", "all.csv", "-t", "preis", "-o", "r.html")
        page = Path("r.html").read_text()
        assert "Zürich" in page
        out = lanam(capfd, "explain", "m.lanam", "--row", 2, "--data", "all.csv").out
        assert re.search(rf"prediction {expected[1]:.5g}", out)

    def test_flags_override_it(self, model, capfd):
        write(rows(), "plain.csv", sep="|", decimal=".", encoding="utf-8")
        more = ("--decimal", ".", "--encoding", "utf-8")
        lanam(capfd, "predict", "m.lanam", "plain.csv", "-o", "no.csv", *more, code=1)
        more += ("--delimiter", "|")  # the missing values are still those of the training data
        lanam(capfd, "predict", "m.lanam", "plain.csv", "-o", "out.csv", *more)
        expected = model.predict(rows()[FEATURES])
        np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], expected, rtol=1e-12)
        other = csv_files("plain.csv", delimiter="|", decimal=".", encoding="utf-8")
        np.testing.assert_allclose(model.predict(other), expected, rtol=1e-12)
        lanam(capfd, "report", "m.lanam", "plain.csv", "-t", "preis", *more, "-o", "r.html")

    def test_add_interactions(self, model):
        model.add_interactions("in", "preis", [("größe", "zone")])
        status = {row["pair"]: row["status"] for row in model.interaction_scores_}
        assert status["größe x zone"] != "left out: not named"

    def test_edited_model(self, model):
        edited = model.edit_term("größe", "clamp", high=25.0, reason="few")
        assert edited.dialect_ == model.dialect_


class TestSaved:
    def test_default_dialect_is_not_saved(self, folder):
        write(rows(), "usual.csv", sep=",", decimal=".", encoding="utf-8", na_rep="")
        model = LANAMRegressor(**SMALL).fit("usual.csv", target="preis")
        assert model.dialect_ == Dialect()
        assert from_bytes(to_bytes(of_estimator(model))).dialect is None

    def test_missing_values_of_older_files(self):
        model = copy.copy(in_memory())
        model.metadata_ = {"target": "preis", "missing": "?\n-9"}
        loaded = from_bytes(to_bytes(of_estimator(model)))
        assert loaded.dialect == Dialect(missing=("?", "-9"))

    def test_invalid_dialects(self):
        saved = of_estimator(in_memory())
        for bad in ({"delimiter": 1}, {"encoding": "klingon"}, {"missing": (3,)}):
            dialect = Dialect(decimal=",")
            for name, value in bad.items():
                object.__setattr__(dialect, name, value)
            with pytest.raises(ValueError, match="the dialect"):
                to_bytes(replace(saved, dialect=dialect))


class TestTextAmongNumbers:
    """A string in a numeric column is an error and does not make the column categorical."""

    WORDS = (
        r"column 'x' is numeric but for 'none', first in row 17 \(counting from 1 after the header\) of "
        r".*a\.csv\. Fix it, "
    )

    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        lines = ["x,y"] + [f"{k},{k * 1.5}" for k in range(40)]
        lines[17] = "none,3"
        Path("a.csv").write_text("\n".join(lines))

    def test_in_python(self, file):
        model = LANAMRegressor(**SMALL)
        with pytest.raises(ValueError, match=self.WORDS) as caught:
            model.fit("a.csv", target="y")
        assert "csv_files(path, missing=['none'])" in str(caught.value)
        assert "categorical_features=['x']" in str(caught.value)
        model.fit(csv_files("a.csv", missing=["none"]), target="y")
        assert model._schema.columns[0].kind == "numeric"
        named = LANAMRegressor(**SMALL, categorical_features=["x"]).fit("a.csv", target="y")
        assert "none" in named._schema.columns[0].levels

    def test_in_one_of_several_files(self, tmp_path, capfd):
        for number, cell in enumerate(["3", "V1", "4"]):
            lines = [f"{k % 5},{k / 7}" for k in range(20)]
            lines[7] = f"{cell},1"
            (tmp_path / f"{number}.csv").write_text("\n".join(["x,y", *lines]))
        words = (
            r"column 'x' is numeric in .*0\.csv and string in .*1\.csv: column 'x' is numeric but "
            r"for 'V1', first in row 8 .* of .*1\.csv.*, or "
        )
        with pytest.raises(ValueError, match=words + r"categorical_features=\['x'\] if the col"):
            LANAMRegressor(**SMALL).fit(tmp_path, target="y")
        err = lanam(capfd, "fit", tmp_path, "-t", "y", "-o", tmp_path / "m.lanam", code=1).err
        assert re.search(words + r"--categorical 'x' if the col", err)
        named = LANAMRegressor(**SMALL, categorical_features=["x"]).fit(tmp_path, target="y")
        assert list(named._schema.columns[0].levels) == ["0", "1", "2", "3", "4", "V1"]

    def test_decimal_points_instead_of_commas(self, tmp_path):
        lines = [f"{k}.5;{k}" for k in range(40)]
        (tmp_path / "a.csv").write_text("\n".join(["x;y", *lines]))
        words = r"'x' has numbers with a decimal point \(for example '0.5'\).*decimal='\.'\)"
        with pytest.raises(ValueError, match=words):
            LANAMRegressor(**SMALL).fit(csv_files(tmp_path / "a.csv", decimal=","), target="y")

    def test_class_labels_may_be_mixed(self, tmp_path):
        lines = [f"{k / 7},{'other' if k % 4 == 0 else k % 4}" for k in range(40)]
        (tmp_path / "a.csv").write_text("\n".join(["x,y", *lines]))
        model = LANAMClassifier(**FIT, hidden_sizes=(4,)).fit(tmp_path / "a.csv", target="y")
        assert model.classes_.tolist() == ["1", "2", "3", "other"]
        with pytest.raises(ValueError, match="column 'y' is numeric but for 'other'"):
            LANAMRegressor(**SMALL).fit(tmp_path / "a.csv", target="y")

    @pytest.mark.parametrize("data", ["a.csv", "*.csv"])
    def test_on_the_command_line(self, file, capfd, data):
        err = lanam(capfd, "fit", data, "-t", "y", "-o", "m.lanam", code=1).err
        assert re.search(self.WORDS + "use --missing 'none' if .*, or --categorical 'x' if", err)

    @pytest.mark.parametrize(("cell", "number"), [("<0.1", "0.1"), ("(12)", "-12")])
    def test_marks_of_numbers(self, file, cell, number):
        Path("a.csv").write_text(Path("a.csv").read_text().replace("none", cell))
        words = rf"Write numbers without marks \({number} for '{re.escape(cell)}'\), pass"
        with pytest.raises(ValueError, match=words):
            LANAMRegressor(**SMALL).fit("a.csv", target="y")

    def test_after_the_head_of_the_file(self, file, monkeypatch, capfd):
        monkeypatch.setattr(delimited, "_HEAD", 64)
        words = r"a\.csv, row 17 \(counting from 1 after the header\), column 'x': 'none' is not numeric"
        with pytest.raises(ValueError, match=words):
            LANAMRegressor(**SMALL).fit("a.csv", target="y")
        err = lanam(capfd, "fit", "a.csv", "-t", "y", "-o", "m.lanam", code=1).err
        assert re.search(words + r".*: fix the cell, or use --missing 'none' if", err)

    def test_decimal_commas(self, tmp_path):
        (tmp_path / "a.csv").write_text("x;y\n" + "\n".join(f"{k},5;{k}" for k in range(40)))
        words = (
            r"column 'x' has numbers with a decimal comma .*'0,5'.*csv_files\(path, decimal=','\)"
        )
        with pytest.raises(ValueError, match=words):
            LANAMRegressor(**SMALL).fit(tmp_path / "a.csv", target="y")


class TestDialect:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"delimiter": ";;"}, r"delimiter=';;' must be one character"),
            ({"decimal": ""}, r"decimal='' must be one character"),
            ({"delimiter": ",", "decimal": ","}, "must differ"),
            ({"delimiter": "."}, "must differ"),
            ({"encoding": "klingon"}, "encoding='klingon' is not a known"),
            ({"encoding": "rot13"}, "encoding='rot13' is not a known"),
            ({"missing": [3]}, r"missing=\[3\] must be strings"),
        ],
    )
    def test_invalid_arguments(self, options, words):
        with pytest.raises(ValueError, match=words):
            csv_files("a.csv", **options)

    def test_one_missing_value(self):
        assert csv_files("a.csv", missing="none").dialect.missing == ("none",)

    def test_other_formats(self, tmp_path):
        rows().to_parquet(tmp_path / "a.parquet")
        with pytest.raises(ValueError, match=r"a\.parquet is a Parquet file"):
            open_files(csv_files(tmp_path / "a.parquet", decimal=","))

    def test_integers_that_are_not_exact_as_floats(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text(
            "code,y\n" + "".join(f"{2**60 + k % 3},{k % 3 + k / 99}\n" for k in range(90))
        )
        model = LANAMRegressor(**SMALL, categorical_features=["code"]).fit(path, target="y")
        assert list(model._schema.columns[0].levels) == [2**60, 2**60 + 1, 2**60 + 2]
