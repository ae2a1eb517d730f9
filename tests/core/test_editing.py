"""Edits of tables against their definition, value by value, on models made by hand."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from lanam.core.arrays import fixed_point
from lanam.core.model import editing, scoring
from lanam.core.model.editing import WHOLE, Region
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.terms.knots import Categories, Grid, Knots, Levels
from tests.oracles import assert_close

KNOTS = Knots(
    points=np.array([-1.5, -1.0, -0.25, 0.5, 0.75, 1.25, 1.75]),
    inputs=np.array([-3.0, -2.0, -0.5, 1.0, 1.5, 2.5, 3.5]),
    scale=8.0,
    inside=slice(1, 6),
)
GAPPY = replace(KNOTS, missing=True)
SINGLE = Levels(np.array([0.25, 0.5, 1.0, 1.5]), np.empty(0), 4.0, exact=True, missing=True)
BINS = Levels(np.array([0.2, 0.7, 1.1, 1.6]), np.array([0.5, 1.0, 1.4]), 4.0, exact=False)
CITIES = Categories(np.array([2, 0, 4, 1]), 3)

#: The parts that pairs are edited in, and places in and around them.
PLACES = np.array([-20.0, -12.0, -8.0, -5.0, -2.0, 0.0, 1.0, 3.0, 4.0, 5.9, 6.0, 9.0, 14.0, 30.0])


def made(entries, n_classes=1, wide=False, seed=0):
    """A model of a term over these entries and of another one, with a posterior that links all."""
    rng = np.random.default_rng(seed)
    size, width, n_outputs = len(entries), 3, max(n_classes - 1, 1)
    share = rng.dirichlet(np.ones(size))
    if isinstance(entries, Levels):
        share[-1] = 0.0
    share /= share.sum()
    features = (0, 1) if isinstance(entries, Grid) else (0,)
    n_all = (width + 2) * n_outputs + n_outputs if not wide else 3
    own_width = 0 if wide else width

    def shaped(n):
        return rng.normal(size=n) if n_classes == 1 else rng.normal(size=(n, n_classes))

    term = FittedTerm(
        kind="pair" if isinstance(entries, Grid) else "smooth",
        features=features,
        entries=entries,
        data_mass=share,
        mean=shaped(size),
        table=fixed_point(rng.normal(size=(size, own_width))),
        status="active",
        importance=1.0,
        effective_parameters=2.0,
        evidence=3.0,
        precision=np.ones(2),
        expansion=np.empty(0),
        coupling=fixed_point(rng.normal(size=(size, n_all))) if wide else None,
        own_variance=rng.uniform(0.5, 1.0, size) if wide else None,
    )
    other = replace(
        term,
        features=(2,),
        entries=KNOTS,
        kind="smooth",
        data_mass=np.full(7, 1 / 7),
        mean=shaped(7),
        table=fixed_point(rng.normal(size=(7, 2))),
        coupling=None,
        own_variance=None,
    )
    contrasts = None
    if n_classes > 1:
        contrasts = np.linalg.qr(rng.normal(size=(n_classes, n_outputs)))[0]
    return FittedModel(
        likelihood="gaussian" if n_classes == 1 else "softmax",
        intercept=1.5 if n_classes == 1 else rng.normal(size=n_classes),
        terms=(term, other),
        cov_cholesky=fixed_point(np.tril(rng.normal(size=(n_all, n_all)))),
        noise_variance=0.5,
        log_evidence=-7.0,
        contrasts=contrasts,
    )


def rows_of(*columns):
    """Rows with every combination of values of the first columns."""
    grids = np.meshgrid(*columns, indexing="ij")
    rows = np.column_stack([grid.ravel() for grid in grids])
    return np.hstack([rows, np.full((len(rows), 3 - rows.shape[1]), 2.0)])


def gaps(entries):
    """A missing value where it has an entry; where it may be anything, its band follows the function."""
    return [] if entries is KNOTS else [np.nan]


def term_moments(model, rows):
    """Mean and covariance of the first term over rows, from its dense parts."""
    return (
        scoring.term_means(model, rows)[:, 0],
        scoring.term_variances(model, rows)[:, 0],
    )


def joint(model, rows):
    """Mean and covariance of the first term at rows that stand on entries, of one output."""
    term = model.terms[0]
    position = term.entries.locate(*(rows[:, k] for k in term.features))
    index = position.index.astype(int)
    for stride, fraction in position.steps:
        assert set(np.unique(fraction)) <= {0.0, 1.0}
        index = index + stride * fraction.astype(int)
    table = term.table[index]
    covariance = (model.cov_cholesky @ model.cov_cholesky.T)[: table.shape[1], : table.shape[1]]
    return term.mean[index], table @ covariance @ table.T


def assert_same_elsewhere(model, edited, rows, where):
    """Nothing changes where nothing was edited, for the first term, the other and the sum."""
    for function in (scoring.term_means, scoring.term_variances, scoring.link_mean):
        assert_close(
            function(edited, rows)[~where], function(model, rows)[~where], "single precision"
        )
    for before, after in zip(
        scoring.link_moments(model, rows), scoring.link_moments(edited, rows), strict=True
    ):
        assert_close(after[~where], before[~where], "single precision")
    np.testing.assert_array_equal(scoring.edited_rows(edited, rows)[:, 0], where)
    assert not scoring.edited_rows(edited, rows)[:, 1].any()


class TestZero:
    @pytest.mark.parametrize("entries", [KNOTS, GAPPY, BINS], ids=["knots", "gaps", "bins"])
    @pytest.mark.parametrize("ends", [(-5.0, 5.0), (3.0, 3.3), (-np.inf, 4.0), (1.0, np.inf)])
    @pytest.mark.parametrize("n_classes", [1, 3])
    def test_a_range(self, entries, ends, n_classes):
        model = made(entries, n_classes)
        edited, mask = editing.zero(model, 0, [Region(*ends)])
        rows = rows_of(np.r_[np.linspace(-15.0, 15.0, 301), PLACES, gaps(entries)])
        inside = (rows[:, 0] >= ends[0]) & (rows[:, 0] <= ends[1])
        assert inside.any()
        assert_same_elsewhere(model, edited, rows, inside)
        mean, variance = term_moments(edited, rows[inside])
        assert np.all(mean == 0.0)
        assert np.all(variance == 0.0)
        # What is left there is the other term and the intercept, with what links these two.
        both, _ = scoring.link_moments(edited, rows[inside])
        others = model.intercept + scoring.term_means(model, rows[inside])[:, 1]
        assert_close(both, others, "rounding")
        assert mask.any()
        np.testing.assert_array_equal(mask, edited.terms[0].edited)

    @pytest.mark.parametrize("end", [-5.0, 0.0, 0.1, 3.0, 5.9, 10.0])
    def test_ends_are_exact(self, end):
        """The next number is as it was."""
        model = made(KNOTS)
        edited, _ = editing.zero(model, 0, [Region(-6.0, end)])
        step = 8.0 * 2.0**-92 if end == 0.0 else 0.0  # no nearer to zero
        rows = rows_of([np.nextafter(end, -9.0) - step, end, np.nextafter(end, 99.0) + step])
        means = scoring.term_means(edited, rows)[:, 0]
        assert means[0] == means[1] == 0.0
        assert_close(means[2], scoring.term_means(model, rows)[2, 0], "single precision")
        edited, _ = editing.zero(model, 0, [Region(end, 13.0)])
        means = scoring.term_means(edited, rows)[:, 0]
        assert means[1] == means[2] == 0.0
        assert_close(means[0], scoring.term_means(model, rows)[0, 0], "single precision")

    def test_single_values(self):
        model = made(SINGLE)
        # Ends are the same to six digits.
        edited, _ = editing.zero(model, 0, [Region(2.0 * (1.0 + 4e-7), 4.0 * (1.0 - 4e-7))])
        rows = rows_of([1.0, 2.0, 3.0, 4.0, 4.0 * (1.0 + 4e-7), 6.0, np.nan])
        # Three is no value of the data: it keeps what such values have.
        assert_same_elsewhere(model, edited, rows, np.isin(rows[:, 0].round(3), [2.0, 4.0]))
        assert np.all(term_moments(edited, rows_of([2.0, 4.0]))[1] == 0.0)

    def test_slopes_beside_zero_are_finite(self):
        """A knot on the smallest number there is would be a slope beyond all numbers."""
        edited, _ = editing.zero(made(KNOTS), 0, [Region(0.0, 0.0)])
        term = edited.terms[0]
        assert np.isfinite(np.diff(term.mean) / np.diff(term.entries.points)).all()
        assert np.diff(term.entries.points).min() < 1e-27

    @pytest.mark.parametrize("wide", [False, True])
    def test_levels(self, wide):
        model = made(CITIES, wide=wide)
        edited, _ = editing.zero(model, 0, [Region(codes=np.array([0, 3]))])
        rows = rows_of([0.0, 1.0, 2.0, 3.0, 7.0, np.nan])
        assert_same_elsewhere(model, edited, rows, np.isin(rows[:, 0], [0.0, 3.0]))
        assert np.all(np.array(term_moments(edited, rows_of([0.0, 3.0]))) == 0.0)

    @pytest.mark.parametrize("entries", [GAPPY, SINGLE, CITIES], ids=["knots", "levels", "cities"])
    def test_missing_values_alone(self, entries):
        model = made(entries)
        edited, _ = editing.zero(model, 0, [Region(values=False, missing=True)])
        rows = rows_of([0.0, 1.0, 2.0, 9.0, np.nan])
        assert_same_elsewhere(model, edited, rows, np.isnan(rows[:, 0]))
        assert np.all(np.array(term_moments(edited, rows[-1:])) == 0.0)

    @pytest.mark.parametrize(
        "entries", [KNOTS, GAPPY, SINGLE, BINS, CITIES, Grid((KNOTS, CITIES))], ids=str
    )
    def test_everything(self, entries):
        """Also what is missing where nothing was, and what is new."""
        model = made(entries)
        parts = [WHOLE] * len(model.terms[0].features)
        edited, mask = editing.zero(model, 0, parts)
        assert mask.all()
        columns = [[-3.0, 0.0, 1.0, 2.5, 99.0, np.nan]] * len(parts)
        rows = rows_of(*columns)
        assert np.all(np.array(term_moments(edited, rows)) == 0.0)
        assert scoring.edited_rows(edited, rows)[:, 0].all()
        assert edited.terms[0].importance == 0.0
        assert edited.terms[0].active

    @pytest.mark.parametrize("n_classes", [1, 3])
    def test_a_rectangle(self, n_classes):
        model = made(Grid((KNOTS, GAPPY)), n_classes)
        parts = [Region(-5.0, 5.0), Region(high=4.0, missing=True)]
        edited, _ = editing.zero(model, 0, parts)
        rows = rows_of(PLACES, np.r_[PLACES, np.nan])
        first, second = rows[:, 0], rows[:, 1]
        inside = (first >= -5.0) & (first <= 5.0) & ((second <= 4.0) | np.isnan(second))
        assert_same_elsewhere(model, edited, rows, inside)
        assert np.all(scoring.term_means(edited, rows[inside])[:, 0] == 0.0)
        assert np.all(scoring.term_variances(edited, rows[inside])[:, 0] == 0.0)

    def test_levels_of_a_pair(self):
        model = made(Grid((CITIES, KNOTS)))
        edited, _ = editing.zero(model, 0, [Region(codes=np.array([1])), Region(low=2.0)])
        rows = rows_of([0.0, 1.0, 2.0, 8.0, np.nan], PLACES)
        assert_same_elsewhere(model, edited, rows, (rows[:, 0] == 1.0) & (rows[:, 1] >= 2.0))


class TestClamp:
    @pytest.mark.parametrize("entries", [KNOTS, GAPPY, BINS], ids=["knots", "gaps", "bins"])
    @pytest.mark.parametrize("ends", [(-5.0, 3.0), (-np.inf, 4.4), (2.5, np.inf)])
    @pytest.mark.parametrize("n_classes", [1, 3])
    def test_it_is_the_model_at_clipped_values(self, entries, ends, n_classes):
        """Means, variances and draws: the whole joint posterior."""
        model = made(entries, n_classes)
        edited, mask = editing.clamp(model, 0, [Region(*ends)])
        rows = rows_of(np.r_[np.linspace(-15.0, 15.0, 101), PLACES, gaps(entries)])
        clipped = rows.copy()
        clipped[:, 0] = np.clip(rows[:, 0], *ends)
        beyond = clipped[:, 0] < rows[:, 0]
        beyond |= clipped[:, 0] > rows[:, 0]
        assert_same_elsewhere(model, edited, rows, beyond)
        for after, before in zip(
            (*scoring.link_moments(edited, rows[beyond]), *term_moments(edited, rows[beyond])),
            (*scoring.link_moments(model, clipped[beyond]), *term_moments(model, clipped[beyond])),
            strict=True,
        ):
            assert_close(after, before, "single precision")
        draws = [
            scoring.sample_links(one, own[~np.isnan(own[:, 0])], 5, np.random.default_rng(0))
            for one, own in ((edited, rows), (model, clipped))
        ]
        assert_close(*draws, "single precision")
        assert 0 < mask.sum() < len(mask)

    @pytest.mark.parametrize(
        ("ends", "expected"),
        [
            ((2.0, 4.0), [1, 1, 2, 2]),
            ((1.5, 5.0), [5, 1, 2, 5]),
            ((2.0 + 1e-6, 4.0 - 1e-6), [1, 1, 2, 2]),  # the same to six digits
            ((2.5, 3.5), [5, 5, 5, 5]),
            ((-np.inf, 0.5), [5, 5, 5, 5]),
            ((-9.0, 9.0), [0, 1, 2, 3]),
        ],
    )
    def test_single_values(self, ends, expected):
        """Beyond an end they are what the end is, a level or not; new values are as new as they were."""
        model = made(SINGLE)
        edited, mask = editing.clamp(model, 0, [Region(*ends)])
        rows = rows_of([1.0, 2.0, 4.0, 6.0, 3.0, np.nan])
        places = [*expected, 5, 4]
        means = scoring.term_means(edited, rows)[:, 0]
        np.testing.assert_array_equal(means, model.terms[0].mean[places])
        np.testing.assert_array_equal(
            edited.terms[0].table, model.terms[0].table[[*expected, 4, 5]]
        )
        np.testing.assert_array_equal(mask, [*(np.arange(4) != expected), False, False])

    def test_a_pair(self):
        model = made(Grid((GAPPY, KNOTS)))
        edited, _ = editing.clamp(model, 0, [Region(low=-3.0), Region(high=5.0)])
        rows = rows_of(np.r_[PLACES, np.nan], PLACES)
        clipped = rows.copy()
        clipped[:, 0] = np.maximum(rows[:, 0], -3.0)
        clipped[:, 1] = np.minimum(rows[:, 1], 5.0)
        np.testing.assert_array_equal(
            scoring.edited_rows(edited, rows)[:, 0], (rows[:, 0] < -3.0) | (rows[:, 1] > 5.0)
        )
        for after, before in zip(
            term_moments(edited, rows), term_moments(model, clipped), strict=True
        ):
            assert_close(after, before, "single precision")


class TestSmooth:
    @pytest.mark.parametrize("entries", [KNOTS, GAPPY], ids=["knots", "gaps"])
    def test_a_straight_line(self, entries):
        model = made(entries)
        edited, _ = editing.smooth(model, 0, Region(-5.0, 9.0))
        rows = rows_of(np.r_[np.linspace(-15.0, 15.0, 101), PLACES, gaps(entries)])
        inside = (rows[:, 0] > -5.0) & (rows[:, 0] < 9.0)
        assert_same_elsewhere(model, edited, rows, inside)
        # With knots at both ends the posterior of the ends is known, and with it that of the line.
        finer = editing.zero(model, 0, [Region(-5.0, 9.0)])[0].terms[0].entries
        assert {-5.0, 9.0} <= set(finer.values)
        ends = rows_of([-5.0, 9.0])
        table = np.array(
            [
                [np.interp(end, entries.values, column[:7]) for column in model.terms[0].table.T]
                for end in ends[:, 0]
            ]
        )
        covariance = table @ (model.cov_cholesky @ model.cov_cholesky.T)[:3, :3] @ table.T
        place = (rows[inside, 0] + 5.0) / 14.0
        weights = np.column_stack([1.0 - place, place])
        mean, variance = term_moments(edited, rows[inside])
        assert_close(mean, weights @ scoring.term_means(model, ends)[:, 0], "single precision")
        expected = np.einsum("ni,ij,nj->n", weights, covariance, weights)
        assert_close(variance, expected, "single precision")

    def test_open_ends_are_those_of_the_data(self):
        model = made(KNOTS)
        edited, mask = editing.smooth(model, 0, WHOLE)
        values = edited.terms[0].entries.values
        np.testing.assert_array_equal(mask, (values > -8.0) & (values < 10.0))
        means = scoring.term_means(edited, rows_of([-12.0, -8.0, 1.0, 10.0, 14.0]))[:, 0]
        assert_close(means[2], 0.5 * (means[1] + means[3]), "rounding")
        assert_close(means[[0, 1, 3, 4]], model.terms[0].mean[[0, 1, 5, 6]], "rounding")

    @pytest.mark.parametrize("width", [0.5, 3.0, 100.0])
    def test_a_moving_mean(self, width):
        """At knots, against the exact integral of a function that is linear between them."""
        model = made(KNOTS)
        low, high = -5.0, 13.0
        edited, _ = editing.smooth(model, 0, Region(low, high), width)
        entries = edited.terms[0].entries
        clamped = min(high, 10.0)
        values = entries.values[(entries.values > low) & (entries.values < clamped)]
        assert len(values) == 3
        own = np.minimum(np.minimum(width, values - low), clamped - values)

        def mean_of(function):
            result = []
            for value, half in zip(values, own, strict=True):
                ends = [value - half, value + half]
                inner = KNOTS.values[(KNOTS.values > ends[0]) & (KNOTS.values < ends[1])]
                places = np.sort(np.r_[ends, inner])
                heights = np.interp(places, KNOTS.values, function)
                areas = np.diff(places) * 0.5 * (heights[1:] + heights[:-1])
                result.append(areas.sum() / (2.0 * half))
            return np.array(result)

        mean, variance = term_moments(edited, rows_of(values))
        assert_close(mean, mean_of(model.terms[0].mean), "single precision")
        table = np.column_stack([mean_of(column) for column in model.terms[0].table.T])
        covariance = (model.cov_cholesky @ model.cov_cholesky.T)[:3, :3]
        expected = np.einsum("ni,ij,nj->n", table, covariance, table)
        assert_close(variance, expected, "single precision")

    @pytest.mark.parametrize("width", [None, 3.0])
    def test_a_straight_line_stays(self, width):
        model = made(KNOTS)
        term = replace(model.terms[0], mean=2.0 * KNOTS.values + 1.0)
        edited, _ = editing.smooth(
            replace(model, terms=(term, model.terms[1])), 0, Region(-6.0, 9.0), width
        )
        entries = edited.terms[0]
        assert_close(entries.mean, 2.0 * entries.entries.values + 1.0, "rounding")

    def test_single_values(self):
        model = made(SINGLE)
        edited, mask = editing.smooth(model, 0, Region(1.0, 4.0))
        old, new = model.terms[0].mean, edited.terms[0].mean
        assert mask.tolist() == [False, True, False, False, False, False]
        assert_close(new[1], old[0] + (old[2] - old[0]) / 3.0, "rounding")
        np.testing.assert_array_equal(new[[0, 2, 3, 4, 5]], old[[0, 2, 3, 4, 5]])

    def test_levels_get_their_mean(self):
        model = made(CITIES)
        edited, _ = editing.smooth(model, 0, Region(codes=np.array([0, 3])))
        weight = model.terms[0].data_mass[[2, 1]]
        weight = weight / weight.sum()
        rows = rows_of([0.0, 1.0, 2.0, 3.0, np.nan])
        assert_same_elsewhere(model, edited, rows, np.isin(rows[:, 0], [0.0, 3.0]))
        mean, covariance = joint(model, rows_of([0.0, 3.0]))
        own = term_moments(edited, rows_of([0.0, 3.0]))
        assert_close(own[0], np.full(2, weight @ mean), "rounding")
        assert_close(own[1], np.full(2, weight @ covariance @ weight), "single precision")
        draws = scoring.sample_links(edited, rows_of([0.0, 3.0]), 4, np.random.default_rng(0))
        np.testing.assert_array_equal(draws[:, 0], draws[:, 1])

    def test_errors_of_levels_of_their_own(self):
        """Of a mean of independent errors the variance is less."""
        model = made(CITIES, wide=True)
        edited, _ = editing.smooth(model, 0, Region(codes=np.array([0, 3])))
        term = model.terms[0]
        weight = np.zeros(5)
        weight[[1, 2]] = term.data_mass[[1, 2]] / term.data_mass[[1, 2]].sum()
        shared = np.square(weight @ term.coupling @ model.cov_cholesky).sum()
        variance = term_moments(edited, rows_of([0.0, 3.0]))[1]
        expected = shared + np.square(weight) @ term.own_variance
        assert_close(variance, np.full(2, expected), "single precision")

    def test_levels_without_data_have_equal_weights(self):
        model = made(CITIES)
        share = np.array([0.5, 0.0, 0.0, 0.25, 0.25])
        terms = (replace(model.terms[0], data_mass=share), model.terms[1])
        edited, _ = editing.smooth(replace(model, terms=terms), 0, Region(codes=np.array([0, 3])))
        assert_close(edited.terms[0].mean[1], model.terms[0].mean[1:3].mean(), "rounding")

    def test_nothing_between_two_knots(self):
        model = made(KNOTS)
        edited, mask = editing.smooth(model, 0, Region(4.5, 5.5))
        assert not mask.any()
        assert edited.terms[0].edited.sum() == 0


class TestNothingChanges:
    """What a term is already is no edit."""

    @pytest.mark.parametrize("entries", [KNOTS, GAPPY, SINGLE, BINS, CITIES], ids=str)
    def test_zero_again(self, entries):
        edited, first = editing.zero(made(entries), 0, [WHOLE])
        again, second = editing.zero(edited, 0, [Region(missing=entries.missing)])
        assert first.all()
        assert not second.any()
        assert again.terms[0].edited.all()

    @pytest.mark.parametrize("what", ["mean", "table", "coupling", "own_variance"])
    def test_all_that_a_term_has_counts(self, what):
        model = made(CITIES, wide=True)
        table = np.ones((5, 1)) if what == "table" else model.terms[0].table
        term = replace(model.terms[0], table=table)
        rest = {
            name: np.zeros_like(getattr(term, name))
            for name in ("mean", "table", "coupling", "own_variance")
            if name != what
        }
        model = replace(model, terms=(replace(term, **rest), model.terms[1]))
        assert editing.zero(model, 0, [WHOLE])[1].all()

    def test_held_or_straight_already(self):
        """But for rounding, which does not make it another one."""
        edited, _ = editing.clamp(made(KNOTS), 0, [Region(high=2.3)])
        assert not editing.clamp(edited, 0, [Region(high=7.7)])[1].any()
        assert editing.clamp(edited, 0, [Region(high=2.2)])[1].any()
        edited, _ = editing.smooth(made(KNOTS), 0, Region(-5.1, 9.3))
        assert not editing.smooth(edited, 0, Region(-5.1, 9.3))[1].any()


class TestGaps:
    """Missing inputs add the variance of the column's effect to the noise."""

    def model(self):
        pair, other = made(Grid((GAPPY, KNOTS))).terms
        own = made(GAPPY, seed=1).terms[0]
        off = replace(own, features=(1,), status="dropped")
        model = replace(made(GAPPY), terms=(own, off, other, pair))
        return replace(model, missing_variance=np.array([0.3, 0.2, 0.1]))

    def test_it_goes_with_the_last_term(self):
        model = self.model()
        edited, _ = editing.zero(model, 0, [WHOLE])
        np.testing.assert_array_equal(edited.missing_variance, [0.3, 0.2, 0.1])  # the pair is left
        part, _ = editing.zero(edited, 3, [Region(high=3.0), WHOLE])
        np.testing.assert_array_equal(part.missing_variance, [0.3, 0.2, 0.1])
        edited, _ = editing.zero(edited, 3, [WHOLE, WHOLE])
        np.testing.assert_array_equal(edited.missing_variance, [0.0, 0.0, 0.1])
        np.testing.assert_array_equal(model.missing_variance, [0.3, 0.2, 0.1])

    def test_missing_values_alone(self):
        edited, _ = editing.zero(self.model(), 0, [Region(values=False, missing=True)])
        np.testing.assert_array_equal(edited.missing_variance, [0.3, 0.2, 0.1])


class TestWhatGoesAlong:
    def test_the_old_model_stays(self):
        model = made(Grid((KNOTS, GAPPY)))
        before = copy.deepcopy(model)
        editing.zero(model, 0, [Region(-5.0, 5.0), Region(high=4.0)])
        editing.clamp(model, 0, [Region(-5.0, 5.0), Region(high=4.0)])
        editing.smooth(model, 1, Region(-5.0, 5.0))
        for one, two in zip(model.terms, before.terms, strict=True):
            np.testing.assert_array_equal(one.mean, two.mean)
            np.testing.assert_array_equal(one.table, two.table)
            np.testing.assert_array_equal(one.data_mass, two.data_mass)
            assert one.edited is two.edited is None
        np.testing.assert_array_equal(model.cov_cholesky, before.cov_cholesky)

    @pytest.mark.parametrize("entries", [GAPPY, SINGLE, BINS, Grid((KNOTS, GAPPY))], ids=str)
    def test_the_data_stays_where_it_was(self, entries):
        model = made(entries)
        parts = [Region(1.5, 4.5)] * len(model.terms[0].features)
        edited, _ = editing.zero(model, 0, parts)
        if isinstance(entries, Knots):  # and before the data begins
            edited, _ = editing.zero(edited, 0, [Region(-11.0, -9.0)])
        before, after = model.terms[0], edited.terms[0]
        assert_close(after.data_mass.sum(), 1.0, "rounding")
        np.testing.assert_array_equal(
            np.sort(after.data_mass[after.data_mass > 0.0]),
            np.sort(before.data_mass[before.data_mass > 0.0]),
        )
        if isinstance(entries, Knots):
            here = np.isin(after.entries.values, entries.values)
            np.testing.assert_array_equal(after.data_mass[:-1][here], before.data_mass[:-1])
            assert after.data_mass[-1] == before.data_mass[-1]
            inside = after.entries.values[after.entries.inside]
            assert (inside[0], inside[-1]) == (-8.0, 10.0)
        if entries is BINS:
            np.testing.assert_array_equal(
                after.entries.edges * 4, [1.5, 2.0, 4.0, np.nextafter(4.5, 9.0), 5.6]
            )
            for value, share in zip(entries.values, before.data_mass, strict=False):
                place = int(after.entries.locate(np.array([value])).index[0])
                assert after.data_mass[place] == share
                assert after.entries.values[place] == value
            assert np.all(np.diff(after.entries.points) > 0.0)
            np.testing.assert_array_equal(
                after.entries.locate(after.entries.values).index, np.arange(len(after.entries) - 1)
            )

    def test_importance_is_that_of_the_edited_function(self):
        model = made(KNOTS)
        edited, _ = editing.zero(model, 0, [Region(low=3.0)])
        before, after = model.terms[0], edited.terms[0]
        kept = KNOTS.values < 3.0
        share = before.data_mass * np.abs(before.mean)
        assert_close(after.importance, share[kept].sum() / share.sum(), "rounding")
        assert (after.evidence, after.effective_parameters) == (3.0, 2.0)

    def test_edits_add_up(self):
        model = made(KNOTS)
        edited, first = editing.zero(model, 0, [Region(-5.0, 0.0)])
        edited, second = editing.clamp(edited, 0, [Region(high=5.0)])
        edited, _ = editing.zero(edited, 0, [Region(0.0, 1.0)])
        rows = rows_of(np.linspace(-15.0, 15.0, 301))
        value = rows[:, 0]
        where = ((value >= -5.0) & (value <= 1.0)) | (value > 5.0)
        np.testing.assert_array_equal(scoring.edited_rows(edited, rows)[:, 0], where)
        clipped = rows_of(np.minimum(value, 5.0))
        expected = np.where(
            (value >= -5.0) & (value <= 1.0), 0.0, scoring.term_means(model, clipped)[:, 0]
        )
        assert_close(scoring.term_means(edited, rows)[:, 0], expected, "single precision")
        assert first.any()
        assert second.any()

    def test_tables_are_as_exact_as_those_of_a_fit(self):
        model = made(KNOTS)
        edited, _ = editing.smooth(model, 0, Region(-4.1, 9.3), 0.7)
        table = edited.terms[0].table
        np.testing.assert_array_equal(table, fixed_point(table))
