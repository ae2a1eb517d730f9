"""Progress of a fit: one line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

_BAR = 20

#: Iterations between two lines, where they are not rewritten.
_EVERY = 10


class Progress:
    """Shows the records of a fit; the bar is of ``total``, the most iterations of a stage.

    Examples
    --------
    >>> import sys
    >>> record = {"iteration": 1, "log_evidence": -402.2, "noise_std": 1.5, "n_active": 8}
    >>> with Progress(100, sys.stdout) as progress:
    ...     progress(record)
    lanam  iteration 1  log evidence -402.2  noise sd 1.5  terms 8
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total = total
        self.stream = sys.stderr if stream is None else stream
        self.rewrites = self.stream.isatty()
        self._width = 0
        self._pending: str | None = None
        self._stage: object = None
        self._in_stage = 0

    def __enter__(self) -> Progress:
        return self

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Show one record of the history."""
        text = describe(record)
        if record.get("stage") != self._stage:
            self._stage, self._in_stage = record.get("stage"), 0
        if self.rewrites:
            self._rewrite(min((self._in_stage + 1) / self.total, 1.0), text)
            self._pending = text
        elif self._in_stage % _EVERY == 0:
            self.stream.write(text + "\n")
            self._pending = None
        else:
            self._pending = text
        self._in_stage += 1

    def say(self, text: str) -> None:
        """Print a permanent line."""
        if self.rewrites and self._width:
            self.stream.write("\r" + " " * self._width + "\r")
            self._width = 0
        self.stream.write(text + "\n")
        self.stream.flush()

    def rows(self, number: int, n_rows: int, of: int | None) -> None:
        """Show how many rows of a pass were read; on a terminal only."""
        if self.rewrites:
            total = f" of {of:,}" if of else ""
            text = f"lanam  pass {number}: {n_rows:,}{total} rows"
            self._rewrite(min(n_rows / of, 1.0) if of else 0.0, text)
            self._pending = self._pending or text

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pending is None:
            return
        if self.rewrites:
            if kind is None:  # a fit that converged early is complete
                self._rewrite(1.0, self._pending)
            self.stream.write("\n")
        else:  # always with the last iteration
            self.stream.write(self._pending + "\n")
        self.stream.flush()

    def _rewrite(self, done: float, text: str) -> None:
        filled = round(done * _BAR)
        line = f"[{'#' * filled}{'.' * (_BAR - filled)}] {text}"
        self.stream.write("\r" + line.ljust(self._width))
        self.stream.flush()
        self._width = len(line)


def describe(record: Mapping[str, Any]) -> str:
    """One record as a line: iteration, log evidence, noise, active terms."""
    stage = f" ({record['stage']})" if record.get("stage") else ""
    parts = ["lanam", f"iteration {record['iteration']}{stage}"]
    parts.append(f"log evidence {record['log_evidence']:.1f}")
    noise = record.get("noise_std")
    if noise is not None and math.isfinite(noise) and noise > 0.0:
        parts.append(f"noise sd {noise:.4g}")
    parts.append(f"terms {record['n_active']}")
    if record.get("seconds") is not None:
        parts.append(f"{record['seconds']:.1f} s")
    return "  ".join(parts)
