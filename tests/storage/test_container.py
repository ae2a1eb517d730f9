"""The container checks everything: lengths, types, checksums, and decompressed sizes."""

import hashlib
import json
import struct
import tracemalloc
import zlib
from contextlib import suppress

import numpy as np
import pytest

from lanam.storage import container
from lanam.storage.container import MAGIC, VERSION, Contents, pack, unpack, version_of
from lanam.storage.errors import DamageError, ModelFileError
from tests.storage.hostile import put_together, signed, taken_apart

ARRAYS = {
    "floats": np.array([[1.5, -0.0], [np.inf, 5e-324], [-1e308, np.pi]]),
    "whole": np.array([0, 1, -1, 2**31 - 1, -(2**31)] * 50, dtype=np.int32),
    "small": np.array([-(2**15), 2**15 - 1, 7] * 50, dtype=np.int16),
    "bytes": np.array([0, 255], dtype=np.uint8),
    "nothing": np.empty((0, 3)),
    "one": np.array(2.5),
    "zeros": np.zeros((50, 40)),
}


def test_what_goes_in_comes_out():
    content = {"a": [1, 2.5, None, True, "ü\ud800\x00"], "b": {}}
    found = unpack(pack(Contents(content, ARRAYS)))
    assert found.content == content
    assert list(found.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == array.tobytes()
        assert found.arrays[name].flags.writeable
        assert found.arrays[name].dtype.isnative


def test_the_layout_is_as_documented():
    data = pack(Contents({"a": 1}, {"x": np.array([0.1, 1.0 / 3.0])}))
    assert data[:8] == b"\x89LANAM\r\n"
    version, length = struct.unpack("<II", data[8:16])
    header = json.loads(data[16 : 16 + length])
    assert version == VERSION
    assert header == {
        "content": {"a": 1},
        "arrays": [
            {"name": "x", "dtype": "f8", "shape": [2], "encoding": "raw", "length": 16},
        ],
    }
    assert data[16 + length : -32] == struct.pack("<dd", 0.1, 1.0 / 3.0)
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()


def test_arrays_are_packed_where_that_pays():
    header, _ = taken_apart(pack(Contents(None, ARRAYS)))
    ways = {entry["name"]: entry["encoding"] for entry in json.loads(header)["arrays"]}
    assert ways["zeros"] == ways["whole"] == "shuffled-zlib"
    assert ways["bytes"] == "raw"


def test_the_same_is_written_to_the_same_bytes():
    assert pack(Contents({"a": 1}, ARRAYS)) == pack(Contents({"a": 1}, ARRAYS))


def test_very_many_zeros_are_no_attack(monkeypatch):
    monkeypatch.setattr(container, "LEAST_ROOM", 1000)
    data = pack(Contents(None, {"zeros": np.zeros(10_000)}))
    np.testing.assert_array_equal(unpack(data).arrays["zeros"], np.zeros(10_000))


def test_too_much_is_not_written(monkeypatch):
    monkeypatch.setattr(container, "_LONGEST_HEADER", 200)
    with pytest.raises(ValueError, match="too many categories to be saved: combine"):
        pack(Contents("x" * 300, {}))
    monkeypatch.setattr(container, "LARGEST", 2000)
    with pytest.raises(ValueError, match=r"has \d\d,\d+ bytes, and a file 2,000 at most"):
        pack(Contents(None, {"x": np.random.default_rng(0).normal(size=10_000)}))


class TestStart:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "is empty"),
            (b"PK\x03\x04" + bytes(100), "is not a lanam model"),
            (b"\x80\x04\x95" + bytes(100), "is not a lanam model"),
            (b"a,b\n1,2\n" * 20, "is not a lanam model"),
            (b"\x89LANAM\n" + bytes(100), "was sent as text"),
            (b"\x89LANAM\r\r\n" + bytes(100), "was sent as text"),
        ],
    )
    def test_other_files(self, data, words):
        with pytest.raises(ModelFileError, match=words):
            version_of(data)

    @pytest.mark.parametrize("length", [1, 7, 8, 15, 16, 47])
    def test_a_beginning_only(self, length):
        with pytest.raises(DamageError, match="ends too early"):
            version_of(pack(Contents(None, {}))[:length])

    def test_the_version(self):
        assert version_of(put_together("{}", version=7)) == 7
        assert version_of(pack(Contents(None, {}))) == VERSION


ENTRY = {"name": "x", "dtype": "f8", "shape": [2], "encoding": "raw", "length": 16}


def refused(data, words):
    with pytest.raises(DamageError, match=words):
        unpack(data)


class TestDamage:
    def test_every_bit_counts(self):
        data = pack(Contents({"a": 1}, {"x": np.arange(3.0)}))
        for place in range(16, len(data)):
            for bit in (0, 7):
                changed = bytearray(data)
                changed[place] ^= 1 << bit
                refused(bytes(changed), "checksum does not match")

    def test_every_length_counts(self):
        data = pack(Contents({"a": 1}, {"x": np.arange(3.0)}))
        for length in range(48, len(data)):
            refused(data[:length], "checksum does not match|ends too early")
        refused(data + b"\x00", "checksum does not match")

    @pytest.mark.parametrize(
        ("length", "words"),
        [
            (0, "not the JSON"),
            (1, "not the JSON"),
            (10_000, "it ends too early"),
            (2**32 - 1, "too long"),
        ],
    )
    def test_a_header_of_another_length(self, length, words):
        refused(put_together({"content": 1, "arrays": []}, length=length), words)

    @pytest.mark.parametrize(
        "header",
        [
            b"\xff\xfe",
            b"",
            b"nonsense",
            b'{"content": NaN, "arrays": []}',
            b'{"content": -Infinity, "arrays": []}',
            b'{"content": 1, "content": 2, "arrays": []}',
            b'{"content": {"a": {"b": 1, "b": 2}}, "arrays": []}',
            b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b', "arrays": []}',
            b'{"content": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b', "arrays": []}',
            b'{"content": ' + b"9" * 10_000 + b', "arrays": []}',
            b'{"content": 1, "arrays": []} ,',
            b'{"content": "\x00", "arrays": []}',
        ],
        ids=range(12),
    )
    def test_what_is_no_json(self, header):
        refused(put_together(header), "not the JSON")

    @pytest.mark.parametrize(
        "header",
        [
            [],
            None,
            {},
            {"content": 1},
            {"content": 1, "arrays": [], "more": 1},
            {"content": 1, "arrays": {}},
            {"content": 1, "arrays": None},
        ],
        ids=repr,
    )
    def test_another_header(self, header):
        refused(put_together(header), "its header|list of arrays")

    @pytest.mark.parametrize(
        "change",
        [
            {"name": 1},
            {"name": None},
            {"dtype": "f4"},
            {"dtype": "O"},
            {"dtype": "<f8"},
            {"dtype": ["f8"]},
            {"dtype": {}},
            {"shape": 2},
            {"shape": [-2]},
            {"shape": [2.0]},
            {"shape": [True, 2]},
            {"shape": ["2"]},
            {"shape": [1, 1, 2]},
            {"shape": [2**62, 2**62]},
            {"shape": [3]},
            {"shape": [0]},
            {"encoding": "lzma"},
            {"encoding": None},
            {"encoding": ["raw"]},
            {"encoding": "shuffled-zlib"},
            {"length": 15},
            {"length": -16},
            {"length": 16.0},
            {"length": 2**70},
            {"length": None},
            {"offset": 0},
            {"path": "../../etc/passwd"},
        ],
        ids=repr,
    )
    def test_an_entry_that_does_not_fit(self, change):
        with pytest.raises(DamageError):
            unpack(put_together({"content": 1, "arrays": [{**ENTRY, **change}]}, bytes(16)))

    def test_an_entry_that_lacks_something(self):
        for key in ENTRY:
            less = {name: value for name, value in ENTRY.items() if name != key}
            refused(put_together({"content": 1, "arrays": [less]}, bytes(16)), "an entry")
        refused(put_together({"content": 1, "arrays": [[]]}, bytes(16)), "an entry")

    def test_two_of_a_name(self):
        refused(put_together({"content": 1, "arrays": [ENTRY] * 2}, bytes(32)), "same name")

    @pytest.mark.parametrize("n_bytes", [0, 15, 17, 48])
    def test_more_or_less_than_the_arrays(self, n_bytes):
        refused(put_together({"content": 1, "arrays": [ENTRY]}, bytes(n_bytes)), "file's length")

    @pytest.mark.parametrize(
        "stored",
        [
            zlib.compress(bytes(15)),
            zlib.compress(bytes(17)),
            zlib.compress(bytes(16)) + b"more",
            zlib.compress(bytes(16))[:-1],
            zlib.compress(bytes(16))[:-4] + b"sums",
            b"nonsense",
            b"",
        ],
        ids=range(7),
    )
    def test_packed_arrays_of_another_length(self, stored):
        entry = {**ENTRY, "encoding": "shuffled-zlib", "length": len(stored)}
        refused(put_together({"content": 1, "arrays": [entry]}, stored), "unpacked|another length")


class TestMemory:
    """Whatever a small file claims, reading it takes little memory."""

    def peak(self, data):
        tracemalloc.start()
        try:
            with pytest.raises(DamageError):
                unpack(data)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("shape", [[2**31], [2**31, 2**31], [2**27, 2]])
    @pytest.mark.parametrize("encoding", ["raw", "shuffled-zlib"])
    def test_arrays_that_claim_to_be_huge(self, shape, encoding):
        entry = {**ENTRY, "shape": shape, "encoding": encoding}
        assert self.peak(put_together({"content": 1, "arrays": [entry]}, bytes(16))) < 1e6

    def test_a_bomb(self):
        """A hundred megabytes of zeros in a hundred kilobytes."""
        stored = zlib.compress(bytes(10**8))
        entry = {**ENTRY, "encoding": "shuffled-zlib", "length": len(stored)}
        whole = put_together({"content": 1, "arrays": [{**entry, "shape": [10**8 // 8]}]}, stored)
        assert self.peak(whole) < 1e6  # rejected by the claimed size
        small = put_together({"content": 1, "arrays": [entry]}, stored)
        assert self.peak(small) < 1e6  # decompression stops at the claimed size

    def test_many_small_bombs(self):
        stored = zlib.compress(bytes(10**6))
        entries = [
            {
                **ENTRY,
                "name": f"x{k}",
                "encoding": "shuffled-zlib",
                "shape": [125_000],
                "length": len(stored),
            }
            for k in range(100)
        ]
        assert self.peak(put_together({"content": 1, "arrays": entries}, stored * 100)) < 1e6

    @pytest.mark.parametrize(
        "values", [b"[]", b"[[[[[[[[[[[[]]]]]]]]]]]]", b'{"":0}', b"0.5", b'"ab"']
    )
    def test_fifty_times_the_file_at_most(self, monkeypatch, values):
        monkeypatch.setattr(container, "LEAST_ROOM", 0)  # as for a large file
        header = b'{"content":[' + (values + b",") * (300_000 // len(values)) + b'1],"arrays":[]}'
        data = put_together(header)
        tracemalloc.start()
        try:
            with suppress(DamageError):
                unpack(data)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < container.MOST_GROWTH * len(data)

    def test_a_header_of_very_many_values(self):
        header = b'{"content":[' + b"[]," * 2_000_000 + b'1],"arrays":[]}'
        data = put_together(header)
        assert self.peak(data) < 2 * len(data)


def test_the_magic_is_no_text():
    with pytest.raises(UnicodeDecodeError):
        MAGIC.decode("utf-8")
    assert signed(b"")[-32:] == hashlib.sha256(b"").digest()
