"""lanam predict: the predictions of Python, in chunks, in every format."""

import csv
import gzip
import io
import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest

from lanam import LANAMRegressor, load
from lanam.chunked import column_types
from lanam.engines.files import open_files
from tests.cli.conftest import make_table

COLUMNS = ["city", "age", "celsius", "zone", "holiday"]


def features():
    return make_table().select(COLUMNS)


def read(path):
    return arrow_csv.read_csv(
        path, convert_options=arrow_csv.ConvertOptions(column_types={"id": pa.string()})
    )


def cells(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class TestNumbers:
    def test_regression(self, lanam, place):
        lanam(
            *("predict", "price.lanam", "rides.csv", "-o", "out.csv"),
            *("--interval", 0.9, "--std", "--terms", "--keep", "id"),
        )
        model, X, out = load("price.lanam"), features(), read("out.csv")
        mean, std = model.predict(X, return_std=True)
        assert out.column_names[:6] == ["id", "prediction", "std", "lower", "upper", "intercept"]
        assert out.column_names[6:] == [f"term_{name}" for name in COLUMNS]
        assert out["id"].to_pylist() == make_table()["id"].to_pylist()
        # What is written is read again as the same float.
        np.testing.assert_array_equal(out["prediction"], mean)
        np.testing.assert_array_equal(out["std"], std)
        ends = model.predict_interval(X, coverage=0.9)
        np.testing.assert_array_equal(np.column_stack([out["lower"], out["upper"]]), ends)
        parts = sum(out[name].to_numpy() for name in out.column_names[5:])
        np.testing.assert_allclose(parts, mean, rtol=1e-12)

    def test_two_classes(self, lanam, place):
        lanam("predict", "ill.lanam", "rides.csv", "-o", "out.csv", "--proba", "--interval", 0.8)
        model, X, out = load("ill.lanam"), features(), read("out.csv")
        names = ["prediction", "probability_no", "probability_yes", "lower", "upper"]
        assert out.column_names == names
        assert out["prediction"].to_pylist() == model.predict(X).tolist()
        np.testing.assert_array_equal(out["probability_yes"], model.predict_proba(X)[:, 1])
        np.testing.assert_array_equal(out["upper"], model.predict_interval(X, coverage=0.8)[:, 1])

    def test_several_classes(self, lanam, place):
        lanam("predict", "colour.lanam", "rides.csv", "-o", "out.csv", "--interval", 0.8, "--terms")
        model, X, out = load("colour.lanam"), features(), read("out.csv")
        assert out["prediction"].to_pylist() == model.predict(X).tolist()
        ends = model.predict_interval(X, coverage=0.8)
        np.testing.assert_array_equal(out["lower_green"], ends[:, 1, 0])
        np.testing.assert_array_equal(out["upper_red"], ends[:, 2, 1])
        np.testing.assert_array_equal(out["term_age [red]"], model.predict_terms(X)[:, 1, 2])
        np.testing.assert_array_equal(out["intercept [blue]"], np.full(300, model.intercept_[0]))

    def test_counts_are_those_of_their_exposure(self, lanam, place):
        lanam("predict", "events.lanam", "rides.csv", "-o", "out.csv", "--std")
        model, X = load("events.lanam"), features()
        hours = make_table()["hours"].to_numpy()
        mean, std = model.predict(X, return_std=True, exposure=hours)
        np.testing.assert_allclose(read("out.csv")["prediction"], mean, rtol=1e-12)
        np.testing.assert_allclose(read("out.csv")["std"], std, rtol=1e-12)
        lanam("predict", "events.lanam", "rides.csv", "-o", "rate.csv", "--exposure", 1)
        np.testing.assert_allclose(read("rate.csv")["prediction"], model.predict(X), rtol=1e-12)

    def test_a_missing_exposure_is_an_error(self, lanam, place):
        arrow_csv.write_csv(features(), "new.csv")
        done = lanam("predict", "events.lanam", "new.csv", "-o", "out.csv", code=1)
        assert "no column 'hours'" in done.err
        assert "--exposure 1 for rates" in done.err

    @pytest.mark.parametrize(
        ("model", "option", "words"),
        [
            ("ill", "--std", "--std is for numeric"),
            ("price", "--proba", "--proba is for classes"),
            ("ill", "--exposure=2", "--exposure is for counts, and this model predicts classes"),
            ("price", "--exposure=2", "--exposure is for counts, and this model predicts numbers"),
            ("price", "--exposure=hours", "--exposure is for counts"),
            ("events", "--exposure=0", "--exposure 0: the exposure must be a positive number"),
            ("events", "--exposure=nan", "--exposure nan: the exposure must be"),
        ],
    )
    def test_options_that_do_not_apply(self, lanam, place, model, option, words):
        done = lanam("predict", f"{model}.lanam", "rides.csv", "-o", "o.csv", option, code=2)
        assert words in done.err
        assert not Path("o.csv").exists()
        assert lanam("predict", f"{model}.lanam", "rides.csv", "-o", "-", option, code=2).out == ""


class TestChunks:
    @pytest.mark.parametrize("size", [300, 2000, 1 << 22])
    def test_results_do_not_depend_on_the_chunk_size(self, lanam, place, size):
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv", "--std", "--block-size", size)
        mean, std = load("price.lanam").predict(features(), return_std=True)
        np.testing.assert_allclose(read("o.csv")["prediction"], mean, rtol=1e-13)
        np.testing.assert_allclose(read("o.csv")["std"], std, rtol=1e-13)

    def test_chunks_of_parquet(self, lanam, place):
        parquet.write_table(make_table(), "rides.parquet")
        arguments = ("predict", "price.lanam", "rides.parquet", "-o", "o.parquet", "--keep", "id")
        lanam(*arguments, "--block-size", 1000)
        out = parquet.read_table("o.parquet")
        np.testing.assert_allclose(
            out["prediction"], load("price.lanam").predict(features()), rtol=1e-13
        )
        assert out["id"].to_pylist() == make_table()["id"].to_pylist()

    def test_types_are_those_of_the_model(self, lanam, place):
        """A first chunk of missing values only; categories that look like numbers."""
        header, *lines = Path("rides.csv").read_text().splitlines()
        blank = [line.split(",") for line in lines[1:40] if "Rome" not in line]
        for cells in blank:
            cells[1:4] = ["", "", ""]
        head = [",".join(cells) for cells in blank]
        Path("late.csv").write_text("\n".join([header, *head, *lines]) + "\n")
        lanam("predict", "price.lanam", "late.csv", "-o", "o.csv", "--block-size", 400)
        out = read("o.csv")["prediction"].to_numpy()[len(head) :]
        np.testing.assert_allclose(out, load("price.lanam").predict(features()), rtol=1e-13)

    def test_memory_does_not_grow_with_the_file(self, lanam, place):
        body = Path("rides.csv").read_bytes().split(b"\n", 1)
        with open("long.csv", "wb") as file:
            file.write(body[0] + b"\n")
            for _ in range(100):
                file.write(body[1])

        def peak(path):
            before = pa.default_memory_pool().max_memory()
            tracemalloc.start()
            lanam(
                "predict", "price.lanam", path, "-o", "o.csv", "--force", "-q", "--block-size", 8192
            )
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert pa.default_memory_pool().max_memory() - before < 4e6
            return most

        lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv", "-q")
        short, long = peak("rides.csv"), peak("long.csv")
        assert len(read("o.csv")) == 30_000  # a column of predictions alone is 240,000 bytes
        assert long < short + 150_000

    def test_one_warning_for_unseen_categories(self, lanam, place):
        header, *lines = Path("rides.csv").read_text().splitlines()
        lines = [line.replace('"Oslo"', '"Lima"') for line in lines]
        Path("new.csv").write_text("\n".join([header, *lines]))
        done = lanam(
            *("predict", "price.lanam", "new.csv", "-o", "o.csv", "--all-columns"),
            *("--block-size", 400),
        )
        n_lima = sum("Lima" in line for line in lines)
        assert done.err.count("warning:") == 1
        assert f"column 'city': {n_lima} of 300 values are unseen categories" in done.err

    def test_each_row_counts_once_whatever_is_written(self, lanam, place):
        header = "age,celsius,city,zone,holiday\n"
        Path("new.csv").write_text(header + "41,1,Lima,1,true\n,2,Oslo,2,true\n42,3,Bern,1,false\n")
        for model, more in {"price": ["--std"], "ill": ["--proba"]}.items():
            done = lanam(
                *("predict", f"{model}.lanam", "new.csv", "-o", f"{model}.csv"),
                *("--interval", 0.9, "--terms", *more),
            )
            assert "column 'city': 1 of 3 values is an unseen category" in done.err
            assert "column 'age': 1 of 3 values is missing" in done.err


class TestColumns:
    def test_order_and_additional_columns_do_not_matter(self, lanam, place):
        arrow_csv.write_csv(features().select(COLUMNS[::-1]), "r.csv")
        lanam("predict", "price.lanam", "r.csv", "-o", "o.csv")
        np.testing.assert_array_equal(
            read("o.csv")["prediction"], load("price.lanam").predict(features())
        )

    def test_a_remark_on_columns_that_the_model_does_not_know(self, lanam, place):
        """As Python's, but for the target, the weight, the exposure, what was dropped, and what is kept."""
        words = "the table has columns that the model was not fitted with, which are ignored: "
        table = make_table(5).select([*COLUMNS, "hours", "events", "id", "ill", "price"])
        assert json.loads(load("events.lanam").metadata_["dropped"]) == [
            "id",
            "price",
            "ill",
            "colour",
        ]
        table = table.rename_columns({"id": "number", "ill": "sick"})
        arrow_csv.write_csv(table, "new.csv")
        arrow_csv.write_csv(table.drop_columns(["sick"]), "rest.csv")
        arguments = ("predict", "events.lanam", "new.csv", "-o", "o.csv", "--force")
        done = lanam(*arguments)
        assert f"warning: {words}'number', 'sick'\n" in done.err
        assert done.err.count("which are ignored") == 1
        assert f"{words}'number', 'sick'" in lanam(*arguments, "--json").document["notes"]
        assert f"{words}'sick'\n" in lanam(*arguments, "--keep", "number").err
        for silent in (
            lanam(*arguments, "--all-columns"),
            lanam("predict", "events.lanam", "rest.csv", "-o", "p.csv", "--keep", "number"),
        ):
            assert "ignored" not in silent.err

    def test_one_is_missing(self, lanam, place):
        arrow_csv.write_csv(make_table().drop_columns(["age"]), "new.csv")
        done = lanam("predict", "price.lanam", "new.csv", "-o", "o.csv", code=1)
        assert "new.csv has no column 'age', with which the model was fitted" in done.err
        assert "If values are not known, add the column with empty cells" in done.err
        assert done.err.count("\n") == 1

    def test_several_are_missing(self, lanam, place):
        arrow_csv.write_csv(make_table().select(["id", "city"]), "new.csv")
        done = lanam("predict", "price.lanam", "new.csv", "-o", "o.csv", code=1)
        assert (
            "has no columns 'age', 'celsius', 'zone', 'holiday', with which the model was fitted"
            in done.err
        )

    def test_all_columns(self, lanam, place):
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv", "--all-columns")
        out = read("o.csv")
        assert out.column_names == [*make_table().column_names, "prediction"]
        assert out["city"].to_pylist()[1:4] == make_table()["city"].to_pylist()[1:4]

    def test_kept_strings_are_unchanged(self, lanam, place):
        table = make_table(4).append_column(
            "note", pa.array(["NA", "007", 'say "hi", all', "two\nlines"])
        )
        arrow_csv.write_csv(table, "new.csv")
        lanam("predict", "price.lanam", "new.csv", "-o", "o.csv", "--keep", "note")
        assert [row["note"] for row in cells("o.csv")] == table["note"].to_pylist()

    def test_kept_features_are_unchanged(self, lanam, place):
        """Numeric, string and boolean columns, missing values; predictions are those without --keep."""
        body = ["01234,1.10,Oslo,1,true", "NA,1e5,NA,2,0", "30, 7.50 ,,03,", "+5,,Bern,1.0,False"]
        Path("new.csv").write_text("\n".join(["age,celsius,city,zone,holiday", *body]))
        lanam("predict", "price.lanam", "new.csv", "-o", "plain.csv")
        plain = read("plain.csv")["prediction"].to_pylist()
        for more in (["--all-columns"], ["--keep", "zone,age"], ["--keep", "city,holiday,celsius"]):
            lanam("predict", "price.lanam", "new.csv", "-o", "o.csv", "--force", *more)
            before, after = cells("new.csv"), cells("o.csv")
            assert [float(row.pop("prediction")) for row in after] == plain
            assert after == [{name: row[name] for name in after[0]} for row in before]
        assert Path("o.csv").read_text().splitlines()[2].startswith("NA,0,1e5,")

    def test_kept_decimal_commas_are_unchanged(self, lanam, place):
        header = "age;celsius;city;zone;holiday\n"
        Path("new.csv").write_text(header + "41;1,10;Oslo;1;true\n42;-0,5;Bern;2;false\n")
        arguments = ("predict", "price.lanam", "new.csv", "-q", "--decimal", ",")
        lanam(*arguments, "-o", "plain.csv")
        lanam(*arguments, "-o", "o.csv", "--keep", "celsius")
        assert [row["celsius"] for row in cells("o.csv")] == ["1,10", "-0,5"]
        assert read("o.csv")["prediction"] == read("plain.csv")["prediction"]
        Path("new.csv").write_text(header + "41;1.10;Oslo;1;true\n")
        for more in ([], ["--keep", "celsius"]):
            done = lanam(*arguments, "-o", "p.csv", *more, code=1)
            assert "column 'celsius' is numeric in the model, and '1.10' is not" in done.err

    def test_a_kept_exposure_is_unchanged(self, lanam, place):
        text = "age,celsius,city,zone,holiday,hours\n41,1,Oslo,1,true,02.50\n"
        Path("new.csv").write_text(text)
        lanam("predict", "events.lanam", "new.csv", "-o", "plain.csv")
        lanam("predict", "events.lanam", "new.csv", "-o", "o.csv", "--keep", "hours")
        assert cells("o.csv") == [{"hours": "02.50", **cells("plain.csv")[0]}]

    def test_kept_features_have_the_types_of_the_model_in_parquet(self, lanam, place):
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.parquet", "--keep", "id,age,holiday")
        types = [pa.string(), pa.float64(), pa.bool_(), pa.float64()]
        assert parquet.read_schema("o.parquet").types == types

    def test_quotes_only_where_they_are_needed(self, lanam, place):
        lanam("predict", "ill.lanam", "rides.csv", "-o", "o.csv", "--keep", "id")
        assert '"' not in Path("o.csv").read_text()

    def test_names_that_clash(self, lanam, place):
        arrow_csv.write_csv(make_table().rename_columns({"price": "prediction"}), "new.csv")
        arguments = ("predict", "price.lanam", "new.csv", "-o", "o.csv", "--keep", "prediction")
        assert "'prediction' has the name of an output" in lanam(*arguments, code=2).err
        lanam(*arguments, "--prefix", "new_")
        assert read("o.csv").column_names == ["prediction", "new_prediction"]

    def test_types(self, place):
        assert column_types(load("price.lanam")._schema) == {
            "city": pa.string(),
            "age": pa.float64(),
            "celsius": pa.float64(),
            "zone": pa.float64(),
            "holiday": pa.bool_(),
        }


class TestModelsOfPython:
    def test_of_an_array(self, lanam, place):
        X = np.random.default_rng(0).normal(size=(80, 2))
        model = LANAMRegressor(interactions=0, random_state=0).fit(X, X[:, 0])
        model.save("array.lanam")
        arrow_csv.write_csv(pa.table({"x1": X[:, 1], "x0": X[:, 0]}), "new.csv")
        lanam("predict", "array.lanam", "new.csv", "-o", "o.csv")
        np.testing.assert_array_equal(read("o.csv")["prediction"], model.predict(X))
        done = lanam("explain", "array.lanam", "--row", 1, "--data", "new.csv")
        assert done.err == ""

    def test_large_integers_as_categories(self, lanam, place):
        codes = np.tile([2**60 + 1, 2**60 + 2, 5], 30)
        table = pa.table({"code": codes})
        model = LANAMRegressor(categorical_features=["code"], random_state=0)
        model.fit(table, np.tile([1.0, 2.0, 3.0], 30) + np.linspace(0, 0.1, 90)).save("big.lanam")
        arrow_csv.write_csv(table, "new.csv")
        lanam("predict", "big.lanam", "new.csv", "-o", "o.csv")
        np.testing.assert_array_equal(read("o.csv")["prediction"], model.predict(table))


class TestFormats:
    @pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.csv.gz", "o.parquet"])
    def test_round_trip(self, lanam, place, name):
        lanam("predict", "price.lanam", "rides.csv", "-o", name, "--all-columns")
        lanam("predict", "price.lanam", name, "-o", "again.csv", "--prefix", "second_")
        first = load("price.lanam").predict(features())
        np.testing.assert_array_equal(read("again.csv")["second_prediction"], first)

    def test_the_delimiter_depends_on_the_file_name_only(self, lanam, place):
        Path("all.tsv").mkdir()
        lanam("predict", "price.lanam", "rides.csv", "-o", "all.tsv/o.csv", "--keep", "id")
        assert Path("all.tsv/o.csv").read_text().startswith("id,prediction\n")
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.TSV.gz", "--keep", "id")
        assert gzip.decompress(Path("o.TSV.gz").read_bytes()).startswith(b"id\tprediction\n")
        Path("all.tsv/tie.csv").write_text("a,b\tc\n")
        assert open_files("all.tsv/tie.csv", empty=True).names == ("a", "b\tc")
        Path("tie.tsv").write_text("a,b\tc\n")
        assert open_files("tie.tsv", empty=True).names == ("a,b", "c")

    def test_compressed(self, lanam, place):
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv")
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv.gz")
        assert gzip.decompress(Path("o.csv.gz").read_bytes()) == Path("o.csv").read_bytes()

    def test_standard_input_and_output(self, lanam, place, monkeypatch):
        class Pipe(io.TextIOWrapper):
            pass

        data = Path("rides.csv").read_bytes()
        monkeypatch.setattr(sys, "stdin", Pipe(io.BufferedReader(io.BytesIO(data))))
        done = lanam("predict", "price.lanam", "-", "-o", "-")
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv")
        assert done.out == Path("o.csv").read_text()
        assert "300 rows predicted" in done.err

    def test_json(self, lanam, place):
        done = lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv", "--json")
        assert done.document["n_rows"] == 300
        assert done.document["columns"] == ["prediction"]
        assert done.err == ""
        done = lanam("predict", "price.lanam", "rides.csv", "-o", "-", "--json", code=2)
        assert "--json and -o - both write to standard output" in done.err

    @pytest.mark.parametrize("name", ["o.csv", "o.parquet"])
    @pytest.mark.parametrize("model", ["price", "ill"])
    def test_a_header_without_rows_has_no_predictions(self, lanam, place, model, name):
        Path("none.csv").write_text(Path("rides.csv").read_text().splitlines()[0] + "\n")
        done = lanam("predict", f"{model}.lanam", "none.csv", "-o", name, "--keep", "id,age")
        assert "0 rows predicted" in done.err
        if name == "o.csv":
            assert Path(name).read_text() == "id,age,prediction\n"
        else:
            assert parquet.read_table(name).shape == (0, 3)

    def test_semicolons_and_decimal_commas(self, lanam, place):
        lines = Path("rides.csv").read_text().replace("Rome, IT", "Rome").splitlines()
        lines = [line.replace(",", ";").replace(".", ",") for line in lines]
        Path("de.csv").write_text("\n".join(lines) + "\n")
        arguments = ("predict", "price.lanam", "de.csv", "-o", "o.csv")
        done = lanam(*arguments, code=1)
        assert "de.csv is separated by semicolons" in done.err
        assert "use --decimal ," in done.err
        done = lanam(*arguments, "--decimal", ",")
        known = np.array(make_table()["city"].to_pylist()) != "Rome, IT"
        np.testing.assert_array_equal(
            read("o.csv")["prediction"].to_numpy()[known],
            load("price.lanam").predict(features())[known],
        )

    def test_another_encoding(self, lanam, place):
        text = Path("rides.csv").read_text().replace("Oslo", "Malmö")
        Path("latin.csv").write_text(text, encoding="latin-1")
        arguments = ("predict", "price.lanam", "latin.csv", "-o", "o.csv")
        done = lanam(*arguments, code=1)
        assert (
            "column 'city' is not encoded in utf-8: specify the encoding, for example --encoding"
            in done.err
        )
        done = lanam(*arguments, "--encoding", "latin-1")
        assert "'Malmö'" in done.err  # a level that is new
        Path("utf16.csv").write_text(text, encoding="utf-16")
        done = lanam("predict", "price.lanam", "utf16.csv", "-o", "p.csv", code=1)
        assert "use --encoding utf-16" in done.err
        lanam("predict", "price.lanam", "utf16.csv", "-o", "p.csv", "--encoding", "utf-16")
        assert Path("p.csv").read_text() == Path("o.csv").read_text()

    def test_a_byte_order_mark(self, lanam, place):
        Path("bom.csv").write_bytes(b"\xef\xbb\xbf" + Path("rides.csv").read_bytes())
        lanam("predict", "price.lanam", "bom.csv", "-o", "o.csv", "--keep", "id")
        assert read("o.csv").column_names == ["id", "prediction"]

    def test_quoted_newlines(self, lanam, place):
        text = Path("rides.csv").read_text().replace("Rome, IT", "Rome\nIT")
        Path("lines.csv").write_text(text)
        lanam("predict", "price.lanam", "lines.csv", "-o", "o.csv", "--block-size", 300)
        assert len(read("o.csv")) == 300
