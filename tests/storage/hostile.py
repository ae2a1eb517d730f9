"""Malicious files: unpacked, changed, and packed again with a valid checksum."""

import hashlib
import json
import struct

from lanam.storage.container import MAGIC, VERSION


def taken_apart(data):
    """The header as text, and the arrays' bytes."""
    (length,) = struct.unpack_from("<I", data, 12)
    return data[16 : 16 + length].decode("ascii"), data[16 + length : -32]


def signed(data):
    """With the checksum that belongs to it."""
    return data + hashlib.sha256(data).digest()


def put_together(header, arrays=b"", *, version=VERSION, length=None):
    """A file of these parts; ``header`` is text, bytes or something for JSON."""
    if not isinstance(header, bytes):
        header = header if isinstance(header, str) else json.dumps(header)
        header = header.encode("utf-8", "surrogatepass")
    length = len(header) if length is None else length
    return signed(struct.pack("<8sII", MAGIC, version, length) + header + arrays)
