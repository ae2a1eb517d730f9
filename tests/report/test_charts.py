"""The report's charts in a browser: the data passed to plotly agree with the model."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor
from lanam.explain import Surface
from tests.report.examples import CITY, CLASSES, KINDS, example, only_noisy
from tests.report.pages import Page


def traces_of(page, name, place=0):
    """The data passed to plotly for the chart of a term."""
    code = """([name, place]) => {
      const cards = [...document.querySelectorAll(".card")];
      const card = cards.find((one) => one.querySelector("h3").textContent === name);
      const chart = card.querySelectorAll(".chart")[place];
      const plain = (value) => (value === undefined ? null : Array.from(value));
      return chart.data.map((trace) => ({
        type: trace.type, x: plain(trace.x), y: plain(trace.y), mode: trace.mode,
        z: trace.z === undefined ? null : Array.from(trace.z, plain),
        error: trace.error_y ? plain(trace.error_y.array) : null, text: plain(trace.text),
        xaxis: trace.xaxis ?? null, yaxis: trace.yaxis ?? null, density: trace.yaxis === "y2",
      }));
    }"""
    return page.evaluate(code, [name, place])


def of_class(array, place, n_classes):
    return array if n_classes == 1 else array[:, place]


def check_signs(trace, signs, pair, entries):
    """Signs mark exactly where the mean is two standard deviations from zero."""
    for marks in signs:
        mean, std = pair.mean[entries], pair.std[entries]
        if mean.ndim == 3:
            mean, std = mean[:, :, 0], std[:, :, 0]
        for x, y, sign in zip(marks["x"], marks["y"], marks["text"], strict=True):
            i, j = trace["x"].index(x), trace["y"].index(y)
            assert abs(mean[i, j]) >= 1.999 * std[i, j]
            assert sign == ("+" if mean[i, j] > 0 else "−")


def check_missing(traces, pair, surface, rows, columns):
    """Rows with a missing number have tiles of their own, as in plot_interaction."""
    missing = [
        [len(axis.values)]
        if axis.kind == "numeric" and axis.others and axis.density[-1] > 0
        else []
        for axis in pair.axes
    ]
    blocks = {
        ("x2", "y"): np.ix_(missing[0], columns),
        ("x", "y2"): np.ix_(rows, missing[1]),
        ("x2", "y2"): np.ix_(*missing),
    }
    for place, entries in blocks.items():
        maps = [t for t in traces if (t["xaxis"], t["yaxis"]) == place and t["type"] == "heatmap"]
        if not surface[entries].size:
            assert not maps
            continue
        tiles, veil = maps
        np.testing.assert_allclose(tiles["z"], surface[entries].T, rtol=1e-3, atol=1e-12)
        veiled = np.array([[cell is not None for cell in row] for row in veil["z"]])
        assert not (veiled & (pair.density[entries].T > 0.0)).any()


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

    def test_categories_with_error_bars(self, drawn, kind):
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
        beside = [t for t in traces_of(page, "gap") if t["xaxis"] == "x2"]
        actual = [t for t in beside if not t["density"]]
        (bar,) = [t for t in beside if t["density"]]
        assert bar["y"] == pytest.approx([gap.missing_density], rel=1e-5)
        (bars,) = [t for t in traces_of(page, "gap") if t["density"] and t["xaxis"] is None]
        assert max(bars["y"]) == pytest.approx(1.0 - gap.missing_density, rel=1e-5)
        means, stds = np.atleast_1d(gap.missing_mean), np.atleast_1d(gap.missing_std)
        assert len(actual) == len(means)
        for trace, mean, std in zip(actual, means, stds, strict=True):
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
                traces = traces_of(page, pair.name, place)
                trace, veil, *signs = [t for t in traces if t["xaxis"] == "x" and t["yaxis"] == "y"]
                assert trace["type"] == "heatmap"
                rows = entries_drawn(pair, 0)
                columns = entries_drawn(pair, 1)
                expected = surface[np.ix_(rows, columns)].T
                np.testing.assert_allclose(trace["z"], expected, rtol=1e-3, atol=1e-12)
                seen = pair.density[np.ix_(rows, columns)].T > 0.0
                veiled = np.array([[cell is not None for cell in row] for row in veil["z"]])
                assert not (veiled & seen).any()
                assert len(signs) == (place == 0)
                check_signs(trace, signs, pair, np.ix_(rows, columns))
                check_missing(traces, pair, surface, rows, columns)

    def test_importances(self, drawn, kind):
        page = drawn(kind)
        chart = page.evaluate("""() => {
          const [bars, missing] = document.getElementById("importance-chart").data;
          return { x: Array.from(bars.x), more: bars.error_x.array, less: bars.error_x.arrayminus,
            shape: bars.marker.pattern.shape, missing: Array.from(missing.x),
            base: Array.from(missing.base) };
        }""")
        terms = example(kind).model.explain_global().active[::-1]
        assert chart["x"] == pytest.approx([term.importance for term in terms], rel=1e-5)
        assert chart["more"] == pytest.approx([2 * term.importance_std for term in terms], rel=1e-5)
        assert chart["less"] == pytest.approx(
            [min(2 * term.importance_std, term.importance) for term in terms], rel=1e-5
        )
        assert chart["shape"] == ["/" if term.kind == "pair" else "" for term in terms]
        parts = [term.importance_of_missingness for term in terms]
        assert chart["missing"] == pytest.approx(parts, rel=1e-5)
        assert any(parts)
        assert np.add(chart["missing"], chart["base"]) == pytest.approx(chart["x"], rel=1e-5)


def entries_drawn(pair, axis):
    """Entries of an interaction that are shown: those of the data."""
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
        trace, *_ = traces_of(page, pair.name)
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


def test_the_curves_of_the_noise(open_report, tmp_path):
    model = only_noisy().model
    page = open_report(model.report(tmp_path / "noisy.html"))
    page.evaluate("() => lanam.drawAll()")
    noise = model.explain_noise()
    names = page.evaluate("""() => [...document.querySelectorAll("#noise-grid h3")]
        .map((title) => title.textContent)""")
    assert names == [term.name for term in noise.active]
    (shape,) = [term for term in noise.active if term.kind == "smooth"]
    drawn_curve = page.evaluate(
        """(place) => {
          const { data, layout } = document.querySelectorAll("#noise-grid .chart")[place];
          return { y: Array.from(data[2].y), title: layout.yaxis.title.text };
        }""",
        names.index(shape.name),
    )
    np.testing.assert_allclose(drawn_curve["y"], shape.mean, atol=1e-4)
    assert drawn_curve["title"] == noise.unit


def test_less_important_shapes_are_collapsed(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 14)), columns=[f"x{k}" for k in range(14)])
    model = LANAMRegressor(interactions=0, noise="constant").fit(X, X.sum(axis=1))
    page = open_report(model.report(tmp_path / "many.html"))
    terms = [term.name for term in model.explain_global().active]
    assert len(terms) == 14
    count = """(place) => [...document.querySelectorAll(place)].map((title) => title.textContent)"""
    assert page.evaluate(count, "#shape-grid h3") == terms[:12]
    assert page.evaluate(count, "#more-shapes h3") == terms[12:]
    assert page.locator("#more-shapes summary").text_content() == "2 less important terms"
    assert not page.locator("#more-shapes h3").first.is_visible()
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#more-shapes h3").first.is_visible()
    assert page.evaluate("() => document.querySelector('#more-shapes .chart').data.length") > 0


def test_shared_or_separate_scales(drawn):
    page = drawn("gaussian")

    def ranges():
        return page.evaluate("""() => [...document.querySelectorAll("#shape-grid .chart")]
            .map((chart) => JSON.stringify(chart.layout.yaxis.range))""")

    assert len(set(ranges())) > 1
    page.check("#same-scale")
    assert len(set(ranges())) == 1
    page.uncheck("#same-scale")


def test_charts_are_drawn_lazily(open_report, report_of):
    page = open_report(report_of("gaussian"))
    assert page.locator(".chart").count() > page.locator(".js-plotly-plot").count()
    page.locator("#retention-chart").scroll_into_view_if_needed()
    page.wait_for_selector("#retention-chart.js-plotly-plot")


def test_a_print_has_every_chart(open_report, report_of):
    page = open_report(report_of("two"))
    n_charts = page.locator(".chart").count()
    assert page.locator(".js-plotly-plot").count() < n_charts
    page.pdf()
    assert page.locator(".js-plotly-plot").count() == n_charts
    page.emulate_media(media="print")
    # The inputs of a prediction are printed, the controls are not.
    assert page.is_visible("#responses")
    assert page.is_visible("#fields .name >> nth=0")
    assert not page.is_visible("input[type=range] >> nth=0")
    assert not page.is_visible("#reset")


# escaping of names


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


def test_hostile_classes_in_charts(drawn):
    page = drawn("many")
    legend = page.inner_text("#legend")
    assert all(name in legend for name in CLASSES)
    names = page.evaluate("() => document.querySelector('#shape-grid .chart').data[2].name")
    assert names == CLASSES[0].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_labels_of_pairs_do_not_overlap(tmp_path, open_report):
    """A pair of many categories has the whole width, and its labels are turned."""
    rng = np.random.default_rng(0)
    codes, x = rng.integers(20, size=1500), rng.uniform(-1, 1, 1500)
    X = pd.DataFrame({"shop": [f"shop {code:02d}" for code in codes], "x": x})
    y = rng.normal(size=20)[codes] * x + 0.1 * rng.normal(size=1500)
    model = LANAMRegressor(interactions=[("shop", "x")], noise="constant").fit(X, y)
    page = open_report(model.report(tmp_path / "pair.html"))
    page.evaluate("() => lanam.drawAll()")
    labels = page.locator("#pair-grid .chart").first.locator(".xtick text")
    labels.first.wait_for()
    boxes = labels.evaluate_all("""(all) => all.map((one) => one.getBoundingClientRect())
        .map((box) => [box.left, box.right])""")
    assert len(boxes) == 20
    assert all(one[1] <= other[0] for one, other in pairwise(boxes))
