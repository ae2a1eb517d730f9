"""The report as a file: self-contained, escaped, and with correct numbers."""

import base64
import errno
import gzip
import hashlib
import os
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

import lanam.report.fields
import lanam.report.page
from lanam import LANAMClassifier, LANAMRegressor, coverage_report
from lanam.core.fit import prepare
from tests.report.examples import BROKEN, CITIES, CITY, CLASSES, KINDS, QUICK, example, only_noisy
from tests.report.pages import Page, unpacked


@pytest.fixture
def gaussian():
    return example("gaussian")


@pytest.fixture
def write(tmp_path):
    """Write a report and read it."""
    return lambda model, *args, **more: Page.read(
        model.report(tmp_path / "report.html", *args, **more)
    )


def plain_data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    return X, np.sin(2.0 * X["a"].to_numpy()) + X["b"].to_numpy() + 0.2 * rng.normal(size=n)


@pytest.fixture(scope="module")
def plain():
    """A quick model with its data."""
    X, y = plain_data()
    return LANAMRegressor(interactions=0, **QUICK).fit(X, y), X, y


# one file, no network


@pytest.mark.parametrize("kind", KINDS)
class TestNoNetwork:
    def test_nothing_is_loaded(self, page_of, kind):
        page = page_of(kind)
        for element in page.all():
            own = element.attributes
            for name in ("src", "srcset", "action", "formaction", "data", "poster", "ping"):
                assert name not in own, (element.tag, own)
            if "href" in own:
                assert element.tag == "a"
                assert own["href"].startswith("#")
                assert any(page.all(id=own["href"][1:])), "the link leads nowhere"
        assert not {"link", "iframe", "object", "embed", "base", "img"} & {
            element.tag for element in page.all()
        }

    def test_style_and_scripts_request_nothing(self, page_of, kind):
        page = page_of(kind)
        style, script = page.one("style").text, page.script
        assert "url(" not in style
        assert "@import" not in style
        for word in (
            "fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "import(",
            "importScripts", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
            "eval(", "new Function", "localStorage",
        ):  # fmt: skip
            assert word not in script, word
        # XML namespaces are not addresses.
        addresses = set(re.findall(r"https?://[^\s\"'`]*", script + style))
        assert addresses <= {"http://www.w3.org/2000/svg"}

    def test_the_page_forbids_it_as_well(self, page_of, kind):
        head = {"http-equiv": "Content-Security-Policy"}
        (policy,) = (
            element.attributes["content"]
            for element in page_of(kind).all("meta")
            if head.items() <= element.attributes.items()
        )
        rules = dict(rule.split(maxsplit=1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        # The policy allows exactly the page's scripts.
        library = gzip.decompress(base64.b64decode(page_of(kind).one(id="library").text))
        texts = (page_of(kind).script.encode(), library)
        hashes = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts]
        assert rules["script-src"].split() == [f"'sha256-{one}'" for one in hashes]
        assert rules["form-action"] == rules["base-uri"] == "'none'"
        assert not re.search(r"https?:|\*|unsafe-eval", policy)


def test_without_scripts_there_is_a_notice(page_of):
    assert "need JavaScript" in page_of("gaussian").one("noscript").text


def test_the_same_call_writes_the_same_bytes(gaussian, report_of, tmp_path):
    again = gaussian.model.report(tmp_path / "again.html", gaussian.X, gaussian.y)
    assert again.read_bytes() == report_of("gaussian").read_bytes()


@pytest.fixture(scope="module")
def thirty():
    """A model of thirty columns, with some interactions."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 30)), columns=[f"column {k}" for k in range(30)])
    y = np.sin(2.0 * X).sum(axis=1) + X["column 0"] * X["column 1"] + X["column 2"] * X["column 3"]
    pairs = [("column 0", "column 1"), ("column 2", "column 3"), ("column 0", "column 4")]
    # The noise is constant, and to find that out would take longer than the fit.
    model = LANAMRegressor(interactions=pairs, noise="constant", random_state=0)
    return model.fit(X, y + 0.3 * rng.normal(size=1000)), X, y


def test_thirty_columns_are_less_than_eight_megabytes(thirty, tmp_path):
    model, X, y = thirty
    assert sum(term.active for term in model.terms_) >= 30
    path = model.report(tmp_path / "report.html", X, y)
    assert path.stat().st_size < 8e6


# escaping


@pytest.mark.parametrize("kind", KINDS)
class TestHostileNames:
    def test_they_create_no_elements(self, page_of, kind):
        page = page_of(kind)
        known = (
            "html head meta title style body a header h1 p nav label select option noscript "
            "main section h2 h3 div b span table thead tbody tr th td dl dt dd figure "
            "figcaption form input button ul li details summary footer script code "
        )
        assert {element.tag for element in page.all()} <= set(known.split())
        for element in page.all():
            assert not [name for name in element.attributes if name.startswith("on")]
        kinds = [element.attributes.get("type") for element in page.all("script")]
        assert kinds == ["application/octet-stream", "application/octet-stream", None]
        bold = [element.attributes for element in page.all("b")]
        assert all(attributes == {} for attributes in bold)

    def test_they_are_shown_verbatim(self, page_of, kind):
        page = page_of(kind)
        tables = [table.rows() for table in page.one(id="data-and-fit").all("table")]
        (row,) = (row for row in tables[0] if row[0] == CITY)
        for city in CITIES[:3]:
            assert city in row[2]
        assert "</script><b onclick='alert(2)'>x" in row[2]

    def test_they_reach_the_scripts(self, page_of, kind):
        page = page_of(kind)
        columns = page.data["columns"]
        assert columns[2]["name"] == CITY
        assert {label for _, label in columns[2]["levels"]} == set(CITIES)
        text = page.one(id="data").text
        for character in "<>&\u2028\u2029":
            assert character not in text


def test_hostile_classes(page_of):
    page = page_of("many")
    assert tuple(page.data["classes"]) == CLASSES
    facts = page.one(id="data-and-fit").one("dl").words
    assert re.search(", ".join(rf"{re.escape(name)} \(\d+\.\d%\)" for name in CLASSES), facts)


def test_a_hostile_title(plain, write):
    title = '</title><script>alert("&amp;")</script>'
    page = write(plain[0], title=title)
    assert page.one("title").text == page.one("h1").text == title


def test_a_custom_title(plain, write):
    assert write(plain[0]).one("h1").text == "LANAMRegressor fitted to 200 rows"


# writing the file


def test_the_path_is_returned(plain, tmp_path):
    path = tmp_path / "r.html"
    assert plain[0].report(str(path)) == path
    assert path.is_file()


def test_an_existing_file_is_replaced(plain, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")
    plain[0].report(path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["r.html"]


def test_permissions_of_a_new_file(plain, tmp_path):
    (tmp_path / "any").touch()
    path = plain[0].report(tmp_path / "r.html")
    assert path.stat().st_mode == (tmp_path / "any").stat().st_mode


def test_a_full_disk_leaves_the_old_file(plain, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("old")

    class Full:
        def __init__(self, handle):
            os.close(handle)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", lambda handle, *_, **__: Full(handle))
    with pytest.raises(OSError, match="the report was not written: No space left") as caught:
        plain[0].report(path)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.html"]


def test_a_page_that_fails_leaves_the_old_file(plain, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("old")
    monkeypatch.setattr(lanam.report.page, "json_text", lambda data: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plain[0].report(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.html"]


def test_a_missing_folder(plain, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere: create it first"):
        plain[0].report(tmp_path / "nowhere" / "r.html")


def test_a_path_that_is_a_folder(plain, tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder: pass the name of a file"):
        plain[0].report(tmp_path)


@pytest.mark.parametrize("name", ["jinja2", "plotly"])
def test_missing_dependencies_are_named(plain, tmp_path, monkeypatch, name):
    for module in [*sys.modules]:
        if module.split(".")[0] == name:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"needs {name}: .*pip install lanam\[report\]"):
        plain[0].report(tmp_path / "r.html")
    assert os.listdir(tmp_path) == []


# arguments


def test_before_the_fit(tmp_path):
    with pytest.raises(NotFittedError):
        LANAMRegressor().report(tmp_path / "r.html")


@pytest.mark.parametrize("name", ["y", "exposure", "sample_weight"])
def test_arguments_about_rows_need_rows(plain, tmp_path, name):
    with pytest.raises(ValueError, match="belong to rows: pass X as well"):
        plain[0].report(tmp_path / "r.html", **{name: plain[2]})


def test_exposure_is_for_counts(plain, tmp_path):
    model, X, y = plain
    with pytest.raises(ValueError, match="leave exposure out"):
        model.report(tmp_path / "r.html", X, y, exposure=2.0)


@pytest.mark.parametrize("coverage", [0.0, 1.0, 95])
def test_invalid_coverage(plain, tmp_path, coverage):
    with pytest.raises(ValueError, match="coverage"):
        plain[0].report(tmp_path / "r.html", coverage=coverage)


def test_lengths_of_targets(plain, tmp_path):
    model, X, y = plain
    with pytest.raises(ValueError, match=r"200.*199|199.*200"):
        model.report(tmp_path / "r.html", X, y[1:])


# example rows


class TestRows:
    def test_evenly_spread(self, gaussian, write):
        page = write(gaussian.model, gaussian.X, gaussian.y, n_rows=5)
        places = [0, 50, 100, 149, 199]
        rows = page.data["rows"]
        assert rows["names"] == [f"row {place + 1}" for place in places]
        cells = unpacked(rows["cells"]).reshape(5, -1)
        np.testing.assert_array_equal(cells, gaussian.model._columns(gaussian.X)[places])
        assert rows["observed"] == gaussian.y[places].tolist()
        assert rows["exposure"] is None
        assert "5 of the 200 given rows" in page.one("footer").words

    def test_fewer_rows_than_requested(self, gaussian, write):
        rows = write(gaussian.model, gaussian.X[:7], n_rows=50).data["rows"]
        assert rows["names"] == [f"row {place + 1}" for place in range(7)]
        assert rows["observed"] is None

    def test_two_hundred_by_default(self, gaussian, write):
        X = pd.concat([gaussian.X] * 3)
        assert len(write(gaussian.model, X).data["rows"]["names"]) == 200

    def test_none(self, gaussian, write):
        page = write(gaussian.model, gaussian.X, gaussian.y, n_rows=0)
        assert page.data["rows"] is None
        assert "contains no rows of the data" in page.one("footer").words
        assert page.data["calibration"] is not None

    def test_exposure_of_counts(self, page_of):
        case = example("counts")
        rows = page_of("counts").data["rows"]
        np.testing.assert_allclose(rows["exposure"], case.more["exposure"], rtol=1e-11)
        assert rows["observed"] == case.y.tolist()

    @pytest.mark.parametrize("kind", ["two", "many"])
    def test_labels(self, page_of, kind):
        assert page_of(kind).data["rows"]["observed"] == example(kind).y.tolist()


# options


class TestCoverage:
    def test_default_coverages(self, plain, write):
        levels = write(plain[0]).data["levels"]
        assert [level["name"] for level in levels] == ["50%", "80%", "90%", "95%", "99%"]
        assert [level["name"] for level in levels if level["first"]] == ["95%"]

    def test_the_initial_coverage(self, plain, write):
        levels = write(plain[0], coverage=0.8).data["levels"]
        assert [level["name"] for level in levels if level["first"]] == ["80%"]

    def test_an_additional_coverage(self, plain, write):
        levels = write(plain[0], coverage=0.975).data["levels"]
        assert len(levels) == 6
        (own,) = (level for level in levels if level["first"])
        assert own["name"] == "97.5%"
        assert own["z"] == own["z_new"] == pytest.approx(2.2414027)
        assert own["tail_new"] == pytest.approx(0.0125)

    def test_prediction_intervals_are_calibrated(self, page_of):
        own = example("calibrated").model.calibration_
        for level in page_of("calibrated").data["levels"]:
            assert level["z_new"] == own.threshold(level["coverage"])

    def test_too_few_rows_for_a_coverage(self, plain, write):
        _, X, y = plain
        model = LANAMRegressor(interactions=0, **QUICK).fit(X[:150], y[:150])
        model.calibrate(X[150:], y[150:])
        levels = {level["name"]: level["z_new"] for level in write(model).data["levels"]}
        assert levels["99%"] is None
        assert levels["95%"] == model.calibration_.threshold(0.95)


class TestCalibration:
    @pytest.mark.parametrize("kind", KINDS)
    def test_it_is_the_coverage_report(self, page_of, kind):
        case = example(kind)
        expected = coverage_report(case.model, case.X, case.y, **case.more)
        section = page_of(kind).one(id="calibration")
        actual = [table.rows() for table in section.all("table")]
        tables = [expected.performance.table(), *expected.tables()]
        assert actual == [[list(row) for row in table] for table in tables]
        assert section.one("p", **{"class": "verdict"}).text == expected.verdict
        scores = section.one("dl")
        assert [
            (name.text, value.text)
            for name, value in zip(scores.all("dt"), scores.all("dd"), strict=True)
        ] == expected.named_scores()
        data = page_of(kind).data["calibration"]
        assert data["curve"] == expected.curve.to_dict()
        assert data["retention"] == expected.retention.to_dict()

    def test_weights(self, gaussian, write):
        weight = np.arange(200) % 3
        page = write(gaussian.model, gaussian.X, gaussian.y, sample_weight=weight)
        expected = coverage_report(gaussian.model, gaussian.X, gaussian.y, sample_weight=weight)
        assert expected.verdict in page.one(id="calibration").text
        assert "On the 133 given rows" in page.one(id="calibration").words

    def test_without_targets(self, gaussian, write):
        page = write(gaussian.model, gaussian.X)
        assert page.data["calibration"] is None
        assert "No observations were given" in page.one(id="calibration").words
        assert not list(page.one(id="calibration").all("table"))


# the overview


def facts_of(page):
    facts = page.one(id="data-and-fit").one("dl")
    return {
        name.text: value.text for name, value in zip(facts.all("dt"), facts.all("dd"), strict=True)
    }


class TestOverview:
    def test_columns(self, page_of, gaussian):
        head, *rows = page_of("gaussian").one(id="data-and-fit").one("table").rows()
        assert head == ["column", "kind", "values", "missing"]
        assert [row[0] for row in rows] == list(gaussian.X.columns)
        actual = {row[0]: row[1:] for row in rows}
        X = gaussian.model._schema.columns[0]
        assert actual["load"] == ["numeric", f"{X.lowest:.4g} to {X.highest:.4g}", ""]
        assert actual["size"] == ["categorical", "3 categories: L, M, S", ""]
        assert re.fullmatch(r"1[0-9]\.\d%", actual["gap"][2])
        assert actual["same"][1] == "1 to 1"

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_fit(self, page_of, kind):
        model, facts = example(kind).model, facts_of(page_of(kind))
        assert facts["model"] == type(model).__name__
        assert facts["log evidence"] == f"{model.log_evidence_:.1f}"
        assert facts["iterations"] == f"{model.n_iter_} (converged)"
        assert ("intercepts" if np.ndim(model.intercept_) else "intercept") in facts
        explained = model.summary().facts["deviance_explained"]
        if model.family_.has_noise:
            assert facts["in-sample R2"] == f"{explained:.3f}"
        else:
            assert facts["in-sample deviance explained"] == f"{explained:.1%}"
        assert "hidden_sizes=(16,)" in facts["options"]
        assert "max_iter" not in facts["options"]
        calibrated = facts.get("intervals")
        assert calibrated == ("calibrated with 100 held-out rows" if kind == "calibrated" else None)

    def test_heteroscedastic_noise(self, write):
        case = only_noisy()
        page = write(case.model, case.X[:50], n_rows=0)
        noise = case.model.predict_noise(case.X[:50])
        assert facts_of(page)["noise"] == (
            f"sd {noise.min():.3g} to {noise.max():.3g} over the given rows, depends on x, kind"
        )
        assert f"{case.model.noise_std_:.4g}noise (sd), on average" in page.one(id="overview").words
        # The training rows are not available.
        assert facts_of(write(case.model))["noise"] == "heteroscedastic, depends on x, kind"

    def test_homoscedastic_noise(self, plain, write):
        model, X, _ = plain
        page = write(model, X)
        assert model.noise_terms_ == ()
        assert "noise" not in facts_of(page)
        overview = page.one(id="overview").words
        assert f"{model.noise_std_:.4g}noise (sd)" in overview
        assert "on average" not in overview
        assert page.data["model"]["noise_tables"] == []

    def test_default_options(self, write):
        X, y = plain_data()
        assert facts_of(write(LANAMRegressor().fit(X, y)))["options"] == "the defaults"

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_a_fit_that_did_not_converge(self, plain, write):
        _, X, y = plain
        model = LANAMRegressor(interactions=0, max_iter=1, **QUICK).fit(X, y)
        page = write(model)
        warnings = [part.words for part in page.one(id="overview").all("p", **{"class": "warning"})]
        assert len(warnings) == 1
        assert "did not converge" in warnings[0]
        assert not list(write(plain[0]).one(id="overview").all("p", **{"class": "warning"}))


class TestTerms:
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_term_with_its_status(self, page_of, kind):
        model = example(kind).model
        _, *rows = page_of(kind).one(id="importances").one("table").rows()
        assert sorted((row[0], row[-1]) for row in rows) == sorted(
            (term.name, term.status) for term in model.terms_
        )
        importance = {term.name: term.importance for term in model.terms_ if term.active}
        for row in rows:
            if row[-1] == "active":
                assert float(row[2]) == pytest.approx(importance[row[0]], rel=0.02, abs=0.01)
            else:
                assert row[2] == "–"

    @pytest.mark.parametrize("kind", KINDS)
    def test_importances_as_data(self, page_of, kind):
        actual = {one["name"]: one for one in page_of(kind).data["importances"]}
        explanation = example(kind).model.explain_global()
        assert list(actual) == [term.name for term in explanation.active]
        for term in explanation.active:
            assert actual[term.name]["importance"] == pytest.approx(term.importance, rel=1e-5)
            assert actual[term.name]["std"] == pytest.approx(term.importance_std, rel=1e-5)

    def test_reasons_of_dropped_terms(self, write):
        X, y = plain_data(300)
        X["same"], X["empty"], X["twin"] = 3.0, np.nan, X["a"]
        X["noise"] = np.random.default_rng(9).normal(size=300)
        model = LANAMRegressor(interactions=0, **QUICK).fit(X, y)
        page = write(model)
        reasons = dict(item.words.split(": ", 1) for item in page.one(id="importances").all("li"))
        assert set(reasons) == {"same", "empty", "twin", "noise"}
        assert reasons["same"] == "constant column"
        assert reasons["empty"] == "no values"
        assert reasons["twin"] == "same values as another column"
        assert re.fullmatch(
            r"not supported by the data \(log evidence gain -?\d+\.\d\)", reasons["noise"]
        )
        unused = next(page.one(id="inputs").all("p")).words
        assert unused.endswith("predictions do not depend on them: same, empty, twin, noise.")

    def test_dropped_but_used_for_the_noise(self, write):
        page = write(only_noisy().model)
        (off,) = (item.words for item in page.one(id="importances").all("li"))
        assert off.startswith("kind: not supported by the data")
        assert off.endswith("; the noise depends on it")
        assert [column["used"] for column in page.data["columns"]] == [True, True]
        assert not list(page.one(id="inputs").all("p"))

    def test_no_term_but_heteroscedastic_noise(self, write):
        X = pd.DataFrame({"kind": ["calm", "wild"] * 200})
        noise = np.random.default_rng(0).normal(size=200).repeat(2) * np.tile([1.0, 5.0], 200)
        # With opposite noise as well, all kinds have the same mean.
        y = np.concatenate([noise, -noise])
        model = LANAMRegressor(**QUICK).fit(pd.concat([X, X], ignore_index=True), y)
        lead = write(model).one("p", **{"class": "lead"}).words
        assert lead.endswith("the prediction is constant, with heteroscedastic noise.")

    def test_no_dropped_terms(self, plain, write):
        page = write(plain[0])
        assert "None: all terms are active." in page.one(id="importances").text
        assert not list(page.one(id="inputs").all("p"))

    @pytest.mark.parametrize("kind", ["gaussian", "many"])
    def test_answers_of_curves(self, page_of, kind):
        explanation = example(kind).model.explain_global()
        _, *rows = page_of(kind).one(id="answers").one("table").rows()
        clauses = [each for shape in explanation.curves for each in shape.answers().clauses()]
        assert [[cell.lower() for cell in row[1:]] for row in rows] == [
            [clause.lower() for clause in each] for each in clauses
        ]
        assert rows[0][0].startswith(explanation.curves[0].name)

    def test_pairs_with_their_scores(self, page_of):
        model = example("gaussian").model
        section = page_of("gaussian").one(id="pairs")
        _, *rows = section.one("table").rows()
        scores = model.interaction_scores_.rows
        assert [(row[1], row[3]) for row in rows] == [
            (score["pair"], score["status"]) for score in scores
        ]
        assert [float(row[2]) for row in rows] == pytest.approx(
            [score["score"] for score in scores], rel=5e-3
        )

    def test_no_interactions_no_section(self, plain, write):
        page = write(plain[0])
        assert not list(page.all(id="pairs"))
        links = [link.attributes["href"] for link in page.one("nav").all("a")]
        names = ["overview", "calibration", "shapes", "importances", "what-if", "data-and-fit"]
        assert links == [f"#{name}" for name in names]
        assert [section.attributes["id"] for section in page.all("section")] == names

    def test_long_lists_are_collapsed(self, write):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(60, 14)), columns=[f"x{k}" for k in range(14)])
        model = LANAMRegressor(interactions=0, noise="constant").fit(X, X["x0"])
        page = write(model)
        for section in ("importances", "data-and-fit"):
            lists = list(page.one(id=section).all("details"))
            assert lists
            assert not any("open" in each.attributes for each in lists)
        short = write(LANAMRegressor(interactions=0, noise="constant").fit(X[["x0"]], X["x0"]))
        assert all(
            "open" in each.attributes for each in short.one(id="data-and-fit").all("details")
        )

    def test_cautions_come_first(self, write):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"asked later": rng.normal(size=150)})
        X.loc[rng.random(150) < 0.4, "asked later"] = np.nan
        y = 2.0 * X["asked later"].isna() + rng.normal(size=150)
        page = write(LANAMRegressor(interactions=0, noise="constant").fit(X, y))
        warning = page.one(id="overview").one("p", **{"class": "warning"})
        assert "being missing alone predicts the target" in warning.words
        assert "'asked later'" in warning.words


class TestHeadings:
    @pytest.mark.parametrize("kind", KINDS)
    def test_sections_are_labelled_by_their_headings(self, page_of, kind):
        page = page_of(kind)
        assert page.one("html").attributes["lang"] == "en"
        assert len(list(page.all("h1"))) == 1
        for section in page.all("section"):
            title = section.one("h2")
            assert section.attributes["aria-labelledby"] == title.attributes["id"]
        names = [part.attributes["id"] for part in page.all() if "id" in part.attributes]
        assert len(names) == len(set(names)), "ids are there once"

    def test_images_have_descriptions(self, page_of):
        for part in page_of("gaussian").all(role="img"):
            assert part.attributes["aria-label"]


# unusual models


def test_no_term_at_all(write):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)}), rng.normal(size=60)
    model = LANAMRegressor(**QUICK).fit(X, y)
    assert not any(term.active for term in model.terms_)
    page = write(model, X, y)
    data = page.data
    assert data["shapes"] == data["pairs"] == data["importances"] == data["model"]["tables"] == []
    assert not any(column["used"] for column in data["columns"])
    assert {item.words.split(":")[0] for item in page.one(id="importances").all("li")} == {"a", "b"}


def test_one_column_without_a_name(write):
    x = np.linspace(-1.0, 1.0, 60)[:, None]
    page = write(LANAMRegressor(**QUICK).fit(x, np.sin(3.0 * x[:, 0])), x, np.sin(3.0 * x[:, 0]))
    assert [column["name"] for column in page.data["columns"]] == ["x0"]


@pytest.mark.parametrize(
    ("labels", "names"), [((False, True), ["False", "True"]), ((1, 3, 7), ["1", "3", "7"])]
)
def test_labels_that_are_not_text(write, labels, names):
    X, y = plain_data()
    ranks = np.digitize(y, np.quantile(y, np.linspace(0.0, 1.0, len(labels) + 1)[1:-1]))
    y = np.array(labels)[ranks]
    model = LANAMClassifier(interactions=0, **QUICK).fit(X, y)
    data = write(model, X, y, n_rows=3).data
    assert data["classes"] == names
    assert [str(label) for label in data["rows"]["observed"]] == [str(y[k]) for k in (0, 100, 199)]


def test_names_that_look_alike(write):
    X, y = plain_data()
    X["a x b"] = np.random.default_rng(5).normal(size=200)
    X["a (levels)"] = X["a x b"] ** 2
    y = y + X["a"] * X["b"] + X["a x b"]
    model = LANAMRegressor(interactions=[("a", "b")], **QUICK).fit(X, y)
    page = write(model, X, y)
    _, *rows = page.one(id="importances").one("table").rows()
    shown_kinds = {"pair": "interaction"}
    assert sorted((row[0], row[1]) for row in rows) == sorted(
        (term.name, shown_kinds.get(term.kind, term.kind)) for term in model.terms_
    )
    names = [table["name"] for table in page.data["model"]["tables"]]
    assert names.count("a x b") == names.count("a x b (interaction)") == 1


def test_a_polars_frame_writes_the_same(write, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # of both fits
    X, y = plain_data()
    X["c"] = np.where(X["a"] > 0.0, "up", "down")
    polars_frame = pl.DataFrame(X.to_dict("list"))
    model = LANAMRegressor(interactions=0, **QUICK)
    first = model.fit(X, y).report(tmp_path / "pandas.html", X, y).read_bytes()
    assert (
        model.fit(polars_frame, y).report(tmp_path / "polars.html", polars_frame, y).read_bytes()
        == first
    )


def test_an_explanation_for_every_link(page_of):
    overviews = {kind: page_of(kind).one(id="overview").words for kind in KINDS}
    assert "in the target's unit" in overviews["gaussian"]
    assert "The logarithm of the expected count" in overviews["counts"]
    assert "The log-odds of well are" in overviews["two"]
    assert "Each class has a logit" in overviews["many"]


class TestHighCardinality:
    """Of many categories the file has the most frequent, and those of the example rows."""

    @pytest.fixture
    def shops(self, monkeypatch):
        monkeypatch.setattr(prepare, "_WIDE", 10)
        monkeypatch.setattr(lanam.report.fields, "_MAX_LEVELS", 12)
        rng = np.random.default_rng(0)
        # Shop k has k + 1 rows.
        shop = rng.permutation(np.repeat(np.arange(40), np.arange(1, 41)))
        X = pd.DataFrame({"shop": [f"shop {k:02d}" for k in shop]})
        y = rng.normal(size=40)[shop] + 0.2 * rng.normal(size=len(shop))
        return LANAMRegressor(interactions=0, **QUICK).fit(X, y), X, y

    def test_categories_to_choose_from(self, shops, write):
        model, X, _ = shops
        (column,) = write(model).data["columns"]
        common = [f"shop {k:02d}" for k in range(28, 40)]
        assert [label for _, label in column["levels"]] == common
        rare = X[X["shop"] == "shop 03"][:1]
        (column,) = write(model, rare).data["columns"]
        assert [label for _, label in column["levels"]] == ["shop 03", *common]

    def test_their_tables(self, shops, write):
        model, X, _ = shops
        (table,) = write(model, X[X["shop"] == "shop 03"][:1]).data["model"]["tables"]
        entries = unpacked(table["axes"][0]["points"])
        kept = [3, *range(28, 40)]
        assert table["axes"][0]["n_entries"] == len(kept) + 2
        assert entries[kept].tolist() == list(range(len(kept)))
        others = np.setdiff1d(np.arange(40), kept)
        assert set(entries[others]) == {table["axes"][0]["other"]}
        means = model._model.terms[0].mean
        np.testing.assert_array_equal(
            unpacked(table["mean"]), np.concatenate([means[kept], means[-2:]])
        )

    def test_all_categories_of_an_ordinary_column_are_kept(self, monkeypatch, write):
        monkeypatch.setattr(lanam.report.fields, "_MAX_LEVELS", 3)
        model = example("gaussian").model
        data = write(model).data
        assert len(data["columns"][2]["levels"]) == 3
        (table,) = (one for one in data["model"]["tables"] if one["name"] == CITY)
        assert table["axes"][0]["n_entries"] == 6


def test_a_category_with_line_breaks(page_of):
    levels = dict(page_of("gaussian").data["columns"][2]["levels"])
    assert BROKEN in levels.values()
