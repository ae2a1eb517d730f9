"""A covariance by its triangular root equals the whole matrix."""

import numpy as np
import pytest

from lanam.core.arrays import symmetric_product, times_lower
from lanam.core.inference.covariance import Dense, Factored
from tests.oracles import assert_close


@pytest.mark.parametrize("given", [0, 1, 3])
def test_sums_of_coordinates_given_the_last_ones(given):
    rng = np.random.default_rng(0)
    root, target = rng.standard_normal((9, 20)), rng.standard_normal(9)
    precision = root @ root.T
    size = 9 - given
    factored = Factored.of(precision)
    found, log_det = factored.leading(size)
    dense = Dense(np.linalg.inv(precision[:size, :size]))
    assert_close(factored.solve(target), np.linalg.solve(precision, target), "rounding")
    assert log_det == pytest.approx(np.linalg.slogdet(precision[:size, :size])[1])
    assert_close(found.variances(), dense.variances(), "rounding")
    assert_close(found.block(slice(2, 5)), dense.block(slice(2, 5)), "rounding")
    some = np.array([0, 3, 5])
    assert found.of_sum(some) == pytest.approx(dense.of_sum(some))
    rows = rng.standard_normal((4, 9))
    assert_close(found.forms(rows), dense.forms(rows[:, :size]), "rounding")


def test_what_is_not_positive_definite():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        Factored.of(np.diag([1.0, -1.0]))


@pytest.mark.parametrize("size", [1, 300])
def test_products(size):
    rng = np.random.default_rng(0)
    rows, matrix = rng.standard_normal((5, size)), rng.standard_normal((size, 7))
    lower = np.tril(rng.standard_normal((size, size)))
    assert_close(times_lower(rows, lower), rows @ lower, "rounding")
    assert_close(times_lower(rows, lower, transposed=True), rows @ lower.T, "rounding")
    assert_close(symmetric_product(matrix, matrix.T), matrix @ matrix.T, "rounding")
