"""Log evidence gains of terms, against refitting without them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from lanam.core.inference import selection
from lanam.core.inference.evidence import Hyper, LinearModel, solve
from lanam.core.inference.prior import Prior
from lanam.core.inference.problem import Regression
from lanam.core.inference.selection import (
    column_threshold,
    eliminate,
    null_evidence,
    term_log_evidence_gains,
)
from lanam.core.rows.statistics import Rows
from lanam.families.bernoulli import Bernoulli
from lanam.families.gaussian import Gaussian
from tests.core.examples import started
from tests.oracles import assert_close


class Example:
    """A Gaussian regression on four terms: a strong one, two duplicates, and noise."""

    def __init__(self, joint=True):
        rng = np.random.default_rng(0)
        n = 80
        x = rng.uniform(-1, 1, (n, 2))
        columns = np.column_stack([x, x[:, 1] + 1e-3 * rng.standard_normal(n), rng.uniform(size=n)])
        y = np.sin(3 * x[:, 0]) + x[:, 1] + 0.3 * rng.standard_normal(n)
        self.problem, state = started(columns, y, np.ones(n), noise=0.1)
        # Wide priors: with narrow ones a twin pays, because it doubles the prior's variance.
        wide = tuple(replace(known, precision=0.1 * known.precision) for known in state.terms)
        state = replace(state, terms=wide)
        linear = Regression.of(self.problem, state)
        self.model, self.joint = linear.model, joint
        self.tables = [part.table for part in linear.compressed]
        self.posterior = self.solve(range(4))

    def solve(self, kept):
        prior = self.model.prior
        columns = np.concatenate(
            [np.arange(prior.blocks[k].start, prior.blocks[k].stop) for k in kept]
            + [[len(self.model.target) - 1]]
        )
        groups = np.concatenate(
            [np.arange(prior.groups[k].start, prior.groups[k].stop) for k in kept]
            + [np.empty(0, int)]
        )
        part = LinearModel(
            self.model.gram[np.ix_(columns, columns)],
            self.model.target[columns],
            self.model.constant,
            Prior(tuple(prior.widths[k] for k in kept), tuple(prior.group_grams[k] for k in kept)),
            self.model.n_rows,
            self.model.log_rho_bound[groups],
        )
        return solve(part, Hyper(np.zeros(len(groups)), 0.1), self.joint)

    def eliminate(self, threshold=None):
        data_mass = self.problem.data_mass
        return eliminate(self.model.prior, self.posterior, self.tables, data_mass, threshold)


@pytest.fixture(scope="module")
def example():
    return Example()


def test_the_gain_is_the_evidence_lost_by_refitting_without_the_term(example):
    found = term_log_evidence_gains(example.model.prior, example.posterior)
    for k in range(4):
        without = example.solve([j for j in range(4) if j != k]).evidence
        assert_close(found[k], example.posterior.evidence - without, "conditioning")
    assert found[0] > 10.0


def test_one_of_two_duplicates_is_dropped_and_the_gain_of_the_other_rises(example):
    dropped, gains, _ = example.eliminate()
    assert len({1, 2} & set(dropped)) == 1
    assert 3 in dropped
    assert 0 not in dropped
    kept_duplicate = ({1, 2} - set(dropped)).pop()
    assert gains[kept_duplicate] > 10.0
    # In the full model the gain of each was small.
    before = term_log_evidence_gains(example.model.prior, example.posterior)
    assert max(before[1], before[2]) < 3.0


def test_each_step_is_a_refit_without_what_went_before(example):
    dropped, gains, _ = example.eliminate()
    left = list(range(4))
    for k in dropped:
        with_it = example.solve(left).evidence
        left.remove(k)
        assert_close(gains[k], with_it - example.solve(left).evidence, "conditioning")
    whole = example.solve(left).evidence
    for k in left:
        without = example.solve([j for j in left if j != k]).evidence
        assert_close(gains[k], whole - without, "conditioning")


def test_the_weakest_is_dropped_first(example):
    dropped, *_ = example.eliminate()
    before = term_log_evidence_gains(example.model.prior, example.posterior)
    assert dropped[0] == int(np.argmin(before))


def test_the_order_of_terms_does_not_matter(example):
    order = [3, 1, 0, 2]
    prior = example.model.prior
    columns = np.concatenate(
        [np.arange(prior.blocks[k].start, prior.blocks[k].stop) for k in order]
        + [[len(example.model.target) - 1]]
    )
    posterior = replace(
        example.posterior,
        mean=example.posterior.mean[columns],
        covariance=example.posterior.covariance[np.ix_(columns, columns)],
    )
    permuted = Prior(
        tuple(prior.widths[k] for k in order), tuple(prior.group_grams[k] for k in order)
    )
    dropped, gains, _ = eliminate(
        permuted,
        posterior,
        [example.tables[k] for k in order],
        [example.problem.data_mass[k] for k in order],
    )
    expected_dropped, expected_gains, _ = example.eliminate()
    assert [order[k] for k in dropped] == expected_dropped
    assert_close(gains, [expected_gains[k] for k in order], "conditioning")


def test_blocks_are_judged_one_by_one():
    example = Example(joint=False)
    dropped, gains, _ = example.eliminate()
    for k, block in enumerate(example.model.prior.blocks):
        mean, own = example.posterior.mean[block], example.posterior.covariance[block, block]
        expected = 0.5 * (mean @ np.linalg.solve(own, mean) + np.linalg.slogdet(own)[1])
        assert gains[k] == pytest.approx(expected)
    assert 3 in dropped


class TestGivenThreshold:
    """Thresholds of the log evidence gain."""

    def test_terms_that_may_not_go_stay(self, example):
        dropped, gains, _ = example.eliminate(lambda k, left: -np.inf)
        assert dropped == []
        assert_close(
            gains, term_log_evidence_gains(example.model.prior, example.posterior), "rounding"
        )
        dropped, *_ = example.eliminate(lambda k, left: np.inf)
        assert sorted(dropped) == [0, 1, 2, 3]

    def test_each_term_has_its_own_threshold(self, example):
        plain = term_log_evidence_gains(example.model.prior, example.posterior)
        # Only the strongest is in question.
        threshold = plain[0] + 1e-6
        assert example.eliminate(lambda k, left: threshold if k == 0 else -np.inf)[0] == [0]
        threshold = plain[0] - 1e-6
        assert example.eliminate(lambda k, left: threshold if k == 0 else -np.inf)[0] == []

    def test_the_weakest_of_those_below_their_threshold_is_dropped(self, example):
        plain = term_log_evidence_gains(example.model.prior, example.posterior)
        assert plain[0] > plain[3]
        dropped, *_ = example.eliminate(lambda k, left: np.inf if k == 0 else -np.inf)
        assert dropped == [0]

    def test_the_threshold_depends_on_the_terms_left(self, example):
        asked = []

        def threshold(k, left):
            asked.append((k, tuple(left)))
            return np.inf if len(left) > 2 else -np.inf

        dropped, *_ = example.eliminate(threshold)
        assert len(dropped) == 2
        last = tuple(k for k in range(4) if k not in dropped)
        assert asked[:4] == [(k, (0, 1, 2, 3)) for k in range(4)]
        assert asked[-2:] == [(k, last) for k in last]

    def test_thresholds_are_those_at_the_time(self, example):
        def threshold(k, left):
            return 1000.0 * len(left) + k

        dropped, _, thresholds = example.eliminate(threshold)
        assert len(dropped) == 4
        expected = [1000.0 * (4 - place) + k for place, k in enumerate(dropped)]
        assert [thresholds[k] for k in dropped] == expected

    def test_visible_terms_have_only_this_threshold(self, example):
        # Without a threshold a visible term stays with any positive gain.
        threshold = selection.MIN_LOG_EVIDENCE_GAIN
        dropped, gains, _ = example.eliminate(lambda k, left: threshold)
        assert all(gains[k] < threshold for k in dropped)
        assert all(gains[k] >= threshold for k in range(4) if k not in dropped)


class TestThreshold:
    """Two terms of one coordinate each, with given gains and spreads."""

    def eliminate(self, mean, variance, sizes=(1.0, 1.0), threshold=None):
        prior = Prior((1, 1), (np.ones((1, 1, 1)),) * 2)
        model = LinearModel(np.eye(3), np.zeros(3), 0.0, prior, None, np.zeros(2))
        posterior = replace(
            solve(model, Hyper(np.zeros(2), 1.0), True),
            mean=np.array([*mean, 0.0]),
            covariance=np.diag([*variance, 1.0]),
        )
        tables = [np.array([[-size], [size]]) for size in sizes]
        return eliminate(prior, posterior, tables, [np.array([0.5, 0.5])] * 2, threshold)

    def mean_for(self, gain, variance):
        """The mean of a term with a given gain, (m^2 / v + log v) / 2."""
        return np.sqrt(variance * (2.0 * gain - np.log(variance)))

    def test_a_visible_term_stays_with_any_positive_gain(self):
        means = [self.mean_for(0.5, 0.1), self.mean_for(3.5, 0.1)]
        dropped, gains, _ = self.eliminate(means, [0.1, 0.1])
        assert gains == pytest.approx([0.5, 3.5])
        assert dropped == []

    def test_a_term_known_to_the_last_digit_stays(self):
        # Rounding has made its covariance singular: only that it is determined is known.
        dropped, gains, _ = self.eliminate([1.0, 1.0], [0.0, 0.0])
        assert dropped == []
        assert gains == [np.inf, np.inf]

    def test_a_visible_term_with_a_negative_gain_is_dropped(self):
        variance = 0.1
        mean = np.sqrt(variance * (-1.0 - np.log(variance)))
        dropped, gains, _ = self.eliminate([mean, 3.0], [variance, variance])
        assert gains[0] == pytest.approx(-0.5)
        assert dropped == [0]

    @pytest.mark.parametrize(("target", "is_dropped"), [(2.9, True), (3.1, False)])
    def test_a_negligible_term_needs_the_minimal_gain(self, target, is_dropped):
        variance = 0.1
        mean = np.sqrt(variance * (2.0 * target - np.log(variance)))
        share = 0.5 * selection.NEGLIGIBLE
        dropped, gains, _ = self.eliminate([mean, mean], [variance, variance / 5], (share, 1.0))
        assert gains[0] == pytest.approx(target)
        assert dropped == ([0] if is_dropped else [])

    @pytest.mark.parametrize(
        ("threshold", "gain", "is_dropped"),
        [
            # a threshold below that of negligible terms does not apply to them, a higher one does
            (0.0, 2.9, True),
            (0.0, 3.1, False),
            (1.0, 2.9, True),
            (4.0, 3.9, True),
            (4.0, 4.1, False),
            # unless they cannot be dropped at all
            (-1e-9, 0.1, False),
            (-np.inf, -5.0, False),
        ],
    )
    def test_the_threshold_of_a_negligible_term(self, threshold, gain, is_dropped):
        variance = 1e-6
        means = [self.mean_for(gain, variance), self.mean_for(9.0, variance)]
        dropped, found, thresholds = self.eliminate(
            means,
            [variance, variance],
            (0.1 * selection.NEGLIGIBLE, 1.0),
            lambda k, left: threshold if k == 0 else -np.inf,
        )
        assert found[0] == pytest.approx(gain)
        assert dropped == ([0] if is_dropped else [])
        negligible = threshold if threshold < 0.0 else selection.MIN_LOG_EVIDENCE_GAIN
        assert thresholds[0] == max(threshold, negligible)


def test_a_term_without_coordinates_is_dropped():
    prior = Prior((0, 1), (np.zeros((2, 0, 0)), np.ones((1, 1, 1))))
    model = LinearModel(100.0 * np.eye(2), np.array([300.0, 0.0]), 0.0, prior, None, np.zeros(3))
    posterior = solve(model, Hyper(np.zeros(3), 1.0), True)
    tables = [np.empty((2, 0)), np.array([[-1.0], [1.0]])]
    dropped, gains, _ = eliminate(prior, posterior, tables, [np.array([0.5, 0.5])] * 2)
    assert dropped == [0]
    assert gains[0] == 0.0
    assert term_log_evidence_gains(prior, posterior)[0] == 0.0
    # however little it would need, even where no term may go
    dropped, *_ = eliminate(
        prior, posterior, tables, [np.array([0.5, 0.5])] * 2, lambda k, left: -np.inf
    )
    assert dropped == [0]


def test_the_null_model_is_the_best_constant():
    rng = np.random.default_rng(0)
    y, weight = rng.normal(1.0, 2.0, 50), rng.uniform(0.5, 2.0, 50)
    rows = Rows((), (), y, weight)
    mean = np.average(y, weights=weight)
    std = np.sqrt(np.average((y - mean) ** 2, weights=weight))
    assert null_evidence(rows, Gaussian()) == pytest.approx(weight @ norm.logpdf(y, mean, std))
    labels = (y > 0).astype(float)
    share = np.average(labels, weights=weight)
    expected = weight @ np.where(labels == 1, np.log(share), np.log(1 - share))
    found = null_evidence(Rows((), (), labels, weight), Bernoulli())
    assert found == pytest.approx(expected)


class TestColumnThreshold:
    def test_prior_odds_where_columns_are_many(self):
        threshold = column_threshold(100, 150)
        assert threshold(0, range(1)) == pytest.approx(np.log(100))
        assert threshold(0, range(4)) == pytest.approx(np.log(97 / 4))
        # Never odds in favour.
        assert threshold(0, range(60)) == 0.0
        assert threshold(0, ()) == threshold(0, range(1))

    def test_hardly_any_where_they_are_few(self):
        assert column_threshold(10, 1000)(0, range(1)) == pytest.approx(0.02 * np.log(10))
        assert column_threshold(1, 50)(0, range(1)) == 0.0


@pytest.mark.parametrize(("n_columns", "n_chosen"), [(5, 0), (5, 5), (6, 2), (200, 14)])
def test_the_number_of_choices(n_columns, n_chosen):
    expected = math.log(math.comb(n_columns, n_chosen))
    assert selection.log_choices(n_columns, n_chosen) == pytest.approx(expected, abs=1e-9)
