"""Explanations agree with the model, in the units of the columns."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss, r2_score

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.model.fitted import FittedModel, FittedTerm
from lanam.core.terms import knots as core_knots
from lanam.data import learn_schema
from lanam.explain import explain_global
from lanam.explain.ranges import data_histogram
from lanam.interactions import describe_interactions
from lanam.plot import plot_shapes
from lanam.summary import summarise


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    recipe = rng.integers(0, 150, 1500).astype(float)
    X = pd.DataFrame(
        {
            "income": rng.uniform(10_000.0, 90_000.0, 1500),
            "recipe": recipe,
            "noise": rng.standard_normal(1500),
            "same": np.full(1500, 7.0),
        }
    )
    y = 1e-4 * X["income"] + rng.normal(0.0, 1.0, 150)[recipe.astype(int)]
    return X, (y + 0.3 * rng.standard_normal(1500)).to_numpy()


@pytest.fixture(scope="module")
def model(data):
    return LANAMRegressor(random_state=0).fit(*data)


@pytest.fixture(scope="module")
def explanation(model):
    return model.explain_global()


@pytest.fixture(scope="module")
def classifier(data):
    return LANAMClassifier(random_state=0).fit(data[0], data[1] > np.median(data[1]))


class TestGlobal:
    def test_terms_are_in_the_models_order(self, model, explanation):
        assert [shape.name for shape in explanation] == [term.name for term in model.terms_]
        assert len(explanation) == len(model.terms_)
        assert explanation.intercept == model.intercept_
        assert explanation.link == "identity"

    def test_active_terms_are_sorted_by_importance(self, explanation):
        names = [shape.name for shape in explanation.active]
        assert set(names) >= {"income", "recipe (levels)"}
        importances = [shape.importance for shape in explanation.active]
        assert importances == sorted(importances, reverse=True)
        assert {"noise", "same"} <= {shape.name for shape in explanation.switched_off}

    def test_curves_agree_with_predict_terms(self, model, data, explanation):
        income = explanation["income"]
        rows = data[0][:50]
        means, stds = model.predict_terms(rows, return_std=True)
        # Interpolation weights are in single precision.
        np.testing.assert_allclose(
            np.interp(rows["income"], income.values, income.mean), means[:, 0], atol=1e-5
        )
        at_knots = pd.concat([rows[:1]] * len(income.values)).assign(income=income.values)
        _, stds = model.predict_terms(at_knots, return_std=True)
        np.testing.assert_allclose(income.std, stds[:, 0], rtol=1e-4)

    def test_values_are_in_the_columns_unit_and_reach_beyond_it(self, data, explanation):
        income = explanation["income"]
        inner = income.values[income.inside]
        assert inner[0] == pytest.approx(data[0]["income"].min())
        assert inner[-1] == pytest.approx(data[0]["income"].max())
        assert not income.inside[0]
        assert not income.inside[-1]
        # Bands are wider outside the data.
        assert income.std[0] > income.std[income.inside].max()

    def test_densities_are_fractions_of_rows(self, explanation):
        for shape in explanation:
            assert shape.density.sum() == pytest.approx(1.0)
            assert len(shape.values) == len(shape.mean) == len(shape.std) == len(shape.density)

    def test_importance_is_the_mean_absolute_contribution(self, model, data, explanation):
        contributions = np.abs(model.predict_terms(data[0])).mean(axis=0)
        for shape, contribution in zip(explanation, contributions, strict=True):
            # In the table a row between two knots counts at both of them.
            assert shape.importance == pytest.approx(contribution, rel=0.01, abs=1e-12)

    def test_single_values_have_an_unseen_entry(self, model, data, explanation):
        levels = explanation["recipe (levels)"]
        np.testing.assert_array_equal(levels.values, np.arange(150.0))
        assert levels.unseen_std > levels.std.max()
        index = [term.name for term in model.terms_].index("recipe (levels)")
        _, std = model.predict_terms(data[0][:1].assign(recipe=10.5), return_std=True)
        assert std[0, index] == pytest.approx(levels.unseen_std)
        mean = model.predict_terms(data[0][:1].assign(recipe=10.5))
        assert mean[0, index] == pytest.approx(levels.unseen_mean)

    @pytest.mark.filterwarnings("ignore:.*are missing, and none was in the training data")
    @pytest.mark.filterwarnings("ignore:.*is missing, and none was in the training data")
    def test_an_unexpected_missing_value(self, model, data, explanation):
        income = explanation["income"]
        assert income.missing_mean is income.missing_std is income.missing_density is None
        row = data[0][:1].assign(income=np.nan)
        mean, std = model.predict_terms(row, return_std=True)
        assert mean[0, 0] == income.unseen_mean == 0.0
        assert std[0, 0] == pytest.approx(income.unseen_std)

    def test_a_constant_column(self, explanation):
        same = explanation["same"]
        assert same.values.tolist() == [7.0]
        assert same.mean.tolist() == same.std.tolist() == [0.0]
        assert same.status == "dropped: constant column"

    def test_unknown_names(self, explanation):
        with pytest.raises(KeyError, match=r"no term 'age'; there are .*'income'"):
            explanation["age"]

    def test_plain_data(self, explanation):
        plain = json.loads(json.dumps(explanation.to_dict()))
        assert plain["terms"][0]["name"] == "income"
        np.testing.assert_array_equal(plain["terms"][0]["mean"], explanation["income"].mean)

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("incomes", "did you mean 'income'?"),
            ("INCOME", "did you mean 'income'?"),
            (("recip", "noise"), "no term ('recip', 'noise'); "),
            ("xyzzy", "there are 'income', "),
        ],
    )
    def test_terms_that_are_not_there(self, explanation, name, hint):
        for call in (lambda: explanation[name], lambda: explanation.evaluate(name, [1.0])):
            with pytest.raises(KeyError) as caught:
                call()
            assert hint in caught.value.args[0]

    def test_a_frame_in_the_users_library(self, data, explanation):
        frame = explanation.to_frame(beyond=True)
        assert isinstance(frame, pd.DataFrame)
        part = frame[frame["term"] == "income"]
        np.testing.assert_array_equal(part["value"], explanation["income"].values)
        # Unseen values of a per-value term have their own row.
        n_other = sum(shape.kind == "level" for shape in explanation)
        assert len(frame) == sum(shape.mean.size for shape in explanation) + n_other
        model = LANAMRegressor(random_state=0).fit(pl.from_pandas(data[0][:100]), data[1][:100])
        assert isinstance(model.explain_global().to_frame(), pl.DataFrame)
        assert isinstance(model.summary().to_frame(), pl.DataFrame)

    def test_deterministic(self, model, explanation):
        assert model.explain_global().to_dict() == explanation.to_dict()


def test_the_standard_deviation_of_the_importance():
    # A line through the origin with an uncertain slope: its importance is |2 + 0.1 z| mean |x|.
    column = core_knots.summarise(np.array([-3.0, -1.0, 1.0, 3.0]), np.ones(4))
    knots = core_knots.place_knots(column, 256)
    line, share = knots.values, np.isin(knots.values, [-3.0, -1.0, 1.0, 3.0]) / 4.0
    term = FittedTerm(
        kind="smooth",
        features=(0,),
        entries=knots,
        data_mass=share,
        mean=2.0 * line,
        table=line[:, None],
        status="active",
        importance=4.0,
        effective_parameters=1.0,
        evidence=5.0,
        precision=np.ones(1),
        expansion=np.empty(0),
    )
    model = FittedModel(
        likelihood="gaussian",
        intercept=0.0,
        terms=(term,),
        cov_cholesky=np.diag([0.1, 0.7]),
        noise_variance=1.0,
        log_evidence=0.0,
    )
    schema = learn_schema(["x"], np.array([[-3.0], [3.0]]))
    (shape,) = explain_global(model, schema)
    assert shape.importance == pytest.approx(2.0 * 2.0)
    # 256 draws: accurate to a few per cent.
    assert shape.importance_std == pytest.approx(0.1 * 2.0, rel=0.15)
    np.testing.assert_allclose(shape.std, 0.1 * np.abs(line))
    np.testing.assert_array_equal(shape.inside, np.abs(line) <= 3.0)
    pairs = describe_interactions(model, schema, "evidence")
    (row,) = summarise(model, schema, pairs, estimator="E", n_rows=4).rows
    assert row["importance_band"] == pytest.approx(2.0 * shape.importance_std)


class TestLocal:
    def test_contributions_add_up(self, model, data):
        local = model.explain_local(data[0][:20])
        assert len(local) == 20
        np.testing.assert_allclose(
            local.intercept + local.contributions.sum(axis=1), local.prediction, rtol=1e-12
        )
        np.testing.assert_array_equal(local.prediction, model.predict(data[0][:20]))
        np.testing.assert_array_equal(local.response, local.prediction)

    def test_standard_deviations_are_the_models(self, model, data):
        local = model.explain_local(data[0][:20])
        means, stds = model.predict_terms(data[0][:20], return_std=True)
        np.testing.assert_array_equal(local.contributions, means)
        np.testing.assert_array_equal(local.contributions_std, stds)
        _, std = model.predict(data[0][:20], return_std=True)
        np.testing.assert_allclose(local.prediction_std**2 + model.noise_std_**2, std**2)

    def test_values_are_the_columns(self, model, data):
        local = model.explain_local(data[0][:5])
        names = [term.feature_names[0] for term in local.terms]
        np.testing.assert_array_equal(local.values, data[0][:5][names])

    def test_a_classifier_explains_log_odds(self, classifier, data):
        local = classifier.explain_local(data[0][:20])
        assert local.link == "logit"
        assert classifier.explain_global().link == "logit"
        np.testing.assert_allclose(local.response, classifier.predict_proba(data[0][:20])[:, 1])

    def test_an_explanation_is_a_copy(self, model, data):
        before = model.predict(data[0][:5])
        for shape in model.explain_global().terms:
            shape.mean[:] += 5.0
            shape.density[:] = 0.0
        np.testing.assert_array_equal(model.predict(data[0][:5]), before)

    def test_plain_data_and_frame(self, model, data):
        local = model.explain_local(data[0][:2])
        plain = json.loads(json.dumps(local.to_dict()))
        assert plain["contributions"] == local.contributions.tolist()
        assert plain["terms"][0]["name"] == "income"
        frame = local.to_frame()
        n_terms = len(model.terms_)
        assert frame["term"][0] == "(intercept)"
        assert frame["term"][n_terms + 1] == "(prediction)"
        parts = frame[(frame["row"] == 1) & ~frame["term"].str.startswith("(pred")]
        assert parts["contribution"].sum() == pytest.approx(local.prediction[1])


class TestSummary:
    def test_rows_are_sorted_by_importance_with_dropped_terms_last(self, model):
        rows = model.summary().rows
        assert len(rows) == len(model.terms_)
        active = [row["status"] == "active" for row in rows]
        assert active == sorted(active, reverse=True)
        importances = [row["importance"] for row in rows]
        assert importances == sorted(importances, reverse=True)

    def test_the_band_is_two_standard_deviations(self, model, explanation):
        for row in model.summary().rows:
            expected = 2.0 * explanation[row["term"]].importance_std
            assert row["importance_band"] == pytest.approx(expected)

    def test_what_is_printed(self, model):
        text = str(model.summary())
        assert text == repr(model.summary())
        lines = text.splitlines()
        n_active = sum(term.active for term in model.terms_)
        n_terms = len(model.terms_)
        assert lines[0] == (
            f"LANAMRegressor fitted to 1500 rows of 4 columns: {n_active} of {n_terms} terms active"
        )
        assert "noise sd" in lines[1]
        assert "converged after" in lines[1]
        explained = model.history_[-1]["deviance_explained"]
        assert lines[2] == f"intercept {model.intercept_:.4g}, in-sample R2 {explained:.3f}"
        assert lines[3] == "importance: mean absolute contribution in the target's unit"
        assert lines[5].split()[:3] == ["term", "kind", "importance"]
        table = lines[6 : 6 + n_active]
        # Columns are aligned with their headers.
        at = lines[5].index("status")
        assert all(line[at:].startswith("active") for line in table)
        assert n_active < n_terms
        close = model.summary().facts["close_calls"]
        named = [f"close calls, decided by less than one nat: {', '.join(close)}"] if close else []
        low, high = model.summary().facts["interaction_thresholds"]
        below = [
            "",
            # With rows of their own the table would be too wide.
            "2 terms dropped: not supported by the data (log evidence gain at most 0.0): recipe, noise",
            "1 term dropped: constant column: same",
            "threshold of a column: a log evidence gain of 0, or of 3 if its effect is negligible",
            f"threshold of an interaction: a log evidence gain of {low:.1f} to {high:.1f}",
            *named,
            "",
        ]
        end = 6 + n_active + len(below)
        assert lines[6 + n_active : end] == below
        assert lines[end].startswith("6 pairwise interactions by screening score, ")
        assert len(lines) == end + 1 + 6

    def test_many_dropped_columns_have_one_line(self, data):
        X = data[0][["income"]].assign(**{f"same {k}": float(k) for k in range(60)})
        X = X.assign(**{f"noise {k}": np.random.default_rng(k).normal(size=1500) for k in range(8)})
        model = LANAMRegressor(interactions=0, random_state=0).fit(X, data[1])
        summary = model.summary()
        off = [
            row["term"] for row in summary.rows if row["status"].endswith("supported by the data")
        ]
        gain = max(row["evidence"] for row in summary.rows if row["term"] in off)
        assert len(off) > 3
        text = str(summary)
        below = text.partition("\n\nterm ")[2]
        below = " ".join(below.partition("\n\n")[2].split())
        assert below == (
            "60 terms dropped: constant column: "
            + ", ".join(f"same {k}" for k in range(23))
            + f" and 37 more {len(off)} terms dropped: not supported by the data (log evidence gain at "
            f"most {gain:.1f}): {', '.join(off)} threshold of a column: a log evidence gain of 0, or of 3 "
            "if its effect is negligible"
        )
        assert max(map(len, text.splitlines())) <= 100
        assert "same\n" not in text  # lines end between names
        assert "same 59" not in text
        # As data and as a frame, each has a row.
        assert len(summary.to_frame()) == len(summary.rows) == 69

    def test_a_few_dropped_columns_have_rows(self, data):
        X = data[0][["income"]].assign(**{f"same {k}": float(k) for k in range(3)})
        text = str(LANAMRegressor(interactions=0, random_state=0).fit(X, data[1]).summary())
        assert sum(line.startswith("same ") for line in text.splitlines()) == 3
        assert "terms dropped" not in text

    def test_the_fit_is_that_of_the_training_data(self, model, data):
        explained = model.summary().facts["deviance_explained"]
        assert explained == pytest.approx(r2_score(data[1], model.predict(data[0])), abs=1e-9)

    @pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"]])
    def test_classes_have_deviances(self, data, labels):
        X, ends = data[0][["income"]], np.quantile(data[1], [0.4, 0.9])
        y = np.array(labels)[np.digitize(data[1], ends) % len(labels)]
        model = LANAMClassifier(interactions=0, random_state=0).fit(X, y)
        # At the posterior mean of the link, which for more classes is the softmax of the logits.
        link = model.intercept_ + model.predict_terms(X).sum(axis=1)
        link = link if len(labels) > 2 else np.column_stack([np.zeros(len(link)), link])
        null = log_loss(y, np.tile(np.unique(y, return_counts=True)[1] / len(y), (len(y), 1)))
        expected = 1.0 - log_loss(y, softmax(link, axis=1)) / null
        summary = model.summary()
        assert summary.facts["deviance_explained"] == pytest.approx(expected, rel=1e-6)
        assert f"in-sample deviance explained {expected:.1%}" in str(summary)

    def test_numerals_in_quotes_are_pointed_out(self, data):
        X, y = data[0][["income"]], (data[1] > np.median(data[1])).astype(int)
        quoted, plain = (
            str(LANAMClassifier(interactions=0, random_state=0).fit(X, labels).summary())
            for labels in (y.astype(str), y)
        )
        remark = "2 classes: '0', '1' (strings in alphabetical order, not numbers)\n"
        assert quoted.replace(remark, "") == plain
        assert remark in quoted

    def test_long_names_are_cut(self, data):
        X = data[0][["income"]].rename(columns={"income": "i" * 90})
        text = str(LANAMRegressor(random_state=0).fit(X, data[1]).summary())
        assert "i" * 20 in text
        assert "..." in text
        assert max(len(line) for line in text.splitlines()) <= 100

    def test_notebooks_get_a_table(self, data):
        X = data[0][["income"]].rename(columns={"income": "<income>"})
        page = LANAMRegressor(random_state=0).fit(X, data[1]).summary()._repr_html_()
        assert page.count("<tr>") == 2
        assert "&lt;income&gt;" in page
        assert "<income>" not in page

    def test_a_classifier_has_no_noise(self, classifier):
        summary = classifier.summary()
        assert summary.facts["noise_std"] is None
        assert "noise" not in str(summary).splitlines()[1]

    def test_plain_data_and_frame(self, model):
        summary = model.summary()
        plain = json.loads(json.dumps(summary.to_dict()))
        assert plain["n_rows"] == 1500
        assert plain["terms"][0]["term"] == summary.rows[0]["term"]
        assert list(summary.to_frame()["term"]) == [row["term"] for row in summary.rows]

    @pytest.mark.parametrize("scale", [1e-20, 1e20])
    def test_numbers_of_any_size_fit_into_the_table(self, data, scale):
        model = LANAMRegressor(random_state=0).fit(data[0][["income"]], data[1] * scale)
        assert max(len(line) for line in str(model.summary()).splitlines()) < 100


def test_a_histogram_of_values_between_which_are_few_floats(tmp_path):
    X = 1e15 + np.round(8.0 * np.random.default_rng(0).normal(size=(80, 1))) / 8.0
    y = (X[:, 0] - 1e15) + 0.1 * np.random.default_rng(1).normal(size=80)
    model = LANAMRegressor(random_state=0).fit(X, y)
    (shape,) = model.explain_global()
    shares, edges = data_histogram(shape, 40, (X.min(), X.max()))
    assert (np.diff(edges) > 0.0).all()
    assert shares.sum() == pytest.approx(1.0)
    model.report(tmp_path / "report.html")
    plot_shapes(model.explain_global())
