"""The plot of a row's contributions shows the values of the explanation."""

from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm

from lanam import LANAMClassifier, LANAMRegressor
from lanam.families import BERNOULLI
from lanam.plot import plot_interaction, plot_interaction_matrix, plot_local, plot_shapes


@pytest.fixture(autouse=True)
def _no_window():
    matplotlib.use("Agg")
    yield
    plt.close("all")


def table(n_rows=500):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=["age", "weight", "height", "noise"])
    X["city"] = rng.choice(["Bonn", "Oslo", "Rome"], n_rows)
    X.loc[rng.random(n_rows) < 0.2, "weight"] = np.nan
    rise = X["city"].map({"Bonn": -1.0, "Oslo": 0.0, "Rome": 1.0})
    y = 2.0 * X["age"] + X["weight"].fillna(1.5) + X["age"] * rise + 0.2 * X["height"]
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def local():
    X, y = table()
    y = y + 0.5 * np.random.default_rng(1).standard_normal(len(y))
    pairs = [("age", "city")]
    return LANAMRegressor(interactions=pairs, random_state=0).fit(X, y).explain_local(X[:30])


@pytest.fixture(scope="module")
def choices():
    X, y = table()
    scores = np.column_stack([y, -y, np.full(len(y), 0.5)])
    chosen = (scores + np.random.default_rng(0).gumbel(size=scores.shape)).argmax(axis=1)
    names = np.array(["bus", "car", "$train$ $x$"])[chosen]
    return LANAMClassifier(interactions=0, random_state=0).fit(X, names).explain_local(X[:30])


def text_of(ax):
    """All text of the figure, in one line."""
    return " ".join(text.get_text().replace("\n", " ") for text in ax.figure.findobj(plt.Text))


def bars_of(ax):
    return list(ax.patches)


def whiskers(ax):
    """The bounds of the intervals, from the top down."""
    (lines,) = ax.collections
    return np.array([segment[:, 0] for segment in lines.get_segments()])


def left_out_by_hand(local, row, coverage):
    """Indices of the terms whose interval includes zero."""
    z = norm.ppf(0.5 + coverage / 2)
    actual = []
    for k, term in enumerate(local.terms):
        mean, std = local.contributions[row, k], local.contributions_std[row, k]
        if term.active and mean - z * std <= 0.0 <= mean + z * std:
            actual.append(k)
    return actual


def drawn_by_hand(local, row, coverage=0.95):
    out = left_out_by_hand(local, row, coverage)
    kept = [k for k, term in enumerate(local.terms) if term.active and k not in out]
    return sorted(kept, key=lambda k: -abs(local.contributions[row, k]))


@pytest.mark.parametrize("row", [0, 7, 29])
@pytest.mark.parametrize("coverage", [0.5, 0.95, 0.999])
def test_bars_are_contributions_and_lines_their_intervals(local, row, coverage):
    ax = plot_local(local, row, coverage=coverage)
    kept = drawn_by_hand(local, row, coverage)
    mean, std = local.contributions[row, kept], local.contributions_std[row, kept]
    z = norm.ppf(0.5 + coverage / 2)
    np.testing.assert_allclose([bar.get_width() for bar in bars_of(ax)], mean)
    np.testing.assert_allclose(
        whiskers(ax), np.column_stack([mean - z * std, mean + z * std]), atol=1e-12
    )
    # The first is at the top.
    assert [bar.get_y() + bar.get_height() / 2 for bar in bars_of(ax)] == pytest.approx(
        range(len(kept))
    )
    assert ax.yaxis_inverted()


def test_intervals_that_include_zero_are_left_out_and_counted(local):
    counts = set()
    for row in range(len(local)):
        out = left_out_by_hand(local, row, 0.95)
        ax = plot_local(local, row)
        text = text_of(ax)
        plt.close(ax.figure)
        counts.add(len(out))
        total = local.contributions[row, out].sum()
        if len(out) > 1:
            assert f"{len(out)} terms are left out: their 95% intervals include zero;" in text
            actual = float(text.split("their total contribution is ")[1].split(". ")[0].rstrip("."))
            assert actual == pytest.approx(total, abs=0.006)
        elif len(out) == 1:
            assert (
                "1 term is left out: its 95% interval includes zero; its contribution is " in text
            )
        else:
            assert "left out" not in text
    assert len(counts) > 1


def test_everything(local):
    row = next(row for row in range(30) if left_out_by_hand(local, row, 0.95))
    ax = plot_local(local, row, everything=True)
    active = [k for k, term in enumerate(local.terms) if term.active]
    order = sorted(active, key=lambda k: -abs(local.contributions[row, k]))
    np.testing.assert_allclose(
        [bar.get_width() for bar in bars_of(ax)], local.contributions[row, order]
    )
    out = left_out_by_hand(local, row, 0.95)
    white = [bar.get_facecolor() == (1.0, 1.0, 1.0, 1.0) for bar in bars_of(ax)]
    hollow = [bare and not bar.get_hatch() for bare, bar in zip(white, bars_of(ax), strict=True)]
    assert hollow == [k in out for k in order]
    assert True in hollow
    assert "left out" not in text_of(ax)
    assert "Hollow: the interval includes zero." in text_of(ax)


def test_signs_are_distinct_without_colours(local):
    seen = set()
    for row in range(5):
        ax = plot_local(local, row)
        for bar in bars_of(ax):
            assert bool(bar.get_hatch()) == (bar.get_width() < 0)
            filled = bar.get_facecolor() != (1.0, 1.0, 1.0, 1.0)
            assert filled == (bar.get_width() > 0)
            seen.add(filled)
    assert seen == {True, False}
    assert "Solid, red: positive. Hatched, blue: negative." in text_of(ax)


def test_positive_is_red_and_negative_blue(local):
    for row in range(5):
        for bar in bars_of(plot_local(local, row)):
            red, _, blue, _ = bar.get_edgecolor()
            assert (red > blue) == (bar.get_width() > 0)


def test_labels_have_the_values_of_the_row(local):
    X, _ = table()
    row = int(np.flatnonzero(X["weight"][:30].isna())[0])
    ax = plot_local(local, row, everything=True)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert f"age = {X['age'][row]:.4g}" in names
    assert "weight = (missing)" in names
    assert f"age = {X['age'][row]:.4g}\nx city = {X['city'][row]}" in names


def test_large_integers_and_long_labels():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.integers(20, 90, 300) * 1000.0,
            "town": rng.choice(["Llanfairpwllgwyngyll", "Bonn"], 300),
        }
    )
    y = X["income"] / 1e4 + (X["town"] == "Bonn") + 0.1 * rng.standard_normal(300)
    local = LANAMRegressor(interactions=0, random_state=0).fit(X, y).explain_local(X[:5])
    row = int(np.flatnonzero(X["town"][:5] != "Bonn")[0])
    names = [
        label.get_text() for label in plot_local(local, row, everything=True).get_yticklabels()
    ]
    assert f"income = {X['income'][row]:,.0f}" in names
    assert "town = Llanfairpwllg..." in names


def test_numbers_stand_beside_the_bars(local):
    ax = plot_local(local, 3)
    kept = drawn_by_hand(local, 3)
    texts = [text for text in ax.texts if text.get_text()]
    assert len(texts) == len(kept)
    for place, (k, text) in enumerate(zip(kept, texts, strict=True)):
        assert text.get_position()[1] == place
        size, low, high = (
            float(part)
            for part in text.get_text().replace("[", "").rstrip("]").replace(",", "").split()
        )
        z = norm.ppf(0.975)
        mean, std = local.contributions[3, k], local.contributions_std[3, k]
        assert [size, low, high] == pytest.approx(
            [mean, mean - z * std, mean + z * std], abs=0.0051
        )
        assert text.get_text()[0] in "+-"


def test_the_title_adds_up(local):
    for row in range(4):
        title = plot_local(local, row).get_title(loc="left")
        first, interval, account = title.split("\n")
        assert first.startswith(f"Row {row}: prediction ")
        assert float(first.split()[-1]) == pytest.approx(local.prediction[row], abs=0.0051)
        low, high = (float(part) for part in interval.split(": ")[1].split(" to "))
        z = norm.ppf(0.975)
        assert low == pytest.approx(
            local.prediction[row] - z * local.prediction_std[row], abs=0.0051
        )
        assert high == pytest.approx(
            local.prediction[row] + z * local.prediction_std[row], abs=0.0051
        )
        numbers = [float(word) for word in account.split() if word.strip("+-")[0].isdigit()]
        assert numbers[0] == pytest.approx(sum(numbers[1:]), abs=0.02)
        assert numbers[1] == pytest.approx(local.intercept, abs=0.0051)


def test_max_terms(local):
    rows = range(len(local))
    row = next(
        k for k in rows if left_out_by_hand(local, k, 0.95) and len(drawn_by_hand(local, k)) > 2
    )
    unsure = len(left_out_by_hand(local, row, 0.95))
    largest, *smaller = drawn_by_hand(local, row)
    ax = plot_local(local, row, max_terms=1)
    assert [bar.get_width() for bar in bars_of(ax)] == [local.contributions[row, largest]]
    assert f"{unsure} term" in text_of(ax)
    total = local.contributions[row, smaller].sum()
    words = f"{len(smaller)} terms are not shown, with smaller contributions; their total contribution is"
    assert f"{words} {total:+.2f}." in text_of(ax)
    # All terms may be shown, so the hidden ones are the smallest.
    ax = plot_local(local, row, max_terms=1, everything=True)
    assert f"{len(smaller) + unsure} terms are not shown, with smaller contributions" in text_of(ax)
    assert "left out" not in text_of(ax)


def test_dropped_terms_are_not_counted_as_left_out(local):
    terms = tuple(
        replace(term, active=False) if k == 0 else term for k, term in enumerate(local.terms)
    )
    contributions = local.contributions.copy()
    contributions[:, 0] = 0.0
    less = replace(local, terms=terms, contributions=contributions)
    n_off = sum(not term.active for term in terms)
    ax = plot_local(less, 0, everything=True)
    assert len(bars_of(ax)) == len(terms) - n_off
    assert f"{n_off} of {len(terms)} terms" in text_of(ax)


def test_all_intervals_include_zero(local):
    wide = replace(local, contributions_std=np.full_like(local.contributions_std, 1e3))
    ax = plot_local(wide, 0)
    assert len(bars_of(ax)) == sum(term.active for term in wide.terms)
    assert "Hollow: the interval includes zero." in text_of(ax)
    assert "left out" not in text_of(ax)


def test_no_terms(local):
    terms = tuple(replace(term, active=False) for term in local.terms)
    ax = plot_local(replace(local, terms=terms), 0)
    assert not bars_of(ax)
    assert "all terms are dropped" in text_of(ax)
    ax.figure.canvas.draw()


def test_given_axes_do_not_change_the_figure(local):
    figure, own = plt.subplots(1, 2, figsize=(9, 3))
    assert plot_local(local, 1, own[1]) is own[1]
    assert not own[0].patches
    assert figure.get_axes() == list(own)
    assert figure.get_supxlabel() == ""
    assert figure.get_figheight() == 3
    # The terms that are left out are stated there, too.
    out = left_out_by_hand(local, 1, 0.95)
    assert out
    assert f"{len(out)} term" in own[1].get_xlabel()


def test_two_classes_have_a_probability():
    X, y = table()
    model = LANAMClassifier(interactions=0, random_state=0).fit(X, np.where(y > 0, "yes", "no"))
    local = model.explain_local(X[:5])
    ax = plot_local(local, 2)
    first, interval, account = ax.get_title(loc="left").split("\n")
    assert first == f"Row 2: probability of yes is {model.predict_proba(X[:5])[2, 1]:.3g}"
    z = norm.ppf(0.975)
    ends = expit(local.prediction[2] + np.array([-z, z]) * local.prediction_std[2])
    assert interval == f"95% credible interval of the mean: {ends[0]:.3g} to {ends[1]:.3g}"
    assert account.startswith("log-odds ")
    assert "contribution to the log-odds of yes" in ax.get_xlabel()
    with pytest.raises(ValueError, match=r"more than two classes, .*: leave it out"):
        plot_local(local, 2, label="yes")


def test_classes_need_no_names(local):
    ax = plot_local(replace(local, family=BERNOULLI, response=expit(local.prediction)))
    assert ax.get_title(loc="left").startswith(
        f"Row 0: probability is {expit(local.prediction[0]):.3g}\n"
    )


@pytest.mark.parametrize(
    ("share", "words"), [(0.99951, ">0.999"), (0.0002, "0.0002"), (0.25, "0.25"), (0.998, "0.998")]
)
def test_no_probability_is_rounded_to_one(choices, share, words):
    response = choices.response.copy()
    response[0] = [share, 0.0, 1 - share]
    bus = plot_local(replace(choices, response=response), 0, label=choices.classes[0])
    assert bus.get_title(loc="left").split("\n")[0].endswith(f" is {words}")


def test_counts_have_a_rate():
    X, y = table()
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y))
    model = LANAMRegressor(likelihood="poisson", interactions=0, random_state=0).fit(X, counts)
    local = model.explain_local(X[:5])
    ax = plot_local(local, 1, coverage=0.8)
    first, interval, account = ax.get_title(loc="left").split("\n")
    assert first == f"Row 1: rate {model.predict(X[:5])[1]:.3g}"
    z = norm.ppf(0.9)
    ends = np.exp(local.prediction[1] + np.array([-z, z]) * local.prediction_std[1])
    assert interval == f"80% credible interval of the mean: {ends[0]:.3g} to {ends[1]:.3g}"
    assert account.startswith("log rate ")
    assert "contribution to the log rate" in ax.get_xlabel()


@pytest.mark.parametrize("label", [None, "bus", "car", "$train$ $x$"])
def test_one_of_several_classes(choices, label):
    row = 4
    place = choices.response[row].argmax() if label is None else choices.classes.index(label)
    ax = plot_local(choices, row, label=label, everything=True)
    sizes = choices.contributions[row, :, place]
    active = [k for k, term in enumerate(choices.terms) if term.active]
    expected = sorted(sizes[active], key=lambda size: -abs(size))
    np.testing.assert_allclose([bar.get_width() for bar in bars_of(ax)], expected)
    name = choices.classes[place]
    title = ax.get_title(loc="left")
    assert title.startswith(f"Row 4: probability of {name} is {choices.response[row, place]:.3g}\n")
    # Three digits of the largest contribution, and as many decimals of everything else.
    decimals = 2 - int(np.floor(np.log10(np.abs(sizes).max())))
    total, intercept = choices.prediction[row, place], choices.intercept[place]
    assert title.split("\n")[1] == (
        f"centred logit {total:.{decimals}f} = {intercept:.{decimals}f} intercept "
        f"{sizes.sum():+.{decimals}f} shown"
    )
    assert f"contribution to the centred logit of {name}" in ax.get_xlabel()
    named = [text for text in ax.figure.findobj(plt.Text) if "$" in text.get_text()]
    assert not any(text.get_parse_math() for text in named)
    ax.figure.canvas.draw()


def test_unknown_class(choices):
    with pytest.raises(ValueError, match=r"label='tram' is not among .* \['\$train\$"):
        plot_local(choices, 0, label="tram")


@pytest.mark.parametrize("row", [-1, 30, 1.0, "0", None])
def test_invalid_rows(local, row):
    with pytest.raises(ValueError, match="must be one of the explained rows, 0 to 29"):
        plot_local(local, row)


def test_numpy_integers_are_rows(local):
    assert plot_local(local, np.int64(3)).get_title(loc="left").startswith("Row 3: ")


@pytest.mark.parametrize("coverage", [0.0, 1.0, 95])
def test_coverage_is_a_probability(local, coverage):
    with pytest.raises(ValueError, match=r"coverage=.* must lie between 0 and 1"):
        plot_local(local, coverage=coverage)


def test_explanations_of_the_other_kind(local):
    X, y = table()
    whole = LANAMRegressor(interactions=0, random_state=0).fit(X, y).explain_global()
    with pytest.raises(
        TypeError, match=r"LocalExplanation, .* GlobalExplanation: use explain_local"
    ):
        plot_local(whole)
    with pytest.raises(
        TypeError, match=r"GlobalExplanation, .* LocalExplanation: use explain_global"
    ):
        plot_shapes(local)
    with pytest.raises(
        TypeError, match=r"GlobalExplanation, .* LocalExplanation: use explain_global"
    ):
        plot_interaction(local)
    with pytest.raises(TypeError, match=r"InteractionScores, .* use a model's interaction_scores_"):
        plot_interaction_matrix(local)
