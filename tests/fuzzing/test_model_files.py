"""A seeded few files of the structure-aware fuzzer; ``python -m tests.fuzzing.model_files`` makes more."""

import numpy as np
import pytest

from tests.fuzzing import model_files
from tests.fuzzing.usage import WrongAnswerError, require_ordered, use
from tests.storage.cases import case

#: Quick to load and to use: golden files of every version, and the smallest model of each family.
SOURCES = (*(path.stem for path in model_files.GOLDEN), "levels", "truth", "calibrated_classes")


@pytest.mark.filterwarnings("ignore")
def test_every_file_is_refused_or_works():
    failures = []
    counts = model_files.run(range(60), "tests", SOURCES, report=failures.append)
    assert not failures
    assert counts["refused"] > 20
    assert counts["works"] > 5


def test_wrong_answers_are_found(monkeypatch):
    model, _ = case("levels")
    term = model._model.terms[-1]
    monkeypatch.setitem(vars(term), "mean", term.mean * float("nan"))
    with pytest.raises(WrongAnswerError, match=r"predictions: .* are nan"):
        use(model)


def test_exchanged_ends_are_found():
    with pytest.raises(WrongAnswerError, match="a lower end above"):
        require_ordered("x", np.array([[1.0, 0.5]]))


def test_the_command_counts(capsys):
    assert model_files.main(["--n", "0"]) == 0
    assert capsys.readouterr().out == "0 refused, 0 works, 0 FAILED\n"
