"""The benchmark of survival models: simulations with known curves, and its tables."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks import survival  # noqa: E402
from benchmarks.data.survival import SIMULATIONS, load  # noqa: E402


@pytest.mark.parametrize("simulation", SIMULATIONS, ids=lambda simulation: simulation.name)
def test_simulated_incidence_is_that_of_many_subjects(simulation):
    X = np.array([[0.5, -0.5, 0.0, 0.0]])
    rng = np.random.default_rng(0)
    # The same subject many times, without censoring.
    early, late = simulation.early(X)[0], simulation.late(X)[0]
    first = rng.exponential(1.0 / early.sum(), 20_000)
    second = simulation.change + rng.exponential(1.0 / late.sum(), 20_000)
    time = np.where(first < simulation.change, first, second)
    shares = np.where((time < simulation.change)[:, None], early / early.sum(), late / late.sum())
    for at in (0.3, 1.0):
        expected = ((time <= at)[:, None] * shares).mean(axis=0)
        np.testing.assert_allclose(simulation.incidence(X, at)[0], expected, atol=0.015)


def test_drawn_subjects_have_causes_and_times():
    drawn = SIMULATIONS[-1].draw(500, 0)
    assert set(drawn.event) == {0, 1, 2}
    assert (drawn.time > 0.0).all()
    part = drawn.part(np.arange(10, 20))
    np.testing.assert_array_equal(part.time, drawn.time[10:20])


def test_data_sets_are_read(tmp_path):
    (tmp_path / "survival").mkdir()
    table = pd.DataFrame({"trt": [1, 2], "age": [60, 70], "time": [0, 5], "status": [1, 0]})
    table.to_csv(tmp_path / "survival" / "veteran.csv", index=False)
    cohort = load("veteran", tmp_path)
    assert list(cohort.X) == ["trt", "age"]
    assert cohort.time.tolist() == [0.5, 5.0]  # a time of zero was rounded


def test_tables_are_made_of_the_results(tmp_path, capsys):
    row = {"set": "veteran", "model": "lanam", "seconds": 1.0, "uno": 0.7, "ibs": 0.15, "auc": 0.8}
    scores = [{**row, "fold": k, "own": "0.2 0.7", "events": "1 0"} for k in range(2)]
    pd.DataFrame(scores).to_csv(tmp_path / "quality.csv", index=False)
    pd.DataFrame(scores[:1]).to_csv(tmp_path / "external.csv", index=False)
    covered = [{"simulation": "competing", "seed": 0, "survival": 0.95, "incidence 1": 0.96}]
    pd.DataFrame(covered).to_csv(tmp_path / "coverage.csv", index=False)
    large = [{"fit": "curves", "subjects": 1000, "seconds": 2.0, "peak GB": 0.5}]
    pd.DataFrame(large).to_csv(tmp_path / "scale.csv", index=False)
    page = tmp_path / "page.md"
    survival.main(["--tables-only", "--out", str(tmp_path), "--page", str(page)])
    text = page.read_text()
    assert text.strip() in capsys.readouterr().out
    for words in ("Uno's C", "D-calibration", "validated on GBSG", "Coverage of 95%", "1,000"):
        assert words in text
