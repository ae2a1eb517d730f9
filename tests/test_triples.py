"""Interactions of three columns through the public interface: found, named, kept and shown."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival, load
from lanam.report.charts import pairs_data

QUICK = {"level_effects": False, "noise": "constant"}
NAME = "dose x age x sex"
N = 600


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "dose": rng.uniform(0.0, 10.0, N),
            "age": rng.uniform(20.0, 80.0, N),
            "sex": rng.choice(["f", "m"], N),
            "size": rng.uniform(0.0, 1.0, N),
        }
    )
    X.loc[rng.random(N) < 0.05, "dose"] = np.nan
    f = (X["dose"].fillna(5.0) - 5.0) * (X["age"] - 50.0) / 40.0 * np.where(X["sex"] == "f", 1, -1)
    return X, f, f + X["size"] + 0.5 * rng.standard_normal(N)


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def model(table):
    X, _, y = table
    return LANAMRegressor(**QUICK).fit(X, y)


def triples(model):
    return [row["pair"] for row in model.interaction_scores_.active if row["order"] == 3]


class TestFits:
    def test_finds_the_planted_one(self, model):
        assert triples(model) == [NAME]
        X, f, _ = make_table(1)
        assert np.corrcoef(model.predict(X) - X["size"], f)[0, 1] > 0.97

    def test_max_order(self, table):
        X, _, y = table
        two = LANAMRegressor(max_order=2, **QUICK).fit(X, y)
        assert {row["order"] for row in two.interaction_scores_} == {2}
        one = LANAMRegressor(max_order=1, **QUICK).fit(X, y)
        assert len(one.interaction_scores_) == 0
        with pytest.raises(ValueError, match="max_order=4 is not known: choose 1, 2 or 3"):
            LANAMRegressor(max_order=4).fit(X, y)
        with pytest.raises(ValueError, match="max_order=2 is the largest"):
            LANAMRegressor(max_order=2, interactions=[("dose", "age", "sex")]).fit(X, y)

    def test_named(self, table):
        X, _, y = table
        named = LANAMRegressor(interactions=[("sex", "dose", "age")], **QUICK).fit(X, y)
        assert triples(named) == [NAME]
        assert [row["order"] for row in named.interaction_scores_] == [3]

    def test_added_to_a_fitted_model(self, table):
        X, _, y = table
        added = LANAMRegressor(interactions=0, **QUICK).fit(X, y)
        added.add_interactions(X, y, [("dose", "age", "sex")])
        assert triples(added) == [NAME]

    def test_weights_are_repeated_rows(self, table):
        X, _, y = table
        weight = np.random.default_rng(0).integers(1, 3, N)
        options = QUICK | {"interactions": [("dose", "age", "sex")]}
        weighted = LANAMRegressor(**options).fit(X, y, sample_weight=weight)
        repeated = LANAMRegressor(**options).fit(X.loc[X.index.repeat(weight)], y.repeat(weight))
        # Tuning ends within a twentieth of a nat.
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=0.05)

    def test_classes(self, table):
        X, f, _ = table
        noise = np.random.default_rng(2).logistic(size=N)
        grade = np.digitize(2.0 * f + noise, [-1.5, 1.5])
        model = LANAMClassifier(level_effects=False).fit(X, grade)
        assert triples(model) == [NAME]

    def test_counts(self, table):
        X, f, _ = table
        y = np.random.default_rng(2).poisson(np.exp(0.5 * f + 1.0))
        assert triples(LANAMRegressor(likelihood="poisson", level_effects=False).fit(X, y)) == [
            NAME
        ]

    def test_survival_without_time(self, table):
        X, f, _ = table
        time = np.random.default_rng(2).exponential(np.exp(-f))
        y = pd.DataFrame({"event": time < 5.0, "time": np.minimum(time, 5.0)})
        model = LANAMSurvival(
            interactions=[("dose", "age", "sex")], time_interactions=0, level_effects=False
        ).fit(X, y.to_records(index=False))
        assert triples(model) == [NAME]

    def test_not_of_excluded_pairs_or_constrained_columns(self, table):
        X, _, y = table
        for known in ({"exclude_pairs": [("age", "dose")]}, {"monotonic_cst": {"age": 1}}):
            assert triples(LANAMRegressor(**known, **QUICK).fit(X, y)) == []
        asked = LANAMRegressor(
            interactions=[("age", "dose", "sex")], exclude_pairs=[("age", "dose")]
        )
        with pytest.raises(ValueError, match=r"has the pair .*, which exclude_pairs excludes"):
            asked.fit(X, y)


class TestFiles:
    def test_rows_in_chunks_give_the_same_model(self, model, table, tmp_path):
        X, _, y = table
        folder = tmp_path / "rows"
        folder.mkdir()
        for k, part in enumerate(np.array_split(np.arange(N), 3)):
            X.iloc[part].assign(y=y.iloc[part]).to_parquet(folder / f"{k}.parquet")
        chunked = LANAMRegressor(**QUICK).fit(folder, "y")
        assert triples(chunked) == triples(model)
        np.testing.assert_allclose(chunked.predict(X), model.predict(X), atol=1e-3)

    def test_saved_and_loaded(self, model, table, tmp_path):
        model.save(tmp_path / "model.lanam")
        again = load(tmp_path / "model.lanam")
        assert again.interaction_scores_.rows == model.interaction_scores_.rows
        for one, two in zip(
            again.predict(table[0], return_std=True),
            model.predict(table[0], return_std=True),
            strict=True,
        ):
            np.testing.assert_array_equal(one, two)

    def test_edits_are_saved(self, model, table, tmp_path):
        edited = model.edit_term(NAME, "zero", levels={"sex": ["m"]})
        edited.save(tmp_path / "edited.lanam")
        terms = load(tmp_path / "edited.lanam").predict_terms(table[0])
        place = [term.name for term in model.terms_].index(NAME)
        men = (table[0]["sex"] == "m").to_numpy()
        assert not terms[men, place].any()
        assert terms[~men, place].any()


class TestShown:
    def test_scores(self, model):
        scores = model.interaction_scores_
        assert scores.of_order(3)[0]["feature_names"] == ("dose", "age", "sex")
        assert np.isnan(np.diag(scores.matrix())).all()
        frame = scores.to_frame()
        assert frame["third"].tolist().count("sex") == len(frame[frame["third"] == "sex"]) == 1
        assert json.loads(json.dumps(scores.to_dict()))["pairs"][0]["order"] in (2, 3)
        assert f"{len(scores)} interactions by screening score" in str(model.summary())

    def test_it_is_pure(self, model):
        surface = model.explain_global()[NAME]
        weighted = surface.density * surface.mean
        for one in range(3):
            assert np.abs(weighted.sum(axis=one)).max() < 1e-9
        for pair in combinations(range(3), 2):
            assert np.abs(weighted.sum(axis=pair)).max() < 1e-9

    def test_the_report_has_its_slices(self, model):
        data = pairs_data(model.explain_global())
        own = [one for one in data if one["name"].startswith(NAME)]
        assert [one["name"] for one in own] == [f"{NAME} at sex = f", f"{NAME} at sex = m"]
        surface = model.explain_global()[NAME]
        largest = np.abs(surface.mean[surface.density > 0.0]).max()
        assert all(one["limits"]["mean"] == [pytest.approx(largest, rel=1e-5)] for one in own)
