"""The plan of a stage is what the stage does."""

from dataclasses import replace

import numpy as np
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import fitting
from lanam.core.inference.options import Options
from lanam.core.inference.problem import Problem, State
from lanam.core.noise.residuals import LogVariance
from lanam.core.rows import quadratics
from lanam.core.rows.cross_tables import TableQuadratic, cross_table_bytes
from lanam.core.rows.plan import Plan
from lanam.families.softmax import Softmax
from tests.core import in_memory
from tests.likelihoods import LIKELIHOODS

LIKELY = {**LIKELIHOODS, "log variance": LogVariance(), "softmax": Softmax(3)}
SMALL = Options(hidden_sizes=(3,), init_scales=(1.0,), level_effects=False)


def rows_of(n_rows, likelihood):
    """A column of few values: some of its term's entries have no rows."""
    columns = (np.arange(n_rows) % 20)[:, None].astype(float)
    y = np.arange(n_rows) % (3.0 if likelihood.n_outputs > 1 else 2.0)
    prepared = in_memory.prepared(columns, y, np.ones(n_rows), likelihood, SMALL)
    return prepared.terms, prepared.rows


def planned_and_done(terms, rows, likelihood, memory):
    """The plan, reported before rows are summed, and the form that the quadratic then has."""
    plans = []

    def announce(n_entries):
        pay = quadratics.tables_pay(likelihood, len(rows), n_entries, memory)
        plans.append(Plan("columns", len(rows), 1, len(terms), n_entries, memory, pay))

    problem = Problem.of(terms, rows, likelihood, memory=memory, on_decision=announce)
    (plan,) = plans
    return plan, in_tables(problem)


def in_tables(problem):
    """Whether rows are summed into cross-tables around a first state."""
    rng, n_outputs = np.random.default_rng(0), problem.likelihood.n_outputs
    terms = tuple(problem.initial_term(k, rng) for k in range(len(problem.terms)))
    state = State(terms, np.zeros(n_outputs) if n_outputs > 1 else 0.0, 1.0)
    return isinstance(problem.quadratic(state), TableQuadratic)


@pytest.mark.parametrize("name", LIKELY)
class TestPlanAndForm:
    def sizes(self, name):
        """The numbers of all entries and of those with rows, including the intercept."""
        terms, rows = rows_of(200, LIKELY[name])
        seen = sum(np.count_nonzero(own) for own in Problem.of(terms, rows, LIKELY[name]).data_mass)
        n_all, n_seen = sum(rows.sizes) + 1, int(seen) + 1
        assert n_seen < n_all
        return n_all, n_seen

    def test_agree_for_any_number_of_rows(self, name, monkeypatch):
        n_all, n_seen = self.sizes(name)
        monkeypatch.setattr(quadratics, "MANY_ROWS", 2 * n_all)
        found = set()
        for n_rows in range(2 * n_seen - 1, 2 * n_all + 3):
            plan, done = planned_and_done(*rows_of(n_rows, LIKELY[name]), LIKELY[name], 1e9)
            assert plan.in_tables == done
            found.add(done)
        assert found == ({False} if name == "softmax" else {False, True})

    def test_agree_for_any_memory(self, name, monkeypatch):
        n_all, n_seen = self.sizes(name)
        monkeypatch.setattr(quadratics, "MANY_ROWS", 100)
        given, found = rows_of(500, LIKELY[name]), {}
        for n_entries in (n_seen - 1, n_seen, n_all - 1, n_all):
            memory = cross_table_bytes(n_entries)
            plan, done = planned_and_done(*given, LIKELY[name], memory)
            assert plan.in_tables == done
            assert (plan.table_bytes <= memory) >= done
            found[n_entries] = done
        some = name != "softmax"
        assert found == {n_seen - 1: False, n_seen: some, n_all - 1: some, n_all: some}


def test_a_plan_is_reported_before_rows_are_summed(monkeypatch):
    order = []
    monkeypatch.setattr(quadratics, "summed", lambda *_: order.append("summed") or 1 / 0)
    options = replace(SMALL, on_plan=lambda plan: order.append(plan.in_tables))
    columns = np.random.default_rng(0).integers(0, 5, (400, 1)).astype(float)
    with pytest.raises(ZeroDivisionError):
        in_memory.fit(columns, columns[:, 0], np.ones(400), "gaussian", options, 0)
    assert order == [True, "summed"]


@pytest.mark.parametrize("n_rows", [515, 522, 530])
def test_the_plan_of_a_fit_around_the_threshold(n_rows, monkeypatch):
    # A column of distinct numbers has about half as many entries as rows, some of them without rows.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, 1))
    problems = []
    original = fitting.make_problem
    monkeypatch.setattr(
        fitting, "make_problem", lambda *given: problems.append(original(*given)) or problems[-1]
    )
    for model in (
        LANAMRegressor(interactions=0, noise="constant", random_state=0),
        LANAMClassifier(interactions=0, random_state=0),
    ):
        y = X[:, 0] + 0.1 * rng.normal(size=n_rows)
        target = y if isinstance(model, LANAMRegressor) else y > 0.5
        (stage,) = model.fit(X, target).plan_.stages
        assert stage.in_tables == in_tables(problems.pop())
