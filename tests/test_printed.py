"""What is printed has room on a screen, and records have a repr of one line."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, coverage_report
from lanam.metrics import reliability_curve, retention_curve

LINES, WIDTH = 40, 100
QUICK = {"tol": 1e6}


@pytest.fixture(scope="module")
def wide():
    """More columns with long names than a screen has lines, most of them active."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 40)))
    X.columns = [f"a column with a name of its own, number {k}" for k in range(40)]
    X["city"] = rng.choice(["Rome", "Bonn", "a city with a very long name"], 150)
    X["same"], X["constant"], X["empty"] = 1.0, 2.0, np.nan
    y = X.iloc[:, :34].sum(axis=1) + (X["city"] == "Rome") + 0.1 * rng.normal(size=150)
    return X, y


@pytest.fixture(scope="module")
def model(wide):
    return LANAMRegressor(interactions=0, noise="constant", **QUICK).fit(*wide)


@pytest.fixture(scope="module")
def several(wide):
    X, y = wide
    labels = np.array([f"class {k}" for k in range(8)])[pd.qcut(y, 8, labels=False)]
    chosen = X.iloc[:, [0, 1, 2, -4]]
    return LANAMClassifier(interactions=0, **QUICK).fit(chosen, labels), chosen


@pytest.fixture(scope="module")
def mixed():
    """An interaction of a column that has missing values with categories."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=120), "g": rng.choice(["u", "v"], 120)})
    X.loc[:9, "a"] = np.nan
    y = X["a"].fillna(0.0) * (X["g"] == "u") + 0.1 * rng.normal(size=120)
    return LANAMRegressor(interactions=[("a", "g")], noise="constant").fit(X, y), X


def on_a_screen(text):
    lines = str(text).splitlines()
    return len(lines) <= LINES and max(map(len, lines)) <= WIDTH


class TestScreens:
    def test_a_summary(self, model, wide):
        summary = model.summary()
        n_active = summary.facts["n_active"]
        assert n_active > 30
        text = str(summary)
        assert on_a_screen(text)
        shown = text.count("  active\n")
        assert 8 <= shown < n_active
        assert f"\n... and {n_active - shown} more (to_frame() has all)\n" in text
        assert len(summary.to_frame()) == len(model.terms_)

    def test_a_summary_with_everything(self, model, wide, mixed):
        for name in wide[0].columns[:7]:
            model = model.edit_term(name, "zero", reason="because " * 20)
        (row,) = mixed[0].interaction_scores_
        status = "dropped: not supported by the data (log evidence gain 1.0, threshold 3.2)"
        row = {**row, "feature_names": tuple(wide[0].columns[:2]), "status": status}
        pairs = replace(mixed[0].interaction_scores_, rows=(row,) * 50)
        text = str(replace(model.summary(), interactions=pairs))
        assert on_a_screen(text)
        assert "7 edits after the fit" in text
        assert "3 earlier ones (edits_ has all)" in text
        assert "dropped: log evidence gain 1.0, threshold 3.2\n" in text
        assert "more, 0 of them active (interaction_scores_)" in text

    def test_a_short_summary_is_whole(self, wide):
        X, y = wide
        text = str(LANAMRegressor(interactions=0, **QUICK).fit(X[["city"]], y).summary())
        assert "... and" not in text

    def test_a_global_explanation(self, model, several):
        explanation = model.explain_global()
        text = str(explanation)
        assert on_a_screen(text)
        n_more = len(explanation.active) - 30
        assert f"\n... and {n_more} more\n" in text
        assert "to_frame()" in text
        low, high = explanation.active[0].importance_interval()
        assert f"{low:.3f} to {high:.3f}" in text.splitlines()[4]
        assert on_a_screen(several[0].explain_global())

    def test_extremes_and_where_they_are(self):
        x = np.linspace(0.0, 10.0, 80)
        X = pd.DataFrame({"x": x, "g": np.tile(["u", "v"], 40)})
        model = LANAMRegressor(interactions=0, noise="constant").fit(X, x + 5.0 * (X["g"] == "u"))
        explanation = model.explain_global()
        lines = {line.split()[0]: line for line in str(explanation).splitlines() if line}
        shape = explanation["x"]
        inner = shape.mean[shape.inside]
        assert not shape.inside.all()
        assert re.split("  +", lines["x"])[-2:] == [
            f"{inner.min():+.3g} at 0",
            f"{inner.max():+.3g} at 10",
        ]
        assert "at v" in lines["g"]
        assert lines["g"].endswith("at u")

    def test_local_explanations(self, model, several, wide):
        X = wide[0]
        local = model.explain_local(X)
        text = str(local)
        assert on_a_screen(text)
        assert "\n... and 120 more\n" in text
        first = next(line for line in text.splitlines() if line.startswith("  1  "))
        assert float(first.split()[1]) == pytest.approx(local.prediction[0], abs=0.06)
        text = str(model.explain_local(X[:1]))
        assert on_a_screen(text)
        assert text.startswith("prediction ")
        assert "(sum)" in text
        assert "\n... and " in text
        classifier, chosen = several
        for rows in (chosen, chosen[:1]):
            assert on_a_screen(classifier.explain_local(rows))
        whole = str(classifier.explain_local(chosen[:1]))
        assert whole.count("(sum)") == 5  # the most probable classes

    def test_the_largest_contributions_come_first(self, model, wide):
        local = model.explain_local(wide[0][:1])
        order = np.argsort(-np.abs(local.contributions[0]))
        lines = str(local).splitlines()
        start = next(k for k, line in enumerate(lines) if line.startswith("(intercept)"))
        for line, k in zip(lines[start + 1 : start + 6], order, strict=False):
            values = [float(cell) for cell in line.split()[-3:]]
            assert values[0] == pytest.approx(local.contributions[0, k], abs=0.006)


class TestReprs:
    def test_records_have_one_line(self, model, several, wide, mixed):
        X, y = wide
        explanation = model.explain_global()
        (pair,) = mixed[0].explain_global().pairs
        calibrated = LANAMRegressor(interactions=0, **QUICK).fit(X[["city"]], y)
        calibrated.calibrate(X[["city"]], y)
        records = [
            explanation,
            explanation.active[0],
            pair,
            pair.axes[0],
            explanation.source,
            explanation.differences(X.columns[0], 0.0),
            explanation.difference(X.columns[0], 0.0, 1.0),
            several[0].explain_global().terms[0],
            model.explain_local(X),
            model.terms_[0],
            model.provenance_,
            calibrated.calibration_,
            reliability_curve(y > 0, np.full(150, 0.5)),
            retention_curve(y > 0, np.arange(150)),
            *model.explain_global().shapes,
        ]
        for record in records:
            assert "\n" not in repr(record)
            assert len(repr(record)) < 400
            assert "array(" not in repr(record)
        assert (
            repr(explanation)
            == f"GlobalExplanation({len(explanation)} terms, {len(explanation.active)} active)"
        )
        assert (
            repr(model.explain_local(X)) == f"LocalExplanation(150 rows, {len(explanation)} terms)"
        )
        assert "kind='smooth', status='active'" in repr(explanation.active[0])

    def test_reports_have_room_on_a_screen(self, several, wide):
        classifier, chosen = several
        y = classifier.predict(chosen)
        assert len(str(coverage_report(classifier, chosen, y)).splitlines()) <= LINES

    def test_control_characters_are_escaped(self):
        X = pd.DataFrame({"red \x1b[31m": np.arange(60) / 7.0, "b": np.arange(60) % 7})
        model = LANAMRegressor(interactions=0, noise="constant", **QUICK).fit(X, np.arange(60.0))
        explanation, local = model.explain_global(), model.explain_local(X)
        texts = [
            str(explanation),
            str(local),
            str(model.explain_local(X[:1])),
            str(model.summary()),
        ]
        for text in (*texts, repr(explanation.terms[0]), repr(model.terms_)):
            assert "\x1b" not in text


class TestInsideTheData:
    def test_frames(self, model, several):
        for fitted in (model, several[0]):
            explanation = fitted.explain_global()
            frame, whole = explanation.to_frame(), explanation.to_frame(beyond=True)
            named = frame["level"].notna() | frame["second_level"].notna()
            assert (frame["inside"] | named).all()
            assert len(frame) < len(whole)
            kept = whole[whole["inside"] | whole["level"].notna() | whole["second_level"].notna()]
            shapes = kept[kept["kind"] != "pair"].reset_index(drop=True)
            pd.testing.assert_frame_equal(
                frame[frame["kind"] != "pair"].reset_index(drop=True), shapes
            )

    def test_numbers_of_interactions(self, mixed):
        model, X = mixed
        frame = model.explain_global().to_frame()
        pair = frame[frame["kind"] == "pair"]
        numbers = pair["value"].dropna()
        assert numbers.min() >= X["a"].min() - 1e-6
        assert numbers.max() <= X["a"].max() + 1e-6
        assert (pair["level"] == "(missing)").any()
        assert (pair["second_level"] == "(other levels)").any()  # unseen categories stay

    def test_differences(self, model, wide):
        name = wide[0].columns[0]
        explanation = model.explain_global()
        inner, whole = (explanation.differences(name, 0.0, beyond=each) for each in (False, True))
        assert inner.inside.all()
        assert not whole.inside.all()
        np.testing.assert_array_equal(inner.values, whole.values[whole.inside])
        np.testing.assert_allclose(inner.mean, whole.mean[whole.inside])
        for one, other in zip(inner.band(0.9), whole.band(0.9), strict=True):
            np.testing.assert_allclose(one, other[whole.inside])
        assert len(inner.to_frame()) == len(inner.values)
