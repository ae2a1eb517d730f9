"""Edited terms: the specified function, everything else unchanged, and a record of the edit."""

import copy
import json
import pickle
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lanam import LANAMClassifier, LANAMRegressor, load
from lanam.core.fit import prepare
from lanam.editing import edit_words, signed_words
from lanam.explain.portable import explain_portable
from lanam.plot import plot_importance, plot_interaction, plot_local, plot_shapes
from lanam.provenance import utc_now
from tests.oracles import assert_close
from tests.report.examples import CITY, QUICK, example, hard_rows
from tests.report.pages import Page
from tests.test_portable import check, shops

#: One of every likelihood.
LIKELIHOODS = ("gaussian", "counts", "two", "many")


@pytest.fixture(scope="module")
def small():
    """A quick model with numeric columns, missing values, categories and an interaction, and its data."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "bmi": np.where(rng.random(n) < 0.1, np.nan, rng.normal(27.0, 4.0, n)),
            "city": rng.choice(["Rome", "Bonn", "Oslo", "Lima"], n),
            "same": 1.0,
        }
    )
    bmi = X["bmi"].fillna(30.0).to_numpy()
    y = np.sin(X["age"] / 12.0) + 0.2 * (bmi - 27.0) + 0.8 * (X["city"] == "Rome")
    y += 0.03 * (X["age"] - 50.0) * (bmi - 27.0) + 0.1 * rng.normal(size=n)
    model = LANAMRegressor(interactions=[("age", "bmi")], **QUICK).fit(X, y.to_numpy())
    assert [term.name for term in model.terms_ if term.active] == [
        "age",
        "bmi",
        "city",
        "age x bmi",
    ]
    return model, X, y.to_numpy()


def column_of(model, name):
    return [term.name for term in model.terms_].index(name)


def rows_at(X, name, values):
    """A typical row for each value of a column."""
    row = X.iloc[[0]].drop(columns=name)
    rows = pd.concat([row] * len(values), ignore_index=True)
    return rows.assign(**{name: values})[list(X.columns)]


class TestFunction:
    @pytest.mark.parametrize("kind", LIKELIHOODS)
    def test_zero(self, kind):
        """For every family: zero without uncertainty inside, unchanged elsewhere."""
        case = example(kind)
        edited = case.model.edit_term("load", "zero", low=45, high=55.5)
        place = column_of(edited, "load")
        inside = case.X["load"].between(45, 55.5).to_numpy()
        means, stds = edited.predict_terms(case.X, return_std=True)
        before, stds_before = case.model.predict_terms(case.X, return_std=True)
        assert 20 < inside.sum() < 180
        assert np.all(means[inside, place] == 0.0)
        assert np.all(stds[inside, place] == 0.0)
        expected, expected_std = before.copy(), stds_before.copy()
        expected[inside, place] = expected_std[inside, place] = 0.0
        assert_close(means, expected, "single precision")
        assert_close(stds, expected_std, "single precision")
        np.testing.assert_array_equal(edited.intercept_, case.model.intercept_)

    @pytest.mark.parametrize("kind", LIKELIHOODS)
    def test_clamp_is_the_model_at_clipped_values(self, kind):
        """So are draws, intervals and probabilities: the joint posterior is that of the fit."""
        case = example(kind)
        edited = case.model.edit_term("gap", "clamp", low=0.2, high=0.7)
        for term in edited.terms_:
            if term.kind == "pair" and "gap" in term.feature_names:
                edited = edited.edit_term(term.name, "clamp", low={"gap": 0.2}, high={"gap": 0.7})
        clipped = case.X.assign(gap=case.X["gap"].clip(0.2, 0.7))
        assert (case.X["gap"] != clipped["gap"]).sum() > 50
        more = case.more
        draws = [
            model.sample(X, n_samples=5, random_state=0, **more)
            for model, X in ((edited, case.X), (case.model, clipped))
        ]
        assert_close(*draws, "single precision")
        if kind in ("gaussian", "counts"):
            for name, options in (("predict", {"return_std": True}), ("predict_interval", {})):
                after = getattr(edited, name)(case.X, **options, **more)
                before = getattr(case.model, name)(clipped, **options, **more)
                assert_close(np.array(after), np.array(before), "single precision")
        else:
            assert_close(
                edited.predict_proba(case.X), case.model.predict_proba(clipped), "single precision"
            )

    def test_a_column_is_edited_in_all_its_main_effects(self):
        """Its smooth term and its per-value effects, or the latter alone."""
        case = example("gaussian")
        names = [term.name for term in case.model.terms_ if term.active]
        assert {"zone (levels)", "hour (levels)", "hour"} <= set(names)
        edited = case.model.edit_term("hour", "zero", low=6, high=12)
        assert edited.edits_[0]["terms"] == ["hour", "hour (levels)"]
        inside = case.X["hour"].between(6, 12).to_numpy()
        contributions = edited.predict_terms(case.X)
        for name in ("hour", "hour (levels)"):
            place = column_of(edited, name)
            np.testing.assert_array_equal(contributions[:, place] == 0.0, inside)
        alone = case.model.edit_term("hour (levels)", "zero", low=6, high=12)
        assert alone.edits_[0]["terms"] == ["hour (levels)"]
        assert not alone.terms_[column_of(alone, "hour")].was_edited
        zone = case.model.edit_term("zone (levels)", "zero", low=3, high=5).predict_terms(case.X)
        inside = case.X["zone"].between(3, 5).to_numpy()
        np.testing.assert_array_equal(zone[:, column_of(edited, "zone (levels)")] == 0.0, inside)

    def test_clamping_includes_effects_of_single_values(self):
        """Beyond a limit the sum of both terms is that at the limit."""
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"b": rng.integers(0, 101, 800).astype(float), "c": rng.normal(size=800)})
        y = 4.0 * (X["b"] % 10 == 0) + 0.02 * X["b"] + X["c"] + 0.1 * rng.normal(size=800)
        model = LANAMRegressor(interactions=0, **QUICK).fit(X, y)
        names = [term.name for term in model.terms_ if "b" in term.feature_names]
        places = [column_of(model, name) for name in names]
        assert names == ["b", "b (levels)"]

        def moments(model, values):
            rows = rows_at(X, "b", values)
            (mean, draws) = model.predict_terms(rows), model.sample(rows, 3, random_state=0)
            return mean[:, places].sum(axis=1), draws

        seen = np.sort(X["b"].unique())
        for end in (50.5, 50.0, 49.0):
            edited = model.edit_term("b", "clamp", high=end)
            beyond = seen[seen > end]
            after, before = moments(edited, beyond), moments(model, np.full(len(beyond), end))
            for one, two in zip(after, before, strict=True):
                assert_close(one, two, "single precision")
            inside = seen[seen <= end]
            assert_close(moments(edited, inside)[0], moments(model, inside)[0], "single precision")
        spike = model.edit_term("b", "clamp", high=50)
        levels = spike.predict_terms(rows_at(X, "b", [50.0, 51.0, 60.5, 150.0]))[:, places[1]]
        assert levels[0] == levels[1] > 2.0
        # Unseen values have no per-value effect, beyond the limit as well.
        new = model.predict_terms(rows_at(X, "b", [60.5]))[0, places[1]]
        np.testing.assert_array_equal(levels[2:], new)

    def test_smooth(self, small):
        model, X, _ = small
        edited = model.edit_term("age", "smooth", low=30, high=61)
        place = column_of(edited, "age")
        ages = np.array([25.0, 30.0, 34.0, 45.5, 60.0, 61.0, 70.0])
        rows = rows_at(X, "age", ages)
        after, before = (one.predict_terms(rows)[:, place] for one in (edited, model))
        inside = (ages > 30) & (ages < 61)
        assert_close(after[~inside], before[~inside], "single precision")
        line = np.interp(ages, [30, 61], before[[1, 5]])
        assert_close(after[inside], line[inside], "single precision")
        wavy = model.edit_term("age", "smooth", low=30, high=61, width=4)
        smoother = wavy.predict_terms(rows)[:, place]
        assert not np.allclose(smoother[inside], before[inside])
        assert not np.allclose(smoother[inside], after[inside])

    def test_levels(self, small):
        model, X, _ = small
        place = column_of(model, "city")
        rows = rows_at(X, "city", ["Bonn", "Lima", "Oslo", "Rome"])
        before = model.predict_terms(rows)[:, place]
        zero = model.edit_term("city", "zero", levels="Oslo").predict_terms(rows)[:, place]
        np.testing.assert_array_equal(zero, np.where([0, 0, 1, 0], 0.0, before))
        edited = model.edit_term("city", "smooth", levels=["Rome", "Lima"])
        after = edited.predict_terms(rows)[:, place]
        weight = X["city"].value_counts()[["Lima", "Rome"]].to_numpy()
        assert_close(
            after[[1, 3]], np.full(2, np.average(before[[1, 3]], weights=weight)), "rounding"
        )
        np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
        difference = edited.explain_global().difference("city", "Rome", "Lima")
        assert (difference.mean, difference.std) == (0.0, 0.0)

    def test_missing_values(self, small):
        model, X, _ = small
        place = column_of(model, "bmi")
        rows = rows_at(X, "bmi", [22.0, np.nan, 30.0])
        before = model.predict_terms(rows)[:, place]
        assert before.all()
        for options, zeros in (
            ({"missing": True}, [0, 1, 0]),
            ({"missing": True, "low": 25}, [0, 1, 1]),
            ({"low": 25}, [0, 0, 1]),
            ({"missing": False}, [1, 0, 1]),
            ({}, [1, 1, 1]),
        ):
            after = model.edit_term("bmi", "zero", **options).predict_terms(rows)[:, place]
            np.testing.assert_array_equal(after == 0.0, np.array(zeros, dtype=bool), str(options))

    @pytest.mark.parametrize("name", ["age x bmi", ("age", "bmi"), ["bmi", "age"]])
    def test_pairs(self, small, name):
        model, X, _ = small
        place = column_of(model, "age x bmi")
        edited = model.edit_term(name, "zero", low={"age": 30}, high={"age": 60, "bmi": 27})
        inside = (X["age"].between(30, 60) & (X["bmi"] <= 27)).to_numpy()
        after, before = (one.predict_terms(X)[:, place] for one in (edited, model))
        assert np.all(after[inside] == 0.0)
        assert_close(after[~inside], before[~inside], "single precision")
        np.testing.assert_array_equal(edited.explain_local(X).edited[:, place], inside)
        gone = model.edit_term(name, "zero", missing={"bmi": True}).predict_terms(X)[:, place]
        np.testing.assert_array_equal(gone == 0.0, X["bmi"].isna().to_numpy())

    def test_high_cardinality(self, monkeypatch):
        """Categories whose effects have no coordinates."""
        monkeypatch.setattr(prepare, "_WIDE", 10)
        X, y = shops()
        model = LANAMRegressor(interactions=0, **QUICK).fit(X, y)
        assert model._model.terms[0].coupling is not None
        rows = X[1:5].assign(x=0.5)
        edited = model.edit_term("shop", "zero", levels=["shop 1", "shop 3"])
        means, stds = (one[:, 0] for one in edited.predict_terms(rows, return_std=True))
        before, stds_before = (one[:, 0] for one in model.predict_terms(rows, return_std=True))
        kept = np.array([0.0, 1.0, 0.0, 1.0])
        assert_close(means, kept * before, "rounding")
        assert_close(stds, kept * stds_before, "single precision")
        draws = edited.sample(rows, 3, random_state=0)
        np.testing.assert_array_equal(draws[:, 0], draws[:, 2])
        check(edited, rows)
        with pytest.raises(
            ValueError, match="has too many categories for 'smooth': combine categories"
        ):
            model.edit_term("shop", "smooth", levels=["shop 1", "shop 3"])


@pytest.mark.filterwarnings("ignore:column '")  # unseen values
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_portable_tables_follow(kind):
    """The portable tables score rows as the edited model does, also at the ends of edits."""
    case = example(kind)
    edited = case.model.edit_term("load", "zero", low=45, high=55.5)
    edited = edited.edit_term("hour", "clamp", low=3.3, high=20)
    edited = edited.edit_term(("load", CITY), "zero", high={"load": 52}, levels={CITY: ["Oslo"]})
    tables = explain_portable(edited._model, edited._schema, edited._labels).tables
    marked = {table.name for table in tables if table.edited is not None}
    assert marked == {term.name for term in edited.terms_ if term.was_edited}
    assert {"load", f"load x {CITY}"} < marked
    X, more = hard_rows(case)
    check(edited, X, *more.values())
    ends = pd.concat([rows_at(X, "load", [45.0, 55.5]), rows_at(X, "hour", [3.3, 20.0])])
    check(edited, ends, *(value[:4] for value in more.values()))


@pytest.mark.filterwarnings("ignore:column '")
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_files_keep_edits(kind, tmp_path):
    """Records, marks and predictions are bitwise equal."""
    case = example(kind)
    edited = case.model.edit_term("load", "zero", low=45, high=55.5, reason="so it is")
    edited = edited.edit_term("hour", "clamp", low=3.3).edit_term("gap", "smooth", width=0.1)
    edited = edited.edit_term(("load", CITY), "zero", high={"load": 52}, levels={CITY: ["Oslo"]})
    again = load(edited.save(tmp_path / "edited.lanam"))
    assert again.edits_ == edited.edits_
    assert str(again.summary()) == str(edited.summary())
    X, _ = hard_rows(case)
    rows, same = edited.explain_local(X), again.explain_local(X)
    assert rows.edited.any()
    for name in ("edited", "contributions", "contributions_std", "prediction", "prediction_std"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(same, name), name)
    assert again.explain_global().to_json() == edited.explain_global().to_json()


def test_a_removed_column_widens_no_intervals():
    """Missing values add no variance once none of its terms is left."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (500, 2)), columns=["a", "b"])
    y = 2.0 * X["a"] + X["b"] + 3.0 * X["a"] * X["b"] + 0.1 * rng.normal(size=500)
    X.loc[rng.random(500) < 0.2, "a"] = np.nan  # missing completely at random
    model = LANAMRegressor(interactions=[("a", "b")], **QUICK).fit(X, y)
    rows = pd.DataFrame({"a": [0.5, np.nan], "b": 0.0})

    def widths(model):
        return np.ptp(model.predict_interval(rows), axis=1)

    assert widths(model)[1] > 2.0 * widths(model)[0]
    alone = model.edit_term("a", "zero")
    assert widths(alone)[1] > 2.0 * widths(alone)[0]
    gone = alone.edit_term("a x b", "zero")
    assert widths(gone)[1] == widths(gone)[0]
    assert widths(alone)[1] > 2.0 * widths(alone)[0]


class TestNewModel:
    def test_the_original_is_unchanged(self, small):
        model, X, _ = small
        before = copy.deepcopy(model)
        edited = model.edit_term("age", "zero", low=30).edit_term("city", "zero")
        edited.history_.clear()
        assert model.edits_ == ()
        assert len(model.history_) > 0
        both = (one.predict(X, return_std=True) for one in (model, before))
        for one, two in zip(*both, strict=True):
            np.testing.assert_array_equal(one, two)
        assert str(model.summary()) == str(before.summary())
        assert model.explain_global().to_json() == before.explain_global().to_json()
        assert model.get_params() == before.get_params()

    def test_metadata_are_copied(self, small):
        model = copy.deepcopy(small[0])
        model.metadata_ = {"target": "y", "tags": ["a"]}
        edited = model.edit_term("age", "zero")
        assert edited.metadata_ == model.metadata_
        edited.metadata_["tags"].append("b")
        edited.metadata_["target"] = "z"
        assert model.metadata_ == {"target": "y", "tags": ["a"]}
        assert not hasattr(small[0].edit_term("age", "zero"), "metadata_")

    def test_the_result_is_a_fitted_estimator_of_the_same_class(self, small):
        model, X, y = small
        edited = model.edit_term("age", "zero")
        assert type(edited) is LANAMRegressor
        assert edited.get_params() == model.get_params()
        assert edited.score(X, y) < model.score(X, y)
        assert edited.log_evidence_ == model.log_evidence_
        assert edited.noise_std_ == model.noise_std_
        again = pickle.loads(pickle.dumps(edited))
        assert again.edits_ == edited.edits_
        np.testing.assert_array_equal(again.predict(X), edited.predict(X))

    def test_a_clone_is_neither_fitted_nor_edited(self, small):
        model, X, y = small
        fresh = clone(model.edit_term("age", "zero"))
        assert not hasattr(fresh, "edits_")
        with pytest.raises(NotFittedError):
            fresh.edit_term("age", "zero")
        assert fresh.fit(X, y).edits_ == ()

    def test_a_fit_resets_edits(self, small):
        model, X, y = small
        edited = model.edit_term("age", "zero").fit(X, y)
        assert edited.edits_ == ()
        assert not any(term.was_edited for term in edited.terms_)
        assert edited.predict_terms(X)[:, 0].any()

    def test_no_further_training(self, small):
        model, X, y = small
        edited = model.edit_term("age", "zero").edit_term("bmi", "zero")
        with pytest.raises(ValueError, match="this model has 2 edits, which training would undo"):
            edited.add_interactions(X, y)

    def test_the_calibration_is_reset(self):
        model = example("calibrated").model
        assert hasattr(model, "calibration_")
        assert not hasattr(model.edit_term("load", "zero"), "calibration_")
        assert hasattr(model, "calibration_")


class TestRecord:
    def test_contents(self, small, monkeypatch):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1714564800")
        model, X, _ = small
        signed = {"reason": "few rows", "author": "A. Lovelace"}
        edited = model.edit_term("age", "clamp", low=25, high=80.5, **signed)
        edited = edited.edit_term("city", "zero", levels=["Rome", "Bonn"])
        edited = edited.edit_term("age x bmi", "zero", low={"bmi": 30}, missing={"bmi": True})
        first, second, third = edited.edits_
        share = float(((X["age"] < 25) | (X["age"] > 80.5)).mean())
        assert first.pop("changed_share") == pytest.approx(share)
        assert first.pop("lanam_version")
        assert first.pop("date") == "2024-05-01T12:00:00Z"
        assert first == {
            "term": "age",
            "terms": ["age"],
            "action": "clamp",
            "where": [
                {
                    "column": "age",
                    "values": True,
                    "low": 25.0,
                    "high": 80.5,
                    "levels": None,
                    "missing": False,
                }
            ],
            "width": None,
            "reason": "few rows",
            "author": "A. Lovelace",
        }
        assert second["author"] is None  # and not the name of an account
        assert second["where"][0]["levels"] == ["Bonn", "Rome"]
        assert second["changed_share"] == pytest.approx(X["city"].isin(["Rome", "Bonn"]).mean())
        age, bmi = third["where"]
        assert (age["low"], age["high"], age["missing"]) == (None, None, True)
        assert (bmi["low"], bmi["high"], bmi["missing"]) == (30.0, None, True)
        assert json.loads(json.dumps(edited.edits_)) == list(edited.edits_)

    @pytest.mark.parametrize(
        ("name", "action", "options", "words"),
        [
            ("age", "zero", {}, "age: zero everywhere (100.0% of"),
            ("age", "zero", {"low": 60, "high": 80}, "age: zero from 60 to 80 ("),
            ("age", "zero", {"low": 60.25}, "age: zero from 60.25 on ("),
            ("age", "zero", {"high": 60}, "age: zero up to 60 ("),
            ("bmi", "zero", {"missing": True}, "bmi: zero for missing values ("),
            (
                "bmi",
                "zero",
                {"missing": False},
                "bmi: zero for all values except missing",
            ),
            (
                "bmi",
                "zero",
                {"high": 20, "missing": True},
                "bmi: zero up to 20 and for missing values (",
            ),
            ("city", "zero", {"levels": ["Rome"]}, "city: zero for category 'Rome' ("),
            (
                "city",
                "smooth",
                {"levels": ["Rome", "Oslo"]},
                "city: the same effect for categories 'Oslo', 'Rome' (",
            ),
            ("age", "clamp", {"high": 80}, "age: constant above 80 ("),
            (
                "age",
                "clamp",
                {"low": 20, "high": 80},
                "age: constant below 20 and above 80 (",
            ),
            ("age", "smooth", {"low": 30, "high": 60}, "age: a straight line from 30 to 60 ("),
            ("age", "smooth", {"width": 5}, "age: its mean over 5 on either side, everywhere ("),
            (
                "age x bmi",
                "zero",
                {"low": {"age": 30}, "high": {"bmi": 25}},
                "age x bmi: zero for age from 30 on and bmi up to 25 (",
            ),
            ("age x bmi", "zero", {}, "age x bmi: zero everywhere (100.0% of"),
            (
                "age x bmi",
                "clamp",
                {"high": {"age": 60, "bmi": 25}},
                "age x bmi: constant for age above 60 and bmi above 25 (",
            ),
        ],
    )
    def test_in_words(self, small, name, action, options, words):
        edited = small[0].edit_term(name, action, **options, reason="so it is")
        sentence = edit_words(edited.edits_[0])
        assert sentence.startswith(words)
        assert sentence.endswith("of the training data); so it is")

    def test_the_date_is_that_of_the_edit(self, small):
        before = utc_now({})
        (record,) = small[0].edit_term("age", "zero").edits_
        assert before <= record["date"] <= utc_now({})

    @pytest.mark.parametrize("argument", ["reason", "author"])
    def test_reason_and_author_are_strings(self, small, argument):
        with pytest.raises(ValueError, match=f"{argument}=7 must be a string"):
            small[0].edit_term("age", "zero", **{argument: 7})

    def test_date_and_author_where_there_is_room(self, small, monkeypatch, tmp_path):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1714564800")
        model, author = small[0], "<A. Lovelace>"
        edited = model.edit_term("age", "zero", low=60, author=author).edit_term("bmi", "zero")
        signed, dated = map(signed_words, edited.edits_)
        assert signed.endswith("of the training data) (2024-05-01, <A. Lovelace>)")
        assert dated.endswith("of the training data) (2024-05-01)")
        lines = str(edited.summary()).splitlines()
        assert f"  {signed}" in lines
        assert f"  {dated}" in lines
        long = model.edit_term("age", "zero", low=60, reason="so " * 12 + "it is", author=author)
        assert f"  {edit_words(long.edits_[0])}" in str(long.summary()).splitlines()
        page = Page.read(long.report(tmp_path / "r.html"))
        (box,) = page.all(id="edits")
        assert signed_words(long.edits_[0]) in re.sub(r"\s+", " ", box.text)

    def test_in_the_summary(self, small):
        model = small[0]
        assert "edit" not in str(model.summary())
        assert model.summary().to_dict()["edits"] == []
        edited = model.edit_term("age", "zero", low=60, reason="<so> it is").edit_term(
            "city", "zero"
        )
        summary = edited.summary()
        lines = str(summary).splitlines()
        start = lines.index(
            "2 edits after the fit (edf, log evidence gain and in-sample fit as fitted):"
        )
        assert lines[start + 1].startswith("  age: zero from 60 on (")
        assert f"; <so> it is ({edited.edits_[0]['date'][:10]})" in lines[start + 1]
        assert lines[start + 3].startswith(
            "noise sd as fitted: prediction intervals ignore the edits"
        )
        assert sum(line.endswith("active, edited") for line in lines) == 2
        assert summary.to_dict()["edits"] == list(edited.edits_)
        assert {row["term"]: row["edited"] for row in summary.rows} == {
            "age": True, "city": True, "bmi": False, "age x bmi": False, "same": False
        }  # fmt: skip
        assert "&lt;so&gt; it is" in summary._repr_html_()
        facts, before = summary.to_dict(), model.summary().to_dict()
        assert facts["n_active"] == before["n_active"]
        rows = {row["term"]: row for row in facts["terms"]}
        old = {row["term"]: row for row in before["terms"]}
        assert rows["city"]["importance"] == rows["city"]["importance_band"] == 0.0
        assert 0.0 < rows["age"]["importance"] < old["age"]["importance"]
        for name in ("age", "city"):
            for key in ("evidence", "effective_parameters", "status"):
                assert rows[name][key] == old[name][key]

    def test_the_note_on_noise_is_for_families_with_noise(self):
        problem = "as fitted: prediction intervals ignore the edits"
        for kind, words in (("counts", f"\ndispersion {problem}"), ("two", None), ("many", None)):
            text = str(example(kind).model.edit_term("load", "zero").summary())
            assert (problem in text) == bool(words)
            assert not words or words in text


class TestExplanations:
    def test_terms_mark_the_edited_range(self, small):
        model = small[0]
        assert not any(term.edited.any() for term in model.explain_global())
        edited = model.edit_term("age", "zero", low=30, high=60).edit_term(
            "bmi", "zero", missing=True
        )
        explanation = edited.explain_global()
        age, bmi, city = (explanation[name] for name in ("age", "bmi", "city"))
        np.testing.assert_array_equal(age.edited, (age.values >= 30) & (age.values <= 60))
        assert np.all(age.std[age.edited] == 0.0)
        assert np.all(age.std[~age.edited] > 0.0)
        lower, upper = age.band(simultaneous=True)
        assert np.all(lower[age.edited] == upper[age.edited])
        assert (age.missing_edited, age.unseen_edited) == (None, False)
        assert not bmi.edited.any()
        assert bmi.missing_edited
        assert not city.unseen_edited
        assert (age.was_edited, bmi.was_edited, city.was_edited) == (True, True, False)
        assert explanation["age"].to_dict()["edited"] == age.edited.tolist()
        for options in ({}, {"missing": False}):
            everything = model.edit_term("city", "zero", **options).explain_global()["city"]
            assert everything.edited.all()
            assert everything.unseen_edited

    def test_frames(self, small):
        model, X, _ = small
        edited = model.edit_term("age", "clamp", high=60).edit_term("bmi", "zero", missing=True)
        frame = edited.explain_global().to_frame()
        marked = frame[frame["edited"]]
        assert set(marked["term"]) == {"age", "bmi"}
        assert (marked.loc[marked["term"] == "age", "value"] > 60).all()
        assert marked.loc[marked["term"] == "bmi", "level"].tolist() == ["(missing)"]
        rows = edited.explain_local(X[:50]).to_frame()
        age = rows[rows["term"] == "age"]
        np.testing.assert_array_equal(age["edited"], age["value"] > 60)
        changed = (X["age"] > 60) | X["bmi"].isna()
        whole = rows[rows["term"] == "(prediction)"]
        np.testing.assert_array_equal(whole["edited"], changed[:50])
        assert not rows.loc[rows["term"].isin(["(intercept)", "city"]), "edited"].any()

    def test_several_classes(self):
        case = example("many")
        edited = case.model.edit_term("load", "zero", low=45, high=55)
        frame = edited.explain_global().to_frame()
        marked = frame[frame["edited"]]
        assert marked["value"].between(45, 55).all()
        assert (marked["mean"] == 0.0).all()
        assert len(marked) % 3 == 0

    def test_shap_and_interpret_still_read_it(self, small):
        explanation = small[0].edit_term("age", "zero", low=30, high=60).explain_global()
        for key in range(len(explanation)):
            explanation.data(key)


def note_of(ax):
    """The caption of a figure, in one line."""
    return " ".join(ax.figure.get_supxlabel().split())


class TestPlots:
    def hatched(self, ax):
        return [patch for patch in ax.patches if patch.get_hatch() == "...."]

    def test_shapes(self, small):
        model = small[0]
        edited = (
            model.edit_term("age", "zero", low=30, high=60)
            .edit_term("bmi", "zero", missing=True)
            .edit_term("city", "zero", levels=["Rome"])
        )
        panels = plot_shapes(edited.explain_global(), ["age", "bmi", "city"])
        (age,), (bmi,), (city,) = map(self.hatched, panels)
        assert age.get_extents().width > 0.0
        ends = age.get_xy()[0], age.get_xy()[0] + age.get_width()
        assert ends == pytest.approx((30.0, 60.0))
        assert bmi.get_xy()[0] > edited.explain_global()["bmi"].values[-5]
        assert city.get_xy()[0] + 0.5 == pytest.approx(3.0)  # Rome is the last
        assert "Dotted: edited by hand" in note_of(panels[0])
        clean = plot_shapes(model.explain_global())
        assert not any(map(self.hatched, clean))
        assert "edited" not in clean[0].figure.get_supxlabel()
        plt.close("all")

    def test_a_clamped_range_begins_at_the_limit(self, small):
        panels = plot_shapes(small[0].edit_term("age", "clamp", high=60).explain_global(), ["age"])
        (span,) = self.hatched(panels[0])
        assert span.get_xy()[0] == 60.0
        plt.close("all")

    def test_pairs(self, small):
        edited = small[0].edit_term("age x bmi", "zero", low={"age": 40}, high={"age": 60})
        for ax in plot_interaction(edited.explain_global()):
            areas = self.hatched(ax)
            lefts, rights = zip(
                *((area.get_x(), area.get_x() + area.get_width()) for area in areas), strict=True
            )
            assert min(lefts) == pytest.approx(40.0, abs=1.0)
            assert max(rights) == pytest.approx(60.0, abs=1.0)
        assert "Dotted: edited by hand" in note_of(ax)
        for ax in plot_interaction(small[0].explain_global()):
            assert not self.hatched(ax)
        assert "edited" not in ax.figure.get_supxlabel()
        plt.close("all")

    def test_rows_and_importances(self, small):
        model, X, _ = small
        edited = model.edit_term("age", "clamp", high=60)
        old = int(np.flatnonzero(X["age"] > 60)[0])
        young = int(np.flatnonzero(X["age"] < 60)[0])
        local = edited.explain_local(X)
        note = note_of(plot_local(local, old))
        assert "1 term is edited by hand at the values of this row: age." in note
        assert "edited" not in plot_local(local, young).figure.get_supxlabel()
        note = note_of(plot_importance(edited.explain_global()))
        assert "1 term is edited by hand: age." in note
        plt.close("all")


class TestReport:
    def test_it_lists_and_marks_the_edits(self, small, tmp_path):
        model, X, _ = small
        plain = Page.read(model.report(tmp_path / "plain.html", X))
        assert not list(plain.all(id="edits"))
        edited = model.edit_term("age", "zero", low=30, high=60, reason="<b>so</b>")
        edited = edited.edit_term("bmi", "zero", missing=True)
        page = Page.read(edited.report(tmp_path / "edited.html", X))
        (box,) = page.all(id="edits")
        text = re.sub(r"\s+", " ", box.text)
        assert "edited by hand, 2 times" in text
        for record in edited.edits_:
            assert edit_words(record) in text
        assert "those of the fit, and so is the noise: prediction intervals do not" in text
        shapes = {shape["name"]: shape for shape in page.data["shapes"]}
        assert shapes["age"]["edited"] == [[30.0, 60.0]]
        assert shapes["bmi"]["edited"] == []
        assert shapes["bmi"]["missing"]["edited"]
        assert shapes["city"]["edited"] == []
        assert shapes["age"]["note"].endswith("edited by hand")
        assert not shapes["city"]["note"].endswith("edited by hand")

    def test_classes_have_no_noise(self, tmp_path):
        case = example("two")
        page = Page.read(case.model.edit_term("load", "zero").report(tmp_path / "two.html", case.X))
        (box,) = page.all(id="edits")
        assert "noise" not in box.text


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "action", "options", "message"),
        [
            ("agee", "zero", {}, "there is no term 'agee': did you mean 'age'"),
            (
                "q",
                "zero",
                {},
                "there is no term 'q': there are 'age', 'bmi', 'city', 'same', 'age x",
            ),
            (("age", "city"), "zero", {}, "there is no term"),
            (
                "same",
                "zero",
                {},
                "the term 'same' is dropped: constant column: it contributes nothing",
            ),
            ("age", "drop", {}, "action='drop' must be one of 'zero', 'clamp', 'smooth'"),
            ("age", "zero", {"low": 60, "high": 50}, "low=60 is above high=50"),
            ("age", "zero", {"low": "old"}, "'old' cannot be a value of column 'age'"),
            ("age", "zero", {"low": np.nan}, "low=nan must be one number, of column 'age'"),
            ("age", "zero", {"low": [1, 2]}, "must be one number"),
            (
                "age",
                "zero",
                {"levels": [30]},
                "column 'age' is numeric, its parts are given by low",
            ),
            (
                "city",
                "zero",
                {"low": 3},
                "column 'city' is categorical, its parts are given by levels",
            ),
            (
                "city",
                "zero",
                {"levels": ["Paris"]},
                "'Paris' is no category of column 'city', whose cat",
            ),
            ("city", "zero", {"levels": [7]}, "is no category of column 'city'|cannot be a value"),
            ("city", "zero", {"levels": []}, "names no category of column 'city'"),
            (
                "age",
                "zero",
                {"missing": True},
                "column 'age' had no missing values in the training",
            ),
            ("bmi", "zero", {"missing": "yes"}, "missing='yes' must be True, False or None"),
            ("age", "zero", {"reason": 3}, "reason=3 must be a string"),
            ("age", "zero", {"width": 3}, "width is for 'smooth' of numeric columns"),
            (
                "city",
                "smooth",
                {"levels": ["Rome", "Oslo"], "width": 3},
                "width is for 'smooth' of numeric",
            ),
            ("age", "smooth", {"width": 0}, "width=0 must be a positive number"),
            ("age", "smooth", {"width": "w"}, "width='w' must be a positive number"),
            (
                "age",
                "smooth",
                {"low": 40.2, "high": 40.4},
                "'smooth' changes nothing in the term 'age'",
            ),
            ("age", "smooth", {"low": 200}, "'smooth' changes nothing in the term 'age'"),
            (
                "bmi",
                "smooth",
                {"missing": True},
                "'smooth' is for numeric values: use 'zero' for missing",
            ),
            (
                "bmi",
                "clamp",
                {"low": 20, "missing": True},
                "'clamp' is for numeric values: use 'zero' for mi",
            ),
            ("age", "clamp", {}, "'clamp' needs low or high"),
            ("age", "clamp", {"low": -1e6}, "'clamp' changes nothing in the term 'age'"),
            (
                "city",
                "clamp",
                {"levels": ["Rome"]},
                "'clamp' needs a numeric column, and column 'city' is cat",
            ),
            ("city", "smooth", {}, "name two or more, levels=['Bonn', 'Lima']"),
            ("city", "smooth", {"levels": ["Rome"]}, "name two or more"),
            (
                "age x bmi",
                "smooth",
                {},
                "'smooth' is for terms of one column, and 'age x bmi' is a pairwise",
            ),
            (
                "age x bmi",
                "zero",
                {"low": 30},
                "is a pairwise interaction: specify the column, low={'age': 30}",
            ),
            (
                "age x bmi",
                "zero",
                {"low": {"city": 3}},
                "'city' is no column of the term 'age x bmi'",
            ),
            ("age", "zero", {"low": {"bmi": 3}}, "'bmi' is no column of the term 'age'"),
        ],
    )
    def test_messages(self, small, name, action, options, message):
        pattern = "|".join(map(re.escape, message.split("|")))
        with pytest.raises(ValueError, match=pattern):
            small[0].edit_term(name, action, **options)

    @pytest.mark.parametrize(
        ("name", "first", "options"),
        [
            ("age", {}, {}),
            ("age", {"low": 30}, {"low": 40, "high": 50}),
            ("bmi", {"missing": True}, {"missing": True}),
            ("city", {}, {"levels": ["Rome"]}),
            ("age x bmi", {}, {"low": {"age": 30}}),
        ],
    )
    def test_an_edit_without_effect(self, small, name, first, options):
        edited = small[0].edit_term(name, "zero", **first)
        with pytest.raises(ValueError, match=f"'zero' changes nothing in the term '{name}' there"):
            edited.edit_term(name, "zero", **options)

    def test_infinite_ends(self, small):
        """They are the same as None."""
        model = small[0]
        for options, same in (
            ({"low": -np.inf}, {}),
            ({"low": -np.inf, "high": np.float32(np.inf)}, {}),
            ({"low": -np.inf, "high": 60}, {"high": 60}),
            ({"low": 60.0, "high": np.inf}, {"low": 60.0}),
        ):
            edited = model.edit_term("age", "zero", **options)
            assert edited.edits_ == model.edit_term("age", "zero", **same).edits_
        with pytest.raises(ValueError, match="'clamp' needs low or high"):
            model.edit_term("age", "clamp", high=np.inf)
        for wrong in ({"low": np.inf}, {"high": -np.inf}):
            with pytest.raises(ValueError, match="inf cannot be a value of column 'age'"):
                model.edit_term("age", "zero", **wrong)

    def test_one_level_without_a_list(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"flag": rng.random(200) < 0.5, "zone": rng.choice([3, 5, 7], 200)})
        y = X["flag"] + 0.5 * (X["zone"] == 5) + 0.1 * rng.normal(size=200)
        model = LANAMRegressor(interactions=0, categorical_features=["zone"], **QUICK).fit(X, y)
        for name, level in (("flag", True), ("flag", np.bool_(False)), ("zone", 5)):
            edited = model.edit_term(name, "zero", levels=level)
            assert edited.edits_ == model.edit_term(name, "zero", levels=[level]).edits_
            zero = edited.predict_terms(X)[:, column_of(model, name)] == 0.0
            np.testing.assert_array_equal(zero, X[name] == level)
        assert model.edit_term("zone", "zero", levels=(k for k in (3, 5))).edits_[0]["where"][0][
            "levels"
        ] == [3, 5]
        with pytest.raises(ValueError, match="4 is no category of column 'zone'"):
            model.edit_term("zone", "zero", levels=4)

    def test_mappings_of_one_column(self, small):
        one = small[0].edit_term("age", "zero", low={"age": 30})
        assert one.edits_ == small[0].edit_term("age", "zero", low=30).edits_

    def test_a_range_without_data(self, small):
        with pytest.warns(
            UserWarning, match="has no 'age' from 95 on: its range is 18 to 89"
        ) as caught:
            edited = small[0].edit_term("age", "zero", low=95)
        assert caught[0].filename == __file__
        assert edited.edits_[0]["changed_share"] == 0.0

    @pytest.mark.filterwarnings("ignore:of the 60 categories")
    def test_rare_levels(self, monkeypatch):
        """Categories that share the effect of all others."""
        monkeypatch.setattr(prepare, "_WIDE", 10)
        X, y = shops(1000)
        model = LANAMClassifier(interactions=0, **QUICK).fit(X, np.digitize(y, [-0.7, 0.7]))
        entry_of = model._model.terms[0].entries.entry_of
        levels = np.array(model._schema.columns[0].levels)
        rare, frequent = levels[entry_of >= 5], levels[entry_of < 5]
        model.edit_term("shop", "zero", levels=frequent)
        with pytest.raises(
            ValueError, match=f"the category '{rare[0]}' of column 'shop' is too rare"
        ):
            model.edit_term("shop", "zero", levels=[frequent[0], rare[0]])
