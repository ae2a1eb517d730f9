"""Invalid files, tables, models and names: a message of one line, an exit code, no files left."""

import errno
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest

from tests.cli.conftest import make_table


@pytest.fixture
def refused(lanam):
    """Run a command that must fail with one line, and with nothing written."""

    def run(*arguments, code=1, words):
        before = {path: path.stat().st_mtime_ns for path in Path().iterdir()}
        done = lanam(*arguments, code=code)
        assert done.out == ""
        errors = [line for line in done.err.splitlines() if "error:" in line]
        assert len(errors) == 1
        assert done.err.splitlines()[-1] == errors[0]
        assert words in errors[0]
        assert {path: path.stat().st_mtime_ns for path in Path().iterdir()} == before
        return done

    return run


def predict(data, *more):
    return ("predict", "price.lanam", data, "-o", "out.csv", *more)


def fit(data, *more):
    return ("fit", data, "-t", "y", "-o", "m.lanam", *more)


class TestFiles:
    def test_none(self, refused, place):
        refused(*predict("none.csv"), words="there is no file none.csv")
        refused(*fit("none.csv"), words="there is no file none.csv")
        refused("explain", "none.lanam", words="there is no file none.lanam")

    def test_folders(self, refused, place):
        os.mkdir("folder.csv")
        os.mkdir("model")
        refused(*predict("folder.csv"), words="the folder folder.csv has no data files")
        refused("explain", "model", words="model is a folder")
        refused("predict", "price.lanam", "rides.csv", "-o", "folder.csv", words="is a folder")

    def test_no_folder_to_write_into(self, refused, place):
        refused(
            "predict", "price.lanam", "rides.csv", "-o", "no/o.csv", words="there is no folder no"
        )
        refused(
            "fit", "rides.csv", "-t", "price", "-o", "no/m.lanam", words="there is no folder no"
        )

    @pytest.mark.parametrize("content", [b"", b"\n", b"\n\n"])
    def test_empty(self, refused, place, content):
        Path("a.csv").write_bytes(content)
        refused(*fit("a.csv"), words="a.csv is empty")
        refused(*predict("a.csv"), words="a.csv is empty")

    def test_a_header_without_rows(self, refused, place):
        for header in ("x,y", "x,y\n", "\n\nx,y\n"):
            Path("a.csv").write_text(header)
            refused(*fit("a.csv"), words="a.csv has a header and no rows")
        Path("b.csv").write_text(Path("rides.csv").read_text().splitlines()[0])
        refused("report", "price.lanam", "b.csv", "-o", "r.html", words="has a header and no rows")
        refused(
            "explain",
            "price.lanam",
            "--row",
            1,
            "--data",
            "b.csv",
            code=2,
            words="b.csv has 0 rows",
        )

    def test_unknown_names(self, refused, place):
        Path("a.xlsx").write_text("x,y\n1,2\n")
        words = "unknown file type: .csv, .tsv, .txt"
        refused(*fit("a.xlsx"), code=2, words=words)
        assert ".gz, .bz2, .zst after" in refused(*fit("a.xlsx"), code=2, words=words).err
        done = refused("predict", "price.lanam", "rides.csv", "-o", "o.json", code=2, words=words)
        assert ".gz, .bz2 after" in done.err
        refused(
            "predict", "price.lanam", "rides.csv", "-o", "o.csv.zst", code=2, words="not written"
        )
        refused(
            "report",
            "price.lanam",
            "-o",
            "r.pdf",
            code=2,
            words="the name of a report ends in .html",
        )
        refused("explain", "price.lanam", "-o", "r.gif", code=2, words="the name of a plot ends in")

    def test_permissions(self, refused, place, monkeypatch):
        def deny(*_, **__):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "rides.csv")

        monkeypatch.setattr(pa, "input_stream", deny)
        refused(*predict("rides.csv"), words="rides.csv cannot be read: Permission denied")

    def test_parquet_with_the_wrong_name(self, refused, place):
        parquet.write_table(make_table(), "a.csv")
        refused(*fit("a.csv"), words="a.csv is a Parquet file")

    @pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
    def test_a_damaged_parquet_file(self, refused, place, keep):
        parquet.write_table(make_table(), "a.parquet")
        data = Path("a.parquet").read_bytes()
        Path("a.parquet").write_bytes(data[: int(keep * len(data))] + b"x")
        refused(
            *predict("a.parquet"),
            words="a.parquet cannot be read as a Parquet file: it may be incomplete, ",
        )

    def test_damage_within_a_parquet_file(self, lanam, place):
        parquet.write_table(make_table(), "a.parquet", compression="snappy")
        data = bytearray(Path("a.parquet").read_bytes())
        data[200:2000] = os.urandom(1800)
        Path("a.parquet").write_bytes(data)
        lanam(*predict("a.parquet"), code=1)
        assert not Path("out.csv").exists()

    def test_not_text(self, refused, place):
        Path("a.csv").write_bytes(bytes(range(256)) * 4)
        refused(*fit("a.csv"), words="a.csv")
        Path("b.csv").write_bytes(b"x\x00,y\n1,2\n")
        refused(*fit("b.csv"), words="b.csv is not a text file")

    @pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + b"\0" * 100])
    def test_not_a_model(self, refused, place, content):
        Path("a.lanam").write_bytes(content)
        refused("explain", "a.lanam", words="a.lanam")
        refused("predict", "a.lanam", "rides.csv", "-o", "o.csv", words="a.lanam")

    def test_a_damaged_model(self, refused, place):
        data = bytearray(Path("price.lanam").read_bytes())
        data[len(data) // 2] ^= 1
        Path("a.lanam").write_bytes(data)
        refused("explain", "a.lanam", words="a.lanam is damaged")

    def test_data_as_a_model(self, refused, place):
        refused(
            "explain",
            "rides.csv",
            words="is not a lanam model: such files are written by lanam fit",
        )


class TestTables:
    def test_ragged_rows(self, refused, place):
        lines = Path("rides.csv").read_text().splitlines()
        lines[7] += ",1"
        Path("a.csv").write_text("\n".join(lines))
        refused(
            *predict("a.csv"),
            words="a.csv, row 7 (counting from 1 after the header): 12 cells, but the header has 11",
        )
        Path("b.csv").write_text("x,y\n1,2\n3\n")
        refused(
            *fit("b.csv"),
            words="b.csv, row 2 (counting from 1 after the header): 1 cells, but the header has 2 (3)",
        )

    def test_the_same_name_twice(self, refused, place):
        Path("a.csv").write_text("x,y,x\n1,2,3\n")
        refused(*fit("a.csv"), words="a.csv has more than one column named 'x'")
        table = pa.table([[1, 2], [3, 4]], names=["x", "x"])
        parquet.write_table(table, "a.parquet")
        refused(*predict("a.parquet"), words="more than one column named 'x'")

    def test_columns_without_names_are_left_out(self, lanam, place):
        rows = "\n".join(f"{k},{k / 7},{k % 9}" for k in range(50))
        Path("a.csv").write_text(",x,y\n" + rows)
        done = lanam(*fit("a.csv", "--interactions", 0))
        assert "1 column(s) without a name are left out" in done.err
        assert "rows of 1 columns" in done.out

    def test_no_target(self, refused, place):
        refused(
            *fit("rides.csv"),
            code=2,
            words="--target names the column 'y', which the table does not have",
        )
        Path("a.csv").write_text("x,y\n" + "1,\n" * 20)
        refused(*fit("a.csv"), words="the target 'y' has no value in any row")
        Path("b.csv").write_text("x,y\n" + "".join(f"{k},5\n" for k in range(20)))
        refused(*fit("b.csv"), words="the target 'y' is constant")

    def test_text_among_numbers(self, refused, place):
        lines = ["x,y"] + [f"{k},{k * 1.5}" for k in range(40)]
        lines[17] = "none,3"
        Path("a.csv").write_text("\n".join(lines))
        refused(
            *fit("a.csv"),
            words="column 'x' is numeric but for 'none', first in row 17 (counting from 1 after "
            "the header) of a.csv. Fix it, use --missing 'none' if that stands for a missing value, or "
            "--categorical 'x'",
        )
        lines[17] = "4,none"
        Path("a.csv").write_text("\n".join(lines))
        refused(*fit("a.csv"), words="column 'y' is numeric but for")

    def test_codes_that_are_partly_numbers_may_be_named_categories(self, lanam, place):
        lines = ["x,y"] + [f"{'V1' if k % 4 == 0 else k % 4},{k * 1.5}" for k in range(40)]
        Path("a.csv").write_text("\n".join(lines))
        lanam(*fit("a.csv", "--categorical", "x", "--interactions", 0, "-q"))
        from lanam import load

        assert load("m.lanam").explain_global()["x"].values.tolist() == ["1", "2", "3", "V1"]

    def test_text_in_a_numeric_column_of_new_rows(self, refused, place):
        lines = Path("rides.csv").read_text().splitlines()
        cells = lines[40].rsplit(",", 9)
        cells[-9] = "old"
        lines[40] = ",".join(cells)
        Path("a.csv").write_text("\n".join(lines))
        for more in ([], ["--keep", "age"], ["--all-columns"]):
            refused(
                *predict("a.csv", "--block-size", 500, *more),
                words="a.csv, row 40 (counting from 1 after the header): column 'age' is numeric in "
                "the model, and 'old' is not: fix the cell, or use --missing 'old'",
            )

    def test_strings_for_numbers_in_parquet(self, refused, place):
        table = make_table()
        table = table.set_column(2, "age", pa.array(["old"] * 300))
        parquet.write_table(table, "a.parquet")
        words = (
            "a.parquet: column 'age' was numeric in the training data, and is string here (for example "
            "'old'): convert it in the file"
        )
        done = refused(*predict("a.parquet"), words=words)
        assert "X = " not in done.err
        refused("predict", "price.lanam", "a.parquet", "-o", "-", words=words)  # no header either

    @pytest.mark.parametrize(
        ("name", "values", "words"),
        [
            (
                "city",
                pa.array([1] * 300),
                "column 'city' was string in the training data, and is num",
            ),
            (
                "holiday",
                pa.array(["no"] * 300),
                "was boolean in the training data, and is str",
            ),
            (
                "age",
                pa.array([1] * 300, pa.date32()),
                "is date32[day] here (for example '1970-01-02')",
            ),
        ],
    )
    def test_other_types_in_parquet(self, refused, place, name, values, words):
        table = make_table()
        table = table.set_column(table.column_names.index(name), name, values)
        parquet.write_table(table, "a.parquet")
        refused("predict", "price.lanam", "a.parquet", "-o", "-", words=words)

    def test_compatible_types_in_parquet(self, lanam, place):
        table = make_table()
        for name, values in {
            "age": pa.nulls(300, pa.string()),  # only missing values
            "zone": pa.nulls(300),
            "city": table["city"].dictionary_encode(),
            "holiday": table["holiday"].cast(pa.int8()),
        }.items():
            table = table.set_column(table.column_names.index(name), name, values)
        parquet.write_table(table, "a.parquet")
        lanam(*predict("a.parquet"))

    def test_a_string_exposure_in_parquet(self, refused, place):
        table = make_table()
        table = table.set_column(6, "hours", table["hours"].cast(pa.string()))
        parquet.write_table(table, "a.parquet")
        words = "a.parquet: the exposure 'hours' has type string, and must be numeric"
        refused("predict", "events.lanam", "a.parquet", "-o", "-", words=words)

    def test_dates(self, refused, place):
        rows = "\n".join(f"2024-01-{k:02d},{k}" for k in range(1, 29))
        Path("a.csv").write_text("when,y\n" + rows)
        refused(*fit("a.csv"), words="column 'when' holds dates or times")
        done = refused(*fit("a.csv"), words="--drop 'when'")
        assert "X." not in done.err

    def test_dates_as_text(self, refused, place):
        rows = "\n".join(f"{k:02d}.01.2024,{k}" for k in range(1, 29))
        Path("a.csv").write_text("when,y\n" + rows)
        words = "convert them to a number (such as days) in the file, or leave it out with --drop 'when'"
        refused(*fit("a.csv"), words=words)

    def test_text_that_is_something_else(self, refused, place):
        rows = "\n".join(f"€{k}.900,P{k:03d},{k}" for k in range(10, 80))
        Path("a.csv").write_text("price,patient,y\n" + rows)
        words = "'price' holds amounts of money as text (for example '€10.900'): convert them to "
        done = refused(
            *fit("a.csv", "-q"),
            words=words + "numbers in the file, or leave it out with --drop 'price'",
        )
        assert "if its values are categories, use --categorical 'price'" in done.err
        words = "column 'patient' holds identifiers: 56 distinct strings in 56 rows (for example 'P010')"
        done = refused(*fit("a.csv", "-q", "--drop", "price"), words=words)
        assert "--drop 'patient'; if its values are categories, use --categorical" in done.err
        words = "the target 'price' holds amounts of money as text"
        refused("fit", "a.csv", "-t", "price", "-o", "m.lanam", words=words)

    def test_free_text(self, refused, place):
        rows = "\n".join(
            f"a long remark about parcel number {k} which was damp,{k}" for k in range(80)
        )
        Path("a.csv").write_text("note,y\n" + rows)
        refused(*fit("a.csv", "-q"), words="--drop 'note'")
        refused(*fit("a.csv", "-q"), words="name it in --categorical")

    def test_huge_numbers(self, refused, place):
        rows = "\n".join(f"{k},{k}" for k in range(40))
        Path("a.csv").write_text(f"x,y\n{rows}\n1e400,3\n")
        refused(*fit("a.csv", "-q"), words="column 'x' has 1 infinite value")
        Path("b.csv").write_text(f"x,y\n{rows}\n3,1e300\n")
        refused(*fit("b.csv", "-q"), words="change the unit of y")
        lines = Path("rides.csv").read_text().splitlines()
        cells = lines[40].rsplit(",", 9)
        cells[-9] = "1e999"
        Path("c.csv").write_text("\n".join([lines[0], ",".join(cells)]))
        refused(*predict("c.csv"), words="column 'age' has 1 infinite value")

    @pytest.mark.parametrize("more", [[], ["--test-share", 0], ["--test-share", 0.8]])
    def test_rows_are_those_of_the_file(self, refused, place, more):
        """Whichever rows are held out, and although the first has no target."""

        def write(bad, name):
            cells = {"x": 1, "w": 1, "t": 1, "y": 3}
            lines = [",".join(str(each + k % 3) for each in cells.values()) for k in range(60)]
            lines[5] = ",".join(str({**cells, name: bad}[each]) for each in cells)
            Path("a.csv").write_text("\n".join([",".join(cells), lines[0][:-1], *lines[1:]]))

        roles = ["--weight", "w", "--exposure", "t", "--task", "counts", "-q", *more]
        for bad, name, words in (
            (
                "inf",
                "y",
                "a.csv, column 'y': Input y contains infinity: 1 of 59 values, the first in",
            ),
            ("inf", "x", "column 'x' has 1 infinite value, the first in"),
            (-2, "w", "a.csv, column 'w': Negative values in --weight: 1 of 59, the first in"),
            (0, "t", "--exposure must be positive, and 1 of 59 values are not, the first, 0, in"),
            (1.5, "y", "1 of 59, the first, 1.5, in"),
        ):
            write(bad, name)
            refused(*fit("a.csv", *roles), words=f"{words} row 6 (counting from 1)")

    def test_decimal_commas(self, refused, lanam, place):
        rows = "\n".join(f"{k},5;{k},25" for k in range(40))
        Path("a.csv").write_text("x;y\n" + rows)
        refused(
            *fit("a.csv"),
            words="has numbers with a decimal comma (for example '0,5'): use --decimal ,",
        )
        done = lanam(*fit("a.csv", "--decimal", ",", "--interactions", 0))
        assert "a.csv is separated by semicolons" in done.err

    def test_decimal_points_for_a_model_of_decimal_commas(self, refused, lanam, place):
        Path("a.csv").write_text("x;y\n" + "\n".join(f"{k},5;{k},25" for k in range(40)))
        lanam(*fit("a.csv", "--decimal", ",", "--interactions", 0, "-q"))
        Path("new.csv").write_text("x\n57.5\n")
        command = ("predict", "m.lanam", "new.csv", "-o", "out.csv")
        for more in ([], ["--keep", "x"]):
            refused(
                *(*command, *more),
                words="column 'x' is numeric in the model, and '57.5' is not with a decimal comma, which a "
                "model remembers of its training file: fix the cell, or use --decimal . if that is how",
            )
        lanam(*command, "--decimal", ".")

    def test_invalid_weights(self, refused, place):
        rows = "\n".join(f"{k},{k},{'' if k == 3 else 1},a{k}" for k in range(40))
        Path("a.csv").write_text("x,y,w,t\n" + rows)
        refused(*fit("a.csv", "--weight", "w"), words="--weight: column 'w' has 1 missing values")
        refused(*fit("a.csv", "--weight", "t"), words="--weight: column 't' is not numeric")

    def test_an_unclosed_quote(self, refused, place):
        text = Path("rides.csv").read_text()
        Path("a.csv").write_text(text.replace('"Oslo"', '"Oslo', 1))
        refused(*predict("a.csv", "--block-size", 2000), words="a.csv")

    def test_a_wrong_delimiter(self, refused, place):
        refused(
            *predict("rides.csv", "--delimiter", ";"),
            words="rides.csv has no columns 'city', 'age', ",
        )
        refused(*predict("rides.csv", "--delimiter", ";;"), code=2, words="one character")
        refused(
            *predict("rides.csv", "--encoding", "klingon"), code=2, words="is not a known encoding"
        )


WRITERS = [
    ("fit", "rides.csv", "-t", "price", "-o", "there.lanam"),
    ("predict", "price.lanam", "rides.csv", "-o", "there.csv"),
    ("predict", "price.lanam", "rides.csv", "-o", "there.parquet"),
    ("explain", "price.lanam", "-o", "there.png"),
    ("report", "price.lanam", "-o", "there.html"),
    ("export", "price.lanam", "-o", "there.json"),
]


class TestExistingFiles:
    @pytest.mark.parametrize("command", WRITERS)
    @pytest.mark.parametrize("force", [False, True])
    def test_those_that_appear_meanwhile_are_kept(self, lanam, place, monkeypatch, command, force):
        """Only ``--force`` replaces them; otherwise the result is kept beside them."""
        target, real = Path(command[-1]), os.fsync

        def fsync(handle):
            target.write_text("precious")  # another program, while this one writes
            real(handle)

        monkeypatch.setattr(os, "fsync", fsync)
        drop = ("--drop", "id,events,ill,colour,hours", "--interactions", "0")
        more = drop if command[0] == "fit" else ()
        done = lanam(*command, *more, *(["--force"] if force else []), code=0 if force else 1)
        kept = list(Path().glob("*.part"))
        assert (target.read_bytes() == b"precious") == (not force)
        assert len(kept) == (not force)
        if not force:
            line = done.err.splitlines()[-1]
            assert f"{target} was created meanwhile, and is not overwritten: the result is" in line
            assert line.endswith(f"{kept[0]}; rename that, or use --force next time")
            assert kept[0].stat().st_size > 0

    @pytest.mark.parametrize("command", WRITERS)
    def test_they_are_kept(self, refused, place, command):
        Path(command[-1]).write_text("precious")
        refused(*command, words=f"{command[-1]} is there already: use --force to replace it")
        assert Path(command[-1]).read_text() == "precious"

    def test_force_replaces_them(self, lanam, place):
        Path("o.csv").write_text("precious")
        lanam("predict", "price.lanam", "rides.csv", "-o", "o.csv", "--force")
        assert Path("o.csv").read_text().startswith("prediction\n")

    def test_inputs_are_not_overwritten(self, refused, place):
        words = "would be overwritten while it is read"
        refused("predict", "price.lanam", "rides.csv", "-o", "rides.csv", "--force", words=words)
        os.symlink("rides.csv", "link.csv")
        refused("predict", "price.lanam", "rides.csv", "-o", "link.csv", "--force", words=words)
        refused("fit", "rides.csv", "-t", "price", "-o", "rides.csv", "--force", words=words)
        refused(
            "export", "price.lanam", "--to", "json", "-o", "price.lanam", "--force", words=words
        )

    def test_an_error_keeps_the_existing_file(self, refused, place):
        lines = Path("rides.csv").read_text().splitlines()
        Path("a.csv").write_text("\n".join([*lines, "1,2"]))
        Path("out.csv").write_text("precious")
        refused(*predict("a.csv", "--block-size", 500, "--force"), words="row 301")
        assert Path("out.csv").read_text() == "precious"

    @pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.csv.gz"])
    def test_a_full_disk(self, refused, place, monkeypatch, name):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        Path(name).write_text("precious")
        monkeypatch.setattr(os, "fsync", full)
        words = f"{name}: not written: No space left on device"
        refused("predict", "price.lanam", "rides.csv", "-o", name, "--force", words=words)
        assert Path(name).read_text() == "precious"

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a full device")
    def test_a_full_device(self, refused, place):
        words = "/dev/full: not written: No space left on device"
        refused(
            "predict", "price.lanam", "rides.csv", "-o", "/dev/full", code=2, words="unknown file"
        )
        os.symlink("/dev/full", "o.csv")
        refused(
            "predict",
            "price.lanam",
            "rides.csv",
            "-o",
            "o.csv",
            words=words.replace("/dev/full", "o.csv"),
        )

    def test_a_model_that_cannot_be_written(self, refused, place, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        rng = np.random.default_rng(0)
        arrow_csv.write_csv(pa.table({"x": rng.normal(size=40), "y": rng.normal(size=40)}), "a.csv")
        monkeypatch.setattr(os, "fsync", full)
        refused(*fit("a.csv", "-q"), words="the model was not written: No space left")


def write_rows(path, cell, n_rows=90):
    """Columns x, c and y; ``cell`` are the bytes of c in a row."""
    rows = (b"%.3f,%s,%.3f" % (k / 7, cell(k), k / 9) for k in range(n_rows))
    Path(path).write_bytes(b"x,c,y\n" + b"\n".join(rows) + b"\n")


class TestEncodings:
    """Cells in latin-1: every message names the option."""

    REMEDY = "specify the encoding, for example --encoding latin-1"

    @pytest.mark.parametrize(
        ("cell", "n_rows", "where"),
        [
            (lambda k: [b"a", b"\xf6"][k % 2], 90, "a.csv, column 'c'"),
            (lambda k: b"%d" % k if k != 50 else b"5\xa0000", 90, "a.csv, column 'c'"),
            (lambda k: b"a" if k < 80_000 else b"\xf6", 80_001, "row 80001 "),
            (lambda k: b"" if k < 80_000 else b"\xf6", 80_001, "row 80001 "),
            (lambda k: b"%d" % k if k < 80_000 else b"\xb5", 80_001, "row 80001 "),
            (lambda k: b"true" if k < 80_000 else b"\xb5", 80_001, "row 80001 "),
        ],
        ids=["strings", "numbers", "late", "after missing values", "late number", "late boolean"],
    )
    def test_cells(self, refused, place, cell, n_rows, where):
        write_rows("a.csv", cell, n_rows)
        done = refused(*fit("a.csv"), words=f"is not encoded in utf-8: {self.REMEDY}")
        assert where in done.err
        assert "column 'c'" in done.err

    def test_other_places(self, refused, place, monkeypatch):
        write_rows("a.csv", lambda k: [b"a", b"\xf6"][k % 2])
        Path("folder").mkdir()
        Path("a.csv").rename("folder/a.csv")
        refused(*fit("folder"), words=self.REMEDY)
        Path("b.csv").write_bytes(b"x,gr\xf6\xdfe,y\n1,2,3\n")
        refused(*fit("b.csv"), words=f"the header is not encoded in utf-8: {self.REMEDY}")

    def test_the_remedy_works(self, lanam, place):
        write_rows("a.csv", lambda k: [b"a", b"\xf6"][k % 2])
        lanam(*fit("a.csv", "--encoding", "latin-1", "--interactions", "0"))

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "ascii"])
    def test_another_wrong_encoding(self, refused, place, encoding):
        write_rows("a.csv", lambda k: [b"a", b"\xf6"][k % 2])
        words = f"a.csv: the header is not encoded in {encoding}"
        refused(*fit("a.csv", "--encoding", encoding), words=words)


class TestHeaders:
    def test_a_name_longer_than_any(self, refused, place):
        Path("a.csv").write_text(f"x,{'h' * 140_000},y\n1,2,3\n")
        words = (
            "a.csv: a name in the header is longer than 131,072 characters. Is a quote not closed?"
        )
        refused(*fit("a.csv"), words=words)
        refused(*predict("a.csv"), words="use another --delimiter")

    def test_a_header_longer_than_any_name(self, lanam, place):
        """Of another delimiter than the file's it would be one name."""
        lines = Path("rides.csv").read_text().splitlines()
        more = 15_000
        names = ",".join(f"column{k}" for k in range(more))
        assert len(names) > 131_072
        rows = [f"{line},{',' * (more - 1)}" for line in lines[1:4]]
        Path("wide.csv").write_text("\n".join([f"{lines[0]},{names}", *rows]))
        lanam(*predict("wide.csv"))
        assert len(Path("out.csv").read_text().splitlines()) == 4


@pytest.mark.parametrize("size", [0, -1, 1, 63, 2**31, 10**18, 10**30, "much"])
def test_absurd_block_sizes(refused, place, size):
    refused(*predict("rides.csv", "--block-size", size), code=2, words="'--block-size'")


def test_the_largest_block_size(lanam, place):
    lanam(*predict("rides.csv", "--block-size", 2**30))


class TestNames:
    """Names of files and other arguments with bytes that are not UTF-8."""

    @pytest.fixture
    def odd(self, place):
        odd = os.fsdecode(b"odd\xff")
        try:
            Path(odd).touch()
        except OSError:
            pytest.skip("names are UTF-8 on this file system")
        Path(odd).unlink()
        return odd

    def test_files(self, lanam, odd):
        table = make_table().select(["city", "age", "celsius", "zone", "holiday", "price"])
        arrow_csv.write_csv(table, "new.csv")
        os.rename("new.csv", f"{odd}.csv")
        lanam("predict", "price.lanam", f"{odd}.csv", "-o", f"{odd}-1.csv")
        lanam("predict", "price.lanam", f"{odd}.csv", "-o", f"{odd}.parquet", "--all-columns")
        lanam("predict", "price.lanam", f"{odd}.parquet", "-o", f"{odd}-2.csv")
        assert Path(f"{odd}-1.csv").read_bytes() == Path(f"{odd}-2.csv").read_bytes()
        os.mkdir(odd)
        os.rename(f"{odd}.csv", f"{odd}/{odd}.csv")
        lanam("predict", "price.lanam", odd, "-o", f"{odd}-out")
        assert os.listdir(f"{odd}-out") == [f"{odd}.parquet"]
        quick = ("-t", "price", "--interactions", "0", "--max-iter", "5")
        lanam("fit", odd, *quick, "-o", f"{odd}.lanam", "--checkpoint", f"{odd}-part")
        row = ("--row", 1, "--data", f"{odd}/{odd}.csv")
        done = lanam("explain", f"{odd}.lanam", *row, "-o", f"{odd}.png")
        assert done.out.startswith("row 1 of odd\\udcff/odd\\udcff.csv")
        document = lanam("export", f"{odd}.lanam", "-o", f"{odd}.sql", "--json").document
        assert document["file"] == f"{odd}.sql"
        assert Path(f"{odd}.sql").exists()

    def test_files_that_are_not_there(self, refused, odd):
        refused("explain", odd, words="there is no file odd\\udcff")
        refused(*fit(f"{odd}.csv"), words="there is no file odd\\udcff.csv")

    @pytest.mark.parametrize("option", ["--prefix", "--missing"])
    def test_other_arguments(self, refused, odd, option):
        words = "\\udcff"
        done = refused(*predict("rides.csv", option, odd), words=words)
        assert "is not encoded in UTF-8: write it in UTF-8" in done.err

    def test_dialects(self, refused, odd):
        refused(*predict("rides.csv", "--encoding", odd), code=2, words="is not a known encoding")
        words = "must be an ASCII character"
        refused(*predict("rides.csv", "--delimiter", odd[-1]), code=2, words=words)
        refused(*predict("rides.csv", "--decimal", "\u066b"), code=2, words=words)
