"""Finer pairs at the end of the search for interactions."""

from dataclasses import replace
from functools import cache

import numpy as np

from lanam.core.fit import refinement
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.terms.knots import Grid
from tests.core import in_memory

OPTIONS = Options(interactions=((0, 1),), level_effects=False)


def table(rate, n=2500, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.uniform(-1.0, 1.0, (n, 2))
    f = columns[:, 0] * columns[:, 1]
    f += 0.7 * np.sin(rate * columns[:, 0]) * np.sin(rate * columns[:, 1])
    return columns, f, f + 0.2 * rng.standard_normal(n)


@cache
def fitted(rate, options=OPTIONS):
    columns, _, y = table(rate)
    return in_memory.fit(columns, y, np.ones(len(y)), "gaussian", options, 0)


def pair_of(model):
    (term,) = (term for term in model.terms if term.joint)
    assert isinstance(term.entries, Grid)
    return term


def error(model, rate):
    columns, f, _ = table(rate, seed=1)
    return float(np.std(scoring.link_moments(model, columns)[0] - f))


def test_rough_pairs_are_finer(monkeypatch):
    term = pair_of(fitted(10.0))
    # Half the root of the rows, and two knots beyond the data on either side.
    assert term.entries.shape == (25 + 4, 25 + 4)
    assert term.architecture.scales == (1.0, 4.0, 16.0)
    finer = error(fitted(10.0), 10.0)
    monkeypatch.setattr(refinement, "_KNOTS", ())
    columns, _, y = table(10.0)
    plain = in_memory.fit(columns, y, np.ones(len(y)), "gaussian", OPTIONS, 0)
    assert pair_of(plain).entries.shape == (16 + 4, 16 + 4)
    assert finer < 0.8 * error(plain, 10.0)
    assert fitted(10.0).log_evidence > plain.log_evidence + 10.0


def test_smooth_pairs_are_as_they_were(monkeypatch):
    model = fitted(2.0)
    assert pair_of(model).entries.shape == (20, 20)
    monkeypatch.setattr(refinement, "_KNOTS", ())
    columns, _, y = table(2.0)
    plain = in_memory.fit(columns, y, np.ones(len(y)), "gaussian", OPTIONS, 0)
    assert model.log_evidence == plain.log_evidence
    np.testing.assert_array_equal(pair_of(model).mean, pair_of(plain).mean)


def test_left_out_rows_must_confirm_it(monkeypatch):
    monkeypatch.setattr(refinement, "log_score_change", lambda before, after: (1.0, 2.0))
    columns, _, y = table(10.0)
    model = in_memory.fit(columns, y, np.ones(len(y)), "gaussian", OPTIONS, 0)
    assert pair_of(model).entries.shape == (20, 20)


def test_finite_networks_have_one_design():
    finite = replace(OPTIONS, pair_hidden_sizes=(8,))
    assert pair_of(fitted(10.0, finite)).entries.shape == (20, 20)


def test_a_fit_goes_on_from_finer_pairs():
    model = fitted(10.0)
    columns, _, y = table(10.0)
    again = in_memory.fit_on(model, columns, y, np.ones(len(y)), OPTIONS, 0)
    assert pair_of(again).entries.shape == pair_of(model).entries.shape
    np.testing.assert_allclose(pair_of(again).mean, pair_of(model).mean, atol=0.02)
