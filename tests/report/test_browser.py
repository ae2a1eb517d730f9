"""The report in a real browser, opened from disk with the network off: it says what the model says."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import lanam.report.page
from lanam import LANAMRegressor
from lanam.core import prepare
from lanam.explain import Surface
from tests.report.examples import BROKEN, CITY, CLASSES, KINDS, example, hard_rows
from tests.report.pages import Page

# What is new in rows is counted in one warning.
pytestmark = pytest.mark.filterwarnings("ignore:column '")

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)

#: Means of the tables are exact; only sums are in another order.
EXACT = 1e-12
#: What the report promises.
MEAN, BAND = 1e-6, 0.01
#: What it keeps: variances are made of single-precision numbers.
CLOSE_BAND = 1e-4

QUICK = {"hidden_sizes": (8,), "pair_hidden_sizes": (8,), "random_state": 0}


# what the model says of a row


class Expected:
    """Everything the page shows of rows, by the model's public methods."""

    def __init__(self, model, X, coverage=0.95, exposure=None):
        more = {} if exposure is None else {"exposure": exposure}
        self.newInterval = self.newStd = None
        if hasattr(model, "classes_"):
            probability = model.predict_proba(X)
            several = len(model.classes_) > 2
            self.response = probability if several else probability[:, 1:]
            self.intervals = model.predict_interval(X, coverage=coverage)
            if not several:
                self.intervals = self.intervals[:, None]
        else:
            mean, self.newStd = model.predict(X, return_std=True, **more)
            self.response = mean[:, None]
            band = model.predict_interval(X, coverage=coverage, kind="mean", **more)
            self.intervals = band[:, None]
            self.newInterval = model.predict_interval(X, coverage=coverage, **more)
        means, stds = model.predict_terms(X, return_std=True)
        active = [k for k, term in enumerate(model.terms_) if term.active]
        shape = (len(X), len(active), -1)
        self.terms = means[:, active].reshape(shape)
        self.stds = stds[:, active].reshape(shape)
        self.mean = np.reshape(model.intercept_ + means.sum(axis=1), (len(X), -1))
        self.names = [model.terms_[k].name for k in active]


class Found:
    """The same by the page's results."""

    def __init__(self, results):
        def of(key):
            return np.array([result[key] for result in results], dtype=float)

        self.response, self.intervals, self.mean = of("response"), of("intervals"), of("mean")
        self.newInterval, self.newStd = of("newInterval"), of("newStd")
        terms = [result["terms"] for result in results]
        self.terms = np.array([[term["mean"] for term in row] for row in terms])
        self.stds = np.array([[term["std"] for term in row] for row in terms])
        self.names = [term["name"] for term in terms[0]]


#: A result as plain data; arrays of numbers would come as objects.
PLAIN = """(result) => ({
  mean: Array.from(result.mean), response: result.response, intervals: result.intervals,
  newInterval: result.newInterval ?? null, newStd: result.newStd ?? null,
  terms: result.terms.map((term) => ({ name: term.name, mean: Array.from(term.mean), std: term.std })),
})"""


def assert_agree(found, expected):
    assert found.names == expected.names
    scale = np.abs(expected.mean).max()
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0.0, atol=EXACT * scale)
    np.testing.assert_allclose(found.terms, expected.terms, rtol=0.0, atol=EXACT * scale)
    np.testing.assert_allclose(found.response, expected.response, rtol=MEAN)
    width = np.ptp(expected.intervals, axis=-1)[..., None]
    assert np.abs((found.intervals - expected.intervals) / width).max() < CLOSE_BAND
    np.testing.assert_allclose(found.stds, expected.stds, rtol=CLOSE_BAND, atol=1e-6 * scale)
    if expected.newInterval is None:
        return
    np.testing.assert_allclose(found.newStd, expected.newStd, rtol=CLOSE_BAND)
    off = np.abs(found.newInterval - expected.newInterval)
    if np.all(expected.newInterval == np.rint(expected.newInterval)):
        # A probability that just reaches a level may just not reach it: whole numbers then differ.
        assert np.all(off <= np.maximum(1.0, BAND * expected.newInterval))
        assert (off > 0.0).mean() < 0.05
    else:
        assert (off / np.ptp(expected.newInterval, axis=1)[:, None]).max() < CLOSE_BAND


def cells_of(model, X):
    """Rows as the page reads them."""
    cells = model._columns(X)
    return [[None if value != value else value for value in row] for row in cells.tolist()]


def score(page, cells, coverage, exposure=None):
    """Rows by the page's own scorer."""
    exposure = [1.0] * len(cells) if exposure is None else list(map(float, exposure))
    code = f"""([rows, exposure, coverage]) => {{
      const plain = {PLAIN};
      const level = lanam.report.levels.find((one) => one.coverage === coverage);
      const numbers = (row) => Float64Array.from(row, (value) => (value === null ? NaN : value));
      return rows.map((row, i) => plain(lanam.whatIf.scorer.score(numbers(row), level, exposure[i])));
    }}"""
    return Found(page.evaluate(code, [cells, exposure, coverage]))


def present(page):
    """The result that is shown, and the row that it is of."""
    result = page.evaluate(f"() => ({PLAIN})(lanam.whatIf.result)")
    row = page.evaluate("() => Array.from(lanam.whatIf.row, (v) => (Number.isNaN(v) ? null : v))")
    return Found([result]), row


def frame_of(model, row):
    """A row that the page has, as a table for the model."""
    values = {}
    for column, value in zip(model._schema.columns, row, strict=True):
        if column.kind == "categorical":
            known = None if value is None else "never seen"
            if value is not None and value >= 0:
                known = column.levels[int(value)]
            values[column.name] = pd.Series([known], dtype=object)
        else:
            values[column.name] = [np.nan if value is None else value]
    return pd.DataFrame(values)


def as_number(text):
    text = text.strip().replace("−", "-").replace(",", "")
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def ends_of(text):
    """The two numbers of "...: 1.2 to 3.4"."""
    words = re.sub(r" \(calibrated\)$", "", text).rsplit(": ", 1)[1]
    return [as_number(word) for word in words.split(" to ")]


#: Four digits are shown, and tenths of a percent.
def shown(value):
    return pytest.approx(value, rel=6e-4, abs=6e-4)


def check_shown(page, kind, coverage=0.95, exposure=None):
    """What the page has computed and what it shows, against the model; returns the row."""
    model = example(kind).model
    found, row = present(page)
    expected = Expected(model, frame_of(model, row), coverage, exposure)
    assert_agree(found, expected)
    name = f"{100 * coverage:g}%"
    lines = page.locator("#responses .bands").all_inner_texts()
    if kind == "many":
        rows = page.locator("#responses .class-row")
        assert [rows.nth(k).locator("span").inner_text() for k in range(3)] == list(CLASSES)
        for k in range(3):
            assert as_number(rows.nth(k).locator("b").inner_text()) == shown(
                expected.response[0, k]
            )
            title = rows.nth(k).get_attribute("title")
            assert title.startswith(f"{name} band: ")
            assert ends_of(title) == shown(expected.intervals[0, k].tolist())
        return row
    value = as_number(page.locator("#responses .value").inner_text())
    assert value == shown(expected.response[0, 0])
    (mean,) = (line for line in lines if line.startswith(f"{name} band of the"))
    assert ends_of(mean) == shown(expected.intervals[0, 0].tolist())
    if expected.newInterval is not None:
        (new,) = (line for line in lines if line.startswith(f"{name} of new observations"))
        assert new.endswith("(calibrated)") == (kind == "calibrated")
        # One whole number more or less, see above.
        slack = 1.0 if kind == "counts" else 0.0
        low, high = ends_of(new)
        assert low == pytest.approx(expected.newInterval[0, 0], rel=6e-4, abs=6e-4 + slack)
        assert high == pytest.approx(expected.newInterval[0, 1], rel=6e-4, abs=6e-4 + slack)
    return row


# many rows


@pytest.mark.parametrize("kind", KINDS)
def test_rows_score_as_the_model_scores_them(page_in_browser, kind):
    case, page = example(kind), page_in_browser(kind)
    X, more = hard_rows(case)
    cells = cells_of(case.model, X)
    for coverage in (0.5, 0.95, 0.99):
        if kind == "calibrated" and coverage > case.model.calibration_.most_coverage:
            continue
        expected = Expected(case.model, X, coverage, **more)
        assert_agree(score(page, cells, coverage, *more.values()), expected)


def test_very_many_levels(open_report, tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "_WIDE", 10)
    monkeypatch.setattr(lanam.report.page, "_MAX_LEVELS", 12)
    rng = np.random.default_rng(0)
    shop = rng.permutation(np.repeat(np.arange(40), np.arange(1, 41)))
    X = pd.DataFrame({"shop": [f"shop {k:02d}" for k in shop], "x": rng.normal(size=len(shop))})
    y = rng.normal(size=40)[shop] + np.sin(2.0 * X["x"]) + 0.2 * rng.normal(size=len(shop))
    model = LANAMRegressor(interactions=0, **QUICK).fit(X, y)
    rare = X[X["shop"] == "shop 03"][:1]
    page = open_report(model.report(tmp_path / "r.html", rare))
    strange = pd.DataFrame({"shop": ["new", None, "shop 03"], "x": [0.0, 1.0, np.nan]})
    rows = pd.concat([rare, X[X["shop"] > "shop 28"][:20], strange])
    assert_agree(score(page, cells_of(model, rows), 0.95), Expected(model, rows))
    # A level that is not in the file reads as a new one.
    other = X[X["shop"] == "shop 05"][:1]
    found = score(page, cells_of(model, other), 0.95)
    assert_agree(found, Expected(model, other.assign(shop="new")))


# fields


def column_of(page, index):
    return page.evaluate("(index) => lanam.report.columns[index]", index)


@pytest.mark.parametrize("kind", KINDS)
class TestFields:
    def test_a_slider_by_keyboard(self, page_in_browser, kind):
        page = page_in_browser(kind)
        column = column_of(page, 0)
        slider = page.locator("#field-0-slider")
        slider.focus()
        before = check_shown(page, kind)[0]
        page.keyboard.press("ArrowRight")
        after = check_shown(page, kind)[0]
        assert after > before
        page.keyboard.press("End")
        assert check_shown(page, kind)[0] == pytest.approx(column["high"], rel=1e-9)
        page.keyboard.press("Home")
        assert check_shown(page, kind)[0] == pytest.approx(column["low"], rel=1e-9)
        assert float(page.input_value("#field-0")) == pytest.approx(column["low"], rel=1e-9)

    def test_whole_numbers_step_by_one(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.locator("#field-4-slider").focus()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        assert check_shown(page, kind)[4] == 1.0

    def test_a_number_typed(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.fill("#field-0", "61.25")
        assert check_shown(page, kind)[0] == 61.25
        slider = page.locator("#field-0-slider")
        assert float(slider.input_value()) == pytest.approx(61.25, abs=0.5)
        assert page.input_value("#field-0") == "61.25"

    def test_a_number_outside_the_data(self, page_in_browser, kind):
        page = page_in_browser(kind)
        note = page.locator(".outside:visible")
        assert note.count() == 0
        page.fill("#field-0", "1000")
        assert check_shown(page, kind)[0] == 1000.0
        assert "outside the data" in note.inner_text()
        page.click("#reset")
        assert note.count() == 0

    def test_half_a_number_changes_nothing(self, page_in_browser, kind):
        page = page_in_browser(kind)
        before = check_shown(page, kind)
        page.fill("#field-0", "")
        assert check_shown(page, kind) == before

    def test_missing_where_it_was_and_where_it_was_not(self, page_in_browser, kind):
        page = page_in_browser(kind)
        for index in (0, 1):
            page.check(f"#field-{index}-missing")
            assert check_shown(page, kind)[index] is None
            assert page.input_value(f"#field-{index}") == ""
            assert page.is_disabled(f"#field-{index}-slider")
            page.uncheck(f"#field-{index}-missing")
            typical = column_of(page, index)["typical"]
            assert check_shown(page, kind)[index] == pytest.approx(typical)
            assert page.is_enabled(f"#field-{index}-slider")

    def test_levels(self, page_in_browser, kind):
        page = page_in_browser(kind)
        labels = page.locator("#field-2 option").evaluate_all("(all) => all.map((o) => o.label)")
        # White space is one space in a label.
        assert [" ".join(BROKEN.split()) in " ".join(label.split()) for label in labels].count(
            True
        ) == 1
        values = page.locator("#field-2 option").evaluate_all("(all) => all.map((o) => o.value)")
        assert labels[-2:] == ["(a new level)", "(missing)"]
        seen = set()
        for value in values:
            page.select_option("#field-2", value=value)
            row = check_shown(page, kind)
            assert row[2] == (None if value == "NaN" else float(value))
            seen.add(json.dumps(present(page)[0].mean.tolist()))
        # Levels that are too rare to differ would read the same; here all differ.
        assert len(seen) == len(values)

    def test_rows(self, page_in_browser, kind):
        case, page = example(kind), page_in_browser(kind)
        cells = cells_of(case.model, case.X)
        exposures = case.more.get("exposure")

        def check_row(place):
            exposure = None if exposures is None else exposures[place : place + 1]
            assert check_shown(page, kind, exposure=exposure) == cells[place]
            assert page.input_value("#row") == str(place)
            observed = page.locator("#responses .bands").last.inner_text()
            assert observed.startswith("observed: ")
            told, own = observed.removeprefix("observed: "), case.y[place]
            assert told == own if isinstance(own, str) else as_number(told) == shown(own)
            if exposure is not None:
                assert float(page.input_value("#exposure")) == pytest.approx(exposure[0])

        page.select_option("#row", value="7")
        check_row(7)
        page.click("#next")
        check_row(8)
        page.click("#previous")
        page.click("#previous")
        check_row(6)
        page.select_option("#row", value="0")
        page.click("#previous")
        assert page.input_value("#row") == ""
        page.click("#previous")
        check_row(len(case.X) - 1)
        page.click("#reset")
        assert not any("observed" in t for t in page.locator(".bands").all_inner_texts())

    def test_a_change_leaves_the_row(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.select_option("#row", value="3")
        page.fill("#field-0", "44")
        assert page.input_value("#row") == ""
        assert not any("observed" in t for t in page.locator(".bands").all_inner_texts())

    def test_coverage(self, page_in_browser, kind):
        page = page_in_browser(kind)
        widths = []
        for place, coverage in enumerate(COVERAGES):
            page.select_option("#coverage", value=str(place))
            check_shown(page, kind, coverage)
            widths.append(np.ptp(present(page)[0].intervals[0, 0]))
        assert widths == sorted(widths)
        assert widths[-1] > 3.0 * widths[0]

    def test_enter_does_not_load_the_page_anew(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.evaluate("window.still = 'here'")
        page.fill("#field-0", "44")
        page.press("#field-0", "Enter")
        page.wait_for_timeout(50)
        assert page.evaluate("window.still") == "here"
        assert page.input_value("#field-0") == "44"


def test_typical_values_are_in_the_middle(page_in_browser):
    page, case = page_in_browser("gaussian"), example("gaussian")
    row = check_shown(page, "gaussian")
    assert row[0] == pytest.approx(case.X["load"].median(), abs=3.0)
    assert row[2] == column_of(page, 2)["typical"]


def test_exposure(page_in_browser):
    page = page_in_browser("counts")
    for exposure in ("3", "0.25", "400"):
        page.fill("#exposure", exposure)
        check_shown(page, "counts", exposure=float(exposure))
    # What is no exposure changes nothing, and takes no time.
    page.fill("#exposure", "0")
    page.fill("#exposure", "")
    check_shown(page, "counts", exposure=400.0)


@pytest.mark.parametrize("kind", ["gaussian", "two", "many"])
def test_exposure_is_for_counts(page_in_browser, kind):
    assert not page_in_browser(kind).is_visible("#exposure")


def test_a_coverage_that_calibration_cannot_give(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1))
    y = X[:, 0] + rng.standard_t(3, size=150)
    model = (
        LANAMRegressor(interactions=0, **QUICK).fit(X[:120], y[:120]).calibrate(X[120:], y[120:])
    )
    page = open_report(model.report(tmp_path / "r.html", X))
    told = page.locator("#responses .bands")
    assert told.count() == 2
    page.select_option("#coverage", label="99%")
    assert told.count() == 1
    assert told.inner_text().startswith("99% band of the mean")


# contributions


def check_contributions(page, kind, place, everything, coverage=0.95):
    """Bars against the model: which, in which order, how long, and what is said of those left out."""
    model = example(kind).model
    _, row = present(page)
    expected = Expected(model, frame_of(model, row), coverage)
    z = page.evaluate(
        "() => lanam.report.levels[Number(document.querySelector('#coverage').value)].z"
    )
    means, halves = expected.terms[0, :, place], z * expected.stds[0, :, place]
    order = np.argsort(-np.abs(means), kind="stable")
    sure = np.abs(means) > halves
    kept = [k for k in order if sure[k] or everything]
    bars = page.locator("#contributions .contribution")
    found = bars.evaluate_all("""(all) => all.map((bar) => ({
        name: bar.dataset.term, figure: bar.querySelector(".number").textContent,
        title: bar.title, unsure: bar.classList.contains("unsure"),
        fill: parseFloat(bar.querySelector(".fill").style.width),
        whisker: parseFloat(bar.querySelector(".whisker").style.width),
    }))""")
    assert [bar["name"] for bar in found] == [expected.names[k] for k in kept]
    for bar, k in zip(found, kept, strict=True):
        assert as_number(bar["figure"].removeprefix("+")) == pytest.approx(
            means[k], rel=6e-3, abs=1e-9
        )
        assert as_number(bar["title"].split("± ")[1]) == pytest.approx(halves[k], rel=6e-2)
        assert bar["unsure"] == (not sure[k])
        assert bar["whisker"] / bar["fill"] == pytest.approx(
            2 * halves[k] / abs(means[k]), rel=1e-3
        )
    note = page.inner_text("#left-out")
    hidden = len(order) - len(kept)
    if hidden:
        assert note.startswith(f"{hidden} term")
        assert f"whose {100 * coverage:g}% band includes zero" in note
        together = re.search(r"together ([+−][\d.,]+)\. ", note)[1]
        left = means[[k for k in order if k not in kept]].sum()
        assert as_number(together.replace("+", "")) == pytest.approx(left, rel=6e-3, abs=1e-3)
    else:
        assert "left out" not in note
    total = re.search(r"sum ([−\d.,]+?)[ (]", note)[1]
    assert as_number(total) == shown(expected.mean[0, place])
    return hidden


@pytest.mark.parametrize("kind", KINDS)
class TestContributions:
    def test_those_that_may_be_zero_are_left_out_and_counted(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.select_option("#row", value="7")
        page.select_option("#coverage", label="99%")
        assert check_contributions(page, kind, 0, everything=False, coverage=0.99) > 0
        page.check("#everything")
        assert check_contributions(page, kind, 0, everything=True, coverage=0.99) == 0
        n_active = sum(term.active for term in example(kind).model.terms_)
        assert page.locator("#contributions .contribution").count() == n_active

    def test_values_stand_beside_the_names(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.check("#everything")
        page.fill("#field-0", "61.25")
        page.check("#field-1-missing")
        bars = page.locator("#contributions .contribution")
        told = dict(
            bars.evaluate_all("""(all) => all.map((bar) =>
              [bar.dataset.term, bar.querySelector("small").textContent])""")
        )
        assert told["load"] == "61.25"
        assert told["gap"] == "missing"
        pair = f"load x {CITY}"
        if pair in told:
            assert told[pair].startswith("61.25 × ")


def test_contributions_to_every_class(page_in_browser):
    page = page_in_browser("many")
    page.check("#everything")
    for place, name in enumerate(CLASSES):
        page.select_option("#class", value=str(place))
        check_contributions(page, "many", place, everything=True)
        assert f"score of {name}" in page.inner_text("#left-out")


# drawings


@pytest.fixture
def drawn(page_in_browser):
    """Open a report and draw everything."""

    def of(kind):
        page = page_in_browser(kind)
        page.evaluate("lanam.drawAll()")
        return page

    return of


def traces_of(page, name, place=0):
    """What plotly was given for the drawing of a term, without what we do not look at."""
    code = """([name, place]) => {
      const cards = [...document.querySelectorAll(".card")];
      const card = cards.find((one) => one.querySelector("h3").textContent === name);
      const chart = card.querySelectorAll(".chart")[place];
      const plain = (value) => (value === undefined ? null : Array.from(value));
      return chart.data.map((trace) => ({
        type: trace.type, x: plain(trace.x), y: plain(trace.y), mode: trace.mode,
        z: trace.z === undefined ? null : Array.from(trace.z, plain),
        error: trace.error_y ? plain(trace.error_y.array) : null, text: plain(trace.text),
        xaxis: trace.xaxis ?? null, density: trace.yaxis === "y2",
      }));
    }"""
    return page.evaluate(code, [name, place])


def of_class(array, place, n_classes):
    return array if n_classes == 1 else array[:, place]


@pytest.mark.parametrize("kind", ["gaussian", "counts", "two", "many"])
class TestShapes:
    def test_curves_with_bands(self, drawn, kind):
        page = drawn(kind)
        explanation = example(kind).model.explain_global()
        n_classes = np.size(explanation.intercept)
        for shape in explanation.active:
            if shape.kind != "smooth":
                continue
            traces = [
                t for t in traces_of(page, shape.name) if not t["density"] and t["xaxis"] is None
            ]
            assert len(traces) == 3 * n_classes
            for k in range(n_classes):
                lower, upper, middle = traces[3 * k : 3 * k + 3]
                mean, std = (of_class(a, k, n_classes) for a in (shape.mean, shape.std))
                size = np.abs(mean).max() + std.max()
                np.testing.assert_allclose(middle["x"], shape.values, rtol=1e-8)
                for trace, values in (
                    (middle, mean),
                    (lower, mean - 2.0 * std),
                    (upper, mean + 2.0 * std),
                ):
                    np.testing.assert_allclose(trace["y"], values, atol=1e-5 * size)

    def test_levels_with_bars(self, drawn, kind):
        page = drawn(kind)
        explanation = example(kind).model.explain_global()
        n_classes, n_seen = np.size(explanation.intercept), 0
        for shape in explanation.active:
            if shape.kind not in ("categorical", "level"):
                continue
            traces = [t for t in traces_of(page, shape.name) if not t["density"]]
            for k in range(n_classes):
                n = len(shape.values)
                mean, std = (of_class(a, k, n_classes) for a in (shape.mean, shape.std))
                np.testing.assert_allclose(traces[k]["y"][:n], mean, rtol=1e-5, atol=1e-8)
                np.testing.assert_allclose(traces[k]["error"][:n], 2.0 * std, rtol=1e-5, atol=1e-8)
            n_seen += 1
        assert n_seen >= 2

    def test_missing_values(self, drawn, kind):
        page = drawn(kind)
        gap = example(kind).model.explain_global()["gap"]
        found = [t for t in traces_of(page, "gap") if t["xaxis"] == "x2"]
        means, stds = np.atleast_1d(gap.missing_mean), np.atleast_1d(gap.missing_std)
        assert len(found) == len(means)
        for trace, mean, std in zip(found, means, stds, strict=True):
            assert trace["x"] == ["missing"]
            assert trace["y"] == pytest.approx([mean], rel=1e-5)
            assert trace["error"] == pytest.approx([2.0 * std], rel=1e-5)

    def test_pairs(self, drawn, kind):
        page = drawn(kind)
        explanation = example(kind).model.explain_global()
        pairs = [term for term in explanation.active if isinstance(term, Surface)]
        assert pairs
        for pair in pairs:
            for place, surface in enumerate((pair.mean, pair.std)):
                if surface.ndim == 3:
                    surface = surface[:, :, 0]
                (trace,) = traces_of(page, pair.name, place)
                assert trace["type"] == "heatmap"
                rows = entries_drawn(pair, 0)
                columns = entries_drawn(pair, 1)
                expected = surface[np.ix_(rows, columns)].T
                np.testing.assert_allclose(trace["z"], expected, rtol=1e-3, atol=1e-12)

    def test_importances(self, drawn, kind):
        page = drawn(kind)
        chart = page.evaluate("""() => {
          const [bars] = document.getElementById("importance-chart").data;
          return { x: Array.from(bars.x), more: bars.error_x.array, less: bars.error_x.arrayminus,
            shape: bars.marker.pattern.shape };
        }""")
        terms = example(kind).model.explain_global().active[::-1]
        assert chart["x"] == pytest.approx([term.importance for term in terms], rel=1e-5)
        assert chart["more"] == pytest.approx([2 * term.importance_std for term in terms], rel=1e-5)
        assert chart["less"] == pytest.approx(
            [min(2 * term.importance_std, term.importance) for term in terms], rel=1e-5
        )
        assert chart["shape"] == ["/" if term.kind == "pair" else "" for term in terms]


def entries_drawn(pair, axis):
    """Entries of a pair that are drawn: numbers within the data, levels, and what else was seen."""
    values = pair.values if axis == 0 else pair.second_values
    share = pair.density.sum(axis=1 - axis)
    if pair.feature_kinds[axis] == "categorical":
        return [k for k in range(len(share)) if k < len(values) or share[k] > 0.0]
    inside = pair.inside.any(axis=1 - axis)
    return [k for k in range(len(values)) if inside[k]]


def test_pairs_of_every_class(drawn):
    page = drawn("many")
    pair = next(t for t in example("many").model.explain_global().active if t.kind == "pair")
    rows, columns = entries_drawn(pair, 0), entries_drawn(pair, 1)
    for place in range(3):
        page.select_option("#pair-class", value=str(place))
        (trace,) = traces_of(page, pair.name)
        expected = pair.mean[np.ix_(rows, columns)][:, :, place].T
        np.testing.assert_allclose(trace["z"], expected, rtol=1e-3, atol=1e-12)


def test_calibration_and_history(drawn):
    page, case = drawn("gaussian"), example("gaussian")
    data = Page(page.content()).data["calibration"]
    curve = page.evaluate("""() => document.getElementById("calibration-chart").data
        .map((trace) => [Array.from(trace.x), Array.from(trace.y)])""")
    expected, observed = data["curve"]["expected"], data["curve"]["observed"]
    assert curve[3] == [expected, observed]
    assert curve[0][1] == data["curve"]["lower"]
    assert curve[1][1] == data["curve"]["upper"]
    history = page.evaluate("() => Array.from(document.getElementById('history').data[0].y)")
    assert history == pytest.approx(
        [record["log_evidence"] for record in case.model.history_], rel=1e-8
    )


def test_one_scale_or_each_its_own(drawn):
    page = drawn("gaussian")

    def ranges():
        return page.evaluate("""() => [...document.querySelectorAll("#shape-grid .chart")]
            .map((chart) => JSON.stringify(chart.layout.yaxis.range))""")

    assert len(set(ranges())) == 1
    page.uncheck("#same-scale")
    assert len(set(ranges())) > 1
    page.check("#same-scale")


def test_drawings_wait_until_they_are_seen(open_report, report_of):
    page = open_report(report_of("gaussian"))
    assert page.locator(".chart").count() > page.locator(".js-plotly-plot").count()
    page.locator("#retention-chart").scroll_into_view_if_needed()
    page.wait_for_selector("#retention-chart.js-plotly-plot")


def test_a_print_has_every_drawing(open_report, report_of):
    page = open_report(report_of("two"))
    n_charts = page.locator(".chart").count()
    assert page.locator(".js-plotly-plot").count() < n_charts
    page.pdf()
    assert page.locator(".js-plotly-plot").count() == n_charts
    page.emulate_media(media="print")
    assert not page.is_visible("#inputs")
    assert page.is_visible("#responses")


# names are words


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_are_shown_as_text(drawn, kind):
    page = drawn(kind)
    page.check("#everything")
    assert page.locator("script").count() == 4  # data, library, ours, and the library unpacked
    assert page.locator("[onclick]").count() == 0
    terms = [term for term in example(kind).model.terms_ if term.active and CITY in term.name]
    assert terms
    shown_names = page.locator("#contributions .contribution > :first-child").evaluate_all(
        "(all) => all.map((one) => one.firstChild.data)"
    )
    for term in terms:
        assert page.get_by_role("heading", name=term.name, exact=True).count() == 1
        assert shown_names.count(term.name) == 1
    ticks = page.locator("#importance-chart .ytick text").all_text_contents()
    # Shortened, but not read as markup.
    assert any("city <script>" in tick for tick in ticks)
    assert page.locator(".chart svg :is(b, i, a, tspan[style*='bold'])").count() == 0


def test_hostile_classes_in_drawings(drawn):
    page = drawn("many")
    legend = page.inner_text("#legend")
    assert all(name in legend for name in CLASSES)
    names = page.evaluate("() => document.querySelector('#shape-grid .chart').data[2].name")
    assert names == CLASSES[0].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# colours


def background(page):
    return page.evaluate("() => getComputedStyle(document.body).backgroundColor")


def chart_colour(page):
    return page.evaluate("() => document.getElementById('importance-chart').layout.font.color")


def test_the_reader_chooses_colours(drawn):
    page = drawn("two")
    light = background(page), chart_colour(page)
    page.select_option("#theme", "dark")
    dark = background(page), chart_colour(page)
    assert light[0] == "rgb(255, 255, 255)"
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.select_option("#theme", "light")
    assert (background(page), chart_colour(page)) == light


def test_colours_follow_the_system(open_report, report_of):
    page = open_report(report_of("two"), color_scheme="dark")
    page.evaluate("lanam.drawAll()")
    dark = background(page), chart_colour(page)
    page.emulate_media(color_scheme="light")
    page.wait_for_selector("html[data-theme=light]")
    light = background(page), chart_colour(page)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.select_option("#theme", "dark")
    assert (background(page), chart_colour(page)) == dark


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(page_in_browser, theme):
    page = page_in_browser("gaussian")
    page.select_option("#theme", theme)
    names = ("paper", "card", "warn", "ink", "soft", "accent", "minus", "curve")
    colours = page.evaluate(
        """(names) => Object.fromEntries(names.map((name) => [name,
             getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]))""",
        names,
    )
    for front, back in (
        ("ink", "paper"), ("ink", "card"), ("ink", "warn"), ("soft", "paper"), ("soft", "card"),
        ("accent", "paper"), ("accent", "card"), ("minus", "paper"),
    ):  # fmt: skip
        assert contrast(colours[front], colours[back]) >= 4.5, (front, back)
    # Curves and bars: three are enough for what is not text.
    for front in ("curve", "minus"):
        assert contrast(colours[front], colours["card"]) >= 3.0
    # Nothing that is read is made paler by being seen through.
    page.check("#everything")
    page.select_option("#coverage", label="99%")
    faint = page.evaluate("""() => [...document.querySelectorAll("#what-if *")]
        .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
        .filter((one) => { for (let at = one; at; at = at.parentElement)
          if (Number(getComputedStyle(at).opacity) < 1) return true; return false; })
        .map((one) => one.textContent)""")
    assert faint == []


# keyboard, phone, readers


def test_every_control_has_a_name(page_in_browser):
    for kind in KINDS:
        page = page_in_browser(kind)
        controls = page.evaluate("""() => [...document.querySelectorAll("input, select, button, summary")]
            .map((one) => ({ id: one.id || one.tagName, name: one.getAttribute("aria-label")
              || [...(one.labels ?? [])].map((label) => label.textContent).join(" ").trim()
              || (one.matches("button, summary") ? one.textContent.trim() : "") }))""")
        assert len(controls) > 15
        assert [one["id"] for one in controls if not one["name"]] == []
        names = [one["name"] for one in controls if one["id"].startswith("field-")]
        assert CITY in names
        assert len(names) == len(set(names)), "controls of different columns are told apart"


def test_drawings_have_words(drawn):
    for kind in KINDS:
        page = drawn(kind)
        labels = page.locator("[role=img]").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('aria-label'))"
        )
        assert page.locator(".chart:not([role=img])").count() == 0
        assert all(labels)
        # Plotly keeps one out of sight to measure texts with.
        bare = page.locator("svg:not([aria-hidden], [role=img] svg, #js-plotly-tester)")
        assert bare.evaluate_all("(all) => all.map((one) => one.outerHTML)") == []


def test_tab_reaches_every_control_in_order(page_in_browser):
    page = page_in_browser("counts")
    expected = page.evaluate("""() => {
      const all = [...document.querySelectorAll("a[href], input, select, button, summary, [tabindex='0']")];
      const seen = all.filter((one) => one.checkVisibility() && !one.disabled
        && !(one.closest("details:not([open])") && !one.matches("summary")));
      seen.forEach((one, k) => { one.dataset.place = k; });
      document.activeElement.blur();
      return seen.length;
    }""")
    page.evaluate("""() => {
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
    }""")
    found = []
    for _ in range(expected):
        page.keyboard.press("Tab")
        place = (
            "document.activeElement.dataset.place ?? document.activeElement.outerHTML.slice(0, 80)"
        )
        found.append(page.evaluate(place))
    assert found == [str(k) for k in range(expected)]


def test_focus_can_be_seen(page_in_browser):
    page = page_in_browser("gaussian")
    page.focus("#coverage")
    page.keyboard.press("Tab")
    style = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


def test_the_skip_link(open_report, report_of):
    page = open_report(report_of("two"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    box = page.locator(".skip").bounding_box()
    assert box["x"] >= 0.0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_phone(open_report, report_of, kind):
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    page = open_report(report_of(kind), **phone)
    page.evaluate("lanam.drawAll()")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # The prediction stays in sight while the last of the fields is changed.
    page.evaluate("""() => [...document.querySelectorAll(".field")].at(-1)
        .scrollIntoView({ block: "end", behavior: "instant" })""")
    page.wait_for_timeout(50)
    answer = page.locator("#responses").bounding_box()
    field = page.locator(".field").last.bounding_box()
    assert -1.0 <= answer["y"] < 0.5 * 844
    assert answer["y"] < field["y"] < 844


def test_the_prediction_stays_in_sight_on_a_desk(page_in_browser):
    page = page_in_browser("gaussian")
    page.evaluate("""() => [...document.querySelectorAll(".field")].at(-1)
        .scrollIntoView({ block: "end", behavior: "instant" })""")
    page.wait_for_timeout(50)
    box = page.locator("#responses").bounding_box()
    assert 0.0 <= box["y"] < 600.0


# unusual models


def test_no_term_at_all(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)}), rng.normal(size=60)
    model = LANAMRegressor(**QUICK).fit(X, y)
    assert not any(term.active for term in model.terms_)
    page = open_report(model.report(tmp_path / "r.html", X, y))
    page.evaluate("lanam.drawAll()")
    assert as_number(page.inner_text("#responses .value")) == shown(model.predict(X[:1])[0])
    assert "No term of one column is active." in page.inner_text("#shapes")


def test_only_levels_and_an_exposure(open_report, tmp_path):
    """The only box is that of the exposure: Enter in it must not send the form."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"place": rng.choice(["in", "out"], 300)})
    y = rng.poisson(np.where(X["place"] == "in", 2.0, 9.0))
    model = LANAMRegressor(likelihood="poisson", **QUICK).fit(X, y)
    page = open_report(model.report(tmp_path / "r.html"))
    page.fill("#exposure", "5")
    page.press("#exposure", "Enter")
    page.wait_for_timeout(100)
    assert page.input_value("#exposure") == "5"
    assert not page.is_visible("#row")


def test_one_column_and_no_rows(open_report, tmp_path):
    x = np.linspace(-1.0, 1.0, 80)[:, None]
    model = LANAMRegressor(**QUICK).fit(x, np.sin(3.0 * x[:, 0]))
    page = open_report(model.report(tmp_path / "r.html"))
    page.fill("#field-0", "0.5")
    expected = model.predict([[0.5]])[0]
    assert as_number(page.inner_text("#responses .value")) == shown(expected)
    page.press("#field-0", "Enter")
    page.wait_for_timeout(100)
    assert page.input_value("#field-0") == "0.5"


def test_without_scripts_the_tables_are_there(browser, report_of):
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(report_of("two").as_uri())
    assert "need JavaScript" in page.inner_text("body")
    assert page.get_by_role("cell", name="switched off: evidence").count() > 0
    context.close()
