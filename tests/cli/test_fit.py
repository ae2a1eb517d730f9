"""lanam fit: decisions, output and models."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest

from lanam import LANAMRegressor, coverage_report, load
from lanam.cli.deciding import (
    decide_task,
    find_target,
    hold_out,
    read_interactions,
    split_names,
    target_values,
)
from lanam.cli.errors import CLIError, UsageError
from lanam.families import BERNOULLI
from lanam.parameters import PAPER

FIT = ("--interactions", "0")


def small(path, n_rows=60, **columns):
    """A small file, in which y depends on x."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=n_rows).round(3)
    table = {"x": x, "y": (x + 0.1 * rng.normal(size=n_rows)).round(4), **columns}
    arrow_csv.write_csv(pa.table(table), path)
    return table


class TestLeadingZeros:
    @pytest.fixture
    def codes(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        zips = [f"{k % 7 * 300:05d}" for k in range(60)]  # 00000, 00300, ..., 01800
        table = {
            "zip": zips,
            "plain": [str(10 + k % 7) for k in range(60)],
            "zero": [str(k % 2 * 10) for k in range(60)],
            "share": [f"0{k % 7}.5" for k in range(60)],
        }
        small("a.csv", **table)
        # As people write them: without quotes.
        Path("a.csv").write_text(Path("a.csv").read_text().replace('"', ""))

    def test_numeric_columns_are_reported(self, lanam, codes):
        done = lanam("fit", "a.csv", *FIT, "-o", "m.lanam", "--max-iter", 5)
        assert (
            "column 'zip' is read as numeric, but has leading zeros ('00000'): if its values are codes, "
            "use --categorical 'zip'" in done.err
        )
        assert done.err.count("leading zeros") == 1

    @pytest.mark.parametrize("option", ["--categorical", "--drop", "--weight", "--target"])
    def test_other_roles_are_not_reported(self, lanam, codes, option):
        more = ["--target", "y"] if option != "--target" else []
        if option == "--weight":
            Path("a.csv").write_text(Path("a.csv").read_text().replace(",00000,", ",00100,"))
        arguments = ("fit", "a.csv", *FIT, "-o", "m.lanam", "--max-iter", 5, option, "zip", *more)
        assert "leading zeros" not in lanam(*arguments).err


class TestModel:
    def test_same_as_in_python(self, lanam, place):
        drop = "id,events,ill,colour,hours"
        done = lanam(
            *("fit", "rides.csv", "-t", "price", "--drop", drop, "--categorical", "zone"),
            *(
                "--test-share",
                0.25,
                "--random-state",
                7,
                "--max-iter",
                60,
                "-o",
                "m.lanam",
                "--json",
            ),
        )
        table = arrow_csv.read_csv(
            "rides.csv", convert_options=arrow_csv.ConvertOptions(strings_can_be_null=True)
        )
        X = table.select(["city", "age", "celsius", "zone", "holiday"])
        y = table["price"].to_numpy()
        train, test = hold_out(None, len(y), [0.25], 7)
        twin = LANAMRegressor(categorical_features=["zone"], max_iter=60, random_state=7)
        twin.fit(X.take(train), y[train])
        model = load("m.lanam")
        np.testing.assert_array_equal(model.predict(X), twin.predict(X))
        assert (len(train), len(test)) == (done.document["n_train"], done.document["n_test"])
        own = coverage_report(twin, X.take(test), y[test])
        assert done.document["held_out"]["scores"] == pytest.approx(own.scores)
        assert done.document["held_out"]["performance"] == own.performance.to_dict()
        assert done.document["summary"]["log_evidence"] == pytest.approx(twin.log_evidence_)
        assert model.metadata_["target"] == "price"
        assert model.metadata_["task"] == "regression"

    def test_frames_in_python_are_not_of_the_library_that_reads_files(self, place):
        pd = pytest.importorskip("pandas")
        model = load("price.lanam")
        frames = (model.explain_global(), model.summary(), model.interaction_scores_)
        assert all(isinstance(each.to_frame(), pd.DataFrame) for each in frames)

    def test_parquet(self, lanam, place):
        table = arrow_csv.read_csv("rides.csv").select(["age", "zone", "price"])
        parquet.write_table(table, "rides.parquet")
        arrow_csv.write_csv(table, "few.csv")
        for data in ("rides.parquet", "few.csv"):
            lanam("fit", data, "-t", "price", *FIT, "-q", "-o", f"{data}.lanam")
        X = table.select(["age", "zone"])
        one, other = load("rides.parquet.lanam"), load("few.csv.lanam")
        np.testing.assert_array_equal(one.predict(X), other.predict(X))

    def test_weights_and_exposures_reach_the_fit(self, lanam, place, tmp_path):
        small("w.csv", w=np.tile([1.0, 0.0], 30))
        lanam("fit", "w.csv", "--weight", "w", "--test-share", 0, "-q", *FIT, "-o", "w.lanam")
        model = load("w.lanam")
        assert model.summary().facts["n_rows"] == 30
        assert list(model.feature_names_in_) == ["x"]
        assert model.metadata_["weight"] == "w"
        counts = load("events.lanam")
        assert counts.metadata_["exposure"] == "hours"
        assert "hours" not in counts.feature_names_in_
        assert np.isfinite(counts.dispersion_)

    def test_calibration(self, lanam, place):
        drop = "id,events,ill,colour,hours"
        done = lanam(
            *("fit", "rides.csv", "-t", "price", "--drop", drop, *FIT, "--calibrate-share", 0.3),
            *("--json", "-o", "m.lanam"),
        )
        assert done.document["n_calibrate"] == 90
        assert load("m.lanam").calibration_.scores.size == 90
        assert done.document["held_out"]["rows"][0]["calibrated_observed"] is not None

    def test_interactions(self, lanam, place):
        rest = ("-t", "price", "--drop", "id,events,ill,colour,hours,city,holiday", "-q")
        lanam("fit", "rides.csv", *rest, "--interactions", "age:zone", "-o", "m.lanam")
        assert load("m.lanam").get_params()["interactions"] == [("age", "zone")]
        lanam("fit", "rides.csv", *rest, "--interactions", "2", "-o", "two.lanam")
        assert load("two.lanam").get_params()["interactions"] == 2

    def test_noise(self, lanam, place):
        small("a.csv")
        lanam("fit", "a.csv", *FIT, "--noise", "constant", "-q", "-o", "m.lanam")
        assert load("m.lanam").get_params()["noise"] == "constant"
        lanam("fit", "a.csv", *FIT, "-q", "-o", "auto.lanam")
        assert load("auto.lanam").get_params()["noise"] == "auto"
        rest = ("-t", "ill", "--drop", "id,events,price,colour", "-o", "c.lanam")
        done = lanam("fit", "rides.csv", *rest, "--noise", "constant", code=2)
        assert "--noise is for --task regression, and the task is classification" in done.err

    def test_reproducible(self, lanam, place):
        small("a.csv")
        for name in "ab":
            lanam("fit", "a.csv", *FIT, "-q", "-o", f"{name}.lanam")
        one, other = (load(f"{name}.lanam").summary().to_dict() for name in "ab")
        assert one == other


class TestOutput:
    def test_results_and_notes_are_separate_streams(self, lanam, place):
        small("a.csv")
        done = lanam("fit", "a.csv", *FIT, "-o", "m.lanam")
        assert done.out.startswith("LANAMRegressor fitted to 48 rows of 1 columns")
        assert "On 12 held-out rows:" in done.out
        assert "target: 'y', by its name" in done.err
        assert "task: regression, 'y' is numeric" in done.err
        assert "lanam  iteration 1 (smooth)" in done.err  # plain lines in a pipe
        assert "\r" not in done.err
        assert "\x1b" not in done.out + done.err
        assert "written: m.lanam" in done.err
        assert load("m.lanam").get_params()["verbose"] == 0  # that was for this fit

    def test_quiet(self, lanam, place):
        small("a.csv")
        done = lanam("fit", "a.csv", *FIT, "--quiet", "-o", "m.lanam")
        assert done.out == done.err == ""

    def test_json_is_one_document(self, lanam, place):
        small("a.csv")
        done = lanam("fit", "a.csv", *FIT, "--json", "-o", "m.lanam")
        assert done.err == ""
        assert done.document["model"] == "m.lanam"
        assert done.document["task"] == "regression"
        assert "NaN" not in done.out
        json.loads(done.out, parse_constant=pytest.fail)

    def test_no_test_rows(self, lanam, place):
        small("a.csv")
        done = lanam("fit", "a.csv", *FIT, "--test-share", 0, "-o", "m.lanam")
        assert "held-out rows" not in done.out
        assert "LANAMRegressor fitted to 60 rows" in done.out

    def test_no_convergence_names_the_option(self, lanam, place):
        done = lanam(
            *("fit", "rides.csv", "-t", "price", "--drop", "id,events,ill,colour,hours", *FIT),
            *("--max-iter", 1, "-o", "m.lanam"),
        )
        assert "warning: The log evidence was still rising after --max-iter 1" in done.err
        assert "Raise --max-iter." in done.err

    def test_rows_without_a_target(self, lanam, place):
        small("a.csv")
        lines = Path("a.csv").read_text().splitlines()
        lines[5] = lines[5].split(",")[0] + ","
        lines[9] = lines[9].split(",")[0] + ",NA"
        Path("a.csv").write_text("\n".join(lines))
        done = lanam("fit", "a.csv", *FIT, "--test-share", 0, "-o", "m.lanam")
        assert "2 of 60 rows have no target and are left out" in done.err
        assert "fitted to 58 rows" in done.out

    def test_missing_markers_are_saved_with_the_model(self, lanam, place):
        lines = ["x,y"] + [f"{'?' if k % 5 == 0 else k},{k}" for k in range(60)]
        Path("a.csv").write_text("\n".join(lines))
        lanam("fit", "a.csv", "--missing", "?", *FIT, "-q", "-o", "m.lanam")
        assert load("m.lanam").summary().facts["n_with_missing"] == 1
        done = lanam("predict", "m.lanam", "a.csv", "-o", "-")
        assert done.out.count("\n") == 61


class TestTarget:
    def test_by_its_name(self):
        assert find_target(["a", "Target"], None) == ("Target", "by its name")
        with pytest.raises(UsageError, match=r"--target with one of y, target"):
            find_target(["y", "target"], None)  # which?

    def test_prompt(self):
        assert find_target(["a", "b"], None, ask=lambda names: "b") == ("b", "as requested")
        with pytest.raises(UsageError, match="the answer names the column 'c'"):
            find_target(["a", "b"], None, ask=lambda names: "c")

    def test_by_number_at_a_terminal(self, monkeypatch, capsys):
        from lanam.cli import fit

        monkeypatch.setattr("typer.prompt", lambda *_, **__: " 2 ")
        assert fit._ask(["age", "bmi"]) == "bmi"
        assert capsys.readouterr().err.splitlines() == ["   1  age", "   2  bmi"]

    def test_in_a_pipe_the_error_names_the_columns(self, lanam, place):
        done = lanam("fit", "rides.csv", "-o", "m.lanam", code=2)
        assert done.err == (
            "lanam fit: error: which column is the target? Use --target with one of id, city, age, "
            "celsius, zone, holiday, hours, price, events, ill, colour\n"
        )

    def test_a_misspelt_name(self, lanam, place):
        done = lanam("fit", "rides.csv", "-t", "prize", "-o", "m.lanam", code=2)
        assert (
            "--target names the column 'prize', which the table does not have; did you mean 'price'?"
            in done.err
        )


class TestTask:
    @pytest.mark.parametrize(
        ("values", "task", "why"),
        [
            (["a", "b", "a"], "classification", "strings with 2 distinct values"),
            ([True, False, True], "classification", "is boolean"),
            ([0, 1, 1], "classification", "use --task regression to treat it as numeric"),
            (
                [1.5, 2.5, 1.5],
                "regression",
                "numeric with two distinct values that are no integers",
            ),
            (
                [1, 2, 3],
                "regression",
                "3 distinct integers.*--task classification.*--task counts",
            ),
            ([1.0, 2.0, 3.0], "regression", "3 distinct integers"),
            (list(range(11)), "regression", "'y' is numeric$"),
            ([0.5, 1.0, 2.0], "regression", "'y' is numeric$"),
        ],
    )
    def test_inferred(self, values, task, why):
        decision = decide_task(pa.chunked_array([values]), "y", None)
        assert decision.task == task
        assert re.search(why, decision.why)

    def test_requested(self):
        column = pa.chunked_array([[0, 1, 1]])
        for task in ("regression", "classification", "counts"):
            assert decide_task(column, "y", task).task == task

    def test_errors(self):
        with pytest.raises(CLIError, match="is constant"):
            decide_task(pa.chunked_array([[1, 1]]), "y", None)
        with pytest.raises(
            CLIError, match="--task counts needs a numeric target, and 'y' holds strings"
        ):
            decide_task(pa.chunked_array([["a", "b"]]), "y", "counts")
        with pytest.raises(
            CLIError, match=r"'y' holds 1\.5: classes are integers.*--task regression"
        ):
            decide_task(pa.chunked_array([[1.0, 1.5]]), "y", "classification")
        names = pa.chunked_array([[f"n{k}" for k in range(51)]])
        with pytest.raises(CLIError, match=r"51 distinct values: is it the right column\?"):
            decide_task(names, "y", None)
        assert decide_task(names, "y", "classification").task == "classification"

    def test_large_labels_stay_distinct(self):
        labels = [2**60, 2**60 + 1]
        assert target_values(pa.chunked_array([labels]), BERNOULLI).tolist() == labels

    def test_labels_of_a_fit(self, home):
        assert load(home / "ill.lanam").classes_.tolist() == ["no", "yes"]
        assert load(home / "colour.lanam").classes_.tolist() == ["blue", "green", "red"]

    def test_numbers_as_classes(self, lanam, place):
        small("a.csv", z=np.tile([0, 1, 2], 20))
        lanam("fit", "a.csv", "-t", "z", "--task", "classification", *FIT, "-q", "-o", "m.lanam")
        labels = load("m.lanam").classes_
        assert labels.tolist() == [0, 1, 2]
        assert labels.dtype.kind == "i"


class TestHeldOutRows:
    def test_shares(self):
        train, test, calibrate = hold_out(None, 100, [0.2, 0.3], 1)
        assert [len(part) for part in (train, test, calibrate)] == [50, 20, 30]
        assert sorted([*train, *test, *calibrate]) == list(range(100))
        assert not np.array_equal(train, hold_out(None, 100, [0.2, 0.3], 2)[0])

    def test_stratified_and_every_class_keeps_a_training_row(self):
        labels = np.array(["a"] * 80 + ["b"] * 19 + ["c"])
        train, test = hold_out(labels, 100, [0.2], 0)
        assert [(labels[test] == name).sum() for name in "abc"] == [16, 3, 0]
        assert (labels[train] == "c").sum() == 1

    def test_too_few_training_rows(self, lanam, place):
        done = lanam(
            *("fit", "rides.csv", "-t", "price", "--test-share", 0.5, "--calibrate-share", 0.5),
            *("-o", "m.lanam"),
            code=2,
        )
        assert "leave too few rows" in done.err


class TestColumnOptions:
    def test_pairs(self):
        assert read_interactions("auto", []) == "auto"
        assert read_interactions("0", []) == 0
        assert read_interactions("a:b:c", ["a", "b:c"]) == [("a", "b:c")]
        assert read_interactions("a:b,b:c", ["a", "b", "c"]) == [("a", "b"), ("b", "c")]
        assert read_interactions("a: b :c,b:c", ["a", "b", "c"]) == [("a", "b", "c"), ("b", "c")]
        assert read_interactions("a:b:c:d", ["a", "b:c", "d"]) == [("a", "b:c", "d")]
        with pytest.raises(UsageError, match="use auto, a number, or pairs"):
            read_interactions("some", ["a"])
        with pytest.raises(UsageError, match="--interactions names the column 'x'"):
            read_interactions("a:x", ["a", "b"])

    def test_names(self):
        assert split_names(["a", "b, c", "a"], ["a", "b", "c"], "--drop") == ["a", "b", "c"]
        assert split_names(["a,b", "c,d"], ["a", "b", "c,d"], "--drop") == ["a", "b", "c,d"]
        assert split_names(None, ["a"], "--drop") == []
        with pytest.raises(UsageError, match="--drop names the column 'd'"):
            split_names(["a,d"], ["a"], "--drop")

    def test_exposure_needs_counts(self, lanam, place):
        done = lanam(
            "fit", "rides.csv", "-t", "price", "--exposure", "hours", "-o", "m.lanam", code=2
        )
        assert "use --task counts as well" in done.err

    def test_no_features_left(self, lanam, place):
        small("a.csv")
        done = lanam("fit", "a.csv", "--drop", "x", "-o", "m.lanam", code=1)
        assert "a.csv has no column to predict 'y' from" in done.err
        assert not os.path.exists("m.lanam")


def test_a_file_that_changes_during_the_fit(lanam, tmp_path, monkeypatch):
    """After its rows have been read: the model is kept, and the user told."""
    monkeypatch.chdir(tmp_path)
    small("a.csv")
    usual = LANAMRegressor.fit

    def fit(*args, **kwargs):
        os.utime("a.csv", (1, 1))
        return usual(*args, **kwargs)

    assert "changed" not in lanam("fit", "a.csv", *FIT, "-o", "m.lanam", "--max-iter", 5).err
    monkeypatch.setattr(LANAMRegressor, "fit", fit)
    done = lanam("fit", "a.csv", *FIT, "-o", "n.lanam", "--max-iter", 5)
    assert "warning: a.csv was changed or replaced during the fit: the model is that" in done.err
    assert load("n.lanam").n_features_in_ == 1


def test_the_papers_system(lanam, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)).round(2)
    kind = np.where(x[:, 1] > 0, "a", "b")
    y = np.sin(x[:, 0]) + (kind == "a") + 0.1 * rng.normal(size=80)
    table = pa.table({"x": x[:, 0], "kind": kind, "y": y})
    arrow_csv.write_csv(table, "a.csv")
    done = lanam("fit", "a.csv", "--paper", "--max-iter", 2, "-o", "m.lanam", "--json")
    model = load("m.lanam")
    set_ = model.get_params()
    papers = {name: value for name, value in PAPER.items() if name in set_}
    assert {name: set_[name] for name in papers} == papers
    assert json.loads(done.out)["n_train"] == 64
    lanam("fit", "a.csv", "--paper", "--interactions", 1, "--max-iter", 1, "-o", "one.lanam")
    assert load("one.lanam").get_params()["interactions"] == 1
