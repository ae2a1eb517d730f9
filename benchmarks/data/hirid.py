"""HiRID as its users have it: PhysioNet's raw stage (version 1.1.1), as CSV or Parquet.

A directory with ``general_table.csv`` (or ``reference_data/general_table.csv``: ``patientid``,
``admissiontime``, ``sex``, ``age``, ``discharge_status``) and the parts of the observations in
``observation_tables/parquet`` or ``observation_tables/csv`` (also under ``raw_stage``: ``patientid``,
``datetime``, ``variableid``, ``value``) becomes one row for each patient:

- with a known outcome, and in intensive care for a day or longer, which here means, as in the
  HiRID-ICU-Benchmark of Yeche et al. (2021), heartbeats to the 24th hour;
- the mean over the first 24 hours of every variable in ``VARIABLES``, which joins several ids where they
  measure one thing; values outside the benchmark's bounds and second copies of a record do not count;
- y is death in intensive care.

Where the benchmark's ``split.tsv`` (``patientid``, ``split``: train, val, test) lies beside the tables,
its test patients are the test rows, and all others train. Without it a hash of patientid chooses 30%, the
paper's share (8,189 of 27,347); the paper's own split is not published. The parts hold whole patients, and
are read one at a time.
"""

from __future__ import annotations

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
    plausible,
    require_columns,
    require_rows,
    split_dataset,
)
from benchmarks.data.sets import Dataset

TEST_SHARE = 0.3
HEART_RATE = Variable("heart_rate", (200,), 0, 300)
VARIABLES = (
    HEART_RATE,
    Variable("temperature", (400, 410, 7100), 25, 45),
    Variable("systolic_pressure", (100,), 10, 300),
    Variable("diastolic_pressure", (120,), 10, 175),
    Variable("mean_pressure", (110,), 10, 200),
    Variable("cuff_systolic_pressure", (600,), 10, 300),
    Variable("cuff_diastolic_pressure", (620,), 10, 175),
    Variable("cuff_mean_pressure", (610,), 10, 200),
    Variable("spo2", (4000, 8280), 10, 100),
    Variable("respiratory_rate", (300, 310, 5685), 0, 45),
    Variable("fio2", (2010,), 20, 100),
    Variable("peep", (2600, 2610), -1, 25),
    Variable("urine_per_hour", (10020000,), -1, 1000),
    Variable("gcs_verbal", (10000100,), 0, 5),
    Variable("gcs_motor", (10000200,), 0, 6),
    Variable("gcs_eyes", (10000300,), 0, 4),
    Variable("rass", (15001565,), -6, 4),
    Variable("base_excess", (20001300,), -30, 30),
    Variable("bicarbonate", (20004200,), 0, 50),
    Variable("ph", (20000300,), 6.5, 7.8),
    Variable("pco2", (20001200,), 3, 100),
    Variable("po2", (20000200,), 20, 500),
    Variable("lactate", (24000524, 24000485, 24000732), 0, 15),
    Variable("potassium", (20000500, 24000520, 24000833, 24000867), 2, 12),
    Variable("sodium", (20000400, 24000519, 24000658, 24000835, 24000866), 105, 170),
    Variable("chloride", (24000439, 24000521), 60, 140),
    Variable("calcium", (24000522,), 0, 3),
    Variable("phosphate", (20002500,), 0, 5),
    Variable("magnesium", (24000230,), 0, 5),
    Variable("urea", (20004100,), 0, 60),
    Variable("creatinine", (20000600,), 0, 1500),
    Variable("bilirubin", (20004300,), 0, 1000),
    Variable("asat", (24000330,), 0, 30_000),
    Variable("alat", (20002600,), 0, 12_000),
    Variable("albumin", (24000605,), 0, 70),
    Variable("glucose", (20005110, 24000523, 24000585), 0, 60),
    Variable("c_reactive_protein", (20002200,), 0, 600),
    Variable("troponin_t", (24000538, 24000806), 0, 15_000),
    Variable("hemoglobin", (20000900, 24000836, 24000548), 20, 200),
    Variable("wbc", (20000700,), 0, 300),
    Variable("platelets", (20000110,), 0, 1500),
    Variable("inr", (24000567,), 0, 8),
    Variable("ptt", (20004410,), 0, 300),
    Variable("fibrinogen", (24000536,), 0, 12),
)
ITEMS = items_of(VARIABLES)
GENERAL = ["patientid", "admissiontime", "sex", "age", "discharge_status"]
OBSERVED = ["patientid", "datetime", "variableid", "value"]
PLACES = [
    f"{stage}observation_tables{kind}"
    for kind in ("/parquet", "/csv", "")
    for stage in ("", "raw_stage/")
]
REMEDY = "unpack PhysioNet's reference_data and observation_tables of HiRID 1.1.1 there"


def load_hirid(directory: str | Path) -> Dataset:
    """One row for each patient who stayed a day, and whether the patient died in intensive care."""
    directory = Path(directory)
    patients = general_table(directory)
    starts = patients["admissiontime"]
    measured = joined([means_of_part(part, starts) for part in parts_of(directory)])
    require_rows(measured, f"{directory}: patients with heartbeats at 24 hours", REMEDY)
    if measured.index.has_duplicates:
        twice = measured.index[measured.index.duplicated()][0]
        raise ValueError(
            f"{directory}: patient {twice} is in two parts of the observations, which hold whole "
            f"patients; {REMEDY}, and nothing twice"
        )
    patients = patients.loc[measured.index]
    X = pd.concat(
        [
            patients["age"].astype(float),
            male(patients["sex"]),
            measured,
        ],
        axis=1,
    )
    died = (patients["discharge_status"] == "dead").to_numpy()
    return split_dataset("hirid", X, died, is_test(directory, X.index))


def general_table(directory: Path) -> pd.DataFrame:
    """Who was there, by patientid; patients whose outcome is not known are left out."""
    names = ["general_table.csv", "reference_data/general_table.csv"]
    path = find_file(directory, names, REMEDY)
    table = pd.read_csv(path)
    require_columns(table.columns, GENERAL, path, REMEDY)
    require_rows(table, str(path), REMEDY)
    table["admissiontime"] = pd.to_datetime(table["admissiontime"])
    strange = set(table["discharge_status"].dropna()) - {"alive", "dead"}
    if strange:
        raise ValueError(
            f"{path} has {sorted(strange)} in discharge_status, not alive or dead; {REMEDY}"
        )
    return (
        table.dropna(subset=["discharge_status"])
        .drop_duplicates("patientid")
        .set_index("patientid")
    )


def parts_of(directory: Path) -> list[Path]:
    """The files of the observations: Parquet where there is both."""
    place = find_file(directory, PLACES, REMEDY)
    for pattern in ("*.parquet", "*.csv", "*.csv.gz"):
        parts = sorted(place.glob(pattern))
        if parts:
            return parts
    raise FileNotFoundError(f"no part-*.parquet or part-*.csv in {place}; {REMEDY}")


def means_of_part(part: Path, starts: pd.Series) -> pd.DataFrame:
    """Means of the first day for the patients in one part who stayed that long."""
    events = read_part(part)
    events = events[events["item"].isin(ITEMS) & events["id"].isin(starts.index)]
    events = plausible(events.assign(time=pd.to_datetime(events["time"])), VARIABLES)
    beats = events[events["name"] == HEART_RATE.name]
    last = beats.groupby("id")["time"].max()
    stayed = last.index[last - last.index.map(starts) >= DAY]
    return means(first_day(events[events["id"].isin(stayed)], starts), stayed, VARIABLES)


def read_part(part: Path) -> pd.DataFrame:
    """The observations in one file: ``id``, ``time``, ``item``, ``value``."""
    if part.suffix == ".parquet":
        table = pd.read_parquet(part)
        require_columns(table.columns, OBSERVED, part, REMEDY)
        table = table[OBSERVED]
    else:
        require_columns(pd.read_csv(part, nrows=0).columns, OBSERVED, part, REMEDY)
        table = pd.read_csv(part, usecols=OBSERVED)
    names = {"patientid": "id", "datetime": "time", "variableid": "item"}
    return table.rename(columns=names)


def is_test(directory: Path, ids: pd.Index) -> np.ndarray:
    """Which patients are for testing: the benchmark's own, where its file is, else by hash."""
    path = directory / "split.tsv"
    if not path.exists():
        return hashed_test(ids, TEST_SHARE)
    table = pd.read_csv(path, sep="\t")
    remedy = "take split.tsv from the HiRID-ICU-Benchmark, or none to split by hash"
    require_columns(table.columns, ["patientid", "split"], path, remedy)
    split = table.set_index("patientid")["split"].reindex(ids)
    if split.isna().any():
        raise ValueError(f"{path} does not have patient {ids[split.isna()][0]}; {remedy}")
    return (split == "test").to_numpy()
