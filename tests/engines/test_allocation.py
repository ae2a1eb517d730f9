"""Freed memory is used again while a task runs, and given back after it; in processes of their own."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None) if os.name == "posix" else None, "mallopt")
    or not Path("/proc/self/statm").exists(),
    reason="needs glibc's allocator and Linux's count of pages",
)

# New pages of 50 times ten megabytes, and what is resident after a task with 200 of them at once.
COUNT = """
import json, resource
from contextlib import nullcontext
import numpy as np
from lanam.engines.allocation import freed_memory_kept

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def work():
    before = faults()
    for _ in range(50):
        arrays = [np.ones(125_000) for _ in range(10)]
        del arrays
    told.append(faults() - before)

told = []
def task(keeping):
    with keeping:
        work()
        if many:
            arrays = [np.ones(125_000) for _ in range(200)]
            del arrays

many = False
task({keeping})
many = True
start = resident()
task({keeping})
told.append(resident() - start)
print(json.dumps(told))
"""


def counted(keeping):
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    code = COUNT.format(keeping=keeping)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout)


def test_pages_are_new_once_where_freed_memory_is_kept():
    told_by_dask, _, _ = counted("nullcontext()")
    meanwhile, again, left = counted("freed_memory_kept()")
    needed = 10 * 1_000_000 / os.sysconf("SC_PAGESIZE")
    assert told_by_dask > 40 * needed
    assert meanwhile < 3 * needed
    # every task begins anew, because the last one gave all back
    assert again > 0.5 * needed
    assert left < 50_000_000


def test_without_glibc_nothing_is_done(monkeypatch):
    from lanam.engines import allocation

    def windows(name):
        raise TypeError("argument of type 'NoneType' is not iterable")

    monkeypatch.setattr(allocation.ctypes, "CDLL", windows)
    with allocation.freed_memory_kept():
        pass
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda name: object())
    with allocation.freed_memory_kept():
        pass


def test_tasks_side_by_side_give_back_when_the_last_one_ends(monkeypatch):
    from lanam.engines import allocation

    told = []
    monkeypatch.setattr(allocation, "_adjust", lambda large, kept: told.append(kept))
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    with allocation.freed_memory_kept():
        with pytest.raises(ValueError, match="a task's own"), allocation.freed_memory_kept():
            raise ValueError("a task's own")
        assert told == [2**31 - 1]
    assert told == [2**31 - 1, 65536]
