"""Survival curves on the what-if page agree with the model."""

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMSurvival


@pytest.fixture(scope="module")
def model():
    """Hazards that are not proportional, with categories and missing values."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 1200), "g": rng.choice(["x", "y"], 1200)})
    early = rng.exponential(np.exp(-1.5 * X["a"] - (X["g"] == "y")))
    time = np.where(early < 1.0, early, 1.0 + rng.exponential(size=1200))
    X.loc[::7, "a"] = np.nan
    table = X.assign(event=time < 2.5, time=np.minimum(time, 2.5))
    return LANAMSurvival(random_state=0).fit(table, event="event", time="time"), X


def test_the_page_has_the_models_curves(model, open_report, tmp_path):
    model, X = model
    assert any(term.joint and term.active for term in model.terms_)
    page = open_report(model.report(tmp_path / "report.html", X[:20], time=1.0))
    strange = pd.DataFrame({"a": [0.3, np.nan, 5.0], "g": ["x", "z", None]})
    rows = pd.concat([X[:4], strange])
    with pytest.warns(UserWarning, match="column 'g'"):
        cells = model._columns_at(rows, 1.0, "")
    with pytest.warns(UserWarning, match="column 'g'"):
        expected, interval = model.predict_survival_function(rows, return_interval=True)
    curves = page.evaluate(
        """(rows) => rows.map((row) => lanam.whatIf.scorer.survival(
          Float64Array.from(row, (v) => (v === null ? NaN : v)), lanam.report.follow_up,
          lanam.report.levels.find((one) => one.coverage === 0.95)))""",
        [[None if value != value else value for value in row] for row in cells.tolist()],
    )
    found = np.array([[[p["value"], p["low"], p["high"]] for p in curve] for curve in curves])
    np.testing.assert_allclose(found[..., 0], expected, rtol=1e-9)
    np.testing.assert_allclose(found[..., 1:], interval, atol=1e-4)


def test_it_shows_the_curve_and_its_value(model, open_report, tmp_path):
    model, X = model
    page = open_report(model.report(tmp_path / "report.html", X[:20], time=1.0))
    page.select_option("#row", "3")
    text = page.inner_text("#survival-text")
    at = model._timeline.middles[model._timeline.interval_of(np.array([1.0]))][0]
    survival = model.predict_survival_function(X[3:4], at)[0, 0]
    assert f"{100 * survival:.1f}%" in text
    assert page.locator("svg.survival path.mean").count() == 1
