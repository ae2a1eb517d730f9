"""Sums of some terms, and their differences between rows, against dense matrices and draws."""

import numpy as np
import pytest

from lanam.core.fit import prepare
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from tests.core import in_memory
from tests.oracles import assert_close, interpolation_matrix

RNG = np.random.default_rng


def make_rows(n_rows, seed, beyond=0.0):
    """Two numeric columns and one of codes."""
    rng = RNG(seed)
    ends = 2.0 + beyond
    numbers = rng.uniform(-ends, ends, (n_rows, 2))
    return np.column_stack([numbers, rng.integers(0, 40, n_rows).astype(float)])


@pytest.fixture(scope="module", params=["gaussian", "bernoulli", "softmax", "wide"])
def model(request):
    columns = make_rows(900, 0)
    effect = RNG(1).normal(0.0, 1.0, 40)
    target = np.sin(2.0 * columns[:, 0]) + columns[:, 0] * columns[:, 1]
    target += effect[columns[:, 2].astype(int)] + 0.3 * RNG(2).standard_normal(900)
    kind = request.param
    response = {
        "gaussian": target,
        "wide": target,
        "bernoulli": (target > 0.0).astype(float),
        "softmax": np.digitize(target, [-1.0, 1.0]).astype(float),
    }[kind]
    with pytest.MonkeyPatch.context() as patch:
        if kind == "wide":
            patch.setattr(prepare, "_WIDE", 30)
        fitted = in_memory.fit(
            columns,
            response,
            np.ones(900),
            "gaussian" if kind == "wide" else kind,
            Options(hidden_sizes=(16,), interactions=0 if kind == "wide" else ((0, 1),)),
            0,
            (-1, -1, 40),
        )
    assert sum(term.active for term in fitted.terms) >= 2
    assert (fitted.terms[2].coupling is not None) == (kind == "wide")
    return fitted


def dense_factors(model, terms, rows):
    """Mean (n, C), and the factors (C, n, ...) of the model's errors and of high-cardinality effects."""
    contrasts = np.ones((1, 1)) if model.contrasts is None else model.contrasts
    n_classes, n_outputs = contrasts.shape
    n_own = sum(len(term.mean) for term in model.terms if term.own_variance is not None)
    mean = np.zeros((len(rows), n_classes))
    shared = np.zeros((n_classes, len(rows), len(model.covariance)))
    own = np.zeros((n_classes, len(rows), n_own))
    for k in terms:
        term = model.terms[k]
        if not term.active:
            continue
        place = term.entries.locate(*rows[:, list(term.features)].T)
        weights = interpolation_matrix(place, len(term.entries))
        mean += (weights @ term.mean).reshape(len(rows), -1)
        if term.coupling is not None:
            shared[0] += weights @ term.coupling
            own[0] += weights * np.sqrt(term.own_variance)
        block = model.blocks[k]
        width = term.table.shape[1]
        for c in range(n_classes):
            for output in range(n_outputs):
                start = block.start + output * width
                shared[c, :, start : start + width] += contrasts[c, output] * weights @ term.table
    return mean, shared, own


def dense_moments(model, terms, columns, reference=None):
    mean, shared, own = dense_factors(model, terms, columns)
    if reference is not None:
        there = dense_factors(model, terms, reference)
        mean, shared, own = (
            here - away for here, away in zip((mean, shared, own), there, strict=True)
        )
    variance = np.einsum("cni,ij,dnj->ncd", shared, model.covariance, shared)
    variance += np.einsum("cni,dni->ncd", own, own)
    if model.contrasts is None:
        return mean[:, 0], variance[:, 0, 0]
    return mean, variance


@pytest.mark.parametrize("chunk", [7, 1 << 14])
class TestMoments:
    @pytest.mark.parametrize("chosen", [[0], [2], [0, 2], [0, 1, 2, -1]])
    def test_sums_and_differences(self, model, chosen, chunk, monkeypatch):
        monkeypatch.setattr(scoring, "_CHUNK_ROWS", chunk)
        terms = sorted({k % len(model.terms) for k in chosen})
        rows, others = make_rows(50, 3, beyond=1.0), make_rows(50, 4, beyond=1.0)
        others[:10, 2] = rows[:10, 2]  # levels that are the same
        for reference in (None, others, others[:1]):
            found = scoring.sum_moments(model, terms, rows, reference)
            many = reference if reference is None else np.broadcast_to(reference, rows.shape)
            expected = dense_moments(model, terms, rows, many)
            assert_close(found[0], expected[0], "rounding")
            assert_close(found[1], expected[1], "rounding")

    def test_all_terms_are_the_link(self, model, chunk, monkeypatch):
        monkeypatch.setattr(scoring, "_CHUNK_ROWS", chunk)
        rows, everything = make_rows(30, 5), range(len(model.terms))
        mean, _ = scoring.sum_moments(model, everything, rows)
        assert_close(mean + model.intercept, scoring.link_mean(model, rows), "rounding")
        for k in everything:
            mean, variance = scoring.sum_moments(model, [k], rows)
            assert_close(mean, scoring.term_means(model, rows)[:, k], "rounding")
            own = variance if variance.ndim == 1 else np.diagonal(variance, axis1=1, axis2=2)
            assert_close(own, scoring.term_variances(model, rows)[:, k], "rounding")


def test_the_difference_of_a_row_to_itself_is_zero(model):
    rows = make_rows(40, 6, beyond=1.0)
    rows[0, 2] = -1.0  # a level never seen
    mean, variance = scoring.sum_moments(model, range(len(model.terms)), rows, rows.copy())
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_array_equal(variance, 0.0)


def test_draws_of_all_terms_have_the_same_moments(model):
    rows, others = make_rows(6, 7), make_rows(6, 8)
    everything = range(len(model.terms))
    mean, variance = scoring.sum_moments(model, everything, rows, others)
    draws = scoring.sample_links(model, np.vstack([rows, others]), 20_000, RNG(0))
    apart = draws[:, :6] - draws[:, 6:]
    std = np.sqrt(variance if variance.ndim == 1 else np.diagonal(variance, axis1=1, axis2=2))
    # With 20,000 draws: means to a hundredth of a standard deviation, these to half a per cent.
    np.testing.assert_allclose((apart.mean(axis=0) - mean) / std, 0.0, atol=0.04)
    np.testing.assert_allclose(apart.std(axis=0), std, rtol=0.03)


def test_draws_of_some_terms(model):
    rows, terms = make_rows(5, 9), [0, 2]
    mean, variance = scoring.sum_moments(model, terms, rows)
    draws = scoring.sample_links(model, rows, 20_000, RNG(0), terms)
    assert draws.shape == (20_000, *mean.shape)
    std = np.sqrt(variance if variance.ndim == 1 else np.diagonal(variance, axis1=1, axis2=2))
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / std, 0.0, atol=0.04)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.03)


def test_missing_values_of_complete_columns(model):
    # Unknown in either row, independently; without effect on dropped terms.
    assert model.terms[0].active
    rows, others = make_rows(4, 10), make_rows(4, 11)
    rows[0, 0] = others[1, 0] = rows[2, 0] = others[2, 0] = np.nan
    mean, variance = scoring.sum_moments(model, [0], rows, others)
    spread = scoring.unknown_spread(model, 0)
    known = [scoring.sum_moments(model, [0], side) for side in (rows[1:2], others[:1])]
    assert_close(mean[:2], np.stack([-known[1][0][0], known[0][0][0]]), "rounding")
    assert_close(variance[0], known[1][1][0] + spread, "rounding")
    assert_close(variance[1], known[0][1][0] + spread, "rounding")
    assert_close(variance[2], 2.0 * spread, "rounding")
    np.testing.assert_array_equal(mean[2], 0.0)
    others[:, 2] = rows[:, 2]
    mean, variance = scoring.sum_moments(model, [2], rows, others)
    np.testing.assert_array_equal(variance, 0.0)
