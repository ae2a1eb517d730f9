"""lanam explain, report, export and demo agree with Python."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor, load
from tests.cli.conftest import make_table

COLUMNS = ["city", "age", "celsius", "zone", "holiday"]


def numbers(line):
    return [float(text) for text in re.findall(r"-?\d+\.\d+", line)]


class TestExplain:
    def test_all_terms(self, lanam, place):
        done = lanam("explain", "price.lanam")
        assert done.out == f"{load('price.lanam').summary()}\n"
        document = lanam("explain", "price.lanam", "--json").document
        assert document["explanation"]["terms"][0]["name"] == "city"
        assert document["summary"]["n_rows"] == 240

    def test_a_category(self, lanam, place):
        done = lanam("explain", "price.lanam", "--term", "city", "--coverage", 0.8)
        shape = load("price.lanam").explain_global()["city"]
        lower, upper = shape.band(0.8)
        lines = {line.split("  ")[0]: numbers(line) for line in done.out.splitlines()[4:]}
        oslo = [shape.mean[1], lower[1], upper[1], 100 * shape.density[1]]
        assert lines["Oslo"] == pytest.approx(oslo, abs=0.006)
        assert {"Bern", "Oslo", "Rome, IT", "(missing)"} <= set(lines)
        assert "with 80% credible bands" in done.out

    def test_numeric_columns_at_twenty_points(self, lanam, place):
        done = lanam("explain", "price.lanam", "--term", "age")
        explanation = load("price.lanam").explain_global()
        lines = [
            numbers(line.replace(line.split()[0], "", 1)) for line in done.out.splitlines()[4:]
        ]
        places = [float(line.split()[0]) for line in done.out.splitlines()[4:]]
        assert len(places) == 20
        assert min(places) >= 18
        assert max(places) <= 79
        mean, _ = explanation.evaluate("age", places)
        np.testing.assert_allclose([line[0] for line in lines], mean, atol=0.006)

    def test_classes(self, lanam, place):
        done = lanam("explain", "colour.lanam", "--term", "city")
        assert "to each class's centred logit" in done.out
        assert len(re.findall(r"^Oslo +(?:blue|green|red) ", done.out, re.MULTILINE)) == 3
        assert "to the log-odds of yes" in lanam("explain", "ill.lanam", "--term", "city").out

    def test_questions_to_curves(self, lanam, place):
        explanation = load("price.lanam").explain_global()
        done = lanam(
            "explain", "price.lanam", "--derivative", "--coverage", 0.8, "-o", "slopes.png"
        )
        blocks = done.out.strip().split("\n\n")
        expected = [shape.answers(0.8).lines(0.8) for shape in explanation.curves]
        assert [block.splitlines() for block in blocks] == expected
        assert Path("slopes.png").read_bytes().startswith(b"\x89PNG")
        document = lanam(
            "explain", "price.lanam", "--derivative", "--term", "age", "--json"
        ).document
        (answers,) = document["answers"]
        assert answers["peak"] == explanation["age"].peak().to_dict()
        lines = lanam("explain", "colour.lanam", "--derivative").out.splitlines()
        assert any(line.startswith("  green: highest at") for line in lines)

    def test_questions_without_answers(self, lanam, place):
        ask = ("explain", "price.lanam", "--derivative")
        assert "'city' is not a curve" in lanam(*ask, "--term", "city", code=2).err
        assert "choose one" in lanam(*ask, "--row", 1, "--data", "price.csv", code=2).err

    def test_a_dropped_term(self, lanam, place):
        model = load("price.lanam")
        off = next(term for term in model.terms_ if not term.active)
        done = lanam("explain", "price.lanam", "--term", off.name)
        assert done.out == f"{off.name}: {off.status}\n"
        done = lanam("explain", "price.lanam", "--term", off.name, "-o", "s.png", code=1)
        assert "nothing to plot" in done.err

    def test_noise(self, lanam, place):
        rng = np.random.default_rng(0)
        x, z = rng.uniform(-1, 1, (2, 300)).round(4)
        y = x + np.exp(x) * rng.standard_normal(300)
        rows = "\n".join(map("{},{},{}".format, x, z, y.round(5)))
        Path("loud.csv").write_text("x,z,y\n" + rows)
        lanam("fit", "loud.csv", "-q", "--interactions", 0, "-o", "loud.lanam")
        done = lanam("explain", "loud.lanam", "--noise", "-o", "noise.png")
        assert (
            "Contribution to the logarithm of the noise's variance, with 95% credible bands"
            in done.out
        )
        assert Path("noise.png").read_bytes().startswith(b"\x89PNG")
        assert done.out.startswith("x: smooth")
        assert lanam("explain", "loud.lanam", "--noise", "--term", "x").out in done.out
        noise = load("loud.lanam").explain_noise()
        assert lanam("explain", "loud.lanam", "--noise", "--json").document == noise.to_dict()

    def test_constant_noise(self, lanam, place):
        Path("quiet.csv").write_text("x,y\n" + "\n".join(f"{k},{k % 7}" for k in range(50)))
        lanam("fit", "quiet.csv", "-q", "--noise", "constant", "-o", "quiet.lanam")
        done = lanam("explain", "quiet.lanam", "--noise", code=1)
        assert "homoscedastic: it was fitted with --noise constant" in done.err
        assert "this is a classifier" in lanam("explain", "ill.lanam", "--noise", code=1).err
        rest = ("--noise", "--row", 1, "--data", "rides.csv")
        assert "choose one" in lanam("explain", "price.lanam", *rest, code=2).err

    def test_an_unknown_term(self, lanam, place):
        done = lanam("explain", "price.lanam", "--term", "cities", code=2)
        assert "--term 'cities' is not in the model; did you mean 'city'?" in done.err
        done = lanam("explain", "price.lanam", "--term", "xyzzy", code=2)
        assert "its terms are 'city', 'age', 'celsius', 'zone', 'holiday'" in done.err

    @pytest.mark.parametrize("row", [1, 250])
    def test_a_row(self, lanam, place, row):
        done = lanam("explain", "price.lanam", "--row", row, "--data", "rides.csv")
        X = make_table().select(COLUMNS).slice(row - 1, 1)
        local = load("price.lanam").explain_local(X)
        first, *_, note, dropped = done.out.splitlines()
        assert first.startswith(f"row {row} of rides.csv (the first row of data is 1): prediction ")
        assert note.endswith("for prediction intervals use lanam predict --interval 0.95.")
        assert dropped == "Dropped terms, without contributions: 1."
        lines = {line.split()[0]: numbers(line) for line in done.out.splitlines()[4:] if line}
        assert lines["(sum)"][0] == pytest.approx(local.prediction[0], abs=0.006)
        assert lines["zone"][-3] == pytest.approx(local.contributions[0, 3], abs=0.006)
        sizes = [abs(line[-3]) for line in list(lines.values())[1:-3]]
        assert sizes == sorted(sizes, reverse=True)
        document = lanam(
            "explain", "price.lanam", "--row", row, "--data", "rides.csv", "--json"
        ).document
        assert document["prediction"] == pytest.approx(local.prediction.tolist(), rel=1e-12)
        assert document["row"] == row

    def test_rows_of_other_models(self, lanam, place):
        rest = ("--row", 2, "--data", "rides.csv")
        assert re.search(r"probability of yes \d", lanam("explain", "ill.lanam", *rest).out)
        assert "probabilities blue" in lanam("explain", "colour.lanam", *rest).out
        assert "(of an exposure of 1)" in lanam("explain", "events.lanam", *rest).out

    @pytest.mark.parametrize(
        ("name", "more"),
        [
            ("s.png", ()),
            ("s.svg", ("--term", "city")),
            ("s.pdf", ("--row", 2, "--data", "rides.csv")),
        ],
    )
    def test_plots(self, lanam, place, name, more):
        done = lanam("explain", "price.lanam", *more, "-o", name)
        starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
        assert Path(name).read_bytes().startswith(starts[name[2:]])
        assert f"written: {name}" in done.err

    def test_the_plot_of_a_row_has_its_number(self, lanam, place):
        from matplotlib import rc_context

        with rc_context({"svg.fonttype": "none"}):
            lanam("explain", "price.lanam", "--row", 7, "--data", "rides.csv", "-o", "t.svg")
        assert "Row 7 of rides.csv: prediction" in Path("t.svg").read_text()

    def test_coverage_applies_to_plots(self, lanam, place):
        for share in (0.5, 0.9):
            lanam("explain", "price.lanam", "--coverage", share, "-o", f"{share}.png")
        assert Path("0.5.png").read_bytes() != Path("0.9.png").read_bytes()

    def test_the_plot_of_an_interaction(self, lanam, place):
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(2, 200)).round(3)
        rows = "\n".join(f"{p},{q},{p * q}" for p, q in zip(a, b, strict=True))
        Path("pair.csv").write_text("a,b,y\n" + rows)
        lanam("fit", "pair.csv", "-q", "-o", "pair.lanam")
        done = lanam("explain", "pair.lanam", "--term", "a x b", "-o", "pair.png")
        assert Path("pair.png").stat().st_size > 10_000
        assert done.out.splitlines()[3].split()[:3] == ["a", "b", "contribution"]

    def test_many_categories_have_room_on_a_screen(self, lanam, place):
        """The largest contributions first, whichever library the model was fitted with."""
        rng = np.random.default_rng(0)
        effects = rng.normal(size=(12, 12))
        p, q = rng.integers(12, size=(2, 2000))
        table = pd.DataFrame({"a": p, "b": q}).map("k{}".format)
        y = effects[p, q] + 0.1 * rng.normal(size=2000)
        LANAMRegressor(interactions=[("a", "b")]).fit(table, y).save("many.lanam")
        out = lanam("explain", "many.lanam", "--term", "a:b").out
        assert "(the largest 40 of 196; --json has all):" in out
        lines = [line.split() for line in out.splitlines()[4:]]
        assert len(lines) == 40
        sizes = [abs(float(line[2])) for line in lines]
        assert sizes == sorted(sizes, reverse=True)
        assert sum(line[0] == "k3" for line in lines) > 0


class TestReport:
    def page(self, name):
        return Path(name).read_text()

    def test_the_target_is_that_of_the_fit(self, lanam, place):
        lanam("report", "price.lanam", "rides.csv", "-o", "r.html", "--title", "Rides & rows")
        page = self.page("r.html")
        assert "Rides &amp; rows" in page
        assert re.search(r"95% intervals: coverage [\d.]+% on \d+ rows", page)

    def test_the_held_out_rows_of_the_fit_are_used_by_default(self, lanam, place):
        held = load("price.lanam").provenance_.held_out.rows
        count = held.sum()
        assert (len(held), 0 < count < 100) == (300, True)
        done = lanam("report", "price.lanam", "rides.csv", "-o", "r.html")
        assert f"{count} of 300 rows were held out of the fit, and are used here" in done.err
        assert f"On {count} rows that were held out of the fit." in self.page("r.html")
        done = lanam("report", "price.lanam", "rides.csv", "-o", "s.html", "--all-rows")
        assert "held out" not in done.err
        assert "On all 300 rows, to most of which the model was fitted" in self.page("s.html")
        # The same rows in another order: others are at these places.
        lines = Path("rides.csv").read_text().splitlines(keepends=True)
        Path("turned.csv").write_text("".join([lines[0], *lines[:0:-1]]))
        lanam("report", "price.lanam", "turned.csv", "-o", "t.html")
        assert "On all 300 rows" in self.page("t.html")

    def test_classes_may_be_written_as_floats(self, lanam, place):
        rows = "".join(f"{k % 7},{float(k % 2)}\n" for k in range(60))
        Path("f.csv").write_text(
            "a,y\n" + rows + "3,\n"
        )  # as pandas writes integers and a missing value
        lanam("fit", "f.csv", "-q", "-o", "f.lanam")
        lanam("report", "f.lanam", "f.csv", "-o", "f.html")
        assert "rows that were held out of the fit" in self.page("f.html")

    @pytest.mark.parametrize("model", ["events", "ill", "colour"])
    def test_every_kind(self, lanam, place, model):
        done = lanam("report", f"{model}.lanam", "rides.csv", "-o", "r.html", "--all-rows")
        assert "no target" not in done.err
        assert "300 rows" in self.page("r.html")

    def test_without_a_target_or_data(self, lanam, place):
        text = Path("rides.csv").read_text().replace('"price"', '"cost"')
        Path("new.csv").write_text(text)
        done = lanam("report", "price.lanam", "new.csv", "-o", "r.html")
        assert "new.csv has no target column (see --target)" in done.err
        lanam("report", "price.lanam", "new.csv", "--target", "cost", "-o", "s.html")
        assert "intervals: coverage" in self.page("s.html")
        assert "intervals: coverage" not in self.page("r.html")
        lanam("report", "price.lanam", "-o", "t.html")
        done = lanam("report", "price.lanam", "-o", "u.html", "--target", "x", code=2)
        assert "pass the table as well" in done.err

    def test_rows(self, lanam, place):
        for n_rows in (0, 5):
            lanam("report", "price.lanam", "rides.csv", "-o", f"{n_rows}.html", "--rows", n_rows)
        assert len(self.page("5.html")) > len(self.page("0.html"))

    def test_json(self, lanam, place):
        done = lanam("report", "price.lanam", "-o", "r.html", "--json")
        assert done.document["report"] == "r.html"


class TestExport:
    @pytest.mark.parametrize("kind", ["json", "csv", "sql"])
    def test_same_as_in_python(self, lanam, place, kind):
        lanam("export", "price.lanam", "--to", kind, "-o", f"a.{kind}")
        assert Path(f"a.{kind}").read_text() == load("price.lanam").export(None, to=kind)
        done = lanam("export", "price.lanam", "-o", f"b.{kind}", "--json")
        assert done.document == {"to": kind, "file": f"b.{kind}", "notes": [f"written: b.{kind}"]}
        assert Path(f"b.{kind}").read_text() == Path(f"a.{kind}").read_text()

    def test_to_standard_output(self, lanam, place):
        done = lanam("export", "price.lanam", "--to", "csv", "-o", "-")
        assert done.out == load("price.lanam").export(None, to="csv")

    def test_bands(self, lanam, place):
        done = lanam("export", "price.lanam", "--to", "csv", "-o", "-", "--bands", "4")
        assert done.out == load("price.lanam").export(None, to="csv", bands=4)
        done = lanam("export", "price.lanam", "--to", "json", "-o", "-", "--bands", "4", code=2)
        assert "--bands is for CSV" in done.err

    def test_options_of_sql(self, lanam, place):
        options = ("--table", "new", "--keep", "id", "--dialect", "duckdb", "--no-variance")
        done = lanam("export", "price.lanam", "--to", "sql", "-o", "-", *options)
        own = load("price.lanam").export(
            None, to="sql", table="new", keep=["id"], dialect="duckdb", variance=False
        )
        assert done.out == own
        done = lanam("export", "price.lanam", "-o", "a.json", "--table", "new", code=2)
        assert "--table is for SQL" in done.err

    def test_which(self, lanam, place):
        done = lanam("export", "price.lanam", "-o", "a.txt", code=2)
        assert "use --to with one of json, csv, sql, onnx" in done.err


class TestDemo:
    def test_files_and_output(self, lanam, tmp_path, monkeypatch):
        monkeypatch.setenv("MPLBACKEND", "Agg")
        done = lanam("demo", "--folder", tmp_path)
        names = {"csv", "lanam", "html", "png"}
        assert {path.suffix[1:] for path in tmp_path.iterdir()} == names
        assert len(list(tmp_path.iterdir())) == 5
        model = load(tmp_path / "lanam-demo.lanam")
        assert str(model.summary()) in done.out
        assert "On 110 held-out patients" in done.out
        assert "x0 x x1" in done.out
        assert "open it in a browser" in done.out
        # The suggested commands work.
        for line in re.findall(r"^  lanam (explain .*)$", done.out, re.MULTILINE):
            lanam(*line.split())
        done = lanam("demo", "--folder", tmp_path, code=1)
        assert "is there already: use --force" in done.err

    @pytest.mark.usefixtures("small_demo")
    def test_json(self, lanam, tmp_path, monkeypatch):
        monkeypatch.setattr("lanam.cli.demo.find_spec", lambda _: None)
        done = lanam("demo", "--folder", tmp_path, "--json")
        assert json.loads(done.out)["summary"]["n_rows"] == 332
        assert not list(tmp_path.glob("*.png"))  # without matplotlib there are no plots

    def test_no_folder(self, lanam, tmp_path):
        assert "create it first" in lanam("demo", "--folder", tmp_path / "no", code=1).err
