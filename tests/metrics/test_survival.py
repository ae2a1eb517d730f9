"""Scores of survival models against loops over pairs and rows."""

import numpy as np
import pytest

from lanam.metrics import (
    d_calibration,
    harrell_c,
    integrated_brier_score,
    survival_brier_score,
    time_dependent_auc,
    uno_c,
)

N = 80


@pytest.fixture(params=[0, 1])
def outcomes(request):
    """Events, times and risks, with ties in the times and the risks."""
    rng = np.random.default_rng(request.param)
    time = rng.integers(1, 25, N) / 4.0
    return rng.uniform(size=N) < 0.6, time, rng.integers(0, 30, N) / 7.0


def uncensored(event, time, at):
    """The Kaplan-Meier estimate of being uncensored; at equal times events come first."""
    result = 1.0
    for when in np.unique(time[~event]):
        if when <= at:
            at_risk = (time > when).sum() + ((time == when) & ~event).sum()
            result *= 1.0 - ((time == when) & ~event).sum() / at_risk
    return result


def concordance(event, time, risk, weight):
    agreeing = comparable = 0.0
    for i in range(N):
        for j in range(N):
            later = time[j] > time[i] or (time[j] == time[i] and not event[j])
            if event[i] and later and i != j:
                comparable += weight[i]
                agreeing += weight[i] * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return agreeing / comparable


class TestConcordance:
    def test_harrell(self, outcomes):
        expected = concordance(*outcomes, np.ones(N))
        assert harrell_c(*outcomes) == pytest.approx(expected, rel=1e-12)

    def test_uno(self, outcomes):
        event, time, risk = outcomes
        # The last time has no later row to compare.
        before_last = event & (time < time.max())
        weight = np.zeros(N)
        weight[before_last] = [uncensored(event, time, t) ** -2 for t in time[before_last]]
        assert uno_c(event, time, risk) == pytest.approx(concordance(event, time, risk, weight))
        early = np.where(time < 3.0, weight, 0.0)
        found = uno_c(event, time, risk, tau=3.0)
        assert found == pytest.approx(concordance(event, time, risk, early))

    def test_censoring_of_other_rows(self, outcomes):
        event, time, risk = outcomes
        whole = uno_c(event, time, risk)
        assert uno_c(event[:40], time[:40], risk[:40], censoring=(event, time)) != whole
        assert uno_c(event, time, risk, censoring=(event, time)) == whole

    def test_without_pairs_it_is_refused(self):
        with pytest.raises(ValueError, match="no two rows are comparable"):
            harrell_c([0, 0, 1], [1.0, 2.0, 3.0], [0.1, 0.2, 0.3])


class TestAtTimes:
    def test_auc(self, outcomes):
        event, time, risk = outcomes
        for at in (1.0, 3.1):
            score = total = 0.0
            for i in np.flatnonzero(event & (time <= at)):
                weight = 1.0 / uncensored(event, time, time[i])
                for j in np.flatnonzero(time > at):
                    total += weight
                    score += weight * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
            assert time_dependent_auc(event, time, risk, [at])[0] == pytest.approx(score / total)

    def test_a_risk_for_each_time(self, outcomes):
        event, time, risk = outcomes
        both = time_dependent_auc(event, time, np.column_stack([risk, -risk]), [1.0, 3.0])
        assert both[0] == time_dependent_auc(event, time, risk, [1.0])[0]
        assert both[1] == pytest.approx(1.0 - time_dependent_auc(event, time, risk, [3.0])[0])

    def test_brier(self, outcomes):
        event, time, risk = outcomes
        survival = np.exp(-0.2 * np.outer(risk, [1.0, 3.1]))
        scores = []
        for k, at in enumerate((1.0, 3.1)):
            errors = []
            for i in range(N):
                if time[i] > at:
                    errors.append((1.0 - survival[i, k]) ** 2 / uncensored(event, time, at))
                elif event[i]:
                    errors.append(survival[i, k] ** 2 / uncensored(event, time, time[i]))
                else:
                    errors.append(0.0)
            scores.append(np.mean(errors))
        found = survival_brier_score(event, time, survival, [1.0, 3.1])
        np.testing.assert_allclose(found, scores)
        integrated = integrated_brier_score(event, time, survival, [1.0, 3.1])
        assert integrated == pytest.approx(np.mean(scores))

    def test_times_and_shapes_are_checked(self, outcomes):
        event, time, _ = outcomes
        with pytest.raises(ValueError, match="80 rows and a column for each of 2 times"):
            survival_brier_score(event, time, np.ones(N), [1.0, 2.0])
        with pytest.raises(ValueError, match="ascending"):
            integrated_brier_score(event, time, np.ones((N, 2)), [2.0, 1.0])


class TestDCalibration:
    def test_censored_rows_are_spread_over_the_bins_below(self, outcomes):
        event, _, _ = outcomes
        survival = np.random.default_rng(3).uniform(0.01, 0.99, N)
        expected = np.zeros(5)
        for row in range(N):
            own = int(survival[row] * 5)
            if event[row]:
                expected[own] += 1
                continue
            expected[own] += (survival[row] - own / 5) / survival[row]
            expected[:own] += 0.2 / survival[row]
        found = d_calibration(event, survival, n_bins=5)
        np.testing.assert_allclose(found.proportions, expected / N)
        assert found.proportions.sum() == pytest.approx(1.0)

    def test_it_tells_a_calibrated_model_from_another(self):
        rng = np.random.default_rng(0)
        time, censored = rng.exponential(size=2000), rng.exponential(2.0, 2000)
        event, seen = time <= censored, np.minimum(time, censored)
        assert d_calibration(event, np.exp(-seen)).p_value > 0.05
        assert d_calibration(event, np.exp(-1.5 * seen)).p_value < 1e-6


class TestWeights:
    """A row with a weight is that many rows."""

    @pytest.fixture
    def weighted(self, outcomes):
        weight = np.random.default_rng(7).integers(0, 4, N)
        return outcomes, weight, [np.repeat(each, weight) for each in outcomes]

    def test_concordance(self, weighted):
        rows, weight, repeated = weighted
        assert harrell_c(*rows, sample_weight=weight) == pytest.approx(harrell_c(*repeated))
        for tau in (None, 3.0):
            found = uno_c(*rows, tau=tau, sample_weight=weight)
            assert found == pytest.approx(uno_c(*repeated, tau=tau))

    def test_at_times(self, weighted):
        (event, time, risk), weight, repeated = weighted
        times = [1.0, 3.1]
        found = time_dependent_auc(event, time, risk, times, sample_weight=weight)
        np.testing.assert_allclose(found, time_dependent_auc(*repeated, times))
        survival = np.exp(-0.2 * np.outer(risk, times))
        of_repeated = np.repeat(survival, weight, axis=0)
        for score in (survival_brier_score, integrated_brier_score):
            found = score(event, time, survival, times, sample_weight=weight)
            np.testing.assert_allclose(found, score(*repeated[:2], of_repeated, times))

    def test_censoring_of_other_rows(self, weighted):
        (event, time, risk), weight, repeated = weighted
        found = uno_c(event[:40], time[:40], risk[:40], censoring=(event, time, weight))
        expected = uno_c(event[:40], time[:40], risk[:40], censoring=tuple(repeated[:2]))
        assert found == pytest.approx(expected)

    def test_d_calibration(self, weighted):
        (event, _, _), weight, _ = weighted
        survival = np.random.default_rng(3).uniform(0.01, 0.99, N)
        found = d_calibration(event, survival, sample_weight=weight)
        expected = d_calibration(np.repeat(event, weight), np.repeat(survival, weight))
        np.testing.assert_allclose(found.proportions, expected.proportions)
        assert found.p_value == pytest.approx(expected.p_value)

    def test_invalid_weights(self, outcomes):
        with pytest.raises(ValueError, match="sample_weight"):
            harrell_c(*outcomes, sample_weight=-np.ones(N))
