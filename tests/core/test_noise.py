"""Heteroscedastic noise: its residuals, its fit, and when it is kept."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from lanam.core.fit import fitting
from lanam.core.fit.prepare import NOISE_ROWS
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.noise import residuals as noise
from lanam.core.rows.tables import ArrayTables, EncodedRows
from lanam.families.gaussian import Gaussian

OPTIONS = Options(hidden_sizes=(16,), max_iter=30)


def rows(n_rows=400, seed=0, loud=2.0):
    """A linear mean, and noise with a linear log standard deviation."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n_rows, 2))
    y = x[:, 0] + 0.3 * np.exp(0.5 * loud * x[:, 1]) * rng.normal(size=n_rows)
    return EncodedRows(np.asfortranarray(x), y, np.ones(n_rows))


def fitted(table, **options):
    return fitting.fit(ArrayTables(table), Gaussian(), replace(OPTIONS, noise=True, **options), 0)


def test_the_true_noise_is_recovered():
    model = fitted(rows(3000))
    active = [term.features for term in model.noise.terms if term.active]
    assert active == [(1,)]
    ends = np.array([[0.0, -1.0], [0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(
        scoring.noise_variances(model, ends), 0.09 * np.exp([-2.0, 0.0, 2.0]), rtol=0.3
    )


def test_the_mean_is_unchanged():
    table = rows()
    one, two = fitted(table), fitting.fit(ArrayTables(table), Gaussian(), OPTIONS, 0)
    assert one.noise is not None
    assert two.noise is None
    assert one.noise_variance == two.noise_variance
    assert one.log_evidence == two.log_evidence
    np.testing.assert_array_equal(one.cov_cholesky, two.cov_cholesky)


def test_squares_average_one_for_any_leverage():
    """With many columns and few rows, raw residuals are far too small."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, 8))
    y = 3.0 * np.sin(2.0 * x).sum(axis=1) + rng.normal(size=150)
    table = EncodedRows(np.asfortranarray(x), y, np.ones(150))
    model = replace(fitted(table), noise=None)
    squares = np.square(noise.standard_residuals(model, table).response)
    plain = np.square(y - scoring.link_mean(model, x)) / model.noise_variance
    assert plain.mean() < 0.8
    assert squares.mean() == pytest.approx(1.0, abs=0.15)


def test_rows_with_noisy_missing_values_are_left_out():
    table = rows()
    model = replace(fitted(table), noise=None, missing_variance=np.array([0.0, 1.0]))
    gone = table.columns.copy()
    gone[:50, 1] = np.nan
    gone[50:80, 0] = np.nan
    found = noise.standard_residuals(model, replace(table, columns=gone))
    assert len(found) == len(table) - 50


@dataclass
class Squares:
    """A model of the squares by whose left-out rows the gain over constant noise is ``gain`` nats."""

    model: object
    rows: EncodedRows
    gain: float
    n_effective: float = 10.0

    def __post_init__(self):
        self.held_out = []

    def scores(self):
        squares, n = self.rows.response, len(self.rows)
        mean = (squares.sum() - squares) / (n - 1)
        return noise.LogVariance().log_prob(squares, np.log(mean)) + self.gain / n

    def without(self, held_out):
        self.held_out.append(np.flatnonzero(held_out).tolist())
        mean = self.rows.response[~held_out].mean()
        return np.full(held_out.sum(), np.log(mean))


def learned_by(table, **gains):
    squares = Squares(fitted(table).noise, **gains, rows=None)

    def fit(rows):
        squares.rows = rows
        return squares

    residuals = noise.standard_residuals(replace(fitted(table), noise=None), table)
    return noise.learn_noise(residuals, fit), squares.held_out


@pytest.mark.parametrize(("n_rows", "parts"), [(noise._MANY_ROWS - 2, 8), (noise._MANY_ROWS, 2)])
def test_the_number_of_fits(n_rows, parts):
    _, held_out = learned_by(rows(n_rows), gain=noise.LEAST_GAIN + 5.0)
    assert held_out == [list(range(k, n_rows, parts)) for k in range(parts)]


@pytest.mark.parametrize(("gain", "kept"), [(-100.0, False), (4.9, False), (15.1, True)])
def test_clear_cases_are_not_cross_validated(gain, kept):
    found, held_out = learned_by(rows(), gain=gain)
    assert not held_out
    assert (found is not None) == kept


def test_left_out_scores_are_those_of_cross_validation():
    """Precisions are those of all rows, so that the gain is larger by some nats at most."""
    table = rows()
    squares = replace(table, response=table.response**2)
    summary = fitting.prepare(ArrayTables(table), Gaussian(), OPTIONS).summary
    fit = fitting.fit_squares(summary, OPTIONS, 0, squares)
    in_closed_form = noise._left_out_gain(squares, fit)
    cross_validated = noise._variance_gain(squares, fit)
    assert cross_validated > noise.LEAST_GAIN
    assert -5.0 < in_closed_form - cross_validated < fit.n_effective


def test_rows_left_out_do_not_matter():
    table = rows()
    squares = replace(table, response=table.response**2)
    summary = fitting.prepare(ArrayTables(table), Gaussian(), OPTIONS).summary
    out = np.arange(len(table)) % 8 == 0
    others = fitting.fit_squares(summary, OPTIONS, 0, squares).without(out)
    changed = replace(squares, response=np.where(out, 9.0, 1.0) * squares.response)
    again = fitting.fit_squares(summary, OPTIONS, 0, changed).without(out)
    # They share the start, which is that of all rows.
    np.testing.assert_allclose(again, others, atol=0.1)
    assert others.std() > 0.3


def test_the_sample_is_bounded(monkeypatch):
    known = []
    monkeypatch.setattr(fitting, "learn_noise", lambda rows, fit: known.append(len(rows)))
    fitted(rows(NOISE_ROWS + 500), hidden_sizes=(4,), max_iter=3)
    fitted(rows(300))
    assert known == [NOISE_ROWS, 300]


def test_too_few_rows():
    table = rows(noise.LEAST_ROWS - 1, loud=4.0)
    assert fitted(table).noise is None
    assert fitted(rows(4 * noise.LEAST_ROWS, loud=4.0)).noise is not None


def test_without_noise():
    table = rows()
    exact = replace(table, response=table.columns[:, 0] ** 2)
    assert fitted(exact).noise is None


def test_without_cross_validated_gain_it_is_not_kept(monkeypatch):
    table = rows()
    assert fitted(table).noise is not None
    close = noise.LEAST_GAIN + 1.0
    monkeypatch.setattr(noise, "_left_out_gain", lambda rows, fit: close)
    monkeypatch.setattr(noise, "_variance_gain", lambda rows, fit: noise.LEAST_GAIN)
    assert fitted(table).noise is None


def test_an_interrupt_keeps_the_mean(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "learn_noise", interrupted)
    model = fitted(rows())
    assert model.noise is None
    assert model.stop_reason == "interrupted"


def test_extrapolation_is_constant():
    table = rows()
    model = fitted(table)
    lowest, highest = table.columns[:, 1].min(), table.columns[:, 1].max()
    ends = np.array([[0.0, lowest], [0.0, highest]])
    far = np.array([[0.0, lowest - 50.0], [0.0, highest + 50.0]])
    np.testing.assert_allclose(
        scoring.noise_variances(model, far), scoring.noise_variances(model, ends), rtol=1e-6
    )


def test_noise_of_missing_values_is_added():
    model, gone = fitted(rows()), np.array([[np.nan, 0.7], [np.nan, -0.7]])
    noisier = replace(model, missing_variance=np.array([3.0, 0.0]))
    more = scoring.noise_variances(noisier, gone) - scoring.noise_variances(model, gone)
    np.testing.assert_allclose(more, 3.0)
