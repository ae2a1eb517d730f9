"""The paper's public implementation, run in an interpreter of its own.

Its pinned dependencies (numpy below 2, torch, laplace-torch) do not live together with ours.
So ``--public-python`` names an interpreter in which the package ``laplace_skorch`` is
installed as its own documentation says, and ``benchmarks/public_runner.py`` runs there.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.sets import Task
from benchmarks.environment import thread_environment
from benchmarks.peers.interface import Fitted, Prediction

RUNNER = Path(__file__).parent.parent / "public_runner.py"
IMPORT_CHECK = "import laplace_skorch.regressor, laplace_skorch.classifier"


class PublicImplementation:
    """Fits once for each of the paper's three learning rates and keeps the best evidence."""

    name = "public"

    def __init__(self, python: str | None) -> None:
        self.python = python

    def missing(self) -> str | None:
        if self.python is None:
            return "no --public-python given (an interpreter with laplace_skorch installed)"
        try:
            check = subprocess.run(
                [self.python, "-P", "-c", IMPORT_CHECK], capture_output=True, text=True, check=False
            )
        except OSError as error:
            return f"--public-python cannot be started ({error.strerror})"
        if check.returncode:
            return f"laplace_skorch does not import ({check.stderr.strip().splitlines()[-1]})"
        return None

    def fit(self, X: np.ndarray, y: np.ndarray, task: Task, seed: int, threads: int) -> Fitted:
        assert self.python is not None
        worker = _Worker(self.python, threads)
        answer = worker.ask("fit", {"X": X, "y": y}, task=task, seed=seed)
        info = {key: value for key, value in answer.items() if key != "arrays"}

        def predict(rows: np.ndarray) -> Prediction:
            reply = worker.ask("predict", {"X": rows})
            info["predict_seconds"] = reply["predict_seconds"]
            arrays = reply["arrays"]
            return Prediction(arrays["mean"], arrays.get("std"))

        return Fitted(predict, info=info)


class _Worker:
    """One process that holds one fitted model; arrays travel in files, the rest as JSON lines."""

    def __init__(self, python: str, threads: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._complaints = Path(self._folder.name) / "stderr.txt"
        # -P keeps this folder off the other interpreter's path, so that none of our module
        # names (data, metrics, ...) can shadow what its packages import.
        with self._complaints.open("w") as complaints:
            self._process = subprocess.Popen(
                [python, "-P", "-W", "ignore", str(RUNNER), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                env={**os.environ, **thread_environment(threads)},
            )
        self._finalizer = weakref.finalize(self, _stop, self._process)

    def ask(self, command: str, arrays: dict[str, np.ndarray], **options: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        request, answer = (Path(self._folder.name) / f"{end}.npz" for end in ("in", "out"))
        np.savez(request, **arrays)
        message = {"command": command, "request": str(request), "answer": str(answer), **options}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = ""
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            pass  # the process is gone; what it said last is the message below
        if not line:
            complaint = self._complaints.read_text().strip().splitlines()
            raise RuntimeError(f"public implementation: {complaint[-1] if complaint else 'died'}")
        reply: dict[str, Any] = json.loads(line)
        if command == "predict":
            with np.load(answer) as stored:
                reply["arrays"] = {key: stored[key] for key in stored.files}
        return reply


def _stop(process: subprocess.Popen[str]) -> None:
    """Close our ends of the pipes, which ends the runner's loop; then collect it."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
