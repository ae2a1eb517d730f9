"""What users know of columns: cycles, lines, orders, columns to keep and pairs to leave out."""

import re
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival, load
from lanam.errors import InputError

STAGES = ["I", "II", "III", "IV", "V", "VI"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 500
    hour, load = rng.integers(0, 24, n).astype(float), rng.uniform(-1.0, 1.0, n)
    stage, weight = rng.choice(STAGES[:5], n), rng.normal(70.0, 10.0, n)
    angle = 2.0 * np.pi * hour / 24.0
    f = np.sin(angle - 1.0) + load * np.cos(angle) + 0.03 * weight
    f += 0.3 * np.array([STAGES.index(each) for each in stage])
    X = pd.DataFrame(
        {"hour": hour, "load": load, "weight": weight, "stage": stage, "none": rng.normal(size=n)}
    )
    return X, f + 0.3 * rng.normal(size=n)


KNOWN = {
    "cyclic": {"hour": 24},
    "linear": ["weight"],
    "ordered": {"stage": STAGES},
    "keep": ["none"],
    "exclude_pairs": [("none", "load")],
}


@pytest.fixture(scope="module")
def model(table):
    return LANAMRegressor(random_state=0, interactions=[("hour", "load")], **KNOWN).fit(*table)


def at(table, n=60, **values):
    """Rows of a table with some columns replaced."""
    return table[0].iloc[:n].assign(**values)


class TestCyclic:
    @pytest.mark.parametrize("period", [-2, 1, 40])
    def test_values_of_other_periods_are_the_same(self, model, table, period):
        """Also of the interaction, so that values and slopes meet where the period ends."""
        assert {"hour", "hour x load"} <= {term.name for term in model.terms_ if term.active}
        hours = np.linspace(0.0, 24.0, 60)
        here = model.predict_terms(at(table, hour=hours), return_std=True)
        there = model.predict_terms(at(table, hour=hours + 24.0 * period), return_std=True)
        for one, other in zip(here, there, strict=True):
            # Fractions between knots are in single precision.
            np.testing.assert_allclose(one, other, atol=1e-5)

    def test_both_ends_meet(self, model, table):
        here, there = (model.predict(at(table, hour=h), return_std=True) for h in (0.0, 24.0))
        np.testing.assert_allclose(here[0], there[0], atol=1e-8)
        np.testing.assert_allclose(here[1], there[1], atol=1e-8)

    def test_the_curve_is_of_the_whole_period(self, model):
        shape = model.explain_global()["hour"]
        assert (shape.values[0], shape.values[-1]) == (0.0, 24.0)

    def test_an_edit_keeps_the_ends_together(self, model, table):
        edited = deepcopy(model).edit_term("hour", "zero", low=22.0, high=24.0)
        here, there = (edited.predict(at(table, hour=h)) for h in (0.0, 24.0))
        np.testing.assert_allclose(here, there, atol=1e-8)
        other = at(table, hour=np.linspace(0.01, 21.9, 60))
        np.testing.assert_allclose(edited.predict(other), model.predict(other), atol=1e-6)
        with pytest.raises(InputError, match="'hour' is cyclic: use 'zero' or 'smooth'"):
            deepcopy(model).edit_term("hour", "clamp", low=3.0)

    def test_evidence_prefers_a_cycle(self, table):
        X, y = table
        free = LANAMRegressor(interactions=0).fit(X[["hour"]], y)
        cyclic = LANAMRegressor(interactions=0, cyclic={"hour": 24}).fit(X[["hour"]], y)
        assert cyclic.log_evidence_ > free.log_evidence_

    def test_a_gap_is_bridged(self):
        """Between evening and morning nobody was measured: the band is widest in the middle."""
        rng = np.random.default_rng(0)
        hour = rng.uniform(8.0, 20.0, 300)
        y = np.sin(2.0 * np.pi * hour / 24.0) + 0.2 * rng.normal(size=300)
        model = LANAMRegressor(cyclic={"hour": 24}).fit(pd.DataFrame({"hour": hour}), y)
        shape = model.explain_global()["hour"]
        stds = np.interp([2.0, 7.0, 14.0], shape.values, shape.std)
        assert stds[0] > stds[1] > stds[2]


class TestLinear:
    def test_it_is_straight_with_at_most_one_parameter(self, model, table):
        term = next(term for term in model.terms_ if term.name == "weight")
        assert 0.9 < term.effective_parameters <= 1.0
        weights = np.linspace(0.0, 150.0, 60)
        place = [term.name for term in model.terms_].index("weight")
        line = model.predict_terms(at(table, weight=weights))[:, place]
        slope = np.diff(line) / np.diff(weights)
        np.testing.assert_allclose(slope, slope[0], rtol=1e-4)

    def test_it_is_least_squares_with_much_data(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=5000)
        y = 1.5 * x + rng.normal(size=5000)
        model = LANAMRegressor(linear=[0], noise="constant").fit(x[:, None], y)
        slope = float(np.polyfit(x, y, 1)[0])
        low, high = model.predict(np.array([[0.0], [1.0]]))
        assert high - low == pytest.approx(slope, rel=2e-3)


class TestOrdered:
    def test_neighbours_are_alike(self, table):
        """A category with few rows is near its neighbours, not near the mean of all."""
        X, y = table
        rare = X["stage"] == "V"
        few = (~rare | (np.cumsum(rare) <= 1)).to_numpy()
        X, y = X[few][["stage"]], y[few] + 3.0 * (X[few]["stage"] == "IV")
        means = {}
        for known in ({}, {"ordered": {"stage": STAGES}}):
            shape = LANAMRegressor(interactions=0, **known).fit(X, y).explain_global()["stage"]
            means[bool(known)] = dict(zip(shape.values, shape.mean, strict=False))
        assert means[True]["V"] > means[False]["V"]

    def test_a_category_without_rows_is_between(self, table):
        X, y = table
        y = y + X["stage"].map({"I": 1.0, "II": 0.0, "III": 0.5, "IV": 1.0, "V": -1.0}).to_numpy()
        keep = (X["stage"] != "III").to_numpy()
        model = LANAMRegressor(interactions=0, ordered={"stage": STAGES})
        shape = model.fit(X[keep][["stage"]], y[keep]).explain_global()["stage"]
        mean, std = (dict(zip(shape.values, v, strict=False)) for v in (shape.mean, shape.std))
        assert mean["II"] < mean["III"] < mean["IV"]
        assert std["III"] > max(std["II"], std["IV"])

    def test_numbers_are_categories(self, table):
        X, y = table
        codes = X[["stage"]].replace({s: k for k, s in enumerate(STAGES)}).astype(int)
        order = {"stage": list(range(6))}
        model = LANAMRegressor(interactions=0, ordered=order).fit(codes, y)
        assert model.terms_[0].kind == "categorical"
        named = LANAMRegressor(interactions=0, ordered={"stage": STAGES}).fit(X[["stage"]], y)
        np.testing.assert_allclose(model.predict(codes), named.predict(X[["stage"]]))

    def test_an_unknown_category_is_an_error(self, table):
        X, y = table
        problem = "column 'stage' has the category 'V', which ordered does not have: add it to the"
        with pytest.raises(InputError, match=problem):
            LANAMRegressor(ordered={"stage": STAGES[:4]}).fit(X, y)


class TestKeep:
    def test_it_is_never_dropped(self, model, table):
        X, y = table
        kept = next(term for term in model.terms_ if term.name == "none")
        assert kept.active
        assert not LANAMRegressor(interactions=0).fit(X[["none"]], y).terms_[0].active
        alone = LANAMRegressor(interactions=0, keep=["none"]).fit(X[["none"]], y)
        assert alone.terms_[0].active

    def test_its_band_is_not_empty(self, model):
        assert model.explain_global()["none"].std.min() > 0.0


class TestExcludedPairs:
    def test_they_are_not_tried(self, table):
        X, y = table
        model = LANAMRegressor(exclude_pairs=[("load", "hour")]).fit(X, y)
        pairs = {row["pair"]: row["status"] for row in model.interaction_scores_}
        assert pairs["hour x load"] == "left out: excluded"
        assert len(pairs) == 10

    def test_not_by_add_interactions_either(self, table):
        X, y = table
        model = LANAMRegressor(interactions=0, exclude_pairs=[("load", "hour")]).fit(X, y)
        with pytest.raises(InputError, match="which exclude_pairs excludes"):
            model.add_interactions(X, y, [("hour", "load")])
        pairs = model.add_interactions(X, y).interaction_scores_
        assert {row["pair"]: row["status"] for row in pairs}["hour x load"] == "left out: excluded"


class TestEverywhere:
    def test_all_families(self, table):
        X, y = table
        known = KNOWN | {"keep": ["none"]}
        two = LANAMClassifier(interactions=0, **known).fit(X, y > np.median(y))
        three = LANAMClassifier(interactions=0, **known).fit(X, np.digitize(y, [2.5, 3.5]))
        for model in (two, three):
            ends = [model.predict_proba(at(table, hour=h)) for h in (0.0, 24.0)]
            np.testing.assert_allclose(*ends, atol=1e-8)
        rng = np.random.default_rng(0)
        time = rng.exponential(np.exp(-y), len(y))
        survival = LANAMSurvival(interactions=0, n_intervals=5, **known)
        survival.fit(X, event=np.ones(len(y), int), time=time)
        assert "none" in {term.name for term in survival.terms_ if term.active}
        ends = [survival.predict(at(table, hour=h)) for h in (0.0, 24.0)]
        np.testing.assert_allclose(*ends, atol=1e-8)

    def test_files_are_the_same(self, table, tmp_path):
        X, y = table
        model = LANAMRegressor(interactions=0, random_state=0, **KNOWN)
        X.assign(y=y).to_parquet(tmp_path / "table.parquet")
        out = LANAMRegressor(**model.get_params()).fit(str(tmp_path / "table.parquet"), "y")
        np.testing.assert_allclose(out.predict(X), model.fit(X, y).predict(X), atol=1e-6)
        with pytest.raises(InputError, match="which ordered does not have"):
            out.set_params(ordered={"stage": STAGES[1:]}).fit(str(tmp_path / "table.parquet"), "y")
        with pytest.raises(InputError, match="more than its period of 12"):
            out.set_params(ordered=None, cyclic={"hour": 12}).fit(
                str(tmp_path / "table.parquet"), "y"
            )

    def test_saved_and_continued(self, model, table, tmp_path):
        X, y = table
        model.save(tmp_path / "m.lanam")
        loaded = load(tmp_path / "m.lanam")
        assert loaded.get_params() == model.get_params()
        hours = at(table, hour=np.linspace(-30.0, 60.0, 60))
        np.testing.assert_array_equal(loaded.predict(hours), model.predict(hours))
        wider = loaded.add_interactions(X, y, [("hour", "weight")])
        ends = [wider.predict(at(table, hour=h)) for h in (0.0, 24.0)]
        np.testing.assert_allclose(*ends, atol=1e-8)


def refused(X, y, message, **known):
    with pytest.raises(InputError, match=re.escape(message)):
        LANAMRegressor(**known).fit(X, y)


class TestErrors:
    @pytest.mark.parametrize(
        ("known", "message"),
        [
            (
                {"cyclic": {"hours": 24}},
                "cyclic names the column 'hours', which X does not have; did you",
            ),
            (
                {"cyclic": {"hour": 0}},
                "cyclic has the period 0 for column 'hour': use a positive number",
            ),
            (
                {"cyclic": 24},
                "cyclic=24 is not known: use a value per column, for example {'hour': 24}",
            ),
            (
                {"cyclic": {"hour": 12}},
                "column 'hour' is from 0 to 23, more than its period of 12: set",
            ),
            (
                {"cyclic": {"stage": 6}},
                "cyclic names the column 'stage', which is categorical, and a period",
            ),
            (
                {"linear": "weight"},
                "linear='weight' is not known: use a list of columns, for example ['we",
            ),
            ({"linear": ["stage"]}, "linear names the column 'stage', which is categorical"),
            (
                {"linear": ["hour"], "cyclic": {"hour": 24}},
                "linear and cyclic both name the column 'hour'",
            ),
            (
                {"ordered": {"stage": ["I"]}},
                "ordered has ['I'] for column 'stage': list its categories",
            ),
            (
                {"keep": ["non"]},
                "keep names the column 'non', which X does not have; did you mean 'none'",
            ),
            (
                {"exclude_pairs": [("hour",)]},
                "exclude_pairs must be a list of pairs of columns, and",
            ),
            ({"exclude_pairs": [("hour", "hour")]}, "a column has no interaction with itself"),
            (
                {"exclude_pairs": [("load", "hour")], "interactions": [("hour", "load")]},
                "interactions has the pair ('hour', 'load'), which exclude_pairs excludes",
            ),
            (
                {"linear": ["weight"], "hidden_sizes": (8,)},
                "linear is for infinitely wide networks, the default: leave hidden_sizes and",
            ),
            (
                {"linear": ["weight"], "solver": "adam"},
                "linear is for infinitely wide networks, the default: use solver='gauss-newton'",
            ),
        ],
    )
    def test_name_the_column_and_the_remedy(self, table, known, message):
        refused(*table, message, **known)

    def test_survival(self, table):
        X, y = table
        model = LANAMSurvival(cyclic={"hour": 12})
        with pytest.raises(InputError, match="more than its period"):
            model.fit(X, event=np.ones(len(y), int), time=np.exp(y))
