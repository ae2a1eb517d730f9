"""Sets from a directory or from OpenML; what OpenML sends is made up here, in its format."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.data import sources
from benchmarks.data.sets import ALL_SETS, task_of
from benchmarks.data.sources import OPENML, Facts, load


def target(facts: Facts) -> np.ndarray:
    """A target with exactly the mean and standard deviation, or the ones, that the set must have."""
    if facts.ones is not None:
        return (np.arange(facts.rows) < facts.ones).astype(int)
    y = np.random.default_rng(0).standard_normal(facts.rows)
    return facts.mean + facts.std * (y - y.mean()) / y.std(ddof=1)


def openml_frame(name: str) -> pd.DataFrame:
    """A table as OpenML has it: codes and classes are categories of strings, targets anywhere."""
    entry = OPENML[name]
    columns = entry.facts.columns - len(entry.constants)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        rng.standard_normal((entry.facts.rows, columns)),
        columns=[f"V{k + 1}" for k in range(columns)],
    )
    frame["V2"] = pd.Categorical(rng.integers(1, 4, len(frame)).astype(str))
    y = target(entry.facts)
    if entry.one is not None:
        other = {"1": "0", "2": "1", "present": "absent", "g": "b"}[entry.one]
        y = pd.Categorical(np.where(y == 1, entry.one, other))
    frame.insert(1, entry.target, y)
    for column in entry.drop:
        frame.insert(0, column, "Chevrolet" if "name" in column else 1.0)
    return frame


@pytest.fixture
def openml(monkeypatch):
    """OpenML with made-up tables, which a test may change; remembers what it was asked for."""
    tables = {entry.number: openml_frame(name) for name, entry in OPENML.items()}
    asked = []

    def fetch(*, data_id, target_column, as_frame, data_home):
        assert target_column is None
        assert as_frame is True
        asked.append((data_id, data_home))
        return SimpleNamespace(frame=tables[data_id])

    monkeypatch.setattr(sources, "fetch_openml", fetch)
    return SimpleNamespace(tables=tables, asked=asked)


@pytest.mark.parametrize("name", OPENML)
def test_every_entry_becomes_a_table_of_numbers(openml, tmp_path, name, capsys):
    entry = OPENML[name]
    data = load(name, None, tmp_path)
    assert openml.asked == [(entry.number, str(tmp_path))]
    assert capsys.readouterr().err == f"{name}: from OpenML, number {entry.number}\n"
    assert (data.name, data.task, data.n_train) == (name, task_of(name), None)
    assert data.X.shape == (entry.facts.rows, entry.facts.columns)
    assert data.X.dtype == float
    assert not np.isnan(data.X).any()
    assert set(np.unique(data.X[:, 1])) == {1.0, 2.0, 3.0}  # the codes
    np.testing.assert_allclose(data.y, target(entry.facts))
    assert data.y.dtype == (int if data.task == "classification" else float)


def test_every_set_of_the_paper_has_a_source():
    assert {*OPENML, *sources.ELSEWHERE} >= set(ALL_SETS)


def test_autompg_loses_its_rows_with_gaps_and_the_name(openml, tmp_path):
    whole = openml.tables[196]
    gaps = whole.iloc[:6].assign(V3=np.nan)
    openml.tables[196] = pd.concat([gaps, whole], ignore_index=True)
    data = load("autompg", None, tmp_path)
    assert data.X.shape == (392, 7)
    np.testing.assert_array_equal(data.X[:, 2], whole["V3"])


def test_naval_gets_its_constant_columns_back(openml, tmp_path):
    X = load("naval", None, tmp_path).X
    assert set(X[:, 8]) == {288.0}
    assert set(X[:, 11]) == {0.998}
    frame = openml.tables[44969]
    np.testing.assert_array_equal(X[:, [7, 9, 12, 15]], frame[["V8", "V9", "V11", "V14"]])
    # a copy that has them is left as it is
    openml.tables[44969] = frame.assign(V15=1.0, V16=2.0)
    X = load("naval", None, tmp_path).X
    assert X.shape == (11934, 16)
    assert set(X[:, 15]) == {2.0}


def test_names_differ_in_case_and_punctuation(openml, tmp_path):
    openml.tables[42370] = openml.tables[42370].rename(
        columns={"Residuary.resistance": "residuary_resistance"}
    )
    assert load("yacht", None, tmp_path).X.shape == (308, 6)


def test_another_table_is_refused(openml, tmp_path):
    openml.tables[53] = openml.tables[53].iloc[1:]
    message = (
        r"number 53 \(heart-statlog\) is not the paper's heart: expected 270 rows, 13 columns, "
        r"120 ones, came 269 rows, 13 columns, 119 ones; --data DIR with uci/heart\.csv"
    )
    with pytest.raises(ValueError, match=message):
        load("heart", None, tmp_path)
    openml.tables[53] = openml_frame("heart").assign(more=1.0)
    with pytest.raises(ValueError, match="came 270 rows, 14 columns"):
        load("heart", None, tmp_path)


def test_another_target_is_refused(openml, tmp_path):
    frame = openml.tables[44960]
    openml.tables[44960] = frame.assign(heating_load=frame["heating_load"].round())
    with pytest.raises(
        ValueError, match=r"y of mean 22\.3072 and standard deviation 10\.0902, came"
    ):
        load("energy", None, tmp_path)
    openml.tables[44960] = frame.rename(columns={"heating_load": "y1"})
    with pytest.raises(ValueError, match="has no column 'heating_load', but cooling_load, V1, y1"):
        load("energy", None, tmp_path)
    openml.tables[44960] = frame.assign(V2="north")
    with pytest.raises(ValueError, match=r"has 'north' in 'V2', where .* a number; --data DIR"):
        load("energy", None, tmp_path)


@pytest.mark.parametrize("error", [OSError("no route"), ValueError("no route")])
def test_without_network(monkeypatch, tmp_path, error):
    def fetch(**_):
        raise error

    monkeypatch.setattr(sources, "fetch_openml", fetch)
    message = (
        r"wine could not be fetched .*44972, red_wine\): no route; .* --data DIR with uci/wine"
    )
    with pytest.raises(OSError, match=message):
        load("wine", None, tmp_path)


def test_the_directory_comes_first(openml, tmp_path):
    (tmp_path / "uci").mkdir()
    (tmp_path / "open").mkdir()
    pd.DataFrame({"a": [1.0, 2.0], "y": [3.0, 4.0]}).to_csv(
        tmp_path / "uci/yacht.csv.gz", index=False
    )
    pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}).to_csv(
        tmp_path / "open/physionet2012.csv", index=False
    )
    assert load("yacht", tmp_path, tmp_path).y.tolist() == [3.0, 4.0]
    assert load("physionet2012", tmp_path, tmp_path).n_train == 4000
    assert openml.asked == []
    load("wine", tmp_path, tmp_path)  # which the directory does not have
    assert openml.asked == [(44972, str(tmp_path))]


@pytest.mark.parametrize(
    ("name", "place", "origin"),
    [
        ("power", r"uci/power\.csv", "UCI repository, data set 294"),
        ("physionet2012", r"open/physionet2012\.csv", "PhysioNet's Challenge 2012"),
        ("mimic3", "mimic3/", "PhysioNet, with credentials"),
        ("hirid", "hirid/", "PhysioNet, with credentials"),
        ("bike_hour_int", r"open/bike_hour\.csv", "UCI"),
    ],
)
def test_sets_that_openml_does_not_have(openml, tmp_path, name, place, origin):
    with pytest.raises(FileNotFoundError, match=f"{origin}.* put it at {place} under --data DIR"):
        load(name, None, tmp_path)
    with pytest.raises(FileNotFoundError, match=f"under --data {tmp_path}"):
        load(name, tmp_path, tmp_path)
    assert openml.asked == []


def test_clinical_sets_come_from_their_folders(monkeypatch, tmp_path):
    (tmp_path / "hirid").mkdir()
    monkeypatch.setitem(sources.CLINICAL, "hirid", lambda folder: ("loaded", folder))
    assert load("hirid", tmp_path, tmp_path) == ("loaded", tmp_path / "hirid")


def test_mistakes_of_the_caller(tmp_path):
    with pytest.raises(ValueError, match="no data set is called 'boston'; there are autompg"):
        load("boston", None, tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"--data names .*nowhere, which is not a directory"
    ):
        load("wine", tmp_path / "nowhere", tmp_path)
