"""Truncated matrices, and triangular factors."""

import numpy as np
import pytest

from lanam.core.arrays import fixed_point, unit_exponents
from lanam.core.fit.assembly import triangular_root
from tests.oracles import assert_close


def matrices():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(30, 7))
    yield "plain", plain
    yield (
        "rows and columns of very different size",
        (plain * 10.0 ** rng.integers(-9, 9, (30, 1)) * 10.0 ** rng.integers(-9, 9, 7)),
    )
    yield "huge", 1e150 * plain
    yield "tiny", 1e-150 * plain
    yield "triangular", np.tril(rng.normal(size=(9, 9)))
    yield "just below powers of two", np.nextafter(2.0 ** rng.integers(-9, 9, (30, 7)), 0.0)
    yield "powers of two", 2.0 ** rng.integers(-9, 9, (30, 7))
    yield "zeros", np.zeros((4, 3))
    yield "a row of zeros", plain * (np.arange(30) != 3)[:, None]


@pytest.mark.parametrize("matrix", [pytest.param(m, id=name) for name, m in matrices()])
class TestFixedPoint:
    def test_every_number_has_24_bits_of_its_row_and_column(self, matrix):
        found = fixed_point(matrix)
        for i, row in enumerate(matrix):
            of_row = 2.0 ** np.frexp(np.abs(row).max())[1]
            for j, number in enumerate(row):
                largest = max(
                    abs(other[j]) / 2.0 ** np.frexp(np.abs(other).max())[1] for other in matrix
                )
                unit = of_row * 2.0 ** (np.frexp(largest)[1] - 24)
                assert abs(found[i, j] - number) < unit or number == 0.0
                assert (found[i, j] / unit).is_integer()
                assert abs(found[i, j] / unit) < 2**24

    def test_is_idempotent(self, matrix):
        found = fixed_point(matrix)
        np.testing.assert_array_equal(fixed_point(found), found)
        for before, after in zip(unit_exponents(matrix), unit_exponents(found), strict=True):
            np.testing.assert_array_equal(after, before)

    def test_layout_is_that_of_a_file(self, matrix):
        found = fixed_point(np.asfortranarray(matrix))
        assert found.flags.c_contiguous
        assert not np.signbit(fixed_point(np.abs(matrix) * -0.0)).any()
        assert found.dtype == np.float64


@pytest.mark.parametrize("shape", [(0, 0), (5, 0), (0, 3)])
def test_empty_and_zero_matrices(shape):
    assert fixed_point(np.empty(shape)).shape == shape


class TestTriangularRoot:
    def covariance(self, rank):
        rng = np.random.default_rng(1)
        factor = rng.normal(size=(12, rank)) * 10.0 ** rng.integers(-3, 3, (12, 1))
        return factor @ factor.T

    @pytest.mark.parametrize("rank", [12, 5])
    def test_is_a_triangular_root(self, rank):
        covariance = self.covariance(rank)
        root = triangular_root(covariance)
        assert not np.triu(root, 1).any()
        scale = np.sqrt(np.diag(covariance))
        assert_close(
            root @ root.T / np.outer(scale, scale), covariance / np.outer(scale, scale), "rounding"
        )

    def test_blocks_stay_blocks(self):
        covariance = np.zeros((14, 14))
        covariance[:12, :12] = self.covariance(12)
        covariance[12:, 12:] = [[2.0, 1.0], [1.0, 2.0]]
        assert not triangular_root(covariance)[12:, :12].any()
