"""Questions to curves: slopes, peaks and crossings, against draws of predictions and exact cases."""

import json
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.model import scoring
from lanam.core.model.draws import JointRoot
from lanam.explain.questions import _apart, _crossings, _extremum
from lanam.plot import plot_derivative

QUICK = {"interactions": 0, "noise": "constant"}

#: Monte Carlo error of quantiles and probabilities from 4000 draws.
CLOSE = 0.03


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "dose": rng.uniform(0.0, 10.0, 400),
            "age": rng.integers(20, 80, 400).astype(float),
            "ward": rng.choice(["a", "b"], 400),
            "noise": rng.normal(size=400),
        }
    )
    X.loc[::9, "age"] = np.nan
    y = np.sin(X["dose"] + 0.5) + 0.02 * X["age"].fillna(50) + (X["ward"] == "a")
    return X, (y + rng.normal(0.0, 0.4, 400)).to_numpy()


@pytest.fixture(scope="module")
def model(data):
    return LANAMRegressor(**QUICK).fit(*data)


@pytest.fixture(scope="module")
def explanation(model):
    return model.explain_global()


@pytest.fixture(scope="module")
def several(data):
    X, y = data
    return LANAMClassifier(interactions=0).fit(X, np.digitize(y, [0.8, 1.8]))


def curves_of(model, name, n_draws=20_000):
    """Values within the data, and draws (n, B) of the term there, by prediction."""
    shape = model.explain_global()[name]
    rows = np.zeros((int(shape.inside.sum()), len(model.feature_names_in_)))
    rows[:, shape.features[0]] = values = shape.values[shape.inside].astype(float)
    rng = np.random.default_rng(5)
    return values, scoring.sample_links(model._model, rows, n_draws, rng, [shape.features[0]])


def a_line(slope=0.3, std=0.1):
    """A curve that is a line through the middle of its range, with one coordinate."""
    values = np.linspace(-1.0, 1.0, 21)
    return values, slope * values, JointRoot(values[:, None], np.full((1, 1, 1), std))


class TestDerivative:
    def test_slopes_of_the_curve(self, explanation):
        shape = explanation["dose"]
        derivative = shape.derivative()
        steps = np.diff(derivative.edges)
        assert (steps > 0.0).all()
        # Their sums are the curve again.
        at_edges = np.interp(derivative.edges, shape.values, shape.mean)
        np.testing.assert_allclose(
            at_edges[0] + np.cumsum(derivative.mean * steps), at_edges[1:], atol=1e-12
        )
        assert derivative.edges[0] == shape.values[shape.inside][0]
        assert derivative.edges[-1] == shape.values[shape.inside][-1]

    def test_standard_deviations_and_bands(self, model, explanation):
        derivative = explanation["dose"].derivative()
        values, draws = curves_of(model, "dose")
        kept = np.isin(values, derivative.edges)
        slopes = np.diff(draws[:, kept], axis=1) / np.diff(values[kept])
        np.testing.assert_allclose(derivative.std, slopes.std(axis=0), rtol=0.05)
        lower, upper = derivative.band(0.9, simultaneous=True)
        inside = ((slopes >= lower) & (slopes <= upper)).all(axis=1)
        assert inside.mean() == pytest.approx(0.9, abs=CLOSE)

    def test_sure_ranges_hold_together(self, model, explanation):
        derivative = explanation["dose"].derivative()
        rising, falling = derivative.rising(0.9), derivative.falling(0.9)
        assert len(rising) == 2
        assert len(falling) == 2
        values, draws = curves_of(model, "dose")
        kept = np.isin(values, derivative.edges)
        slopes = np.diff(draws[:, kept], axis=1)
        signs = sum(
            sign * ((derivative.values > start) & (derivative.values < end))
            for sign, ranges in ((1, rising), (-1, falling))
            for start, end in ranges
        )
        assert (signs != 0).sum() > 0.5 * len(signs)
        held = (slopes[:, signs != 0] * signs[signs != 0] > 0.0).all(axis=1)
        assert held.mean() == pytest.approx(0.9, abs=CLOSE)
        assert explanation["dose"].rising(0.9) == rising
        assert explanation["dose"].falling(0.9) == falling

    def test_more_coverage_claims_less(self, explanation):
        derivative = explanation["dose"].derivative()
        sizes = [
            sum(end - start for start, end in derivative.rising(coverage))
            for coverage in (0.5, 0.9, 0.99)
        ]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] > sizes[-1]

    def test_a_line_has_one_slope(self, explanation):
        values, mean, root = a_line()
        shape = replace(
            explanation["dose"],
            values=values,
            mean=mean,
            inside=np.ones(len(values), dtype=bool),
            posterior=root,
        )
        derivative = shape.derivative()
        np.testing.assert_allclose(derivative.mean, 0.3)
        np.testing.assert_allclose(derivative.std, 0.1)
        np.testing.assert_allclose(derivative.certainty, ndtr(3.0), atol=2e-3)
        assert derivative.rising() == ((-1.0, 1.0),)
        assert derivative.rising(0.9999) == ()
        # Simultaneous is pointwise: there is one number.
        assert derivative.half_width(0.95, simultaneous=True) == pytest.approx(1.96, rel=1e-3)

    def test_neighbouring_knots_are_one(self):
        values = np.array([0.0, 1e-9, 0.5, 0.5 + 1e-7, 1.0 - 1e-8, 1.0])
        assert values[_apart(values)].tolist() == [0.0, 0.5, 1.0]
        assert _apart(np.array([0.0, 1.0])).tolist() == [0, 1]


class TestExtrema:
    @pytest.mark.parametrize(("kind", "sign"), [("peak", 1.0), ("trough", -1.0)])
    def test_draws_of_predictions(self, model, explanation, kind, sign):
        answer = getattr(explanation["dose"], kind)(coverage=0.8)
        values, draws = curves_of(model, "dose")
        places = values[(sign * draws).argmax(axis=1)]
        heights = sign * (sign * draws).max(axis=1)
        for end, quantile in (("lower", 0.1), ("upper", 0.9)):
            # As probabilities, since quantiles of two humps may lie far apart; maxima are at knots.
            place = getattr(answer, end)
            assert (places < place - 1e-9).mean() - CLOSE <= quantile
            assert (places <= place + 1e-9).mean() + CLOSE >= quantile
            height = getattr(answer, f"height_{end}")
            assert (heights <= height).mean() == pytest.approx(quantile, abs=CLOSE)
        assert answer.probability_interior > 0.99
        assert answer.kind == kind

    def test_the_end_of_the_data(self, model, explanation):
        answer = explanation["age"].peak()
        values, draws = curves_of(model, "age")
        highest = (draws.argmax(axis=1) == len(values) - 1).mean()
        assert answer.probability_highest == pytest.approx(highest, abs=CLOSE)
        total = answer.probability_interior + answer.probability_lowest + answer.probability_highest
        assert total == pytest.approx(1.0)
        assert "at the upper end of the data with probability" in str(answer)

    def test_a_line(self):
        values, mean, root = a_line()
        answer = _extremum("x", "peak", 0.95, values, mean, mean + root.draws(4000)[0].T)
        assert answer.value == 1.0
        assert answer.height == pytest.approx(0.3)
        assert answer.probability_highest == pytest.approx(ndtr(3.0), abs=2e-3)
        assert answer.probability_lowest == pytest.approx(ndtr(-3.0), abs=2e-3)
        assert answer.height_upper == pytest.approx(0.3 + 0.1 * ndtri(0.975), abs=0.01)


class TestCrossings:
    def test_draws_of_predictions(self, model, explanation):
        answer = explanation["dose"].crossing(0.1, coverage=0.8)
        assert answer.rising.tolist() == [False, True, False]
        values, draws = curves_of(model, "dose", 2000)
        counts = np.array([(np.diff(draw > 0.1)).sum() for draw in draws])
        for count in (3, 4, 5):
            if count < len(answer.count_probabilities):
                assert answer.count_probabilities[count] == pytest.approx(
                    (counts == count).mean(), abs=0.05
                )
        # The middle crossing of draws with three.
        places = [
            np.interp(0.1, draw[at : at + 2], values[at : at + 2])
            for draw in draws[counts == 3]
            for at in np.flatnonzero(np.diff(draw > 0.1))[1:2]
        ]
        assert answer.lower[1] == pytest.approx(np.quantile(places, 0.1), abs=0.02)
        assert answer.upper[1] == pytest.approx(np.quantile(places, 0.9), abs=0.02)
        assert (answer.lower < answer.values).all()
        assert (answer.values < answer.upper).all()

    def test_a_line_crosses_where_its_ratio_is(self):
        # f = b x crosses c where x = c / b; within the data if |b| > |c|.
        values, mean, root = a_line()
        answer = _crossings("x", 0.1, 0.9, values, mean, mean + root.draws(4000)[0].T)
        assert answer.values == pytest.approx([1.0 / 3.0])
        slopes = 0.3 + 0.1 * ndtri((np.arange(100_000) + 0.5) / 100_000)
        ratios = 0.1 / slopes[slopes > 0.1]
        assert answer.probability == pytest.approx([(slopes > 0.1).mean()], abs=5e-3)
        assert answer.lower == pytest.approx([np.quantile(ratios, 0.05)], abs=0.02)
        assert answer.upper == pytest.approx([np.quantile(ratios, 0.95)], abs=0.03)

    def test_several_crossings_of_a_draw_leave_it_above_as_long(self):
        values = np.arange(7.0)
        mean = np.array([-1.0, -1.0, -1.0, 0.5, 1.0, 1.0, 1.0])
        draw = np.array([-1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0])  # up at 1.5, down at 2.5, up at 3.5
        answer = _crossings("x", 0.0, 0.5, values, mean, draw[None])
        assert answer.lower == answer.upper == pytest.approx([1.5 - 2.5 + 3.5])
        assert answer.count_probabilities.tolist() == [0.0, 0.0, 0.0, 1.0]

    def test_none(self, explanation):
        answer = explanation["dose"].crossing(50.0)
        assert len(answer.values) == 0
        assert answer.count_probabilities.tolist() == [1.0]
        assert str(answer) == (
            "dose: the mean curve does not cross 50 (the curve with probability 0.00)"
        )

    def test_a_draw_that_does_not_cross(self):
        values = np.arange(3.0)
        answer = _crossings("x", 0.0, 0.9, values, np.array([-1.0, 1.0, 2.0]), np.ones((1, 3)))
        assert answer.probability.tolist() == [0.0]
        assert np.isnan(answer.lower).all()
        assert answer.to_dict()["lower"] == [None]

    @pytest.mark.parametrize("level", [np.nan, np.inf])
    def test_levels_are_finite(self, explanation, level):
        with pytest.raises(ValueError, match="must be a finite number on the scale"):
            explanation["dose"].crossing(level)


class TestAnswers:
    def test_are_deterministic_and_the_same_in_one_go(self, model, explanation):
        again = model.explain_global()["dose"].answers(0.9)
        shape = explanation["dose"]
        assert again.peak.to_dict() == shape.peak(0.9).to_dict()
        assert again.trough.to_dict() == shape.trough(0.9).to_dict()
        assert again.crossing.to_dict() == shape.crossing(coverage=0.9).to_dict()
        assert again.derivative.to_dict() == shape.derivative().to_dict()
        json.dumps(again.to_dict(), allow_nan=False)
        assert "posterior" not in shape.to_dict()

    def test_signs_of_coordinates_do_not_matter(self, explanation):
        shape = explanation["dose"]
        root = shape.posterior
        turned = replace(
            shape, posterior=JointRoot(-root.table, -root.factors[:, :, ::-1], root.own_variance)
        )
        one, other = shape.peak(), turned.peak()
        assert one.lower == pytest.approx(other.lower)
        assert one.height_upper == pytest.approx(other.height_upper)

    def test_in_words(self, explanation):
        lines = explanation["dose"].answers().lines()
        assert lines[0] == "dose:"
        assert [line.split()[0] for line in lines[1:]] == ["rises", "highest", "lowest", "crosses"]

    def test_of_each_class(self, several):
        explanation = several.explain_global()
        shape = explanation["dose"]
        answers = shape.answers()
        assert len(answers.peak) == len(answers.crossing) == len(shape.rising()) == 3
        assert answers.derivative.mean.shape == answers.derivative.certainty.shape
        assert len(answers.lines(classes=explanation.classes)) == 1 + 3 * 4
        assert "  2: highest at" in "\n".join(answers.lines(classes=explanation.classes))
        # The last class is highest where the target is.
        assert np.sin(answers.peak[2].value + 0.5) > 0.8
        assert "Derivative(" in str(answers.derivative)

    def test_curves_only(self, explanation, data):
        assert {shape.name for shape in explanation.curves} == {"dose", "age"}
        X, y = data
        two = LANAMRegressor(**QUICK).fit(X.assign(ward=X["ward"] == "a")[["ward"]], y)
        assert two.explain_global().curves == ()  # nothing is in between
        with pytest.raises(ValueError, match=r"'ward' is not a curve: peak\(\) is for numeric"):
            explanation["ward"].peak()
        dropped = explanation["noise"]
        assert not dropped.active
        with pytest.raises(ValueError, match=r"'noise' was dropped: .* it has no derivative"):
            dropped.derivative()
        for ask in (explanation["dose"].peak, explanation["dose"].rising):
            with pytest.raises(ValueError, match="must lie between 0 and 1"):
                ask(95)


def test_constrained_curves_obey_their_constraint():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(0.0, 1.0, 150)})
    y = np.minimum(X["x"], 0.5) + rng.normal(0.0, 0.2, 150)
    free, rising = (
        LANAMRegressor(**QUICK, monotonic_cst=given).fit(X, y).explain_global()["x"]
        for given in (None, {"x": 1})
    )
    assert free.peak().probability_interior > 0.1
    assert rising.falling() == ()
    assert rising.trough().probability_lowest > 0.99


class TestPlot:
    def test_slopes_and_sure_ranges(self, explanation):
        axes = plot_derivative(explanation)
        assert [ax.get_xlabel() for ax in axes] == ["dose", "age"]
        derivative = explanation["dose"].derivative()
        (line,) = [line for line in axes[0].lines if len(line.get_xdata()) == len(derivative.edges)]
        np.testing.assert_allclose(line.get_ydata()[:-1], derivative.mean)
        n_sure = len(derivative.rising()) + len(derivative.falling())
        assert sum(text.get_text() in "▲▼" for text in axes[0].texts) == n_sure
        plt.close("all")

    def test_classes(self, several):
        (ax,) = plot_derivative(several.explain_global(), ["dose"], classes=[0, 2])
        assert not ax.texts
        plt.close("all")

    def test_given_axes(self, explanation):
        _, panels = plt.subplots(1, 2)
        assert plot_derivative(explanation, axes=panels)[1] is panels[1]
        with pytest.raises(ValueError, match="2 terms need as many axes, and there are 1"):
            plot_derivative(explanation, axes=panels[0])
        plt.close("all")

    def test_without_curves(self, data):
        X, y = data
        explanation = LANAMRegressor(**QUICK).fit(X[["ward"]], y).explain_global()
        (ax,) = plot_derivative(explanation)
        assert ax.texts[0].get_text() == "no curve is active"
        with pytest.raises(ValueError, match="is not a curve"):
            plot_derivative(explanation, ["ward"])
        plt.close("all")
