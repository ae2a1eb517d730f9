"""CSV files that are not written as usual: the model of the clean table, by Python and by commands."""

import re
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
FIT = {"interactions": 0, "random_state": 0}


@cache
def rows():
    rng = np.random.default_rng(0)
    size = rng.normal(20, 5, 240).round(2)
    city = rng.choice(["Köln", "Zürich", "Bern"], 240).astype(object)
    zone = rng.integers(1, 4, 240).astype(float)
    price = (100 + np.sin(size / 3) + (city == "Köln") + 0.1 * rng.normal(size=240)).round(4)
    size[::9], city[::11], zone[::13] = np.nan, None, np.nan
    return pd.DataFrame({"größe": size, "stadt": city, "zone": zone, "preis": price})


def write(frame, path, **more):
    how = {"sep": ";", "decimal": ",", "encoding": "latin-1", "na_rep": "?", "index": False}
    frame.to_csv(path, **{**how, **more})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The rows in three files, and in one."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number, (start, end) in enumerate(CUTS):
        write(rows()[start:end], f"in/{number}.csv")
    write(rows(), "all.csv")
    return tmp_path


@cache
def in_memory():
    return LANAMRegressor(**FIT).fit(rows()[FEATURES], rows()["preis"])


def lanam(capfd, *arguments, code=0):
    capfd.readouterr()
    assert main([str(each) for each in arguments]) == code, capfd.readouterr().err
    return capfd.readouterr()


def assert_same_model(found, rtol):
    model = in_memory()
    X = rows()[FEATURES]
    np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=rtol)
    assert found.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-3)
    assert found.feature_names_in_.tolist() == FEATURES
    assert [column.levels for column in found._schema.columns] == [
        column.levels for column in model._schema.columns
    ]


class TestFits:
    @pytest.mark.parametrize("path", ["in", "in/*.csv", "all.csv", ["in/0.csv", "in/1.csv"]])
    def test_in_python(self, folder, path):
        table = csv_files([*path, "in/2.csv"] if isinstance(path, list) else path, **OPTIONS)
        found = LANAMRegressor(**FIT).fit(table, target="preis")
        assert_same_model(found, 1e-5)
        assert found.dialect_ == Dialect(";", ",", "latin-1", ("?",))

    def test_in_processes(self, folder, monkeypatch):
        monkeypatch.setattr("lanam.engines.files._MANY_BYTES", 50)
        found = LANAMRegressor(**FIT, n_jobs=2).fit(csv_files("in", **OPTIONS), target="preis")
        assert_same_model(found, 1e-5)

    @pytest.mark.parametrize("path", ["in", "in/*.csv"])
    def test_of_a_folder_on_the_command_line(self, folder, capfd, path):
        lanam(capfd, "fit", path, "-t", "preis", *FLAGS, "--interactions", "0", "-o", "m.lanam")
        assert_same_model(load("m.lanam"), 1e-5)

    def test_of_a_file_on_the_command_line(self, folder, capfd):
        lanam(
            *(capfd, "fit", "all.csv", "-t", "preis", *FLAGS, "--interactions", "0"),
            *("--test-share", "0", "-o", "m.lanam"),
        )
        assert_same_model(load("m.lanam"), 1e-12)

    def test_what_is_found_is_said(self, folder, capfd):
        more = ("--interactions", "0", "-o", "m.lanam")
        said = lanam(capfd, "fit", "in", "-t", "preis", *FLAGS[2:], *more).err
        assert "in is separated by semicolons (change with --delimiter)" in said
        assert load("m.lanam").dialect_.delimiter is None  # other files may be written otherwise

    def test_a_later_fit_forgets(self, folder):
        model = LANAMRegressor(**FIT).fit(csv_files("in", **OPTIONS), target="preis")
        model.fit(rows()[FEATURES], rows()["preis"])
        assert not hasattr(model, "dialect_")

    def test_a_checkpoint_is_of_one_dialect(self, folder):
        fit = LANAMRegressor(**FIT).fit
        fit(csv_files("in", **OPTIONS), target="preis", checkpoint="part")
        other = csv_files("in", **{**OPTIONS, "missing": ["?", "Bern"]})
        with pytest.raises(ValueError, match="belongs to another fit"):
            fit(other, target="preis", checkpoint="part")

    def test_files_of_any_name(self, folder):
        Path("all.csv").rename("all.dat")
        assert_same_model(
            LANAMRegressor(**FIT).fit(csv_files("all.dat", **OPTIONS), target="preis"), 1e-5
        )
        found = open_files(csv_files("*.dat", **OPTIONS))
        assert found.names == (*FEATURES, "preis")


class TestRemembered:
    @pytest.fixture
    def model(self, folder):
        """A model of the folder, saved and loaded."""
        model = LANAMRegressor(**FIT).fit(csv_files("in", **OPTIONS), target="preis")
        model.save("m.lanam")
        return load("m.lanam")

    def test_by_predict(self, model):
        expected = model.predict(rows()[FEATURES])
        np.testing.assert_allclose(model.predict("all.csv"), expected, rtol=1e-12)
        np.testing.assert_allclose(model.predict("in"), expected, rtol=1e-12)
        expected = model.score(rows()[FEATURES], rows()["preis"])
        assert model.score("in", "preis") == pytest.approx(expected)

    def test_by_predict_files(self, model):
        model.predict_files("in", "out.csv", keep=["stadt", "größe"])
        found = pd.read_csv("out.csv", dtype=str)
        written = pd.read_csv("all.csv", sep=";", dtype=str, encoding="latin-1")
        assert found["stadt"].tolist() == written["stadt"].tolist()
        assert found["größe"].tolist() == written["größe"].tolist()
        expected = model.predict(rows()[FEATURES])
        np.testing.assert_allclose(found["prediction"].astype(float), expected, rtol=1e-12)

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
        found = pd.read_csv(f"out.csv.{ending}")["prediction"]
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_by_the_command_line(self, model, capfd):
        expected = model.predict(rows()[FEATURES])
        lanam(capfd, "predict", "m.lanam", "all.csv", "-o", "out.csv")
        np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], expected, rtol=1e-12)
        lanam(capfd, "predict", "m.lanam", "in", "-o", "out")
        np.testing.assert_allclose(pd.read_parquet("out")["prediction"], expected, rtol=1e-12)
        lanam(capfd, "report", "m.lanam", "all.csv", "-t", "preis", "-o", "r.html")
        page = Path("r.html").read_text()
        assert "Zürich" in page
        said = lanam(capfd, "explain", "m.lanam", "--row", 2, "--data", "all.csv").out
        assert re.search(rf"prediction {expected[1]:.5g}", said)

    def test_a_flag_overrides(self, model, capfd):
        write(rows(), "plain.csv", sep="|", decimal=".", encoding="utf-8")
        more = ("--decimal", ".", "--encoding", "utf-8")
        lanam(capfd, "predict", "m.lanam", "plain.csv", "-o", "no.csv", *more, code=1)
        more += ("--delimiter", "|")  # what stood for missing values still does
        lanam(capfd, "predict", "m.lanam", "plain.csv", "-o", "out.csv", *more)
        expected = model.predict(rows()[FEATURES])
        np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], expected, rtol=1e-12)
        other = csv_files("plain.csv", delimiter="|", decimal=".", encoding="utf-8")
        np.testing.assert_allclose(model.predict(other), expected, rtol=1e-12)
        lanam(capfd, "report", "m.lanam", "plain.csv", "-t", "preis", *more, "-o", "r.html")

    def test_by_add_interactions(self, model):
        model.add_interactions("in", "preis", [("größe", "zone")])
        status = {row["pair"]: row["status"] for row in model.interaction_scores_}
        assert status["größe x zone"] != "left out: not named"

    def test_by_an_edited_model(self, model):
        edited = model.edit_term("größe", "clamp", high=25.0, reason="few")
        assert edited.dialect_ == model.dialect_


class TestSaved:
    def test_only_what_is_not_usual(self, folder):
        write(rows(), "usual.csv", sep=",", decimal=".", encoding="utf-8", na_rep="")
        model = LANAMRegressor(**FIT).fit("usual.csv", target="preis")
        assert model.dialect_ == Dialect()
        assert from_bytes(to_bytes(of_estimator(model))).dialect is None

    def test_words_of_older_files(self):
        model = LANAMRegressor(**FIT).fit(rows()[FEATURES], rows()["preis"])
        model.metadata_ = {"target": "preis", "missing": "?\n-9"}
        found = from_bytes(to_bytes(of_estimator(model)))
        assert found.dialect == Dialect(missing=("?", "-9"))

    def test_damage(self):
        saved = of_estimator(in_memory())
        for bad in ({"delimiter": 1}, {"encoding": "klingon"}, {"missing": (3,)}):
            dialect = Dialect(decimal=",")
            for name, value in bad.items():
                object.__setattr__(dialect, name, value)
            with pytest.raises(ValueError, match="the dialect"):
                to_bytes(replace(saved, dialect=dialect))


class TestTextAmongNumbers:
    """A cell of text makes no column one of categories, wherever it is and whoever reads it."""

    WORDS = (
        r"column 'x' holds text among numbers: 'none', first in row 18 of .*a\.csv "
        r"\(the header is row 1\)\. Mend it, "
    )

    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        lines = ["x,y"] + [f"{k},{k * 1.5}" for k in range(40)]
        lines[17] = "none,3"
        Path("a.csv").write_text("\n".join(lines))

    def test_in_python(self, file):
        model = LANAMRegressor(**FIT)
        with pytest.raises(ValueError, match=self.WORDS) as caught:
            model.fit("a.csv", target="y")
        assert "csv_files(path, missing=['none'])" in str(caught.value)
        assert "categorical_features=['x']" in str(caught.value)
        model.fit(csv_files("a.csv", missing=["none"]), target="y")
        assert model._schema.columns[0].kind == "numeric"
        named = LANAMRegressor(**FIT, categorical_features=["x"]).fit("a.csv", target="y")
        assert "none" in named._schema.columns[0].levels

    def test_in_one_of_several_files(self, tmp_path, capfd):
        for number, cell in enumerate(["3", "V1", "4"]):
            lines = [f"{k % 5},{k / 7}" for k in range(20)]
            lines[7] = f"{cell},1"
            (tmp_path / f"{number}.csv").write_text("\n".join(["x,y", *lines]))
        words = (
            r"column 'x' is numeric in .*0\.csv and string in .*1\.csv: column 'x' holds text among "
            r"numbers: 'V1', first in row 9 of .*1\.csv .*, or "
        )
        with pytest.raises(ValueError, match=words + r"categorical_features=\['x'\] if all"):
            LANAMRegressor(**FIT).fit(tmp_path, target="y")
        said = lanam(capfd, "fit", tmp_path, "-t", "y", "-o", tmp_path / "m.lanam", code=1).err
        assert re.search(words + r"--categorical 'x' if all", said)
        named = LANAMRegressor(**FIT, categorical_features=["x"]).fit(tmp_path, target="y")
        assert list(named._schema.columns[0].levels) == ["0", "1", "2", "3", "4", "V1"]

    def test_decimal_points_where_commas_are_said(self, tmp_path):
        lines = [f"{k}.5;{k}" for k in range(40)]
        (tmp_path / "a.csv").write_text("\n".join(["x;y", *lines]))
        words = r"'x' holds numbers with a decimal point \(for example '0.5'\).*decimal='\.'\)"
        with pytest.raises(ValueError, match=words):
            LANAMRegressor(**FIT).fit(csv_files(tmp_path / "a.csv", decimal=","), target="y")

    def test_classes_may_be_so_called(self, tmp_path):
        lines = [f"{k / 7},{'other' if k % 4 == 0 else k % 4}" for k in range(40)]
        (tmp_path / "a.csv").write_text("\n".join(["x,y", *lines]))
        model = LANAMClassifier(**FIT).fit(tmp_path / "a.csv", target="y")
        assert model.classes_.tolist() == ["1", "2", "3", "other"]
        with pytest.raises(ValueError, match="column 'y' holds text among numbers: 'other'"):
            LANAMRegressor(**FIT).fit(tmp_path / "a.csv", target="y")

    @pytest.mark.parametrize("data", ["a.csv", "*.csv"])
    def test_on_the_command_line(self, file, capfd, data):
        said = lanam(capfd, "fit", data, "-t", "y", "-o", "m.lanam", code=1).err
        assert re.search(self.WORDS + "use --missing 'none' if .*, or --categorical 'x' if", said)

    def test_beyond_the_beginning(self, file, monkeypatch, capfd):
        monkeypatch.setattr(delimited, "_HEAD", 64)
        words = r"a\.csv, row 18 \(the header is row 1\), column 'x': 'none' is none of the numbers"
        with pytest.raises(ValueError, match=words):
            LANAMRegressor(**FIT).fit("a.csv", target="y")
        said = lanam(capfd, "fit", "a.csv", "-t", "y", "-o", "m.lanam", code=1).err
        assert re.search(words + r" .*: mend the cell, or use --missing 'none' if", said)

    def test_decimal_commas(self, tmp_path):
        (tmp_path / "a.csv").write_text("x;y\n" + "\n".join(f"{k},5;{k}" for k in range(40)))
        words = (
            r"column 'x' holds numbers with a decimal comma .*'0,5'.*csv_files\(path, decimal=','\)"
        )
        with pytest.raises(ValueError, match=words):
            LANAMRegressor(**FIT).fit(tmp_path / "a.csv", target="y")


class TestDialect:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"delimiter": ";;"}, r"delimiter=';;' must be one character"),
            ({"decimal": ""}, r"decimal='' must be one character"),
            ({"delimiter": ",", "decimal": ","}, "numbers would fall apart"),
            ({"delimiter": "."}, "numbers would fall apart"),
            ({"encoding": "klingon"}, "encoding='klingon' is not known"),
            ({"encoding": "rot13"}, "encoding='rot13' is not known"),
            ({"missing": [3]}, r"missing=\[3\] must be texts"),
        ],
    )
    def test_refusals(self, options, words):
        with pytest.raises(ValueError, match=words):
            csv_files("a.csv", **options)

    def test_one_word(self):
        assert csv_files("a.csv", missing="none").dialect.missing == ("none",)

    def test_what_is_not_csv(self, tmp_path):
        rows().to_parquet(tmp_path / "a.parquet")
        with pytest.raises(ValueError, match=r"a\.parquet is a Parquet file"):
            open_files(csv_files(tmp_path / "a.parquet", decimal=","))

    def test_integers_that_floats_do_not_tell_apart(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text(
            "code,y\n" + "".join(f"{2**60 + k % 3},{k % 3 + k / 99}\n" for k in range(90))
        )
        model = LANAMRegressor(**FIT, categorical_features=["code"]).fit(path, target="y")
        assert list(model._schema.columns[0].levels) == [2**60, 2**60 + 1, 2**60 + 2]
