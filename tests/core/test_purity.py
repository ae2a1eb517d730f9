"""Purified tables against least squares on the indicators of a grid's rows and columns."""

import numpy as np
import pytest

from lanam.core.terms.purity import purify
from tests.oracles import additive_design, assert_close, conditional_means, pure_part

RNG = np.random.default_rng
SHAPE = (5, 4)


def full(seed=0):
    return RNG(seed).uniform(0.1, 1.0, SHAPE)


def with_empty_cells():
    cells = full()
    cells[[0, 1, 3, 4], [2, 0, 3, 1]] = 0.0
    return cells


def with_empty_rows_and_columns():
    cells = with_empty_cells()
    cells[2] = cells[:, 0] = 0.0
    cells[1, 3] = 0.0
    return cells


def along_a_band():
    """Strongly dependent columns: data near the diagonal only."""
    i, j = np.indices(SHAPE)
    return np.where(np.abs(i - j) <= 1, 1.0, 0.0) * full()


SHARES = {
    "full": full,
    "empty cells": with_empty_cells,
    "empty rows and columns": with_empty_rows_and_columns,
    "a band": along_a_band,
}


@pytest.fixture(params=SHARES)
def share(request):
    cells = SHARES[request.param]()
    return (cells / cells.sum()).ravel()


@pytest.fixture
def table():
    return 10.0 + RNG(1).standard_normal((20, 3))


def test_is_the_residual_of_the_best_additive_fit(share, table):
    assert_close(purify(table, share, SHAPE), pure_part(table, share, SHAPE), "rounding")


def test_has_no_mean_in_any_row_or_column(share, table):
    found = purify(table, share, SHAPE)
    np.testing.assert_allclose(conditional_means(found, share, SHAPE), 0.0, atol=1e-12)
    # and is not zero
    assert share @ found**2 == pytest.approx(share @ pure_part(table, share, SHAPE) ** 2)
    assert (share @ found**2 > 0.01).all()


def test_rows_and_columns_without_data_use_the_marginal_distribution(table):
    cells = with_empty_rows_and_columns()
    found = purify(table, (cells / cells.sum()).ravel(), SHAPE).reshape(*SHAPE, 3)
    rows, columns = cells.sum(axis=1), cells.sum(axis=0)
    np.testing.assert_allclose(columns @ found[2], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.tensordot(rows, found[:, 0], axes=1), 0.0, atol=1e-12)


def test_is_idempotent(share, table):
    once = purify(table, share, SHAPE)
    assert_close(purify(once, share, SHAPE), once, "rounding")


def test_is_linear_and_works_column_by_column(share, table):
    whole = purify(table, share, SHAPE)
    for k in range(3):
        assert_close(purify(table[:, k : k + 1], share, SHAPE), whole[:, k : k + 1], "rounding")
    mixed = table @ np.array([[2.0], [-1.0], [0.5]])
    assert_close(purify(mixed, share, SHAPE), whole @ np.array([[2.0], [-1.0], [0.5]]), "rounding")


def test_main_effects_are_removed(share):
    sums = additive_design(SHAPE) @ RNG(2).standard_normal((9, 4))
    np.testing.assert_allclose(purify(sums, share, SHAPE), 0.0, atol=1e-12)
    # nor do they change the pure part of others
    table = RNG(1).standard_normal((20, 4))
    assert_close(purify(table + sums, share, SHAPE), purify(table, share, SHAPE), "rounding")


def test_the_order_of_the_columns_does_not_matter(share, table):
    turned = share.reshape(SHAPE).T.ravel()
    swapped = table.reshape(*SHAPE, 3).transpose(1, 0, 2).reshape(20, 3)
    found = purify(swapped, turned, SHAPE[::-1]).reshape(*SHAPE[::-1], 3).transpose(1, 0, 2)
    assert_close(found.reshape(20, 3), purify(table, share, SHAPE), "rounding")


def test_arguments_are_not_modified(share, table):
    before = share.copy(), table.copy()
    purify(table, share, SHAPE)
    np.testing.assert_array_equal(share, before[0])
    np.testing.assert_array_equal(table, before[1])


def two_islands(link):
    """Nearly all data is in two blocks: rows 0-1 by columns 0-1, and rows 2-4 by columns 2-3."""
    cells = np.zeros(SHAPE)
    cells[:2, :2] = RNG(0).uniform(0.1, 1.0, (2, 2))
    cells[2:, 2:] = RNG(1).uniform(0.1, 1.0, (3, 2))
    cells[1, 2] = link
    return (cells / cells.sum()).ravel()


@pytest.mark.parametrize("link", [0.0, 1e-300, 1e-20, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-3])
def test_blocks_that_are_nearly_disconnected(link, table):
    share = two_islands(link)
    found = purify(table, share, SHAPE)
    assert np.isfinite(found).all()
    # A connection at the level of rounding may keep its mean, which is as small.
    np.testing.assert_allclose(conditional_means(found, share, SHAPE), 0.0, atol=1e-8)
    # Without a connection, the blocks' levels are not identified, but all else is.
    alone = two_islands(0.0)
    islands = alone > 0.0
    if link < 1e-6:
        expected = pure_part(table, alone, SHAPE)
        np.testing.assert_allclose(found[islands], expected[islands], atol=1e-5)
    # Cells without data keep values of the same order.
    assert np.abs(found).max() < 100.0 * np.abs(table).max()


def test_a_row_and_a_column_of_data():
    # In a single row or column there are only main effects.
    for cells in (np.eye(1, 20, 3), np.r_[np.ones(4), np.zeros(16)]):
        share = (cells / cells.sum()).ravel()
        found = purify(RNG(0).standard_normal((20, 2)), share, SHAPE)
        np.testing.assert_allclose(found[share > 0.0], 0.0, atol=1e-12)
        assert np.isfinite(found).all()
