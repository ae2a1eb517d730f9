"""The provenance of a model as plain values, checked when it is read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from lanam.provenance import N_DIGITS, HeldOut, Provenance, Target
from lanam.storage.fields import Arrays, Fields

_HELD_OUT = "held out"


def write_provenance(provenance: Provenance, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A provenance as plain values; held-out rows are one bit for each row of their table."""
    content: dict[str, Any] = {
        "fingerprint": provenance.fingerprint,
        "date": provenance.date,
        "version": provenance.version,
    }
    if (target := provenance.target) is not None:
        content["target"] = {**vars(target), "means": list(target.means)}
    held = provenance.held_out
    if held is not None:
        arrays[_HELD_OUT] = np.packbits(held.rows)
        content["held_out"] = {"n_rows": len(held.rows), "fingerprint": held.fingerprint}
    return content


def read_provenance(values: object, arrays: Arrays) -> Provenance | None:
    """The inverse of :func:`write_provenance`; None in older files."""
    if values is None:
        return None
    what = "the provenance"
    fields = Fields(values, what, ("fingerprint", "date", "version"), ("held_out", "target"))
    date, version = fields.date("date"), fields.text("version")
    fields.require(re.fullmatch(r"[\w.+!-]{1,64}", version, re.ASCII) is not None, "version")
    held_out = None
    if "held_out" in fields.values:
        inner = Fields(fields.values["held_out"], what, ("n_rows", "fingerprint"))
        n_rows = inner.whole("n_rows", least=1, most=1 << 31)
        bits = arrays.take(_HELD_OUT, "u1", ((n_rows + 7) // 8,))
        rows = np.unpackbits(bits, count=n_rows).astype(bool)
        held_out = HeldOut(rows, _fingerprint(inner, N_DIGITS))
    target = _target(fields.values["target"]) if "target" in fields.values else None
    return Provenance(_fingerprint(fields, 2 * N_DIGITS), date, version, held_out, target)


def _target(values: object) -> Target:
    fields = Fields(values, "the target", ("name", "means", "exposure"))
    name, exposure = fields.values["name"], fields.values["exposure"]
    return Target(
        None if name is None else fields.text("name"),
        fields.numbers("means"),
        None if exposure is None else fields.number("exposure", least=0.0),
    )


def _fingerprint(fields: Fields, n_digits: int) -> str:
    text = fields.text("fingerprint")
    fields.require(re.fullmatch(f"[0-9a-f]{{{n_digits}}}", text) is not None, "fingerprint")
    return text
