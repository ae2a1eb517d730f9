"""Other libraries' drawings say what the explanation says: shap's, and InterpretML's."""

import builtins
import json
import os
import sys
from dataclasses import replace
from itertools import combinations
from math import factorial
from types import ModuleType, SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from interpret import preserve, set_visualize_provider, show
from matplotlib.patches import FancyArrow

from lanam import LANAMClassifier, LANAMRegressor

# Compiling shap's loops takes longer than running them as they are.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
import shap

# shap's scatter compares colours that are not a number.
pytestmark = pytest.mark.filterwarnings(
    "ignore:invalid value encountered in greater:RuntimeWarning"
)


@pytest.fixture(autouse=True)
def _no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    """Columns of all kinds, with gaps, one that says nothing, one with jumps at single values."""
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame(
        {
            "noise": rng.standard_normal(n),
            "age": rng.uniform(20, 80, n),
            "city": rng.choice(["Rome", "Bonn", "Oslo"], n).astype(object),
            "flag": rng.random(n) < 0.4,
            "shop": rng.integers(0, 60, n).astype(float),
        }
    )
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    X.loc[rng.random(n) < 0.1, "city"] = None
    age = X["age"].fillna(50.0).to_numpy()
    rome = (X["city"] == "Rome").to_numpy()
    y = np.sin(age / 10) + rome + 0.03 * (age - 50) * rome + 0.3 * X["flag"]
    y += rng.normal(0.0, 0.8, 60)[X["shop"].astype(int)] + 0.05 * X["shop"]
    y += 0.2 * rng.standard_normal(n)
    return X, y.to_numpy()


PAIRS = [("age", "city")]


@pytest.fixture(scope="module")
def model(table):
    model = LANAMRegressor(interactions=PAIRS, random_state=0).fit(*table)
    active = {term.name for term in model.terms_ if term.active}
    assert active == {"age", "city", "flag", "shop", "shop (levels)", "age x city"}
    return model


@pytest.fixture(scope="module")
def three(table):
    X, _ = table
    rome = (X["city"] == "Rome").to_numpy()
    score = 0.08 * (X["age"].fillna(50.0) - 50.0) * np.where(rome, 1.0, -1.0) + rome
    score += 0.5 * np.random.default_rng(7).standard_normal(len(X))
    labels = np.where(score > 1.0, "high", np.where(score < -0.5, "low", "mid"))
    model = LANAMClassifier(interactions=PAIRS, random_state=0).fit(X, labels)
    assert model.terms_[-1].kind == "pair"
    return model


@pytest.fixture(scope="module")
def two(table):
    X, y = table
    return LANAMClassifier(interactions=0, random_state=0).fit(X, np.where(y > 0.5, "yes", "no"))


# shap: what the values are


def by_hand(local, feature, pairs):
    """What a column adds, term by term."""
    total = 0.0
    for k, term in enumerate(local.terms):
        if feature in term.feature_names and (term.kind != "pair" or pairs):
            total = total + local.contributions[:, k] / len(term.features)
    return total


@pytest.mark.parametrize("pairs", ["split", "keep"])
def test_columns_have_their_terms_and_half_of_their_pairs(model, table, pairs):
    X, _ = table
    local = model.explain_local(X)
    values = local.to_shap(pairs)
    kept = ["age x city"] if pairs == "keep" else []
    assert list(values.feature_names) == [*X.columns, *kept]
    for place, name in enumerate(X.columns):
        np.testing.assert_allclose(
            values.values[:, place], by_hand(local, name, pairs == "split"), atol=1e-14
        )
    assert not values[:, "noise"].values.any()
    if kept:
        place = [term.name for term in local.terms].index("age x city")
        assert np.array_equal(values[:, "age x city"].values, local.contributions[:, place])


@pytest.mark.parametrize("pairs", ["split", "keep"])
@pytest.mark.parametrize("name", ["model", "two", "three"])
def test_values_and_base_sum_to_the_prediction(name, pairs, table, request):
    local = request.getfixturevalue(name).explain_local(table[0])
    values = local.to_shap(pairs)
    np.testing.assert_allclose(
        values.base_values + values.values.sum(axis=1), local.prediction, atol=1e-12
    )


def test_counts_are_explained_on_the_log_scale():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.uniform(0, 1, 300), "b": rng.uniform(0, 1, 300)})
    counts = LANAMRegressor(likelihood="poisson", random_state=0).fit(
        X, rng.poisson(np.exp(1.0 + 2.0 * X["a"]))
    )
    values = counts.explain_local(X).to_shap()
    log_rate = counts.intercept_ + counts.predict_terms(X).sum(axis=1)
    np.testing.assert_allclose(values.base_values + values.values.sum(axis=1), log_rate)


def shapley_values(worth, n_players):
    """Shapley values of a game, from the definition."""
    result = np.zeros(n_players)
    for player in range(n_players):
        rest = [other for other in range(n_players) if other != player]
        for size in range(n_players):
            weight = factorial(size) * factorial(n_players - size - 1) / factorial(n_players)
            for known in combinations(rest, size):
                result[player] += weight * (worth({*known, player}) - worth({*known}))
    return result


def test_they_are_shapley_values_of_the_game_the_docstring_says():
    """Dependent columns of few values, so that means given a value are means over rows."""
    rng = np.random.default_rng(2)
    first = rng.integers(0, 4, 800)
    X = pd.DataFrame(
        {
            "a": first.astype(float),
            "b": np.array(list("uvw"))[(first + rng.integers(0, 2, 800)) % 3],
            "c": rng.integers(0, 3, 800).astype(float),
        }
    )
    y = X["a"] * (X["b"] == "u") + np.square(X["c"] - 1) + 0.1 * rng.standard_normal(800)
    model = LANAMRegressor(interactions=[("a", "b")], random_state=0).fit(X, y)
    contributions = model.predict_terms(X)
    assert np.abs(contributions[:, -1]).mean() > 0.1  # the pair matters

    def worth_at(row):
        def worth(known):
            total = model.intercept_
            for k, term in enumerate(model.terms_):
                own = [X.columns[f] for f in term.features if f in known]
                same = (X[own] == X.loc[row, own]).all(axis=1).to_numpy()
                total += contributions[same, k].mean()
            return total

        return worth

    values = model.explain_local(X[:6]).to_shap()
    for row in range(6):
        np.testing.assert_allclose(values.values[row], shapley_values(worth_at(row), 3), atol=1e-9)


def every_combination():
    """Independent columns, each combination of their values once."""
    axes = np.linspace(-1.0, 1.0, 6), np.linspace(0.0, 2.0, 5), np.arange(2.0)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def dependent_columns():
    rng = np.random.default_rng(8)
    return rng.standard_normal((120, 3)) @ np.array(
        [[1.0, 0.8, 0.0], [0.0, 0.6, 0.5], [0.0, 0.0, 1.0]]
    )


@pytest.mark.parametrize(
    ("X", "interactions"), [(every_combination(), [(0, 1)]), (dependent_columns(), 0)]
)
def test_shaps_own_explainer_agrees_on_independent_columns_or_without_pairs(X, interactions):
    rng = np.random.default_rng(3)
    y = np.sin(2.0 * X[:, 0]) + X[:, 0] * X[:, 1] + 0.05 * rng.standard_normal(len(X))
    model = LANAMRegressor(interactions=interactions, random_state=0).fit(X, y)
    rows = X[:: len(X) // 6]
    ours = model.explain_local(rows).to_shap()
    # All rows are the background: nothing is sampled.
    masker = shap.maskers.Independent(X, max_samples=len(X))
    theirs = shap.explainers.ExactExplainer(model.predict, masker)(rows)
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-9)
    np.testing.assert_allclose(ours.base_values, theirs.base_values, atol=1e-9)


def test_columns_stand_in_the_models_order_whatever_the_order_of_terms(model, table):
    local = model.explain_local(table[0])
    turned = {
        name: getattr(local, name)[:, ::-1] for name in ("contributions", "contributions_std")
    }
    turned["column_values"] = tuple(values[:, ::-1] for values in local.column_values)
    other = replace(local, terms=local.terms[::-1], **turned).to_shap()
    assert list(other.feature_names) == list(table[0].columns)
    np.testing.assert_allclose(other.values, local.to_shap().values, atol=1e-14)


# shap: what goes with the values


def test_data_are_the_rows_in_the_users_words(model, table):
    X, _ = table
    values = model.explain_local(X).to_shap("keep")
    assert np.array_equal(values[:, "age"].data.astype(float), X["age"], equal_nan=True)
    assert values[:, "city"].data.tolist() == X["city"].fillna("(missing)").tolist()
    assert values[:, "flag"].data.tolist() == X["flag"].astype(str).tolist()
    pair = values[:, "age x city"].data
    row = int(np.flatnonzero(X["age"].isna() & (X["city"] == "Rome"))[0])
    assert pair[row] == "(missing, Rome)"
    known = int(np.flatnonzero(X["age"].notna() & X["city"].isna())[0])
    assert pair[known] == f"({X['age'][known]:.4g}, missing)"


def test_data_of_numbers_are_numbers():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {"a": rng.standard_normal(200), "code": pd.Categorical(rng.integers(1, 4, 200) * 10)}
    )
    model = LANAMRegressor(random_state=0).fit(X, X["a"] + rng.standard_normal(200))
    data = model.explain_local(X).to_shap().data
    assert data.dtype == np.float64
    assert np.array_equal(data, X.astype(float))


def test_bounds_are_known_of_single_terms_only(model, table):
    local = model.explain_local(table[0])
    split, kept = local.to_shap(), local.to_shap("keep")
    place = [term.name for term in local.terms].index("city")
    margin = 2.0 * local.contributions_std[:, place]
    city = kept[:, "city"]
    np.testing.assert_allclose(city.upper_bounds - city.values, margin, atol=1e-12)
    np.testing.assert_allclose(city.values - city.lower_bounds, margin, atol=1e-12)
    assert np.isnan(split[:, "city"].upper_bounds).all()  # and half of a pair
    assert np.isnan(kept[:, "shop"].lower_bounds).all()  # smooth and levels
    assert np.array_equal(kept[:, "noise"].upper_bounds, np.zeros(len(local)))


def test_classes(two, three, table):
    local = three.explain_local(table[0][:9])
    values = local.to_shap()
    assert values.shape == (9, 5, 3)
    assert list(values.output_names) == ["high", "low", "mid"]
    one = local.to_shap(label="low")
    assert np.array_equal(one.values, values[:, :, "low"].values)
    assert np.array_equal(one.base_values, values.base_values[:, 1])
    local = two.explain_local(table[0][:9])
    yes, no = local.to_shap(label="yes"), local.to_shap(label="no")
    assert np.array_equal(yes.values, local.to_shap().values)
    assert np.array_equal(no.values, -yes.values)
    assert np.array_equal(no.base_values, -yes.base_values)
    margins = [each.upper_bounds - each.values for each in (yes, no)]
    np.testing.assert_allclose(*margins, atol=1e-12)
    assert np.nanmin(margins) >= 0.0


def test_wrong_arguments(model, two, table):
    local = model.explain_local(table[0][:3])
    with pytest.raises(ValueError, match="pairs='half' must be 'split' or 'keep'"):
        local.to_shap("half")
    with pytest.raises(ValueError, match="label='yes' names a class, and the model has none"):
        local.to_shap(label="yes")
    with pytest.raises(ValueError, match=r"label='maybe' is not among .*\['no', 'yes'\]"):
        two.explain_local(table[0][:3]).to_shap(label="maybe")


def without(monkeypatch, *names):
    """Make packages look as if they were not installed."""
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] in names:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_without_shap_the_error_says_how_to_get_it(model, table, monkeypatch):
    local = model.explain_local(table[0][:3])
    without(monkeypatch, "shap")
    with pytest.raises(ImportError, match=r"pip install lanam\[shap\]"):
        local.to_shap()


# shap: what is drawn


def tick_words(ax, axis="y"):
    return [text.get_text() for text in getattr(ax, f"get_{axis}ticklabels")()]


def test_bar(model, table):
    values = model.explain_local(table[0]).to_shap("keep")
    ax = shap.plots.bar(values, max_display=20, show=False)
    sizes = dict(zip(values.feature_names, np.abs(values.values).mean(axis=0), strict=True))
    ordered = sorted(sizes, key=sizes.get, reverse=True)
    assert tick_words(ax)[: len(ordered)] == ordered
    np.testing.assert_allclose(
        [patch.get_width() for patch in ax.patches], [sizes[name] for name in ordered]
    )


@pytest.mark.parametrize("pairs", ["split", "keep"])
def test_beeswarm(model, table, pairs):
    values = model.explain_local(table[0]).to_shap(pairs)
    ax = shap.plots.beeswarm(values, max_display=20, show=False)
    drawn = np.sort(np.concatenate([dots.get_offsets()[:, 0] for dots in ax.collections]))
    np.testing.assert_allclose(drawn, np.sort(values.values.ravel()))
    coloured = {array.size for dots in ax.collections if (array := dots.get_array()) is not None}
    assert coloured == {len(table[0]), int(table[0]["age"].notna().sum())}  # numbers alone


def test_waterfall_has_bands_where_they_are_known(model, table):
    X, _ = table
    row = int(np.flatnonzero(X["age"].isna() & (X["city"] == "Rome"))[0])
    values = model.explain_local(X).to_shap("keep")[row]
    shap.plots.waterfall(values, max_display=20, show=False)
    ax = plt.gcf().axes[0]
    words = tick_words(ax)
    assert any("Rome = city" in word for word in words)
    assert any("(missing, Rome) = age x city" in word for word in words)
    arrows = [patch.get_xy() for patch in ax.patches if isinstance(patch, FancyArrow)]
    sizes = sorted(np.ptp(arrow[:, 0]) for arrow in arrows)
    # An arrow of no length has a head all the same.
    np.testing.assert_allclose(sizes[1:], sorted(np.abs(values.values))[1:], atol=1e-9)
    bars = [segment for lines in ax.collections for segment in lines.get_segments()]
    widths = sorted(np.ptp(bar[:, 0]) for bar in bars if len(bar) and np.isfinite(bar).all())
    known = np.isfinite(values.upper_bounds)
    margins = (values.upper_bounds - values.lower_bounds)[known]
    np.testing.assert_allclose(widths, sorted(margins), atol=1e-9)


@pytest.mark.parametrize("name", ["age", "city", "shop"])
def test_scatter(model, table, name):
    values = model.explain_local(table[0]).to_shap()
    ax = shap.plots.scatter(values[:, name], color=values, show=False)
    heights = np.concatenate([dots.get_offsets()[:, 1] for dots in ax.collections])
    np.testing.assert_allclose(np.sort(heights), np.sort(values[:, name].values))
    if name == "city":
        assert sorted(tick_words(ax, "x")) == ["(missing)", "Bonn", "Oslo", "Rome"]


def test_heatmap(model, table):
    values = model.explain_local(table[0]).to_shap()
    ax = shap.plots.heatmap(values, show=False)
    image = np.asarray(ax.images[0].get_array())
    assert image.shape == (5, len(table[0]))
    limit = np.abs(image).max()  # colours are cut off at the outermost percents
    np.testing.assert_allclose(
        np.sort(image.ravel()), np.sort(np.clip(values.values, -limit, limit).ravel())
    )


def test_force(model, table):
    values = model.explain_local(table[0]).to_shap()[0]
    figure = shap.plots.force(values, matplotlib=True, show=False)
    words = " ".join(text.get_text() for text in figure.findobj(plt.Text))
    assert f"{values.base_values + values.values.sum():0.2f}" in words


def test_one_class_of_several_is_drawn(three, table):
    values = three.explain_local(table[0]).to_shap()
    ax = shap.plots.bar(values[:, :, "low"], show=False)
    widest = max(patch.get_width() for patch in ax.patches)
    assert widest == pytest.approx(np.abs(values.values[:, :, 1]).mean(axis=0).max())


# InterpretML: what its show() takes


class Catch:
    """A provider that keeps the figure instead of opening a browser."""

    def render(self, explanation, key=-1, **kwargs):
        self.figure = explanation.visualize(None if key == -1 else key)


@pytest.fixture
def shown():
    provider = Catch()
    set_visualize_provider(provider)

    def figure_of(explanation, **arguments):
        show(explanation, **arguments)
        return provider.figure

    yield figure_of
    set_visualize_provider(None)


def trace(figure, name):
    (found,) = [one for one in figure.data if one.name == name]
    return found


def numbers(values):
    return np.asarray(values, dtype=float)


def test_overall_shows_importances(model, shown):
    explanation = model.explain_global()
    figure = shown(explanation)
    (bars,) = figure.data
    ordered = sorted(explanation.terms, key=lambda term: term.importance)
    assert list(bars.y) == [term.name for term in ordered]
    assert numbers(bars.x).tolist() == [term.importance for term in ordered]
    assert numbers(bars.error_x.array).tolist() == [2 * term.importance_std for term in ordered]


def test_only_the_largest_importances_are_shown():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.standard_normal((200, 18)), columns=[f"x{k}" for k in range(18)])
    model = LANAMRegressor(random_state=0, interactions=0).fit(X, X["x3"] + 0.1 * X["x5"])
    (bars,) = model.explain_global().visualize().data
    assert len(bars.y) == 15
    assert list(bars.y[-2:]) == ["x5", "x3"]


def test_a_curve_has_its_band_its_data_and_what_is_missing(model, shown):
    explanation = model.explain_global()
    age = explanation["age"]
    figure = shown(explanation, key="age")
    inside = age.inside
    for name, sign in {"Main": 0.0, "Upper Bound": 2.0, "Lower Bound": -2.0}.items():
        line = trace(figure, name)
        assert numbers(line.x).tolist() == age.values[inside].tolist()
        assert line.line.shape is None  # linear in between, not steps
        np.testing.assert_allclose(numbers(line.y), (age.mean + sign * age.std)[inside])
    known = 1.0 - age.missing_density
    assert sum(trace(figure, "Distribution").y) == pytest.approx(known)
    missing = trace(figure, "(missing)")
    assert missing.y[0] == age.missing_mean
    assert missing.error_y.array[0] == pytest.approx(2.0 * age.missing_std)
    assert missing.x[0] > age.values[inside].max()
    low, high = figure.layout.yaxis.range
    for term in explanation.shapes:  # one range for all
        kept = term.inside
        assert low < (term.mean - 2.0 * term.std)[kept].min()
        assert high > (term.mean + 2.0 * term.std)[kept].max()


def test_the_mark_of_missing_values_is_in_sight():
    rng = np.random.default_rng(9)
    X = pd.DataFrame({"a": np.where(rng.random(300) < 0.1, np.nan, rng.uniform(size=300))})
    model = LANAMRegressor(random_state=0).fit(X, np.where(X["a"].isna(), 50.0, X["a"]))
    figure = model.explain_global().visualize(0)
    assert figure.layout.yaxis.range[1] > trace(figure, "(missing)").y[0] > 20.0


def test_levels_are_bars(model, shown):
    explanation = model.explain_global()
    city = explanation["city"]
    figure = shown(explanation, key="city")
    bars, shares = figure.data
    assert list(bars.x) == [*city.values, "(missing)"]  # no row had another level
    assert numbers(bars.y).tolist() == [*city.mean, city.missing_mean]
    np.testing.assert_allclose(
        numbers(bars.error_y.array), 2.0 * np.array([*city.std, city.missing_std])
    )
    assert numbers(shares.y).tolist() == [*city.density, city.missing_density]
    assert figure.layout.xaxis.type == "category"


def test_single_values_are_bars(model):
    explanation = model.explain_global()
    place = explanation.feature_names.index("shop (levels)")
    bars = explanation.visualize(place).data[0]
    shop = explanation["shop (levels)"]
    assert list(bars.x) == [f"{value:g}" for value in shop.values]
    assert numbers(bars.y).tolist() == shop.mean.tolist()


def test_a_pair_is_a_heat_map_of_what_the_data_has(model, shown):
    explanation = model.explain_global()
    pair = explanation["age x city"]
    figure = shown(explanation, key="age x city")
    (tiles,) = figure.data
    rows, columns = pair.inside.any(axis=1), pair.inside.any(axis=0)
    assert list(tiles.x) == [f"{v:.4g}" for v in pair.values[rows[:-1]]] + ["(missing)"]
    assert list(tiles.y) == [*pair.second_values, "(missing)"]
    np.testing.assert_allclose(numbers(tiles.z), pair.mean[rows][:, columns].T)
    np.testing.assert_allclose(numbers(tiles.customdata), 2.0 * pair.std[rows][:, columns].T)
    assert tiles.zmax == -tiles.zmin == np.abs(pair.mean[rows][:, columns]).max()
    assert figure.layout.xaxis.title.text == "age"
    assert figure.layout.yaxis.title.text == "city"


def test_an_axis_of_numbers_alone_keeps_its_scale():
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.uniform(0.0, 1.0, (400, 2)), columns=["a", "b"])
    y = X["a"] * X["b"] + 0.01 * rng.standard_normal(400)
    pair = LANAMRegressor(interactions=[("a", "b")], random_state=0).fit(X, y).explain_global()
    (tiles,) = pair.visualize(len(pair) - 1).data
    surface = pair["a x b"]
    assert numbers(tiles.x).tolist() == surface.values[surface.inside.any(axis=1)].tolist()


def test_a_term_that_is_off_is_flat_and_a_column_without_values_has_no_figure():
    X = pd.DataFrame({"a": np.arange(50.0), "same": np.arange(50.0), "one": np.ones(50)})
    explanation = LANAMRegressor(random_state=0).fit(X, X["a"]).explain_global()
    assert explanation.visualize(explanation.feature_names.index("same")) is None
    constant = explanation.visualize(explanation.feature_names.index("one"))
    assert list(trace(constant, "Main").y) == [0.0]


def test_curves_and_heat_maps_of_several_classes(three, shown):
    explanation = three.explain_global()
    age, pair = explanation["age"], explanation["age x city"]
    figure = shown(explanation, key="age")
    bands = [one for one in figure.data if one.name in ("Lower Bound", "Upper Bound")]
    assert len(bands) == 6
    marks = [one for one in figure.data if one.name == "(missing)"]
    for place, label in enumerate(["high", "low", "mid"]):
        np.testing.assert_allclose(trace(figure, label).y, age.mean[age.inside, place])
        assert marks[place].y[0] == age.missing_mean[place]
        assert marks[place].marker.color == trace(figure, label).line.color
    assert [one.name for one in figure.data if one.showlegend] == ["high", "low", "mid"]
    figure = shown(explanation, key="age x city")
    rows, columns = pair.inside.any(axis=1), pair.inside.any(axis=0)
    for place, tiles in enumerate(figure.data):
        expected = pair.mean[rows][:, columns, place].T
        np.testing.assert_allclose(numbers(tiles.z), expected)
    assert [tiles.visible for tiles in figure.data] == [True, False, False]
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == ["high", "low", "mid"]
    assert buttons[1].args[0]["visible"] == [False, True, False]


def test_bars_of_several_classes(three, shown):
    city = three.explain_global()["city"]
    figure = shown(three.explain_global(), key="city")
    for place, label in enumerate(["high", "low", "mid"]):
        bars = trace(figure, label)
        np.testing.assert_allclose(
            numbers(bars.y), [*city.mean[:, place], city.missing_mean[place]]
        )


def test_a_rows_contributions(model, table, shown):
    X, _ = table
    row = int(np.flatnonzero(X["age"].isna() & (X["city"] == "Rome"))[0])
    local = model.explain_local(X[: row + 1])
    figure = shown(local, key=row)
    (bars,) = figure.data
    order = np.argsort(np.abs(local.contributions[row]), kind="stable")
    assert numbers(bars.x).tolist() == [*local.contributions[row][order], local.intercept]
    np.testing.assert_allclose(
        numbers(bars.error_x.array),
        2.0 * np.array([*local.contributions_std[row][order], local.intercept_std]),
    )
    assert {"age (missing)", "city (Rome)", "age x city (missing, Rome)"} <= set(bars.y)
    assert bars.y[-1] == "Intercept"
    assert f"{local.response[row]:.3g}" in figure.layout.title.text
    assert local.visualize() is None


def test_a_rows_contributions_to_classes(two, three, table, shown):
    X, _ = table
    local = three.explain_local(X[:30])
    row = int(np.flatnonzero(three.predict(X[:30]) == "low")[0])
    figure = shown(local, key=row)
    assert f"Pr(y = low): {local.response[row, 1]:.3f}" in figure.layout.title.text
    order = np.argsort(np.abs(local.contributions[row][:, 1]), kind="stable")
    assert order.tolist() != np.argsort(np.abs(local.contributions[row][:, 0])).tolist()
    for place, bars in enumerate(figure.data):
        expected = [*local.contributions[row][order, place], local.intercept[place]]
        assert numbers(bars.x).tolist() == expected
        assert bars.name == local.classes[place]
        np.testing.assert_allclose(
            numbers(bars.error_x.array)[:-1], 2.0 * local.contributions_std[row][order, place]
        )
    local = two.explain_local(X[:4])
    figure = shown(local, key=1)
    chance = local.response[1]
    label = "yes" if chance > 0.5 else "no"
    assert f"Pr(y = {label}): {max(chance, 1 - chance):.3f}" in figure.layout.title.text
    assert "the log-odds of yes" in figure.layout.xaxis.title.text


# InterpretML: what goes with the figures


def test_names_are_shown_as_they_are():
    rng = np.random.default_rng(10)
    X = pd.DataFrame({"<b>a</b>": rng.uniform(size=200), "c": rng.choice(["<i>", "y"], 200)})
    labels = np.where(X["<b>a</b>"] + 0.5 * (X["c"] == "y") > 0.7, "<u>", "no")
    model = LANAMClassifier(interactions=[(0, 1)], random_state=0).fit(X, labels)
    explanation, local = model.explain_global(), model.explain_local(X[:2])
    figures = [explanation.visualize(key) for key in (None, *range(len(explanation)))]
    figures.append(local.visualize(0))
    assert "&lt;b>a&lt;/b>" in figures[1].layout.title.text
    for figure in figures:
        text = figure.to_json().replace("\\u003c", "<")
        assert "&lt;" in text
        assert not any(tag in text for tag in ("<b>", "<i>", "<u>"))


def test_selectors_have_interprets_columns(model, two, table):
    from interpret.utils._explanation import gen_global_selector, gen_local_selector

    explanation, local = model.explain_global(), two.explain_local(table[0][:3])
    theirs = gen_global_selector(1, ["a"], ["continuous"], None, None)
    frame = explanation.selector
    assert list(frame.columns)[:4] == list(theirs.columns)
    assert frame["Name"].tolist() == [term.name for term in model.terms_]
    types = dict(zip(frame["Name"], frame["Type"], strict=True))
    assert types["age"] == "continuous"
    assert types["city"] == types["shop (levels)"] == "categorical"
    assert types["age x city"] == "interaction"
    assert frame.set_index("Name").loc["noise", "Status"] == explanation["noise"].status
    theirs = gen_local_selector([local.data(0)])
    assert list(local.selector.columns) == list(theirs.columns)
    assert local.selector["Predicted"].tolist() == two.predict(table[0][:3]).tolist()
    numeric = model.explain_local(table[0][:3])
    theirs = gen_local_selector([numeric.data(0)], is_classification=False)
    assert list(numeric.selector.columns) == list(theirs.columns)
    np.testing.assert_allclose(
        numeric.selector["Predicted"], model.predict(table[0][:3]), rtol=1e-3
    )  # four digits


def test_data_in_all_and_what_there_is_not(model, table):
    for explanation in (model.explain_global(), model.explain_local(table[0][:3])):
        everything = explanation.data(-1)
        assert set(everything) == {"overall", "specific"}
        assert len(everything["specific"]) == len(explanation.selector) == len(explanation)
        with pytest.raises(KeyError, match=f"no entry {len(explanation)}; there are"):
            explanation.data(len(explanation))
    with pytest.raises(ValueError, match="nose"):
        show(model.explain_global(), key="nose")


def test_interprets_dashboard_asks_for_these(model, table):
    explanation, local = model.explain_global(), model.explain_local(table[0][:3])
    assert (explanation.explanation_type, local.explanation_type) == ("global", "local")
    assert explanation.name == local.name == "LANAM"
    assert set(explanation.to_dict()) & {"name", "selector", "data"} == set()


def test_inline_page(model, table, monkeypatch):
    """What notebooks in a cloud are sent: every figure as JSON."""
    from interpret.visual import _inline as inline

    # It imports this to recognise its drawings, which ours are not.
    monkeypatch.setitem(sys.modules, "dash_cytoscape", SimpleNamespace(Cytoscape=Catch))
    page = inline._build_viz_obj(model.explain_global(), [])
    assert [each["type"] for each in page["specific"]] == ["plotly"] * len(model.terms_)
    assert "Term: age (continuous)" in json.dumps(page)
    page = inline._build_viz_obj(model.explain_local(table[0][:2]), [])
    assert page["overall"]["type"] == "none"


def test_preserve_writes_a_page(model, tmp_path, monkeypatch):
    # It imports these to recognise their objects and to display in notebooks, which we do not.
    monkeypatch.setattr("plotly.offline.init_notebook_mode", lambda **_: None)
    stubs = {
        "dash": {},
        "dash.development": {},
        "dash.development.base_component": {"Component": type("Component", (), {})},
        "IPython": {},
        "IPython.display": {"display": None, "display_html": None},
    }
    for name, contents in stubs.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    path = tmp_path / "age.html"
    preserve(model.explain_global(), "age", file_name=str(path), auto_open=False)
    assert "Term: age (continuous)" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("package", ["interpret", "plotly", "matplotlib"])
def test_what_is_not_installed_is_said(model, table, monkeypatch, package):
    explanation, local = model.explain_global(), model.explain_local(table[0][:3])
    for name in [name for name in sys.modules if name.split(".")[0] == "interpret"]:
        monkeypatch.delitem(sys.modules, name)
    without(monkeypatch, package)
    for draw in (
        explanation.visualize,
        lambda: explanation.visualize(1),
        lambda: local.visualize(0),
    ):
        with pytest.raises(ImportError, match=r"pip install interpret-core\[plotly\] matplotlib"):
            draw()
