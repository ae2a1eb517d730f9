"""Interactions in hard tables: few rows, few values, huge units, outliers, duplicates."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from lanam import LANAMClassifier, LANAMRegressor
from lanam.plot import plot_interaction_matrix


def active_pairs(model):
    return [term.name for term in model.terms_ if term.kind == "pair" and term.active]


def product(n_rows, n_columns=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, n_columns))
    return X, X[:, 0] * X[:, 1] + 0.05 * rng.standard_normal(n_rows)


class TestColumns:
    @pytest.mark.parametrize("interactions", ["auto", 1, 5])
    @pytest.mark.parametrize("estimator", [LANAMRegressor, LANAMClassifier])
    def test_one_has_no_interactions(self, estimator, interactions):
        X, y = product(60, 2)
        model = estimator(interactions=interactions, random_state=0).fit(X[:, :1], y > 0)
        scores = model.interaction_scores_
        assert len(scores) == 0
        assert list(scores) == []
        assert scores.active == ()
        assert scores.matrix().shape == (1, 1)
        assert str(scores) == "no interactions were scored"
        assert scores.to_dict() == {"score": "evidence", "names": ["x0"], "pairs": []}
        assert "pair" not in str(model.summary())
        assert model.explain_global().pairs == ()
        model.add_interactions(X[:, :1], y > 0, interactions)
        assert len(model.interaction_scores_) == 0
        with pytest.raises(ValueError, match="no interactions were scored"):
            plot_interaction_matrix(scores)

    def test_two_have_one_interaction(self):
        X, y = product(150)
        model = LANAMRegressor(random_state=0).fit(X, y)
        assert active_pairs(model) == ["x0 x x1"]
        assert len(model.interaction_scores_) == 1
        assert model.score(X, y) > 0.9

    def test_a_boolean_and_a_linear_column(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.integers(0, 2, 150), rng.normal(size=150)])
        y = np.where(X[:, 0] == 1, X[:, 1], -X[:, 1]) + 0.1 * rng.standard_normal(150)
        model = LANAMRegressor(random_state=0).fit(X, y)
        (surface,) = model.explain_global().pairs
        assert surface.active
        inside = surface.inside.any(axis=1)
        assert surface.values[inside].tolist() == [0.0, 1.0]
        # The contributions of both values of the boolean cancel, weighted by the data.
        share = surface.density.sum(axis=0)
        seen = share > 0.0
        mean = (surface.density * surface.mean).sum(axis=0)[seen]
        np.testing.assert_allclose(mean, 0.0, atol=1e-10)
        off, on = surface.mean[inside][:, seen]
        assert np.corrcoef(on - off, surface.second_values[seen])[0, 1] > 0.99
        # There is no data between the values and beyond them: intervals are wider.
        rows = np.array([[1.0, 0.5], [0.5, 0.5], [2.0, 0.5], [1e9, 0.5]])
        _, std = model.predict(rows, return_std=True)
        assert (std[2:] > 2.0 * std[0]).all()
        assert (std > model.noise_std_).all()

    @pytest.mark.parametrize("dtype", [float, bool, np.int8])
    def test_binary_columns(self, dtype):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (150, 3)).astype(dtype)
        different = X[:, 0] != X[:, 1]
        model = LANAMRegressor(random_state=0).fit(X, different + 0.1 * rng.normal(size=150))
        assert active_pairs(model) == ["x0 x x1"]
        np.testing.assert_allclose(model.predict(X), different, atol=0.1)
        classifier = LANAMClassifier(random_state=0).fit(X, different)
        assert classifier.score(X, different) == 1.0
        probability = classifier.predict_proba(X)
        assert ((probability > 0.0) & (probability < 1.0)).all()

    def test_a_constant_one(self):
        X, y = product(150, 3)
        X[:, 2] = -4.0
        model = LANAMRegressor(random_state=0).fit(X, y)
        assert active_pairs(model) == ["x0 x x1"]
        alone = LANAMRegressor(random_state=0).fit(X[:, :2], y)
        # A column without a term does not affect the fit.
        np.testing.assert_array_equal(model.predict(X), alone.predict(X[:, :2]))
        assert np.isfinite(model.predict(X + 1.0, return_std=True)).all()

    @pytest.mark.parametrize("scales", [(1e150, 1e150), (1e-150, 1e-150), (1e150, 1e-150)])
    def test_of_any_unit(self, scales):
        X, y = product(120)
        expected = LANAMRegressor(random_state=0).fit(X, y)
        scaled = X * np.array(scales)
        model = LANAMRegressor(random_state=0).fit(scaled, y)
        assert active_pairs(model) == ["x0 x x1"]
        # Not to rounding: a scale that is no power of two changes the columns' last digits.
        np.testing.assert_allclose(
            model.predict(scaled, return_std=True), expected.predict(X, return_std=True), atol=1e-3
        )
        (surface,) = model.explain_global().pairs
        (original,) = expected.explain_global().pairs
        np.testing.assert_allclose(surface.values, scales[0] * original.values, rtol=1e-6)
        np.testing.assert_allclose(
            surface.second_values, scales[1] * original.second_values, rtol=1e-6
        )
        np.testing.assert_array_equal(surface.inside, original.inside)

    def test_per_value_effects_beside_an_interaction(self):
        rng = np.random.default_rng(0)
        recipe = rng.integers(0, 60, 900)
        X = pd.DataFrame({"recipe": recipe.astype(float), "a": rng.uniform(-1, 1, 900)})
        X["b"] = rng.uniform(-1, 1, 900)
        y = rng.normal(size=60)[recipe] + 2.0 * X["a"] * X["b"] + 0.1 * rng.standard_normal(900)
        model = LANAMRegressor(random_state=0).fit(X, y)
        assert "a x b" in active_pairs(model)
        kinds = [term.kind for term in model.terms_]
        assert kinds == sorted(kinds, key=("smooth", "level", "pair").index)
        assert any(term.kind == "level" and term.active for term in model.terms_)
        assert model.score(X, y) > 0.95
        # Unseen values, between the others and beyond them.
        for value in (10.5, -7.0, 1e12):
            mean, std = model.predict(X[:5].assign(recipe=value), return_std=True)
            assert np.isfinite(mean).all()
            assert (std > model.noise_std_).all()


class TestRows:
    @pytest.mark.parametrize("n_rows", [2, 3, 4, 5, 7, 10])
    def test_few(self, n_rows):
        X, y = product(n_rows, 3, seed=n_rows)
        labels = np.arange(n_rows) % 2
        for interactions in ("auto", 3, [(0, 1)]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = LANAMRegressor(interactions=interactions, random_state=0).fit(X, y)
                classifier = LANAMClassifier(interactions=interactions, random_state=0).fit(
                    X, labels
                )
            mean, std = model.predict(3.0 * X, return_std=True)
            assert np.isfinite(mean).all()
            assert (std > 0.0).all()
            probability = classifier.predict_proba(3.0 * X)
            assert ((probability > 0.0) & (probability < 1.0)).all()
            assert len(model.interaction_scores_) == len(classifier.interaction_scores_) == 3

    def test_few_rows_give_no_interaction(self):
        for seed in range(5):
            X, _ = product(10, 3, seed=seed)
            noise = np.random.default_rng(100 + seed).standard_normal(10)
            model = LANAMRegressor(random_state=0).fit(X, noise)
            assert active_pairs(model) == []


def a_column(rng, n_rows):
    """One of many distributions."""
    ordinary = rng.standard_normal(n_rows)
    choices = [
        lambda: ordinary,
        lambda: rng.uniform(size=n_rows),
        lambda: rng.standard_cauchy(n_rows),
        lambda: np.exp(3.0 * ordinary),
        lambda: rng.integers(0, 2, n_rows),
        lambda: rng.integers(0, 5, n_rows),
        lambda: np.round(ordinary, 1),
        lambda: np.where(rng.uniform(size=n_rows) < 0.1, 1e9, ordinary),
        lambda: np.where(np.arange(n_rows) == 0, 1.0, 0.0),
        lambda: np.full(n_rows, 3.0),
        lambda: 1e150 * ordinary,
        lambda: 1e-150 * ordinary,
    ]
    return np.asarray(choices[rng.integers(len(choices))](), dtype=float)


def a_table(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_columns = int(rng.integers(5, 81)), int(rng.integers(1, 7))
    X = np.column_stack([a_column(rng, n_rows) for _ in range(n_columns)])
    if n_columns > 1 and rng.uniform() < 0.3:
        X[:, -1] = X[:, 0]
    small = np.tanh(3.0 * X / (np.abs(X).max(axis=0) + 1e-300))
    y = 3.0 * small[:, 0] * small[:, -1] + small.sum(axis=1) + 0.3 * rng.standard_normal(n_rows)
    if rng.uniform() < 0.2:
        y[0] = 1e6
    named = [(0, n_columns - 1)] if n_columns > 1 else 1
    interactions = ("auto", 3, named)[rng.integers(3)]
    new = np.vstack([X, 3.0 * X, np.zeros((1, n_columns)), np.full((1, n_columns), -1e300)])
    return X, y, interactions, new


class TestRandomTables:
    # Fits to few rows of noise need not converge, which is a warning.
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("seed", range(24))
    def test_fits_predicts_and_explains(self, seed):
        X, y, interactions, new = a_table(seed)
        labels = np.where(y > np.median(y), "high", "low")
        for estimator, target in ((LANAMRegressor, y), (LANAMClassifier, labels)):
            model = estimator(interactions=interactions, random_state=seed).fit(X, target)
            means, stds = model.predict_terms(new, return_std=True)
            assert np.isfinite(means).all()
            assert np.isfinite(stds).all()
            if estimator is LANAMRegressor:
                mean, std = model.predict(new, return_std=True)
                assert np.isfinite(mean).all()
                assert (std > 0.0).all()
                np.testing.assert_allclose(
                    mean, model.intercept_ + means.sum(axis=1), rtol=1e-9, atol=1e-9 * std.max()
                )
            else:
                probability = model.predict_proba(new)
                np.testing.assert_allclose(probability.sum(axis=1), 1.0)
                assert ((probability > 0.0) & (probability < 1.0)).all()
            n_columns = X.shape[1]
            assert len(model.interaction_scores_) == n_columns * (n_columns - 1) // 2
            for surface in model.explain_global().pairs:
                assert surface.density.sum() == pytest.approx(1.0)
                largest = np.abs(surface.mean).max(initial=1.0)
                for axis in (0, 1):
                    mean = (surface.density * surface.mean).sum(axis=axis)
                    np.testing.assert_allclose(mean, 0.0, atol=1e-8 * largest)
            assert str(model.summary()).startswith(f"{estimator.__name__} fitted to {len(X)} rows")

    def test_the_tables_cover_the_hard_cases(self):
        tables = [a_table(seed) for seed in range(24)]
        assert {X.shape[1] for X, *_ in tables} == set(range(1, 7))
        assert sum((X[:, 0] == X[:, -1]).all() and X.shape[1] > 1 for X, *_ in tables) > 5
        assert sum(np.ptp(X, axis=0).min() == 0.0 for X, *_ in tables) > 5
        assert sum(np.abs(X).max() > 1e100 for X, *_ in tables) > 3
        assert {type(interactions) for _, _, interactions, _ in tables} == {str, int, list}


def a_frame(seed):
    """A table of every kind of column with missing values, and new rows with unseen categories."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(12, 90))
    X = pd.DataFrame(
        {
            "number": a_column(rng, n_rows),
            "few": rng.choice(["u", "v", ""], n_rows),
            "many": rng.choice([f"level {k}" for k in range(40)], n_rows),
            "rare": np.where(np.arange(n_rows) == 0, "once", "often"),
            "truth": rng.uniform(size=n_rows) < 0.3,
            "code": rng.integers(0, 5, n_rows),
            "own": [f"row {k}" for k in range(n_rows)],
        }
    )
    missing_fractions = rng.choice([0.0, 0.2, 0.9, 1.0], X.shape[1], p=[0.4, 0.3, 0.2, 0.1])
    X = X.astype({"truth": "boolean", "code": "Int64"}).mask(
        rng.uniform(size=X.shape) < missing_fractions
    )
    X = X[rng.permutation(X.columns)[: int(rng.integers(1, X.shape[1] + 1))]]
    first = pd.factorize(X.iloc[:, 0])[0]
    y = np.tanh(first - first.mean()) * rng.choice([0.0, 1.0]) + 0.3 * rng.standard_normal(n_rows)
    strings = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    new = pd.concat([X, X.iloc[:3].assign(**dict.fromkeys(strings, "new"))])
    return X, y, new.reset_index(drop=True).mask(rng.uniform(size=new.shape) < 0.1)


# Fits to few rows of noise need not converge, and unseen values are warnings.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:column:UserWarning")
class TestRandomFrames:
    @pytest.mark.parametrize("seed", range(20))
    def test_fits_predicts_and_explains(self, seed):
        X, y, new = a_frame(seed)
        declared = [name for name in ("code", "own") if name in X] or "auto"
        labels = np.where(y > np.median(y), "high", "low")
        for estimator, target in ((LANAMRegressor, y), (LANAMClassifier, labels)):
            model = estimator(categorical_features=declared, random_state=seed).fit(X, target)
            means, stds = model.predict_terms(new, return_std=True)
            assert np.isfinite(means).all()
            assert np.isfinite(stds).all()
            if estimator is LANAMRegressor:
                mean, std = model.predict(new, return_std=True)
                np.testing.assert_allclose(mean, model.intercept_ + means.sum(axis=1), atol=1e-9)
                assert (std > 0.0).all()
            else:
                probability = model.predict_proba(new)
                assert ((probability > 0.0) & (probability < 1.0)).all()
            for term in model.explain_global():
                assert np.isfinite(term.mean).all()
                assert (term.std >= 0.0).all()
            assert str(model.summary()).startswith(f"{estimator.__name__} fitted to {len(X)} rows")

    @pytest.mark.parametrize("seed", range(3))
    def test_order_and_names_do_not_matter(self, seed):
        X, y, new = a_frame(seed)
        model = LANAMRegressor(random_state=0).fit(X, y)
        expected = model.predict(new)
        np.testing.assert_array_equal(model.predict(new[X.columns[::-1]]), expected)
        # Reversed, so that codes are reversed as well.
        renamed = {
            name: {
                level: f"z{1000 - code}"
                for code, level in enumerate(sorted({*X[name].dropna(), *new[name].dropna()}))
            }
            for name, dtype in new.dtypes.items()
            if dtype in ("object", "str")  # select_dtypes has no "str" before pandas 3
        }
        again = LANAMRegressor(random_state=0).fit(rename(X, renamed), y)
        # Not to rounding: sums over categories have another order, and the fit stops elsewhere.
        np.testing.assert_allclose(again.predict(rename(new, renamed)), expected, atol=1e-3)

    def test_the_frames_cover_the_hard_cases(self):
        frames = [a_frame(seed)[0] for seed in range(20)]
        assert {X.shape[1] for X in frames} == set(range(1, 8))
        assert sum(bool(X.isna().all().any()) for X in frames) > 5
        assert sum(not X.isna().any().any() for X in frames) >= 2
        assert sum("code" in X for X in frames) > 10


def rename(X, renamed):
    return X.assign(**{name: X[name].map(levels) for name, levels in renamed.items()})
