"""Cautions: fits that their rows hardly determine say so, others do not."""

import warnings

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, load
from lanam.errors import FitWarning


def cautions_of(model, X, y, **arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **arguments)
    return [str(one.message) for one in caught if isinstance(one.message, FitWarning)]


def line_with_an_outlier(seed=0):
    """A line, and one row far out that contradicts it."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, 60)
    y = x + 0.2 * rng.standard_normal(60)
    return pd.DataFrame({"x": np.append(x, 12.0)}), np.append(y, -12.0)


class TestInfluence:
    def test_a_row_that_moves_the_fit(self):
        X, y = line_with_an_outlier()
        model = LANAMRegressor()
        (message,) = cautions_of(model, X, y)
        assert "without row 61 (counting from 1)" in message
        assert "Cook's distance" in message
        assert "Verify that row" in message
        last = model.history_[-1]
        assert last["influential_row"] == 60
        assert f"{last['cooks_distance']:.2g}, more than 1" in message

    def test_rows_of_weight_zero_are_not_counted(self):
        """The rows that are left have other numbers, so none is named."""
        X, y = line_with_an_outlier()
        (message,) = cautions_of(LANAMRegressor(), X, y, sample_weight=np.arange(61) > 0)
        assert "without a single row" in message

    def test_a_table_in_chunks_has_no_numbers(self, tmp_path):
        X, y = line_with_an_outlier()
        path = tmp_path / "rows.csv"
        X.assign(y=y).to_csv(path, index=False)
        with pytest.warns(FitWarning, match="without a single row"):
            LANAMRegressor().fit(str(path), "y")


class TestSeparation:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_separated_classes(self, n_classes):
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"outcome": rng.uniform(0, n_classes, 90), "other": rng.normal(size=90)})
        y = np.floor(X["outcome"])
        # The classes of more than two overlap in each other's scores, unless these are sharp.
        X["outcome"] = y + 0.01 * rng.normal(size=90)
        (message,) = cautions_of(LANAMClassifier(), X, y)
        assert "separates the classes of all rows" in message
        assert "'outcome'" in message

    def test_overlapping_classes(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 2))
        y = rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))
        assert cautions_of(LANAMClassifier(), X, y) == []


def test_many_parameters_for_few_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"place": [f"p{k}" for k in range(30)] * 2})
    y = np.tile(rng.normal(size=30), 2) + 0.05 * rng.normal(size=60)
    messages = cautions_of(LANAMRegressor(), X, y)
    assert any("effective parameters per row" in one for one in messages)


def test_plain_fits_have_none():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(400)
    model = LANAMRegressor()
    assert cautions_of(model, X, y) == []
    assert model.summary().facts["cautions"] == []


def test_the_summary_repeats_them(tmp_path):
    """Warnings are gone after the fit; a saved model still has them."""
    X, y = line_with_an_outlier()
    model = LANAMRegressor()
    (message,) = cautions_of(model, X, y)
    model.save(tmp_path / "a.lanam")
    for each in (model, load(tmp_path / "a.lanam")):
        summary = each.summary()
        assert summary.facts["cautions"] == [message]
        assert message in " ".join(str(summary).split())
        assert max(map(len, str(summary).splitlines())) <= 100


def test_close_calls():
    """A weak effect is close to its threshold for some number of rows: it is named then, either way."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (300, 2)), columns=["strong", "weak"])
    noise = 0.5 * rng.standard_normal(300)
    calls = []
    for size in np.linspace(0.0, 0.4, 9):
        y = X["strong"] + size * X["weak"] + noise
        model = LANAMRegressor(interactions=0, noise="constant").fit(X, y)
        gain = next(term.evidence for term in model.terms_ if term.name == "weak")
        named = "weak" in model.summary().facts["close_calls"]
        calls.append((gain, named))
    assert any(named for _, named in calls)
    assert all(named is False for gain, named in calls if gain > 5.0)
    assert calls[0] == (pytest.approx(calls[0][0]), False)


def missing_table(n=300, cause=1.0, seed=0):
    """A column that is missing where the target is large, as far as ``cause`` says."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    x = np.where(cause * y + 0.5 * rng.standard_normal(n) > 0.4, np.nan, rng.standard_normal(n))
    return pd.DataFrame({"asked later": x, "other": y + rng.standard_normal(n)}), y


class TestMissingAlone:
    def check(self, message, model, X, y):
        r = abs(np.corrcoef(X["asked later"].isna(), y)[0, 1])
        assert f"'asked later' ({r:.2f})" in message
        assert "leakage: leave the column out" in message
        assert "being missing alone predicts the target" in " ".join(str(model.summary()).split())

    def test_numbers(self):
        X, y = missing_table()
        model = LANAMRegressor(interactions=0, noise="constant")
        (message,) = cautions_of(model, X, y)
        self.check(message, model, X, y)

    def test_classes_and_a_file(self, tmp_path):
        X, y = missing_table()
        model = LANAMClassifier(interactions=0)
        (message,) = cautions_of(model, X, y > 0)
        self.check(message, model, X, y > 0)
        model.save(tmp_path / "model.lanam")
        assert str(load(tmp_path / "model.lanam").summary()) == str(model.summary())

    def test_several_classes(self):
        """In whichever order: the middle one is missing, so that no correlation shows it."""
        X, y = missing_table()
        labels = np.digitize(y, [-0.6, 0.6])
        X["asked later"] = X["asked later"].fillna(0.0).mask(labels == 1)
        assert abs(np.corrcoef(X["asked later"].isna(), labels)[0, 1]) < 0.3
        messages = cautions_of(LANAMClassifier(interactions=0), X, labels)
        assert any("'asked later' (1.00)" in message for message in messages)

    def test_missing_at_random_is_none(self):
        X, y = missing_table(cause=0.0)
        assert not cautions_of(LANAMRegressor(interactions=0, noise="constant"), X, y)
