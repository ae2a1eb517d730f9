"""Scoring a fitted model against loops over rows and terms."""

import numpy as np
import pytest

from lanam.core.inference.options import Options
from lanam.core.model import scoring
from tests.core import in_memory
from tests.oracles import assert_close, interpolation_matrix

RNG = np.random.default_rng


@pytest.fixture(scope="module", params=["joint", "block"])
def model(request):
    """Smooth and level terms, one dropped column and one constant."""
    rng = RNG(0)
    level = rng.integers(0, 30, 500)
    columns = np.column_stack(
        [rng.uniform(-2, 2, 500), rng.standard_normal(500), level, np.ones(500)]
    )
    y = 50.0 + 10.0 * (np.sin(2 * columns[:, 0]) + rng.standard_normal(30)[level])
    y += 3.0 * rng.standard_normal(500)
    options = Options(hidden_sizes=(16,), posterior=request.param)
    return in_memory.fit(columns, y, np.ones(500), "gaussian", options, 0)


@pytest.fixture(scope="module")
def rows():
    """Inside and outside of the data, seen and unseen levels."""
    rng = RNG(1)
    return np.column_stack(
        [rng.uniform(-4, 4, 60), rng.standard_normal(60), rng.integers(-3, 34, 60), np.zeros(60)]
    )


def dense_design(model, rows):
    """Every term's mean and design, one row after the other."""
    means, parts = [], []
    for term in model.terms:
        if term.active:
            position = term.entries.locate(rows[:, term.features[0]])
            weights = interpolation_matrix(position, len(term.entries))
            means.append(weights @ term.mean)
            parts.append(weights @ term.table)
        else:
            means.append(np.zeros(len(rows)))
            parts.append(np.empty((len(rows), 0)))
    return np.column_stack(means), parts


def test_the_example_has_terms_of_every_kind(model):
    assert [term.kind for term in model.terms] == ["smooth"] * 4 + ["level"]
    assert [term.active for term in model.terms if term.features != (2,)] == [True, False, False]
    assert model.terms[4].active


@pytest.mark.parametrize("chunk", [7, 1 << 14])
class TestMoments:
    def test_means(self, model, rows, chunk, monkeypatch):
        monkeypatch.setattr(scoring, "_CHUNK_ROWS", chunk)
        means, _ = dense_design(model, rows)
        expected = model.intercept + means.sum(axis=1)
        assert_close(scoring.link_mean(model, rows), expected, "rounding")
        assert_close(scoring.link_moments(model, rows)[0], expected, "rounding")
        assert_close(scoring.term_means(model, rows), means, "rounding")

    def test_variances(self, model, rows, chunk, monkeypatch):
        monkeypatch.setattr(scoring, "_CHUNK_ROWS", chunk)
        _, parts = dense_design(model, rows)
        design = np.hstack([*parts, np.ones((len(rows), 1))])
        expected = np.diag(design @ model.covariance @ design.T)
        assert_close(scoring.link_moments(model, rows)[1], expected, "rounding")
        for k, block in enumerate(model.blocks):
            own = np.diag(parts[k] @ model.covariance[block, block] @ parts[k].T)
            assert_close(scoring.term_variances(model, rows)[:, k], own, "rounding")

    def test_draws(self, model, rows, chunk, monkeypatch):
        expected = scoring.sample_links(model, rows, 5, RNG(0))
        monkeypatch.setattr(scoring, "_CHUNK_ROWS", chunk)
        assert_close(scoring.sample_links(model, rows, 5, RNG(0)), expected, "rounding")


def test_terms_and_intercept_sum_to_the_link(model, rows):
    total = model.intercept + scoring.term_means(model, rows).sum(axis=1)
    assert_close(total, scoring.link_mean(model, rows), "rounding")


def test_draws_have_the_posteriors_moments(model, rows):
    n = 4000
    draws = scoring.sample_links(model, rows, n, RNG(0))
    mean, variance = scoring.link_moments(model, rows)
    # Five standard errors: 60 means fail by chance once in 30,000 seeds.
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * np.sqrt(variance / n)).all()
    error = variance * np.sqrt(2.0 / n)
    assert (np.abs(draws.var(axis=0) - variance) < 5.0 * error).all()


def test_a_draw_is_one_function_for_all_rows(model, rows):
    # Two rows that are the same get the same value in every draw, and neighbours nearly so.
    twice = np.vstack([rows[:1], rows[:1]])
    draws = scoring.sample_links(model, twice, 20, RNG(0))
    np.testing.assert_array_equal(draws[:, 0], draws[:, 1])
    assert draws[:, 0].std() > 0.0


def test_the_root_is_a_root(model):
    assert_close(model.cov_cholesky @ model.cov_cholesky.T, model.covariance, "rounding")


def test_entries_are_what_rows_on_them_get(model):
    for k in (0, 4):
        term = model.terms[k]
        mean, variance = scoring.entry_moments(model, k)
        values = term.entries.values
        rows = np.zeros((len(values), 4))
        rows[:, term.features[0]] = values
        # The last level entry stands for values that were not seen: no value leads there.
        assert_close(mean[: len(values)], scoring.term_means(model, rows)[:, k], "single precision")
        expected = scoring.term_variances(model, rows)[:, k]
        assert_close(variance[: len(values)], expected, "single precision")


def test_no_rows(model):
    nothing = np.empty((0, 4))
    assert scoring.link_mean(model, nothing).shape == (0,)
    assert scoring.link_moments(model, nothing)[1].shape == (0,)
    assert scoring.sample_links(model, nothing, 3, RNG(0)).shape == (3, 0)
