"""The benchmark of trust: generators, each section on a few rows, what is kept, and the page."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the benchmark keeps its results in pandas frames")

from benchmarks.cells import Cell, Store  # noqa: E402
from benchmarks.peers import all_peers  # noqa: E402
from benchmarks.trust import __main__ as command  # noqa: E402
from benchmarks.trust import (  # noqa: E402
    bands,
    beyond,
    design,
    few,
    mgcv,
    outliers,
    pairs,
    problems,
    run,
    seeds,
    sets,
    warned,
    wide,
)
from benchmarks.trust.curves import Curve, against_truth  # noqa: E402
from benchmarks.trust.fits import central_share, class_share  # noqa: E402
from benchmarks.trust.section import Plan, finished, one_by_one  # noqa: E402
from benchmarks.trust.sections import SECTIONS  # noqa: E402

# generators


def test_gu_and_wahbas_functions_are_those_of_mgcv():
    x = np.array([0.0, 0.25, 0.5, 1.0])
    f0, f1, f2, f3 = (function(x) for function in problems.GU_WAHBA)
    np.testing.assert_allclose(f0, [0, np.sqrt(2), 2, 0], atol=1e-12)
    np.testing.assert_allclose(f1, np.exp([0, 0.5, 1, 2]))
    np.testing.assert_allclose(f2, [0, 8.8075, 2.7466, 0], atol=1e-3)
    np.testing.assert_array_equal(f3, np.zeros(4))


@pytest.mark.parametrize("name", bands.SETTINGS)
def test_rows_of_a_setting_are_the_same_again_and_have_centred_effects(name):
    first, again = (problems.gu_wahba(bands.SETTINGS[name], 3) for _ in range(2))
    np.testing.assert_array_equal(first.y, again.y)
    np.testing.assert_allclose(first.effects.mean(axis=0), 0, atol=1e-12)
    assert first.X.min() > 0
    assert first.X.max() < 1


def test_noise_and_counts_have_the_spread_they_promise():
    size = 50_000
    for heavy in (False, True):
        rows = problems.gu_wahba(problems.Setting("gaussian", size, heavy=heavy), 0)
        noise = rows.y - rows.effects.sum(axis=1)
        assert noise.std() == pytest.approx(2.0, rel=0.1)
    ratios = []
    for overdispersed in (False, True):
        setting = problems.Setting("poisson", size, overdispersed=overdispersed)
        rows = problems.gu_wahba(setting, 0)
        signal = sum(f(rows.X[:, d]) for d, f in enumerate(problems.GU_WAHBA))
        rate = np.exp(0.2 * signal)
        ratios.append(np.mean((rows.y - rate) ** 2) / np.mean(rate + overdispersed * rate**2 / 2))
    np.testing.assert_allclose(ratios, 1.0, rtol=0.05)


def test_columns_of_a_setting_are_correlated():
    rows = problems.gu_wahba(problems.Setting("gaussian", 20_000, correlation=0.9), 0)
    # of uniform margins of a Gaussian copula (Pearson)
    np.testing.assert_allclose(np.corrcoef(rows.X.T)[0, 1:], 6 / np.pi * np.arcsin(0.45), atol=0.01)


def test_real_columns_have_the_signal_they_promise():
    X, y, X_new, y_new = problems.real_problem(100_000, 4, 10, 0)
    assert (len(X_new), len(y_new)) == (10, 10)
    assert y.var() == pytest.approx(1 + 3 * 0.25, rel=0.02)
    for d, function in enumerate(problems.REAL):
        effect = problems.standardised(function, 0.5)(X[:, d])
        assert (effect.mean(), effect.std()) == pytest.approx((0, 0.5), abs=0.01)


def test_noise_is_of_its_family_and_fresh_rows_are_others():
    for kind, values in (("gaussian", None), ("bernoulli", {0, 1}), ("poisson", None)):
        X, y, X_new, y_new = problems.noise_problem(kind, 40, 3, 50, 1)
        assert (X.shape, X_new.shape, len(y), len(y_new)) == ((40, 3), (50, 3), 40, 50)
        assert values is None or set(y) == values


@pytest.mark.parametrize("name", problems.FEW)
def test_few_rows_have_their_noise(name):
    X, y, *_ = problems.few_problem(name, 20_000, 1, 0)
    noise = y - problems.FEW[name].mean(X)
    assert noise.std() == pytest.approx(problems.FEW[name].noise, rel=0.05)


# measures


def test_a_discrete_model_that_is_right_holds_95_per_cent():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200_000)
    assert class_share(np.full(len(y), 0.5), y) == pytest.approx(0.95, abs=0.002)
    # half of the rows are in the tenth that 0.9 leaves to them, a quarter of which is outside
    assert class_share(np.full(len(y), 0.9), y) == pytest.approx(0.861, abs=0.002)
    assert central_share(np.zeros(9), np.zeros(9)) == 0.0


def test_bands_are_held_against_the_truth():
    rows = problems.gu_wahba(bands.SETTINGS["gaussian-100"], 0)
    exact = [Curve(effect, np.zeros(100), 2.0) for effect in rows.effects.T]
    row = against_truth(rows, exact)
    assert (row["coverage"], row["whole"], row["rmse"]) == (1, 1, 0)
    off = [Curve(effect + 1.0, np.full(100, 0.52), 1.9) for effect in rows.effects.T]
    row = against_truth(rows, off)
    assert row["coverage_f0"] == 1.0  # 1 / 0.52 < 1.96
    assert row["whole_f0"] == 0.0  # but not < 1.9
    assert row["rmse"] == pytest.approx(1.0)


# sections


def small(section, cells):
    return pd.DataFrame(
        [vars(c) | r for c, r in zip(cells, section.measure(cells, Plan()), strict=True)]
    )


def test_bands_of_two_seeds():
    own = [Cell("bands", "gaussian-100", "lanam", seed) for seed in range(2)]
    results = small(bands.SECTION, own)
    assert results["coverage"].between(0.5, 1).all()
    judged = bands.targets(results)
    assert sum(one.holds is not None for one in judged) == 2  # of one setting; no mgcv beside it
    assert "gaussian-100" in "\n".join(bands.tables(results))


@pytest.mark.skipif(mgcv.missing() is not None, reason=f"{mgcv.missing()}")
def test_mgcv_beside_it():
    results = small(bands.SECTION, [Cell("bands", "gaussian-100", "mgcv", 0)])
    assert results["coverage"].between(0.5, 1).all()
    assert results["rmse"].between(0.05, 1).all()


def test_what_mgcv_writes_is_read(tmp_path):
    path = tmp_path / "answer.bin"
    assert mgcv.read_curves(path, 2, 2) is None  # its fit failed
    np.array([1.0, 2, 0.1, 0.2, 2.5, 3, 4, 0.3, 0.4, 2.6]).tofile(path)
    first, second = mgcv.read_curves(path, 2, 2)
    np.testing.assert_array_equal(first.mean, [1, 2])
    np.testing.assert_array_equal(second.std, [0.3, 0.4])
    assert (first.half_width, second.half_width) == (2.5, 2.6)


def test_without_r_mgcv_has_no_cells(monkeypatch):
    monkeypatch.setattr(mgcv, "missing", lambda: "there is no Rscript here")
    assert {cell.model for cell in bands.cells(Plan())} == {"lanam"}


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "poisson"])
def test_pure_noise(kind):
    row = wide.measure_noise(Cell("wide", "tiny", "lanam", 0), kind, 40, 3)
    assert 0.85 < row["coverage"] <= 1
    assert -0.1 < row["excess"] < 0.5
    assert row["active"] <= 3


def test_what_can_be_known_of_pure_noise():
    rows = [
        wide.measure_noise(Cell("wide", "tiny", "mean", s), "gaussian", 40, 3) for s in range(40)
    ]
    assert np.mean([row["coverage"] for row in rows]) == pytest.approx(0.95, abs=0.02)


def test_real_columns_among_noise():
    ours, theirs = (
        wide.measure_real(Cell("wide", wide.THREE, model, 0), 300, 5) for model in ("lanam", "ard")
    )
    assert ours["found"] == 3
    assert ours["noise"] == pytest.approx(1.0, abs=0.2)
    assert theirs["coverage"] > 0.8


def test_few_rows():
    results = small(few.SECTION, [Cell("few", "line-20", m, 0) for m in ("lanam", "ard")])
    assert results["coverage"].between(0.6, 1).all()
    assert "line-20" in "\n".join(few.tables(results))


def test_beyond_the_data():
    results = small(
        beyond.SECTION, [Cell("beyond", name, "lanam", 0) for name in ("line", "outlying")]
    )
    assert (results["growth"] > 1).all()
    judged = beyond.targets(results)
    assert sum(one.holds is not None for one in judged) == 6
    assert "outlying" in "\n".join(beyond.tables(results))


def test_warnings_are_counted_where_they_are_due():
    own = [Cell("warned", name, "lanam", 0) for name in ("separated", "mixed")]
    results = small(warned.SECTION, own)
    assert (results["warnings"] >= 0).all()
    made_up = results.assign(warnings=[1, 0], message=["separated", ""])
    assert [one.holds for one in warned.targets(made_up)] == [True, None, None, True, None]
    made_up = results.assign(warnings=[0, 1], message=["", "all is lost"])
    assert [one.holds for one in warned.targets(made_up)] == [False, None, None, False, None]
    assert "all is lost" in "\n".join(warned.tables(made_up))


def test_a_straight_curve_does_not_bend():
    distance = np.array([0.0, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(beyond.bend(distance, 3 - 2 * distance), 0, atol=1e-12)
    np.testing.assert_allclose(beyond.bend(distance, distance**2), [0, 0, 2, 12])


@pytest.fixture
def data(tmp_path):
    """A folder of one of the paper's sets, of Ames and of a classification set, all made up."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(80, 2)), columns=["a", "b"])
    (tmp_path / "uci").mkdir()
    (tmp_path / "open").mkdir()
    y = frame["a"] + 0.1 * rng.standard_normal(80)
    frame.assign(y=y).to_csv(tmp_path / "uci" / "yacht.csv", index=False)
    frame.assign(y=(y > 0.5).astype(int)).to_csv(tmp_path / "uci" / "heart.csv", index=False)
    ames = frame.assign(zone=np.where(rng.random(80) < 0.5, "N", "S"), y=100 * y)
    ames.loc[3, "zone"] = None
    ames.to_csv(tmp_path / "open" / "ames.csv", index=False)
    return tmp_path


def test_seeds_and_orders(data):
    plan = Plan(data)
    own = [Cell("seeds", "yacht", "lanam", variant) for variant in (0, 2, 4)]
    rows = list(seeds.measure(own, plan))
    results = pd.DataFrame([vars(c) | r for c, r in zip(own, rows, strict=True)])
    assert list(results["variant"]) == ["seed 1", "columns 1", "rows 1"]
    assert results["largest"].iloc[2] < seeds.SAME  # sums in another order
    assert (results["mean"] <= results["largest"]).all()
    assert "yacht" in "\n".join(seeds.tables(results))
    assert sum(one.holds is not None for one in seeds.targets(results)) == 3


def test_a_finer_design_is_the_usual_one_afterwards(data):
    if not design.available():
        pytest.skip("the features of this version are random")
    features = import_module(design.MODULE)
    usual = features.RESOLUTION
    with design.finer():
        assert 2 * usual == features.RESOLUTION
    assert usual == features.RESOLUTION
    (row,) = seeds.measure([Cell("seeds", "yacht", "lanam", 6)], Plan(data))
    assert row["variant"] == "finer"
    assert 0 < row["largest"] < 1


def test_differences_are_in_standard_deviations_of_the_first_fit():
    first = seeds.Predictions(np.zeros(2), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    second = seeds.Predictions(np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 1.5]))
    assert seeds.difference(first, second) == {
        "largest": 0.5,
        "mean": 0.25,
        "band": 0.5,
        "spread": 0.5,
    }


def test_large_tables_are_sampled(data):
    dataset = sets.load(data, "yacht")
    assert seeds.few_rows(dataset) is dataset
    large = replace(dataset, X=np.tile(dataset.X, (50, 1)), y=np.tile(dataset.y, 50))
    assert len(seeds.few_rows(large).y) == seeds.MOST_ROWS


def test_sets_and_interactions(data):
    plan = Plan(data, quick=True)
    own = [Cell("sets", name, m, 0) for name in ("yacht", "heart") for m in ("lanam", "lanam-auto")]
    assert set(own) <= set(sets.cells(plan))
    assert set(own) == set(pairs.cells(plan))
    rows = list(sets.SECTION.measure(own, plan))
    results = pd.DataFrame([vars(c) | r for c, r in zip(own, rows, strict=True)])
    yacht, heart = results[results["set"] == "yacht"], results[results["set"] == "heart"]
    assert yacht["coverage"].between(0.7, 1).all()
    assert (heart["nll_se"] > 0).all()
    assert len(pairs.relative(results)) == 3  # no RMSE of classes
    assert "yacht" in "\n".join([*pairs.tables(results), *sets.tables(results)])
    assert sum(one.holds is not None for one in pairs.targets(results)) == 2


def test_runs_are_compared_fold_by_fold():
    before = pd.DataFrame(
        {"set": "yacht", "model": "lanam", "fold": range(5), "nll": [1.0, 2, 3, 4, 5]}
    )
    allowed = np.std(before["nll"], ddof=1) / np.sqrt(5) / 2
    for change, verdict in ((0.99 * allowed, "| met |"), (1.01 * allowed, "| **worse** |")):
        now = before.assign(nll=before["nll"] + change)
        text = sets.compare(now, before)
        assert verdict.strip("| ") in text
        assert f"{change:+.4f} ± 0.0000" in text


def test_ames_and_gross_errors(data):
    plan = Plan(data, quick=True)
    own = [Cell("outliers", name, "lanam-auto", 0) for name in ("ames", "yacht-00", "yacht-10")]
    assert set(own) <= set(outliers.cells(plan))
    rows = list(outliers.SECTION.measure(own, plan))
    results = pd.DataFrame([vars(c) | r for c, r in zip(own, rows, strict=True)])
    assert "error" not in results
    assert results["outside"].iloc[0] == 0
    known = outliers.rises(results)
    assert list(known["share"]) == [10]
    text = "\n".join(outliers.tables(results))
    assert "Ames" in text
    assert "yacht, 10%" in text
    assert any(one.holds is not None for one in outliers.targets(results))


def test_gross_errors_are_in_training_rows_only(data):
    dataset = sets.load(data, "yacht")
    train = np.arange(20, 80)
    dirty = outliers.contaminated(dataset, train, 0.1, 0)
    changed = np.flatnonzero(dirty.y != dataset.y)
    assert len(changed) == 6
    assert set(changed) <= set(train)
    off = np.abs(dirty.y[changed] - dataset.y[train].mean()) / dataset.y[train].std()
    assert off.min() >= 10
    assert off.max() <= 20


def test_the_range_is_extended_by_half():
    assert outliers.allowed_range(np.array([0.0, 2.0])) == (-1.0, 3.0)


def test_catboost_takes_words_and_missing_cells(data):
    peer = all_peers()["catboost"]
    if peer.missing():
        pytest.skip(peer.missing())
    frame = pd.read_csv(data / "open" / "ames.csv")
    X, y = frame.iloc[:, :-1], frame["y"].to_numpy()
    fitted = peer.fit(X, y, "regression", 0, 1)
    prediction = fitted.predict(X)
    assert np.corrcoef(prediction.mean, y)[0, 1] > 0.8
    assert (prediction.std > 0).all()
    counts = peer.fit(X, np.arange(80) % 4, "counts", 0, 1).predict(X)
    assert counts.mean.min() > 0
    classes = peer.fit(X, np.arange(80) % 3, "multiclass", 0, 1).predict(X)
    np.testing.assert_allclose(classes.mean.sum(axis=1), 1)


# what is kept


def test_a_failed_cell_is_told_and_does_not_lose_the_others():
    def measure(cell, plan):
        if cell.fold == 1:
            raise ValueError("no such thing")
        return {"coverage": 0.95}

    cells = [Cell("few", "line-10", "lanam", seed) for seed in range(3)]
    rows = list(one_by_one(measure)(cells, Plan()))
    assert [row.get("error") for row in rows] == [None, "ValueError: no such thing", None]
    results = pd.DataFrame([vars(cell) | row for cell, row in zip(cells, rows, strict=True)])
    assert len(finished(results)) == 2


def test_batches_are_of_one_set_and_model():
    cells = few.cells(Plan(seeds=30))
    made = list(run.batches(few.SECTION, cells, Plan(), None, ""))
    assert {cell for batch in made for cell in batch.cells} == set(cells)
    for batch in made:
        assert len({(cell.set, cell.model) for cell in batch.cells}) == 1
        assert len(batch.cells) <= few.SECTION.batch


def test_the_command_measures_reports_and_goes_on(tmp_path, capsys):
    arguments = [
        "--only",
        "few",
        "--sets",
        "line-10",
        "--models",
        "ard",
        "--out",
        str(tmp_path / "a"),
    ]
    command.main([*arguments, "--seeds", "2", "--jobs", "0", "--page", str(tmp_path / "page")])
    assert "| line-10 |" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "a" / "few.csv")) == 2
    assert (tmp_path / "page" / "few.md").read_text().count("### Targets") == 1
    store = Store(tmp_path / "a")
    options = command.parse([*arguments, "--seeds", "3"])
    todo = command.planned(few.SECTION, options, Plan(seeds=3), store)
    assert todo == [Cell("few", "line-10", "ard", 2)]


def test_sections_that_are_not_known_are_refused():
    with pytest.raises(SystemExit, match="unknown sections"):
        command.chosen(command.parse(["--only", "nothing"]))


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_has_targets_before_it_was_run(name):
    nothing = pd.DataFrame({"set": [], "model": [], "fold": []})
    assert all(one.holds is None for one in SECTIONS[name].targets(nothing))
