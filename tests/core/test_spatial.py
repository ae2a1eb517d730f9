"""Surfaces of coordinates: isotropic processes, known at anchors where the data is."""

import numpy as np
import pytest

from lanam.core.terms.knots import Grid, place_knots, summarise
from lanam.core.terms.spatial import LENGTHS, SpatialTerm, choose_anchors, extent, mass_of


def grid_of(columns, n_knots=6):
    one = np.ones(len(columns))
    axes = (place_knots(summarise(column, one), n_knots, np.array([0.2])) for column in columns.T)
    return Grid(tuple(axes))


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return rng.uniform(0.0, [6.0, 2.0], size=(80, 2))


def places_of(grid):
    axes = [axis.values for axis in grid.axes]
    return np.array([(x, y) for x in axes[0] for y in axes[1]])


def matern(first, second, length):
    result = np.empty((len(first), len(second)))
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            distance = np.sqrt(3.0 * ((a - b) ** 2).sum()) / length
            result[i, j] = (1.0 + distance) * np.exp(-distance)
    return result


def test_features_of_all_entries_have_the_kernel(columns):
    grid = grid_of(columns)
    every = tuple(range(len(grid)))
    term = SpatialTerm((0, 1), grid, (every,) * len(LENGTHS))
    jacobian = term.jacobian(np.empty(0))
    assert jacobian.shape == (len(grid), len(term.group_index))
    places = places_of(grid) / extent(grid)
    for group, length in enumerate(LENGTHS):
        features = jacobian[:, term.group_index == group]
        assert features @ features.T == pytest.approx(matern(places, places, length), abs=1e-5)


def test_anchors_know_the_process_where_the_data_is(columns):
    grid = grid_of(columns, 12)
    mass = mass_of(grid, columns, np.ones(len(columns)))
    assert mass.sum() == pytest.approx(len(columns))
    anchors = choose_anchors(grid, mass, 1000)
    assert all(mass[list(some)].all() for some in anchors)
    assert [len(some) for some in anchors] == sorted(len(some) for some in anchors)
    term = SpatialTerm((0, 1), grid, anchors)
    for group in range(len(LENGTHS)):
        variance = np.square(term.jacobian(np.empty(0))[:, term.group_index == group]).sum(axis=1)
        assert variance.max() < 1.0 + 1e-6  # no more than the process has
        assert np.average(variance, weights=mass) > 0.98


def test_anchors_are_at_most_as_many_and_those_that_tell_most_come_first(columns):
    grid = grid_of(columns, 12)
    mass = mass_of(grid, columns, np.ones(len(columns)))
    few, many = (choose_anchors(grid, mass, most) for most in (5, 20))
    assert all(some == more[: len(some)] for some, more in zip(few, many, strict=True))
    assert max(map(len, few)) == 5


def test_rows_are_counted_at_the_nearest_entry():
    columns = np.array([[0.0, 0.0], [1.0, 1.0], [0.9, 0.2]])
    grid = grid_of(np.array([[0.0, 0.0], [1.0, 1.0]]))
    mass = mass_of(grid, columns, np.array([1.0, 2.0, 4.0]))
    places = places_of(grid)
    at = {tuple(places[k]): mass[k] for k in np.flatnonzero(mass)}
    assert at == {(0.0, 0.0): 1.0, (1.0, 1.0): 2.0, (1.0, 0.0): 4.0}


def test_rows_without_a_position_have_an_effect_of_their_own(columns):
    columns[::9, 1] = np.nan
    grid = grid_of(columns)
    mass = mass_of(grid, columns, np.ones(len(columns)))
    term = SpatialTerm((0, 1), grid, choose_anchors(grid, mass, 10))
    jacobian = term.jacobian(np.empty(0)).reshape(*grid.shape, -1)
    assert (jacobian[:, -1, -1] == 1.0).all()
    assert not jacobian[:, -1, :-1].any()
    assert not jacobian[:, :-1, -1].any()
