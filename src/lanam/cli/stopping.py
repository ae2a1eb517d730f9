"""Signals that end a process: an exception where the command is, and the end of its waiting for input."""

from __future__ import annotations

import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from lanam.cli.errors import Interrupted

#: What a signal is heard at by threads that wait for input, while a command runs.
_heard: list[socket.socket] = []
#: Whether the command was told to stop: after that, who begins to wait for input would wait for ever.
_told = threading.Event()


@contextmanager
def stoppable() -> Iterator[None]:
    """Make the signals that end a process an exception, so that files are tidied away.

    Python runs its handler between two of its own instructions, and pyarrow, which reads in a thread of
    its own, returns to them only when it has read a block. So a signal wakes that thread as well, and
    pyarrow leaves signals to Python.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        _told.set()
        raise Interrupted(number)

    _told.clear()
    hears, tells = socket.socketpair()
    for each in (hears, tells):
        each.setblocking(False)
    wakes = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    pa.enable_signal_handlers(False)
    _heard.append(hears)
    try:
        yield
    finally:
        pa.enable_signal_handlers(True)  # pyarrow's default
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakes)
        _heard.remove(hears)
        tells.close()  # which wakes who still waits
        hears.close()


class Waiting:
    """A file that is read as long as no signal comes: what is waited for then is its end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._take = file, getattr(file, "read1", file.read)

    def read(self, size: int) -> bytes:
        """What can be had at once, but something; nothing at the end."""
        return bytes(self._take(size)) if wait_for_input(self._file) else b""


def wait_for_input(file: BinaryIO) -> bool:
    """Wait until something can be read from a file, or its end; False if a signal came first."""
    if _told.is_set():
        return False
    if sys.platform == "win32" or not _heard:  # where only sockets can be waited for
        return True
    try:
        number = file.fileno()
    except OSError:  # not a file of the system: nobody waits for it
        return True
    waiting: list[int | socket.socket] = [number, _heard[-1]]
    return _heard[-1] not in select.select(waiting, [], [])[0]
