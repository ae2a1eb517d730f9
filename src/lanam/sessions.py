"""One fit as its user sees it: its seed, its bar, its checkpoint, and what it did with the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lanam.checkpoints import Checkpoint
from lanam.core.inference.options import Options
from lanam.core.rows.plan import Plan
from lanam.core.rows.tables import Totals
from lanam.progress import Progress
from lanam.version import __version__


@dataclass(frozen=True)
class FitPlan:
    """What a fit did with its rows: the plans of its stages, and how often it went over all rows.

    Attributes
    ----------
    stages
        Each as it was planned before anything was made.
    passes, seconds
        How many passes over all rows there were, and the time they took.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMRegressor
    >>> X = np.linspace(-1, 1, 500)[:, None]
    >>> model = LANAMRegressor(interactions=0, random_state=0, n_jobs=1).fit(X, X[:, 0] ** 2)
    >>> print(model.plan_.stages[0])
    columns: 500 rows x 1 columns, 1 terms; cross-tables of 257 entries take 1 MB of 1,000 MB: ...
    """

    stages: tuple[Plan, ...]
    passes: int
    seconds: float

    def __str__(self) -> str:
        told = f"{self.passes} passes over the rows in {self.seconds:.1f} s"
        return "\n".join([*map(str, self.stages), told])


class Session:
    """The surroundings of a fit; a context manager that ends its bar.

    Parameters
    ----------
    options
        How to fit.
    random_state
        The estimator's.
    verbose
        Whether to show progress.

    Attributes
    ----------
    options
        The same, telling us of plans and iterations.
    seed
        The core's seed.
    """

    def __init__(self, options: Options, random_state: Any, verbose: int) -> None:
        self.seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        self._seeded = random_state is not None
        self._progress = Progress(options.max_iter) if verbose else None
        self.options = replace(options, on_plan=self._note, on_iteration=self._progress)
        self._stages: list[Plan] = []
        self._passes, self._seconds = 0, 0.0
        self._checkpoint: Checkpoint | None = None
        self._open = ExitStack()

    def __enter__(self) -> Session:
        if self._progress is not None:
            self._open.enter_context(self._progress)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def keep_at(self, path: Any, about: Mapping[str, Any]) -> None:
        """Keep what is learned of the rows in a folder, and go on from what is there.

        ``about`` is what it depends on besides the options and the random state. Without a random state
        the seed is that of the fit that was stopped.
        """
        # How many threads there are, and how much memory, is for the machine that goes on.
        silent = replace(self.options, on_plan=None, on_iteration=None, n_jobs=1, memory=0.0)
        told = {**about, "options": repr(silent), "lanam": __version__}
        if self._seeded:
            told["seed"] = self.seed
        self._checkpoint = Checkpoint(path, told, self.seed)
        self.seed = self._checkpoint.seed

    def log(self, job: Callable[..., Totals], compute: Callable[[], Totals]) -> Totals:
        """The totals of a job over all rows: counted, or known from the checkpoint."""

        def counted() -> Totals:
            began = time.perf_counter()
            totals = compute()
            self._passes += 1
            self._seconds += time.perf_counter() - began
            return totals

        return counted() if self._checkpoint is None else self._checkpoint(job, counted)

    def show_rows(self, n_rows: int, of: int | None) -> None:
        """Show how many rows of a pass were read."""
        if self._progress is not None:
            self._progress.rows(self._passes + 1, n_rows, of)

    @property
    def plan(self) -> FitPlan:
        """What the fit did with its rows."""
        return FitPlan(tuple(self._stages), self._passes, self._seconds)

    def _note(self, plan: Plan) -> None:
        self._stages.append(plan)
        if self._progress is not None:
            self._progress.say(f"lanam  {plan}")
