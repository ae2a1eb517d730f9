"""Files of every version of the format load and predict the same."""

import hashlib
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lanam
from lanam.editing import edit_words
from lanam.families import FAMILIES, NOISE
from lanam.storage.container import VERSION, unpack
from lanam.storage.saved import READERS
from tests.storage.golden.make import answers, rows

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*.lanam"))
OF_FAMILIES = sorted((FOLDER / "families").glob("*.lanam"))


def test_every_version_has_its_files():
    assert set(READERS) == set(range(1, VERSION + 1))
    versions = {int(path.stem.split("-")[1]) for path in FILES}
    assert versions == set(READERS)
    for path in FILES:
        assert path.read_bytes()[8] == int(path.stem.split("-")[1])


def test_every_family_has_its_file():
    kinds = {path.stem.split("-")[0] for path in (*OF_FAMILIES, *FILES)}
    kinds = kinds - {"regressor", "classifier"} | {"gaussian", "softmax"}
    assert kinds == set(FAMILIES) - {NOISE.name}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("path", [*FILES, *OF_FAMILIES], ids=lambda path: path.stem)
def test_predictions_are_unchanged(path):
    model = lanam.load(path)
    known = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert known["rows"] == rows()
    found = answers(model)
    assert set(found) == set(known["answers"])
    for name, values in known["answers"].items():
        # Machines differ in the order of sums.
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("regressor-*.lanam")), ids=lambda path: path.stem
)
def test_edits_without_date_and_author(path, tmp_path):
    """As records were before they had them: they load, are described, and are saved again."""
    model = lanam.load(path)
    (record,) = model.edits_
    assert record["date"] is record["author"] is None
    assert f"\n  {edit_words(record)}\n" in str(model.summary())
    assert lanam.load(model.save(tmp_path / "m.lanam")).edits_ == model.edits_


def test_a_reader_of_its_own_from_the_documentation():
    """docs/file-format.md in thirty lines: a mean from the file alone, without lanam."""
    data = (FOLDER / f"regressor-{VERSION}.lanam").read_bytes()
    assert data[:8] == b"\x89LANAM\r\n"
    version, length = struct.unpack("<II", data[8:16])
    assert version == VERSION
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    header, start = json.loads(data[16 : 16 + length]), 16 + length
    arrays = {}
    for entry in header["arrays"]:
        stored = data[start : start + entry["length"]]
        start += entry["length"]
        size = int(entry["dtype"][1])
        if entry["encoding"] == "shuffled-zlib":
            plain = zlib.decompress(stored)
            n = len(plain) // size
            numbers = [bytes(plain[k * n + i] for k in range(size)) for i in range(n)]
            codes = [int.from_bytes(number, "little") for number in numbers]
            if entry["dtype"][0] == "u":
                values = codes
            elif entry["dtype"][0] == "i":
                values = [(code >> 1) ^ -(code & 1) for code in codes]
            else:
                values = [struct.unpack("<d", number)[0] for number in numbers]
        else:
            values = np.frombuffer(stored, "<" + entry["dtype"]).tolist()
        arrays[entry["name"]] = np.array(values, dtype=float).reshape(entry["shape"])
    assert start == len(data) - 32
    for name, array in unpack(data).arrays.items():
        np.testing.assert_array_equal(arrays[name], array)
    content = header["content"]["model"]
    k = next(k for k, term in enumerate(content["terms"]) if term["features"] == [0])
    scale = content["terms"][k]["entries"]["scale"]
    points = arrays[f"term {k} points"] * scale  # the mean's last entry is that of missing values
    found = np.interp(0.3, points, arrays[f"term {k} mean"][: len(points)])
    model = lanam.load(FOLDER / f"regressor-{VERSION}.lanam")
    frame = {name: [value[4]] for name, value in rows().items()}
    expected = model.predict_terms(pd.DataFrame(frame))[0, k]
    # Rows read tables with single-precision fractions.
    assert found == pytest.approx(expected, rel=1e-6)
    digits = arrays["root digits"]
    size = len(arrays["root rows"])
    root = np.zeros((size, size))
    root[np.tril_indices(size)] = digits
    root *= 2.0 ** (arrays["root rows"][:, None] + arrays["root columns"])
    np.testing.assert_array_equal(root, model._model.cov_cholesky)
    table = arrays[f"term {k} table digits"].T
    table = table * 2.0 ** (
        arrays[f"term {k} table rows"][:, None] + arrays[f"term {k} table columns"]
    )
    np.testing.assert_array_equal(table, model._model.terms[k].table)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_statuses_are_in_the_words_of_this_version(path):
    model = lanam.load(path)
    assert "switched off" in path.read_bytes().decode("latin-1")
    statuses = [item.status for item in (*model._model.terms, *model._model.scored)]
    assert any(status.startswith("dropped: ") for status in statuses)
    assert all(status.startswith(("active", "dropped: ", "left out: ")) for status in statuses)
