"""Plots of many terms with awkward names are legible: nothing is cut off or depends on colours."""

import warnings
from dataclasses import replace
from itertools import combinations, pairwise

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.families import BERNOULLI
from lanam.interactions import InteractionScores
from lanam.metrics import reliability_curve, retention_curve
from lanam.plot import (
    plot_calibration,
    plot_importance,
    plot_interaction,
    plot_interaction_matrix,
    plot_local,
    plot_retention,
    plot_shapes,
)
from lanam.plot.common import write_left_label, write_notes
from lanam.text import cut

#: Plots do not need an accurate fit: small networks, and constant noise.
QUICK = {"hidden_sizes": (8,), "pair_hidden_sizes": (8,), "random_state": 0}
NUMBERS = QUICK | {"noise": "constant"}

AWKWARD = [
    "Ärztliche Vorbefunde über alle Aufenthalte (gewichtet, in Prozent)",
    "cost in $ per $ of revenue, before and after <b>tax</b>",
    "two\nlines in a name of a column that is long",
    "<script>alert('hello')</script>",
    "temperature_of_the_oven_while_it_was_being_baked_in_degrees_centigrade",
    "a_b^2",
    "\\alpha",
    " ",
]


@pytest.fixture(autouse=True)
def _no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


def wide_table(n_rows):
    rng = np.random.default_rng(0)
    more = [f"measurement of the second laboratory in the northern wing {k}" for k in range(20)]
    X = pd.DataFrame(rng.standard_normal((n_rows, 28)), columns=AWKWARD + more)
    sizes = np.linspace(1.0, 0.4, 28)
    y = X.to_numpy() @ sizes + 1.5 * X.iloc[:, 0] * X.iloc[:, 1]
    X.iloc[rng.random(n_rows) < 0.15, 3] = np.nan
    place = rng.integers(0, 40, n_rows)
    X["city of residence at the time of the first admission to the hospital"] = [
        f"city no. {k} in the very long list of all cities" for k in place
    ]
    X["sex"] = rng.choice(np.array(["f", "m", None], dtype=object), n_rows)
    y = y + rng.normal(0.0, 2.0, 40)[place] + (X["sex"] == "f")
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def wide():
    X, y = wide_table(700)
    model = LANAMRegressor(interactions=[(0, 1)], **NUMBERS).fit(X, y)
    explanation = model.explain_global()
    assert len(explanation.active) >= 29
    return explanation, model.explain_local(X[:9])


@pytest.fixture(scope="module")
def classes():
    X, y = wide_table(500)
    X = X.iloc[:, [0, 1, 3, 28, 29]]
    scores = np.column_stack([y, -y, X.iloc[:, 0], X.iloc[:, 1], np.zeros(len(y))])
    chosen = (scores + np.random.default_rng(0).gumbel(size=scores.shape)).argmax(axis=1)
    names = np.array(
        ["home", "a hospice that lies outside of the city", "$x$ $y$", "ward", "other\nplace"]
    )
    model = LANAMClassifier(interactions=1, **QUICK).fit(X, names[chosen])
    return model.explain_global(), model.explain_local(X[:9])


def texts_of(figure):
    return [
        text for text in figure.findobj(plt.Text) if text.get_text().strip() and text.get_visible()
    ]


def assert_nothing_is_cut_off(ax):
    """All artists lie within the figure."""
    figure = np.ravel(ax)[0].figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    frame = figure.bbox
    inner = [panel.get_tightbbox(renderer) for panel in figure.get_axes()]
    beside = [
        text.get_window_extent(renderer) for text in (figure._supxlabel, figure._supylabel) if text
    ]
    beside += [legend.get_window_extent(renderer) for legend in figure.legends]
    for box in inner + beside:
        assert box.x0 >= frame.x0 - 1
        assert box.y0 >= frame.y0 - 1
        assert box.x1 <= frame.x1 + 1
        assert box.y1 <= frame.y1 + 1
    # Notes and labels beside the panels do not overlap with them, nor with each other.
    for one, other in [*((a, b) for a in inner for b in beside), *combinations(beside, 2)]:
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        up = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert across < 2 or up < 2


def assert_labels_are_apart(ax, axis):
    ax.figure.canvas.draw()
    labels = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    ends = sorted((box.x0, box.x1) if axis == "x" else (box.y0, box.y1) for box in boxes)
    assert len(ends) > 1
    for (_, end), (start, _) in pairwise(ends):
        assert start >= end - 1.5


def assert_no_formulas(ax):
    for text in texts_of(np.ravel(ax)[0].figure):
        if "$" in text.get_text() or "\\" in text.get_text():
            assert not text.get_parse_math(), text.get_text()


def test_shapes(wide):
    axes = plot_shapes(wide[0])
    assert_nothing_is_cut_off(axes)
    assert_no_formulas(axes)
    width, height = axes[0].figure.get_size_inches()
    assert 0.6 < width / height < 1.6  # fits a page
    panels = [ax.get_window_extent() for ax in axes]
    dpi = axes[0].figure.dpi
    assert min(panel.height for panel in panels) > 1.4 * dpi
    assert min(panel.width for panel in panels) > 2.2 * dpi


@pytest.mark.parametrize("n_terms", [1, 2, 5])
def test_few_shapes(wide, n_terms):
    axes = plot_shapes(wide[0], max_terms=n_terms, simultaneous=True)
    assert len(axes) == n_terms
    assert_nothing_is_cut_off(axes)
    # Notes do not shrink the panels.
    assert axes[0].get_window_extent().height > 1.4 * axes[0].figure.dpi


@pytest.mark.parametrize("n_terms", [1, 4])
def test_long_units_are_wrapped(wide, n_terms):
    long = replace(wide[0], family=BERNOULLI, classes=("no", "yes, within thirty days of it"))
    axes = plot_shapes(long, max_terms=n_terms)
    assert_nothing_is_cut_off(axes)
    label = axes[0].figure.get_supylabel()
    assert label.replace("\n", " ") == "contribution to the log-odds of yes, within thirty da..."


@pytest.mark.parametrize("terms", [["sex"], None])
def test_shapes_of_classes(classes, terms):
    explanation = classes[0]
    axes = plot_shapes(explanation, terms)
    assert_nothing_is_cut_off(axes)
    assert_no_formulas(axes)
    (legend,) = axes[0].figure.legends
    looks = {(line.get_marker(), line.get_linestyle()) for line in legend.get_lines()}
    assert len(looks) == 5
    assert len({line.get_marker() for line in legend.get_lines()}) == 5


def test_curves_of_classes_have_marks(classes):
    explanation = classes[0]
    name = next(term.name for term in explanation.active if term.kind == "smooth")
    (ax,) = plot_shapes(explanation, [name])
    shape = explanation[name]
    curves = [line for line in ax.get_lines() if len(line.get_xdata()) >= len(shape.values) - 1]
    assert len({line.get_marker() for line in curves}) == 5
    assert all(line.get_markevery() for line in curves)


@pytest.mark.parametrize("everything", [False, True])
def test_local(wide, classes, everything):
    # Of the classes' first row the intervals exclude zero.
    for (_, local), row in ((wide, 8), (classes, 0)):
        ax = plot_local(local, row, everything=everything)
        assert_nothing_is_cut_off(ax)
        assert_no_formulas(ax)
        assert_labels_are_apart(ax, "y")


def test_importance(wide):
    ax = plot_importance(wide[0], max_terms=None)
    assert len(ax.patches) >= 29
    assert_nothing_is_cut_off(ax)
    assert_no_formulas(ax)
    assert_labels_are_apart(ax, "y")
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(set(names)) == len(names)
    assert all("\n" not in name for name in names)


def test_numbers_beside_bars_do_not_touch_them(wide):
    ax = plot_importance(wide[0])
    ax.figure.canvas.draw()
    right = max(bar.get_window_extent().x1 for bar in ax.patches)
    assert min(text.get_window_extent().x0 for text in ax.texts) > right


def test_the_matrix():
    names = [*wide_table(2)[0].columns]
    rows = [
        {
            "rank": rank,
            "pair": f"{names[i]} x {names[j]}",
            "features": (i, j),
            "order": 2,
            "feature_names": (names[i], names[j]),
            "score": 1000.0 / rank,
            "status": "active" if rank in (1, 400) else "left out: no gain expected",
        }
        for rank, (i, j) in enumerate(combinations(range(30), 2), start=1)
    ]
    scores = InteractionScores(tuple(rows), "evidence", tuple(names))
    ax = plot_interaction_matrix(scores)
    assert len(ax.get_yticklabels()) == 30
    assert_nothing_is_cut_off(ax)
    assert_no_formulas(ax)
    assert_labels_are_apart(ax, "x")
    assert_labels_are_apart(ax, "y")
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(set(names)) == 30
    (dots,) = (line for line in ax.get_lines() if line.get_label() == "in the model")
    assert dots.get_markeredgecolor() == "white"
    assert dots.get_markerfacecolor() != "white"


def test_pairs(wide, classes):
    for explanation in (wide[0], classes[0]):
        axes = plot_interaction(explanation)
        assert_nothing_is_cut_off(axes)
        assert_no_formulas(axes)


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(-2, 2, 600), "city": rng.choice(list("abc"), 600)})
    X.loc[rng.random(600) < 0.1, "age"] = np.nan
    slope = X["city"].map({"a": 1.0, "b": -1.0, "c": 0.0})
    y = X["age"].fillna(3.0) * slope + 0.1 * rng.standard_normal(600)
    model = LANAMRegressor(interactions=[("age", "city")], **NUMBERS).fit(X, y)
    return model.explain_global()


class TestSignsOfPairs:
    def test_below_zero_a_surface_is_hatched(self, wide):
        explanation = wide[0]
        (surface,) = explanation.pairs
        mean, std = plot_interaction(explanation)
        (area,) = (actual for actual in mean.collections if getattr(actual, "hatches", [None])[0])
        assert not [actual for actual in std.collections if getattr(actual, "hatches", [None])[0]]
        (path,) = area.get_paths()
        for i, j in ((3, 3), (3, -4), (-4, 3), (-4, -4)):
            point = surface.values[i], surface.second_values[j]
            assert path.contains_point(point) == (surface.mean[i, j] < 0)
        assert "Hatched: negative." in " ".join(
            t.get_text() for t in texts_of(mean.figure)
        ).replace("\n", " ")

    @pytest.mark.parametrize("shift", [-1e3, 0.0, 1e3])
    def test_tiles_below_zero_are_hatched(self, mixed, shift):
        surface = replace(mixed["age x city"], mean=mixed["age x city"].mean + shift)
        mean, _ = plot_interaction(replace(mixed, terms=(surface,)), kind="map")
        hatched = [patch for patch in mean.patches if patch.get_hatch()]
        inner = surface.values[surface.inside.any(axis=1)[: len(surface.values)]]
        for x in np.linspace(inner[0], inner[-1], 7)[1:-1]:
            for row in range(3):
                value = np.interp(x, surface.values, surface.mean[: len(surface.values), row])
                inside = [
                    patch.get_x() <= x <= patch.get_x() + patch.get_width()
                    and patch.get_y() < row < patch.get_y() + patch.get_height()
                    for patch in hatched
                ]
                if abs(value) > 0.1:
                    assert any(inside) == (value < 0)
        # So are missing ages, each city in its tile.
        slot = mean.get_xlim()[1] - 0.01
        actual = {
            round(patch.get_y() + patch.get_height() / 2)
            for patch in hatched
            if patch.get_x() <= slot <= patch.get_x() + patch.get_width()
        }
        missing_row = surface.mean[len(surface.values), :3]
        assert actual == {row for row in range(3) if missing_row[row] < 0}

    def test_the_colour_bar_is_hatched_alike(self, mixed):
        mean, _ = plot_interaction(mixed, kind="map")
        bar = next(ax for ax in mean.figure.get_axes() if ax.get_label() == "<colorbar>")
        (patch,) = (actual for actual in bar.patches if actual.get_hatch())
        assert patch.get_y() == bar.get_ylim()[0]
        assert patch.get_y() + patch.get_height() == pytest.approx(0.0)


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "area": rng.uniform(1e5, 9e5, n),
            "grade": rng.choice(np.array(["Ex", "Fa", "Gd", "TA", None], dtype=object), n),
            "income": rng.choice(["less than 25,000", "up to 50,000", "above 50,000"], n),
            "answer": rng.choice(["yes", "no", "perhaps"], n),
            "month": rng.choice([f"month {k}" for k in range(18)], n),
            "smoker": rng.choice([0.0, 1.0, np.nan], n),
        }
    )
    X.loc[rng.random(n) < 0.2, "area"] = np.nan
    y = X["area"].fillna(0) / 1e5 + (X["income"] == "up to 50,000") + X["smoker"].fillna(2)
    model = LANAMRegressor(interactions=0, **NUMBERS).fit(X, y + 0.1 * rng.standard_normal(n))
    return model.explain_global(), list(X)


class TestLabelsNeverCollide:
    """Measured after drawing, at the sizes at which plots are made."""

    def assert_apart(self, ax):
        ax.figure.canvas.draw()
        labels = [*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)]
        boxes = sorted(
            (label.get_window_extent() for label in labels if label.get_text()),
            key=lambda box: box.x0,
        )
        for first, second in pairwise(boxes):
            assert second.x0 >= first.x1 - 1.5

    @pytest.mark.parametrize("n_columns", [2, 6])
    def test_below_shapes(self, columns, n_columns):
        for ax in plot_shapes(*columns, n_columns=n_columns):
            self.assert_apart(ax)

    def test_in_panels_of_any_size(self, columns):
        for width in (1.5, 3.0, 9.0):
            _, axes = plt.subplots(1, 6, figsize=(width * 6, 2.0))
            for ax in plot_shapes(*columns, axes=axes):
                self.assert_apart(ax)

    def test_short_words_stay_horizontal(self, columns):
        (ax,) = plot_shapes(columns[0], ["answer"])
        assert {label.get_rotation() for label in ax.get_xticklabels()} == {0.0}
        (ax,) = plot_shapes(columns[0], ["month"])
        assert {label.get_rotation() for label in ax.get_xticklabels()} == {90.0}


def test_unseen_and_rare_values_do_not_set_the_scale(wide):
    (ax,) = plot_shapes(wide[0], ["sex"])
    shape = wide[0]["sex"]
    far = replace(
        shape, unseen_std=1e6, missing_std=1e6, missing_density=0.001, density=shape.density / 0.7
    )
    (other,) = plot_shapes(replace(wide[0], terms=(far,)), ["sex"])
    assert np.abs(other.get_ylim()).max() < 2 * np.abs(ax.get_ylim()).max()
    frequent = replace(shape, missing_std=1e6)
    (third,) = plot_shapes(replace(wide[0], terms=(frequent,)), ["sex"])
    assert third.get_ylim()[1] > 1e6


def test_calibration_and_retention():
    rng = np.random.default_rng(0)
    probability = rng.random(500)
    curve = reliability_curve(rng.random(500) < probability, probability)
    kept = retention_curve(rng.random(500) > 0.3, probability)
    long = "a model with a name of more than twenty-four characters"
    for draw, one in ((plot_calibration, curve), (plot_retention, kept)):
        for result in (one, {long: one, long + " too": one, "$x$ $y$": one}):
            ax = draw(result)
            assert_nothing_is_cut_off(ax)
            assert_no_formulas(ax)
    names = [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()]
    assert len(set(names)) == 3


def test_missing_glyphs(wide):
    explanation = wide[0]
    terms = tuple(replace(term, name="体温の最高値") for term in explanation.active[:1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        plot_importance(replace(explanation, terms=terms)).figure.canvas.draw()


class TestCut:
    def test_short_names_stay(self):
        assert cut(["age", "x" * 12], 12) == ["age", "x" * 12]

    def test_long_ones_are_cut_at_their_end(self):
        assert cut(["temperature of the oven"], 14) == ["temperature..."]

    def test_where_only_the_end_differs_in_the_middle(self):
        names = [f"temperature of the oven {k}" for k in range(20)]
        actual = cut(names, 16)
        assert len(set(actual)) == 20
        assert {len(name) for name in actual} == {16}
        assert actual[7] == "tempera...oven 7"

    def test_the_same_name_twice_is_cut_as_one(self):
        assert cut(["temperature of the oven"] * 2, 14) == ["temperature..."] * 2

    def test_in_one_line_and_to_be_seen(self):
        assert cut(["two\nlines", "", "  "], 16) == ["two lines", "''", "'  '"]


class TestNotes:
    def panel(self):
        figure, ax = plt.subplots(figsize=(4.0, 2.5), layout="constrained")
        figure.canvas.draw()
        return figure, ax, ax.get_window_extent()

    def test_they_do_not_shrink_the_panels(self):
        figure, ax, before = self.panel()
        height = write_notes(figure, ["many words " * 30, "more"])
        figure.canvas.draw()
        assert height > 0.8
        assert ax.get_window_extent().height > before.height - 0.1 * figure.dpi

    def test_a_label_beside_the_panels_stays_there(self):
        figure, _, _ = self.panel()
        below = write_notes(figure, ["many words " * 30])
        write_left_label(figure, "a long label that has to be wrapped to stay within", 0.0, below)
        figure.canvas.draw()
        box = figure._supylabel.get_window_extent()
        assert box.y0 > below * figure.dpi
        assert box.y1 < figure.bbox.y1
        assert figure.get_supylabel().count("\n") == 1

    def test_a_label_beside_the_panels_with_a_legend(self):
        figure, _, _ = self.panel()
        write_left_label(figure, "label", 1.0, 0.0)
        figure.canvas.draw()
        box = figure._supylabel.get_window_extent()
        assert 0.5 * (box.y0 + box.y1) == pytest.approx(0.75 * figure.dpi, abs=2)


class TestBands:
    def test_they_fit_into_the_panels(self, wide):
        name = next(term.name for term in wide[0].active if term.kind == "smooth")
        limits = [
            plot_shapes(wide[0], [name], coverage=0.9, simultaneous=simultaneous)[0].get_ylim()
            for simultaneous in (False, True)
        ]
        assert limits[1][0] < limits[0][0]
        assert limits[1][1] > limits[0][1]
        narrow = plot_shapes(wide[0], [name], coverage=0.1)[0].get_ylim()
        assert limits[0][0] < narrow[0]
        assert limits[0][1] > narrow[1]

    def band(self, ax):
        return ax.collections[0].get_paths()[0].vertices[:, 1]

    @pytest.mark.parametrize("coverage", [0.5, 0.99])
    def test_coverage(self, wide, coverage):
        explanation = wide[0]
        name = next(term.name for term in explanation.active if term.kind == "smooth")
        shape = explanation[name]
        (ax,) = plot_shapes(explanation, [name], coverage=coverage)
        lower, upper = shape.band(coverage)
        assert self.band(ax).max() == pytest.approx(upper.max())
        assert self.band(ax).min() == pytest.approx(lower.min())
        note = " ".join(text.get_text() for text in texts_of(ax.figure)).replace("\n", " ")
        assert f"Band: {100 * coverage:g}% pointwise credible interval." in note
        assert "two standard deviations" not in note
        with pytest.raises(ValueError, match="must lie between 0 and 1"):
            plot_shapes(explanation, [name], coverage=1.5)

    def test_simultaneous_bands_are_lines_around(self, wide):
        explanation = wide[0]
        name = next(term.name for term in explanation.active if term.kind == "smooth")
        shape = explanation[name]
        (ax,) = plot_shapes(explanation, [name], coverage=0.9, simultaneous=True)
        inside = shape.inside
        actual = [
            line.get_ydata() for line in ax.get_lines() if len(line.get_xdata()) == inside.sum()
        ]
        lower, upper = shape.band(0.9, simultaneous=True)
        assert any(np.allclose(line, lower[inside]) for line in actual)
        assert any(np.allclose(line, upper[inside]) for line in actual)
        assert self.band(ax).max() == pytest.approx(shape.band(0.9)[1].max())
        low, high = ax.get_ylim()
        bulk = inside & (np.cumsum(shape.density) > 0.01) & (np.cumsum(shape.density) < 0.99)
        assert low < lower[bulk].min()
        assert high > upper[bulk].max()
        note = " ".join(text.get_text() for text in texts_of(ax.figure)).replace("\n", " ")
        assert "90% simultaneous credible band" in note

    def test_bands_of_categories_and_classes(self, classes):
        explanation = classes[0]
        shape = explanation["sex"]
        (ax,) = plot_shapes(explanation, ["sex"], simultaneous=True, classes=["home", "ward"])
        places = [list(explanation.classes).index(name) for name in ("home", "ward")]
        segments = [np.array(actual.get_segments()) for actual in ax.collections]
        for k in places:
            for simultaneous in (False, True):
                lower, upper = shape.band(0.95, simultaneous=simultaneous)
                expected = np.column_stack([lower[:, k], upper[:, k]])
                assert any(
                    len(actual) == 2 and np.allclose(actual[:, :, 1], expected)
                    for actual in segments
                )
        # Simultaneous bands cover missing values, but not unseen categories.
        singles = [actual for actual in segments if len(actual) == 1]
        assert len(singles) == 2 * 2 + 2


def test_max_terms(wide):
    explanation = wide[0]
    axes = plot_shapes(explanation, max_terms=4)
    singles = [term for term in explanation.active if term.kind != "pair"]
    assert len(axes) == 4
    note = " ".join(text.get_text() for text in texts_of(axes[0].figure)).replace("\n", " ")
    assert f"{len(singles) - 4} terms are active but not shown" in note


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return LANAMRegressor(interactions=[(0, 1)], **NUMBERS).fit(X, X[:, 0] * X[:, 1]), X


@pytest.fixture(scope="module")
def drawings(small):
    model, X = small
    curve = reliability_curve([0, 1, 1], [0.2, 0.7, 0.9])
    explanation, local = model.explain_global(), model.explain_local(X[:2])
    kept = retention_curve(np.ones(5), np.arange(5.0))
    return {
        "importance": lambda ax: plot_importance(explanation, ax),
        "local": lambda ax: plot_local(local, 0, ax),
        "calibration": lambda ax: plot_calibration(curve, ax),
        "retention": lambda ax: plot_retention(kept, ax),
        "matrix": lambda ax: plot_interaction_matrix(model.interaction_scores_, ax),
    }


class TestRefusals:
    """Invalid axes, and plots of nothing."""

    @pytest.mark.parametrize("name", ["importance", "local", "calibration", "retention", "matrix"])
    def test_one_axes_is_required(self, drawings, name):
        with pytest.raises(
            TypeError, match=r"ax(es)? must be one Axes of matplotlib, and is 3: as plt"
        ):
            drawings[name](3)
        several = plt.subplots(1, 2)[1]
        with pytest.raises(
            TypeError, match=r"and is 2 in ndarray: pass one of them, as ax(es)?=axes"
        ):
            drawings[name](several)
        assert drawings[name](several[1]) is several[1]

    def test_axes_are_required(self, small):
        explanation = small[0].explain_global()
        with pytest.raises(TypeError, match="every one of axes must be one Axes of matplotlib"):
            plot_shapes(explanation, axes=3)
        with pytest.raises(TypeError, match="every one of axes must be one Axes of matplotlib"):
            plot_interaction(explanation, axes=[plt.subplots()[1], "here"])

    def test_empty_plots_are_refused(self, small):
        model, X = small
        explanation = model.explain_global()
        for most in (0, -1, 2.0, True):
            for draw in (
                lambda most: plot_importance(explanation, max_terms=most),
                lambda most: plot_shapes(explanation, max_terms=most),
                lambda most: plot_local(model.explain_local(X[:2]), 0, max_terms=most),
            ):
                with pytest.raises(
                    ValueError, match=f"max_terms={most} must be an integer of at least 1"
                ):
                    draw(most)
        for draw in (plot_importance, plot_shapes):
            with pytest.raises(ValueError, match="terms is empty: pass at least one"):
                draw(explanation, terms=[])
            with pytest.raises(TypeError, match=r"terms is a string.*terms=\['x0'\]"):
                draw(explanation, terms="x0")


def test_names_that_differ_at_the_end_have_distinct_labels(wide):
    long = "a" * 299
    terms = [replace(wide[0].shapes[0], name=long + end) for end in "bc"]
    labels = [ax.get_xlabel() for ax in plot_shapes(replace(wide[0], terms=tuple(terms)))]
    assert labels[0].splitlines()[1].endswith("ab")
    assert labels[1].splitlines()[1].endswith("ac")
    assert all(len(line) <= 36 for label in labels for line in label.splitlines())
