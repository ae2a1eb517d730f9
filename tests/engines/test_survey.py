"""Tables in chunks against the same tables in memory: schema, arrays, targets, errors."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from lanam.core.rows.tables import EncodedRows
from lanam.data import as_frame, encode_table, learn_table, read_categorical
from lanam.engines import survey as surveys
from lanam.engines.files import open_files
from lanam.engines.interface import Chunk, Source
from lanam.engines.roles import Roles, read_roles
from lanam.engines.survey import survey
from lanam.families import BERNOULLI, GAUSSIAN, POISSON
from lanam.inputs import require_squares

N = 500


class Frames(Source):
    """Pandas frames as chunks, as in Dask."""

    title = "the frames"

    def __init__(self, frames, groups=2):
        self.frames, self.n_groups, self.read_columns = list(frames), groups, []

    @property
    def names(self):
        return tuple(self.frames[0].columns)

    def empty(self):
        return self.frames[0].iloc[:0]

    fingerprint = encoded = map = write = None

    def reduce(self, columns, function, merge):
        self.read_columns.append(tuple(columns))
        chunks = [
            Chunk(frame[list(columns)], f"partition {number}", 0, number)
            for number, frame in enumerate(self.frames)
        ]
        cuts = np.array_split(np.arange(len(chunks)), min(self.n_groups, len(chunks)))
        done = pickle.loads(pickle.dumps(function)), pickle.loads(pickle.dumps(merge))
        actual = [done[0](iter([chunks[k] for k in cut])) for cut in cuts]
        result = actual[0]
        for other in actual[1:]:
            result = done[1](result, other)
        return result


def a_frame(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=N),
            "whole": rng.integers(-5, 5, N),
            "missing": pd.array(rng.integers(0, 9, N), dtype="Int64"),
            "narrow": rng.normal(size=N).astype("float32"),
            "truth": rng.random(N) < 0.5,
            "city": rng.choice(["Rome", "Bonn", "Oslo", "Ärö"], N),
            "size": pd.Categorical(rng.choice(["S", "M", "XL"], N), ["XL", "none", "S", "M"]),
            "zone": rng.integers(10, 14, N),
        }
    )
    frame.loc[rng.random(N) < 0.1, ["x", "city", "missing", "size"]] = None
    frame["city"] = frame["city"].where(np.arange(N) != 0, "Zug")  # in the first row only
    frame["y"] = rng.normal(size=N)
    frame["n"] = rng.poisson(2.0, N)
    frame["label"] = rng.choice(["no", "yes", "maybe"], N)
    frame["number"] = rng.integers(1, 4, N)
    frame["w"] = rng.integers(0, 3, N).astype(float)
    frame["hours"] = rng.uniform(0.5, 3.0, N)
    return frame


FEATURES = ("x", "whole", "missing", "narrow", "truth", "city", "size", "zone")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(frame: pd.DataFrame, kind: str) -> str:
    """Write the frame to several files with uneven parts; returns their pattern."""
    for number, rows in enumerate((frame[:1], frame[1:137], frame[137:])):
        if kind == "parquet":
            rows.to_parquet(f"{number}.parquet", row_group_size=57, index=False)
        elif kind == "feather":
            table = pa.Table.from_pandas(rows, preserve_index=False)
            feather.write_feather(table, f"{number}.feather", chunksize=57)
        else:
            rows.to_csv(f"{number}.csv", index=False)
    return f"*.{kind}"


def source_of(frame: pd.DataFrame, kind: str, n_jobs: int = 1):
    if kind == "pandas":
        return Frames([frame[:1], frame[1:137], frame[137:]], n_jobs)
    return open_files(write(frame, kind), n_jobs=n_jobs)


def gather(tables):
    tables = list(tables)
    return (
        np.concatenate([table.columns for table in tables]),
        np.concatenate([table.response for table in tables]),
        np.concatenate([table.weight for table in tables]),
    )


def behind(first, second):
    return tuple(map(np.concatenate, zip(first, second, strict=True)))


def encoded(source, encoder):
    """All rows."""
    encoder = pickle.loads(pickle.dumps(encoder))
    if isinstance(source, Frames):
        chunks = [
            Chunk(frame, f"partition {number}", 0, number)
            for number, frame in enumerate(source.frames)
        ]
        return gather(map(encoder, chunks))
    return source.encoded(encoder.roles.columns, encoder).total(gather, behind)


def in_memory(frame: pd.DataFrame, categorical=()):
    names = list(frame.columns)
    return learn_table(as_frame(frame), names, read_categorical(list(categorical), names), "pandas")


def described(schema):
    """A schema without ranges."""
    return [(column.name, column.kind, column.levels) for column in schema.columns]


KINDS = ["parquet", "feather", "pandas"]


class TestLikeInMemory:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_columns_of_all_dtypes(self, folder, kind, n_jobs):
        frame = a_frame()
        used = frame[[*FEATURES, "y"]]
        source = source_of(used, kind, n_jobs)
        encoder = survey(source, read_roles(source, "y"), ["zone"])
        columns, schema = in_memory(frame[list(FEATURES)], ["zone"])
        assert described(encoder.schema) == described(schema)
        assert encoder.schema.columns[6].levels == ("XL", "S", "M")  # the dtype's order
        assert all(math.isnan(column.lowest) for column in encoder.schema.columns)
        actual = encoded(source, encoder)
        np.testing.assert_array_equal(actual[0], columns)
        np.testing.assert_array_equal(actual[1], frame["y"])
        np.testing.assert_array_equal(actual[2], np.ones(N))

    def test_columns_of_csv(self, folder):
        frame = a_frame()[["x", "whole", "truth", "city", "zone", "y"]]
        source = source_of(frame, "csv")
        encoder = survey(source, read_roles(source, "y"), ["zone"])
        # Exact decimals, which is not the default of every version of pandas.
        exact = dict.fromkeys(("x", "y"), lambda text: float(text or "nan"))
        read = pd.concat(
            [pd.read_csv(f"{k}.csv", converters=exact) for k in range(3)], ignore_index=True
        )
        columns, schema = in_memory(read.drop(columns="y"), ["zone"])
        assert described(encoder.schema) == described(schema)
        assert encoder.schema.columns[4].levels == (10, 11, 12, 13)
        np.testing.assert_array_equal(encoded(source, encoder)[0], columns)

    def test_arrays_are_column_major(self, folder):
        source = source_of(a_frame()[[*FEATURES, "y", "w"]], "parquet")
        encoder = survey(source, read_roles(source, "y", "w"))
        tables = []
        source.encoded(encoder.roles.columns, encoder).total(
            lambda some: (np.array([tables.append(table) or 0 for table in some]),)
        )
        assert all(table.columns.flags.f_contiguous for table in tables)

    @pytest.mark.parametrize("kind", KINDS)
    def test_weights(self, folder, kind):
        frame = a_frame()
        source = source_of(frame[[*FEATURES, "y", "w"]], kind)
        encoder = survey(source, read_roles(source, "y", "w"))
        columns, schema = in_memory(frame[list(FEATURES)])
        kept = frame["w"] > 0
        assert 0 < kept.sum() < N
        assert described(encoder.schema) == described(schema)  # of all rows
        actual = encoded(source, encoder)
        np.testing.assert_array_equal(actual[0], columns[kept])
        np.testing.assert_array_equal(actual[1], frame["y"][kept])
        np.testing.assert_array_equal(actual[2], frame["w"][kept])
        totals = encoded_totals(source, encoder)
        assert totals[0].tolist() == [kept.sum(), frame["w"].sum()]
        assert totals[1:] == (frame["y"][kept].min(), frame["y"][kept].max())

    @pytest.mark.parametrize("kind", [*KINDS, "csv"])
    @pytest.mark.parametrize("exposure", ["hours", 2.5, None])
    @pytest.mark.parametrize("weight", ["w", None])
    def test_counts(self, folder, kind, exposure, weight):
        frame = a_frame()[["x", "n", "w", "hours"]]
        used = frame[["x", "n", *(name for name in (weight, exposure) if isinstance(name, str))]]
        source = source_of(used, kind, 2)
        encoder = survey(source, read_roles(source, "n", weight, exposure), family=POISSON)
        w = np.ones(N) if weight is None else frame["w"].to_numpy()
        e = np.full(N, exposure or 1.0) if exposure != "hours" else frame["hours"].to_numpy()
        kept = w > 0
        rows = frame["n"].to_numpy(float)[kept], w[kept], e[kept]
        wanted = POISSON.encoding(POISSON.statistics(*rows))
        response, mass = wanted.response(*rows)[:2]
        actual = encoded(source, encoder)
        np.testing.assert_allclose(actual[1], response, rtol=1e-12)
        np.testing.assert_allclose(actual[2], mass, rtol=1e-12)
        assert encoder.encoding.log_unit == pytest.approx(wanted.log_unit, rel=1e-12)
        assert encoder.encoding.constant == pytest.approx(wanted.constant, rel=1e-12)
        assert encoder.encoding.family is POISSON

    @pytest.mark.parametrize("kind", [*KINDS, "csv"])
    @pytest.mark.parametrize("target", ["label", "number", "truth"])
    def test_classes(self, folder, kind, target):
        frame = a_frame()
        frame.loc[7, "label"] = "never"  # in a row of zero weight
        frame.loc[7, "w"] = 0.0
        source = source_of(frame[["x", target, "w"]], kind, 2)
        encoder = survey(source, read_roles(source, target, "w"), family=BERNOULLI)
        kept = frame["w"] > 0
        labels = frame[target][kept].to_numpy()
        wanted = np.unique(labels)
        assert encoder.encoding.classes.tolist() == wanted.tolist()
        assert [type(label) for label in encoder.encoding.classes.tolist()] == [
            type(label) for label in wanted.tolist()
        ]
        assert len(encoder.encoding.classes) == len(wanted)
        assert encoder.encoding.family.name == ("bernoulli" if target == "truth" else "softmax")
        numbers = encoded(source, encoder)[1]
        assert wanted[numbers.astype(int)].tolist() == labels.tolist()

    def test_classes_of_categories_ascend(self, folder):
        frame = pd.DataFrame(
            {"x": [1.0, 2.0, 3.0], "y": pd.Categorical(["b", "a", "b"], ["b", "c", "a"])}
        )
        for kind in KINDS:
            source = source_of(frame, kind)
            encoder = survey(source, read_roles(source, "y"), family=BERNOULLI)
            assert encoder.encoding.classes.tolist() == ["a", "b"]
            assert encoded(source, encoder)[1].tolist() == [1, 0, 1]

    @pytest.mark.parametrize("kind", KINDS)
    def test_odd_columns(self, folder, kind):
        """All missing, of dates all missing, of narrow floats and huge integers as categories."""
        frame = pd.DataFrame(
            {
                "nothing": pd.array([None] * N, dtype="float64"),
                "no_text": pd.array([None] * N, dtype="string"),
                "no_dates": pd.to_datetime([None] * N),
                "tenth": np.resize(np.array([0.1, 0.2, np.nan], dtype="float32"), N),
                "huge": np.resize(np.array([2**60, 2**60 + 1]), N),
                "y": np.arange(N, dtype=float),
            }
        )
        source = source_of(frame, kind)
        encoder = survey(source, read_roles(source, "y"), ["tenth", "huge"])
        columns, schema = in_memory(frame.drop(columns="y"), ["tenth", "huge"])
        assert described(encoder.schema) == described(schema)
        np.testing.assert_array_equal(encoded(source, encoder)[0], columns)

    def test_categories_that_differ_from_file_to_file(self, folder):
        parts = [["b", "a"], ["c", "b"], ["a"]]
        for number, levels in enumerate(parts):
            frame = pd.DataFrame({"c": pd.Categorical(levels, levels), "y": range(len(levels))})
            frame.to_parquet(f"{number}.parquet")
        source = open_files(".")
        whole = pd.read_parquet(".")
        encoder = survey(source, read_roles(source, "y"))
        columns, schema = in_memory(whole[["c"]])
        assert described(encoder.schema) == described(schema)
        assert encoder.schema.columns[0].levels == ("b", "a", "c")
        np.testing.assert_array_equal(encoded(source, encoder)[0], columns)

    def test_categories_in_one_file_and_text_in_another_ascend(self, folder):
        pd.DataFrame({"c": pd.Categorical(["b", "a"], ["b", "a"]), "y": [0.0, 1.0]}).to_parquet(
            "0.parquet"
        )
        pd.DataFrame({"c": ["c", "b"], "y": [0.0, 1.0]}).to_parquet("1.parquet")
        source = open_files(".")
        encoder = survey(source, read_roles(source, "y"))
        assert encoder.schema.columns[0].levels == ("a", "b", "c")
        assert encoded(source, encoder)[0].ravel().tolist() == [1, 0, 2, 1]

    def test_whole_numbers_and_fractions_as_categories(self, folder):
        pd.DataFrame({"c": [2, 1], "y": [0.0, 1.0]}).to_parquet("0.parquet")
        pd.DataFrame({"c": [1.5, 2.0], "y": [0.0, 1.0]}).to_parquet("1.parquet")
        source = open_files(".")
        encoder = survey(source, read_roles(source, "y"), ["c"])
        levels = encoder.schema.columns[0].levels
        assert levels == (1.0, 1.5, 2.0)
        assert {type(level) for level in levels} == {float}
        assert encoded(source, encoder)[0].ravel().tolist() == [2, 0, 1, 2]

    def test_object_columns_have_the_type_of_their_values(self):
        one = pd.DataFrame(
            {"a": [True, None], "b": [1.5, None], "c": ["x", None], "y": [0.0, 1.0]}, dtype=object
        )
        two = pd.DataFrame(
            {"a": [2.5, 1], "b": [True, 3], "c": [None, None], "y": [0.0, 1.0]}, dtype=object
        )
        source = Frames([one, two])
        encoder = survey(source, read_roles(source, "y"))
        columns, schema = in_memory(pd.concat([one, two])[["a", "b", "c"]])
        assert described(encoder.schema) == described(schema)
        np.testing.assert_array_equal(encoded(source, encoder)[0], columns)

    def test_a_fitted_schema_encodes_as_well(self, folder):
        frame = a_frame()[[*FEATURES, "y"]]
        source = source_of(frame, "parquet")
        columns, schema = in_memory(frame[list(FEATURES)])
        encoder = replace(survey(source, read_roles(source, "y")), schema=schema)
        np.testing.assert_array_equal(encoded(source, encoder)[0], columns)
        wanted, _ = encode_table(as_frame(frame[list(FEATURES)]), schema)
        np.testing.assert_array_equal(columns, wanted)


def tally(tables):
    """Number of rows and total weight, and the lowest and the highest response."""
    tables_read = list(tables)
    response = np.concatenate([table.response for table in tables_read])
    weight = sum(float(table.weight.sum()) for table in tables_read)
    return (
        np.array([len(response), weight]),
        response.min(keepdims=True),
        response.max(keepdims=True),
    )


def wider(first, second):
    """Merge results of ``tally``."""
    return (
        first[0] + second[0],
        np.minimum(first[1], second[1]),
        np.maximum(first[2], second[2]),
    )


def encoded_totals(source, encoder):
    if isinstance(source, Frames):
        chunks = [Chunk(frame, "", 0, 0) for frame in source.frames]
        actual = [tally([encoder(chunk)]) for chunk in chunks if (chunk.frame["w"] > 0).any()]
        result = actual[0]
        for other in actual[1:]:
            result = wider(result, other)
        return result
    return source.encoded(encoder.roles.columns, encoder).total(tally, wider)


class TestPasses:
    def read_columns(
        self, frame, target, weight=None, exposure=None, categorical="auto", family=GAUSSIAN
    ):
        source = Frames([frame])
        survey(source, read_roles(source, target, weight, exposure), categorical, family)
        return source.read_columns

    def test_only_needed_columns_are_read(self):
        frame = a_frame()[["x", "whole", "zone", "y", "n", "w", "hours"]]
        assert self.read_columns(frame, "y", "w") == []
        assert self.read_columns(frame, "y", categorical=["zone"]) == [("zone",)]
        assert self.read_columns(frame, "n", family=POISSON) == [("n",)]
        assert self.read_columns(frame, "n", "w", "hours", family=POISSON) == [("n", "w", "hours")]
        frame = a_frame()[["x", "city", "label", "truth", "w"]]
        assert self.read_columns(frame, "x", "w") == [("city", "label", "truth")]
        assert self.read_columns(frame, "label", "w", family=BERNOULLI) == [
            ("city", "truth", "label", "w")
        ]

    def test_groups_and_order_do_not_matter(self):
        frame = a_frame()[["city", "size", "label", "w"]]
        actual = []
        for cuts in ([], [1], [1, 2, 3, 250], range(20, N, 20)):
            frames = np.split(np.arange(N), list(cuts))
            for groups in (1, 3, 50):
                source = Frames([frame.iloc[rows] for rows in frames], groups)
                roles = read_roles(source, "label", "w")
                encoder = survey(source, roles, family=BERNOULLI)
                actual.append((encoder.schema, encoder.encoding.classes.tolist()))
        assert all(survey == actual[0] for survey in actual)


class TestRoles:
    def roles(self, *arguments, columns=("age", "zone", "claims", "weight", "hours")):
        return read_roles(Frames([pd.DataFrame(columns=list(columns))]), *arguments)

    def test_the_other_columns_are_features(self):
        assert self.roles("claims", "weight", "hours") == Roles(
            "claims", "weight", "hours", ("age", "zone")
        )
        roles = self.roles("claims", None, 2)
        assert roles == Roles("claims", None, 2.0, ("age", "zone", "weight", "hours"))
        assert roles.columns == ("age", "zone", "weight", "hours", "claims")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (
                ("claim",),
                "target names the column 'claim', which X does not have; did you mean 'claims'",
            ),
            (("claims", "wait"), "sample_weight names the column 'wait'"),
            (("claims", None, "hour"), "exposure names the column 'hour', .* did you mean 'hours'"),
            (
                (None,),
                "the target of the frames must be one of its columns: pass its name, for example target=",
            ),
            (([1.0],), "the target of the frames must be one of its columns: pass its name"),
            (("claims", [1.0]), r"sample_weight of the frames is one of its columns.*\(list\)"),
            (("claims", None, np.ones(2)), r"exposure of the frames is one of its .*\(ndarray\)"),
            (("claims", None, -1.0), "exposure must be positive"),
            (("claims", "claims"), "target and sample_weight both name the column 'claims'"),
            (
                ("claims", "hours", "hours"),
                "sample_weight and exposure both name the column 'hours'",
            ),
        ],
    )
    def test_errors(self, arguments, words):
        with pytest.raises(ValueError, match=words):
            self.roles(*arguments)

    def test_a_target_alone(self):
        with pytest.raises(ValueError, match="has no column left to predict from"):
            self.roles("y", columns=["y"])


def refused(
    source, words, target="y", weight=None, exposure=None, family=GAUSSIAN, kind=ValueError
):
    """An error in the survey, or in the encoding where the survey reads nothing."""
    with pytest.raises(kind, match=words):
        encoded(source, survey(source, read_roles(source, target, weight, exposure), family=family))


class TestErrors:
    """Errors name the file, the row group, the row and the column."""

    #: Where row 200 is: the second part of the third file, whose first is of rows 137 to 193.
    PARQUET = r"in 2.parquet, row group 1 \(of 0 to 6\)"
    ROW = 200 - 137 - 57
    AT = rf"{ROW + 1} \(counting from 1\)"

    def one(self, column, value, kind="parquet", **changes):
        frame = a_frame()[["x", "y", "n", "w", "hours", "label"]].astype({"n": float})
        frame["x"] = frame["x"].fillna(0.0)
        frame[column] = frame[column].astype(changes.get("dtype", frame[column].dtype))
        frame.loc[200, column] = value
        used = [name for name in frame if name != "label" or column == "label"]
        return source_of(frame[used], kind)

    @pytest.mark.parametrize("value", [np.nan, None])
    def test_missing_targets(self, folder, value):
        words = (
            rf"{self.PARQUET}, column 'y': Input y contains NaN: 1 of 57 values, the first in row "
            rf"{self.AT}. Drop these rows, .* `X = X.filter\(pc.is_valid\(X\['y'\]\)\)` \(X being the"
        )
        refused(self.one("y", value), words)
        words = r"in 2.csv, column 'y': .* row 64 \(counting from 1\)\. Drop these rows"
        refused(self.one("y", value, "csv"), words)
        words = (
            r"in partition 2, column 'y': .* row 64 \(counting .* `X = X.dropna\(subset=\['y'\]\)`"
        )
        refused(self.one("y", value, "pandas"), words)
        words = f"{self.PARQUET}, column 'label': Input y contains NaN: .* row {self.ROW + 1}"
        refused(self.one("label", None), words, "label", family=BERNOULLI)
        words = f"{self.PARQUET}, column 'n': Input y contains NaN: .* row {self.ROW + 1}"
        refused(self.one("n", None), words, "n", family=POISSON)

    def test_nan_that_is_not_null(self, folder):
        table = pa.table({"x": [1.0, 2.0], "y": pa.array([1.0, np.nan])})
        pq.write_table(table, "a.parquet")
        refused(open_files("a.parquet"), "Input y contains NaN: 1 of 2 values, the first in row 2")

    def test_other_targets(self, folder):
        at = f"{self.PARQUET}, column "
        refused(self.one("y", np.inf), f"{at}'y': Input y contains infinity: .* row {self.ROW + 1}")
        refused(self.one("y", 1e150), f"{at}'y': y has values of magnitude 1e.150")
        words = (
            f"{at}'n': likelihood='poisson' is for counts, and y has negative .* row {self.ROW + 1}"
        )
        refused(self.one("n", -1.0), words, "n", family=POISSON)
        words = f"{at}'n': .* not whole numbers: 1 of 57, the first, 1.5, in row {self.ROW + 1}"
        refused(self.one("n", 1.5), words, "n", family=POISSON)
        words = f"{at}'n': Unknown label type: continuous"
        refused(self.one("n", 1.5), words, "n", family=BERNOULLI)

    def test_targets_of_another_type(self, folder):
        frame = pd.DataFrame(
            {"x": [1.0, 2.0], "y": ["a", "b"], "z": pd.to_datetime(["2024-01-01"] * 2)}
        )
        refused(
            source_of(frame[["x", "y"]], "parquet"), "column 'y': y must be numeric for LANAMReg"
        )
        refused(source_of(frame[["x", "z"]], "parquet"), "column 'z': y holds dates", "z")

    def test_small_targets_are_checked_over_all_rows(self):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1e-150, 1.0, 2.0]})
        source = source_of(frame, "pandas")
        encoder = survey(source, read_roles(source, "y"))
        assert encoded(source, encoder)[1].tolist() == [1e-150, 1.0, 2.0]
        with pytest.raises(ValueError, match="y has values of magnitude 1e-150"):
            require_squares(1e-150)
        require_squares(2.0)

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (-1.0, "Negative values in sample_weight: 1 of 57, the first in row {row}. A weight"),
            (
                np.nan,
                "Input sample_weight contains NaN: 1 of 57 values, the first in row {row}: use 0",
            ),
            (
                np.inf,
                "Input sample_weight contains infinity: 1 of 57 values, the first in row {row}: use 0",
            ),
            (1e13, "sample_weight has values up to 1e.13"),
        ],
    )
    def test_weights(self, folder, value, words):
        words = f"{self.PARQUET}, column 'w': {words.format(row=self.AT)}"
        refused(self.one("w", value), words, weight="w")

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (
                0.0,
                "exposure must be positive, .*, the first, 0, in row {row}. Leave out",
            ),
            (
                np.nan,
                "Input exposure contains NaN: 1 of 57 values, the first in row {row}: leave out",
            ),
            (1e101, "exposure has values from .*: change its unit"),
        ],
    )
    def test_exposures(self, folder, value, words):
        words = f"{self.PARQUET}, column 'hours': {words.format(row=self.AT)}"
        refused(self.one("hours", value), words, "n", exposure="hours", family=POISSON)

    def test_strings_as_weights(self, folder):
        frame = a_frame()[["x", "y", "city"]]
        words = (
            r"in 0.parquet, row group 0 \(of 0 to 0\), column 'city': sample_weight must be numeric"
        )
        refused(source_of(frame, "parquet"), words, weight="city")

    def test_infinity(self, folder):
        words = f"{self.PARQUET}: Input X contains infinity: column 'x' has 1 infinite value, the first "
        refused(self.one("x", -np.inf), f"{words}in row {self.AT}. Find out")

    @pytest.mark.parametrize("kind", KINDS)
    def test_dates(self, folder, kind):
        frame = pd.DataFrame(
            {"when": pd.to_datetime([None] * 150 + ["2024-01-01"] * 350), "y": range(N)}
        )
        place = "in partition 2" if kind == "pandas" else rf"in 2\.{kind}, .* 0 \(of 0 to 6\)"
        refused(
            source_of(frame, kind),
            f"{place}: column 'when' holds dates .*`X.* being the table with",
        )

    def test_code_that_fixes_a_column_names_it(self, folder):
        pq.write_table(pa.table({"y": [1.0], "when": pa.array([0], pa.date32())}), "a.parquet")
        words = r'X = X.set_column\(X.column_names.index\("when"\), "when", '
        refused(open_files("a.parquet"), words)

    def test_lists_are_of_the_wrong_type(self, folder):
        pq.write_table(pa.table({"a": [[1], [2]], "y": [1.0, 2.0]}), "a.parquet")
        refused(open_files("a.parquet"), "row group 0 .*: column 'a' holds lists", kind=TypeError)

    @pytest.mark.parametrize("kind", KINDS)
    def test_free_text(self, folder, kind):
        sentences = [f"The parcel arrived on day {k}, and it was damp." for k in range(N)]
        frame = pd.DataFrame({"note": sentences, "y": np.arange(N)})
        words = f"column 'note' holds free text: {N} distinct values in {N} rows"
        with pytest.raises(ValueError, match=words):
            in_memory(frame[["note"]])
        source = source_of(frame, kind, 2)
        refused(source, words)
        roles = read_roles(source, "y")
        assert len(survey(source, roles, ["note"]).schema.columns[0].levels) == N

    def test_strings_that_look_free_in_one_chunk_only(self):
        sentences = [f"The parcel arrived on day {k}, and it was damp." for k in range(100)]
        frame = pd.DataFrame({"note": sentences * 2, "y": np.arange(200)})
        for frames in ([frame[:100], frame[100:]], [frame]):
            source = Frames(frames)
            assert len(survey(source, read_roles(source, "y")).schema.columns[0].levels) == 100

    def test_free_text_is_rejected_early(self, monkeypatch):
        monkeypatch.setattr(surveys, "_MANY_LEVELS", 150)
        sentences = [f"The parcel arrived on day {k}, and it was damp." for k in range(N)]
        frame = pd.DataFrame({"note": sentences, "y": np.arange(N)})
        source = Frames([frame[k : k + 100] for k in range(0, N, 100)], 1)
        refused(source, "free text: 200 distinct values in 200 rows")

    def test_text_and_numbers_in_different_chunks(self):
        one = pd.DataFrame({"a": pd.Series(["x"], dtype=object), "y": [1.0]})
        two = pd.DataFrame({"a": pd.Series([2], dtype=object), "y": [1.0]})
        for frames in ([one, two], [two, one]):
            refused(
                Frames(frames),
                "in the frames: column 'a' holds strings and numbers together .*'x' and 2",
            )
            source = Frames([frame.rename(columns={"a": "y", "y": "x"}) for frame in frames])
            refused(source, "mixes text and other labels", family=BERNOULLI)

    def test_too_few_rows_with_a_positive_weight(self, folder):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 1], "w": [0.0, 0.0, 0.0]})
        for family in (POISSON, BERNOULLI):
            refused(
                source_of(frame, "pandas"),
                "sample_weight is zero for every row",
                weight="w",
                family=family,
            )
            one = frame.assign(w=[0.0, 0.0, 1.0])
            refused(
                source_of(one, "pandas"), "only 1 sample has a positive", weight="w", family=family
            )
        refused(source_of(frame, "parquet"), "has no row with a positive weight", weight="w")

    def test_no_events_and_one_class(self, folder):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1, 0, 0], "w": [0.0, 1.0, 1.0]})
        source = source_of(frame, "parquet")
        refused(source, "y is zero in every row with a positive", weight="w", family=POISSON)
        refused(source, r"y has one class only \(0\) among the rows", weight="w", family=BERNOULLI)

    def test_data_that_changed_after_the_survey(self, folder):
        frame = a_frame()[["city", "label", "y"]]
        source = source_of(frame, "pandas")
        encoder = survey(source, read_roles(source, "y"))
        frame.loc[3, "city"] = "Bern"
        words = (
            "in partition 1: column 'city' has the category 'Bern', which it did not have before"
        )
        with pytest.raises(ValueError, match=words):
            encoded(source_of(frame, "pandas"), encoder)
        encoder = survey(source, read_roles(source, "label"), family=BERNOULLI)
        frame = a_frame()[["city", "label", "y"]]
        frame.loc[3, "label"] = "never"
        with pytest.raises(
            ValueError, match="column 'label': y has the label 'never', which was not"
        ):
            encoded(source_of(frame, "pandas"), encoder)


def test_empty_chunks():
    frame = a_frame()[[*FEATURES, "y"]]
    source = source_of(frame, "pandas")
    encoder = survey(source, read_roles(source, "y"))
    table = encoder(Chunk(frame[:0], "", 0, 3))
    assert isinstance(table, EncodedRows)
    assert (table.columns.shape, len(table), table.number) == ((0, 8), 0, 3)


def test_integers_that_floats_cannot_tell_apart():
    frames = [pd.DataFrame({"key": 2**60 + np.arange(3), "y": 1.0})] * 2
    source = Frames(frames)
    encode = survey(source, read_roles(source, "y"))
    with pytest.raises(ValueError, match=r"chunk.*'key' has integers above 2\^53") as caught:
        encode(Chunk(frames[0], "chunk 0", 0, 0))
    assert caught.value.column == "key"
