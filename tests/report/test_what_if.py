"""The what-if page in a browser: its results agree with the model."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import lanam.report.fields
import lanam.report.page
from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import prepare
from tests.report.browsing import (
    Expected,
    as_number,
    assert_agree,
    cells_of,
    check_shown,
    ends_of,
    frame_of,
    present,
    score,
    shown,
)
from tests.report.examples import (
    BROKEN,
    CITY,
    CLASSES,
    KINDS,
    QUICK,
    example,
    hard_rows,
    only_noisy,
)

# Unseen values are counted in one warning.
pytestmark = pytest.mark.filterwarnings("ignore:column '")

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)


# many rows


@pytest.mark.parametrize("kind", [*KINDS, "noisy", "known"])
def test_rows_score_as_the_model_scores_them(page_in_browser, kind):
    case, page = example(kind), page_in_browser(kind)
    X, more = hard_rows(case)
    cells = cells_of(case.model, X)
    for coverage in (0.5, 0.95, 0.99):
        if kind == "calibrated" and coverage > case.model.calibration_.most_coverage:
            continue
        expected = Expected(case.model, X, coverage, **more)
        assert_agree(score(page, cells, coverage, *more.values()), expected)


def test_an_interaction_of_three_columns(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (500, 2)), columns=["dose", "age"])
    X["sex"] = rng.choice(["f", "m"], 500)
    X.loc[::20, "dose"] = np.nan
    y = 2.0 * X["dose"].fillna(0.0) * X["age"] * (X["sex"] == "f") + 0.3 * rng.standard_normal(500)
    model = LANAMRegressor(interactions=[("dose", "age", "sex")]).fit(X, y)
    assert [term.kind for term in model.terms_ if term.joint] == ["interaction"]
    page = open_report(model.report(tmp_path / "r.html", X[:50]))
    strange = pd.DataFrame({"dose": [0.3, 5.0], "age": [np.nan, -7.0], "sex": ["new", None]})
    rows = pd.concat([X[:40], strange])
    assert_agree(score(page, cells_of(model, rows), 0.95), Expected(model, rows))
    # Its slices are drawn: mean and standard deviation of each.
    page.evaluate("lanam.drawAll()")
    panels = page.evaluate("() => [...document.querySelectorAll('#pair-grid .halves > *')].length")
    assert panels == 4


def test_high_cardinality(open_report, tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "_WIDE", 10)
    monkeypatch.setattr(lanam.report.fields, "_MAX_LEVELS", 12)
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
    actual = score(page, cells_of(model, other), 0.95)
    assert_agree(actual, Expected(model, other.assign(shop="new")))


@pytest.mark.parametrize("likelihood", ["lognormal", "student"])
def test_families_with_the_noise_of_numbers(open_report, tmp_path, likelihood):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(-1.0, 1.0, 500), "z": rng.normal(size=500)})
    noise = 0.3 * np.exp(X["x"]) * rng.standard_t(4.0, 500)
    y = np.sin(3.0 * X["x"]) + noise
    y = np.exp(y) if likelihood == "lognormal" else y
    model = LANAMRegressor(likelihood=likelihood, interactions=0, **QUICK).fit(X, y)
    page = open_report(model.report(tmp_path / "r.html", X[:5]))
    rows = X[:40]
    for coverage in (0.5, 0.95):
        actual = score(page, cells_of(model, rows), coverage)
        assert_agree(actual, Expected(model, rows, coverage))


def test_probabilities_of_all_grades(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(-2.0, 2.0, 400), "z": rng.normal(size=400)})
    y = np.digitize(2.0 * X["x"] + rng.logistic(size=400), [-1.0, 0.5, 2.0])
    model = LANAMClassifier(likelihood="ordinal", interactions=0, **QUICK).fit(X, y)
    page = open_report(model.report(tmp_path / "r.html", X[:10]))
    page.select_option("#row", "3")
    expected = model.predict_proba(X[3:4])[0]
    shown = [page.inner_text(f'.class-row[data-label="{k}"] b') for k in range(4)]
    assert [float(text.rstrip("%")) for text in shown] == pytest.approx(100.0 * expected, abs=0.06)


# heteroscedastic noise


def test_noise_by_seen_unseen_and_missing_values(page_in_browser):
    model, page = example("noisy").model, page_in_browser("noisy")
    assert {"load", CITY, "noise"} <= {term.name for term in model.noise_terms_ if term.active}
    row = frame_of(model, present(page)[1])
    rows = pd.concat([row] * 8, ignore_index=True)
    rows["load"], rows["noise"] = rows["load"].astype(float), rows["noise"].astype(float)
    rows.loc[1, "load"], rows.loc[2, "load"] = 80.0, np.nan
    rows.loc[3, "noise"], rows.loc[4, "noise"] = 2.0, np.nan
    rows.loc[5, CITY], rows.loc[6, CITY], rows.loc[7, CITY] = "Oslo", "never seen", None
    # All of them have different noise: none could be left out.
    assert len(set(model.predict_noise(rows).round(6))) == len(rows)
    assert_agree(score(page, cells_of(model, rows), 0.95), Expected(model, rows))


def test_a_column_that_only_affects_the_noise(open_report, tmp_path):
    case = only_noisy()
    assert [term.name for term in case.model.terms_ if term.active] == ["x"]
    assert {term.name for term in case.model.noise_terms_ if term.active} == {"x", "kind"}
    page = open_report(case.model.report(tmp_path / "r.html", case.X, case.y))
    widths = {}
    for place in (0, 1, 2, -1, "NaN"):
        page.select_option("#field-1", value=str(place))
        actual, row = present(page)
        expected = Expected(case.model, frame_of(case.model, row))
        assert_agree(actual, expected)
        line = page.locator("#responses .bands").first.inner_text()
        half = 0.5 * np.ptp(expected.intervals)
        assert ends_of(line) == shown(expected.newInterval[0].tolist(), half)
        widths[place] = np.ptp(actual.newInterval)
    assert widths[2] > 2.0 * widths[0] > 4.0 * widths[1]
    # Contributions are to the mean.
    page.check("#everything")
    assert page.locator("#contributions .contribution").count() == 1


def test_high_cardinality_noise(open_report, tmp_path, monkeypatch):
    monkeypatch.setattr(lanam.report.fields, "_MAX_LEVELS", 2)
    case = only_noisy()
    page = open_report(case.model.report(tmp_path / "r.html"))
    rows = pd.DataFrame({"x": 1.0, "kind": ["calm", "wild", "new", None]})
    assert_agree(score(page, cells_of(case.model, rows), 0.95), Expected(case.model, rows))
    # A level that is not in the file reads as a new one.
    actual = score(page, cells_of(case.model, rows[:1].assign(kind="mild")), 0.95)
    assert_agree(actual, Expected(case.model, rows[2:3]))


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
        assert float(page.input_value("#field-0")) == pytest.approx(column["low"], rel=1e-6)

    def test_a_typed_number(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.fill("#field-0", "61.25")
        assert check_shown(page, kind)[0] == 61.25
        slider = page.locator("#field-0-slider")
        assert float(slider.input_value()) == pytest.approx(61.25, abs=0.5)
        assert page.input_value("#field-0") == "61.25"

    def test_missing_values_with_and_without_an_entry(self, page_in_browser, kind):
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
        assert labels[-2:] == ["(unseen category)", "(missing)"]
        seen = set()
        for value in values:
            page.select_option("#field-2", value=value)
            row = check_shown(page, kind)
            assert row[2] == (None if value == "NaN" else float(value))
            seen.add(json.dumps(present(page)[0].mean.tolist()))
        # Rare categories would share an entry; here all differ.
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
            displayed, own = observed.removeprefix("observed: "), case.y[place]
            assert (
                displayed == own
                if isinstance(own, str)
                else as_number(displayed) == shown(own, 0.1)
            )
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

    def test_coverage(self, page_in_browser, kind):
        page = page_in_browser(kind)
        widths = []
        for place, coverage in enumerate(COVERAGES):
            page.select_option("#coverage", value=str(place))
            check_shown(page, kind, coverage)
            widths.append(np.ptp(present(page)[0].intervals[0, 0]))
        assert widths == sorted(widths)
        assert widths[-1] > 3.0 * widths[0]


def test_integers_step_by_one(page_in_browser):
    page = page_in_browser("gaussian")
    page.locator("#field-4-slider").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert check_shown(page, "gaussian")[4] == 1.0


def test_a_number_outside_the_data(page_in_browser):
    page = page_in_browser("gaussian")
    note = page.locator(".outside:visible")
    assert note.count() == 0
    page.fill("#field-0", "1000")
    assert check_shown(page, "gaussian")[0] == 1000.0
    assert "outside the data" in note.inner_text()
    page.click("#reset")
    assert note.count() == 0


def test_incomplete_numbers_are_ignored(page_in_browser):
    page = page_in_browser("gaussian")
    before = check_shown(page, "gaussian")
    page.fill("#field-0", "")
    assert check_shown(page, "gaussian") == before


def test_a_changed_row_is_marked(page_in_browser):
    page = page_in_browser("gaussian")

    def row():
        return page.evaluate("() => document.querySelector('#row').selectedOptions[0].text")

    page.select_option("#row", value="3")
    page.fill("#field-0", "44")
    assert row() == "row 4, changed"
    assert not any("observed" in t for t in page.locator(".bands").all_inner_texts())
    page.click("#next")
    assert row() == "row 5"
    page.click("#reset")
    page.fill("#field-0", "44")
    assert row() == "own values"
    page.click("#next")
    assert row() == "row 1"


def test_enter_does_not_reload_the_page(page_in_browser):
    page = page_in_browser("gaussian")
    page.evaluate("window.still = 'here'")
    page.fill("#field-0", "44")
    page.press("#field-0", "Enter")
    page.wait_for_timeout(50)
    assert page.evaluate("window.still") == "here"
    assert page.input_value("#field-0") == "44"


def test_typical_values_are_medians(page_in_browser):
    page, case = page_in_browser("gaussian"), example("gaussian")
    row = check_shown(page, "gaussian")
    assert row[0] == pytest.approx(case.X["load"].median(), abs=3.0)
    assert row[2] == column_of(page, 2)["typical"]


def test_typical_values_are_missing_where_most_are(open_report, tmp_path):
    rng, n = np.random.default_rng(0), 200
    X = pd.DataFrame(
        {
            "pool": rng.choice(["good", "fair", None], n, p=[0.06, 0.04, 0.9]),
            "alley": rng.choice(["paved", "gravel", None], n, p=[0.5, 0.1, 0.4]),
            "fence": np.where(rng.random(n) < 0.7, np.nan, rng.uniform(2.0, 3.0, n)),
            "front": np.where(rng.random(n) < 0.3, np.nan, rng.uniform(2.0, 3.0, n)),
        }
    )
    effects = (X["pool"] == "good") + (X["alley"] == "gravel") + X["fence"].fillna(0.0)
    y = effects + X["front"].fillna(0.0) + 0.1 * rng.standard_normal(n)
    model = LANAMRegressor(interactions=0, noise="constant", **QUICK).fit(X, y)
    page = open_report(model.report(tmp_path / "report.html"))
    pool, alley, fence, front = present(page)[1]
    levels = dict(column_of(page, 1)["levels"])
    assert (pool, levels[alley], fence) == (None, "paved", None)
    assert front == pytest.approx(X["front"].median(), abs=0.1)
    assert page.input_value("#field-0") == "NaN"
    assert page.is_checked("#field-2-missing")
    page.uncheck("#field-2-missing")
    assert present(page)[1][2] == pytest.approx(X["fence"].median(), abs=0.1)
    page.click("#reset")
    assert page.is_checked("#field-2-missing")


def test_exposure(page_in_browser):
    page = page_in_browser("counts")
    for exposure in ("3", "0.25", "400"):
        page.fill("#exposure", exposure)
        check_shown(page, "counts", exposure=float(exposure))
    # An invalid exposure is ignored.
    page.fill("#exposure", "0")
    page.fill("#exposure", "")
    check_shown(page, "counts", exposure=400.0)


@pytest.mark.parametrize("kind", ["gaussian", "two", "many"])
def test_exposure_is_for_counts(page_in_browser, kind):
    assert not page_in_browser(kind).is_visible("#exposure")


def test_a_coverage_that_cannot_be_calibrated(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1))
    y = X[:, 0] + rng.standard_t(3, size=150)
    model = (
        LANAMRegressor(interactions=0, **QUICK).fit(X[:120], y[:120]).calibrate(X[120:], y[120:])
    )
    page = open_report(model.report(tmp_path / "r.html", X))
    lines = page.locator("#responses .bands")
    assert "too few" not in lines.first.inner_text()
    page.select_option("#coverage", label="99%")
    assert lines.first.inner_text() == (
        "99% prediction interval: 30 held-out rows are too few to calibrate this coverage"
    )


# contributions


def check_contributions(page, kind, place, everything, coverage=0.95):
    """Bars against the model: terms, order, lengths, and the note on those left out."""
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
    actual = bars.evaluate_all("""(all) => all.map((bar) => ({
        name: bar.dataset.term, figure: bar.querySelector(".number").firstChild.textContent,
        half: bar.querySelector(".number small").textContent, unsure: bar.classList.contains("unsure"),
        fill: parseFloat(bar.querySelector(".fill").style.width),
        whisker: parseFloat(bar.querySelector(".whisker").style.width),
    }))""")
    assert [bar["name"] for bar in actual] == [expected.names[k] for k in kept]
    for bar, k in zip(actual, kept, strict=True):
        assert as_number(bar["figure"].removeprefix("+")) == pytest.approx(
            means[k], rel=6e-3, abs=1e-9
        )
        assert as_number(bar["half"].removeprefix("± ")) == pytest.approx(halves[k], rel=6e-2)
        assert bar["unsure"] == (not sure[k])
        assert bar["whisker"] / bar["fill"] == pytest.approx(
            2 * halves[k] / abs(means[k]), rel=1e-3
        )
    note = page.inner_text("#left-out")
    hidden = len(order) - len(kept)
    if hidden:
        assert note.startswith(f"{hidden} term")
        assert f"as their {100 * coverage:g}% intervals include zero" in note
        together = re.search(r"total contribution ([+−][\d.,]+)\. ", note)[1]
        left = means[[k for k in order if k not in kept]].sum()
        assert as_number(together.replace("+", "")) == pytest.approx(left, rel=6e-3, abs=1e-3)
    else:
        assert "left out" not in note
    total = re.search(r"sum ([−\d.,]+?)[ (]", note)[1]
    assert as_number(total) == shown(expected.mean[0, place])
    return hidden


@pytest.mark.parametrize("kind", KINDS)
class TestContributions:
    def test_intervals_that_include_zero_are_left_out_and_counted(self, page_in_browser, kind):
        page = page_in_browser(kind)
        page.select_option("#row", value="7")
        page.select_option("#coverage", label="99%")
        assert check_contributions(page, kind, 0, everything=False, coverage=0.99) > 0
        page.check("#everything")
        assert check_contributions(page, kind, 0, everything=True, coverage=0.99) == 0
        n_active = sum(term.active for term in example(kind).model.terms_)
        assert page.locator("#contributions .contribution").count() == n_active


def test_values_are_shown_with_the_names(page_in_browser):
    page = page_in_browser("gaussian")
    page.check("#everything")
    page.fill("#field-0", "61.25")
    page.check("#field-1-missing")
    bars = page.locator("#contributions .contribution")
    displayed = dict(
        bars.evaluate_all("""(all) => all.map((bar) =>
          [bar.dataset.term, bar.querySelector("small").textContent])""")
    )
    assert displayed["load"] == "61.25"
    assert displayed["gap"] == "missing"
    assert displayed[f"load x {CITY}"].startswith("61.25 × ")


def test_contributions_to_every_class(page_in_browser):
    page = page_in_browser("many")
    page.check("#everything")
    for place, name in enumerate(CLASSES):
        page.select_option("#class", value=str(place))
        check_contributions(page, "many", place, everything=True)
        assert f"centred logit of {name}" in page.inner_text("#left-out")
