"""Constraints: inequalities of tables, projections on cones, and the posterior of projected draws."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np
import pytest

from lanam.core.model.cones import Inequalities, project
from lanam.core.model.constrained import SETTLED, ConstrainedPosterior, ConstrainedTerm
from lanam.core.terms.constraints import Constraint, inequalities
from lanam.core.terms.knots import Categories, Grid, Knots


def nearest_by_enumeration(point, root, matrix):
    """The slow oracle: of all sets of inequalities that may hold exactly, the nearest feasible point."""
    whitened, rows = np.linalg.solve(root, point), matrix @ root
    best, distance = None, np.inf
    subsets = chain.from_iterable(combinations(range(len(rows)), n) for n in range(len(rows) + 1))
    for chosen in subsets:
        held = rows[list(chosen)]
        candidate = whitened - np.linalg.pinv(held) @ (held @ whitened) if chosen else whitened
        new = float(np.sum((candidate - whitened) ** 2))
        if (rows @ candidate >= -1e-9).all() and new < distance:
            best, distance = root @ candidate, new
    return best


def random_root(rng, size):
    return np.linalg.cholesky(np.cov(rng.normal(size=(size, 3 * size))))


def knots(points, missing=False):
    points = np.asarray(points, dtype=float)
    return Knots(points, points.copy(), 1.0, slice(0, len(points)), missing)


class TestInequalities:
    def test_a_step_is_the_difference_of_neighbours(self):
        (matrix,) = inequalities(Constraint(0, monotone=1), [knots([0.0, 1.0, 3.0], missing=True)])
        assert matrix.tolist() == [[-1.0, 1.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0]]

    def test_a_convex_function_lies_below_its_chords(self):
        (matrix,) = inequalities(Constraint(0, curved=1), [knots([0.0, 1.0, 3.0])])
        np.testing.assert_allclose(matrix, [[2 / 3, -1.0, 1 / 3]])

    def test_both_and_the_other_direction(self):
        axis = knots([0.0, 1.0, 3.0])
        (both,) = inequalities(Constraint(0, monotone=-1, curved=-1), [axis])
        (down,) = inequalities(Constraint(0, monotone=-1), [axis])
        (concave,) = inequalities(Constraint(0, curved=-1), [axis])
        np.testing.assert_array_equal(both, np.concatenate([down, concave]))

    def test_terms_are_read_at_the_knots_of_all(self):
        curve, pair = inequalities(Constraint(0, monotone=1), [knots([0, 2]), knots([0, 1, 2])])
        np.testing.assert_allclose(curve, [[-0.5, 0.5], [-0.5, 0.5]])
        np.testing.assert_allclose(pair, [[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])

    def test_categories_in_the_order_of_their_codes(self):
        stages = Categories(np.arange(3), 3, ordered=True)
        (matrix,) = inequalities(Constraint(0, monotone=1), [stages])
        assert matrix.tolist() == [[-1.0, 1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0, 0.0]]

    def test_of_a_range_its_ends_and_knots(self):
        axis = knots([0.0, 1.0, 2.0, 3.0])
        (matrix,) = inequalities(Constraint(0, monotone=1, low=0.5, high=2.0), [axis])
        assert matrix.tolist() == [[-0.5, 0.5, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0]]


class TestProjection:
    @pytest.mark.parametrize("seed", range(5))
    def test_is_the_nearest_of_all_feasible_points(self, seed):
        rng = np.random.default_rng(seed)
        root, matrix = random_root(rng, 4), rng.normal(size=(6, 4))
        points = rng.normal(size=(4, 10))
        cone = [Inequalities((slice(0, 4),), (matrix[:, None],), 1e-13)]
        found, _ = project(points, root, cone)
        expected = [nearest_by_enumeration(point, root, matrix) for point in points.T]
        np.testing.assert_allclose(found.T, expected, atol=1e-9)
        assert (matrix @ found).min() > -1e-12

    def test_of_several_terms_all_combinations_hold(self):
        rng = np.random.default_rng(0)
        root = random_root(rng, 6)
        parts = rng.normal(size=(2, 1, 2)), rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 2, 2))
        places = slice(0, 2), slice(2, 4), slice(4, 6)
        points = rng.normal(size=(6, 8))
        found, _ = project(points, root, [Inequalities(places, parts, 1e-13)])
        rows = [
            np.concatenate([parts[0][i, 0], parts[1][i, j], parts[2][i, k]])
            for i, j, k in product(range(2), range(3), range(2))
        ]
        every = [Inequalities((slice(0, 6),), (np.array(rows)[:, None],), 1e-13)]
        np.testing.assert_allclose(found, project(points, root, every)[0], atol=1e-9)

    def test_a_feasible_point_stays(self):
        rng = np.random.default_rng(1)
        points = np.cumsum(rng.uniform(size=(5, 3)), axis=0)
        cone = [Inequalities((slice(0, 5),), (np.diff(np.eye(5), axis=0)[:, None],), 1e-13)]
        np.testing.assert_array_equal(project(points, random_root(rng, 5), cone)[0], points)

    def test_where_nothing_else_is_possible_it_is_zero(self):
        rng = np.random.default_rng(2)
        both = np.concatenate([np.eye(3), -np.eye(3)])
        cone = [Inequalities((slice(0, 3),), (both[:, None],), 1e-12)]
        found, _ = project(rng.normal(size=(3, 5)), random_root(rng, 3), cone)
        np.testing.assert_allclose(found, 0.0, atol=1e-12)


def posterior(seed=0, mean=0.0, size=1.0):
    """Two columns with curves, and their interaction."""
    rng = np.random.default_rng(seed)
    axis, few = knots(np.linspace(-1.0, 1.0, 9)), knots([-1.0, 0.0, 1.0])
    terms, start = [], 0
    for features, entries, width in (
        ((0,), axis, 4),
        ((1,), axis, 3),
        ((0, 2), Grid((few, few)), 2),
    ):
        table = rng.normal(size=(len(entries), width))
        if not isinstance(entries, Grid):  # with a line, which increases
            table[:, 0] = axis.points
        terms.append(ConstrainedTerm(slice(start, start + width), features, entries, table))
        start += width
    root = size * random_root(rng, start + 3)
    constraints = Constraint(0, monotone=1), Constraint(1, monotone=-1)
    free_mean = mean * np.array([1.0, 0, 0, 0, -1.0, 0, 0, 0, 0])
    free = ConstrainedPosterior(constraints, tuple(terms), free_mean, root, np.zeros(start))
    return replace(free, mean=free.project(free_mean[:, None], SETTLED)[:, 0])


def slopes(terms, coordinates):
    """All differences that the constraints of `posterior` are about."""
    curve, other, pair = (term.table @ coordinates[term.place] for term in terms)
    fine = np.stack([np.interp(terms[0].entries.points, [-1, 0, 1], row) for row in np.eye(3)], 1)
    surface = np.einsum("pi,ijm->pjm", fine, pair.reshape(3, 3, -1))
    total = np.diff(curve[:, None] + surface, axis=0)
    return min(total.min(), np.diff(curve, axis=0).min(), -np.diff(other, axis=0).max())


class TestPosterior:
    def test_columns_in_turn_are_the_joint_projection(self):
        one = posterior()
        points = np.random.default_rng(1).normal(size=(9, 20))
        in_turn = one.project(points, 1e-9)
        matrices = np.zeros((0, 9))
        for group in one._groups:
            for cone in group.cone:
                for choice in product(*(range(part.shape[1]) for part in cone.parts)):
                    size = len(cone.parts[0])
                    where = np.tile(choice, (size, 1))
                    rows = np.zeros((size, 9))
                    rows[:, group.places] = cone.rows(np.arange(size), where, len(group.places))
                    matrices = np.concatenate([matrices, rows])
        root = np.linalg.cholesky(one.covariance)
        joint = [Inequalities((slice(0, 9),), (matrices[:, None],), 1e-13)]
        np.testing.assert_allclose(in_turn, project(points, root, joint)[0], atol=1e-6)

    def test_draws_violate_nothing(self):
        one = posterior()
        assert slopes(one.terms, one.draws) > -1e-12
        free = one.cov_cholesky @ np.random.default_rng(0).normal(size=(len(one.cov_cholesky), 50))
        drawn = one.deviations(free)[one.places] + one.mean[:, None]
        assert slopes(one.terms, drawn) > -1e-12

    def test_the_mean_is_nearer_to_what_obeys(self):
        """Why bands of the free fit's width cover what is true as often, or more often."""
        one = posterior()
        truths = one.project(np.random.default_rng(3).normal(size=(9, 50)), SETTLED)

        def distances(mean):
            whitened = np.linalg.solve(np.linalg.cholesky(one.covariance), mean[:, None] - truths)
            return np.linalg.norm(whitened, axis=0)

        assert (distances(one.mean) <= distances(one.free_mean) + 1e-9).all()

    def test_without_violations_draws_are_free(self):
        one = posterior(mean=1.0, size=1e-3)
        np.testing.assert_array_equal(one.mean, one.free_mean)
        free = one.cov_cholesky @ np.random.default_rng(0).normal(size=(len(one.cov_cholesky), 50))
        np.testing.assert_allclose(one.deviations(free), free, atol=1e-15)
        assert not one.binds

    def test_does_not_depend_on_the_choice_of_coordinates(self):
        one = posterior()
        rng = np.random.default_rng(4)
        turns = [np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3, 2)]
        whole = np.eye(len(one.cov_cholesky))
        for term, turn in zip(one.terms, turns, strict=True):
            whole[term.place, term.place] = turn
        covariance = whole.T @ one.cov_cholesky @ one.cov_cholesky.T @ whole
        turned = replace(
            one,
            terms=tuple(
                replace(term, table=term.table @ turn)
                for term, turn in zip(one.terms, turns, strict=True)
            ),
            free_mean=whole[:9, :9].T @ one.free_mean,
            cov_cholesky=np.linalg.cholesky(covariance),
            mean=whole[:9, :9].T @ one.mean,
        )
        for before, after in zip(one.terms, turned.terms, strict=True):
            np.testing.assert_allclose(
                before.table @ one.draws[before.place],
                after.table @ turned.draws[after.place],
                atol=0.02,  # draws settle to a hundredth of a standard deviation
            )
