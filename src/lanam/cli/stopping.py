"""Signals that end a process: an exception in the main thread, and the end of reading from pipes."""

from __future__ import annotations

import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from lanam.cli.errors import Interrupted

#: Sockets that become readable with a signal, for threads that wait for input.
_wakeups: list[socket.socket] = []
#: Signals received by the running command: reading after one of them would block forever.
_received: list[int] = []


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into `Interrupted`, so that unfinished files are removed.

    Python runs signal handlers in the main thread between bytecodes; pyarrow reads in a thread and returns
    to the main thread only with a whole block. So a signal also wakes the reading thread, and pyarrow's
    own handlers are disabled. An exception raised in the middle of an import may be replaced by an
    ImportError (numpy's C API does that): any error after a signal counts as the interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        _received.append(number)
        raise Interrupted(number)

    _received.clear()
    reader, writer = socket.socketpair()
    for each in (reader, writer):
        each.setblocking(False)
    wakeup_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    _wakeups.append(reader)
    try:
        import pyarrow as pa

        pa.enable_signal_handlers(False)
        yield
    except Exception:
        if _received:
            raise Interrupted(_received[0]) from None
        raise
    finally:
        if "pyarrow" in sys.modules:
            pa.enable_signal_handlers(True)  # pyarrow's default
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup_fd)
        _wakeups.remove(reader)
        writer.close()  # wakes threads that still wait
        reader.close()


class InterruptibleFile:
    """A binary file whose ``read`` waits for input no longer than until a signal."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._read = file, getattr(file, "read1", file.read)

    def read(self, size: int) -> bytes:
        """At least one byte, as many as are available; empty at the end of the file."""
        if not _wait_for_input(
            self._file
        ):  # an error, since an end would make the table look complete
            raise OSError("reading was interrupted by a signal")
        return bytes(self._read(size))


def _wait_for_input(file: BinaryIO) -> bool:
    """Wait until a file can be read, or is at its end; False if a signal came first."""
    if _received:
        return False
    if sys.platform == "win32" or not _wakeups:  # select takes only sockets there
        return True
    try:
        number = file.fileno()
    except OSError:  # not a file of the system: reading does not block
        return True
    waiting: list[int | socket.socket] = [number, _wakeups[-1]]
    return _wakeups[-1] not in select.select(waiting, [], [])[0]
