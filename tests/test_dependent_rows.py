"""Rows of one group are not independent: calibration, coverage reports and the noise's cross-validation."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, coverage_report
from lanam.conformal import calibrated_by
from lanam.core.noise import residuals
from lanam.errors import InputError
from lanam.metrics import regression_performance


def clusters(n_groups, n_each, seed=0, between=1.0, within=0.3):
    """A line with errors that rows of a group share."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), n_each)
    x = rng.uniform(-1.0, 1.0, len(group))
    shared = between * rng.normal(size=n_groups)
    y = x + shared[group] + within * rng.normal(size=len(group))
    return pd.DataFrame({"x": x}), y, np.array([f"g{k}" for k in group])


@pytest.fixture(scope="module")
def model():
    X, y, _ = clusters(400, 1)
    return LANAMRegressor(noise="constant").fit(X, y)


class TestCalibration:
    def test_each_group_counts_once(self):
        scores = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
        weight = calibrated_by(scores, np.ones(5), np.array([0, 0, 0, 1, 2])).weight
        np.testing.assert_allclose(weight, [1 / 3, 1 / 3, 1 / 3, 1.0, 1.0])

    def test_a_row_of_a_new_group_is_covered(self, model):
        """With few large groups, rows as such promise too much; whole groups do not."""
        inside = {False: [], True: []}
        X_new, y_new, _ = clusters(2000, 1, seed=1000)
        for seed in range(40):
            X, y, groups = clusters(12, 30, seed=seed + 1)
            for grouped, found in inside.items():
                model.calibrate(X, y, groups=groups if grouped else None)
                low, high = model.predict_interval(X_new, coverage=0.8).T
                found.append(np.mean((low <= y_new) & (y_new <= high)))
        assert np.mean(inside[True]) > 0.79
        assert np.mean(inside[True]) > np.mean(inside[False])

    def test_as_many_groups_are_needed_as_rows(self, model):
        X, y, groups = clusters(10, 50)
        model.calibrate(X, y, groups=groups)
        with pytest.raises(InputError, match="needs 19 held-out rows"):
            model.predict_interval(X, coverage=0.95)

    def test_classes(self):
        X, y, groups = clusters(50, 6)
        model = LANAMClassifier().fit(X, y > 0.0)
        model.calibrate(X, y > 0.0, groups=groups)
        assert model.calibration_.weight.sum() == pytest.approx(50.0)
        assert coverage_report(model, X, y > 0.0, groups=groups).n_groups == 50


class TestReport:
    def test_independent_rows_of_pairs_count_nearly_as_themselves(self, model):
        X, y, _ = clusters(600, 1, seed=5)
        groups = np.repeat(np.arange(300), 2)
        report = coverage_report(model, X, y, groups=groups)
        assert 450.0 < report.n_effective <= 600.0

    def test_ranges_hold_for_groups(self, model):
        """Of calibrated models, with shared errors: the range without groups is too narrow."""
        outside = {False: [], True: []}
        for seed in range(25):
            X, y, groups = clusters(40, 6, seed=seed + 1)
            for grouped, found in outside.items():
                report = coverage_report(
                    model, X, y, levels=(0.5, 0.8), groups=groups if grouped else None
                )
                row = report.rows[1]
                found.append(not row["lowest"] <= row["observed"] <= row["highest"])
        assert np.mean(outside[True]) < 0.15
        assert np.mean(outside[False]) > 0.2

    def test_it_says_so(self, model):
        X, y, groups = clusters(40, 10)
        text = str(coverage_report(model, X, y, groups=groups))
        assert "evaluated on 400 rows of 40 groups, which count as " in text
        without = coverage_report(model, X, y)
        assert (without.n_groups, without.n_effective) == (None, None)
        # Observed coverage and scores are the same.
        grouped = coverage_report(model, X, y, groups=groups)
        assert grouped.rows[0]["observed"] == pytest.approx(without.rows[0]["observed"])
        assert grouped.scores["crps"] == pytest.approx(without.scores["crps"])

    def test_intervals_are_those_of_groups(self):
        """For equal groups of copies, exactly those of one row each."""
        rng = np.random.default_rng(0)
        y, mean = rng.normal(size=(2, 30))
        one = regression_performance(y, mean)
        copies = regression_performance(
            np.repeat(y, 7), np.repeat(mean, 7), groups=np.repeat(np.arange(30), 7)
        )
        for name in ("mae", "rmse"):
            assert copies[name].lower == pytest.approx(one[name].lower)
            assert copies[name].upper == pytest.approx(one[name].upper)

    def test_bad_groups(self, model):
        X, y, groups = clusters(10, 3)
        with pytest.raises(InputError, match="groups has the shape"):
            coverage_report(model, X, y, groups=groups[1:])


class TestNoise:
    def test_whole_groups_are_held_out(self):
        group = np.array([3.0, 1.0, 3.0, 2.0, 1.0, 9.0])
        for held_out in residuals._folds(6, group):
            assert not set(group[held_out]) & set(group[~held_out])
        assert list(residuals._folds(4, np.ones(4))) == []
        together = np.sum(list(residuals._folds(6, group)), axis=0)
        np.testing.assert_array_equal(together, 1)

    def test_the_noise_of_groups_is_not_that_of_columns(self):
        """Each site has its noise, and its place: rows of the same sites support a curve in the place."""
        rng = np.random.default_rng(3)
        site = np.repeat(np.arange(12), 50)
        place = rng.uniform(size=12)[site]
        y = np.exp(rng.normal(0.0, 1.0, 12))[site] * rng.normal(size=len(site))
        X = pd.DataFrame({"place": place})
        by_rows = LANAMRegressor().fit(X, y)
        by_groups = LANAMRegressor().fit(X, y, groups=site)
        assert any(term.active for term in by_rows.noise_terms_)
        assert not any(term.active for term in by_groups.noise_terms_)

    def test_names_files_and_arrays_agree(self, tmp_path):
        rng = np.random.default_rng(0)
        X, y, groups = clusters(60, 10, between=0.0)
        y = y + np.exp(X["x"]) * rng.normal(size=len(y))
        features = X.assign(site=groups)
        table = features.assign(y=y)
        table.to_parquet(tmp_path / "t.parquet")
        options = {"interactions": 0}
        by_array = LANAMRegressor(**options).fit(features, y, groups=groups)
        by_name = LANAMRegressor(**options).fit(table, "y", groups="site")
        out = LANAMRegressor(**options).fit(str(tmp_path / "t.parquet"), "y", groups="site")
        assert list(by_name.feature_names_in_) == ["x", "site"]  # a feature as well
        assert any(term.active for term in by_name.noise_terms_)
        for other in (by_name, out):
            np.testing.assert_allclose(
                other.predict_noise(features), by_array.predict_noise(features), rtol=1e-5
            )

    def test_errors(self, tmp_path):
        X, y, groups = clusters(10, 3)
        with pytest.raises(InputError, match="groups has 29 values, and there are 30 rows"):
            LANAMRegressor().fit(X, y, groups=groups[1:])
        with pytest.raises(InputError, match="groups has a missing value in row 3"):
            LANAMRegressor().fit(X, y, groups=[None if k == 2 else g for k, g in enumerate(groups)])
        with pytest.raises(InputError, match="groups names the column 'sites'"):
            LANAMRegressor().fit(X.assign(site=groups), y, groups="sites")
