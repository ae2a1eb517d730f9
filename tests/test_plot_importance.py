"""The plot of importances shows the values of the explanation."""

from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from lanam import LANAMRegressor
from lanam.families import BERNOULLI, SOFTMAX
from lanam.plot import plot_importance


@pytest.fixture(autouse=True)
def _no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, size=(200, 4)), columns=["a", "b", "c", "noise"])
    y = X["a"] * X["c"] + 0.3 * X["a"] + X["b"] + 0.1 * rng.standard_normal(200)
    return LANAMRegressor(interactions=[("a", "c")], random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def explanation(model):
    return model.explain_global()


def text_of(ax):
    return " ".join(text.get_text().replace("\n", " ") for text in ax.figure.findobj(plt.Text))


def names_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_bars_are_importances_and_lines_their_intervals(explanation, coverage):
    ax = plot_importance(explanation, coverage=coverage)
    terms = sorted((term for term in explanation if term.active), key=lambda term: -term.importance)
    assert names_of(ax) == [term.name for term in terms]
    assert [bar.get_width() for bar in ax.patches] == [term.importance for term in terms]
    z = norm.ppf(0.5 + coverage / 2)
    (lines,) = ax.collections
    for segment, term in zip(lines.get_segments(), terms, strict=True):
        ends = term.importance + np.array([-z, z]) * term.importance_std
        np.testing.assert_allclose(segment[:, 0], np.maximum(ends, 0.0))
    assert ax.yaxis_inverted()
    assert ax.get_xlim()[0] == 0.0
    assert f"Error bars: {100 * coverage:g}% credible intervals." in text_of(ax)
    assert "mean absolute contribution to the prediction" in text_of(ax)


def test_intervals_are_truncated_at_zero(explanation):
    wide = tuple(replace(term, importance_std=10.0) for term in explanation)
    (lines,) = plot_importance(replace(explanation, terms=wide)).collections
    assert all(segment[0, 0] == 0.0 for segment in lines.get_segments())


def test_pairs_are_hatched(explanation):
    ax = plot_importance(explanation)
    hatched = {
        name: bool(bar.get_hatch()) for name, bar in zip(names_of(ax), ax.patches, strict=True)
    }
    assert hatched == {"a x c": True, "a": False, "b": False, "c": False}
    assert "Solid: main effects. Hatched: interactions." in text_of(ax)
    assert "Hatched" not in text_of(plot_importance(explanation, terms=["a", "b"]))


def test_terms_that_are_not_shown_are_noted(explanation):
    n_off = len(explanation.switched_off)
    assert n_off
    ax = plot_importance(explanation)
    verb = "is" if n_off == 1 else "are"
    assert f"{n_off} of {len(explanation)} terms {verb} dropped: " in text_of(ax)
    assert "noise" in text_of(ax)
    assert "active but not shown" not in text_of(ax)
    fewer = plot_importance(explanation, max_terms=1)
    assert names_of(fewer) == [explanation.active[0].name]
    assert "3 terms are active but not shown." in text_of(fewer)
    assert "1 term is active but not shown." in text_of(plot_importance(explanation, max_terms=3))


def test_terms_by_name_in_this_order(explanation):
    silent = replace(explanation["noise"], name="silent")
    explanation = replace(explanation, terms=(*explanation.terms, silent))
    ax = plot_importance(explanation, terms=["noise", "b"])
    assert names_of(ax) == ["noise", "b"]
    assert ax.patches[0].get_width() == explanation["noise"].importance
    off = text_of(ax).split("dropped: ")[1]  # terms that are shown are not listed
    assert "silent" in off
    assert "noise" not in off
    with pytest.raises(KeyError, match="no term 'd'"):
        plot_importance(explanation, terms=["d"])


def many(explanation, n_terms):
    one = explanation["b"]
    terms = [replace(one, name=f"column {k}", importance=1.0 / (k + 1)) for k in range(n_terms)]
    return replace(explanation, terms=tuple(terms))


def test_thirty_terms_by_default(explanation):
    ax = plot_importance(many(explanation, 45))
    assert names_of(ax) == [f"column {k}" for k in range(30)]
    assert "15 terms are active but not shown." in text_of(ax)
    everything = plot_importance(many(explanation, 45), max_terms=None)
    assert len(everything.patches) == 45
    # Bars have the same height, however many there are.
    few = plot_importance(many(explanation, 5)).figure.get_figheight()
    assert everything.figure.get_figheight() - few == pytest.approx(40 * 0.32, abs=0.2)


def test_no_term(explanation):
    none = replace(explanation, terms=explanation.switched_off)
    ax = plot_importance(none)
    assert "no term is active" in text_of(ax)
    ax.figure.canvas.draw()


def test_given_axes_do_not_change_the_figure(explanation):
    figure, own = plt.subplots(1, 2, figsize=(8, 3))
    assert plot_importance(explanation, own[0]) is own[0]
    assert not own[1].patches
    assert figure.get_supxlabel() == ""
    assert tuple(figure.get_size_inches()) == (8, 3)


def test_units(explanation):
    softmax = replace(explanation, family=SOFTMAX, classes=("a", "b", "c"))
    assert "contribution to the centred logits" in text_of(plot_importance(softmax))
    logit = replace(explanation, family=BERNOULLI, classes=("no", "$yes$ $x$"))
    ax = plot_importance(logit)
    assert ax.get_xlabel() == "mean absolute contribution to the log-odds of $yes$ $x$"
    assert not ax.xaxis.label.get_parse_math()


def test_invalid_input(explanation, model):
    with pytest.raises(TypeError, match="expected GlobalExplanation, got LANAMRegressor"):
        plot_importance(model)
    with pytest.raises(ValueError, match="coverage=2 must lie between 0 and 1"):
        plot_importance(explanation, coverage=2)


def test_the_part_of_missingness_is_dotted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"value": rng.uniform(-1, 1, 150), "whether": rng.uniform(-1, 1, 150)})
    y = 2 * X["value"] + 0.1 * rng.standard_normal(150)
    X.loc[rng.random(150) < 0.3, "whether"] = np.nan
    y += X["whether"].isna()
    model = LANAMRegressor(interactions=0, noise="constant").fit(X, y)
    ax = plot_importance(model.explain_global())
    (dotted,) = [bar for bar in ax.patches if bar.get_hatch() == "...."]
    term = model.explain_global()["whether"]
    assert dotted.get_width() == pytest.approx(term.importance_of_missingness)
    assert dotted.get_x() + dotted.get_width() == pytest.approx(term.importance)
    assert term.missingness > 0.9
    assert "Dotted: due to whether the value is missing." in text_of(ax)
    lines = str(model.summary()).splitlines()
    (head,) = [line for line in lines if line.startswith("term ")]
    rows = {line.split()[0]: line for line in lines if line}
    place = head.index("missingness")
    assert rows["whether"][place:].split()[0] == f"{term.missingness:.0%}"
    assert rows["value"][place:].split()[0] == "-"
