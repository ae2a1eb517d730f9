"""mgcv, the reference of additive models with bands, by ``Rscript`` where there is one."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.data.problems import AdditiveProblem
from benchmarks.trust.curves import Curve

SCRIPT = Path(__file__).with_name("mgcv.R")
BASIS = 20  # of each smooth: its default of 10 is too small for f2, whose bands then never hold it


@cache
def missing() -> str | None:
    """Say why mgcv cannot run here; None if it can."""
    if shutil.which("Rscript") is None:
        return "there is no Rscript here"
    done = subprocess.run(
        ["Rscript", "-e", "library(mgcv)"], capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else "R has no package mgcv"


def fit_all(
    problems: Sequence[AdditiveProblem], family: str, basis: int = BASIS
) -> list[list[Curve] | None]:
    """The curves of each problem (REML, ``select=TRUE``, unconditional covariance); None if it failed."""
    with tempfile.TemporaryDirectory(prefix="lanam-mgcv-") as folder:
        for number, problem in enumerate(problems):
            columns = {f"x{d}": column for d, column in enumerate(problem.X.T)}
            path = Path(folder) / f"{number:06d}.csv"
            pd.DataFrame({"y": problem.y} | columns).to_csv(path, index=False)
        command = ["Rscript", str(SCRIPT), folder, family, str(basis)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return [
            read_curves(Path(folder) / f"{number:06d}.bin", *problem.X.shape)
            for number, problem in enumerate(problems)
        ]


def read_curves(path: Path, n_rows: int, n_columns: int) -> list[Curve] | None:
    """Mean and standard deviation at each row, then the simultaneous half-width, of each column."""
    if not path.exists():
        return None
    answer = np.fromfile(path).reshape(n_columns, 2 * n_rows + 1)
    return [Curve(own[:n_rows], own[n_rows:-1], float(own[-1])) for own in answer]
