"""Made-up extracts in the format of MIMIC-III and HiRID, with answers computed by hand."""

import gzip
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.data import mimic
from benchmarks.data.extracts import hashed_test
from benchmarks.data.hirid import VARIABLES, load_hirid
from benchmarks.data.mimic import COLUMNS, load_mimic3

# Headers as PhysioNet has them
ADMISSIONS = (
    "ROW_ID,SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,DEATHTIME,ADMISSION_TYPE,ADMISSION_LOCATION,"
    "DISCHARGE_LOCATION,INSURANCE,LANGUAGE,RELIGION,MARITAL_STATUS,ETHNICITY,EDREGTIME,EDOUTTIME,"
    "DIAGNOSIS,HOSPITAL_EXPIRE_FLAG,HAS_CHARTEVENTS_DATA"
)
ICUSTAYS = (
    "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,DBSOURCE,FIRST_CAREUNIT,LAST_CAREUNIT,FIRST_WARDID,"
    "LAST_WARDID,INTIME,OUTTIME,LOS"
)
PATIENTS = "ROW_ID,SUBJECT_ID,GENDER,DOB,DOD,DOD_HOSP,DOD_SSN,EXPIRE_FLAG"
CHARTEVENTS = (
    "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,ITEMID,CHARTTIME,STORETIME,CGID,VALUE,VALUENUM,VALUEUOM,"
    "WARNING,ERROR,RESULTSTATUS,STOPPED"
)
LABEVENTS = "ROW_ID,SUBJECT_ID,HADM_ID,ITEMID,CHARTTIME,VALUE,VALUENUM,VALUEUOM,FLAG"
OUTPUTEVENTS = (
    "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,CHARTTIME,ITEMID,VALUE,VALUEUOM,STORETIME,CGID,STOPPED,"
    "NEWBOTTLE,ISERROR"
)

# Of thirteen patients these have a row; the hash puts two of them aside
MIMIC_TRAINING, MIMIC_TEST = [1, 2, 3, 4, 6, 12], [9, 39]


def write(directory: Path, table: str, header: str, rows: list[dict[str, object]]) -> None:
    """Write a table, quoted and gzipped as PhysioNet does."""
    names = header.split(",")
    lines = [",".join(f'"{name}"' for name in names)]
    for number, row in enumerate(rows):
        assert set(row) <= set(names), row
        cells = {"ROW_ID": number, **row}
        lines.append(",".join(str(cells.get(name, "")) for name in names))
    with gzip.open(directory / f"{table}.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")


def stay(subject: int, hours: int, start: str = "2150-06-15 12:00:00", number: int = 0) -> dict:
    begin = pd.Timestamp(start)
    return {
        "SUBJECT_ID": subject,
        "HADM_ID": 1000 + 10 * subject + number,
        "ICUSTAY_ID": 2000 + 10 * subject + number,
        "INTIME": begin,
        "OUTTIME": begin + pd.Timedelta(hours=hours),
    }


def chart(subject: int, item: int, when: str, value: object, **more: object) -> dict:
    number = value if isinstance(value, int | float) else 1
    return {
        "SUBJECT_ID": subject,
        "HADM_ID": 1000 + 10 * subject,
        "ICUSTAY_ID": 2000 + 10 * subject,
        "ITEMID": item,
        "CHARTTIME": f"2150-06-{when}:00",
        "VALUE": value,
        "VALUENUM": number,
        **more,
    }


def lab(subject: int, item: int, when: str, value: float) -> dict:
    row = chart(subject, item, when, value)
    return {name: cell for name, cell in row.items() if name != "ICUSTAY_ID"}


def output(subject: int, item: int, when: str, value: float, **more: object) -> dict:
    row = chart(subject, item, when, value, **more)
    return {name: cell for name, cell in row.items() if name != "VALUENUM"}


@pytest.fixture
def mimic3(tmp_path):
    everybody = [*range(1, 13), 39]
    born = dict.fromkeys(everybody, "2090-06-15") | {
        2: "2090-06-16",  # a year younger, by a day
        3: "1850-06-15",  # hidden: three hundred
        7: "2140-01-01",  # a child
        8: "2140-01-01",  # a child at the first stay, an adult at the second
    }
    write(
        tmp_path,
        "PATIENTS",
        PATIENTS,
        [
            {"SUBJECT_ID": s, "GENDER": "F" if s == 2 else "M", "DOB": f"{born[s]} 00:00:00"}
            for s in everybody
        ],
    )
    stays = [stay(s, 48) for s in everybody if s not in (4, 5, 6, 10)]
    stays += [
        stay(4, 24),  # just long enough
        stay(5, 23),  # too short
        stay(6, 48, "2150-06-15 11:00:00"),  # the first to come
        stay(10, 20),  # too short, and the second stay does not help
        stay(10, 72, "2151-01-01 00:00:00", 1),
        stay(8, 72, "2170-01-01 00:00:00", 1),
        stay(1, 72, "2160-01-01 00:00:00", 1),  # a second stay
        stay(1, 48),  # the same row twice
    ]
    del stays[[s["SUBJECT_ID"] for s in stays].index(11)]  # in hospital, never in intensive care
    write(tmp_path, "ICUSTAYS", ICUSTAYS, stays[::-1])  # in no order
    write(
        tmp_path,
        "ADMISSIONS",
        ADMISSIONS,
        [
            {
                "SUBJECT_ID": s["SUBJECT_ID"],
                "HADM_ID": s["HADM_ID"],
                "HOSPITAL_EXPIRE_FLAG": int(s["HADM_ID"] in (1020, 1390, 1011)),
            }
            for s in stays[:-1]
        ],
    )
    write(
        tmp_path,
        "CHARTEVENTS",
        CHARTEVENTS,
        [
            chart(1, 211, "15 12:00", 80),  # at the very start
            chart(1, 220045, "16 12:00", 100),  # at the very end; the other system's item
            chart(1, 211, "15 11:59", 10),  # before
            chart(1, 211, "16 12:01", 10),  # after
            chart(1, 211, "15 13:00", 60, ERROR=1),
            chart(1, 211, "15 14:00", 900),  # cannot be
            chart(1, 211, "15 15:00", 0),
            chart(1, 211, "15 16:00", 120, ERROR=0),
            chart(1, 211, "15 16:00", 120),  # twice
            chart(1, 211, "15 17:00", 120),  # the same later is another measurement
            chart(1, 678, "15 13:00", 98.6),  # 37 C
            chart(1, 223762, "15 14:00", 39),
            chart(1, 678, "15 15:00", 37),  # 2.8 C: Celsius in the wrong place
            chart(1, 646, "15 13:00", 100),
            chart(1, 646, "15 14:00", 101),
            chart(1, 723, "15 13:00", "1.0 ET/Trach"),
            chart(1, 184, "15 13:00", 1),
            chart(1, 807, "15 13:00", 90),
            chart(1, 9999, "15 13:00", 5),  # nobody asks
            chart(2, 223900, "15 13:00", "No Response-ETT"),
            chart(2, 223900, "15 18:00", 5),
            chart(2, 454, "15 18:00", 6),
            chart(2, 454, "15 19:00", 3),
            chart(5, 211, "15 13:00", 70),
            chart(3, 211, "15 13:00", 70, ICUSTAY_ID=""),  # of no stay
        ],
    )
    write(
        tmp_path,
        "LABEVENTS",
        LABEVENTS,
        [
            lab(1, 50931, "15 13:00", 150),  # with 90 at the bedside
            lab(1, 50868, "15 13:00", 12),
            lab(1, 50868, "15 19:00", 14),
            lab(1, 50868, "15 11:00", 40),  # before
            lab(2, 50862, "15 13:00", 11),  # cannot be
            lab(2, 50813, "15 13:00", 2.5),
            {**lab(3, 50813, "15 13:00", 9), "HADM_ID": ""},  # an outpatient
        ],
    )
    write(
        tmp_path,
        "OUTPUTEVENTS",
        OUTPUTEVENTS,
        [
            output(1, 40055, "15 13:00", 200),
            output(1, 226559, "15 20:00", 300),
            output(1, 226559, "15 20:00", 300),
            output(1, 227488, "15 21:00", 50),  # put in
            output(1, 40055, "15 22:00", 70, ISERROR=1),
            output(1, 40055, "15 23:00", 90_000),
            output(1, 40055, "17 13:00", 999),
            output(2, 40055, "15 13:00", 0),
        ],
    )
    return tmp_path


def by_subject(data, training, test) -> pd.DataFrame:
    assert data.n_train == len(training)
    assert len(data.X) == len(data.y) == len(training) + len(test)
    return data.X.set_axis([*training, *test])


def test_mimic_rows_and_outcomes(mimic3):
    data = load_mimic3(mimic3)
    X = by_subject(data, MIMIC_TRAINING, MIMIC_TEST)
    assert (data.name, data.task) == ("mimic3", "classification")
    assert list(X.columns) == ["age", "male", *(v.name for v in COLUMNS), "urine_output"]
    assert X["age"].tolist() == [60, 59, 90, 60, 60, 60, 60, 60]
    assert X["male"].tolist() == [1, 0, 1, 1, 1, 1, 1, 1]
    # the first patient died in a later stay
    assert data.y.tolist() == [0, 1, 0, 0, 0, 0, 0, 1]


def test_mimic_first_day(mimic3):
    X = by_subject(load_mimic3(mimic3), MIMIC_TRAINING, MIMIC_TEST)
    first = X.loc[1].drop(["age", "male"]).dropna()
    assert first.to_dict() == pytest.approx(
        {
            "heart_rate": (80 + 100 + 120 + 120) / 4,
            "temperature": 38.0,
            "spo2": 100.0,
            "gcs_eyes": 1.0,
            "glucose": 120.0,
            "anion_gap": 13.0,
            "urine_output": 450.0,
        }
    )
    second = X.loc[2].drop(["age", "male"]).dropna()
    expected = {"gcs_verbal": 5.0, "gcs_motor": 4.5, "lactate": 2.5, "urine_output": 0.0}
    assert second.to_dict() == expected
    assert X.loc[3:].drop(columns=["age", "male"]).isna().all(axis=None)


def test_mimic_in_small_chunks_and_lower_case(mimic3, monkeypatch):
    expected = load_mimic3(mimic3).X
    monkeypatch.setattr(mimic, "CHUNK", 3)
    pd.testing.assert_frame_equal(load_mimic3(mimic3).X, expected)
    for path in mimic3.glob("*.csv.gz"):  # the demo's way
        header, rest = gzip.decompress(path.read_bytes()).decode().split("\n", 1)
        path.with_suffix("").write_text(header.lower() + "\n" + rest)
        path.unlink()
    pd.testing.assert_frame_equal(load_mimic3(mimic3).X, expected)


@pytest.mark.parametrize("table", ["ADMISSIONS", "ICUSTAYS", "PATIENTS", "CHARTEVENTS"])
def test_mimic_says_what_is_wrong(mimic3, table):
    path = mimic3 / f"{table}.csv.gz"
    header = gzip.decompress(path.read_bytes()).decode().split("\n", 1)[0]
    path.write_bytes(gzip.compress((header + "\n").encode()))
    with pytest.raises(ValueError, match=f"{table} in .*: no rows; .*PhysioNet"):
        load_mimic3(mimic3)
    path.write_bytes(gzip.compress(b"ROW_ID,OTHER\n1,2\n"))
    with pytest.raises(
        ValueError, match=rf"{table}\.csv\.gz has no column .*_ID.*, but ROW_ID, OTHER"
    ):
        load_mimic3(mimic3)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"no {table}\.csv\.gz or {table}\.csv in"):
        load_mimic3(mimic3)


def test_mimic_without_any_stay(mimic3):
    write(mimic3, "ICUSTAYS", ICUSTAYS, [stay(5, 23)])
    with pytest.raises(ValueError, match="first stays of adults that last a day: no rows"):
        load_mimic3(mimic3)


def test_hash_is_of_the_id_alone():
    ids = np.arange(20_000)
    test = hashed_test(ids, 0.15)
    assert test.mean() == pytest.approx(0.15, abs=0.01)
    assert (hashed_test(ids[::-1], 0.15) == test[::-1]).all()
    slow = int(sha256(b"30").hexdigest()[:16], 16) / 16**16
    assert hashed_test([30], slow + 1e-6).all()
    assert not hashed_test([30], slow - 1e-6).any()


def hirid_tables() -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    patients = [1, 2, 3, 4, 5, 6, 7]
    general = pd.DataFrame(
        {
            "patientid": patients,
            "admissiontime": "2110-03-01 08:00:00",
            "sex": ["M", "F", "M", "F", "M", "M", "M"],
            "age": [65, 40, 70, 75, 80, 30, 55],
            "discharge_status": ["alive", "dead", None, "dead", "alive", "alive", "alive"],
        }
    )
    rows = [
        (1, "01 08:00", 200, 60.0),
        (1, "02 08:00", 200, 90.0),  # at 24 hours
        (1, "02 08:02", 200, 200.0),  # after
        (1, "01 07:58", 200, 200.0),  # before
        (1, "01 09:00", 200, 301.0),  # cannot be
        (1, "01 10:00", 200, 90.0),
        (1, "01 10:00", 200, 90.0),  # twice
        (1, "01 10:00", 400, 36.0),
        (1, "01 10:00", 410, 38.0),
        (1, "01 10:00", 10000100, 1.0),
        (1, "01 10:00", 15001565, -5.0),
        (1, "01 10:00", 12345, 1.0),
        (2, "01 10:00", 24000524, 3.0),
        (2, "05 10:00", 200, 70.0),  # stayed, without a heartbeat on the first day
        (3, "03 10:00", 200, 70.0),  # outcome not known
        (5, "02 07:58", 200, 70.0),  # two minutes short
        (5, "03 10:00", 410, 37.0),
        (99, "03 10:00", 200, 70.0),  # of no table
    ]
    other = [
        (4, "01 09:00", 200, 100.0),
        (4, "02 09:00", 200, 50.0),
        (7, "02 08:00", 200, 50.0),  # the last one at 24 hours
        (6, "01 09:00", 200, 50.0),
    ]
    parts = []
    for part in (rows, other):
        table = pd.DataFrame(part, columns=["patientid", "datetime", "variableid", "value"])
        table["datetime"] = "2110-03-" + table["datetime"] + ":00"
        # the other columns of HiRID, in its order
        table = table.assign(entertime=table["datetime"], status=8, stringvalue=None, type=None)
        order = ["datetime", "entertime", "patientid", "status", "stringvalue", "type"]
        parts.append(table[[*order, "value", "variableid"]])
    return general, parts


@pytest.fixture
def hirid(tmp_path):
    general, parts = hirid_tables()
    general.to_csv(tmp_path / "general_table.csv", index=False)
    place = tmp_path / "observation_tables" / "csv"
    place.mkdir(parents=True)
    for number, part in enumerate(parts):
        part.to_csv(place / f"part-{number}.csv", index=False)
    return tmp_path


def check_hirid(data, training, test):
    X = by_subject(data, training, test)
    assert (data.name, data.task) == ("hirid", "classification")
    assert list(X.columns) == ["age", "male", *(v.name for v in VARIABLES)]
    assert X.loc[[1, 2, 4, 7], "age"].tolist() == [65, 40, 75, 55]
    assert X.loc[[1, 2, 4, 7], "male"].tolist() == [1, 0, 0, 1]
    assert dict(zip(X.index, data.y, strict=True)) == {1: 0, 2: 1, 4: 1, 7: 0}
    assert X.loc[1].drop(["age", "male"]).dropna().to_dict() == {
        "heart_rate": 80.0,
        "temperature": 37.0,
        "gcs_verbal": 1.0,
        "rass": -5.0,
    }
    assert X.loc[2].drop(["age", "male"]).dropna().to_dict() == {"lactate": 3.0}
    assert X.loc[4].drop(["age", "male"]).dropna().to_dict() == {"heart_rate": 100.0}
    assert X.loc[7].drop(["age", "male"]).dropna().to_dict() == {"heart_rate": 50.0}


def write_split(directory: Path, sides: dict[int, str]) -> None:
    table = pd.DataFrame({"patientid": list(sides), "split": list(sides.values())})
    table.to_csv(directory / "split.tsv", sep="\t")


def test_hirid_by_the_benchmarks_split(hirid):
    write_split(hirid, {1: "train", 2: "val", 3: "test", 4: "test", 7: "test"})
    check_hirid(load_hirid(hirid), [1, 2], [4, 7])
    write_split(hirid, {1: "test", 2: "val", 4: "train", 7: "test"})
    check_hirid(load_hirid(hirid), [2, 4], [1, 7])
    write_split(hirid, {1: "test", 4: "train", 7: "test"})
    with pytest.raises(
        ValueError, match=r"split\.tsv does not have patient 2; take split\.tsv from"
    ):
        load_hirid(hirid)


def test_hirid_by_hash(hirid):
    check_hirid(load_hirid(hirid), [1, 2, 7], [4])


def test_hirid_as_parquet_in_physionets_folders(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    general, parts = hirid_tables()
    (tmp_path / "reference_data").mkdir()
    general.to_csv(tmp_path / "reference_data" / "general_table.csv", index=False)
    place = tmp_path / "raw_stage" / "observation_tables" / "parquet"
    place.mkdir(parents=True)
    for number, part in enumerate(parts):
        part = part.assign(datetime=pd.to_datetime(part["datetime"]))
        part.to_parquet(place / f"part-{number}.parquet")
    write_split(tmp_path, {1: "train", 2: "train", 4: "test", 7: "test"})
    check_hirid(load_hirid(tmp_path), [1, 2], [4, 7])


def test_hirid_says_what_is_wrong(hirid):
    part = hirid / "observation_tables" / "csv" / "part-1.csv"
    text = part.read_text()
    (part.parent / "part-2.csv").write_text(text)
    with pytest.raises(ValueError, match="patient 4 is in two parts"):
        load_hirid(hirid)
    (part.parent / "part-2.csv").unlink()

    part.write_text(text.replace("variableid", "variable"))
    with pytest.raises(ValueError, match=r"part-1\.csv has no column variableid, but datetime"):
        load_hirid(hirid)

    general = (hirid / "general_table.csv").read_text()
    (hirid / "general_table.csv").write_text(general.replace("alive", "well"))
    with pytest.raises(ValueError, match=r"\['well'\] in discharge_status, not alive or dead"):
        load_hirid(hirid)
    (hirid / "general_table.csv").write_text(general.split("\n", 1)[0] + "\n")
    with pytest.raises(ValueError, match=r"general_table\.csv: no rows; unpack"):
        load_hirid(hirid)
    (hirid / "general_table.csv").write_text(general)

    for path in part.parent.glob("*.csv"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match=r"no part-\*\.parquet or part-\*\.csv in"):
        load_hirid(hirid)
    (hirid / "general_table.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"no general_table\.csv or reference_data"):
        load_hirid(hirid)


def test_hirid_without_any_long_stay(hirid):
    for part in (hirid / "observation_tables" / "csv").glob("*.csv"):
        header = part.read_text().split("\n", 1)[0]
        part.write_text(header + "\n2110-03-01 09:00:00,,6,8,,,50,200\n")
    with pytest.raises(ValueError, match="patients with heartbeats at 24 hours: no rows"):
        load_hirid(hirid)


def test_a_split_with_an_empty_side(hirid):
    write_split(hirid, dict.fromkeys([1, 2, 4, 7], "train"))
    with pytest.raises(ValueError, match="hirid: none of the 4 stays is a test row"):
        load_hirid(hirid)
