"""The surroundings of one fit: seed, progress bar, checkpoint, and the record of passes over the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lanam.checkpoints import Checkpoint
from lanam.core.inference.options import Options
from lanam.core.rows.plan import Plan
from lanam.core.rows.tables import Totals
from lanam.errors import Setting, WaitWarning, warn_user
from lanam.progress import Progress
from lanam.text import duration
from lanam.version import __version__

#: Fits that take longer than this are announced, in seconds.
_LONG = 30.0


@dataclass(frozen=True)
class FitPlan:
    """What a fit did with its rows.

    Attributes
    ----------
    stages
        The plan of each stage, made before it started.
    passes, seconds
        The number of passes over all rows, and the time they took.

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
        passes = f"{self.passes} passes over the rows in {self.seconds:.1f} s"
        return "\n".join([*map(str, self.stages), passes])


class Session(ExitStack):
    """The surroundings of a fit; a context manager that ends the progress bar.

    Its ``options`` are those of the fit, with callbacks for plans and iterations.
    """

    def __init__(self, options: Options, random_state: Any, verbose: int) -> None:
        super().__init__()
        self.seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        self._seeded = random_state is not None
        self._progress = self.enter_context(Progress(options.max_iter)) if verbose else None
        self.options = replace(options, on_plan=self._add_plan, on_iteration=self._show)
        #: what the core's log evidence lacks of that of the target
        self.constant = 0.0
        self._stages: list[Plan] = []
        self._passes, self._seconds = 0, 0.0
        self._checkpoint: Checkpoint | None = None

    def keep_at(self, path: Any, about: Mapping[str, Any]) -> None:
        """Write totals over the rows to a folder, and resume from those that are there.

        ``about`` is what they depend on besides the options and the random state. Without a random state
        the seed is that of the interrupted fit.
        """
        # A fit may be resumed with other numbers of threads and other memory.
        silent = replace(self.options, on_plan=None, on_iteration=None, n_jobs=1, memory=0.0)
        key = {**about, "options": repr(silent), "lanam": __version__}
        if self._seeded:
            key["seed"] = self.seed
        self._checkpoint = Checkpoint(path, key, self.seed)
        self.seed = self._checkpoint.seed

    def log(self, job: Callable[..., Totals], compute: Callable[[], Totals]) -> Totals:
        """The totals of a job over all rows: computed, or read from the checkpoint."""

        def counted() -> Totals:
            began = time.perf_counter()
            totals = compute()
            self._passes += 1
            self._seconds += time.perf_counter() - began
            return totals

        return counted() if self._checkpoint is None else self._checkpoint(job, counted)

    def _show(self, record: Mapping[str, Any]) -> None:
        """Show a record of the history, with the log evidence of the target itself."""
        if self._progress is not None:
            self._progress({**record, "log_evidence": record["log_evidence"] + self.constant})

    def show_rows(self, n_rows: int, of: int | None) -> None:
        """Show how many rows of a pass were read."""
        if self._progress is not None:
            self._progress.rows(self._passes + 1, n_rows, of)

    @property
    def plan(self) -> FitPlan:
        """What the fit did with its rows."""
        return FitPlan(tuple(self._stages), self._passes, self._seconds)

    def _add_plan(self, plan: Plan) -> None:
        self._stages.append(plan)
        _warn_of_wait(plan)
        if self._progress is not None:
            self._progress.say(f"lanam  {plan}")


def _warn_of_wait(plan: Plan) -> None:
    """Warn of a long fit before it starts, with what would shorten it."""
    seconds = plan.solving_seconds + plan.pair_seconds
    if seconds < _LONG:
        return
    remedies = []
    if plan.pair_seconds > 0.5 * seconds:
        remedies.append("set {no_interactions}, which leaves out the search for them")
    if plan.n_outputs > 2:
        remedies.append("merge rare classes")
    remedies.append("drop columns")
    warn_user(
        WaitWarning(
            "this fit may take about {time}: {n_columns} columns{classes} have {n_pairs:,} interactions to "
            "score and {n_coordinates:,} coefficients",
            f"to wait less, {', or '.join(remedies)}",
            time=duration(seconds),
            n_columns=plan.n_columns,
            classes=f" and {plan.n_outputs + 1} classes" if plan.n_outputs > 1 else "",
            n_pairs=plan.n_pairs,
            n_coordinates=plan.n_coordinates,
            no_interactions=Setting("interactions", 0),
        )
    )
