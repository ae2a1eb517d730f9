"""Compression: tables are the whitened, centred Jacobian in the directions that the data identifies."""

from dataclasses import replace

import numpy as np
import pytest

from lanam.core.rows import reading
from lanam.core.terms import linearise
from lanam.core.terms.knots import place_knots, place_levels, summarise
from lanam.core.terms.linearise import (
    PAIR_TOLERANCE,
    RANK_TOLERANCE,
    compress,
    initial_precision,
    tangent,
)
from lanam.core.terms.networks import Architecture
from lanam.core.terms.term import LevelTerm, SmoothTerm
from tests.core import in_memory
from tests.oracles import assert_close

RNG = np.random.default_rng


@pytest.fixture(params=["layer", "network"])
def smooth(request):
    column = RNG(0).standard_normal(200)
    knots = place_knots(summarise(column, np.ones(200)), 60)
    term = SmoothTerm((0,), knots, Architecture(1, (16,), "gelu", (1.0, 4.0)), request.param)
    share = reading.spread(knots.locate(column), np.full(200, 1 / 200), len(knots))
    return term, share


def whitened(term, share, seed=1):
    """Centred Jacobian, different precisions, and the whitened Jacobian."""
    jacobian = tangent(term, term.initial(RNG(seed)), share)
    precision = initial_precision(term, jacobian, share, 0.1)
    precision = precision * RNG(2).uniform(0.5, 2.0, len(precision))
    return jacobian, precision, jacobian / np.sqrt(precision[term.group_index])


def test_terms_are_centred_over_the_data(smooth):
    term, share = smooth
    expansion = term.initial(RNG(1))
    centred = tangent(term, expansion, share)
    np.testing.assert_allclose(share @ centred, 0.0, atol=1e-12)
    difference = term.jacobian(expansion) - centred
    assert_close(difference, np.tile(difference[0], (len(share), 1)), "rounding")


def test_initial_precisions_share_a_prior_variance(smooth):
    term, share = smooth
    jacobian = tangent(term, term.initial(RNG(1)), share)
    precision = initial_precision(term, jacobian, share, 0.25)
    n_groups = len(precision)
    assert n_groups == (1 if term.prior_groups == "network" else 6)
    for group in range(n_groups):
        own = jacobian[:, term.group_index == group] / np.sqrt(precision[group])
        assert share @ np.square(own).sum(axis=1) == pytest.approx(0.25 / n_groups)


def test_initial_precisions_of_a_group_without_data_are_positive(smooth):
    term, share = smooth
    precision = initial_precision(term, np.zeros((len(share), 48)), share, 0.25)
    assert (precision > 0.0).all()


class TestCompression:
    def test_without_a_tolerance_nothing_is_lost(self, smooth, lossless):
        term, share = smooth
        jacobian, precision, phi = whitened(term, share)
        found = compress(term, jacobian, precision, 100.0 * share + 1.0)
        assert_close(found.table @ found.table.T, phi @ phi.T, "conditioning")
        assert_close(found.table @ found.basis.T, phi, "conditioning")

    def test_the_loss_is_below_the_noise(self, smooth):
        term, share = smooth
        jacobian, precision, phi = whitened(term, share)
        curvature = 500.0 * share
        found = compress(term, jacobian, precision, curvature)
        lost = (phi - found.table @ found.basis.T) * np.sqrt(curvature)[:, None]
        # A sketch resolves the tolerance to within a factor only.
        assert np.linalg.norm(lost, 2) ** 2 < 2.0 * RANK_TOLERANCE
        assert found.table.shape[1] < 25
        kept = found.table * np.sqrt(curvature)[:, None]
        assert np.linalg.eigvalsh(kept.T @ kept).min() >= 0.99 * RANK_TOLERANCE

    def test_the_basis_is_orthonormal_and_groups_add_up(self, smooth):
        term, share = smooth
        jacobian, precision, _ = whitened(term, share)
        found = compress(term, jacobian, precision, 500.0 * share)
        rank = found.table.shape[1]
        assert_close(found.basis.T @ found.basis, np.eye(rank), "conditioning")
        if term.prior_groups == "network":
            assert found.group_grams.shape == (1, 1, 1)
            return
        assert_close(found.group_grams.sum(axis=0), np.eye(rank), "conditioning")
        for group in range(6):
            rows = found.basis[term.group_index == group]
            assert_close(found.group_grams[group], rows.T @ rows, "rounding")

    @pytest.mark.parametrize("factor", [0.25, 4.0])
    def test_a_groups_variance_changes_by_its_gram_matrix(self, smooth, factor):
        # Where the tables are complete, W = sum_g rho_g V_g' V_g is the prior at other precisions.
        term, share = smooth
        jacobian, precision, _ = whitened(term, share)
        found = compress(term, jacobian, precision, 500.0 * share)
        rho = np.ones(len(precision))
        rho[len(rho) // 3] = factor
        # A single group's Gram matrix is the identity and not stored.
        grams = found.group_grams if len(rho) > 1 else np.eye(found.table.shape[1])[None]
        w = np.einsum("g,gij->ij", rho, grams)
        changed = jacobian / np.sqrt((precision / rho)[term.group_index])
        at_data = np.flatnonzero(share > 0.0)
        covariance = (changed @ changed.T)[np.ix_(at_data, at_data)]
        # Directions below the tolerance are dropped: a thousandth of the noise per row.
        approximate = (found.table @ w @ found.table.T)[np.ix_(at_data, at_data)]
        np.testing.assert_allclose(approximate, covariance, atol=0.01 * covariance.max())
        unchanged = found.table @ found.table.T
        assert (
            np.abs(unchanged[np.ix_(at_data, at_data)] - covariance).max() > 0.02 * covariance.max()
        )

    def test_a_basis_is_orthonormal(self, smooth):
        term, share = smooth
        jacobian, precision, _ = whitened(term, share)
        basis = compress(term, jacobian, precision, 500.0 * share).basis
        # What the factorisation leaves out is a small part of the smallest direction.
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-3)

    def test_a_dropped_term_stays_without_coordinates(self, smooth):
        term, share = smooth
        jacobian, precision, _ = whitened(term, share)
        found = compress(term, jacobian, precision, 500.0 * share, dropped=True)
        assert found.table.shape == (len(share), 0)

    def test_many_visible_directions(self):
        # Sharp units have many visible directions.
        column = RNG(0).uniform(-1, 1, 3000)
        knots = place_knots(summarise(column, np.ones(3000)), 256)
        term = SmoothTerm((0,), knots, Architecture(1, (128,), "relu", (16.0,)))
        share = reading.spread(knots.locate(column), np.full(3000, 1 / 3000), len(knots))
        jacobian, precision, phi = whitened(term, share)
        found = compress(term, jacobian, precision, 1e4 * share)
        assert found.table.shape[1] > 8
        lost = (phi - found.table @ found.basis.T) * np.sqrt(1e4 * share)[:, None]
        # The singular values decay slowly here, which blurs the threshold more.
        assert np.linalg.norm(lost, 2) ** 2 < 4.0 * RANK_TOLERANCE

    def test_coarse_compression_keeps_the_larger_directions(self, smooth):
        term, share = smooth
        jacobian, precision, phi = whitened(term, share)
        curvature = 500.0 * share
        fine = compress(term, jacobian, precision, curvature)
        coarse = compress(term, jacobian, precision, curvature, coarse=True)
        assert 0 < coarse.table.shape[1] < fine.table.shape[1]
        seen = np.sqrt(curvature)[:, None]
        lost = (phi - coarse.table @ coarse.basis.T) * seen
        largest = np.linalg.norm(phi * seen, 2) ** 2
        edge = min(linearise.COARSE_TOLERANCE, 0.01 * largest)
        assert np.linalg.norm(lost, 2) ** 2 < 2.0 * edge

    def test_coarse_compression_keeps_the_largest_direction_of_any_prior(self, smooth):
        term, share = smooth
        jacobian, precision, _ = whitened(term, share)
        found = compress(term, jacobian, precision * 1e9, 500.0 * share, coarse=True)
        assert found.table.shape[1] > 0

    def test_a_pair_keeps_fewer_directions(self):
        columns = RNG(0).standard_normal((400, 2))
        own = in_memory.place_grids(columns, np.ones(400), [(0, 1)])[0]
        term = SmoothTerm((0, 1), own, Architecture(2, (64,), "gelu", (1.0, 4.0)))
        share = reading.spread(own.locate(*columns.T), np.full(400, 1 / 400), len(own))
        jacobian, precision, phi = whitened(term, share)
        curvature = 500.0 * share
        found = compress(term, jacobian, precision, curvature)
        seen = np.sqrt(curvature)[:, None]
        lost = np.linalg.norm((phi - found.table @ found.basis.T) * seen, 2) ** 2
        # A sketch resolves the tolerance to within a factor only.
        assert RANK_TOLERANCE < lost < 2.0 * PAIR_TOLERANCE
        kept = found.table * seen
        assert np.linalg.eigvalsh(kept.T @ kept).min() >= 0.99 * PAIR_TOLERANCE
        grams = found.group_grams
        assert grams.shape == (2, kept.shape[1], kept.shape[1])
        assert_close(grams.sum(axis=0), np.eye(kept.shape[1]), "conditioning")

    @pytest.mark.parametrize("hidden", [2, 64])
    def test_small_tables_are_compressed_densely(self, hidden):
        # Fewer entries than parameters, or fewer parameters than entries.
        column = np.repeat(np.arange(5.0), 20)
        knots = place_knots(summarise(column, np.ones(100)), 60)
        term = SmoothTerm((0,), knots, Architecture(1, (hidden,), "gelu"))
        share = reading.spread(knots.locate(column), np.full(100, 0.01), len(knots))
        jacobian, precision, phi = whitened(term, share)
        found = compress(term, jacobian, precision, 100.0 * share)
        lost = (phi - found.table @ found.basis.T) * np.sqrt(100.0 * share)[:, None]
        assert np.linalg.norm(lost, 2) ** 2 < 1.001 * RANK_TOLERANCE
        assert 0 < found.table.shape[1] <= 4  # five values, centred

    def test_a_dropped_term_has_no_coordinates(self, smooth):
        term, share = smooth
        jacobian, precision, _ = whitened(term, share)
        found = compress(term, jacobian, precision * 1e9, 500.0 * share)
        assert found.table.shape == (len(share), 0)


def test_levels_are_their_own_coordinates():
    levels = place_levels(summarise(np.repeat(np.arange(4.0), [1, 2, 3, 4]), np.ones(10)), 300, 20)
    term = LevelTerm((0,), levels)
    share = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    jacobian = tangent(term, term.initial(RNG(0)), share)
    np.testing.assert_allclose(jacobian, np.eye(5) - share)
    found = compress(term, jacobian, np.array([4.0]), 10.0 * share)
    np.testing.assert_allclose(found.table, (np.eye(5) - share) / 2.0)


def test_units_have_their_kinks_all_over_the_data(smooth):
    term, _ = smooth
    term = replace(term, architecture=Architecture(1, (30,), "gelu", (1.0, 4.0, 16.0)))
    theta = term.initial(RNG(0))
    bends = -theta[30:60] / theta[:30]
    inside = term.entries.inputs[term.entries.inside]
    for band in range(3):
        own = np.sort(bends[10 * band : 10 * (band + 1)])
        places = np.interp(own, inside, np.linspace(0.0, 1.0, len(inside)))
        # One in each tenth of the knots.
        np.testing.assert_array_equal(np.floor(np.clip(places, 0, 0.999) * 10), np.arange(10))
