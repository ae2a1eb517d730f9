"""The progress line of a fit."""

import io

import numpy as np
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.progress import Progress, describe


def record(iteration, stage="smooth", **more):
    return {"iteration": iteration, "stage": stage, "log_evidence": -1.0, "n_active": 4, **more}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_that_is_rewritten():
    stream = Terminal()
    with Progress(10, stream) as progress:
        for iteration in range(1, 11):
            progress(record(iteration))
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    lines = text.rstrip("\n").split("\r")[1:]
    assert [line.count("#") for line in lines] == [*range(2, 21, 2), 20]


def test_the_bar_starts_again_with_a_stage():
    stream = Terminal()
    with Progress(10, stream) as progress:
        for iteration in range(1, 6):
            progress(record(iteration))
        progress(record(6, stage="levels"))
    # Early or not, the end of a fit fills the bar.
    assert [line.count("#") for line in stream.getvalue().split("\r")[1:]][-3:] == [10, 2, 20]


def test_a_shorter_line_covers_a_longer_one():
    stream = Terminal()
    with Progress(10, stream) as progress:
        progress(record(1, noise_std=123456.0))
        progress(record(2))
    first, second, _ = stream.getvalue().rstrip("\n").split("\r")[1:]
    assert len(second) == len(first)


def test_elsewhere_every_tenth_iteration_and_the_last():
    stream = io.StringIO()
    with Progress(100, stream) as progress:
        for iteration in range(1, 24):
            progress(record(iteration))
    lines = stream.getvalue().splitlines()
    assert [line.split()[2] for line in lines] == ["1", "11", "21", "23"]
    assert "\r" not in stream.getvalue()


def test_an_interrupted_line_is_ended():
    stream = Terminal()
    try:
        with Progress(10, stream) as progress:
            progress(record(1))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert stream.getvalue().endswith("\n")
    assert stream.getvalue().count("#") == 2


def test_no_records_no_output():
    stream = Terminal()
    with Progress(10, stream):
        pass
    assert stream.getvalue() == ""


def test_describe():
    full = record(3, noise_std=0.25, seconds=1.26)
    assert describe(full) == (
        "lanam  iteration 3 (smooth)  log evidence -1.0  noise sd 0.25  terms 4  1.3 s"
    )
    assert "noise" not in describe(record(1, noise_std=None))


@pytest.mark.parametrize("family", ["gaussian", "overdispersed", "two", "three"])
def test_all_end_at_the_same_log_evidence(family, capsys):
    """Progress, history, summary and the fitted model."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    rate = np.exp(1.0 + X[:, 0])
    y = {
        "gaussian": rate + rng.normal(size=300),
        "overdispersed": rng.poisson(rate * rng.gamma(0.5, 2.0, 300)),
        "two": rng.random(300) < rate / (1.0 + rate),
        "three": np.digitize(rate + rng.normal(size=300), [2.0, 3.5]),
    }[family]
    if family in ("two", "three"):
        model = LANAMClassifier(verbose=1)
    else:
        model = LANAMRegressor(
            likelihood="poisson" if family == "overdispersed" else "gaussian", verbose=1
        )
    model.fit(X, y)
    shown = capsys.readouterr().err.splitlines()[-1]
    assert f"log evidence {model.log_evidence_:.1f} " in shown
    assert model.history_[-1]["log_evidence"] == pytest.approx(model.log_evidence_)
    assert model.summary().facts["log_evidence"] == model.log_evidence_
