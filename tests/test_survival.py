"""Survival: hazards, curves and their bands, truncation, competing risks, tables in chunks, messages."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import lanam
from lanam import LANAMSurvival
from lanam.metrics import harrell_c
from lanam.plot import plot_shapes, plot_survival
from lanam.storage import ModelFileError, container, from_bytes, of_estimator, to_bytes


def survival(**options):
    return LANAMSurvival(random_state=0, **options)


def make(n_rows, seed=0):
    """Times with the hazard ``1.5 sqrt(t) exp(a - b^2)``, censored; and true survival."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n_rows, 2)), columns=["a", "b"])
    X["group"] = rng.choice(["x", "y"], n_rows)
    scale = np.exp(X["a"] - X["b"] ** 2).to_numpy()
    time = (rng.exponential(size=n_rows) / scale) ** (1.0 / 1.5)
    censored = rng.uniform(0.2, 2.5, n_rows)
    table = X.assign(died=time <= censored, days=np.minimum(time, censored))
    return table, lambda at: np.exp(-np.outer(scale, np.asarray(at) ** 1.5))


NAMES = {"event": "died", "time": "days"}


def inputs(table):
    """The columns without outcomes."""
    return table.drop(columns=["died", "days", "status", "time"], errors="ignore")


@pytest.fixture(scope="module")
def data():
    return make(900)


@pytest.fixture(scope="module")
def model(data):
    return survival().fit(data[0], **NAMES)


@pytest.fixture(scope="module")
def two_causes():
    """Two causes with hazards ``exp(a)`` and ``exp(b) / 2``, and true cumulative incidences."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(900, 2)), columns=["a", "b"])
    first, second = np.exp(X["a"].to_numpy()), 0.5 * np.exp(X["b"].to_numpy())
    time, censored = rng.exponential(1.0 / (first + second)), rng.uniform(0.3, 2.0, 900)
    cause = np.where(rng.uniform(size=900) < first / (first + second), 1, 2)
    table = X.assign(status=np.where(time <= censored, cause, 0), time=np.minimum(time, censored))

    def incidence(hazard, at):
        whole = first + second
        return (hazard / whole)[:, None] * -np.expm1(-np.outer(whole, at))

    return table, lambda at: (incidence(first, at), incidence(second, at))


@pytest.fixture(scope="module")
def causes_model(two_causes):
    return survival(interactions=0).fit(two_causes[0], event="status", time="time")


class TestCurves:
    def test_survival_is_that_of_the_truth(self, model, data):
        X, truth = inputs(data[0]), data[1]
        at = [0.3, 0.7, 1.2]
        curves, interval = model.predict_survival_function(X, at, return_interval=True)
        assert np.abs(curves - truth(at)).mean() < 0.03
        inside = (interval[..., 0] < truth(at)) & (truth(at) < interval[..., 1])
        assert 0.85 < inside.mean() <= 1.0
        narrow = model.predict_survival_function(X, at, return_interval=True, coverage=0.5)[1]
        assert (np.ptp(narrow, axis=2) < np.ptp(interval, axis=2)).all()

    def test_curves_belong_together(self, model, data):
        X = inputs(data[0])[:20]
        times = np.linspace(0.0, model.unique_times_[-1], 4001)
        curve = model.predict_survival_function(X, times)
        np.testing.assert_array_equal(curve[:, 0], 1.0)
        assert (np.diff(curve) < 0.0).all()
        hazard = model.predict_cumulative_hazard_function(X, times)
        np.testing.assert_allclose(np.exp(-hazard), curve)
        slopes = np.diff(hazard) / np.diff(times)
        middles = 0.5 * (times[1:] + times[:-1])
        close = np.isclose(slopes, model.predict_hazard(X, middles), rtol=1e-6)
        assert close.mean() > 0.99  # but where an interval ends
        np.testing.assert_allclose(model.predict_cumulative_incidence(X, times=times), 1.0 - curve)
        area = np.trapezoid(curve, times)
        np.testing.assert_allclose(model.predict_rmst(X), area, rtol=1e-5)

    def test_quantiles_invert_survival(self, model, data):
        X = inputs(data[0])
        median, interval = model.predict_quantile(X, return_interval=True)
        reached = np.isfinite(median)
        assert 0.3 < reached.mean() < 1.0
        at_median = [
            model.predict_survival_function(X[k : k + 1], median[k])[0, 0]
            for k in np.flatnonzero(reached)[:5]
        ]
        np.testing.assert_allclose(at_median, 0.5)
        assert (interval[reached, 0] < median[reached]).all()
        assert (interval[:, 1] >= median).all()

    def test_intervals_of_the_restricted_mean(self, model, data):
        mean, interval = model.predict_rmst(inputs(data[0])[:5], 1.0, return_interval=True)
        assert ((interval[:, 0] < mean) & (mean < interval[:, 1])).all()
        assert (mean < 1.0).all()

    def test_contributions_are_of_the_log_hazard(self, model, data):
        X = inputs(data[0])[:7]
        link = model.intercept_ + model.predict_terms(X, time=0.6).sum(axis=1)
        np.testing.assert_allclose(np.exp(link), model.predict_hazard(X, 0.6)[:, 0])
        local = model.explain_local(X, time=0.6)
        np.testing.assert_allclose(local.prediction, link)

    def test_the_baseline_hazard_is_a_shape(self, model):
        shape = model.explain_global()["days"]
        assert shape.active
        # Of t^1.5 the log hazard rises by half the logarithm of time.
        mean = np.interp([0.2, 0.8], shape.values, shape.mean)
        assert mean[1] - mean[0] == pytest.approx(0.5 * np.log(4.0), abs=0.2)

    def test_risk_and_score(self, model, data):
        X = data[0]
        risk = model.predict(inputs(X))
        assert model.score(X, **NAMES) == harrell_c(X["died"], X["days"], risk)
        assert model.score(X, **NAMES) > 0.62
        y = X[["died", "days"]].to_records(index=False)
        assert model.score(inputs(X), y) == model.score(X, **NAMES)


class TestNonProportionalHazards:
    def test_an_effect_that_changes_is_found(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(1500, 2))
        # The effect of the first column ends at time 1.
        early = rng.exponential(np.exp(-1.5 * X[:, 0]))
        time = np.where(early < 1.0, early, 1.0 + rng.exponential(size=1500))
        event, time = time < 2.5, np.minimum(time, 2.5)
        model = survival().fit(X, event=event, time=time)
        assert [t.name for t in model.terms_ if t.joint and t.active] == ["x0 x time"]
        hazard = model.predict_hazard([[-0.8, 0.0], [0.8, 0.0]], [0.2, 2.0])
        assert np.log(hazard[1] / hazard[0])[0] > 1.6
        assert abs(np.log(hazard[1] / hazard[0])[1]) < 0.6
        proportional = survival(time_interactions=0).fit(X, event=event, time=time)
        assert not any(term.joint for term in proportional.terms_)
        assert proportional.log_evidence_ < model.log_evidence_ - 10.0

    def test_named_columns_are_tried(self, data):
        X = data[0]
        model = survival(interactions=0, time_interactions=["a"]).fit(X, **NAMES)
        assert {pair.features for pair in model._model.scored if pair.status == "active"} <= {
            (0, 3)
        }
        assert {pair.features for pair in model._model.scored} == {(0, 3), (1, 3), (2, 3)}


class TestData:
    def test_all_ways_to_say_the_outcome(self, model, data):
        X = data[0]
        expected = model.predict(inputs(X))
        y = np.array(
            list(zip(X["died"], X["days"], strict=True)), dtype=[("e", bool), ("t", float)]
        )
        other = survival().fit(inputs(X), y)
        np.testing.assert_allclose(other.predict(inputs(X)), expected)
        arrays = survival().fit(inputs(X), event=X["died"], time=X["days"])
        np.testing.assert_allclose(arrays.predict(inputs(X)), expected)

    def test_weights_are_copies(self, data):
        X = data[0][:300]
        weight = np.random.default_rng(0).integers(0, 3, 300)
        weighted = survival(interactions=0).fit(X, **NAMES, sample_weight=weight)
        copies = survival(interactions=0).fit(X.loc[np.repeat(X.index, weight)], **NAMES)
        np.testing.assert_allclose(
            weighted.predict(inputs(X)), copies.predict(inputs(X)), atol=1e-8
        )
        assert weighted.log_evidence_ == pytest.approx(copies.log_evidence_)

    def test_the_unit_of_time_does_not_matter(self, model, data):
        X = data[0]
        years = survival().fit(X.assign(days=X["days"] / 365.25), **NAMES)
        np.testing.assert_allclose(
            years.predict_survival_function(inputs(X), np.array([0.3, 0.7]) / 365.25),
            model.predict_survival_function(inputs(X), [0.3, 0.7]),
            rtol=1e-6,
        )
        n_events = X["died"].sum()
        gain = years.log_evidence_ - model.log_evidence_
        assert gain == pytest.approx(n_events * np.log(365.25))

    def test_late_entry_is_not_at_risk(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(3000, 1))
        time, entry = rng.exponential(np.exp(-X[:, 0])), rng.uniform(0.0, 1.0, 3000)
        seen = time > entry  # others are never heard of
        X, time, entry = X[seen], time[seen], entry[seen]
        event, time = time < 2.0, np.minimum(time, 2.0)
        truth = np.exp(-np.outer(np.exp(X[:, 0]), [1.0]))
        aware = survival().fit(X, event=event, time=time, entry=entry)
        assert np.abs(aware.predict_survival_function(X, [1.0]) - truth).mean() < 0.03
        naive = survival().fit(X, event=event, time=time)
        assert np.abs(naive.predict_survival_function(X, [1.0]) - truth).mean() > 0.1

    def test_missing_values_and_saved_files(self, data, tmp_path):
        X = data[0].copy()
        X.loc[::5, "a"] = np.nan
        model = survival(interactions=0).fit(X, **NAMES)
        same = lanam.load(model.save(tmp_path / "model.lanam"))
        at, rows = [0.5, 1.0], inputs(X)
        for found, expected in zip(
            same.predict_survival_function(rows, at, return_interval=True),
            model.predict_survival_function(rows, at, return_interval=True),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)
        assert same.n_features_in_ == 3
        assert list(same.feature_names_in_) == ["a", "b", "group"]
        assert str(same.summary()) == str(model.summary())

    def test_files_give_the_model_of_memory(self, model, data, tmp_path):
        table = data[0].assign(start=0.0)
        table.to_parquet(tmp_path / "table.parquet", row_group_size=170)
        found = survival().fit(
            str(tmp_path / "table.parquet"), event="died", time="days", entry="start"
        )
        assert found.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-9)
        risk = found.predict(str(tmp_path / "table.parquet"))
        np.testing.assert_allclose(risk, model.predict(table[["a", "b", "group"]]), atol=1e-6)


class TestCompetingRisks:
    def test_incidences_are_those_of_the_truth(self, causes_model, two_causes):
        X, truth = inputs(two_causes[0]), two_causes[1]
        at = [0.3, 1.0]
        assert causes_model.causes_.tolist() == [1, 2]
        for cause, expected in zip((1, 2), truth(at), strict=True):
            found, interval = causes_model.predict_cumulative_incidence(
                X, cause, at, return_interval=True
            )
            assert np.abs(found - expected).mean() < 0.03
            assert ((interval[..., 0] <= found) & (found <= interval[..., 1])).all()
            # Of one data set errors are common to all rows; benchmarks/survival.py has many.
            assert ((interval[..., 0] < expected) & (expected < interval[..., 1])).mean() > 0.7

    def test_each_cause_has_a_model(self, causes_model, two_causes):
        X = two_causes[0]
        first, second = (causes_model.for_cause(cause) for cause in (1, 2))
        assert {t.name for t in first.terms_ if t.active} >= {"a"}
        assert {t.name for t in second.terms_ if t.active} >= {"b"}
        rows = inputs(X)
        both = first.predict_hazard(rows, [0.5]) + second.predict_hazard(rows, [0.5])
        np.testing.assert_allclose(causes_model.predict_hazard(rows, [0.5]), both)
        alone = survival(interactions=0).fit(
            X.assign(status=X["status"] == 1), event="status", time="time"
        )
        close = np.corrcoef(alone.predict(rows), first.predict(rows))[0, 1]
        assert close > 0.999  # other intervals

    def test_causes_are_saved(self, causes_model, two_causes, tmp_path):
        same = lanam.load(causes_model.save(tmp_path / "model.lanam"))
        X = inputs(two_causes[0])
        np.testing.assert_array_equal(
            same.predict_cumulative_incidence(X, 2), causes_model.predict_cumulative_incidence(X, 2)
        )
        one = lanam.load(causes_model.for_cause(2).save(tmp_path / "one.lanam"))
        assert one.causes_.tolist() == [2]

    def test_one_cause_must_be_taken(self, causes_model, two_causes):
        with pytest.raises(
            ValueError, match=r"causes 1 and 2, .* model.for_cause\(1\).summary\(\)"
        ):
            causes_model.summary()
        with pytest.raises(
            ValueError, match="cause=3 is not a cause of this model: its causes are 1, 2"
        ):
            causes_model.for_cause(3)
        with pytest.raises(ValueError, match="cause is missing: its causes are 1, 2"):
            causes_model.predict_cumulative_incidence(two_causes[0])


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"days": 0.0},
                "time must be positive, and 1 of 50 values are not, the first, 0, in row 4",
            ),
            ({"days": -1.0}, "time must be positive"),
            ({"days": np.nan}, "time contains NaN: 1 of 50"),
            ({"died": 0.5}, "event must be 0 for censored rows and a positive integer"),
            ({"died": np.nan}, "Input event contains NaN"),
            ({"entry": 90.0}, "entry must be before the time of follow-up"),
        ],
    )
    def test_values(self, data, change, message):
        table = data[0][:50].assign(entry=0.0)
        table = table.astype({"died": float})
        for column, value in change.items():
            table.loc[3, column] = value
        asked = {**NAMES, "entry": "entry"} if "entry" in change else {**NAMES, "drop": ["entry"]}
        with pytest.raises(ValueError, match=message):
            survival().fit(table, **asked)

    def test_events_as_text(self, data):
        words = np.where(data[0]["died"], "dead", "alive")
        with pytest.raises(ValueError, match=r"event has text such as 'dead', .* event == 'dead'"):
            survival().fit(data[0].assign(died=words), **NAMES)

    def test_codes_that_were_never_seen(self, interacting):
        X, event, time = interacting
        model = LANAMSurvival(interactions=0, time_interactions=0).fit(X, event=event, time=time)
        other = np.where(event == 2, 7, event)
        for use in (model.score, model.add_interactions):
            with pytest.raises(
                ValueError, match=r"code 7 in row .* the model has the causes 1 and 2"
            ):
                use(X, event=other, time=time)
        with pytest.raises(ValueError, match=r"code 2 in row .* the model has the cause 1: code"):
            model.for_cause(1).score(X, event=event, time=time)

    def test_no_events(self, data):
        with pytest.raises(ValueError, match=r"event has no event: .* is censored"):
            survival().fit(data[0].assign(died=False), **NAMES)

    def test_swapped(self, data):
        with pytest.raises(ValueError, match="look like times"):
            survival().fit(data[0].assign(days=np.arange(1, 901)), event="days", time="died")

    def test_outcome_is_needed_once(self, data):
        X = data[0]
        with pytest.raises(ValueError, match="time is missing: "):
            survival().fit(X, event="died")
        with pytest.raises(ValueError, match="both say what to predict"):
            survival().fit(X, X["died"], event="died")
        with pytest.raises(ValueError, match="y must be a structured array of event and time"):
            survival().fit(X, X["died"])
        with pytest.raises(ValueError, match="time names the column 'dayz'"):
            survival().fit(X, event="died", time="dayz")

    def test_times_beyond_follow_up(self, model, data):
        with pytest.raises(
            ValueError, match=r"times has 99, and follow-up .* was from 0 to 2\.\d+"
        ):
            model.predict_survival_function(inputs(data[0]), [1.0, 99.0])

    def test_the_papers_solver(self, data):
        with pytest.raises(ValueError, match="solver='adam' is the paper's, which has no survival"):
            survival(solver="adam").fit(data[0], **NAMES)


class TestPictures:
    def test_shapes_are_drawn(self, model):
        axes = plot_shapes(model.explain_global())
        assert any("days" in ax.get_xlabel() for ax in np.ravel(axes))

    def test_curves_are_drawn_with_their_bands(self, model, data):
        curves = model.explain_survival(inputs(data[0])[:2], labels=["first", "second"])
        ax = plot_survival(curves)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("days", "probability of no event")
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["first", "second"]
        for line, value in zip(ax.get_lines(), curves.value, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), value)
        styles = {line.get_linestyle() for line in ax.get_lines()}
        assert len(styles) == len(ax.collections) == 2
        assert not plot_survival(curves, bands=False).collections

    def test_many_curves_are_refused(self, model, data):
        curves = model.explain_survival(inputs(data[0])[:9], times=[0.5, 1.0])
        with pytest.raises(ValueError, match="draws 1 to 8 curves, and there are 9"):
            plot_survival(curves)
        with pytest.raises(ValueError, match="labels has 1 names, and X has 2 rows"):
            model.explain_survival(inputs(data[0])[:2], labels=["one"])

    def test_curves_of_a_cause(self, causes_model, two_causes):
        curves = causes_model.explain_survival(inputs(two_causes[0])[:1], cause=2)
        assert plot_survival(curves).get_ylabel() == "probability of an event of cause 2"
        frame = curves.to_frame()
        expected = causes_model.predict_cumulative_incidence(
            inputs(two_causes[0])[:1], 2, curves.times
        )
        np.testing.assert_array_equal(frame["value"], expected[0])


class TestResults:
    def test_importances_are_of_the_columns(self, model):
        importances = model.feature_importances_
        assert importances.shape == (3,)
        assert importances.sum() == pytest.approx(1.0)
        assert importances[0] > importances[2]

    def test_hazards_of_all_sizes_are_found_in_few_passes(self):
        rng = np.random.default_rng(0)
        # A hundredth of the hazard after a hundredth of the time.
        early = rng.exponential(size=1500)
        time = np.where(early < 0.5, early, 0.5 + 1000.0 * rng.exponential(size=1500))
        X = rng.normal(size=(1500, 1))
        model = survival(interactions=0, time_interactions=0).fit(X, event=np.ones(1500), time=time)
        first, last = model.predict_hazard(X[:1], [0.1, 900.0])[0]
        assert 0.7 < first < 1.3
        assert 0.0007 < last < 0.0013
        assert model.n_iter_ < 20

    def test_damaged_files_are_refused(self, causes_model):
        whole = container.unpack(to_bytes(of_estimator(causes_model)))
        for name, change in (
            ("follow-up edges", lambda a: a[::-1].copy()),
            ("follow-up causes", lambda a: a * 0),
            ("follow-up events", lambda a: -a),
        ):
            arrays = {**whole.arrays, name: change(whole.arrays[name])}
            with pytest.raises(ModelFileError, match="is damaged"):
                from_bytes(container.pack(container.Contents(whole.content, arrays)))
        follow_up = {**whole.content["follow_up"], "models": []}
        content = {**whole.content, "follow_up": follow_up}
        with pytest.raises(ModelFileError, match="is damaged"):
            from_bytes(container.pack(container.Contents(content, whole.arrays)))

    def test_the_summary_says_whether_hazards_are_proportional(self, model):
        tested = model.summary().facts["proportional_hazards"]
        assert (
            set(tested)
            == {"a", "b", "group"}
            == {row["feature_names"][0] for row in model.proportional_hazards_}
        )
        assert "proportional hazards: no effect of 3 columns changes" in str(model.summary())

    def test_sql_has_the_hazard(self, model, data):
        time = model.unique_times_[3:5].mean()
        X = inputs(data[0])[:4]
        connection = sqlite3.connect(":memory:")
        X.assign(days=time).to_sql("patients", connection, index=False)
        query = model.export(None, to="sql", table="patients")
        found = pd.read_sql(query, connection)
        np.testing.assert_allclose(
            found["prediction"], model.predict_hazard(X, [time])[:, 0], rtol=1e-9
        )

    def test_terms_can_be_edited(self, model, data):
        X = inputs(data[0])[:5]
        edited = model.edit_term("a", "zero", reason="a test")
        same = edited.predict(X.assign(a=0.5)) - edited.predict(X.assign(a=-0.5))
        np.testing.assert_allclose(same, 0.0, atol=1e-12)
        assert not np.allclose(edited.predict(X), model.predict(X))

    def test_predicted_files(self, causes_model, two_causes, tmp_path):
        X = inputs(two_causes[0])
        X.to_parquet(tmp_path / "new.parquet")
        files = str(tmp_path / "new.parquet"), tmp_path / "out.parquet"
        causes_model.predict_files(*files, times=[0.5])
        found = pd.read_parquet(tmp_path / "out.parquet")
        assert list(found)[1:] == ["survival_0.5", "incidence_1_0.5", "incidence_2_0.5"]
        np.testing.assert_allclose(found["prediction"], causes_model.predict(X))

    def test_dask_frames(self, model, data):
        dd = pytest.importorskip("dask.dataframe")
        frame = dd.from_pandas(data[0], npartitions=3)
        found = survival().fit(frame, **NAMES)
        assert found.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-9)
        risk = found.predict(frame).compute()
        np.testing.assert_allclose(risk, model.predict(inputs(data[0])), atol=1e-6)


@pytest.fixture(scope="module")
def interacting():
    """Columns that interact with each other and with time, events of two causes, and times."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (700, 3))
    early = rng.exponential(np.exp(-2.5 * X[:, 0] * X[:, 1] - X[:, 2]))
    time = np.where(early < 0.5, early, 0.5 + rng.exponential(size=700))
    event = np.where(time < 2.0, rng.integers(1, 3, 700), 0)
    return X, event, np.minimum(time, 2.0)


class TestAddInteractions:
    def test_they_are_those_of_a_fit(self, interacting):
        X, event, time = interacting
        outcome = {"event": event > 0, "time": time}
        model = LANAMSurvival(interactions=0, time_interactions=0).fit(X, **outcome)
        before = model.log_evidence_
        model.add_interactions(X, interactions=[(0, 1)], time_interactions=["x2"], **outcome)
        whole = LANAMSurvival(interactions=[(0, 1)], time_interactions=["x2"]).fit(X, **outcome)
        names = [term.name for term in model.terms_ if term.active and term.joint]
        assert names == [term.name for term in whole.terms_ if term.active and term.joint]
        assert "x0 x x1" in names
        assert model.log_evidence_ == pytest.approx(whole.log_evidence_, abs=0.1)
        assert model.log_evidence_ > before + 3.0
        np.testing.assert_allclose(
            model.predict_survival_function(X[:9]),
            whole.predict_survival_function(X[:9]),
            atol=5e-3,
        )

    def test_of_every_cause(self, interacting):
        X, event, time = interacting
        model = LANAMSurvival(interactions=0, time_interactions=0).fit(X, event=event, time=time)
        model.add_interactions(X, event=event, time=time, time_interactions=0)
        for cause in (1, 2):
            names = [term.name for term in model.for_cause(cause).terms_ if term.active]
            assert "x0 x x1" in names
        total = sum(model.predict_cumulative_incidence(X[:5], cause) for cause in (1, 2))
        np.testing.assert_allclose(total, 1.0 - model.predict_survival_function(X[:5]))

    def test_none_is_supported(self, interacting):
        X, event, time = interacting
        outcome = {"event": event > 0, "time": time}
        model = LANAMSurvival(interactions=0, time_interactions=0).fit(X[:, 2:], **outcome)
        before = model.predict(X[:5, 2:])
        model.add_interactions(X[:, 2:], interactions=0, time_interactions=0, **outcome)
        np.testing.assert_allclose(model.predict(X[:5, 2:]), before, rtol=1e-6)

    def test_an_error_leaves_the_model(self, interacting):
        X, event, time = interacting
        model = LANAMSurvival(interactions=0, time_interactions=0).fit(X, event=event, time=time)
        before = model.predict(X[:5])
        with pytest.raises(ValueError, match="'x9'"):
            model.add_interactions(X, interactions=[("x0", "x9")], event=event, time=time)
        np.testing.assert_array_equal(model.predict(X[:5]), before)
