"""``lanam fit``: a table to a model in a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.console import Console
from lanam.cli.deciding import (
    MANY_VALUES,
    REGRESSION,
    TASKS,
    Decision,
    Task,
    decide_task,
    find_target,
    hold_out,
    read_pairs,
    require_column,
    split_names,
    target_values,
)
from lanam.cli.errors import FLAGS, CLIError, UsageError
from lanam.cli.models import numbers, open_for, without
from lanam.cli.reading import are_files, read_rows
from lanam.cli.requests import Fit
from lanam.cli.writing import require_new
from lanam.engines.dialects import CsvFiles
from lanam.engines.files import FileSource
from lanam.parameters import DEFAULTS

if TYPE_CHECKING:
    from lanam.cli.models import Estimator

#: The share of rows that is held out unless somebody says otherwise.
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Columns:
    """A table, and which of its columns is what."""

    source: FileSource
    target: str
    roles: dict[
        str, str
    ]  # columns that are neither target nor features, by the arguments of ``fit``
    features: list[str]


@dataclass(frozen=True)
class Rows:
    """Some rows of the table."""

    X: pa.Table
    y: np.ndarray
    more: dict[str, Any]  # by the arguments of ``fit``

    def take(self, rows: np.ndarray) -> Rows:
        """Some of these rows."""
        return Rows(
            self.X.take(pa.array(rows)),
            self.y[rows],
            {name: values[rows] for name, values in self.more.items()},
        )

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Fitted:
    """A model, and what it was fitted to."""

    model: Estimator
    target: str
    decision: Decision
    n_train: int
    n_calibrate: int = 0
    test: Rows | None = None


def fit(request: Fit, console: Console) -> None:
    """Fit a model to a table, say what it found, and write it."""
    from lanam import coverage_report

    several = are_files(request.data)
    inputs = () if several else (request.data,)
    place = require_new(request.output, force=request.force, inputs=inputs, example="model.lanam")
    fitted = (_fit_several if several else _fit_one)(request, console)
    model, target, test = fitted.model, fitted.target, fitted.test
    model.set_params(verbose=0)
    model.metadata_ = {
        "target": target,
        "task": fitted.decision.task.name,
        "weight": request.weight,
        "exposure": request.exposure,
    }
    summary = model.summary()
    held_out = coverage_report(model, test.X, test.y, **test.more) if test else None
    model.save(place)

    console.tell(summary)
    if test:
        console.tell(f"\nOn {len(test)} rows that the model has not seen:\n{held_out}")
    example = "NEW_FOLDER -o OUT_FOLDER" if several else "NEW.csv -o OUT.csv"
    console.note(f"\nwritten: {place}. Next: lanam predict {place} {example}")
    console.document(
        {
            "model": str(place),
            "target": target,
            "task": fitted.decision.task.name,
            "why": fitted.decision.why,
            "n_train": fitted.n_train,
            "n_calibrate": fitted.n_calibrate,
            "n_test": len(test) if test else 0,
            "summary": summary.to_dict(),
            "held_out": None if held_out is None else held_out.to_dict(),
            "notes": console.notes,
        }
    )


def _fit_one(request: Fit, console: Console) -> Fitted:
    """Fit a model to the table in a file."""
    test_share = _TEST_SHARE if request.test_share is None else request.test_share
    if test_share + request.calibrate_share >= 0.9:
        raise UsageError("--test-share and --calibrate-share leave too few rows to fit")
    columns = _look(request, console)
    rows, decision = _read(request, columns, console)
    console.note(f"task: {decision.task.name}, {decision.why}")
    labels = rows.y if decision.task.family.link.classes else None
    shares = (test_share, request.calibrate_share)
    train, test, calibrate = (
        rows.take(part) for part in hold_out(labels, len(rows), shares, request.random_state)
    )
    _tell_rows(train, test, calibrate, console)
    model = _estimator(request, decision, train.X.column_names, console)
    with console.warnings():
        model.fit(train.X, train.y, **train.more, checkpoint=request.checkpoint)
        if calibrate:
            model.calibrate(calibrate.X, calibrate.y, **calibrate.more)
    if columns.source.dialect is not None:
        model.dialect_ = columns.source.dialect
    return Fitted(model, columns.target, decision, len(train), len(calibrate), test)


def _fit_several(request: Fit, console: Console) -> Fitted:
    """Fit a model to a table in several files, which need not fit in memory."""
    held = {"--test-share": request.test_share, "--calibrate-share": request.calibrate_share}
    for option, share in held.items():
        if share:
            raise UsageError(
                f"{option} {share:g}: rows of several files are not held out. Keep some of the files in "
                "another folder, and check the model with lanam report on one of them"
            )
    columns = _look(request, console)
    source, target = columns.source, columns.target
    decision = decide_task(_different_values(source, target), target, request.task)
    console.note(f"task: {decision.task.name}, {decision.why}")
    n_files = len(source.paths)
    files = f"{n_files} files are" if n_files > 1 else "1 file is"
    console.note(f"rows: {files} read in chunks, and all rows are used to fit; none are held out")
    model = _estimator(request, decision, columns.features, console)
    used = [target, *columns.roles.values(), *columns.features]
    with console.warnings():
        model.fit(
            request.data if source.dialect is None else CsvFiles(request.data, source.dialect),
            target=target,
            drop=without(source.names, used),
            checkpoint=request.checkpoint,
            **columns.roles,
        )
    return Fitted(model, target, decision, model.summary().to_dict()["n_rows"])


def _different_values(source: FileSource, name: str) -> pa.ChunkedArray:
    """The different values of a column, or many of them; gaps are for the fit to refuse."""
    kind = _plain(source.types[name])
    found = pa.chunked_array([], kind)
    for chunk in source.each([name]):
        known = _known(chunk.frame[name]).cast(kind)
        both = pa.chunked_array([*found.chunks, *known.chunks], kind)
        found = pa.chunked_array([pc.unique(both)[: MANY_VALUES + 1]])
    if not len(found):
        raise CLIError(f"the target {name!r} has no value in any row")
    return found


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of values that a CSV file's numbers, and categories, can be read as."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _known(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values that are there."""
    column = column.drop_null()
    if not pa.types.is_floating(column.type):
        return column
    return column.filter(pc.invert(pc.is_nan(column)))


def _look(request: Fit, console: Console) -> Columns:
    """Open a table, and find out which of its columns is what; those without names are left out."""
    source = open_for(None, request.data, request.dialect, console)
    names = [name for name in source.names if name]
    if len(names) < len(source.names):
        console.note(f"{len(source.names) - len(names)} column(s) without a name are left out")
    can_ask = not console.silent and sys.stdin.isatty() and sys.stderr.isatty()
    target, how = find_target(names, request.target, _ask if can_ask else None)
    console.note(f"target: {target!r}, {how}")
    given = {"sample_weight": request.weight, "exposure": request.exposure}
    roles = {
        argument: require_column(name, names, FLAGS[argument])
        for argument, name in given.items()
        if name is not None
    }
    if "exposure" in roles and not _asked(request).family.takes_exposure:
        raise UsageError("--exposure is what counts are counted over: say --task counts as well")
    drop = split_names(request.drop, names, "--drop")
    features = without(names, [target, *roles.values(), *drop])
    if not features:
        raise CLIError(f"{source.title} has no column to predict {target!r} from")
    columns = Columns(source, target, roles, features)
    _require_usable(request, columns, console)
    return columns


def _require_usable(request: Fit, columns: Columns, console: Console) -> None:
    """Refuse columns that no model can be fitted to, and say which might not be what they look like."""
    source, target = columns.source, columns.target
    others = without(
        columns.features, split_names(request.categorical, columns.features, "--categorical")
    )
    for name in (*columns.features, target):
        if pa.types.is_temporal(source.types[name]):
            raise CLIError(
                f"column {name!r} holds dates or times, and lanam takes numbers and categories: leave it "
                f"out with --drop {name!r}, or make a number of it that matters"
            )
    source.require_numeric(others if _asked(request).family.link.classes else [*others, target])
    for name, cell in _padded(source, others).items():
        console.note(
            f"column {name!r} is read as numbers, and has zeros in front of them ({cell!r}): if they are "
            f"codes, say --categorical {name!r}"
        )


def _padded(source: FileSource, names: Sequence[str]) -> dict[str, str]:
    """Which columns of CSV have whole numbers with zeros in front, with an example; by the first block."""
    whole = [name for name in names if pa.types.is_integer(source.types[name])]
    if source.has_types or not whole:
        return {}
    padded = {}
    for chunk in islice(source.verbatim(whole)[0].each(whole), 1):
        for name in whole:
            cells = chunk.frame[name]
            found = cells.filter(pc.match_substring_regex(cells, r"^\s*-?0\d+\s*$"))
            if len(found):
                padded[name] = found[0].as_py().strip()
    return padded


def _ask(names: Sequence[str]) -> str:
    """Ask which column is to be predicted, by name or number."""
    import typer

    for number, name in enumerate(names, 1):
        print(f"{number:4d}  {name}", file=sys.stderr)
    answer = str(typer.prompt("Which column is to be predicted (name or number)", err=True)).strip()
    if answer not in names and answer.isdigit() and 1 <= int(answer) <= len(names):
        return names[int(answer) - 1]
    return answer


def _read(request: Fit, columns: Columns, console: Console) -> tuple[Rows, Decision]:
    """The rows that have a target, and what kind of target it is."""
    target, roles = columns.target, columns.roles
    table = read_rows(columns.source, [*columns.features, target, *roles.values()])
    column = table[target]
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if column.null_count == len(column):
        raise CLIError(f"the target {target!r} has no value in any row")
    if column.null_count:
        console.note(f"{column.null_count} of {len(column)} rows have no target and are left out")
        known = pc.is_valid(column)
        table, column = table.filter(known), column.filter(known)
    decision = decide_task(column, target, request.task)
    more = {argument: numbers(table, name, FLAGS[argument]) for argument, name in roles.items()}
    y = target_values(column, decision.task.family)
    return Rows(table.select(columns.features), y, more), decision


def _tell_rows(train: Rows, test: Rows, calibrate: Rows, console: Console) -> None:
    told = [f"{len(train)} rows to fit"]
    if calibrate:
        told.append(f"{len(calibrate)} to calibrate intervals")
    if test:
        told.append(f"{len(test)} held out for the figures (--test-share 0 fits to all)")
    console.note("rows: " + ", ".join(told))


def _asked(request: Fit) -> Task:
    """The task that was asked for; without a word, the one of numbers."""
    return TASKS[request.task or REGRESSION.name]


def _estimator(
    request: Fit, decision: Decision, names: Sequence[str], console: Console
) -> Estimator:
    from lanam import LANAMClassifier, LANAMRegressor

    if request.noise != DEFAULTS.noise and not decision.task.family.has_noise:
        raise UsageError(f"--noise is for --task regression, and the task is {decision.task.name}")
    family = decision.task.family
    model: Estimator
    if family.link.classes:
        model = LANAMClassifier()
    else:
        model = LANAMRegressor(likelihood=family.name, noise=request.noise.value)
    model.set_params(
        max_iter=request.max_iter,
        n_restarts=request.n_restarts,
        random_state=request.random_state,
        memory=request.memory,
        n_jobs=request.jobs,
        interactions=read_pairs(request.interactions, names),
        categorical_features=split_names(request.categorical, names, "--categorical") or "auto",
        verbose=int(not console.silent),
    )
    return model
