"""Tables in files, against the same tables in memory."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from lanam import LANAMRegressor
from lanam.core.rows.tables import EncodedRows
from lanam.engines import delimited, files, formats, local
from lanam.engines.dialects import Dialect
from lanam.engines.files import open_files

N = 1000


def make_frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "row": np.arange(n, dtype=float),
            "x": rng.normal(size=n),
            "city": rng.choice(["Rome", "Bonn", "Oslo"], n),
        }
    )


def write(frame: pd.DataFrame, path: str, group: int = 100) -> None:
    """Write a file in the format of its suffix, in parts of ``group`` rows."""
    if path.endswith(".parquet"):
        frame.to_parquet(path, row_group_size=group, index=False)
    elif path.endswith(".feather"):
        feather.write_feather(pa.Table.from_pandas(frame), path, chunksize=group)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path else ",")


def frames(chunks):
    return [(chunk.place, chunk.first_row, chunk.number, chunk.frame) for chunk in chunks]


def all_chunks(source, columns=None):
    return source.reduce(source.names if columns is None else columns, frames, list.__add__)


def table_of(source, columns=None) -> pd.DataFrame:
    chunks = all_chunks(source, columns)
    return pa.concat_tables(
        [frame for *_, frame in chunks], promote_options="permissive"
    ).to_pandas()


def assert_same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, wanted.reset_index(drop=True), check_dtype=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small_chunks(monkeypatch, rows: int = 64, block: int = 2048) -> None:
    for module in (files, formats, local):
        monkeypatch.setattr(module, "LARGEST_CHUNK", rows)
    monkeypatch.setattr(delimited, "BLOCK_SIZE", block)


class TestReading:
    @pytest.mark.parametrize("ending", ["parquet", "feather", "csv", "tsv", "csv.gz"])
    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_rows_in_the_order_of_the_files(self, folder, monkeypatch, ending, n_jobs):
        small_chunks(monkeypatch)
        frame = make_frame()
        for number, rows in enumerate(np.split(np.arange(N), [1, 350, 351, 900])):
            write(frame.iloc[rows], f"part-{number}.{ending}")
        source = open_files(".", n_jobs=n_jobs)
        assert source.names == ("row", "x", "city")
        assert_same(table_of(source), frame)
        assert_same(table_of(source, ["city", "row"]), frame[["city", "row"]])
        numbers = [number for _, _, number, _ in all_chunks(source)]
        assert numbers == sorted(set(numbers))

    @pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
    def test_chunks_have_a_maximum_size(self, folder, monkeypatch, ending):
        small_chunks(monkeypatch)
        write(make_frame(), f"a.{ending}", group=700)
        sizes = [len(frame) for *_, frame in all_chunks(open_files(f"a.{ending}"))]
        assert sum(sizes) == N
        assert max(sizes) <= 64
        assert len(sizes) >= N / 64

    def test_places_of_parquet_are_row_groups(self, folder, monkeypatch):
        small_chunks(monkeypatch)
        frame = make_frame(250)
        write(frame, "a.parquet")
        found = all_chunks(open_files("a.parquet"))
        assert [(place, first) for place, first, _, _ in found] == [
            ("a.parquet, row group 0 (of 0 to 2)", 0),
            ("a.parquet, row group 0 (of 0 to 2)", 64),
            ("a.parquet, row group 1 (of 0 to 2)", 0),
            ("a.parquet, row group 1 (of 0 to 2)", 64),
            ("a.parquet, row group 2 (of 0 to 2)", 0),
        ]
        for place, first, _, chunk in found:
            group = int(place.split()[3])
            assert chunk["row"][0].as_py() == 100 * group + first

    def test_row_numbers_of_csv(self, folder, monkeypatch):
        small_chunks(monkeypatch)
        write(make_frame(250), "a.csv")
        for place, first, _, chunk in all_chunks(open_files("a.csv")):
            assert place == "a.csv"
            assert chunk["row"][0].as_py() == first

    def test_places_of_arrow_are_record_batches(self, folder):
        write(make_frame(150), "a.feather")
        places = [place for place, *_ in all_chunks(open_files("a.feather"))]
        assert places == [f"a.feather, record batch {k} (of 0 to 1)" for k in (0, 1)]

    def test_dtypes(self, folder):
        frame = pd.DataFrame(
            {
                "category": pd.Categorical(["b", "a", None], categories=["z", "b", "a"]),
                "truth": [True, False, True],
                "nullable": pd.array([1, None, 3], dtype="Int64"),
                "text": ["x", None, "y"],
                "narrow": np.array([1, 2, 3], dtype="float32"),
            }
        )
        write(frame, "a.parquet", group=2)
        source = open_files("a.parquet")
        assert_same(source.empty().to_pandas().drop(columns="category"), frame.iloc[:0, 1:])
        assert isinstance(source.empty().to_pandas()["category"].dtype, pd.CategoricalDtype)
        found = table_of(source)
        assert found["category"].cat.categories.tolist() == ["z", "b", "a"]
        assert found["nullable"].isna().tolist() == [False, True, False]
        assert found["text"].isna().tolist() == [False, True, False]

    def test_pandas_index_is_not_a_column(self, folder):
        frame = make_frame(10).set_index(pd.Index([3, 1] * 5, name="id"))
        frame.to_parquet("a.parquet")
        frame.rename_axis(index=None).to_parquet("b.parquet")
        assert open_files(["a.parquet", "b.parquet"]).names == ("row", "x", "city")

    def test_dots_in_column_names(self, folder):
        write(pd.DataFrame({"a.b": [1.0, 2.0], "a": [3.0, 4.0]}), "a.parquet")
        assert_same(table_of(open_files("a.parquet"), ["a"]), pd.DataFrame({"a": [3.0, 4.0]}))

    def test_column_order_may_differ(self, folder):
        frame = make_frame(20)
        write(frame[:10], "a.parquet")
        write(frame[10:][["city", "x", "row"]], "b.parquet")
        assert_same(table_of(open_files("*.parquet")), frame)


class TestFinding:
    def test_folders_are_searched_without_hidden_files(self, folder):
        frame = make_frame(50)
        for k, name in enumerate(["a/1.parquet", "a/b/2.parquet", "c.pq"]):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            frame[10 * k : 10 * k + 10].to_parquet(name, index=False)
        for name in ("_metadata.parquet", ".hidden.parquet", "_temporary/3.parquet", "notes.txt"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("not a table")
        assert_same(table_of(open_files(folder)), frame[:30])

    def test_patterns_and_lists(self, folder):
        frame = make_frame(40)
        for k, name in enumerate("abcd"):
            write(frame[10 * k : 10 * k + 10], f"{name}.parquet")
        (folder / "a.txt").write_text("not a table")
        assert_same(table_of(open_files("[ab].*")), frame[:20])
        assert_same(
            table_of(open_files(["d.parquet", folder / "a.parquet"])),
            frame.iloc[[*range(30, 40), *range(10)]],
        )

    def test_hive_partitions_are_columns(self, folder):
        frame = make_frame(30)
        frame["year"] = np.repeat([2022, 2023, 2024], 10)
        frame["zone"] = np.repeat(["a b", None, "ä"], 10)
        for year, zone in ((2022, "a%20b"), (2023, "__HIVE_DEFAULT_PARTITION__"), (2024, "ä")):
            os.makedirs(f"sales/year={year}/zone={zone}")
            rows = frame[frame["year"] == year].drop(columns=["year", "zone"])
            write(rows, f"sales/year={year}/zone={zone}/a.parquet")
        for path in ("sales", "sales/*/*/*.parquet", "sales/year=*"):
            source = open_files(path)
            assert source.names == ("row", "x", "city", "year", "zone")
            assert_same(table_of(source), frame)
        assert_same(table_of(open_files("sales"), ["zone", "year"]), frame[["zone", "year"]])
        assert source.empty().schema.field("year").type == pa.int64()
        # A partition that is part of the path itself is not a column.
        assert open_files("sales/year=2024").names == ("row", "x", "city", "zone")

    def test_columns_of_a_file_take_precedence_over_partitions(self, folder):
        os.makedirs("sales/year=2024")
        write(pd.DataFrame({"year": [1.0, 2.0]}), "sales/year=2024/a.parquet")
        assert_same(table_of(open_files("sales")), pd.DataFrame({"year": [1.0, 2.0]}))

    def test_name_with_brackets_is_not_a_pattern(self, folder):
        write(make_frame(5), "a[1].parquet")
        assert_same(table_of(open_files("a[1].parquet")), make_frame(5))


class TestTypes:
    def test_integers_and_floats_are_floats(self, folder):
        write(pd.DataFrame({"a": [1, 2]}), "a.parquet")
        write(pd.DataFrame({"a": [0.5, 2]}), "b.parquet")
        source = open_files(".")
        assert source.empty().schema.field("a").type == pa.float64()
        assert_same(table_of(source), pd.DataFrame({"a": [1, 2, 0.5, 2]}))

    def test_null_columns_take_any_type(self, folder):
        write(pd.DataFrame({"a": [None, None], "b": [1.0, 2.0]}), "a.parquet")
        write(pd.DataFrame({"a": ["x", None], "b": [1.0, 2.0]}), "b.parquet")
        source = open_files(".")
        kind = source.empty().schema.field("a").type
        # pandas 2 writes strings, pandas 3 large ones.
        assert kind in (formats.arrow().string(), formats.arrow().large_string())

    def test_categories_and_strings_are_strings(self, folder):
        write(pd.DataFrame({"a": pd.Categorical(["x", "y"])}), "a.parquet")
        write(pd.DataFrame({"a": ["x", "z"]}), "b.parquet")
        assert open_files(".").empty().schema.field("a").type == pa.string()

    @pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
    def test_type_conflict_names_both_files(self, folder, ending):
        write(pd.DataFrame({"a": [1.0, 2.0]}), f"a.{ending}")
        write(pd.DataFrame({"a": ["x", "z"]}), f"b.{ending}")
        words = f"column 'a' is numeric in ./a.{ending} and string in ./b.{ending}: convert it"
        with pytest.raises(ValueError, match=words):
            open_files(".")

    def test_type_conflict_names_a_file_with_values(self, folder):
        write(pd.DataFrame({"a": [None, None]}), "a.parquet")
        write(pd.DataFrame({"a": [1, 2]}), "b.parquet")
        write(pd.DataFrame({"a": ["x", "z"]}), "c.parquet")
        with pytest.raises(ValueError, match=r"numeric in \./b.parquet and string in \./c.parquet"):
            open_files(".")

    def test_missing_column_names_the_file(self, folder):
        write(make_frame(5), "a.parquet")
        write(make_frame(5).drop(columns="x"), "b.parquet")
        with pytest.raises(
            ValueError, match=r"b.parquet has no column 'x', but a.parquet has: all"
        ):
            open_files(["a.parquet", "b.parquet"])
        with pytest.raises(
            ValueError, match=r"b.parquet has no column 'x', but a.parquet has: all"
        ):
            open_files(["b.parquet", "a.parquet"])

    def test_csv_integers_followed_by_fractions(self, folder, monkeypatch):
        monkeypatch.setattr(delimited, "_HEAD", 64)
        values = [str(k) for k in range(100)] + ["0.5", "", "NA"]
        (folder / "a.csv").write_text("a\n" + "\n".join(f'"{value}"' for value in values) + "\n")
        source = open_files("a.csv")
        assert source.empty().schema.field("a").type == pa.int64()
        found = table_of(source)["a"].to_numpy()
        np.testing.assert_array_equal(found, [*range(100), 0.5, np.nan, np.nan])

    @pytest.mark.parametrize(
        ("cell", "kind"), [("0.5", "double"), ("x", "string"), ("true", "bool"), ("7", "int64")]
    )
    def test_csv_column_that_begins_with_missing_values(self, folder, monkeypatch, cell, kind):
        monkeypatch.setattr(delimited, "_HEAD", 64)
        monkeypatch.setattr(delimited, "BLOCK_SIZE", 64)
        lines = ["a,b"] + ["1,"] * 100 + [f"1,{cell}"] + ["1,"] * 10
        (folder / "a.csv").write_text("\n".join(lines))
        source = open_files("a.csv")
        assert str(source.empty().schema.field("b").type) == kind
        assert table_of(source)["b"].notna().sum() == 1

    def test_csv_column_without_values(self, folder):
        (folder / "a.csv").write_text("a,b\n1,\n2,\n")
        assert table_of(open_files("a.csv"))["b"].isna().all()

    @pytest.mark.parametrize(
        "text", ["a;b\n1;x\n", "a|b\n1|x\n", "\ufeffa,b\r\n1,x\r\n", "a,b\n1,x"]
    )
    def test_csv_delimiters_and_line_ends(self, folder, text):
        (folder / "a.csv").write_bytes(text.encode())
        assert_same(table_of(open_files("a.csv")), pd.DataFrame({"a": [1.0], "b": ["x"]}))


class TestErrors:
    def assert_error(self, path, words, **options):
        with pytest.raises(ValueError, match=words):
            all_chunks(open_files(path, **options))

    def test_no_such_file(self, folder):
        (folder / "empty").mkdir()
        self.assert_error("a.parquet", "there is no file or folder a.parquet")
        self.assert_error(
            "*.parquet", r"no data file matches \*.parquet: known suffixes are .parquet, "
        )
        self.assert_error(
            "empty", "the folder empty has no data files: known suffixes are .parquet, "
        )
        self.assert_error([], "the list of files is empty")

    def test_unknown_suffix(self, folder):
        (folder / "a.xlsx").write_text("x")
        self.assert_error("a.xlsx", "a.xlsx: unknown file type: .parquet, .pq, .csv")

    def test_files_of_two_formats(self, folder):
        write(make_frame(5), "a.csv")
        write(make_frame(5), "b.parquet")
        self.assert_error(
            ".", r"a.csv is a CSV file, and ./b.parquet is a Parquet file: .* pattern \*.csv"
        )

    def test_file_listed_twice(self, folder):
        write(make_frame(5), "a.csv")
        self.assert_error([".", "a.csv"], "a.csv is listed twice, and its rows would count twice")

    @pytest.mark.parametrize("ending", ["parquet", "feather", "csv.gz"])
    def test_truncated_files(self, folder, ending):
        write(make_frame(), f"a.{ending}")
        content = (folder / f"a.{ending}").read_bytes()
        (folder / f"a.{ending}").write_bytes(content[: len(content) // 2])
        self.assert_error(f"a.{ending}", f"a.{ending} cannot be read as a")
        (folder / f"a.{ending}").write_bytes(b"neither of these formats")
        self.assert_error(f"a.{ending}", f"a.{ending} cannot be read as a")

    def test_corrupt_row_group(self, folder):
        frame = make_frame()
        frame.to_parquet("a.parquet", row_group_size=500, compression="gzip")
        content = bytearray((folder / "a.parquet").read_bytes())
        content[2000:6000] = b"\xff" * 4000
        (folder / "a.parquet").write_bytes(bytes(content))
        self.assert_error(
            "a.parquet", "a.parquet cannot be read as a Parquet file: it may be incomplete"
        )

    def test_file_deleted_after_opening(self, folder):
        write(make_frame(5), "a.parquet")
        source = open_files("a.parquet")
        os.remove("a.parquet")
        with pytest.raises(ValueError, match=r"a.parquet cannot be read: No such file"):
            all_chunks(source)

    @pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
    def test_no_rows(self, folder, ending):
        write(make_frame(0), f"a.{ending}")
        self.assert_error(f"a.{ending}", f"a.{ending} has no rows")

    @pytest.mark.parametrize("text", ["", "\n\n"])
    def test_empty_csv(self, folder, text):
        (folder / "a.csv").write_text(text)
        self.assert_error("a.csv", "a.csv is empty: a CSV file begins with a header")

    def test_files_without_rows_among_others(self, folder):
        frame = make_frame(5)
        for ending in ("parquet", "feather", "csv"):
            write(frame[:0], f"a.{ending}")
            write(frame, f"b.{ending}")
            assert_same(table_of(open_files(f"*.{ending}", n_jobs=2)), frame)
        (folder / "a.csv").write_text("row,x,city")
        assert_same(table_of(open_files("*.csv")), frame)

    def test_duplicate_column_names(self, folder):
        (folder / "a.csv").write_text("a,b,a\n1,2,3\n")
        pq.write_table(pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]), "a.parquet")
        for name in ("a.csv", "a.parquet"):
            self.assert_error(name, f"{name} has more than one column named 'a'")

    def test_string_after_the_head_of_a_numeric_column(self, folder, monkeypatch):
        monkeypatch.setattr(delimited, "_HEAD", 64)
        lines = ["z,a"] + ["0,1"] * 100 + ["0,old"]
        (folder / "a.csv").write_text("\n".join(lines))
        words = (
            r"a.csv, row 101 \(counting from 1 after .*\), column 'a': 'old' is not numeric, unlike"
        )
        with pytest.raises(ValueError, match=words):
            all_chunks(open_files("a.csv"), ["a"])

    def test_ragged_rows(self, folder):
        (folder / "a.csv").write_text("a,b\n1,2\n1,2,3\n")
        self.assert_error(
            "a.csv",
            "a.csv, row 2 .*: 3 cells, but the header has 2 \\(1,2,3\\): fix the row, quote",
        )

    def test_unclosed_quote(self, folder, monkeypatch):
        monkeypatch.setattr(delimited, "_HEAD", 1 << 10)
        (folder / "a.csv").write_text('a,b\n1,"' + "2\n1," * 2000)
        self.assert_error(
            "a.csv", "a.csv.*is a quote not closed|a.csv cannot be read as a CSV file"
        )

    @pytest.mark.parametrize("text", ["a,b\n1,\xe4\n", "\xe4,b\n1,2\n"])
    def test_other_encodings(self, folder, text):
        (folder / "a.csv").write_bytes(text.encode("latin-1"))
        self.assert_error(
            "a.csv", "a.csv.* is not encoded in utf-8: specify the encoding, .* csv_files"
        )

    @pytest.mark.parametrize("n_jobs", [0, -1, 1.5, True, "2"])
    def test_invalid_n_jobs(self, folder, n_jobs):
        write(make_frame(5), "a.csv")
        self.assert_error("a.csv", "n_jobs=.* must be a positive integer", n_jobs=n_jobs)

    def test_without_pyarrow(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=r'pip install "lanam\[files\]"'):
            open_files("a.parquet")


class TestChanges:
    """A file that another program changes while it is read."""

    MESSAGE = r"^a\.{} was changed or replaced while it was read: run again when no other program"

    def changed(self, ending):
        return pytest.raises(ValueError, match=self.MESSAGE.format(ending))

    @pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
    def test_between_passes(self, folder, ending):
        write(make_frame(), f"a.{ending}")
        source = open_files(f"a.{ending}")
        all_chunks(source)
        write(make_frame(seed=1), f"new.{ending}")
        os.replace(f"new.{ending}", f"a.{ending}")
        with self.changed(ending):
            all_chunks(source)

    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_during_a_pass(self, folder, monkeypatch, n_jobs):
        small_chunks(monkeypatch)
        write(make_frame(), "a.parquet")
        source = open_files("a.parquet", n_jobs=n_jobs)

        def touch(chunks):
            for _ in chunks:
                os.utime("a.parquet", (1, 1))
            return []

        with self.changed("parquet"):
            source.reduce(source.names, touch, list.__add__)

    def test_errors_that_follow_from_it(self, folder, monkeypatch):
        """Rows that grow cells, and values that the job does not know."""
        small_chunks(monkeypatch, block=2048)
        write(make_frame(), "a.csv")
        source = open_files("a.csv")

        def append(chunks):
            for number, _ in enumerate(chunks):
                if number == 0:
                    with open("a.csv", "a") as file:
                        file.write("1,2,3,4,5\n")
            return []

        with self.changed("csv"):
            source.reduce(source.names, append, list.__add__)

        def refuse(chunks):
            next(iter(chunks))
            os.utime("a.csv", (1, 1))
            raise KeyError("Paris")

        write(make_frame(), "a.csv")
        source = open_files("a.csv")
        with self.changed("csv"):
            source.reduce(source.names, refuse, list.__add__)

    def test_errors_for_other_reasons_are_unchanged(self, folder):
        write(make_frame(), "a.csv")
        source = open_files("a.csv")

        def refuse(chunks):
            raise KeyError("Paris")

        with pytest.raises(KeyError, match="Paris"):
            source.reduce(source.names, refuse, list.__add__)

    def test_during_a_fit(self, folder, monkeypatch):
        """Between two passes of a fit, of which it has several."""
        frame = make_frame()
        write(frame, "a.parquet")
        run, passes = files.FileSource.run, []

        def replaced(*args):
            passes.append(args)
            if len(passes) == 3:
                write(frame.assign(x=frame.x + 1.0), "a.parquet")
            return run(*args)

        monkeypatch.setattr(files.FileSource, "run", replaced)
        with self.changed("parquet"):
            LANAMRegressor(memory=1, interactions=0).fit("a.parquet", target="row")
        assert len(passes) == 3


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_checksums_of_parquet_pages_are_verified(folder, compression):
    """A flipped bit that decodes to another number."""
    frame = make_frame()[["x"]]
    for checksum in (False, True):
        options = {"compression": compression, "write_page_checksum": checksum}
        pq.write_table(pa.Table.from_pandas(frame), "a.parquet", use_dictionary=False, **options)
        content = bytearray(Path("a.parquet").read_bytes())
        content[4000] ^= 1
        Path("a.parquet").write_bytes(content)
        source = open_files("a.parquet")
        if checksum:
            with pytest.raises(ValueError, match=r"^a\.parquet cannot be read .*checksum"):
                table_of(source)
        else:  # nothing else would notice
            assert not table_of(source).equals(frame)


class TestOneColumn:
    """A blank line is a row whose only cell is empty."""

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("before", [0, 2])
    @pytest.mark.parametrize("block", [16, 1 << 20])
    def test_blank_lines_are_missing_values(self, folder, monkeypatch, end, before, block):
        monkeypatch.setattr(delimited, "BLOCK_SIZE", block)
        lines = [""] * before + ["x", "1.5", "", "", "2.5", "", "NA", "3.5", ""]
        Path("a.csv").write_bytes(end.join([*lines, ""]).encode())
        (found,) = table_of(open_files("a.csv")).to_numpy().T
        np.testing.assert_array_equal(found, [1.5, *[np.nan] * 2, 2.5, *[np.nan] * 2, 3.5, np.nan])

    def test_from_a_stream(self):
        stream = delimited.PeekableStream(io.BytesIO(b"\n\nx\n1\n\n2\n"))
        source = files.open_stream(stream, "stdin", Dialect(), types={"x": pa.float64()})
        assert table_of(source).x.tolist() == [1.0, pytest.approx(np.nan, nan_ok=True), 2.0]

    def test_errors_count_blank_lines(self, folder, monkeypatch):
        monkeypatch.setattr(delimited, "_HEAD", 64)
        Path("a.csv").write_text("\n\nx\n" + "1\n\n" * 100 + "two\n")
        with pytest.raises(ValueError, match=r"row 201 \(counting from 1 after the header\)"):
            table_of(open_files("a.csv"))

    def test_more_columns_skip_them(self, folder):
        Path("a.csv").write_text("\nx,y\n\n1,2\n\n3,4\n\n")
        assert table_of(open_files("a.csv")).y.tolist() == [2.0, 4.0]


class TestMetadata:
    def test_numbers_of_rows(self, folder):
        for ending in ("parquet", "feather", "csv"):
            write(make_frame(30), f"a.{ending}")
            write(make_frame(12), f"b.{ending}")
        assert open_files("*.parquet").n_rows == 42
        assert open_files("*.feather").n_rows == 42
        source = open_files("*.csv")
        assert source.n_rows is None
        all_chunks(source, ["x"])
        assert source.n_rows == 42

    def test_fingerprints(self, folder):
        os.makedirs("data")
        write(make_frame(30), "data/a.parquet")
        print_ = open_files("data").fingerprint
        assert open_files("data/*.parquet").fingerprint == print_
        os.rename("data", "elsewhere")
        assert open_files("elsewhere").fingerprint == print_
        write(make_frame(30, seed=1), "elsewhere/a.parquet")
        assert open_files("elsewhere").fingerprint != print_
        changed = open_files("elsewhere").fingerprint
        os.rename("elsewhere/a.parquet", "elsewhere/b.parquet")
        assert open_files("elsewhere").fingerprint != changed

    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_progress(self, folder, monkeypatch, n_jobs):
        small_chunks(monkeypatch)
        write(make_frame(), "a.parquet")
        write(make_frame(50), "a.csv")
        calls = []
        all_chunks(
            open_files("a.parquet", n_jobs=n_jobs, progress=lambda *rows: calls.append(rows)), ["x"]
        )
        done = [rows for rows, _ in calls]
        assert done == sorted(done)
        assert calls[-1] == (N, N)
        assert len(calls) == 2 * N // 100
        calls.clear()
        all_chunks(open_files("a.csv", progress=lambda *rows: calls.append(rows)), ["x"])
        assert calls[-1] == (50, None)


def encode(chunk):
    """Two columns, and the row number as the response; rows 300 to 399 have no weight."""
    columns = np.asfortranarray(np.column_stack([chunk.frame["row"], chunk.frame["x"]]))
    kept = (columns[:, 0] < 300) | (columns[:, 0] >= 400)
    return EncodedRows(columns[kept], columns[kept, 0], np.ones(kept.sum()), chunk.number)


def gather(tables):
    tables = list(tables)
    assert tables
    assert all(len(table) for table in tables)
    return (
        np.concatenate([table.columns for table in tables]),
        np.concatenate([table.response for table in tables]),
        np.array([len(table) for table in tables]),
        np.array([table.number for table in tables]),
    )


def concatenated(first, second):
    return tuple(map(np.concatenate, zip(first, second, strict=True)))


class TestTables:
    @pytest.mark.parametrize("memory", [0, 1 << 20])
    @pytest.mark.parametrize("n_jobs", [1, 2, 7, 50])
    @pytest.mark.parametrize("ending", ["parquet", "csv"])
    def test_totals_are_merged_in_order(self, folder, monkeypatch, memory, n_jobs, ending):
        small_chunks(monkeypatch, 130)
        frame = make_frame()
        write(frame[:450], f"a.{ending}", group=100)
        write(frame[450:], f"b.{ending}", group=10)
        source = open_files(".", n_jobs=n_jobs, memory=memory)
        tables = source.encoded(["x", "row"], encode)
        assert tables.n_columns == 2
        wanted = frame[(frame["row"] < 300) | (frame["row"] >= 400)]
        for _ in range(3):
            columns, response, sizes, numbers = tables.total(gather, concatenated)
            np.testing.assert_array_equal(response, wanted["row"])
            np.testing.assert_array_equal(columns, wanted[["row", "x"]])
            assert sizes.max() <= 130
            assert (np.diff(numbers) > 0).all()

    def test_small_chunks_are_joined(self, folder, monkeypatch):
        small_chunks(monkeypatch, 130)
        write(make_frame(), "a.parquet", group=10)
        *_, sizes, _ = (
            open_files("a.parquet").encoded(["x", "row"], encode).total(gather, concatenated)
        )
        assert sizes.tolist() == [70] * 12 + [60]
        seen = []
        open_files("a.parquet").encoded(["x", "row"], encode).total(
            lambda tables: (np.array([seen.append(table) or 1 for table in tables]),), concatenated
        )
        assert all(table.columns.flags.f_contiguous for table in seen)

    def test_totals_are_added_by_default(self, folder):
        write(make_frame(), "a.parquet")
        tables = open_files("a.parquet", n_jobs=4).encoded(["x", "row"], encode)
        (total,) = tables.total(lambda chunks: (sum(chunk.response.sum() for chunk in chunks),))
        assert total == sum(range(300)) + sum(range(400, 1000))

    def reads(self, monkeypatch, source, passes=3):
        """The number of chunks that are encoded in each pass."""
        count = []
        tables = source.encoded(["x", "row"], lambda chunk: count.append(chunk) or encode(chunk))
        found = []
        for _ in range(passes):
            count.clear()
            tables.total(gather, concatenated)
            found.append(len(count))
        return found

    @pytest.mark.parametrize("n_jobs", [1, 3])
    @pytest.mark.parametrize("ending", ["parquet", "csv"])
    def test_tables_that_fit_in_memory_are_read_once(self, folder, monkeypatch, n_jobs, ending):
        small_chunks(monkeypatch)
        write(make_frame(), f"a.{ending}")
        fits = 900 * 4 * 8
        first, second, third = self.reads(
            monkeypatch, open_files(f"a.{ending}", n_jobs=n_jobs, memory=fits)
        )
        assert first > 10
        assert second == third == 0
        for memory in (0, fits - 1):
            source = open_files(f"a.{ending}", n_jobs=n_jobs, memory=memory)
            assert self.reads(monkeypatch, source) == [first] * 3

    def test_job_that_stops_early_keeps_no_partial_table(self, folder, monkeypatch):
        small_chunks(monkeypatch)
        write(make_frame(), "a.parquet")
        tables = open_files("a.parquet", memory=1 << 20).encoded(["x", "row"], encode)
        tables.total(lambda chunks: (next(iter(chunks)).response,))
        assert len(tables.total(gather, concatenated)[1]) == 900

    def test_no_positive_weights(self, folder):
        write(make_frame(390)[300:], "a.parquet")
        with pytest.raises(ValueError, match=r"a.parquet has no row with a positive weight"):
            open_files("a.parquet").encoded(["x", "row"], encode).total(gather, concatenated)

    def test_joining_of_small_tables(self, monkeypatch):
        monkeypatch.setattr(local, "LARGEST_CHUNK", 130)
        sizes = [30, 130, 0, 20, 64, 10, 65, 1]
        ends = np.cumsum([0, *sizes])
        tables = [
            EncodedRows(rows[:, None], rows, rows, number)
            for number, rows in enumerate(map(np.arange, ends[:-1], ends[1:]))
        ]
        joined = list(local.joined(tables))
        assert [len(table) for table in joined] == [30, 130, 84, 10, 65, 1]
        assert [table.number for table in joined] == [0, 1, 3, 5, 6, 7]
        rows = np.arange(ends[-1])
        for name in ("response", "weight"):
            np.testing.assert_array_equal(
                np.concatenate([getattr(table, name) for table in joined]), rows
            )
        columns = np.concatenate([table.columns for table in joined])
        np.testing.assert_array_equal(columns[:, 0], rows)

    @pytest.mark.parametrize("memory", [0, 2 * 100 * 4 * 8])
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_few_chunks_are_in_memory_at_once(self, folder, monkeypatch, n_jobs, memory):
        small_chunks(monkeypatch, 100)
        write(
            make_frame(3000)[lambda frame: (frame["row"] < 300) | (frame["row"] >= 400)],
            "a.parquet",
        )
        alive, most, lock = set(), [0], threading.Lock()

        class Watched(np.ndarray):
            def __del__(self):
                alive.discard(id(self))

        def watched(chunk):
            table = encode(chunk)
            columns = table.columns.view(Watched)
            with lock:
                alive.add(id(columns))
                most[0] = max(most[0], len(alive))
            return EncodedRows(columns, table.response, table.weight, table.number)

        source = open_files("a.parquet", n_jobs=n_jobs, memory=memory)
        tables = source.encoded(["x", "row"], watched)
        tables.total(lambda chunks: (np.array([len(chunk) for chunk in chunks]),), concatenated)
        assert most[0] <= 2 * n_jobs + (2 if memory else 0)

    def test_memory_stays_bounded(self, folder):
        # Arrow reports how much memory it has allocated.
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"row": rng.normal(size=1_000_000), "x": rng.normal(size=1_000_000)})
        frame.to_parquet("a.parquet", row_group_size=500_000, index=False)
        before = pa.total_allocated_bytes()
        most = []
        open_files("a.parquet").encoded(["x", "row"], encode).total(
            lambda chunks: (
                np.array([most.append(pa.total_allocated_bytes()) or 1 for _ in chunks]),
            ),
            concatenated,
        )
        # Two chunks of two columns of 8 bytes, and a read buffer, rather than the row group's 8 MB.
        assert max(most) - before < 2 * 262_144 * 16 + 3_000_000

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_errors_stop_all_threads(self, folder, monkeypatch, n_jobs):
        small_chunks(monkeypatch)
        write(make_frame(), "a.parquet")

        def bad(chunk):
            if chunk.place.endswith("row group 2 (of 0 to 9)"):
                raise ValueError(chunk.place)
            return encode(chunk)

        before = set(threading.enumerate())
        with pytest.raises(ValueError, match="row group 2"):
            open_files("a.parquet", n_jobs=n_jobs).encoded(["x", "row"], bad).total(
                gather, concatenated
            )
        assert set(threading.enumerate()) <= before

    def test_reading_stops_after_an_error(self, folder, monkeypatch):
        small_chunks(monkeypatch)
        write(make_frame(), "a.parquet")
        read = []

        def bad(chunk):
            read.append(chunk)
            if chunk.place.startswith("a.parquet, row group 0"):
                raise ValueError("bad")
            time.sleep(0.2)
            return encode(chunk)

        with pytest.raises(ValueError, match="bad"):
            open_files("a.parquet", n_jobs=2).encoded(["x", "row"], bad).total(gather)
        assert len(read) <= 3

    def test_number_of_threads(self, folder, monkeypatch):
        small_chunks(monkeypatch)
        write(make_frame(), "a.parquet")
        barrier = threading.Barrier(3, timeout=20)
        seen = set()

        def job(chunks):
            if threading.current_thread() not in seen:
                seen.add(threading.current_thread())
                barrier.wait()
            return gather(chunks)

        open_files("a.parquet", n_jobs=3).encoded(["x", "row"], encode).total(job, concatenated)
        assert len(seen) == 3


def test_gzip(folder):
    write(make_frame(20), "a.csv")
    with gzip.open("b.csv.gz", "wb") as file:
        file.write((folder / "a.csv").read_bytes())
    assert_same(table_of(open_files("b.csv.gz")), make_frame(20))


def test_chunks_can_be_pickled(folder):
    write(make_frame(20), "a.parquet")
    for place, *_, frame in all_chunks(open_files("a.parquet")):
        assert pickle.loads(pickle.dumps(frame)).equals(frame)
        assert place
