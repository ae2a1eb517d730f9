"""Terms with missing values and categories: their parameters, and purity of pairs."""

from dataclasses import replace

import numpy as np
import pytest

from lanam.core.fit.joint import joint_term
from lanam.core.inference.options import Options
from lanam.core.rows import statistics
from lanam.core.rows.statistics import Rows
from lanam.core.terms import networks
from lanam.core.terms.knots import Categories, Grid, Knots, place_knots, summarise
from lanam.core.terms.linearise import initial_precision, tangent
from lanam.core.terms.networks import Architecture
from lanam.core.terms.term import LevelTerm, MixedTerm, SmoothTerm
from tests.core import in_memory
from tests.oracles import assert_close, conditional_means, entry_matrix

OPTIONS = Options(pair_hidden_sizes=(9,), pair_init_scales=(1.0, 4.0))

#: Features of a curve per scale.
CURVE = 2 * 6

#: The network of a single column at each level of the other.
CURVE_NETWORK = replace(OPTIONS.architecture(2), n_inputs=1)

N = 150


def column_of(kind, rng):
    column = rng.standard_normal(N)
    if kind == "codes":
        column = rng.integers(0, 4, N).astype(float)
    if kind == "few, missing":
        column = rng.integers(0, 3, N).astype(float)
    if kind != "knots":
        column[rng.uniform(size=N) < 0.2] = np.nan
    return column


def entries_of(kind, column, weight):
    if kind == "codes":
        return in_memory.place_categories(column, weight, 4)
    return place_knots(summarise(column, weight), 8, np.array([0.2, 1.0]))


def pair_of(first, second, groups="layer", seed=0):
    """A pair's term, its expansion point, the data mass at its entries, and the columns."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([column_of(kind, rng) for kind in (first, second)])
    weight = rng.uniform(0.5, 2.0, N)
    kinds = zip((first, second), columns.T, strict=True)
    grid = Grid(tuple(entries_of(kind, c, weight) for kind, c in kinds))
    options = Options(pair_hidden_sizes=(9,), pair_init_scales=(1.0, 4.0), prior_groups=groups)
    term = joint_term((0, 1), grid, options)
    position = grid.locate(*columns.T)
    rows = Rows((position,), (len(grid),), np.zeros(N), weight)
    share = statistics.entry_sums(rows, weight)[0] / weight.sum()
    return term, term.initial(rng), share, columns


#: All kinds of pairs with categories or missing values, and their numbers of joint, curve and cell
#: parameters: those of a joint network of 9 units; for every level of one column (6 of codes, 1 of missing
#: values) a curve of the other; for every two levels a cell.
JOINT = 2 * 9 + 9 + 9
PAIRS = {
    ("codes", "codes"): (0, 0, 36),
    ("codes", "knots"): (0, 6 * CURVE, 0),
    ("knots", "codes"): (0, 6 * CURVE, 0),
    ("codes", "missing"): (0, 6 * CURVE, 6),
    ("missing", "codes"): (0, 6 * CURVE, 6),
    ("missing", "knots"): (JOINT, CURVE, 0),
    ("knots", "missing"): (JOINT, CURVE, 0),
    ("missing", "missing"): (JOINT, 2 * CURVE, 1),
    ("few, missing", "missing"): (JOINT, 2 * CURVE, 1),
    ("few, missing", "codes"): (0, 6 * CURVE, 6),
}


def groups_of(joint, curves, cells):
    """Names of the parts' groups, in order: one per scale of networks, one for cells."""
    names = ["joint 0", "joint 1"] * (joint > 0) + ["curve 0", "curve 1"] * (curves > 0)
    return names + ["cells"] * (cells > 0)


@pytest.mark.parametrize("kinds", PAIRS)
class TestMixedTerm:
    def test_the_number_of_parameters(self, kinds):
        term, expansion, _, _ = pair_of(*kinds)
        assert isinstance(term, MixedTerm)
        assert term.kind == "pair"
        jacobian = term.jacobian(expansion)
        assert jacobian.shape == (len(term.entries), sum(PAIRS[kinds]))
        assert term.group_index.shape == (jacobian.shape[1],)
        names = groups_of(*PAIRS[kinds])
        np.testing.assert_array_equal(np.unique(term.group_index), np.arange(len(names)))
        counts = np.bincount(term.group_index)
        joint, curves, cells = PAIRS[kinds]
        own = {"joint": joint, "curve": curves, "cells": cells}
        for part, size in own.items():
            assert sum(counts[k] for k, name in enumerate(names) if part in name) == size

    def test_every_part_is_zero_outside_its_entries(self, kinds):
        term, expansion, _, _ = pair_of(*kinds)
        first, second = term.entries.axes
        single = [_has_own_effect(axis) for axis in (first, second)]
        n_single = single[0][:, None].astype(int) + single[1].astype(int)
        jacobian = term.jacobian(expansion).reshape(*term.entries.shape, -1)
        for k, name in enumerate(groups_of(*PAIRS[kinds])):
            seen = np.abs(jacobian[:, :, term.group_index == k]).max(axis=2)
            where = n_single == {"joint": 0, "curve": 1, "cells": 2}[name.split()[0]]
            assert where.any()
            assert (seen[~where] == 0.0).all()
            assert (seen[where] > 0.0).all()

    def test_curves_of_different_levels_are_independent_and_alike(self, kinds):
        # Under unit precisions the prior covariance of curves is the same at every level and zero
        # between levels.
        term, expansion, _, _ = pair_of(*kinds)
        names = groups_of(*PAIRS[kinds])
        jacobian = term.jacobian(expansion)
        curves = jacobian[:, [names[g].startswith("curve") for g in term.group_index]]
        covariance = (curves @ curves.T).reshape(term.entries.shape * 2)
        for axis in (0, 1):
            own, other = term.entries.axes[axis], term.entries.axes[1 - axis]
            if not isinstance(own, Knots) or not other.n_single:
                continue
            by_level = np.moveaxis(covariance, (axis, axis + 2), (0, 1))[
                : len(own.points), : len(own.points)
            ]
            levels = np.flatnonzero(_has_own_effect(other))
            expected = band_covariances(CURVE_NETWORK, curve_expansion(term, expansion, axis), own)
            for i in levels:
                for j in range(len(other)):
                    block = by_level[:, :, i, j]
                    assert_close(block, expected if i == j else 0.0 * expected, "conditioning")

    def test_cells_are_the_identity(self, kinds):
        if not PAIRS[kinds][2]:
            assert not all(axis.n_single for axis in pair_of(*kinds)[0].entries.axes)
            return
        term, expansion, _, _ = pair_of(*kinds)
        cells = term.jacobian(expansion)[:, term.group_index == term.group_index.max()]
        np.testing.assert_array_equal(cells.sum(axis=0), 1.0)
        np.testing.assert_array_equal(cells @ cells.T, np.diag(np.diag(cells @ cells.T)))

    def test_one_group_for_the_whole_network(self, kinds):
        term, _, _, _ = pair_of(*kinds, groups="network")
        assert len(term.group_index) == sum(PAIRS[kinds])
        assert not term.group_index.any()

    def test_the_tangent_is_pure(self, kinds):
        term, expansion, share, columns = pair_of(*kinds)
        table = tangent(term, expansion, share)
        found = conditional_means(table, share, term.entries.shape)
        # At every entry with rows, of either column.
        assert len(found) > 8
        np.testing.assert_allclose(found, 0.0, atol=1e-9 * np.abs(table).max())
        # The data mass is that of the rows.
        assert share.sum() == pytest.approx(1.0)
        read = entry_matrix(term.entries, *columns.T).any(axis=0)
        np.testing.assert_array_equal(share > 0.0, read)

    def test_every_group_has_an_equal_part_of_the_prior_variance(self, kinds):
        term, expansion, share, _ = pair_of(*kinds)
        table = tangent(term, expansion, share)
        precision = initial_precision(term, table, share, 0.1)
        sizes = [
            share @ np.square(table[:, term.group_index == k]).sum(axis=1) / precision[k]
            for k in range(len(precision))
        ]
        np.testing.assert_allclose(sizes, 0.1 / len(precision))

    def test_expansion_points_are_random_and_of_the_right_length(self, kinds):
        term, _, _, _ = pair_of(*kinds)
        first, second = (term.initial(np.random.default_rng(seed)) for seed in (0, 1))
        knots = [axis for axis in term.entries.axes if isinstance(axis, Knots)]
        n_joint = term.architecture.n_parameters if len(knots) == 2 else 0
        assert len(first) == n_joint + len(knots) * CURVE_NETWORK.n_parameters
        assert len(first) == 0 or (first != second).any()


def _has_own_effect(axis):
    if isinstance(axis, Categories):
        return np.ones(len(axis), dtype=bool)
    return np.arange(len(axis)) >= len(axis.points)


def curve_expansion(term, expansion, axis):
    """The parameters of the curves of one column."""
    knots = [isinstance(own, Knots) for own in term.entries.axes]
    start = term.architecture.n_parameters if all(knots) else 0
    start += CURVE_NETWORK.n_parameters * (axis == 1 and knots[0])
    return expansion[start : start + CURVE_NETWORK.n_parameters]


def band_covariances(architecture, expansion, knots):
    """``sum_b J_b J_b'``, each truncated to its six leading directions."""
    jacobian = networks.jacobian(architecture, expansion, knots.network_inputs)[1]
    total = 0.0
    for band in range(2):
        own = jacobian[:, architecture.band_index == band]
        size, vectors = np.linalg.eigh(own @ own.T)
        total = total + (vectors[:, -6:] * size[-6:]) @ vectors[:, -6:].T
    return total


def test_a_pair_of_complete_numeric_columns_is_a_joint_network():
    term, _, _, _ = pair_of("knots", "knots")
    assert isinstance(term, SmoothTerm)
    assert not term.has_missing
    assert term.group_index.shape == (JOINT,)


def test_the_joint_network_does_not_depend_on_missing_values():
    term, expansion, _, _ = pair_of("missing", "knots")
    first, second = term.entries.axes
    plain = SmoothTerm(
        (0, 1),
        Grid((Knots(first.points, first.inputs, first.scale, first.inside), second)),
        term.architecture,
    )
    own = plain.jacobian(expansion[:JOINT])
    found = term.jacobian(expansion)[: len(first.points) * len(second), :JOINT]
    np.testing.assert_array_equal(found, own)


def test_a_transposed_pair_is_the_same_in_another_order():
    # Curves of codes x knots are those of knots x codes, entry by entry.
    grid = pair_of("codes", "knots")[0].entries
    forth = joint_term((0, 1), grid, OPTIONS)
    back = joint_term((1, 0), Grid((grid.axes[1], grid.axes[0])), OPTIONS)
    expansion = forth.initial(np.random.default_rng(3))
    np.testing.assert_array_equal(forth.group_index, back.group_index)
    one = forth.jacobian(expansion).reshape(*grid.shape, -1)
    other = back.jacobian(expansion).reshape(*grid.shape[::-1], -1)
    np.testing.assert_array_equal(one, other.swapaxes(0, 1))


class TestMissingBesideANetwork:
    def term(self, groups="layer"):
        column = column_of("missing", np.random.default_rng(0))
        knots = place_knots(summarise(column, np.ones(N)), 8)
        return SmoothTerm((0,), knots, Architecture(1, (5,), "gelu", (1.0, 4.0)), groups)

    @pytest.mark.parametrize("groups", ["layer", "network"])
    def test_its_effect_is_the_last_parameter_with_a_precision_of_its_own(self, groups):
        term = self.term(groups)
        assert term.has_missing
        plain = SmoothTerm(
            (0,),
            Knots(*(getattr(term.entries, k) for k in ("points", "inputs", "scale", "inside"))),
            term.architecture,
            groups,
        )
        assert not plain.has_missing
        np.testing.assert_array_equal(term.group_index[:-1], plain.group_index)
        assert term.group_index[-1] == plain.group_index.max() + 1
        expansion = term.initial(np.random.default_rng(0))
        assert len(expansion) == term.architecture.n_parameters
        jacobian = term.jacobian(expansion)
        np.testing.assert_array_equal(jacobian[:-1, :-1], plain.jacobian(expansion))
        np.testing.assert_array_equal(jacobian[-1], [*np.zeros(len(expansion)), 1.0])
        np.testing.assert_array_equal(jacobian[:-1, -1], 0.0)


def test_kinds_of_levels():
    codes = in_memory.place_categories(np.array([0.0, 1.0]), np.ones(2), 2)
    term = LevelTerm((0,), codes)
    assert term.kind == "categorical"
    np.testing.assert_array_equal(term.group_index, np.zeros(4))
    np.testing.assert_array_equal(term.jacobian(np.empty(0)), np.eye(4))
