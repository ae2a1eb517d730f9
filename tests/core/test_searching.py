"""Fast lookup against ``searchsorted``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lanam.core.terms import searching
from lanam.core.terms.searching import SortedPoints

RNG = np.random.default_rng(0)

DRAWS = {
    "normal": RNG.standard_normal(6000),
    "lognormal": np.exp(3.0 * RNG.standard_normal(6000)),
    "integers": RNG.integers(-40, 40, 6000).astype(float),
    "two scales": RNG.standard_normal(6000) * np.where(RNG.uniform(size=6000) < 0.5, 1e-9, 1.0),
    "huge": 1e300 * RNG.standard_normal(6000),
    "tiny": 1e-300 * RNG.standard_normal(6000),
    "one point twice": np.repeat([1.0, 2.0, np.nextafter(2.0, 3.0)], 2000),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("n_points", [2, 3, 40, 264])
def test_equals_searchsorted(name, n_points):
    numbers = DRAWS[name]
    points = np.unique(RNG.choice(numbers, n_points))
    # At the points, next to them, far beyond them, and zeros of either sign.
    beside = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])
    ends = [-np.finfo(float).max, np.finfo(float).max, 0.0, -0.0]
    asked = np.concatenate([numbers, np.resize(beside, 1000), ends])
    found = SortedPoints(points).last_at_most(asked)
    np.testing.assert_array_equal(found, np.searchsorted(points, asked, side="right") - 1)


def test_cells_are_used_where_they_help():
    even = SortedPoints(np.linspace(-1.0, 1.0, 200))._cells
    assert even.cell_of.func is searching._even_cell
    skewed = SortedPoints(np.geomspace(1e-9, 1e9, 200))._cells
    assert skewed.cell_of.func is searching._bit_cell
    assert SortedPoints(np.array([1.0, 1.0]))._cells is None
    crowded = np.sort(np.append(1.0 + 1e-12 * np.arange(100), np.linspace(-9.0, 9.0, 100)))
    assert SortedPoints(crowded)._cells is None


def test_no_points():
    found = SortedPoints(np.empty(0)).last_at_most(np.zeros(searching._MANY))
    np.testing.assert_array_equal(found, -1)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, st.integers(2, 40), elements=st.floats(allow_nan=False, width=64)),
    st.integers(0, 2**32 - 1),
)
def test_any_points(values, seed):
    points = np.unique(np.clip(values, -1e308, 1e308))
    rng = np.random.default_rng(seed)
    asked = np.concatenate([rng.choice(points, 3000), rng.standard_normal(2000)])
    found = SortedPoints(points).last_at_most(asked)
    np.testing.assert_array_equal(found, np.searchsorted(points, asked, side="right") - 1)
