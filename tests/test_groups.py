"""Curves and lines by group, around a common one, and varying coefficients."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival, load
from lanam.core.fit import joint
from lanam.core.model.scoring import link_moments
from lanam.errors import InputError

SLOPES = {"random_slopes": [("time", "patient")]}


class Hospitals:
    """Lines, or curves, of groups around a common curve."""

    def __init__(self, n_groups=40, n_each=20, seed=0, curves=False, noise=0.4):
        rng = np.random.default_rng(seed)
        self.n_groups, self._curves = n_groups, curves
        self._effect = 0.5 * rng.normal(size=n_groups)
        self._slope = 0.8 * rng.normal(size=n_groups)
        self.X = self.rows(
            np.repeat(np.arange(n_groups), n_each), rng.uniform(-1, 1, n_groups * n_each)
        )
        self.y = self.truth(self.X) + noise * rng.normal(size=len(self.X))

    @staticmethod
    def rows(group, time):
        return pd.DataFrame({"time": time, "patient": [f"p{k}" for k in group]})

    def truth(self, X):
        group, time = X["patient"].str[1:].astype(int).to_numpy(), X["time"].to_numpy()
        along = np.sin(2.5 * time) if self._curves else time
        return np.cos(2.0 * time) + self._effect[group] + self._slope[group] * along

    def everywhere(self):
        """All groups at evenly spaced times."""
        times = np.linspace(-0.9, 0.9, 9)
        group = np.repeat(np.arange(self.n_groups), len(times))
        return self.rows(group, np.tile(times, self.n_groups))


def covered(model, data, X=None):
    X = data.everywhere() if X is None else X
    mean, variance = link_moments(model._model, model._columns(X))
    return np.mean(np.abs(mean - data.truth(X)) < 1.96 * np.sqrt(variance))


@pytest.fixture(scope="module")
def lines():
    data = Hospitals()
    return data, LANAMRegressor(interactions=0, **SLOPES).fit(data.X, data.y)


@pytest.fixture(scope="module")
def curves():
    data = Hospitals(curves=True)
    model = LANAMRegressor(interactions=0, by={"time": "patient"})
    return data, model.fit(data.X, data.y)


class TestLines:
    def test_their_variance_and_bands(self, lines):
        data, model = lines
        std = model.group_std_["time x patient"]
        assert std == pytest.approx(np.std(data._slope), rel=0.1)
        assert 0.9 < covered(model, data) < 0.99

    def test_differences_between_groups_are_straight(self, lines):
        data, model = lines
        times = np.linspace(-1.2, 1.2, 25)
        one, other = (model.predict(data.rows(np.full(25, k), times)) for k in (3, 4))
        np.testing.assert_allclose(np.diff(one - other), np.diff(one - other)[0], rtol=1e-3)

    def test_they_are_ordinary_mixed_models(self, lines):
        """Means are those of a dense Gaussian regression with the same variances."""
        data, model = lines
        X, y = data.X, data.y
        group, time = X["patient"].to_numpy(), X["time"].to_numpy()
        same = group[:, None] == group
        slopes = model.group_std_["time x patient"] ** 2 * np.multiply.outer(time, time)
        intercepts = model._model.terms[1].table
        common = 100.0 * np.exp(-0.5 * np.square(time[:, None] - time) / 0.8**2)
        signal = same * (slopes + np.square(intercepts[0]).sum()) + common + 100.0
        noise = model.noise_std_**2
        dense = signal @ np.linalg.solve(signal + noise * np.eye(len(y)), y)
        assert np.corrcoef(dense, model.predict(X))[0, 1] > 0.999
        assert np.sqrt(np.mean(np.square(dense - model.predict(X)))) < 0.05

    def test_they_shrink_less_than_dropping_more_than_none(self, lines):
        data, model = lines
        X = data.everywhere()
        none = LANAMRegressor(interactions=0).fit(data.X, data.y)
        errors = {
            name: np.sqrt(np.mean(np.square(each.predict(X) - data.truth(X))))
            for name, each in (("lines", model), ("none", none))
        }
        assert errors["lines"] < 0.5 * errors["none"]
        assert model.log_evidence_ > none.log_evidence_ + 50.0

    def test_an_unseen_group_has_the_common_line_and_a_wider_band(self, lines):
        data, model = lines
        X = data.everywhere()[:9]
        with pytest.warns(UserWarning, match="unseen"):
            mean, variance = link_moments(model._model, model._columns(X.assign(patient="new")))
        shape = model.explain_global()["time"]
        common = np.interp(X["time"], shape.values, shape.mean)
        # To the error of the mean of forty slopes.
        error = model.group_std_["time x patient"] / np.sqrt(40.0)
        slope = (mean - mean[4] - common + common[4])[[0, -1]] / 0.9
        assert np.all(np.abs(slope) < 3.0 * error)
        assert np.all(variance > link_moments(model._model, model._columns(X))[1])
        # At the ends by the variance of the slopes.
        added = model.group_std_["time x patient"] ** 2 * 0.81
        assert variance[0] - variance[4] == pytest.approx(added, rel=0.2)

    def test_without_differences_they_are_dropped(self):
        data = Hospitals(seed=1)
        y = np.cos(2.0 * data.X["time"]) + 0.4 * np.random.default_rng(1).normal(size=len(data.X))
        model = LANAMRegressor(**SLOPES).fit(data.X, y)
        assert not any(term.joint for term in model.terms_)
        assert model.group_std_ == {}
        (pair,) = model.interaction_scores_
        assert pair["status"] == "dropped: not supported by the data"


class TestCurves:
    def test_bands(self, curves):
        data, model = curves
        assert 0.88 < covered(model, data) < 0.99

    def test_they_are_pure(self, curves):
        """Without the common curve, and without the groups' effects."""
        _, model = curves
        term = next(term for term in model._model.terms if term.joint)
        shape = tuple(map(len, term.entries.axes))
        mass = term.data_mass.reshape(shape)
        weighted = term.mean.reshape(shape) * mass
        np.testing.assert_allclose(weighted.sum(axis=0), 0.0, atol=1e-8)
        np.testing.assert_allclose(weighted.sum(axis=1), 0.0, atol=1e-8)

    def test_precisions_are_shared(self, curves):
        _, model = curves
        term = next(term for term in model._model.terms if term.joint)
        assert len(term.precision) == 2  # of two scales, for forty groups

    def test_a_cyclic_curve(self):
        rng = np.random.default_rng(0)
        hour, site = rng.uniform(0.0, 24.0, 600), rng.integers(0, 10, 600)
        shift = rng.uniform(-1.5, 1.5, 10)
        y = np.sin(2.0 * np.pi * hour / 24.0 + shift[site]) + 0.2 * rng.normal(size=600)
        X = pd.DataFrame({"hour": hour, "site": [f"site {k}" for k in site]})
        model = LANAMRegressor(interactions=0, cyclic={"hour": 24}, by={"hour": "site"}).fit(X, y)
        assert any(term.joint and term.active for term in model.terms_)
        ends = [model.predict(X[:50].assign(hour=h)) for h in (0.0, 24.0, -48.0)]
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-8)
        np.testing.assert_allclose(ends[0], ends[2], atol=1e-8)

    def test_a_numeric_group_is_a_varying_coefficient(self):
        rng = np.random.default_rng(0)
        x, z = rng.uniform(-1.0, 1.0, (2, 800))
        y = np.sin(3.0 * x) * z + 0.1 * rng.normal(size=800)
        X = pd.DataFrame({"x": x, "z": z})
        model = LANAMRegressor(interactions=0, by={"x": "z"}).fit(X, y)
        at = np.linspace(-0.9, 0.9, 30)
        values = [model.predict(pd.DataFrame({"x": at, "z": level})) for level in (-1.0, 0.0, 1.0)]
        np.testing.assert_allclose(values[2] - values[1], np.sin(3.0 * at), atol=0.12)
        # In z the difference between two x is a line.
        z = np.linspace(-1.0, 1.0, 30)
        one, other = (model.predict(pd.DataFrame({"x": at, "z": z})) for at in (0.37, -0.5))
        np.testing.assert_allclose(np.diff(one - other), np.diff(one - other)[0], rtol=1e-3)


class TestManyGroups:
    def test_the_rarest_share_the_common_line_with_the_band_of_an_unseen_group(self, monkeypatch):
        monkeypatch.setattr(joint, "_MOST_LINES", 30)
        data = Hospitals(n_groups=60)
        with pytest.warns(UserWarning, match="of the 60 groups of column 'patient' the 30 largest"):
            model = LANAMRegressor(interactions=0, **SLOPES).fit(data.X, data.y)
        term = next(term for term in model._model.terms if term.joint)
        own = term.entries.axes[1].entry_of < 30
        X = data.everywhere()
        group = X["patient"].str[1:].astype(int).to_numpy()
        names = sorted({f"p{k}" for k in range(60)})
        pooled = ~own[[names.index(f"p{k}") for k in group]]
        assert covered(model, data, X[pooled]) > 0.9
        assert covered(model, data, X[~pooled]) > 0.88
        variance = link_moments(model._model, model._columns(X))[1]
        assert variance[pooled].mean() > 3.0 * variance[~pooled].mean()


class TestEverywhere:
    def test_all_families(self):
        data = Hospitals(n_groups=12, n_each=60)
        more = {"interactions": 0, **SLOPES}
        two = LANAMClassifier(**more).fit(data.X, data.y > 0.5)
        three = LANAMClassifier(**more).fit(data.X, np.digitize(data.y, [0.2, 1.0]))
        counts = LANAMRegressor(likelihood="poisson", **more)
        rng = np.random.default_rng(0)
        counts.fit(data.X, rng.poisson(np.exp(data.truth(data.X))))
        survival = LANAMSurvival(n_intervals=4, **more)
        survival.fit(
            data.X,
            event=np.ones(len(data.X), int),
            time=rng.exponential(np.exp(-data.truth(data.X))),
        )
        for model in (two, three, counts, survival):
            assert any(term.joint and term.active for term in model.terms_)
            assert model.group_std_["time x patient"] > 0.3

    def test_files_saving_and_continuing(self, lines, tmp_path):
        data, model = lines
        data.X.assign(y=data.y).to_parquet(tmp_path / "table.parquet")
        out = LANAMRegressor(**model.get_params()).fit(str(tmp_path / "table.parquet"), "y")
        np.testing.assert_allclose(out.predict(data.X), model.predict(data.X), atol=1e-6)
        model.save(tmp_path / "m.lanam")
        loaded = load(tmp_path / "m.lanam")
        np.testing.assert_array_equal(loaded.predict(data.X), model.predict(data.X))
        assert loaded.group_std_ == model.group_std_
        again = loaded.add_interactions(data.X, data.y)
        np.testing.assert_allclose(again.predict(data.X), model.predict(data.X), atol=1e-4)

    def test_with_the_search_for_interactions(self):
        data = Hospitals(n_groups=12, n_each=50)
        rng = np.random.default_rng(0)
        X = data.X.assign(a=rng.normal(size=len(data.X)), b=rng.normal(size=len(data.X)))
        model = LANAMRegressor(**SLOPES).fit(X, data.y + X["a"] * X["b"])
        active = {row["pair"] for row in model.interaction_scores_.active}
        assert active == {"time x patient", "a x b"}

    def test_the_plot_has_a_curve_per_group(self, lines):
        plot = pytest.importorskip("lanam.plot")
        _, model = lines
        explanation = model.explain_global()
        (ax,) = plot.plot_interaction(explanation, ("time", "patient"), main_effects=True)
        assert len(ax.get_legend().get_texts()) == 6


class TestErrors:
    @pytest.mark.parametrize(
        ("known", "message"),
        [
            (
                {"by": {"time": "patients"}},
                "by names the column 'patients', which X does not have; did",
            ),
            ({"by": {"time": "time"}}, "by has the column 'time' by itself: name another column"),
            (
                {"by": {"patient": "time"}},
                "by names the column 'patient', which is categorical, and a curve",
            ),
            (
                {"by": {"time": "one"}},
                "by has the column 'one', which is constant: no groups differ",
            ),
            (
                {"by": {"time": "ones"}},
                "by has the column 'ones', which is constant: no groups differ",
            ),
            ({"by": "time"}, "by='time' is not known: use a value per column, for example"),
            (
                {"random_slopes": [("time", "ones")]},
                "random_slopes names the column 'ones', which is numeric",
            ),
            (
                {"random_slopes": ["time"]},
                "random_slopes must be a list of pairs of columns, and 'time' is",
            ),
            ({**SLOPES, "by": {"time": "patient"}}, "random_slopes and by both have the pair"),
            (
                {**SLOPES, "exclude_pairs": [("patient", "time")]},
                "random_slopes and exclude_pairs both",
            ),
            ({**SLOPES, "hidden_sizes": (8,)}, "random_slopes is for infinitely wide networks"),
        ],
    )
    def test_name_the_columns_and_the_remedy(self, lines, known, message):
        data, _ = lines
        with pytest.raises(InputError) as caught:
            LANAMRegressor(**known).fit(data.X.assign(one="a", ones=1.0), data.y)
        assert message in str(caught.value)
