"""Figures and the page of the paper's experiments, on made-up cells."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks import tables  # noqa: E402
from benchmarks.cells import Cell, Store  # noqa: E402
from benchmarks.data.sets import Dataset  # noqa: E402
from benchmarks.experiments.pairs import found_pairs  # noqa: E402
from benchmarks.paper import figures as figures_module  # noqa: E402
from benchmarks.paper.figures import FIGURES  # noqa: E402
from benchmarks.paper.figures.functions import partial_residuals  # noqa: E402
from benchmarks.paper.figures.icu import local_bars  # noqa: E402
from benchmarks.paper.figures.pairs import correlation_of  # noqa: E402
from benchmarks.peers import all_peers  # noqa: E402
from tests.benchmarks.made_up_results import cells  # noqa: E402


def made_up_store(folder):
    """A few cells of every experiment with arrays as the run keeps them."""
    rng = np.random.default_rng(0)
    store = Store(folder)
    grid = np.linspace(0, 1, 11)

    def functions(names, std):
        arrays = {}
        for k, name in enumerate(names):
            arrays |= {f"x_{name}": grid, f"mean_{name}": np.sin(3 * grid + k)}
            arrays[f"std_{name}"] = np.full(len(grid), std)
        return arrays

    def keep(experiment, name, model, arrays, **row):
        base = cells(model, 0.5, name, folds=1, experiment=experiment)[0]
        store.write(Cell(experiment, name, model, 0), base | {"peak_bytes": 2**20} | row, arrays)

    X = rng.random((40, 4))
    toy = {"X": X, "y_train": rng.standard_normal(40), **functions("0123", 0.1)}
    toy |= {f"truth_{d}": grid for d in range(4)}
    errors = {f"rmse_f{d}": 0.1 * d for d in range(1, 5)}
    y = (rng.random(60) < 0.5).astype(float)
    shapes = ("Age", "GCS_last", "BUN_last")
    for experiment, models in (("toy", ("lanam", "ebm")), ("inference", ("lanam", "mc-dropout"))):
        for model in models:
            keep(experiment, "toy", model, toy, **errors)
    for experiment, models in (
        ("icu", ("nam", "lanam", "lanam10-mi")),
        ("depth", ("nam-relu", "lanam")),
    ):
        for model in models:
            arrays = functions(shapes, 0.1 if "lanam" in model else np.nan)
            arrays |= {"y": y, "mean": rng.random(60), "columns": np.array(shapes)}
            arrays |= {
                "patients_mean": rng.standard_normal((5, 3)),
                "patients_std": np.ones((5, 3)) / 9,
            }
            if model == "lanam10-mi":
                information = np.array([[np.nan, 0.2, 0.1], [0.2, np.nan, 0.0], [0.1, 0.0, np.nan]])
                arrays |= {"pair_scores": information, "pairs_active": np.array([[0, 1]])}
            keep(experiment, "physionet2012", model, arrays, auroc=0.8)
    for base, names in (
        ("gap", ("sodium", "chloride", "bicarbonate", "gap")),
        ("physionet2012", ("Na_last", "HCO3_last", "Na-HCO3_last")),
    ):
        keep("redundancy", base, "lanam", functions(names, 0.1), spread_sodium=0.2)
        keep(
            "redundancy", f"{base}-without", "lanam", functions(names[:-1], 0.1), spread_sodium=0.4
        )
    keep("uci", "heart", "lanam", {})
    surface = np.outer(grid - 0.5, grid[:5] - 0.2)
    pairs = {"pair_names": np.array([["slag", "age"]]), "pair0_x": grid, "pair0_y": grid[:5]}
    pairs |= {"pair0_mean": surface, "pair0_std": 0.1 + surface**2, "pair0_rows": X[:, :2]}
    keep("uci", "concrete", "lanam10", pairs, pairs="slag x age")
    return store


def test_pairs_are_kept_with_what_the_strongest_add():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = 2 * X[:, 0] * X[:, 2] + 0.1 * rng.normal(size=200)
    data = Dataset("made up", "regression", X, y, columns=("a", "b", "c"))
    fitted = all_peers()["lanam10"].fit(X, y, "regression", 0, 1)
    row, arrays = found_pairs(fitted, data, X)
    assert row["pairs"].split("; ")[0] == "a x c"
    assert arrays["pair_names"][0].tolist() == ["a", "c"]
    x, z = np.meshgrid(arrays["pair0_x"], arrays["pair0_y"], indexing="ij")
    assert X[:, 0].min() < x.min() < x.max() < X[:, 0].max()
    near = (np.abs(x) < 1) & (np.abs(z) < 1)
    np.testing.assert_allclose(arrays["pair0_mean"][near], (2 * x * z)[near], atol=0.4)
    # surer where the rows are than in a corner
    assert 0 < arrays["pair0_std"][near].mean() < arrays["pair0_std"][0, 0]
    np.testing.assert_array_equal(arrays["pair0_rows"], X[:, [0, 2]])
    # a model without pairs says nothing of them
    plain = all_peers()["lanam"].fit(X, y, "regression", 0, 1)
    assert found_pairs(plain, data, X) == ({}, {})


def test_page_with_every_figure(tmp_path, monkeypatch):
    image = pytest.importorskip("matplotlib.image", reason="figures are drawn by matplotlib")
    # Whether a picture is blank is seen in a small one.
    monkeypatch.setattr(figures_module, "DPI", 40)
    store = made_up_store(tmp_path / "results")
    page, figures = (
        tmp_path / "docs" / "results" / "paper.md",
        tmp_path / "docs" / "assets" / "paper",
    )
    tables.main(["--results", str(store.folder), "--page", str(page), "--figures", str(figures)])
    text = page.read_text()
    assert "Left out" not in text
    for name, *_ in FIGURES:
        assert f"](assets/paper/{name}.png)" in text
        grey = image.imread(figures / f"{name}.png")[..., :3].mean(axis=-1)
        assert 0.01 < (grey < 0.9).mean() < 0.9, f"{name} is blank"
    for heading in ("Conditions", "Not run, and failed", "Targets", "Toy", "UCI", "Intensive care"):
        assert f"### {heading}" in text
    assert len(pd.read_csv(page.with_suffix(".csv"))) == len(list(store.cells()))


def test_figures_whose_cells_are_missing_are_left_out_aloud(tmp_path):
    pytest.importorskip("matplotlib", reason="figures are drawn by matplotlib")
    store = Store(tmp_path)
    store.write(Cell("uci", "heart", "lanam", 0), cells("lanam", 0.5)[0], {})
    stale = tmp_path / "figures" / "toy.png"
    stale.parent.mkdir()
    stale.write_bytes(b"of another run")
    tables.main(["--results", str(tmp_path)])
    text = (tmp_path / "report.md").read_text()
    assert "*Left out: toy (no finished cell of toy).*" in text
    assert not stale.exists()


def test_pictures_of_an_earlier_run_are_kept_when_asked_to(tmp_path):
    store = Store(tmp_path)
    store.write(Cell("uci", "heart", "lanam", 0), cells("lanam", 0.5)[0], {})
    earlier = tmp_path / "figures" / "toy.png"
    earlier.parent.mkdir()
    earlier.write_bytes(b"of an earlier run")
    tables.main(["--results", str(tmp_path), "--keep-figures"])
    text = (tmp_path / "report.md").read_text()
    assert "f4 is zero. Drawn by an earlier run.](figures/toy.png)" in text
    assert "*Left out: depth (no picture in figures).*" in text
    assert earlier.read_bytes() == b"of an earlier run"


def test_a_folder_without_cells_says_what_to_run(tmp_path):
    with pytest.raises(SystemExit, match="has no finished cells"):
        tables.main(["--results", str(tmp_path)])


def test_partial_residuals_take_away_the_other_functions():
    rng = np.random.default_rng(1)
    X = rng.random((50, 2))
    grid = np.linspace(0, 1, 3)
    arrays = {"X": X, "x_0": grid, "mean_0": 2 * grid - 1, "x_1": grid, "mean_1": 3 * grid - 1.5}
    arrays["y_train"] = 7 + (2 * X[:, 0] - 1) + (3 * X[:, 1] - 1.5)
    x, residual = partial_residuals(arrays, "0")
    expected = arrays["y_train"] - arrays["y_train"].mean() - (3 * X[:, 1] - 1.5)
    np.testing.assert_array_equal(x, X[:, 0])
    np.testing.assert_allclose(residual, expected, atol=1e-12)


def test_local_bars_leave_out_what_does_not_stand_out():
    arrays = {
        "columns": np.array(["a", "b", "c", "d"]),
        "patients_mean": np.array([[0.05, -0.5, 0.3, 0.0]]),
        "patients_std": np.array([[0.01, 0.3, 0.1, 0.0]]),
    }
    assert local_bars(arrays, 0, banded=True)[0] == ["c", "a"]
    assert local_bars(arrays, 0, banded=False)[0] == ["b", "c"]


def test_correlation_from_mutual_information():
    rho = 0.6
    information = np.array([[np.nan, -0.5 * np.log(1 - rho**2)], [0.0, np.nan]])
    found = correlation_of(information)
    assert np.isnan(np.diag(found)).all()
    np.testing.assert_allclose([found[0, 1], found[1, 0]], [rho, 0.0], atol=1e-12)


def test_triples_are_no_pairs():
    X = np.random.default_rng(0).uniform(-1, 1, size=(600, 3))
    y = X.prod(axis=1)
    dataset = Dataset("made up", "regression", X, y, columns=("a", "b", "c"))
    fitted = all_peers()["lanam-auto"].fit(X, y, "regression", 0, 1)
    row, arrays = found_pairs(fitted, dataset, X)
    assert "a x b x c" in row["pairs"].split("; ")
    assert arrays["pairs_active"].shape[1] == 2
