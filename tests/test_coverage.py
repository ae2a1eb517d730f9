"""coverage_report: its numbers against the underlying scores and methods, and its text."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom, binom, binomtest, gamma, norm

import lanam
from lanam import LANAMClassifier, LANAMRegressor, coverage_report, metrics
from lanam.metrics.coverage import _calibration_error_limit
from lanam.metrics.curves import binomial_p_value
from lanam.metrics.kernel import skce_limit
from lanam.metrics.report import _significant
from lanam.metrics.scores import quantile_error_limit

LEVELS = (0.5, 0.9, 0.95)


def numbers(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.uniform(-2, 2, n_rows), "b": rng.uniform(-2, 2, n_rows)})
    return X, (np.sin(2 * X["a"]) + 0.3 * rng.normal(size=n_rows)).to_numpy()


@pytest.fixture(scope="module")
def regressor():
    return LANAMRegressor(interactions=0, random_state=0).fit(*numbers(150, 0))


@pytest.fixture(scope="module")
def held_out():
    return numbers(200, 1)


@pytest.fixture
def calibrated(regressor):
    yield regressor.calibrate(*numbers(49, 2))
    del regressor.calibration_


def slow_chance(inside, level):
    tails = [
        binomtest(int(inside.sum()), len(inside), level, side).pvalue
        for side in ("less", "greater")
    ]
    return min(2 * min(tails), 1)


def by_precision(model, X):
    """Means and standard deviations of observations given the noise precision, and its weights.

    A fine trapezoidal rule over the logarithm of the precision, which is gamma distributed.
    """
    df = model._model.noise_df
    assert 50.0 < df < 200.0
    precisions = np.exp(np.sqrt(2.0 / df) * np.linspace(-8.0, 8.0, 101))
    weights = precisions * gamma.pdf(precisions, 0.5 * df, scale=2.0 / df)
    of_mean = np.ptp(model.predict_interval(X, 0.9, kind="mean"), axis=1) / (2 * norm.ppf(0.95))
    stds = np.sqrt(of_mean[:, None] ** 2 + model.noise_std_**2 / precisions)
    return model.predict(X)[:, None], stds, weights / weights.sum()


def distance_of_normal(mean, std):
    """Mean absolute value."""
    return 2.0 * std * norm.pdf(mean / std) + mean * (1.0 - 2.0 * norm.cdf(-mean / std))


class TestIntervals:
    def test_one_record_per_coverage(self, regressor, held_out):
        X, y = held_out
        report = coverage_report(regressor, X, y, levels=LEVELS)
        assert (report.kind, report.n_rows, report.estimator) == (
            "intervals",
            200,
            "LANAMRegressor",
        )
        assert not report.calibrated
        for level, row in zip(LEVELS, report.rows, strict=True):
            lower, upper = regressor.predict_interval(X, level).T
            assert row == {
                "level": level,
                "expected": pytest.approx(level),
                "observed": pytest.approx(np.mean((lower <= y) & (y <= upper))),
                "lowest": binom.ppf(0.025, 200, level) / 200,
                "highest": binom.ppf(0.975, 200, level) / 200,
                "chance": pytest.approx(slow_chance((lower <= y) & (y <= upper), level)),
                "size": pytest.approx(np.mean(upper - lower)),
            }

    def test_scores_are_the_metrics_own(self, regressor, held_out):
        X, y = held_out
        mean, std = regressor.predict(X, return_std=True)
        report = coverage_report(regressor, X, y)
        centre, stds, weights = by_precision(regressor, X)
        density = norm.pdf(y[:, None], centre, stds) @ weights
        pit = norm.cdf(y[:, None], centre, stds) @ weights
        # The mean distance from the observation less half of that between two draws.
        between = distance_of_normal(0.0, np.hypot(stds[:, :, None], stds[:, None, :]))
        crps = distance_of_normal(y[:, None] - centre, stds) @ weights
        crps = crps - 0.5 * (between @ weights) @ weights
        expected = {
            "nll": -np.log(density).mean(),
            "rmse": metrics.rmse(y, mean),
            "crps": crps.mean(),
            "quantile_calibration_error": metrics.quantile_calibration_error(pit),
            "quantile_calibration_error_by_chance": quantile_error_limit(200),
            "skce": metrics.skce(y, mean, std),
            "skce_by_chance": skce_limit(y, mean, std),
        }
        lines = str(report).splitlines()
        for name in ("quantile", "squared kernel"):
            (line,) = [line for line in lines if line.startswith(f"{name} cal")]
            assert re.search(r" \(95% limit if calibrated: \S+\)$", line)
        assert lines[-1] == (
            "Of calibrated models, 95% have a smaller calibration error on as many rows."
        )
        assert report.scores == pytest.approx(expected, rel=1e-8)
        assert report.curve.kind == "quantiles"
        assert report.curve.error == report.scores["quantile_calibration_error"]
        expected = metrics.retention_of(regressor, X, y)
        np.testing.assert_allclose(report.retention.value, expected.value)

    def test_a_well_specified_model_gets_a_good_verdict(self, regressor, held_out):
        report = coverage_report(regressor, *held_out)
        observed = report.rows[3]["observed"]
        lowest, highest = (100 * p for p in binom.ppf([0.025, 0.975], 200, 0.95) / 200)
        assert report.verdict.startswith(
            f"95% intervals: coverage {100 * observed:.1f}% on 200 rows, within the 95% range if "
            f"calibrated ({lowest:.1f}% to {highest:.1f}%)"
        )

    def test_bad_intervals_get_a_bad_verdict(self, regressor, held_out):
        X, y = held_out
        narrow = coverage_report(regressor, X, y + 0.6 * np.sign(np.arange(200) % 2 - 0.5))
        assert "below the 95% range if calibrated" in narrow.verdict
        wide = coverage_report(regressor, X, regressor.predict(X), levels=(0.5, 0.8))
        assert "80% intervals: coverage 100.0% on 200 rows, above the 95% range" in wide.verdict
        assert "coverage at 50% differs significantly" in wide.verdict

    def test_after_calibrate_both_are_reported(self, calibrated, held_out):
        X, y = held_out
        report = coverage_report(calibrated, X, y, levels=(0.9, 0.99))
        first, second = report.rows
        own = calibrated.predict_interval(X, 0.9, calibrated=False)
        calibrated_intervals = calibrated.predict_interval(X, 0.9)
        assert first["size"] == pytest.approx(np.mean(own[:, 1] - own[:, 0]))
        assert first["calibrated_size"] == pytest.approx(
            np.mean(calibrated_intervals[:, 1] - calibrated_intervals[:, 0])
        )
        inside = (calibrated_intervals[:, 0] <= y) & (y <= calibrated_intervals[:, 1])
        assert first["calibrated_observed"] == pytest.approx(inside.mean())
        # rank 45 of 50: a Beta-binomial
        expected = tuple(betabinom.ppf([0.025, 0.975], 200, 45, 5) / 200)
        assert (first["calibrated_lowest"], first["calibrated_highest"]) == expected
        assert second["calibrated_observed"] is None  # 49 rows allow a coverage of 0.98
        assert "too few rows" in str(report)
        assert "90% calibrated intervals: coverage" in report.verdict
        assert report.calibrated
        assert np.isnan(report.to_frame("pandas")["calibrated_size"][1])

    def test_weights_are_frequencies(self, regressor, held_out):
        X, y = held_out
        weight = np.random.default_rng(0).integers(0, 3, size=200)
        rows = np.repeat(np.arange(200), weight)
        weighted = coverage_report(regressor, X, y, sample_weight=weight)
        repeated = coverage_report(regressor, X.iloc[rows], y[rows])
        for own, other in zip(weighted.rows, repeated.rows, strict=True):
            assert own == pytest.approx(other, rel=1e-10)
        own, other = dict(weighted.scores), dict(repeated.scores)
        for name, close in (("skce", 1e-3), ("skce_by_chance", 1e-4)):  # other bandwidths
            assert own.pop(name) == pytest.approx(other.pop(name), abs=close)
        assert own == pytest.approx(other, rel=1e-10)
        assert weighted.n_rows == (weight > 0).sum()

    def test_weights_that_are_hardly_frequencies_warn(self, regressor, held_out):
        with pytest.warns(
            UserWarning, match="is 1000 for every row, and its sum of 200000"
        ) as caught:
            coverage_report(regressor, *held_out, sample_weight=np.full(200, 1000.0))
        assert caught[0].filename == __file__

    def test_other_coverages_are_tested_jointly(self):
        # Calibrated coverages: without a correction, one of four is significant too often.
        rng = np.random.default_rng(0)
        rejected = alone = 0
        for _ in range(1000):
            place = rng.uniform(size=300)
            rows = [
                {"level": level, "chance": binomial_p_value((place <= level).mean(), level, 300)}
                for level in (0.5, 0.8, 0.9, 0.95, 0.99)
            ]
            rejected += bool(_significant(rows[3], rows))
            alone += min(row["chance"] for row in rows) <= 0.05
        assert 0.01 < rejected / 1000 <= 0.05
        assert alone / 1000 > 0.08

    def test_holms_correction(self):
        chances = {0.5: 0.02, 0.8: 0.001, 0.9: 0.015, 0.95: 0.0, 0.99: 0.9}
        rows = [{"level": level, "chance": chance} for level, chance in chances.items()]
        (sentence,) = _significant(rows[3], rows)
        assert sentence == "coverage at 50%, 80%, 90% differs significantly (Holm)"
        rows[0]["chance"] = 0.03  # more than half of 0.05
        (sentence,) = _significant(rows[3], rows)
        assert sentence == "coverage at 80%, 90% differs significantly (Holm)"

    def test_unseen_values_are_reported_once(self, held_out):
        X, y = held_out
        X = X.assign(kind=np.where((y > 0) ^ (np.arange(200) % 5 == 0), "even", "odd"))
        model = LANAMRegressor(interactions=0, random_state=0).fit(X, y)
        new = X.assign(kind=np.where(np.arange(200) < 5, "NEW", X["kind"]))
        labels = np.where(y > 0, "yes", "no")
        classifier = LANAMClassifier(interactions=0, random_state=0).fit(X, labels)
        for own, target in ((model, y), (classifier, labels)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                coverage_report(own, new, target)
            assert len(caught) == 1
            assert "'NEW'" in str(caught[0].message)
            assert caught[0].filename == __file__


def counts(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, 1))
    hours = rng.uniform(0.5, 2.0, size=n_rows)
    return X, rng.poisson(1.5 * hours * np.exp(X[:, 0])), hours


@pytest.fixture(scope="module")
def model_of_counts():
    X, y, hours = counts(400, 0)
    model = LANAMRegressor(likelihood="poisson", interactions=0, random_state=0)
    return model.fit(X, y, exposure=hours)


class TestCounts:
    def test_expected_coverage_of_counts_exceeds_the_nominal(self, model_of_counts):
        model = model_of_counts
        X, y, hours = counts(600, 1)
        report = coverage_report(model, X, y, exposure=hours, levels=(0.5, 0.9))
        for row in report.rows:
            assert row["level"] + 0.01 < row["expected"] < 1
            assert row["lowest"] <= row["observed"] <= row["highest"]
            lower, upper = model.predict_interval(X, row["level"], exposure=hours).T
            own = np.mean((lower <= y) & (y <= upper))
            assert row["observed"] == pytest.approx(own)
            # simulated counts are covered as often as the model predicts
            draws = model.sample(X, 400, random_state=0, exposure=hours)
            new = np.random.default_rng(0).poisson(draws)
            inside = ((lower <= new) & (new <= upper)).mean()
            assert row["expected"] == pytest.approx(
                inside, abs=0.02
            )  # the dispersion is not sampled
        assert set(report.scores) == {
            "nll",
            "rmse",
            "quantile_calibration_error",
            "quantile_calibration_error_by_chance",
        }
        assert report.scores["nll"] == pytest.approx(
            -model.log_likelihood(X, y, exposure=hours), rel=1e-12
        )
        assert "expected" in str(report)
        mean = model.predict(X, exposure=hours)
        own = metrics.count_performance(y, mean, exposure=hours)
        assert report.performance.to_dict() == own.to_dict()

    def test_correct_counts_are_calibrated(self, model_of_counts):
        model = model_of_counts
        X, y, hours = counts(600, 1)
        curve = coverage_report(model, X, y, exposure=hours).curve
        assert ((curve.lower <= curve.observed) & (curve.observed <= curve.upper)).all()
        without = coverage_report(model, X, y, exposure=1.0)
        assert without.curve.error > 3 * curve.error  # hours matter


def classes(n_rows, seed, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    links = 1.5 * np.column_stack([X, -X.sum(axis=1)])[:, :n_classes]
    number = (links + rng.gumbel(size=links.shape)).argmax(axis=1)
    return X, np.array(["low", "<mid>", "up"])[number]


@pytest.fixture(scope="module", params=[2, 3])
def case(request):
    X, y = classes(200, 0, request.param)
    model = LANAMClassifier(interactions=0, random_state=0).fit(X, y)
    return model, *classes(300, 1, request.param)


class TestClasses:
    def test_the_table_is_that_of_the_curve(self, case):
        model, X, y = case
        report = coverage_report(model, X, y)
        table = model.predict_proba(X)
        number = np.searchsorted(model.classes_, y)
        if table.shape[1] == 2:
            truth, probability = number == 1, table[:, 1]
            expected = metrics.root_brier_score(truth, probability)
        else:
            truth, probability = table.argmax(axis=1) == number, table.max(axis=1)
            expected = metrics.root_brier_score(number, table)
        assert report.kind == "classes"
        assert report.scores["root_brier_score"] == pytest.approx(expected)
        assert sum(row["n_rows"] for row in report.rows) == pytest.approx(300)
        for row in report.rows:
            inside = (row["from"] <= probability) & (probability < row["to"])
            assert row["n_rows"] == pytest.approx(inside.sum())
            assert row["probability"] == pytest.approx(probability[inside].mean())
            assert row["observed"] == pytest.approx(truth[inside].mean())
        assert report.scores["calibration_error"] == pytest.approx(
            metrics.expected_calibration_error(truth, probability)
        )
        assert report.scores["accuracy"] == pytest.approx(model.score(X, y))
        assert report.scores["nll"] == pytest.approx(-model.log_likelihood(X, y), rel=1e-8)
        assert report.retention.value[-1] == pytest.approx(model.score(X, y))
        own = metrics.classification_performance(number, table)
        assert report.performance.to_dict() == own.to_dict()
        assert "negative log likelihood" not in str(report)  # the log loss
        assert "expected calibration error" in report.verdict

    def test_sets_are_counted_at_every_level(self, case):
        model, X, y = case
        number = np.searchsorted(model.classes_, y)
        report = coverage_report(model, X, y, levels=(0.7, 0.9))
        for row in report.sets:
            sets = model.predict_set(X, row["level"])
            assert row["observed"] == pytest.approx(sets[np.arange(300), number].mean())
            assert row["size"] == pytest.approx(sets.sum(axis=1).mean())
            assert row["expected"] >= row["level"]
        model.calibrate(X[:150], y[:150])
        again = coverage_report(model, X[150:], y[150:], levels=(0.7, 0.9))
        sets = model.predict_set(X[150:], 0.9)
        assert again.sets[1]["calibrated_size"] == pytest.approx(sets.sum(axis=1).mean())
        assert "90% calibrated sets: coverage" in again.verdict
        del model.calibration_

    def test_wrong_arguments(self, case):
        model, X, y = case
        with pytest.raises(ValueError, match="the model predicts classes"):
            coverage_report(model, X, y, exposure=1.0)
        with pytest.raises(ValueError, match="which is none of"):
            coverage_report(model, X, np.full(300, "other"))
        with pytest.raises(ValueError, match="X has 300 rows and y has 299"):
            coverage_report(model, X, y[1:])


def test_the_limit_of_the_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 1.5, size=150)
    drawn = rng.uniform(size=(2000, 150)) < p
    errors = [metrics.expected_calibration_error(y, p) for y in drawn]
    limit = _calibration_error_limit(p, np.ones(150))
    # Gaussian approximation in bins of about ten rows
    assert np.mean(np.array(errors) <= limit) == pytest.approx(0.95, abs=0.02)
    twice = _calibration_error_limit(p, np.full(150, 2.0))
    assert twice == pytest.approx(limit / np.sqrt(2))


def test_export_and_text(regressor, held_out):
    report = coverage_report(regressor, *held_out, levels=LEVELS)
    facts = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert facts["rows"][0]["level"] == 0.5
    assert facts["curve"]["kind"] == "quantiles"
    assert facts["retention"]["name"] == "rmse"
    assert facts["verdict"] == report.verdict
    assert facts["scores"] == report.scores
    assert json.loads(report.to_json(indent=1)) == facts
    frame = report.to_frame(backend="pyarrow")
    assert frame.column_names[:3] == ["level", "expected", "observed"]
    assert repr(report) == str(report)
    lines = str(report).splitlines()
    assert lines[0] == "LANAMRegressor evaluated on 200 rows"
    assert lines[1] == report.verdict.split("; ")[0]
    head = next(line for line in lines if line.lstrip().startswith("nominal"))
    assert head.split() == [
        "nominal",
        "observed",
        "95%",
        "range",
        "if",
        "calibrated",
        "mean",
        "width",
    ]
    page = report._repr_html_()
    assert page.count("<tr>") == 1 + len(LEVELS) + 1 + len(report.performance)
    # Every figure is printed once.
    assert str(report.performance) in str(report)
    assert str(report).count("RMSE") == 1
    mean = regressor.predict(held_out[0])
    own = metrics.regression_performance(held_out[1], mean)
    assert report.performance.to_dict() == own.to_dict() == facts["performance"]
    assert "<td>95%</td>" in page


def test_names_are_escaped_in_notebooks(held_out):
    class Odd(LANAMRegressor):
        pass

    Odd.__name__ = "<script>"
    report = coverage_report(Odd(interactions=0, random_state=0).fit(*held_out), *held_out)
    assert "<script>" not in report._repr_html_()
    assert "&lt;script&gt; evaluated on 200 rows" in report._repr_html_()


def test_levels_are_checked(regressor, held_out):
    with pytest.raises(ValueError, match=r"coverage=95 must lie between 0 and 1"):
        coverage_report(regressor, *held_out, levels=(95,))
    assert [row["level"] for row in coverage_report(regressor, *held_out, levels=0.9).rows] == [0.9]
    with pytest.raises(ValueError, match="levels is empty"):
        coverage_report(regressor, *held_out, levels=())
    with pytest.raises(ValueError, match="y has 3 values"):
        coverage_report(regressor, held_out[0], [1.0, 2.0, 3.0])
    y = np.where(np.arange(200) % 50 == 7, np.nan, held_out[1])
    with pytest.raises(
        ValueError, match=r"y has 4 of 200 .* the first in row 8 \(counting from 1\): leave"
    ):
        coverage_report(regressor, held_out[0], y)


def test_many_rows_are_compared_in_blocks(regressor, monkeypatch):
    X, y = numbers(300, 3)
    mean, std = regressor.predict(X, return_std=True)
    monkeypatch.setattr("lanam.metrics.coverage._KERNEL_BLOCK", 100)
    report = coverage_report(regressor, X, y)
    assert report.scores["skce"] == pytest.approx(metrics.skce(y, mean, std, block_size=100))


def test_the_public_names():
    assert lanam.coverage_report is metrics.coverage_report
    assert lanam.metrics is metrics
    assert {"coverage_report", "metrics"} <= set(dir(lanam))
    for name in metrics.__all__:
        assert getattr(metrics, name).__doc__
