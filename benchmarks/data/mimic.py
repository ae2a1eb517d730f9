"""MIMIC-III as its users have it: PhysioNet's tables, one CSV each, gzipped or not.

A directory with ``ADMISSIONS``, ``ICUSTAYS``, ``PATIENTS``, ``CHARTEVENTS``, ``LABEVENTS`` and
``OUTPUTEVENTS`` (``.csv.gz`` or ``.csv``, headers in upper or, as in the demo, lower case) becomes
one row for each patient's first stay in intensive care:

- the stay is of an adult (18 or older) and lasts a day or longer;
- vital signs, laboratory values and the three parts of the Glasgow coma scale are means over the
  first 24 hours, urine is their sum; a record that is marked as an error, a value that cannot be true
  and a second copy of a record do not count; temperatures are in degrees Celsius;
- a verbal response of the intubated is a gap, not the lowest score;
- the age of those above 89, which MIMIC hides, is 90;
- y is death in hospital.

Items and plausible ranges are those of the first-day concepts of MIT-LCP/mimic-code. The paper uses
the extract of Lengerich et al. (2022) with 14,960 patients, 2,231 of them for testing, which is not
published, nor is its split. Here a hash of SUBJECT_ID chooses 15% for testing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.data.extracts import (
    DAY,
    Variable,
    find_file,
    first_day,
    hashed_test,
    items_of,
    joined,
    male,
    means,
    once,
    plausible,
    require_columns,
    require_rows,
    split_dataset,
)
from benchmarks.data.sets import Dataset

ADULT, HIDDEN_AGE = 18, 90
TEST_SHARE = 0.15
CHUNK = 2_000_000  # rows; CHARTEVENTS has 330 million
REMEDY = "the directory must hold the tables of MIMIC-III as PhysioNet gives them"

FAHRENHEIT = (223761, 678)
VITALS = (
    Variable("heart_rate", (211, 220045), 0, 300),
    Variable("systolic_pressure", (51, 442, 455, 6701, 220179, 220050), 0, 400),
    Variable("diastolic_pressure", (8368, 8440, 8441, 8555, 220180, 220051), 0, 300),
    Variable("mean_pressure", (456, 52, 6702, 443, 220052, 220181, 225312), 0, 300),
    Variable("respiratory_rate", (615, 618, 220210, 224690), 0, 70),
    Variable("temperature", (223762, 676, *FAHRENHEIT), 10, 50),
    Variable("spo2", (646, 220277), 0, 100),
)
# The verbal response of the intubated is charted as the lowest
COMA = (
    Variable("gcs_eyes", (184, 220739), 0, 4),
    Variable("gcs_verbal", (723, 223900), 0, 5),
    Variable("gcs_motor", (454, 223901), 0, 6),
)
INTUBATED = ("1.0 ET/Trach", "No Response-ETT")
# Glucose is charted at the bedside and measured in the laboratory: one column of both
BEDSIDE_GLUCOSE = (807, 811, 1529, 3745, 3744, 225664, 220621, 226537)
LABORATORY = (
    Variable("glucose", (50809, 50931), 0, 10_000),
    Variable("anion_gap", (50868,), 0, 10_000),
    Variable("albumin", (50862,), 0, 10),
    Variable("bands", (51144,), 0, 100),
    Variable("bicarbonate", (50882,), 0, 10_000),
    Variable("bilirubin", (50885,), 0, 150),
    Variable("bun", (51006,), 0, 300),
    Variable("chloride", (50806, 50902), 0, 10_000),
    Variable("creatinine", (50912,), 0, 150),
    Variable("hematocrit", (50810, 51221), 0, 100),
    Variable("hemoglobin", (50811, 51222), 0, 50),
    Variable("inr", (51237,), 0, 50),
    Variable("lactate", (50813,), 0, 50),
    Variable("platelets", (51265,), 0, 10_000),
    Variable("potassium", (50822, 50971), 0, 30),
    Variable("pt", (51274,), 0, 150),
    Variable("ptt", (51275,), 0, 150),
    Variable("sodium", (50824, 50983), 0, 200),
    Variable("wbc", (51300, 51301), 0, 1000),
)
CHARTED = (*VITALS, *COMA, Variable("glucose", BEDSIDE_GLUCOSE, 0, 10_000))
COLUMNS = (*VITALS, *COMA, *LABORATORY)
IRRIGANT = 227488  # fluid that is put in, to be taken off what comes out
URINE = Variable(
    "urine_output",
    (
        *(40055, 43175, 40069, 40094, 40715, 40473, 40085, 40057, 40056, 40405, 40428, 40086),
        *(40096, 40651, 226559, 226560, 226561, 226584, 226563, 226564, 226565, 226567, 226557),
        *(226558, 227488, 227489),
    ),
    0,
    10_000,
)


def load_mimic3(directory: str | Path) -> Dataset:
    """One row for each adult's first stay of a day or longer, and whether it ended in death.

    A patient whose first stay is shorter, or a child's, has no row, whatever came later.
    """
    directory = Path(directory)
    stays = require_rows(
        cohort(directory),
        f"{directory}: first stays of adults that last a day",
        f"{REMEDY}, ICUSTAYS among them",
    )
    of_stay = stays["INTIME"]
    of_admission = of_stay.set_axis(stays["HADM_ID"])
    charted = chart_events(directory, of_stay)
    laboratory = lab_events(directory, of_admission)
    # one row for each, whichever table a variable comes from
    laboratory["id"] = laboratory["id"].map(dict(zip(stays["HADM_ID"], stays.index, strict=True)))
    events = joined([charted, laboratory])
    X = pd.concat(
        [
            stays[["age", "male"]],
            means(events, stays.index, COLUMNS),
            urine(directory, of_stay).reindex(stays.index),
        ],
        axis=1,
    ).set_axis(stays["SUBJECT_ID"])
    test = hashed_test(stays["SUBJECT_ID"], TEST_SHARE)
    return split_dataset("mimic3", X, stays["HOSPITAL_EXPIRE_FLAG"].to_numpy(), test)


def cohort(directory: Path) -> pd.DataFrame:
    """The stays that get a row, by ICUSTAY_ID, with age, sex and outcome."""
    stays = whole(
        directory, "ICUSTAYS", ["SUBJECT_ID", "HADM_ID", "ICUSTAY_ID", "INTIME", "OUTTIME"]
    )
    patients = whole(directory, "PATIENTS", ["SUBJECT_ID", "GENDER", "DOB"])
    admissions = whole(directory, "ADMISSIONS", ["HADM_ID", "HOSPITAL_EXPIRE_FLAG"])
    for column in ("INTIME", "OUTTIME"):
        stays[column] = pd.to_datetime(stays[column])
    stays = stays.drop_duplicates("ICUSTAY_ID").sort_values(["INTIME", "ICUSTAY_ID"])
    stays = stays.drop_duplicates("SUBJECT_ID")
    stays = stays.merge(patients.drop_duplicates("SUBJECT_ID"), on="SUBJECT_ID")
    stays = stays.merge(admissions.drop_duplicates("HADM_ID"), on="HADM_ID")
    age = years(pd.to_datetime(stays["DOB"]), stays["INTIME"])
    stays["age"] = np.minimum(age, HIDDEN_AGE).astype(float)
    stays["male"] = male(stays["GENDER"])
    long = stays["OUTTIME"] - stays["INTIME"] >= DAY
    return stays[long & (age >= ADULT)].set_index("ICUSTAY_ID")


def years(born: pd.Series, now: pd.Series) -> pd.Series:
    """Whole years; by the calendar, for those of the hidden are three hundred, too many for a Timedelta."""
    before_birthday = (now.dt.month * 100 + now.dt.day) < (born.dt.month * 100 + born.dt.day)
    return now.dt.year - born.dt.year - before_birthday


def chart_events(directory: Path, starts: pd.Series) -> pd.DataFrame:
    """Plausible events of the first day at the bedside."""
    columns = ["ICUSTAY_ID", "ITEMID", "CHARTTIME", "VALUE", "VALUENUM", "ERROR"]
    kept = []
    for chunk in chunks(directory, "CHARTEVENTS", columns, CHARTED, "ICUSTAY_ID", starts):
        intubated = chunk["VALUE"].astype(str).isin(INTUBATED)
        chunk = chunk[(chunk["ERROR"] != 1) & ~intubated]
        value = chunk["VALUENUM"].astype(float)
        celsius = value.where(~chunk["item"].isin(FAHRENHEIT), (value - 32) / 1.8)
        kept.append(plausible(chunk.assign(value=celsius), CHARTED))
    return concatenated(kept)


def lab_events(directory: Path, starts: pd.Series) -> pd.DataFrame:
    """Plausible events of the first day in the laboratory, by admission."""
    columns = ["HADM_ID", "ITEMID", "CHARTTIME", "VALUENUM"]
    kept = [
        plausible(chunk.assign(value=chunk["VALUENUM"].astype(float)), LABORATORY)
        for chunk in chunks(directory, "LABEVENTS", columns, LABORATORY, "HADM_ID", starts)
    ]
    return concatenated(kept)


def urine(directory: Path, starts: pd.Series) -> pd.Series:
    """The sum of the first day, in millilitres; a stay without any record has a gap."""
    columns = ["ICUSTAY_ID", "ITEMID", "CHARTTIME", "VALUE", "ISERROR"]
    kept = []
    for chunk in chunks(directory, "OUTPUTEVENTS", columns, [URINE], "ICUSTAY_ID", starts):
        chunk = chunk[chunk["ISERROR"] != 1]
        value = pd.to_numeric(chunk["VALUE"], errors="coerce")
        possible = value.between(URINE.low, URINE.high)  # none at all is possible too
        kept.append(chunk.assign(value=value)[possible])
    events = once(concatenated(kept))
    signed = events["value"].where(events["item"] != IRRIGANT, -events["value"])
    return signed.groupby(events["id"]).sum().rename(URINE.name)


def concatenated(kept: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The events of all chunks, with the columns that count."""
    columns = ["id", "item", "time", "value", "name"]
    return joined([chunk.reindex(columns=columns) for chunk in kept]).reset_index(drop=True)


def whole(directory: Path, table: str, columns: Sequence[str]) -> pd.DataFrame:
    """A small table, these columns of it."""
    (frame,) = read(directory, table, columns, chunksize=None)
    return require_rows(frame, f"{table} in {directory}", REMEDY)


def chunks(
    directory: Path,
    table: str,
    columns: Sequence[str],
    variables: Sequence[Variable],
    key: str,
    starts: pd.Series,
) -> Iterator[pd.DataFrame]:
    """A large table chunk by chunk: of these items and stays, on their first day only."""
    items = items_of(variables)
    rows = 0
    for chunk in read(directory, table, columns, CHUNK):
        rows += len(chunk)
        chunk = chunk[chunk["ITEMID"].isin(items) & chunk[key].isin(starts.index)]
        chunk = chunk.rename(columns={key: "id", "ITEMID": "item", "CHARTTIME": "time"})
        chunk = chunk.assign(time=pd.to_datetime(chunk["time"]), id=chunk["id"].astype("int64"))
        yield first_day(chunk, starts)
    if rows == 0:
        raise ValueError(f"{table} in {directory}: no rows; {REMEDY}")


def read(
    directory: Path, table: str, columns: Sequence[str], chunksize: int | None
) -> Iterator[pd.DataFrame]:
    """These columns of a table, whole or in chunks, with names in upper case."""
    path = find_file(directory, [f"{table}.csv.gz", f"{table}.csv"], REMEDY)
    header = pd.read_csv(path, nrows=0).columns
    require_columns([name.upper() for name in header], columns, path, REMEDY)
    wanted = [name for name in header if name.upper() in columns]
    words = {name: str for name in wanted if name.upper() in ("VALUE", "GENDER")}
    chunks = pd.read_csv(path, usecols=wanted, dtype=words, chunksize=chunksize)
    for chunk in [chunks] if chunksize is None else chunks:
        yield chunk.rename(columns=str.upper)
