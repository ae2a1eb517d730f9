"""Performance: values against scikit-learn's, intervals against the bootstrap and textbook formulas."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn import metrics as sk

from lanam.errors import InputError
from lanam.metrics import (
    classification_performance,
    count_performance,
    influence,
    regression_performance,
)


def classes(n_rows=300, seed=0):
    """Events with probabilities that are too extreme, rounded so that there are ties, and weights."""
    rng = np.random.default_rng(seed)
    link = rng.normal(size=n_rows)
    y = (rng.uniform(size=n_rows) < 1 / (1 + np.exp(0.5 - link))).astype(int)
    p = np.round(1 / (1 + np.exp(-1.7 * link)), 2).clip(0.01, 0.99)
    return y, np.column_stack([1 - p, p]), rng.integers(1, 4, n_rows).astype(float)


def several_classes(n_rows=200):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0, 2.0, 1.5], n_rows)
    y = np.array([rng.choice(3, p=each) for each in p])
    return y, p, rng.integers(1, 4, n_rows).astype(float)


def numbers(n_rows=200):
    rng = np.random.default_rng(2)
    mean = rng.normal(size=n_rows)
    return mean + rng.standard_t(5, n_rows), mean, rng.integers(1, 4, n_rows).astype(float)


def counts(n_rows=250):
    rng = np.random.default_rng(3)
    mean = rng.gamma(2.0, 1.0, n_rows)
    return rng.poisson(1.2 * mean), mean, rng.integers(1, 4, n_rows).astype(float)


CASES = {
    "two": (classification_performance, classes()),
    "three": (classification_performance, several_classes()),
    "numbers": (regression_performance, numbers()),
    "counts": (count_performance, counts()),
}


def values(performance):
    return {figure.name: figure.value for figure in performance}


def test_two_classes_as_scikit_learn():
    y, p, weight = classes()
    found = values(classification_performance(y, p, sample_weight=weight))
    options = {"sample_weight": weight}
    assert found["auroc"] == pytest.approx(sk.roc_auc_score(y, p[:, 1], **options))
    assert found["auprc"] == pytest.approx(sk.average_precision_score(y, p[:, 1], **options))
    assert found["brier_score"] == pytest.approx(sk.brier_score_loss(y, p[:, 1], **options))
    assert found["log_loss"] == pytest.approx(sk.log_loss(y, p, **options))
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(y, p.argmax(1), **options))


def test_several_classes_as_scikit_learn():
    y, p, weight = several_classes()
    found = values(classification_performance(y, p, sample_weight=weight))
    auroc = sk.roc_auc_score(y, p, multi_class="ovr", average="macro", sample_weight=weight)
    assert found["macro_auroc"] == pytest.approx(auroc)
    assert found["log_loss"] == pytest.approx(sk.log_loss(y, p, sample_weight=weight))
    squares = ((p - np.eye(3)[y]) ** 2).sum(axis=1)
    assert found["brier_score"] == pytest.approx(np.average(squares, weights=weight))
    accuracy = sk.accuracy_score(y, p.argmax(1), sample_weight=weight)
    assert found["accuracy"] == pytest.approx(accuracy)
    assert list(found) == ["macro_auroc", "brier_score", "log_loss", "accuracy"]


@pytest.mark.parametrize("unit", [1.0, 1e160, 1e-160])
def test_numbers_as_scikit_learn(unit):
    y, mean, weight = numbers()
    found = values(regression_performance(unit * y, unit * mean, sample_weight=weight))
    assert found["r2"] == pytest.approx(sk.r2_score(y, mean, sample_weight=weight))
    rmse = math.sqrt(sk.mean_squared_error(y, mean, sample_weight=weight))
    assert found["rmse"] / unit == pytest.approx(rmse)
    mae = sk.mean_absolute_error(y, mean, sample_weight=weight)
    assert found["mae"] / unit == pytest.approx(mae)


def test_counts_as_scikit_learn():
    y, mean, weight = counts()
    performance = count_performance(y, mean, sample_weight=weight)
    found = values(performance)
    deviance = sk.mean_poisson_deviance(y, mean, sample_weight=weight)
    assert found["deviance"] == pytest.approx(deviance)
    explained = sk.d2_tweedie_score(y, mean, power=1, sample_weight=weight)
    assert found["deviance_explained"] == pytest.approx(explained)
    assert found["actual_over_expected"] == pytest.approx(weight @ y / (weight @ mean))


def test_the_one_rate_of_counts_is_per_exposure():
    y, mean, _ = counts()
    exposure = np.linspace(0.5, 2.0, len(y))
    rate = y.sum() / exposure.sum()
    found = count_performance(y, mean, exposure=exposure)["deviance"]
    assert found.reference == pytest.approx(sk.mean_poisson_deviance(y, rate * exposure))


def test_calibration_is_a_logistic_regression_of_the_classes_on_the_log_odds():
    y, p, weight = classes()
    log_odds = np.log(p[:, 1] / p[:, 0])

    def loss(a, b):
        link = a + b * log_odds
        return float(weight @ (np.log1p(np.exp(-np.abs(link))) + np.maximum(link, 0) - y * link))

    found = values(classification_performance(y, p, sample_weight=weight))
    _, slope = minimize(lambda at: loss(*at), [0.0, 1.0], tol=1e-12).x
    (intercept,) = minimize(lambda at: loss(at[0], 1.0), [0.0], tol=1e-12).x
    assert found["calibration_slope"] == pytest.approx(slope, abs=1e-5)  # of the minimiser
    assert found["calibration_intercept"] == pytest.approx(intercept, abs=1e-5)
    assert slope < 0.8  # the probabilities are too extreme


@pytest.mark.parametrize("case", CASES)
def test_a_weight_is_a_number_of_rows(case):
    compute, (y, predicted, weight) = CASES[case]
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = compute(y, predicted, sample_weight=weight)
    plain = compute(y[repeated], predicted[repeated])
    for one, other in zip(weighted, plain, strict=True):
        assert (one.name, one.reference_name) == (other.name, other.reference_name)
        ends = [(each.value, each.lower, each.upper, each.reference) for each in (one, other)]
        assert ends[0] == pytest.approx(ends[1], rel=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_the_influence_of_a_row_is_the_derivative_by_its_weight(case):
    compute, (y, predicted, weight) = CASES[case]
    performance = compute(y, predicted, sample_weight=weight)
    step = 1e-3  # of weights that sum to hundreds
    n_rows = min(len(y), 60)
    table = np.array(
        [
            [
                [figure.value for figure in compute(y, predicted, sample_weight=weight + shift)]
                for shift in (step * np.eye(len(y))[k], -step * np.eye(len(y))[k])
            ]
            for k in range(n_rows)
        ]
    )
    slopes = (table[:, 0] - table[:, 1]) / (2 * step) * weight.sum()
    recorded = []
    original = influence.Estimate.std_error

    def spy(self, weight, group=None):
        recorded.append(self.influence[:n_rows])
        return original(self, weight, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(influence.Estimate, "std_error", spy)
        compute(y, predicted, sample_weight=weight)
    for k, figure in enumerate(performance):
        np.testing.assert_allclose(recorded[k], slopes[:, k], atol=2e-3, err_msg=figure.name)


@pytest.mark.parametrize("case", CASES)
def test_intervals_agree_with_the_bootstrap(case):
    compute, (y, predicted, _) = CASES[case]
    performance = compute(y, predicted)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(300):
        drawn = rng.integers(len(y), size=len(y))
        draws.append([figure.value for figure in compute(y[drawn], predicted[drawn])])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    for k, figure in enumerate(performance):
        # 300 draws know their outer quantiles to about a tenth of the width.
        slack = 0.25 * (high[k] - low[k])
        assert abs(figure.lower - low[k]) < slack, figure.name
        assert abs(figure.upper - high[k]) < slack, figure.name


def test_a_wider_coverage_is_a_wider_interval():
    y, p, _ = classes()
    usual, wide = (classification_performance(y, p, coverage=c) for c in (0.95, 0.99))
    for one, other in zip(usual, wide, strict=True):
        assert other.lower < one.lower < one.value < one.upper < other.upper
    assert "99% interval" in str(wide)


def test_perfect_discrimination_is_not_certain():
    p = np.array([0.1, 0.2, 0.3, 0.8, 0.9])
    found = classification_performance([0, 0, 0, 1, 1], np.column_stack([1 - p, p]))
    for name in ("auroc", "auprc", "accuracy"):
        assert found[name].value == found[name].upper == 1.0
        assert 0.2 < found[name].lower < 0.8
    assert math.isnan(found["calibration_slope"].value)  # infinite
    assert found["calibration_slope"].cells()[:2] == ("-", "-")


def test_rows_of_one_class_do_not_determine_ranks_and_calibration():
    p = np.column_stack([[0.4, 0.2, 0.3], [0.6, 0.8, 0.7]])
    found = classification_performance([1, 1, 1], p)
    for name in ("auroc", "calibration_slope", "calibration_intercept"):
        assert math.isnan(found[name].value)
    assert found["accuracy"].value == 1.0
    assert json.loads(found.to_json())["figures"][0]["value"] is None


def test_a_class_without_rows_is_left_out_of_the_macro_average():
    y, p, _ = several_classes()
    kept = y != 2
    found = classification_performance(y[kept], p[kept])["macro_auroc"].value
    each = [sk.roc_auc_score(y[kept] == k, p[kept][:, k]) for k in (0, 1)]
    assert found == pytest.approx(np.mean(each))


def test_constant_targets_and_single_rows():
    assert math.isnan(regression_performance([2.0, 2.0], [1.0, 2.0])["r2"].value)
    one = regression_performance([2.0], [1.0])["rmse"]
    assert one.value == 1.0
    assert math.isnan(one.lower)
    assert one.cells()[1] == "-"
    assert regression_performance([1.0, 2.0], [1.0, 2.0])["rmse"].upper == 0.0
    none = count_performance([0, 0], [0.5, 0.5])
    assert none["actual_over_expected"].value == 0.0
    assert none["deviance"].value == pytest.approx(1.0)


def test_the_same_figures_printed_as_a_frame_as_json_and_in_a_notebook():
    pytest.importorskip("pandas", reason="the frame's library")
    y, p, _ = classes()
    performance = classification_performance(y, p)
    frame = performance.to_frame("pandas").set_index("figure")
    plain = {figure["name"]: figure for figure in json.loads(performance.to_json())["figures"]}
    for figure in performance:
        assert frame.loc[figure.name, "lower"] == figure.lower
        assert plain[figure.name]["upper"] == figure.upper
        line = next(each for each in str(performance).splitlines() if figure.label in each)
        assert f"{figure.lower:.3f}"[:4] in line
        assert f"<td>{figure.label}</td>" in performance._repr_html_()
    assert len(performance) == 7
    assert "auroc" in performance
    with pytest.raises(KeyError, match=r"no figure 'auc'; there are .*'auroc'"):
        performance["auc"]


def test_bad_arguments_name_themselves():
    with pytest.raises(InputError, match="mean must be positive") as caught:
        count_performance([1, 2], [1.0, 0.0])
    assert caught.value.argument == "mean"
    with pytest.raises(InputError, match="y must not be negative"):
        count_performance([-1, 2], [1.0, 1.0])
