"""A seeded few fits of the fuzzer; ``python -m tests.fuzzing.fits`` makes more."""

import warnings

import numpy as np
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from tests.fuzzing import fits


def test_every_fit_is_refused_or_works():
    failures = []
    counts, _ = fits.run(range(10), 0, 50, report=failures.append)
    assert not failures
    assert counts["works"] > 5


def test_what_failed_once():
    """The noise of missing values of a target near 1e80, whose variance a file did not take."""
    failures = []
    fits.run([1581], 11, report=failures.append)
    assert not failures


def test_the_cases_are_of_every_kind():
    cases = [fits.case(k, 0, 50) for k in range(150)]
    relatives = {name for others in fits.RELATIVES.values() for name in others}
    assert {one.family for one in cases} == {*fits.FAMILIES, *relatives}
    assert {str(one.interactions)[0] for one in cases} == {"a", "0", "2", "[", "1"}
    kinds = {name.rsplit(" ", 1)[0] for one in cases for name in one.X}
    assert kinds == {"copy", *(kind.__name__ for kind in fits.COLUMNS)}
    missing = [share for one in cases for share in one.X.isna().mean()]
    assert max(missing) == 1.0
    assert sum(0.4 < share < 0.6 for share in missing) > 10
    for attribute in ("sample_weight", "exposure"):
        assert any(attribute in one.roles for one in cases)
    assert {one.from_files for one in cases} == {True, False}
    assert any(fits.case(k, 0, 700).lowered for k in range(10))


def test_a_failure_is_reported_with_its_number(monkeypatch):
    lines = []
    monkeypatch.setattr(
        LANAMRegressor, "predict", lambda *_, **__: (np.full(2, np.nan), np.ones(2))
    )
    number = next(k for k in range(50) if fits.case(k, 0, 50).family == "gaussian")
    counts, _ = fits.run([number], 0, 50, report=lines.append)
    assert counts == {"FAILED": 1}
    assert lines[0].startswith(f"--seed 0 --only {number} --rows 50  # gaussian, 50 rows")
    assert "predictions: 2 of 2 are nan" in lines[0]


def test_warnings_of_other_libraries_are_failures():
    with fits.strict():
        with pytest.raises(RuntimeWarning, match="invalid value"):
            np.log(np.array([-1.0]))
        warnings.warn("of lanam, at the line of its user", UserWarning, stacklevel=1)


def test_errors_of_other_libraries_are_no_refusals():
    def error_of(function):
        try:
            function()
        except ValueError as error:
            return error

    singular = error_of(lambda: np.linalg.inv(np.zeros((2, 2))))
    assert isinstance(singular, ValueError)
    assert not fits.is_refusal(singular)
    assert not fits.is_refusal(error_of(lambda: np.zeros(2).reshape(3)))
    one_class = error_of(lambda: LANAMClassifier().fit(np.arange(9.0)[:, None], ["a"] * 9))
    assert fits.is_refusal(one_class)


def test_the_command_counts(capsys):
    assert fits.main(["--n", "0"]) == 0
    assert capsys.readouterr().out.startswith("0 refused, 0 works, 0 FAILED\n")
