"""Freed memory is reused during a task and returned to the system afterwards, measured in subprocesses."""

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

# Page faults of 50 times ten megabytes, and resident memory after a task that used 200 megabytes.
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
    counts.append(faults() - before)

counts = []
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
counts.append(resident() - start)
print(json.dumps(counts))
"""


def counted(keeping):
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    code = COUNT.format(keeping=keeping)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout)


def test_page_faults():
    by_default, _, _ = counted("nullcontext()")
    kept, again, left = counted("freed_memory_kept()")
    needed = 10 * 1_000_000 / os.sysconf("SC_PAGESIZE")
    assert by_default > 40 * needed
    assert kept < 3 * needed
    # each task starts with new pages, because the previous one returned all
    assert again > 0.5 * needed
    assert left < 50_000_000


def test_without_glibc(monkeypatch):
    from lanam.engines import allocation

    def windows(name):
        raise TypeError("argument of type 'NoneType' is not iterable")

    monkeypatch.setattr(allocation.ctypes, "CDLL", windows)
    with allocation.freed_memory_kept():
        pass
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda name: object())
    with allocation.freed_memory_kept():
        pass


def test_overlapping_tasks(monkeypatch):
    from lanam.engines import allocation

    thresholds = []
    monkeypatch.setattr(allocation, "_adjust", lambda large, kept: thresholds.append(kept))
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    with allocation.freed_memory_kept():
        with pytest.raises(ValueError, match="a task's own"), allocation.freed_memory_kept():
            raise ValueError("a task's own")
        assert thresholds == [2**31 - 1]
    assert thresholds == [2**31 - 1, 65536]
