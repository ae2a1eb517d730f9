"""Interactions of categories and missing values: ranking, selection, resumed fits, purity."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from lanam.core.fit import interactions, joint
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import ACTIVE
from lanam.core.terms.knots import Categories
from tests.core import in_memory
from tests.oracles import conditional_means, pair_evidence

QUICK = Options(hidden_sizes=(12,), pair_hidden_sizes=(16,), level_effects=False)
AUTO = replace(QUICK, interactions="auto")

#: Columns: two of codes, a numeric one, a numeric one with missing values.
N_LEVELS = (5, 4, -1, -1)

PLANTED = {
    "cells": (0, 1),
    "curves": (0, 2),
    "missingness": (2, 3),
    "missingness by codes": (0, 3),
}


def data(kind, likelihood="gaussian", n=700, seed=0):
    """Main effects of all columns, and one pure interaction."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, n), rng.integers(0, 4, n)
    x, z = rng.uniform(-1.5, 1.5, (2, n))
    missing = rng.uniform(size=n) < 0.35
    signs = np.array([1.0, -1.0, 1.0, -1.0, 0.0])
    planted = {
        "cells": signs[a] * np.array([1.0, -1.0, -1.0, 1.0])[b],
        "curves": 1.2 * signs[a] * np.sin(2.0 * x),
        "missingness": 1.5 * (missing - 0.35) * x,
        "missingness by codes": 2.0 * (missing - 0.35) * signs[a],
        "none": 0.0 * x,
    }[kind]
    f = 0.5 * signs[a] + 0.3 * b + x + np.where(missing, 1.0, np.sin(z)) + planted
    columns = np.column_stack([a, b, x, np.where(missing, np.nan, z)]).astype(float)
    if likelihood == "gaussian":
        return columns, f + 0.5 * rng.standard_normal(n)
    return columns, (rng.uniform(size=n) < expit(2.0 * (f - f.mean()))).astype(float)


def fit(columns, y, options=AUTO, likelihood="gaussian", weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return in_memory.fit(columns, y, weight, likelihood, options, 0, N_LEVELS)


def found(model):
    return {term.features for term in model.terms if term.kind == "pair" and term.active}


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("kind", PLANTED)
class TestPlanted:
    def test_is_ranked_first_and_added(self, kind, likelihood):
        columns, y = data(kind, likelihood)
        model = fit(columns, y, likelihood=likelihood)
        assert model.scored[0].features == PLANTED[kind]
        assert model.scored[0].score > 2.0 * model.scored[1].score + 5.0
        assert model.scored[0].status == ACTIVE
        assert PLANTED[kind] in found(model)
        # By chance one more of six may pass, with a small gain.
        assert len(found(model)) <= 2
        plain = fit(columns, y, QUICK, likelihood)
        assert model.log_evidence > plain.log_evidence + 10.0

    def test_is_pure(self, kind, likelihood):
        columns, y = data(kind, likelihood)
        options = replace(QUICK, interactions=(PLANTED[kind],))
        model = fit(columns, y, options, likelihood)
        (term,) = [t for t in model.terms if t.kind == "pair"]
        means = conditional_means(term.mean, term.data_mass, term.entries.shape)
        np.testing.assert_allclose(means, 0.0, atol=1e-7)
        assert np.sqrt(term.data_mass @ term.mean**2) > 0.2

    def test_a_resumed_fit_is_the_same_fit(self, kind, likelihood):
        columns, y = data(kind, likelihood)
        asked = replace(QUICK, interactions=(PLANTED[kind],))
        at_once = fit(columns, y, asked, likelihood)
        plain = fit(columns, y, QUICK, likelihood)
        weight = np.ones(len(y))
        later = in_memory.fit_on(plain, columns, y, weight, asked, 0)
        assert found(later) == found(at_once) == {PLANTED[kind]}
        # The first stage's tables are recomputed, up to the rank tolerance.
        assert later.log_evidence == pytest.approx(at_once.log_evidence, abs=0.3)
        a, b = (scoring.link_mean(model, columns) for model in (later, at_once))
        assert np.abs(a - b).max() < 0.05 * np.std(b)
        # Resuming again loses nothing.
        again = in_memory.fit_on(later, columns, y, weight, replace(asked, interactions=1), 0)
        assert PLANTED[kind] in found(again)
        assert again.log_evidence > later.log_evidence - 0.3


def test_no_false_interactions():
    columns, y = data("none")
    model = fit(columns, y)
    assert found(model) == set()
    assert max(pair.score for pair in model.scored) < 5.0


def test_the_planted_cells_are_recovered():
    columns, y = data("cells", n=2000)
    model = fit(columns, y, replace(QUICK, interactions=((0, 1),)))
    (term,) = [t for t in model.terms if t.kind == "pair"]
    assert term.entries.shape == (5 + 2, 4 + 2)
    signs = np.outer([1.0, -1.0, 1.0, -1.0, 0.0], [1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(term.mean.reshape(7, 6)[:5, :4], signs, atol=0.25)
    # Unseen categories have the prior mean and a wider band.
    k = model.terms.index(term)
    variance = scoring.entry_moments(model, k)[1].reshape(7, 6)
    assert variance[6, 5] > 3.0 * variance[:5, :4].max()


def test_unseen_and_missing_rows_of_a_pair():
    columns, y = data("curves")
    model = fit(columns, y, replace(QUICK, interactions=((0, 2),)))
    k = [t.features for t in model.terms].index((0, 2))
    rows = np.array(
        [
            [1.0, 0.0, 0.7, 0.0],
            [-1.0, 0.0, 0.7, 0.0],
            [99.0, 0.0, 0.7, 0.0],
            # Missing values in a numeric column that was complete.
            [1.0, 0.0, np.nan, 0.0],
        ]
    )
    mean = scoring.term_means(model, rows)[:, k]
    variance = scoring.term_variances(model, rows)[:, k]
    assert mean[1] == mean[2]
    assert variance[1] == variance[2] > variance[0]
    assert mean[3] == 0.0
    assert mean[0] != 0.0
    term = model.terms[k]
    own, spread = scoring.entry_moments(model, k)
    assert variance[3] == pytest.approx(term.data_mass @ (own**2 + spread))


class TestScores:
    def residuals(self, n=150):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 4, n).astype(float)
        numbers = rng.integers(0, 5, n).astype(float)
        numbers[rng.uniform(size=n) < 0.2] = np.nan
        residual = rng.standard_normal(n) + np.array([1.0, -1.0, 1.0, -1.0])[codes.astype(int)] * (
            np.nan_to_num(numbers) - 2.0
        )
        weight = rng.uniform(0.5, 2.0, n)
        return np.column_stack([codes, numbers]), residual, weight

    def score(self, columns, residual, weight, noise=0.7):
        categories = {0: Categories(np.arange(4), 4)}
        slope, curvature = weight * residual / noise, weight / noise
        return in_memory.evidence_scores(columns, weight, slope, curvature, [(0, 1)], categories)[0]

    def test_is_the_gain_of_a_dense_gaussian_process(self, monkeypatch):
        # Categories and missing values are uncorrelated; numeric cells are correlated with their
        # neighbours.
        monkeypatch.setattr(interactions, "_SMALLEST_DIRECTION", 1e-12)
        monkeypatch.setattr(interactions, "_MAX_DIRECTIONS", 100)
        columns, residual, weight = self.residuals()
        missing = np.isnan(columns[:, 1])
        cells = (
            columns[:, 0].astype(int),
            np.where(missing, 5, np.nan_to_num(columns[:, 1])).astype(int),
        )
        share = [np.bincount(cell, weights=weight) / weight.sum() for cell in cells]
        inside = ~missing
        values = np.arange(5.0)
        mass = np.bincount(cells[1][inside], weights=weight[inside])
        centre = np.average(values, weights=mass)
        spread = np.sqrt(np.average((values - centre) ** 2, weights=mass))
        best = 0.0
        for length in (0.5, 1.0, 2.0):
            near = np.zeros((6, 6))
            near[5, 5] = 1.0
            for i in range(5):
                for j in range(5):
                    near[i, j] = np.exp(-0.5 * ((values[i] - values[j]) / spread / length) ** 2)
            kernels = []
            for kernel, own in zip((np.eye(4), near), share, strict=True):
                with_mean = kernel @ own
                kernels.append(kernel - np.outer(with_mean, with_mean) / (own @ with_mean))
            variances = interactions._VARIANCES
            best = max(best, pair_evidence(kernels, cells, residual, weight, 0.7, variances))
        assert best > 5.0
        assert self.score(columns, residual, weight) == pytest.approx(best, rel=1e-6)

    def test_names_of_categories_do_not_matter(self):
        columns, residual, weight = self.residuals()
        renamed = columns.copy()
        renamed[:, 0] = np.array([2, 0, 3, 1])[columns[:, 0].astype(int)]
        before, after = (self.score(c, residual, weight) for c in (columns, renamed))
        assert after == pytest.approx(before)

    def test_codes_are_not_ordered(self):
        # Alternating signs are smooth in no order of the categories, and cells need none.
        columns, residual, weight = self.residuals()
        slope, curvature = weight * residual / 0.7, weight / 0.7
        as_numbers = in_memory.evidence_scores(columns, weight, slope, curvature, [(0, 1)])[0]
        assert self.score(columns, residual, weight) > as_numbers + 1.0

    def test_rare_categories_share_a_cell(self, monkeypatch):
        monkeypatch.setitem(joint._SIZES, 2, replace(joint._SIZES[2], most_levels=2))
        column = np.repeat(np.arange(4.0), [9, 7, 2, 1])
        columns, codes = np.column_stack([column, column]), {0: Categories(np.arange(4), 4)}
        binned = interactions.bin_columns(in_memory.summary(columns, None, codes), [(0, 1)], codes)[
            0
        ]
        assert binned.n_cells == 3
        cell = binned.number[binned.entries.locate(column).index]
        np.testing.assert_array_equal(cell, np.repeat([0, 1, 2, 2], [9, 7, 2, 1]))


def test_columns_that_are_never_missing_together():
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1.5, 1.5, (500, 2))
    which = rng.uniform(size=500)
    y = 2.0 * columns[:, 0] * columns[:, 1] + 0.3 * rng.standard_normal(500)
    columns[which < 0.15, 0] = np.nan
    columns[which > 0.85, 1] = np.nan
    options = replace(QUICK, interactions=((0, 1),))
    model = in_memory.fit(columns, y, np.ones(500), "gaussian", options, 0)
    (term,) = [t for t in model.terms if t.kind == "pair"]
    assert term.data_mass[-1] == 0.0
    there = ~np.isnan(columns).any(axis=1)
    f = scoring.link_mean(model, columns[there])
    assert np.sqrt(np.mean((y[there] - f) ** 2)) < 0.6
    # Standard deviations stay of the response's order, even in the cell without rows.
    nowhere = np.full((1, 2), np.nan)
    variance = scoring.link_moments(model, np.vstack([columns[there], nowhere]))[1]
    assert np.sqrt(variance[:-1]).mean() < 0.3
    assert np.sqrt(variance[-1]) < 10.0 * np.std(y)
