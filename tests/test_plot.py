"""Drawings show what the explanation says."""

import builtins

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.plot import plot_shapes


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
    return LANAMRegressor(random_state=0).fit(*data).explain_global()


def words(figure):
    return " ".join(text.get_text().replace("\n", " ") for text in figure.findobj(plt.Text))


def test_a_panel_for_each_active_term_most_important_first(explanation):
    axes = plot_shapes(explanation)
    labels = [ax.get_xlabel().replace("\n", " ") for ax in axes]
    assert labels == [shape.name for shape in explanation.active]
    assert axes.flat[0].figure.get_axes() == list(axes)


def test_the_note_names_what_is_switched_off(explanation):
    figure = plot_shapes(explanation)[0].figure
    n_off = len(explanation.switched_off)
    assert f"{n_off} of {len(explanation)} terms are switched off" in words(figure)
    assert "noise" in words(figure)
    assert "contribution to the prediction" in words(figure)


def test_the_line_is_the_mean_and_the_band_two_deviations(explanation):
    (ax,) = plot_shapes(explanation, terms=["sex"])
    shape = explanation["sex"]
    line = max(ax.get_lines(), key=lambda line: len(line.get_xdata()))
    np.testing.assert_array_equal(line.get_xdata(), shape.values)
    np.testing.assert_array_equal(line.get_ydata(), shape.mean)
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((shape.mean + 2 * shape.std).max())
    assert band[:, 1].min() == pytest.approx((shape.mean - 2 * shape.std).min())


def test_few_values_are_marked(explanation):
    (ax,) = plot_shapes(explanation, terms=["sex"])
    marks = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(marks[0].get_xdata(), [1.0, 2.0])


def test_levels_are_marks_with_bars(explanation):
    (ax,) = plot_shapes(explanation, terms=["recipe (levels)"])
    shape = explanation["recipe (levels)"]
    marks = [line for line in ax.get_lines() if line.get_marker() == "o"]
    np.testing.assert_array_equal(marks[0].get_ydata(), shape.mean)
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(np.ptp(segments[:, :, 1], axis=1), 4 * shape.std)


def test_panels_share_a_scale_that_shows_every_curve(explanation):
    axes = plot_shapes(explanation)
    low, high = axes[0].get_ylim()
    assert all(ax.get_ylim() == (low, high) for ax in axes)
    for shape in explanation.active:
        assert low < shape.mean[shape.inside].min()
        assert high > shape.mean[shape.inside].max()


def test_the_panel_ends_little_beyond_the_data(explanation):
    (ax,) = plot_shapes(explanation, terms=["sex"])
    left, right = ax.get_xlim()
    assert 0.8 < left < 1.0
    assert 2.0 < right < 2.2
    shaded = [patch for patch in ax.patches if patch.get_facecolor()[:3] == (0.93,) * 3]
    assert len(shaded) == 2


def test_data_far_out_is_left_out_and_counted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.standard_normal(1000)})
    X.iloc[0, 0] = 1e4
    y = np.where(X["a"] > 0, 1.0, -1.0) + 0.1 * rng.standard_normal(1000)
    (ax,) = plot_shapes(LANAMRegressor(random_state=0).fit(X, y).explain_global(), terms=["a"])
    assert ax.get_xlim()[1] < 10
    assert "% of the data lie beyond" in ax.get_xlabel()


def test_own_axes(explanation):
    figure, own = plt.subplots(2, 2)
    axes = plot_shapes(explanation, terms=["sex"], axes=own)
    assert list(axes) == [own[0, 0]]
    assert figure.get_supylabel() == ""
    one = plot_shapes(explanation, terms=["sex"], axes=own[1, 1])
    assert list(one) == [own[1, 1]]
    with pytest.raises(ValueError, match="there are 2 terms to draw and 1 axes"):
        plot_shapes(explanation, terms=["sex", "recipe (levels)"], axes=own[1, 1])


def test_active_terms_that_are_not_shown_are_counted(explanation):
    figure = plot_shapes(explanation, terms=["sex"])[0].figure
    hidden = len(explanation.active) - 1
    assert f"{hidden} active terms are not shown" in words(figure)


def test_unknown_terms(explanation):
    with pytest.raises(KeyError, match="no term 'age'"):
        plot_shapes(explanation, terms=["age"])


def test_a_model_without_active_terms(data):
    model = LANAMRegressor(random_state=0).fit(np.ones((1500, 2)), data[1])
    axes = plot_shapes(model.explain_global())
    assert "no term is active" in words(axes.flat[0].figure)


def test_a_classifier_is_drawn_in_log_odds(data):
    model = LANAMClassifier(random_state=0).fit(data[0], data[1] > np.median(data[1]))
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
