"""Predictions that a page shows, and those of the model."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.report.examples import CLASSES, example

#: Tables of means are exact; sums differ by rounding.
EXACT = 1e-12
#: The tolerance that the report documents.
MEAN, BAND = 1e-6, 0.01
#: The actual tolerance: variances are computed from single-precision numbers.
CLOSE_BAND = 1e-4


class Expected:
    """All results for rows, by the model's public methods."""

    def __init__(self, model, X, coverage=0.95, exposure=None):
        more = {} if exposure is None else {"exposure": exposure}
        self.newInterval = self.newStd = None
        if hasattr(model, "classes_"):
            probability = model.predict_proba(X)
            several = len(model.classes_) > 2
            self.response = probability if several else probability[:, 1:]
            self.intervals = model.predict_interval(X, coverage=coverage)
            if not several:
                self.intervals = self.intervals[:, None]
        else:
            mean, self.newStd = model.predict(X, return_std=True, **more)
            self.response = mean[:, None]
            band = model.predict_interval(X, coverage=coverage, kind="mean", **more)
            self.intervals = band[:, None]
            self.newInterval = model.predict_interval(X, coverage=coverage, **more)
        means, stds = model.predict_terms(X, return_std=True)
        active = [k for k, term in enumerate(model.terms_) if term.active]
        shape = (len(X), len(active), -1)
        self.terms = means[:, active].reshape(shape)
        self.stds = stds[:, active].reshape(shape)
        self.mean = np.reshape(model.intercept_ + means.sum(axis=1), (len(X), -1))
        self.names = [model.terms_[k].name for k in active]


class Found:
    """The same from the page's results."""

    def __init__(self, results):
        def of(key):
            return np.array([result[key] for result in results], dtype=float)

        self.response, self.intervals, self.mean = of("response"), of("intervals"), of("mean")
        self.newInterval, self.newStd = of("newInterval"), of("newStd")
        terms = [result["terms"] for result in results]
        self.terms = np.array([[term["mean"] for term in row] for row in terms])
        self.stds = np.array([[term["std"] for term in row] for row in terms])
        self.names = [term["name"] for term in terms[0]]


#: A result as plain data; arrays of numbers would come as objects.
PLAIN = """(result) => ({
  mean: Array.from(result.mean), response: result.response, intervals: result.intervals,
  newInterval: result.newInterval ?? null, newStd: result.newStd ?? null,
  terms: result.terms.map((term) => ({ name: term.name, mean: Array.from(term.mean), std: term.std })),
})"""


def assert_agree(actual, expected):
    assert actual.names == expected.names
    scale = np.abs(expected.mean).max()
    np.testing.assert_allclose(actual.mean, expected.mean, rtol=0.0, atol=EXACT * scale)
    np.testing.assert_allclose(actual.terms, expected.terms, rtol=0.0, atol=EXACT * scale)
    np.testing.assert_allclose(actual.response, expected.response, rtol=MEAN)
    width = np.ptp(expected.intervals, axis=-1)[..., None]
    assert np.abs((actual.intervals - expected.intervals) / width).max() < CLOSE_BAND
    np.testing.assert_allclose(actual.stds, expected.stds, rtol=CLOSE_BAND, atol=1e-6 * scale)
    if expected.newInterval is None:
        return
    np.testing.assert_allclose(actual.newStd, expected.newStd, rtol=CLOSE_BAND)
    off = np.abs(actual.newInterval - expected.newInterval)
    if np.all(expected.newInterval == np.rint(expected.newInterval)):
        # Quantiles of counts are integers, which rounding may shift by one.
        assert np.all(off <= np.maximum(1.0, BAND * expected.newInterval))
        assert (off > 0.0).mean() < 0.05
    else:
        assert (off / np.ptp(expected.newInterval, axis=1)[:, None]).max() < CLOSE_BAND


def cells_of(model, X):
    """Rows, encoded for the page."""
    cells = model._columns(X)
    return [[None if value != value else value for value in row] for row in cells.tolist()]


def score(page, cells, coverage, exposure=None):
    """Rows scored by the page."""
    exposure = [1.0] * len(cells) if exposure is None else list(map(float, exposure))
    code = f"""([rows, exposure, coverage]) => {{
      const plain = {PLAIN};
      const level = lanam.report.levels.find((one) => one.coverage === coverage);
      const numbers = (row) => Float64Array.from(row, (value) => (value === null ? NaN : value));
      return rows.map((row, i) => plain(lanam.whatIf.scorer.score(numbers(row), level, exposure[i])));
    }}"""
    return Found(page.evaluate(code, [cells, exposure, coverage]))


def present(page):
    """The result shown, and its row."""
    result = page.evaluate(f"() => ({PLAIN})(lanam.whatIf.result)")
    row = page.evaluate("() => Array.from(lanam.whatIf.row, (v) => (Number.isNaN(v) ? null : v))")
    return Found([result]), row


def frame_of(model, row):
    """A row of the page, as a frame for the model."""
    values = {}
    for column, value in zip(model._schema.columns, row, strict=True):
        if column.kind == "categorical":
            known = None if value is None else "never seen"
            if value is not None and value >= 0:
                known = column.levels[int(value)]
            values[column.name] = pd.Series([known], dtype=object)
        else:
            values[column.name] = [np.nan if value is None else value]
    return pd.DataFrame(values)


def as_number(text):
    text = text.strip().replace("−", "-").replace(",", "")
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def ends_of(text):
    """The two numbers of "...: 1.2 to 3.4"."""
    words = re.sub(r" \(calibrated\)$", "", text).rsplit(": ", 1)[1]
    return [as_number(word) for word in words.split(" to ")]


def shown(value, half=0.0):
    """Tolerance of displayed numbers: four digits, or three digits of the half-width."""
    return pytest.approx(value, rel=6e-4, abs=max(6e-4, 6e-3 * half))


def check_shown(page, kind, coverage=0.95, exposure=None):
    """Compare computed and displayed results with the model; returns the row."""
    model = example(kind).model
    actual, row = present(page)
    expected = Expected(model, frame_of(model, row), coverage, exposure)
    assert_agree(actual, expected)
    name = f"{100 * coverage:g}%"
    lines = page.locator("#responses .bands").all_inner_texts()
    if kind == "many":
        rows = page.locator("#responses .class-row")
        names = [rows.nth(k).locator("span").first.inner_text() for k in range(3)]
        assert names == list(CLASSES)
        for k in range(3):
            assert as_number(rows.nth(k).locator("b").inner_text()) == shown(
                expected.response[0, k]
            )
            band = rows.nth(k).locator("small").inner_text()
            assert ends_of(f": {band}") == shown(expected.intervals[0, k].tolist())
        assert f"Below each probability: its {name} credible interval." in lines
        return row
    value = as_number(page.locator("#responses .value").inner_text())
    ends = expected.intervals[0, 0]
    half = 0.0 if kind == "two" else 0.5 * float(ends[1] - ends[0])
    assert value == shown(expected.response[0, 0], half)
    (mean,) = (line for line in lines if line.startswith(f"{name} credible interval of the"))
    assert ends_of(mean) == shown(ends.tolist(), half)
    if expected.newInterval is not None:
        (new,) = (line for line in lines if line.startswith(f"{name} prediction interval"))
        assert new.endswith("(calibrated)") == (kind == "calibrated")
        # Counts may differ by one, see above.
        slack = 1.0 if kind == "counts" else 6e-3 * half
        low, high = ends_of(new)
        assert low == pytest.approx(expected.newInterval[0, 0], rel=6e-4, abs=6e-4 + slack)
        assert high == pytest.approx(expected.newInterval[0, 1], rel=6e-4, abs=6e-4 + slack)
    return row
