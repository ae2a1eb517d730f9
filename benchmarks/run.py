"""The paper's experiments, every model, one command.

``python -m benchmarks.run [experiment ...] --data DIR`` runs what is not finished yet: each cell (a model
on a fold of a set) in a process of its own, which measures time and peak memory. Finished cells are kept
in ``--out`` and the tidy table of all of them is ``results.csv`` there; a run may be cut short and
started again, or made in chunks. ``python -m benchmarks.tables`` makes tables and figures of it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command import choose, comma_separated
from benchmarks.environment import code_version, describe, say, thread_environment
from benchmarks.progress import Progress

if TYPE_CHECKING:  # numpy and its like are loaded only after the threads are limited
    from benchmarks.cells import Cell, Store
    from benchmarks.experiments import Experiment, Source

#: So many lost processes one after the other are no accident of models.
DEATHS = 5
#: Imported once by the server from which every cell's process is forked.
PRELOADED = ("benchmarks.experiments", "lanam.regressor", "lanam.classifier", "sklearn.pipeline")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    add = parser.add_argument
    add("experiments", nargs="*", metavar="experiment", help="all of the paper's by default")
    add("--data", type=Path, help="directory of the folders of data sets; without it, OpenML")
    add("--sets", type=comma_separated, help="comma-separated; all of the experiment's by default")
    add(
        "--models", type=comma_separated, help="comma-separated; all of the experiment's by default"
    )
    add("--folds", type=_numbers, default=list(range(5)), help="how many of five, or which: 0,3")
    add("--jobs", type=int, default=1, help="cells at a time")
    add("--threads", type=int, default=1, help="of each cell, for every model alike")
    add("--limit", type=float, help="seconds after which a cell is given up, and counted as failed")
    add("--out", type=Path, default=Path("results") / "paper", help="folder of results")
    add("--take", type=Path, metavar="CSV", help="count the cells of this results.csv as finished")
    add("--again", action="store_true", help="run finished cells again")
    add("--retry", action="store_true", help="run failed cells again")
    add("--list", action="store_true", help="list experiments, sets and models, and stop")
    add("--public-python", help="an interpreter with the paper's own implementation")
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[int]:
    """``3`` is the first three, ``0,3`` and ``3,`` are those."""
    if "," in text:
        return [int(part) for part in comma_separated(text)]
    if int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is how many, and none: the first alone is 1 or 0,"
        )
    return list(range(int(text)))


@dataclass(frozen=True)
class Task:
    """All that a cell's process has to know."""

    cell: Cell
    source: Source
    store: Store
    threads: int
    jobs: int
    code: str
    public_python: str | None


def plan(options: argparse.Namespace, source: Source) -> tuple[list[Cell], list[str]]:
    """The cells that were asked for, fold by fold, and a line on each model that cannot run."""
    from benchmarks.cells import Cell
    from benchmarks.experiments import EXPERIMENTS, PAPER

    known = [EXPERIMENTS[name] for name in _known(options.experiments or PAPER, EXPERIMENTS)]
    allowed = {name for e in known for name in (*e.models, *e.named_only)}
    models = _known(options.models or dict.fromkeys(n for e in known for n in e.models), allowed)
    present, skipped = choose(list(models), options.public_python)
    cells = []
    for experiment in known:
        names = _sets(experiment, options.sets, source)
        for fold in options.folds:
            for name in names:
                own = (*experiment.models, *(experiment.named_only if options.models else ()))
                cells += [Cell(experiment.name, name, m, fold) for m in own if m in present]
    if options.sets and not cells:
        raise SystemExit(f"no experiment of {[e.name for e in known]} has the sets {options.sets}")
    return cells, skipped


def with_data(cells: Sequence[Cell], source: Source) -> tuple[list[Cell], list[str]]:
    """Leave out the cells whose set cannot be had, and say why: no model is to be blamed for that."""
    from benchmarks.experiments import EXPERIMENTS

    reasons: dict[tuple[str, str], str | None] = {}
    for cell in cells:
        key = (cell.experiment, cell.set)
        if key not in reasons:
            try:
                EXPERIMENTS[cell.experiment].load(cell.set, 0, source)
                reasons[key] = None
            except Exception as error:  # whatever is wrong with a set, the others can run
                reasons[key] = f"SKIPPED {cell.experiment} on {cell.set}: {error}"
    lines = [reason for reason in reasons.values() if reason is not None]
    for line in lines:
        say(line)
    return [c for c in cells if reasons[c.experiment, c.set] is None], lines


def _known(asked: Any, known: Any) -> list[str]:
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    return list(asked)


def _sets(experiment: Experiment, asked: Sequence[str] | None, source: Source) -> list[str]:
    """The sets to run; of the optional ones those that were asked for, or that are there."""
    if asked:
        return [n for n in (*experiment.sets, *experiment.optional_sets) if n in asked]
    folder = source.directory
    there = [n for n in experiment.optional_sets if folder is not None and (folder / n).is_dir()]
    for name in set(experiment.optional_sets) - set(there):
        say(f"SKIPPED {experiment.name} on {name}: --data has no folder of that name")
    return [*experiment.sets, *there]


def run_task(task: Task) -> None:
    """Run one cell and keep it; in a process of its own."""
    from threadpoolctl import threadpool_limits

    from benchmarks.experiments import EXPERIMENTS
    from benchmarks.peers import all_peers
    from benchmarks.runner import folds_of, run_cell

    cell, experiment = task.cell, EXPERIMENTS[task.cell.experiment]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    # of the last minute: a clock on a busy machine says little
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    with threadpool_limits(task.threads):
        peer = all_peers(task.public_python)[cell.model]
        peer.missing()  # imports what it needs, before the clock starts
        dataset = experiment.load(cell.set, cell.fold, task.source)
        fixed = dataset.n_train is not None
        folds = list(folds_of(dataset, cell.fold + 1))
        _, train, test = folds[0] if fixed else folds[cell.fold]
        arrays: dict[str, Any] = {}

        def observe(fitted: Any, prediction: Any) -> dict[str, Any]:
            row, seen = experiment.observe(fitted, dataset, dataset.rows(train))
            arrays.update(seen, y=dataset.y[test], mean=prediction.mean)
            if prediction.std is not None:
                arrays["std"] = prediction.std
            return row

        row = run_cell(
            *(dataset, cell.fold, train, test, peer, task.threads),
            seed=cell.fold if fixed else 0,
            observe=observe,
        )
    row |= {"jobs": task.jobs, "load": load, "code": task.code, "started": started}
    task.store.write(cell, row, arrays)


def run(options: argparse.Namespace) -> None:
    """Run what is not finished, and collect the results."""
    from benchmarks.cells import Store
    from benchmarks.experiments import Source

    source, store = Source(options.data, options.out / "downloads"), Store(options.out)
    cells, skipped = plan(options, source)
    if options.take is not None:
        say(f"{store.take(options.take)} cells taken from {options.take}")

    def to_run(cell: Cell) -> bool:
        if options.again:
            return True
        return _unfinished(store.read(cell), options.retry) and not taken_over(cell, store)

    todo = [cell for cell in cells if to_run(cell)]
    say(f"{len(cells) - len(todo)} of {len(cells)} cells are finished; {len(todo)} to run")
    todo, without_data = with_data(todo, source)
    shared = (options.threads, options.jobs, code_version(), options.public_python)
    # another run in the same folder may have been faster
    tasks = (Task(cell, source, store, *shared) for cell in todo if to_run(cell))
    deaths = 0
    try:
        with Progress(len(todo)) as advance:
            for cell, died in carry_out(tasks, options.jobs, options.limit):
                row = store.read(cell) or {}
                # what was lost with its process is told and not kept: it may well be no fault of the model
                advance(f"{cell}: {outcome(row) if died is None else died}")
                deaths = 0 if died is None else deaths + 1
                if deaths == DEATHS:
                    raise SystemExit(f"{DEATHS} processes died in a row: {died}")
    finally:
        conclude(options, store, [*skipped, *without_data])


def conclude(options: argparse.Namespace, store: Store, skipped: Sequence[str]) -> None:
    """Collect all results, and under which conditions this and earlier runs made them."""
    options.out.mkdir(parents=True, exist_ok=True)
    results = store.collect()
    results.to_csv(options.out / "results.csv", index=False)
    conditions = options.out / "conditions.txt"
    before = conditions.read_text().splitlines() if conditions.exists() else []
    earlier = [line for line in before if not line.startswith("SKIPPED")]
    lines = dict.fromkeys([*earlier, describe(options.threads), *skipped])
    conditions.write_text("\n".join(lines) + "\n")
    failed = results["error"].notna().sum() if "error" in results else 0
    say(f"{len(results)} cells in {options.out / 'results.csv'}, {failed} of them failed")


def taken_over(cell: Cell, store: Store) -> bool:
    """Keep a cell that another experiment has finished with the very same fit; whether there is one."""
    from benchmarks.experiments import EXPERIMENTS

    other = EXPERIMENTS[cell.experiment].same_as
    return other is not None and store.copy(replace(cell, experiment=other), cell)


def _unfinished(row: dict[str, Any] | None, retry: bool) -> bool:
    return row is None or (retry and "error" in row)


def outcome(row: dict[str, Any]) -> str:
    """What a cell came to, in a few words."""
    if "error" in row:
        return f"FAILED {row['error']}"
    return f"nll {row['nll']:.4f}, {row['fit_seconds']:.1f} s, {row['peak_bytes'] / 2**20:.0f} MiB"


def carry_out(
    tasks: Iterable[Task],
    jobs: int,
    limit: float | None,
    work: Callable[[Task], None] = run_task,
) -> Iterator[tuple[Cell, str | None]]:
    """Run tasks, ``jobs`` at a time; gives each cell when it is over, and how it died if it did.

    Processes are forked from a server that has imported what all need, so that each is fresh and still
    starts at once; where there is no such server, they take longer. A cell over the limit is kept as
    failed.
    """
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload(list(PRELOADED))
    waiting = iter(tasks)
    running: dict[int, tuple[Task, Any, float]] = {}
    try:
        while True:
            while len(running) < jobs and (task := next(waiting, None)) is not None:
                process = context.Process(target=work, args=(task,))
                process.start()
                running[process.sentinel] = (task, process, time.monotonic())
            if not running:
                return
            for sentinel in wait(list(running), timeout=1.0):
                task, process, _ = running.pop(sentinel)
                process.join()
                code = process.exitcode
                yield task.cell, f"DIED, its process ended with code {code}" if code else None
            for sentinel, (task, process, start) in list(running.items()):
                if limit is not None and time.monotonic() - start > limit:
                    del running[sentinel]
                    process.kill()
                    process.join()
                    given_up = {"error": f"given up after {limit:.0f} s", "code": task.code}
                    task.store.write(task.cell, given_up, {})
                    yield task.cell, None
    finally:
        for _, process, _ in running.values():
            process.kill()
            process.join()


def list_experiments() -> None:
    """What can be asked for."""
    from benchmarks.experiments import EXPERIMENTS

    for experiment in EXPERIMENTS.values():
        print(f"{experiment.name}: {experiment.title}")
        print(f"  sets: {', '.join((*experiment.sets, *experiment.optional_sets))}")
        print(f"  models: {', '.join(experiment.models)}")
        if experiment.named_only:
            print(f"  when named: {', '.join(experiment.named_only)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run."""
    options = parse(arguments)
    os.environ.update(thread_environment(options.threads))
    # a run that is told to end takes its processes along
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended; finished cells are kept"))
    if options.list:
        list_experiments()
        return
    try:
        run(options)
    except KeyboardInterrupt:
        sys.exit("ended; finished cells are kept")


if __name__ == "__main__":
    main()
