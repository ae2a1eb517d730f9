"""Plots show the values of the explanation."""

import builtins
from dataclasses import replace
from itertools import combinations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.inference.options import Options
from lanam.data import as_frame, learn_table
from lanam.explain import explain_global
from lanam.families import BERNOULLI
from lanam.interactions import InteractionScores
from lanam.plot import plot_interaction, plot_interaction_matrix, plot_shapes
from lanam.plot.curves import STRIP
from tests.core import in_memory

#: Plots do not need an accurate fit: small networks, and constant noise.
QUICK = {"hidden_sizes": (8,), "pair_hidden_sizes": (8,), "random_state": 0}
NUMBERS = QUICK | {"noise": "constant"}


@pytest.fixture(autouse=True)
def _no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    recipe = rng.integers(0, 150, 1500)
    X = pd.DataFrame(
        {
            "recipe": recipe.astype(float),
            "temperature of the oven while it was being baked, in degrees": rng.uniform(
                100, 250, 1500
            ),
            "sex": rng.integers(1, 3, 1500).astype(float),
            "noise": rng.standard_normal(1500),
        }
    )
    y = rng.normal(0.0, 1.0, 150)[recipe] + 0.02 * X.iloc[:, 1] + X["sex"]
    return X, (y + 0.3 * rng.standard_normal(1500)).to_numpy()


@pytest.fixture(scope="module")
def explanation(data):
    return LANAMRegressor(**NUMBERS).fit(*data).explain_global()


def words(figure):
    return " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(plt.Text))


def test_a_panel_for_each_active_term_most_important_first(explanation):
    axes = plot_shapes(explanation)
    labels = [ax.get_xlabel().replace("\n", " ") for ax in axes]
    assert labels == [shape.name for shape in explanation.active]
    assert axes.flat[0].figure.get_axes() == list(axes)


def test_the_note_names_dropped_terms(explanation):
    figure = plot_shapes(explanation)[0].figure
    n_off = len(explanation.switched_off)
    assert f"{n_off} of {len(explanation)} terms are dropped" in words(figure)
    assert "noise" in words(figure)
    assert "contribution to the prediction" in words(figure)


OVEN = "temperature of the oven while it was being baked, in degrees"


def test_mean_and_band_of_two_standard_deviations(explanation):
    (ax,) = plot_shapes(explanation, terms=[OVEN])
    shape = explanation[OVEN]
    line = max(ax.get_lines(), key=lambda line: len(line.get_xdata()))
    np.testing.assert_array_equal(line.get_xdata(), shape.values)
    np.testing.assert_array_equal(line.get_ydata(), shape.mean)
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((shape.mean + 2 * shape.std).max())
    assert band[:, 1].min() == pytest.approx((shape.mean - 2 * shape.std).min())


def test_two_values_are_dots_with_error_bars(explanation):
    (ax,) = plot_shapes(explanation, terms=["sex"])
    shape = explanation["sex"]
    seen = shape.density > 0.0
    (marks,) = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(marks.get_xdata(), [1.0, 2.0])
    np.testing.assert_array_equal(marks.get_ydata(), shape.mean[seen])
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(np.ptp(segments[:, :, 1], axis=1), 4 * shape.std[seen])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2"]
    assert ax.get_xlim() == (0.5, 2.5)  # nothing between or beyond them


def test_few_values_are_marked(data):
    X = data[0][["sex"]] + np.where(np.arange(1500) % 5 == 0, 1.0, 0.0)[:, None]
    shape = LANAMRegressor(**NUMBERS).fit(X, data[1]).explain_global()
    (ax,) = plot_shapes(shape, terms=["sex"])
    marks = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(marks[0].get_xdata(), [1.0, 2.0, 3.0])


def test_single_values_have_error_bars(explanation):
    (ax,) = plot_shapes(explanation, terms=["recipe (levels)"])
    shape = explanation["recipe (levels)"]
    marks = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(marks[0].get_ydata(), shape.mean)
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(np.ptp(segments[:, :, 1], axis=1), 4 * shape.std)


def test_panels_share_a_scale_that_shows_every_curve(explanation):
    axes = plot_shapes(explanation, share_y=True)
    low, high = axes[0].get_ylim()
    assert all(ax.get_ylim() == (low, high) for ax in axes)
    for shape in explanation.active:
        assert low < shape.mean[shape.inside].min()
        assert high > shape.mean[shape.inside].max()


def test_separate_scales(explanation):
    axes = plot_shapes(explanation)
    assert len({ax.get_ylim() for ax in axes}) == len(axes) > 1
    for ax, shape in zip(axes, explanation.active, strict=True):
        (alone,) = plot_shapes(explanation, terms=[shape.name])
        assert ax.get_ylim() == alone.get_ylim()


def test_limits_of_the_panel(explanation):
    (ax,) = plot_shapes(explanation, terms=[OVEN])
    left, right = ax.get_xlim()
    assert 85 < left < 100
    assert 250 < right < 265
    shaded = [patch for patch in ax.patches if patch.get_facecolor()[:3] == (0.93,) * 3]
    assert len(shaded) == 2


def test_outliers_are_cut_off_and_counted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.standard_normal(1000)})
    X.iloc[0, 0] = 1e4
    y = np.where(X["a"] > 0, 1.0, -1.0) + 0.1 * rng.standard_normal(1000)
    (ax,) = plot_shapes(LANAMRegressor(**NUMBERS).fit(X, y).explain_global(), terms=["a"])
    assert ax.get_xlim()[1] < 10
    assert "% of the data are not shown" in ax.get_xlabel()


def test_given_axes(explanation):
    figure, own = plt.subplots(2, 2)
    axes = plot_shapes(explanation, terms=["sex"], axes=own)
    assert list(axes) == [own[0, 0]]
    assert figure.get_supylabel() == ""
    one = plot_shapes(explanation, terms=["sex"], axes=own[1, 1])
    assert list(one) == [own[1, 1]]
    with pytest.raises(ValueError, match="2 terms need as many axes, and there are 1"):
        plot_shapes(explanation, terms=["sex", "recipe (levels)"], axes=own[1, 1])


def test_active_terms_that_are_not_shown_are_counted(explanation):
    figure = plot_shapes(explanation, terms=["sex"])[0].figure
    hidden = len(explanation.active) - 1
    assert f"{hidden} terms are active but not shown" in words(figure)


def test_unknown_terms(explanation):
    with pytest.raises(KeyError, match="no term 'age'"):
        plot_shapes(explanation, terms=["age"])


def test_a_model_without_active_terms(data):
    model = LANAMRegressor(**NUMBERS).fit(np.ones((1500, 2)), data[1])
    axes = plot_shapes(model.explain_global())
    assert "no term is active" in words(axes.flat[0].figure)


def test_a_classifier_is_plotted_in_log_odds(data):
    model = LANAMClassifier(**QUICK).fit(data[0], data[1] > np.median(data[1]))
    assert "log-odds" in words(plot_shapes(model.explain_global())[0].figure)


def test_a_figure_can_be_written(explanation, tmp_path):
    figure = plot_shapes(explanation, n_columns=2)[0].figure
    figure.savefig(tmp_path / "shapes.png", dpi=50)
    assert (tmp_path / "shapes.png").stat().st_size > 1000


def test_without_matplotlib_the_remedy_is_named(explanation, monkeypatch):
    original = builtins.__import__

    def refuse(name, *arguments, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install lanam\[plot\]"):
        plot_shapes(explanation)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, size=(200, 3)), columns=["a", "b", "c"])
    y = X["a"] * X["c"] + 0.5 * X["b"] * X["c"] + X["b"] + 0.1 * rng.standard_normal(200)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def with_pairs(table):
    # The candidate "a x b" is dropped.
    return LANAMRegressor(interactions=3, **NUMBERS).fit(*table)


@pytest.fixture(scope="module")
def pairs(with_pairs):
    return with_pairs.explain_global()


def drawn(ax):
    """The values of a panel's surface, before the colour limits."""
    return ax.collections[0].get_array()


class TestPlotInteraction:
    def test_the_most_important_interaction_by_default(self, pairs):
        mean, std = plot_interaction(pairs)
        surface = pairs["a x c"]
        np.testing.assert_array_equal(np.ravel(drawn(mean)), surface.mean.T.ravel())
        np.testing.assert_array_equal(np.ravel(drawn(std)), surface.std.T.ravel())
        assert [mean.get_xlabel(), mean.get_ylabel()] == ["a", "c"]
        assert [mean.get_title(), std.get_title()] == ["mean", "standard deviation"]
        assert "Greyed out: no data" in words(mean.figure)

    @pytest.mark.parametrize("term", ["b x c", ("b", "c"), ("c", "b"), ["b", "c"]])
    def test_one_by_name(self, pairs, term):
        mean, _ = plot_interaction(pairs, term)
        np.testing.assert_array_equal(np.ravel(drawn(mean)), pairs["b x c"].mean.T.ravel())
        assert [mean.get_xlabel(), mean.get_ylabel()] == ["b", "c"]

    def test_colours_are_symmetric_and_reach_what_the_data_shows(self, pairs):
        mean, std = plot_interaction(pairs)
        surface = pairs["a x c"]
        seen = surface.density > 0.0
        low, high = mean.collections[0].get_clim()
        assert -low == high == np.abs(surface.mean[seen]).max()
        assert std.collections[0].get_clim() == (0.0, surface.std[seen].max())

    def test_the_panel_is_the_datas_range(self, pairs, table):
        mean, std = plot_interaction(pairs)
        for ax in (mean, std):
            assert ax.get_xlim() == pytest.approx((table[0]["a"].min(), table[0]["a"].max()))
            assert ax.get_ylim() == pytest.approx((table[0]["c"].min(), table[0]["c"].max()))

    def test_cells_without_data_are_greyed_out(self, pairs):
        mean, _ = plot_interaction(pairs)
        veil = mean.collections[1].get_array()
        surface = pairs["a x c"]
        for i, j in np.ndindex(veil.shape):
            corners = surface.density[j : j + 2, i : i + 2]
            assert bool(np.ma.getmaskarray(veil)[i, j]) == bool(corners.any())
        assert 0 < np.ma.getmaskarray(veil).sum() < veil.size

    def test_given_axes(self, pairs):
        figure, own = plt.subplots(1, 2)
        axes = plot_interaction(pairs, axes=own)
        assert list(axes) == list(own)
        assert figure.get_supxlabel() == ""
        assert len(figure.get_axes()) == 4  # with colour bars

    @pytest.mark.parametrize("n_axes", [1, 3])
    def test_other_numbers_of_axes(self, pairs, n_axes):
        _, own = plt.subplots(1, n_axes)
        with pytest.raises(ValueError, match=f"needs two axes, and there are {n_axes}"):
            plot_interaction(pairs, axes=own)

    @pytest.mark.parametrize("term", ["a", "a x b", "a x d", "c x a", ("a", "d"), ("a", "a"), ()])
    def test_unknown_interactions(self, pairs, term):
        with pytest.raises(KeyError, match=r"no interaction .* has \['a x c', 'b x c'\]"):
            plot_interaction(pairs, term)

    def test_no_active_interaction(self, explanation):
        with pytest.raises(ValueError, match="no interaction is active"):
            plot_interaction(explanation)

    def test_units(self, pairs, table):
        assert "prediction" in words(plot_interaction(pairs)[0].figure)
        model = LANAMClassifier(**QUICK).fit(table[0], table[1] > 0)
        figure = plot_interaction(model.explain_global())[0].figure
        assert "log-odds" in words(figure)
        assert "prediction" not in words(figure)

    def test_contours_of_significance(self, pairs):
        mean, _ = plot_interaction(pairs)
        assert {"-4 sd", "-2 sd", "2 sd", "4 sd"} & {text.get_text() for text in mean.texts}

    def test_two_values_by_two(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (80, 2)).astype(float)
        y = (X[:, 0] != X[:, 1]) + 0.1 * rng.standard_normal(80)
        axes = plot_interaction(LANAMRegressor(**NUMBERS).fit(X, y).explain_global())
        assert axes[0].get_xlim() == (0.0, 1.0)
        axes[0].figure.canvas.draw()

    @pytest.mark.parametrize("scale", [1e-300, 1e300])
    def test_columns_of_any_scale(self, table, scale):
        model = LANAMRegressor(**NUMBERS).fit(table[0] * scale, table[1])
        plot_interaction(model.explain_global())[0].figure.canvas.draw()

    def test_curves_and_surfaces_have_separate_plots(self, pairs):
        axes = plot_shapes(pairs)
        assert [ax.get_xlabel() for ax in axes] == [
            shape.name for shape in pairs.active if shape.kind == "smooth"
        ]
        note = words(axes[0].figure)
        assert "Interactions (see plot_interaction): a x c, b x c." in note
        assert "active but not shown" not in note
        with pytest.raises(ValueError, match="use plot_interaction"):
            plot_shapes(pairs, terms=["a x c"])


def dots_of(ax):
    """The marks of interactions in the model."""
    actual = [line for line in ax.get_lines() if line.get_label() == "in the model"]
    return actual[0] if actual else None


class TestPlotInteractionMatrix:
    def test_scores_dots_and_names(self, with_pairs):
        scores = with_pairs.interaction_scores_
        ax = plot_interaction_matrix(scores)
        np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), scores.matrix())
        assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
        dots = dots_of(ax)
        places = {(round(x), round(y + 0.32)) for x, y in dots.get_xydata()}
        assert places == {(0, 2), (2, 0), (1, 2), (2, 1)}
        assert len(ax.texts) == 6
        for text in ax.texts:
            j, i = (round(place) for place in text.get_position())
            # With one decimal, or none.
            assert float(text.get_text()) == pytest.approx(scores.matrix()[i, j], abs=0.51)
        assert "score: log evidence gain (nats)" in words(ax.figure)
        assert ax.get_title(loc="left") == "Dots: interactions in the model."

    def test_other_scores_have_no_nats(self, table):
        model = LANAMRegressor(
            interactions=1, interaction_score="mutual_information", **NUMBERS
        ).fit(*table)
        text = words(plot_interaction_matrix(model.interaction_scores_).figure)
        assert "score: mutual_information" in text
        assert "nats" not in text

    def test_given_axes(self, with_pairs):
        figure, own = plt.subplots()
        assert plot_interaction_matrix(with_pairs.interaction_scores_, axes=own) is own
        assert len(figure.get_axes()) == 2

    def test_no_pairs(self, table):
        one = LANAMRegressor(**NUMBERS).fit(table[0][["a"]], table[1])
        none = LANAMRegressor(interactions=0, **NUMBERS).fit(*table)
        for model in (one, none):
            with pytest.raises(
                ValueError, match=r"no interactions were scored: .* add_interactions"
            ):
                plot_interaction_matrix(model.interaction_scores_)

    def test_only_scores_of_zero(self):
        model = LANAMRegressor(**NUMBERS).fit(np.ones((30, 3)), np.arange(30.0))
        ax = plot_interaction_matrix(model.interaction_scores_)
        ax.figure.canvas.draw()
        assert dots_of(ax) is None

    def test_of_many_columns_those_with_the_best_scores(self):
        rows = [
            {
                "rank": rank,
                "order": 2,
                "pair": f"x{i} x x{j}",
                "features": (i, j),
                "feature_names": (f"x{i}", f"x{j}"),
                "score": float(i + 1),
                "status": "active" if (i, j) == (48, 49) else "left out: no gain expected",
            }
            for rank, (i, j) in enumerate(combinations(range(50), 2), start=1)
        ]
        ax = plot_interaction_matrix(
            InteractionScores(tuple(rows), "evidence", tuple(f"x{k}" for k in range(50)))
        )
        # A column's best score is its index, plus one except for the last.
        names = [label.get_text() for label in ax.get_xticklabels()]
        assert names == [f"x{k}" for k in range(10, 50)]
        assert "10 columns with lower scores are not shown" in ax.get_title(loc="left")
        assert not ax.texts
        dots = dots_of(ax)
        assert {tuple(place) for place in dots.get_xydata()} == {(38.0, 39.0), (39.0, 38.0)}


class TestNames:
    def test_dollar_signs_are_verbatim(self, table):
        X = table[0].set_axis(["income ($) per rent ($)", "a_$^$", "{$x$}"], axis=1)
        model = LANAMRegressor(interactions=3, **NUMBERS).fit(X, table[1])
        figures = [
            plot_shapes(model.explain_global())[0].figure,
            plot_interaction(model.explain_global())[0].figure,
            plot_interaction_matrix(model.interaction_scores_).figure,
        ]
        for figure in figures:
            figure.canvas.draw()
            named = [text for text in figure.findobj(plt.Text) if "$" in text.get_text()]
            assert named
            assert not any(text.get_parse_math() for text in named)

    def test_long_names_are_cut_and_distinct(self, table):
        X = table[0].rename(columns=lambda name: f"{name}_{'long' * 20}")
        model = LANAMRegressor(**NUMBERS).fit(X, table[1])
        ax = plot_interaction_matrix(model.interaction_scores_)
        names = [label.get_text() for label in ax.get_xticklabels()]
        assert [name[:6] for name in names] == ["a_long", "b_long", "c_long"]
        assert {len(name) for name in names} == {24}
        axes = plot_interaction(model.explain_global())
        assert axes[0].get_xlabel().replace("\n", "") == X.columns[0][:69] + "..."


@pytest.fixture(scope="module")
def shops():
    """Sales of shops: few and many categories, missing values, and all kinds of interactions."""
    rng = np.random.default_rng(0)
    n_rows = 1500
    city = rng.choice(["Bonn", "Rome", "Oslo"], n_rows, p=[0.5, 0.3, 0.2])
    size = rng.choice(["small", "large"], n_rows)
    shop = np.minimum(rng.geometric(0.04, n_rows), 70)
    age, missing = rng.uniform(0.0, 10.0, n_rows), rng.random(n_rows) < 0.2
    y = rng.normal(0.0, 1.0, 71)[shop] + (city == "Rome") * 0.2 * age + 1.5 * missing
    y += 1.0 * ((city == "Oslo") & (size == "large")) + 0.7 * missing * (size == "large")
    X = pd.DataFrame(
        {
            "age": np.where(missing, np.nan, age),
            "city": np.where(rng.random(n_rows) < 0.1, None, city),
            "size": size,
            "shop": [f"shop ${number:02d}$ of a long name" for number in shop],
            "weight": rng.standard_normal(n_rows),
        }
    )
    X.loc[rng.random(n_rows) < 0.05, "weight"] = np.nan
    y += np.where(X["weight"].isna(), 0.3 * age, 0.3 * X["weight"].fillna(0.0) * age)
    return X, y + 0.2 * rng.standard_normal(n_rows)


@pytest.fixture(scope="module")
def sales(shops):
    pairs = [("age", "city"), ("city", "size"), ("age", "weight"), ("size", "age")]
    return LANAMRegressor(interactions=pairs, **NUMBERS).fit(*shops).explain_global()


def marks(ax, marker="o"):
    """Lines of an Axes with one kind of marker, filled or hollow."""
    return [
        line for line in ax.get_lines() if line.get_marker() == marker and len(line.get_xdata())
    ]


def tick_words(ax):
    return [label.get_text() for label in ax.get_xticklabels(which="both")]


class TestLevels:
    def test_categories_are_dots_with_error_bars(self, sales):
        (ax,) = plot_shapes(sales, terms=["city"])
        shape = sales["city"]
        assert tick_words(ax) == ["Bonn", "Oslo", "Rome", "missing", "unseen"]
        levels, new = marks(ax)
        np.testing.assert_array_equal(levels.get_xdata(), [0.0, 1.0, 2.0])
        np.testing.assert_array_equal(levels.get_ydata(), shape.mean)
        segments = np.array(ax.collections[0].get_segments())
        np.testing.assert_allclose(np.ptp(segments[:, :, 1], axis=1), 4 * shape.std)
        assert new.get_markerfacecolor() == "white"
        assert new.get_ydata() == [shape.unseen_mean]
        (missing,) = marks(ax, "D")
        assert missing.get_ydata() == [shape.missing_mean]
        assert ax.get_xlabel() == f"city\n({shape.missing_density:.1%} missing)"

    def test_bars_below_are_the_data(self, sales):
        (ax,) = plot_shapes(sales, terms=["city"])
        shape = sales["city"]
        heights = np.array([patch.get_height() for patch in ax.patches])
        shares = np.array([*shape.density, shape.missing_density])
        np.testing.assert_allclose(heights / heights[0], shares / shares[0])

    def test_bars_of_mostly_missing_columns_are_low(self):
        """The bar of missing values is the highest, that of each value is in proportion."""
        rng = np.random.default_rng(0)
        held = rng.random(1000) < 0.05
        names = np.where(rng.random(1000) < 0.5, "a", "b").astype(object)
        names[~held] = None
        x = np.where(held, rng.uniform(size=1000), np.nan)
        y = held * (3.0 * (names == "a") + 5.0 * np.nan_to_num(x)) + 0.1 * rng.normal(size=1000)
        model = LANAMRegressor(interactions=0).fit(pd.DataFrame({"name": names, "x": x}), y)
        explanation = model.explain_global()
        for term in ("name", "x"):
            (ax,) = np.ravel(plot_shapes(explanation, terms=[term]))
            *values, missing = [bar.get_height() for bar in ax.patches if bar.get_height() < 0.5]
            assert missing > 0.9 * (STRIP - 0.02)
            assert 0.0 < max(values) < 0.06 * missing

    def test_rare_categories_are_grouped_with_unseen_ones(self, sales):
        shape = sales["city"]
        rare = replace(shape, density=0.9 * shape.density, unseen_density=0.1 * shape.density.sum())
        (ax,) = plot_shapes(replace(sales, terms=(rare,)))
        assert tick_words(ax)[-2:] == ["missing", "other categories"]
        assert len(ax.patches) == len(shape.values) + 2
        assert "Other categories: rare or unseen." in words(ax.figure)
        (ax,) = plot_shapes(replace(sales, terms=(shape,)))
        assert "Other categories" not in words(ax.figure)

    def test_the_most_frequent_of_many_categories(self, sales):
        (ax,) = plot_shapes(sales, terms=["shop"])
        shape = sales["shop"]
        n_levels = len(shape.values)
        assert n_levels > 40
        shown = np.sort(np.argsort(-shape.density, kind="stable")[:20])
        np.testing.assert_array_equal(marks(ax)[0].get_ydata(), shape.mean[shown])
        assert f"(20 of {n_levels} categories, " in ax.get_xlabel()
        names = tick_words(ax)
        assert len(names) == 21
        assert {len(name) for name in names[:20]} == {16}
        assert not any(label.get_parse_math() for label in ax.get_xticklabels()[:20])
        ax.figure.canvas.draw()

    def test_labels_are_legible(self, shops):
        names = {"Bonn": "", "Rome": "two\nlines", "Oslo": "  "}
        X = shops[0][["city"]].replace(names)
        model = LANAMRegressor(**NUMBERS, categorical_features=["city"]).fit(X, shops[1])
        (ax,) = plot_shapes(model.explain_global())
        assert tick_words(ax)[:3] == ["''", "'  '", "two lines"]

    def test_the_key_explains_the_marks(self, sales):
        note = words(plot_shapes(sales)[0].figure)
        assert "Dots: categories. Hollow: unseen category." in note
        assert "Diamonds: missing values." in note
        note = words(plot_shapes(sales, terms=["size"])[0].figure)
        assert "Diamonds" not in note
        assert "Line" not in note

    def test_all_marks_are_within_the_panels(self, sales):
        axes = plot_shapes(sales)
        low, high = axes[0].get_ylim()
        for shape in sales.active:
            if shape.kind == "pair":
                continue
            for _, mean, std, _ in shape.others:
                assert low < mean - 2 * std
                assert mean + 2 * std < high


class TestMissing:
    def test_a_diamond_beside_the_curve(self, sales, shops):
        (ax,) = plot_shapes(sales, terms=["age"])
        shape = sales["age"]
        (mark,) = marks(ax, "D")
        assert mark.get_ydata() == [shape.missing_mean]
        assert mark.get_xdata()[0] > shops[0]["age"].max()
        assert "missing" in tick_words(ax)
        assert ax.get_xlabel() == f"age\n({shape.missing_density:.0%} missing)"
        (segment,) = ax.collections[1].get_segments()
        assert np.ptp(segment[:, 1]) == pytest.approx(4 * shape.missing_std)
        # The curve does not reach it.
        curve = max(ax.get_lines(), key=lambda line: len(line.get_xdata()))
        assert curve.get_xdata().max() < mark.get_xdata()[0]
        assert mark.get_xdata()[0] < ax.get_xlim()[1]

    def test_no_diamond_without_missing_values(self, explanation):
        for ax in plot_shapes(explanation):
            assert not marks(ax, "D")
            assert "missing" not in ax.get_xlabel()

    def test_single_values_with_missing_values(self):
        rng = np.random.default_rng(0)
        recipe = rng.integers(0, 60, 900).astype(float)
        y = rng.normal(0.0, 1.0, 60)[recipe.astype(int)] + 0.1 * rng.standard_normal(900)
        recipe[:90] = np.nan
        model = LANAMRegressor(**NUMBERS).fit(pd.DataFrame({"recipe": recipe}), y)
        (ax,) = plot_shapes(model.explain_global(), terms=["recipe (levels)"])
        assert len(marks(ax)[0].get_xdata()) == 60
        assert len(marks(ax, "D")) == 1

    def test_empty_and_duplicate_columns(self, shops):
        X = shops[0][["city", "age"]].assign(empty=np.nan, again=shops[0]["age"], one="x")
        explanation = LANAMRegressor(**NUMBERS).fit(X, shops[1]).explain_global()
        axes = plot_shapes(explanation, terms=["empty", "again", "one"])
        assert "no values" in axes[0].get_xlabel()
        assert "same values" in axes[1].get_xlabel()
        assert tick_words(axes[2]) == ["x"]
        axes[0].figure.canvas.draw()


class TestTiles:
    def test_categories_are_vertical_beside_numbers(self, sales):
        for name in ("age x city", "age x size", "size x age"):
            if name not in [pair.name for pair in sales.pairs]:
                continue
            mean, std = plot_interaction(sales, name, kind="map")
            assert [mean.get_title(), std.get_title()] == ["mean", "standard deviation"]
            assert mean.get_xlabel() == std.get_xlabel() == "age"
            assert mean.get_ylabel() in ("city", "size")
            mean.figure.canvas.draw()

    def test_numbers_beside_categories(self, sales):
        surface = sales["age x city"]
        mean, _ = plot_interaction(sales, "age x city", kind="map")
        labels = [label.get_text() for label in mean.get_yticklabels()]
        assert labels == ["Bonn", "Oslo", "Rome", "missing"]
        assert "missing" in tick_words(mean)
        # Values and missing values of either column: four blocks of tiles, each with a mask.
        assert len(mean.collections) == 8
        block = np.asarray(mean.collections[0].get_array())
        middles = 0.5 * (
            np.linspace(*main_range(surface), 81)[1:] + np.linspace(*main_range(surface), 81)[:-1]
        )
        expected = [
            np.interp(middles, surface.values, surface.mean[: len(surface.values), k])
            for k in range(3)
        ]
        np.testing.assert_allclose(block, expected)
        n_values = len(surface.values)
        np.testing.assert_array_equal(
            np.ravel(mean.collections[4].get_array()), surface.mean[n_values, :3]
        )
        assert np.ravel(mean.collections[6].get_array()) == [surface.mean[n_values, 3]]

    def test_numbers_are_written_into_few_tiles(self, sales):
        surface = sales["city x size"]
        mean, std = plot_interaction(sales, "city x size")
        assert len(mean.texts) == len(std.texts) == 4 * 2
        entries = [0, 1, 2, 3]
        for text in mean.texts:
            i, j = (round(place) for place in text.get_position())
            value = surface.mean[entries[i], j]
            assert float(text.get_text()) == pytest.approx(value, abs=0.051)
            sure = abs(value) >= 2 * surface.std[entries[i], j]
            assert text.get_fontweight() == ("bold" if sure else "normal")
        assert "Bold: the mean is at least two standard deviations" in words(mean.figure)

    def test_missing_values_beside_a_surface(self, sales):
        surface = sales["age x weight"]
        mean, _ = plot_interaction(sales, "age x weight")
        n_first, n_second = len(surface.values), len(surface.second_values)
        inner = surface.mean[:n_first, :n_second]
        np.testing.assert_array_equal(np.ravel(drawn(mean)), inner.T.ravel())
        blocks = [np.ravel(mesh.get_array()) for mesh in mean.collections]
        assert any(len(block) == 1 and block[0] == surface.mean[-1, -1] for block in blocks)
        assert "missing" in tick_words(mean)
        assert mean.get_xlim()[1] > surface.values[surface.inside.any(axis=1)[:n_first]].max()
        mean.figure.canvas.draw()

    def test_columns_of_any_scale(self, shops):
        X = shops[0][["age", "weight"]] * [1e-300, 1e300]
        X["city"] = shops[0]["city"]
        pairs = [("age", "weight"), ("age", "city")]
        model = LANAMRegressor(interactions=pairs, **NUMBERS).fit(X, shops[1])
        for pair in pairs:
            plot_interaction(model.explain_global(), pair)[0].figure.canvas.draw()


class TestCurvesOfCategories:
    def curves(self, ax):
        return [line for line in ax.get_lines() if line.get_label() in ("Bonn", "Oslo", "Rome")]

    def test_one_curve_per_category_within_its_data(self, sales):
        surface = sales["age x city"]
        (ax,) = plot_interaction(sales, "age x city")
        drawn_curves = self.curves(ax)
        assert [line.get_label() for line in drawn_curves] == ["Bonn", "Oslo", "Rome"]
        for k, line in enumerate(drawn_curves):
            np.testing.assert_allclose(
                line.get_ydata(),
                np.interp(line.get_xdata(), surface.values, surface.mean[: len(surface.values), k]),
            )
            seen = surface.values[surface.density[: len(surface.values), k] > 0.0]
            assert line.get_xdata()[0] >= seen[0]
            assert line.get_xdata()[-1] <= seen[-1]
        styles = {(str(line.get_linestyle()), line.get_marker()) for line in drawn_curves}
        assert len(styles) == 3  # legible without colour
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names == ["Bonn", "Oslo", "Rome", "missing"]
        assert "missing" in tick_words(ax)
        assert "in addition to the terms of each" in words(ax.figure)

    def test_bands_have_two_standard_deviations(self, sales):
        surface = sales["age x city"]
        (ax,) = plot_interaction(sales, "age x city")
        line = self.curves(ax)[0]
        band = ax.collections[0].get_paths()[0].vertices[:, 1]
        std = np.interp(line.get_xdata(), surface.values, surface.std[: len(surface.values), 0])
        assert band.max() == pytest.approx((line.get_ydata() + 2 * std).max())

    def test_main_effects_are_added_under_the_joint_posterior(self, sales):
        (ax,) = plot_interaction(sales, "age x city", main_effects=True)
        line = self.curves(ax)[2]
        ages = line.get_xdata()
        cities = ["Rome"] * len(ages)
        expected = (
            sales.evaluate("age", ages)[0]
            + sales.evaluate("city", cities)[0]
            + sales.evaluate("age x city", ages, cities)[0]
        )
        np.testing.assert_allclose(line.get_ydata(), expected)
        assert "including their main effects" in words(ax.figure)
        whole = sales.with_main_effects("age x city")
        n_values = len(whole.values)
        within = np.flatnonzero(whole.inside[:n_values, 2])
        values, cities = whole.values[within], ["Rome"] * len(within)
        parts = [
            sales.evaluate("age", values)[1],
            sales.evaluate("city", cities)[1],
            sales.evaluate("age x city", values, cities)[1],
        ]
        joint = whole.std[within, 2]
        assert (joint <= np.sum(parts, axis=0) + 1e-12).all()
        assert not np.allclose(joint, np.linalg.norm(parts, axis=0), rtol=1e-3)  # correlated
        assert whole.mean.shape == whole.std.shape == whole.density.shape
        missing = sales["age"].missing_mean + sales["city"].mean[2]
        missing += sales["age x city"].mean[len(sales["age x city"].values), 2]
        assert whole.mean[n_values, 2] == pytest.approx(missing)

    def test_maps_include_them_too(self, sales):
        mean, _ = plot_interaction(sales, "age x weight", main_effects=True)
        whole = sales.with_main_effects("age x weight")
        inner = whole.mean[: len(whole.values), : len(whole.second_values)]
        np.testing.assert_array_equal(np.ravel(drawn(mean)), inner.T.ravel())

    def test_what_cannot_be_drawn(self, sales):
        with pytest.raises(ValueError, match="use kind='map'"):
            plot_interaction(sales, "age x weight", kind="curves")
        with pytest.raises(ValueError, match="choose from 'auto', 'curves' and 'map'"):
            plot_interaction(sales, "age x weight", kind="lines")
        with pytest.raises(ValueError, match="pass the name of an interaction"):
            sales.with_main_effects("age")


def main_range(surface):
    inside = surface.values[surface.inside.any(axis=1)[: len(surface.values)]]
    return inside[0], inside[-1]


class TestUnits:
    def test_counts_have_a_log_rate(self, shops):
        y = np.random.default_rng(0).poisson(np.exp(0.3 * shops[1]))
        model = LANAMRegressor(likelihood="poisson", **QUICK).fit(shops[0][["city"]], y)
        figure = plot_shapes(model.explain_global())[0].figure
        assert "contribution to the log rate" in words(figure)

    def test_two_classes_are_named(self, sales):
        known = replace(sales, family=BERNOULLI, classes=("no", "yes"))
        assert "log-odds of yes" in words(plot_shapes(known)[0].figure)

    def test_classes_are_chosen_among_several(self, sales):
        with pytest.raises(ValueError, match="among more than two classes"):
            plot_shapes(sales, classes=["a"])


@pytest.fixture(scope="module")
def choice(shops):
    X, target = shops
    X = X[["age", "city"]]
    scores = np.column_stack([target, -target, np.full(len(X), 0.5)])
    y = (scores + np.random.default_rng(0).gumbel(size=scores.shape)).argmax(axis=1)
    columns, schema = learn_table(as_frame(X), list(X), backend="pandas")
    options = Options(interactions=((0, 1),), hidden_sizes=(8,), pair_hidden_sizes=(8,))
    weight = np.ones(len(y))
    model = in_memory.fit(columns, y.astype(float), weight, "softmax", options, 0, schema.n_levels)
    return explain_global(model, schema, ["bus", "car", "$train$ $x$"])


class TestClasses:
    def test_one_colour_per_class(self, choice):
        axes = plot_shapes(choice, terms=["city", "age"])
        figure = axes[0].figure
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["bus", "car", "$train$ $x$"]
        dots = [line for line in axes[0].get_lines() if len(line.get_xdata()) == 3]
        assert len(dots) == 3
        for k, line in enumerate(dots):
            np.testing.assert_array_equal(line.get_ydata(), choice["city"].mean[:, k])
        assert len({line.get_color() for line in dots}) == 3
        assert len({line.get_marker() for line in dots}) == 3
        assert len({line.get_xdata()[0] for line in dots}) == 3
        curves = [line for line in axes[1].get_lines() if len(line.get_xdata()) > 3]
        assert len({str(line.get_linestyle()) + line.get_marker() for line in curves}) == 3
        missing_marks = [line for line in axes[1].get_lines() if len(line.get_xdata()) == 1]
        assert [line.get_marker() for line in missing_marks] == [line.get_marker() for line in dots]
        assert [line.get_ydata()[0] for line in missing_marks] == choice[
            "age"
        ].missing_mean.tolist()
        assert "centred logit of each" in " ".join(words(figure).split())
        assert "minus their mean over the classes" in " ".join(words(figure).split())
        figure.canvas.draw()

    def test_some_classes(self, choice):
        (ax,) = plot_shapes(choice, terms=["city"], classes=["car"])
        np.testing.assert_array_equal(marks(ax)[0].get_ydata(), choice["city"].mean[:, 1])
        assert not ax.figure.legends
        assert "2 classes are not shown" in words(ax.figure)
        with pytest.raises(
            ValueError, match=r"classes=\['tram'\] are not among the model's: \['bus'"
        ):
            plot_shapes(choice, classes=["tram"])

    def test_given_axes_have_a_legend(self, choice):
        figure, own = plt.subplots()
        plot_shapes(choice, terms=["age"], axes=own)
        assert not figure.legends
        assert len(own.get_legend().get_texts()) == 3

    def test_an_interaction_has_one_row_per_class(self, choice):
        surface = choice["age x city"]
        axes = plot_interaction(choice, "age x city", kind="map")
        assert axes.shape == (3, 2)
        assert axes[1, 0].get_title() == "mean (car)"
        n_values = len(surface.values)
        for k in range(3):
            np.testing.assert_array_equal(
                np.ravel(axes[k, 0].collections[4].get_array()), surface.mean[n_values, :3, k]
            )
        limits = {ax.collections[0].get_clim() for ax in axes[:, 0]}
        assert limits == {
            tuple(np.abs(surface.mean[surface.density > 0]).max() * np.array([-1, 1]))
        }
        axes[0, 0].figure.canvas.draw()
        assert plot_interaction(choice, classes=["bus"], kind="map").shape == (1, 2)
        assert plot_interaction(choice, classes=["bus"]).shape == (1, 1)
        _, own = plt.subplots(1, 2)
        with pytest.raises(ValueError, match="two axes for each of 3 classes, and there are 2"):
            plot_interaction(choice, axes=own, kind="map")
        with pytest.raises(ValueError, match="one axes for each of 3 classes, and there are 2"):
            plot_interaction(choice, axes=own)

    def test_the_classes_with_the_largest_effects(self, choice):
        def widen(table):
            return np.concatenate([table * factor for factor in (0.1, 1.0, 0.5, 2.0)], axis=-1)

        names = ("mean", "std", "missing_mean", "missing_std", "unseen_mean", "unseen_std")
        shapes = [
            replace(
                shape,
                **{
                    name: widen(getattr(shape, name))
                    for name in names
                    if getattr(shape, name) is not None
                },
            )
            for shape in choice.shapes
        ]
        labels = tuple(f"class {k}" for k in range(12))
        many = replace(choice, terms=tuple(shapes), classes=labels)
        figure = plot_shapes(many)[0].figure
        named = [text.get_text() for text in figure.legends[0].get_texts()]
        assert len(named) == 8
        assert "class 0" not in named
        assert {"class 9", "class 10"} <= set(named)
        assert "4 classes are not shown" in words(figure)


class TestStrip:
    """The histogram below a curve."""

    @staticmethod
    def bars(x):
        y = np.sin(x) + 0.01 * np.random.default_rng(1).standard_normal(len(x))
        model = LANAMRegressor(interactions=0, level_effects=False, **NUMBERS)
        explanation = model.fit(x[:, None], y).explain_global()
        (ax,) = plot_shapes(explanation)
        actual = [bar for bar in ax.patches if bar.get_facecolor()[:3] == (0x8C / 255,) * 3]
        return actual

    def test_few_values_have_one_bar_each(self):
        values = np.array([0.0, 1.0, 2.0, 3.5, 7.0])
        counts = [30, 10, 20, 40, 5]
        bars = self.bars(np.repeat(values, counts))
        middles = [bar.get_x() + 0.5 * bar.get_width() for bar in bars]
        np.testing.assert_allclose(middles, values, atol=1e-9)
        heights = np.array([bar.get_height() for bar in bars])
        np.testing.assert_allclose(heights / heights.max(), np.array(counts) / 40)
        assert all(bar.get_width() == pytest.approx(7.0 / 40) for bar in bars)

    def test_many_values_are_binned(self):
        x = np.random.default_rng(0).uniform(0.0, 6.0, 500)
        bars = self.bars(x)
        assert len(bars) == 40
        assert bars[0].get_x() == pytest.approx(x.min())
        assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(x.max())
