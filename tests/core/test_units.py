"""The response's moments in chunks are those of all rows, for responses of any magnitude."""

from functools import reduce

import numpy as np
import pytest

from lanam.core.rows.tables import Spread, Units
from tests.likelihoods import LIKELIHOODS

GAUSSIAN = LIKELIHOODS["gaussian"]
ENDS = {"two": [70], "odd": [1, 3, 90, 199], "many": list(range(1, 200, 7))}

rng = np.random.default_rng(0)
RESPONSES = {
    "plain": rng.normal(3.0, 2.0, 200),
    "far off": rng.normal(1e6, 1.0, 200),
    "huge": 1e200 * rng.standard_normal(200),
    "largest": rng.choice([-1.7e308, 1.7e308, 1e308], 200),
    "tiny": 1e-200 * rng.standard_normal(200),
    "smallest": 1e-308 * rng.standard_normal(200),
    "tiny after nothing": np.r_[np.zeros(100), 1e-200 * rng.standard_normal(100)],
    "nothing after tiny": np.r_[1e-200 * rng.standard_normal(100), np.zeros(100)],
    "tiny, then huge": np.r_[1e-200 * rng.standard_normal(100), 1e200 * rng.standard_normal(100)],
    "growing": np.exp(np.linspace(-50.0, 50.0, 200)),
    "counts": rng.poisson(2.0, 200).astype(float),
    "one row differs": np.r_[np.full(199, 5.0), 6.0],
    "constant": np.full(200, 5.0),
    "constant, not exact": np.full(200, 0.1),
    "constant and huge": np.full(200, -1e200),
    "zero": np.zeros(200),
}


def in_chunks(y, weight, ends):
    parts = zip(np.split(y, ends), np.split(weight, ends), strict=True)
    return [Spread.of(*part) for part in parts]


def tree(spreads):
    if len(spreads) == 1:
        return spreads[0]
    half = len(spreads) // 2
    return tree(spreads[:half]).merged(tree(spreads[half:]))


@pytest.mark.parametrize("merge", [lambda parts: reduce(Spread.merged, parts), tree])
@pytest.mark.parametrize("ends", list(ENDS.values()), ids=list(ENDS))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(RESPONSES))
def test_chunks_are_the_whole(name, weighted, ends, merge):
    y = RESPONSES[name]
    weight = np.random.default_rng(1).uniform(0.1, 9.0, 200) if weighted else np.ones(200)
    expected, found = Spread.of(y, weight), merge(in_chunks(y, weight, ends))
    assert found.total_weight == pytest.approx(expected.total_weight, rel=1e-13)
    assert found.magnitude == expected.magnitude
    # Means cancel, and the variance of a constant is rounding.
    size = np.abs(y / expected.magnitude).max()
    assert found.mean == pytest.approx(expected.mean, abs=1e-14 * size)
    assert found.variance == pytest.approx(
        expected.variance, rel=1e-12, abs=1e-30 * size**2 + 1e-15 * size * expected.variance**0.5
    )
    # Hence the core's units are the same.
    one, other = (Units.of(spread, GAUSSIAN) for spread in (found, expected))
    if name.startswith("constant"):
        assert one.scale == pytest.approx(1e-9 * np.abs(y[0]))
    assert one.scale == pytest.approx(other.scale, rel=1e-9)
    np.testing.assert_allclose(one.standard(y), other.standard(y), rtol=1e-9, atol=1e-5)


def test_direct_computation():
    first = Spread.of(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    second = Spread.of(np.array([-16.0]), np.array([2.0]))
    found = first.merged(second)
    assert found.total_weight == 4.0
    assert found.magnitude == 16.0
    assert found.mean * 16.0 == pytest.approx((1.0 + 3.0 - 32.0) / 4.0)
    mean = -7.0
    expected = ((1.0 - mean) ** 2 + (3.0 - mean) ** 2 + 2.0 * (-16.0 - mean) ** 2) / 4.0
    assert found.variance * 256.0 == pytest.approx(expected)


def test_evidence_round_trip():
    parts = in_chunks(RESPONSES["plain"], np.ones(200), [60])
    one, other = parts[0].merged(parts[1]), parts[1].merged(parts[0])
    assert one.mean == pytest.approx(other.mean, rel=1e-14)
    assert one.variance == pytest.approx(other.variance, rel=1e-14)
