"""``lanam fit``: a table to a model in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lanam.cli.console import Console, unheard
from lanam.cli.deciding import (
    MANY_VALUES,
    TASKS,
    Decision,
    decide_task,
    family_of,
    find_target,
    hold_out,
    read_interactions,
    require_column,
    split_names,
    target_values,
    task_of,
)
from lanam.cli.errors import CLIError, UsageError
from lanam.cli.fit_survival import fit_survival, is_survival
from lanam.cli.knowledge import read_knowledge
from lanam.cli.models import dropped_text, numbers, open_for, summary_text, without
from lanam.cli.requests import FLAGS, FitRequest
from lanam.cli.tables import are_files, read_rows, require_new
from lanam.data.encoding import require_no_infinity
from lanam.engines.dialects import CsvFiles
from lanam.engines.files import FileSource
from lanam.engines.interface import Chunk
from lanam.engines.roles import Roles, read_targets
from lanam.errors import Message
from lanam.families import Family
from lanam.parameters import DEFAULTS
from lanam.provenance import held_out_rows
from lanam.text import printable

if TYPE_CHECKING:
    from lanam.cli.models import Estimator

#: The default of ``--test-share`` for a single file.
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class TableRoles:
    """A table, its target and features, and the columns of weights and exposures by argument."""

    source: FileSource
    target: str
    others: dict[str, str]
    features: list[str]
    #: the column of groups of rows, perhaps a feature as well
    groups: str | None = None


@dataclass(frozen=True)
class Samples:
    """Arguments of ``fit`` and of ``calibrate``, and those of ``coverage_report`` on held-out rows."""

    decision: Decision
    train: dict[str, Any]
    note: str
    calibrate: dict[str, Any] | None = None
    test: dict[str, Any] | None = None
    #: which rows of the table are held out
    held_out: np.ndarray | None = None


def fit(request: FitRequest, console: Console) -> None:
    """Fit a model to a table, print its summary, and write it."""
    from lanam import coverage_report

    if is_survival(request):
        fit_survival(request, console)
        return
    several = are_files(request.data)
    inputs = () if several else (request.data,)
    place = require_new(request.output, force=request.force, inputs=inputs, example="model.lanam")
    test_share = _test_share(request, several)
    roles = _find_roles(request, console)
    samples = (
        _whole_files(request, roles)
        if several
        else _split_rows(request, roles, test_share, console)
    )
    decision, test = samples.decision, samples.test
    console.note(f"task: {decision.task}, {decision.why}")
    console.note(f"rows: {samples.note}")
    model = _estimator(request, decision, roles, console)
    with console.warnings():
        model.fit(**samples.train, checkpoint=request.checkpoint)
        # Held-out groups are unseen categories on purpose.
        with nullcontext() if roles.groups is None else unheard():
            if samples.calibrate:
                model.calibrate(**samples.calibrate)
    model.set_params(verbose=0)
    # Frames of the model in Python are not of the library that reads files here.
    model._schema = replace(model._schema, backend=None)
    if roles.source.dialect is not None:
        model.dialect_ = roles.source.dialect
    model.metadata_ = {
        "target": roles.target,
        "task": decision.task,
        "weight": request.sample_weight,
        "exposure": request.exposure,
        "dropped": dropped_text(without(roles.source.names, _used(roles))),
        **{name: roles.others[name] for name in ("trials", "offset") if name in roles.others},
    }
    if model.provenance_ is not None and (target := model.provenance_.target) is not None:
        named = replace(target, name=roles.target)
        model.provenance_ = replace(model.provenance_, target=named)
    if test and samples.held_out is not None and model.provenance_ is not None:
        with unheard():
            held = held_out_rows(model, test["X"], samples.held_out)
        model.provenance_ = replace(model.provenance_, held_out=held)
    summary = model.summary()
    with nullcontext() if roles.groups is None else unheard():
        held_out = coverage_report(model, **test) if test else None
    model.save(place, overwrite=request.force)
    # Rows that were read into memory are consistent, so the model is not lost.
    for path in roles.source.changed:
        console.warn(
            f"{path} was changed or replaced during the fit: the model is that of the rows as they were "
            "read. Run again for a model of the new ones"
        )

    console.print(summary_text(summary))
    if test:
        console.print(f"\nOn {_n_rows(test)} held-out rows:\n{held_out}")
    example = "NEW_FOLDER -o OUT_FOLDER" if several else "NEW.csv -o OUT.csv"
    console.note(f"\nwritten: {place}. Next: lanam predict {place} {example}")
    console.document(
        {
            "model": str(place),
            "target": roles.target,
            "task": decision.task,
            "why": decision.why,
            "n_train": summary.facts["n_rows"] if several else _n_rows(samples.train),
            "n_calibrate": _n_rows(samples.calibrate),
            "n_test": _n_rows(test),
            "summary": summary.to_dict(),
            "held_out": None if held_out is None else held_out.to_dict(),
            "notes": console.notes,
        }
    )


def _test_share(request: FitRequest, several: bool) -> float:
    """The fraction of rows to hold out, if the options go together."""
    if not several:
        test_share = _TEST_SHARE if request.test_share is None else request.test_share
        if test_share + request.calibrate_share >= 0.9:
            raise UsageError("--test-share and --calibrate-share leave too few rows to fit")
        return test_share
    held = {"--test-share": request.test_share, "--calibrate-share": request.calibrate_share}
    for option, share in held.items():
        if share:
            raise UsageError(
                f"{option} {share:g}: rows of several files are not held out. Keep some of the files in "
                "another folder, and check the model with lanam report on one of them"
            )
    return 0.0


def _split_rows(
    request: FitRequest, roles: TableRoles, test_share: float, console: Console
) -> Samples:
    """The rows of a single file that have a target, in memory, split at random."""
    grouped = {} if roles.groups is None else {"groups": roles.groups}
    read = [*roles.features, roles.target, *roles.others.values(), *grouped.values()]
    table = read_rows(roles.source, list(dict.fromkeys(read)))
    target = table[roles.target]
    if pa.types.is_floating(target.type):
        target = pc.if_else(pc.is_nan(target), pa.scalar(None, target.type), target)
    if target.null_count == len(target):
        raise CLIError(f"the target {roles.target!r} has no value in any row")
    if target.null_count:
        console.note(f"{target.null_count} of {len(target)} rows have no target and are left out")
    present = pc.is_valid(target)
    table, target = table.filter(present), target.filter(present)
    decision = decide_task(target, roles.target, request.task, request.likelihood)
    y = target_values(target, decision.family)
    others = {
        argument: numbers(table, name, FLAGS[argument]) for argument, name in roles.others.items()
    }

    with _numbered_as(np.flatnonzero(present)):
        _require_valid(request, roles, table, y, others, decision.family)

    if roles.groups is not None:
        others["groups"] = np.array(table[roles.groups].to_pylist(), dtype=object)

    def take(rows: np.ndarray) -> dict[str, Any]:
        chosen = {name: values[rows] for name, values in {"y": y, **others}.items()}
        return {"X": table.select(roles.features).take(pa.array(rows)), **chosen}

    shares = (test_share, request.calibrate_share)
    labels = y if decision.family.link.classes else None
    parts = hold_out(labels, len(y), shares, request.random_state, others.get("groups"))
    train, test, calibrate = (take(part) if len(part) else None for part in parts)
    held_out = np.zeros(len(present), dtype=bool)
    held_out[np.flatnonzero(present)[parts[1]]] = True
    notes = [f"{len(parts[0])} rows to fit"]
    if calibrate:
        notes.append(f"{len(parts[2])} to calibrate intervals")
    if test:
        notes.append(f"{len(parts[1])} held out for evaluation (--test-share 0 fits to all)")
    return Samples(decision, train or {}, ", ".join(notes), calibrate, test, held_out)


def _require_valid(
    request: FitRequest,
    roles: TableRoles,
    table: pa.Table,
    y: np.ndarray,
    others: dict[str, np.ndarray],
    family: Family,
) -> None:
    """Check all rows before the split, so that errors count those of the file, and before the fit."""
    given = {roles.target: pa.array(y), **{roles.others[each]: others[each] for each in others}}
    weight, exposure, trials, offset = map(
        roles.others.get, ("sample_weight", "exposure", "trials", "offset")
    )
    columns = Roles(roles.target, weight, exposure, (), trials, offset)
    read_targets(Chunk(pa.table(given), roles.source.title, 0, 0), columns, family)
    categorical = split_names(request.categorical_features, roles.features, "--categorical")
    for name in without(roles.features, categorical):
        if pa.types.is_floating(table[name].type):
            values = table[name].cast(pa.float64()).to_numpy()
            require_no_infinity(values[:, None], [name])


@contextmanager
def _numbered_as(rows: np.ndarray) -> Iterator[None]:
    """Errors about some of a file's rows, with the numbers that these have in the file."""
    try:
        yield
    except Message as error:
        if error.row is None:
            raise
        raise error.in_row(int(rows[error.row])) from error


def _whole_files(request: FitRequest, roles: TableRoles) -> Samples:
    """All rows of several files, which are read in chunks and need not fit in memory."""
    source, target = roles.source, roles.target
    distinct = _distinct_values(source, target)
    decision = decide_task(distinct, target, request.task, request.likelihood)
    data = request.data if source.dialect is None else CsvFiles(request.data, source.dialect)
    drop = without(source.names, _used(roles))
    files = f"{len(source.paths)} files are" if len(source.paths) > 1 else "1 file is"
    note = f"{files} read in chunks; all rows are used to fit, none are held out"
    given = roles.others if roles.groups is None else {**roles.others, "groups": roles.groups}
    return Samples(decision, {"X": data, "target": target, "drop": drop, **given}, note)


def _used(roles: TableRoles) -> list[str]:
    return [roles.target, *roles.others.values(), *roles.features]


def _n_rows(sample: dict[str, Any] | None) -> int:
    return len(sample["y"]) if sample else 0


def _distinct_values(source: FileSource, name: str) -> pa.ChunkedArray:
    """Distinct values of a column, at most `MANY_VALUES` and one; the fit checks for missing values."""
    kind = _value_type(source.types[name])
    distinct = pa.chunked_array([], kind)
    for chunk in source.each([name]):
        values = chunk.frame[name].drop_null().cast(kind)
        if pa.types.is_floating(kind):
            values = values.filter(pc.invert(pc.is_nan(values)))
        merged = pa.chunked_array([*distinct.chunks, *values.chunks], kind)
        distinct = pa.chunked_array([pc.unique(merged)[: MANY_VALUES + 1]])
    if not len(distinct):
        raise CLIError(f"the target {name!r} has no value in any row")
    return distinct


def _value_type(kind: pa.DataType) -> pa.DataType:
    """A type that holds all numbers of CSV files, or the categories of a dictionary."""
    if pa.types.is_dictionary(kind):
        return _value_type(kind.value_type)
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _find_roles(request: FitRequest, console: Console) -> TableRoles:
    """Open a table and determine the roles of its columns; those without names are left out."""
    source = open_for(None, request.data, request.dialect, console)
    names = [name for name in source.names if name]
    if len(names) < len(source.names):
        console.note(f"{len(source.names) - len(names)} column(s) without a name are left out")
    can_ask = not console.silent and sys.stdin.isatty() and sys.stderr.isatty()
    target, how = find_target(names, request.target, _ask if can_ask else None)
    console.note(f"target: {target!r}, {how}")
    _require_one_family(request)
    arguments = ("sample_weight", "exposure", "trials", "offset")
    given = {argument: getattr(request, argument, None) for argument in arguments}
    others = {
        argument: require_column(name, names, FLAGS[argument])
        for argument, name in given.items()
        if name is not None
    }
    if "exposure" in others and not _family(request).takes_exposure:
        raise UsageError("--exposure is for counts: use --task counts as well")
    drop = split_names(request.drop, names, "--drop")
    features = without(names, [target, *others.values(), *drop])
    if not features:
        raise CLIError(f"{source.title} has no column to predict {target!r} from")
    groups = request.groups and require_column(request.groups, names, FLAGS["groups"])
    roles = TableRoles(source, target, others, features, groups)
    _require_usable(request, roles, console)
    return roles


def _require_usable(request: FitRequest, roles: TableRoles, console: Console) -> None:
    """Reject columns that no model can be fitted to, and report those that may be misread."""
    source, target = roles.source, roles.target
    categorical = split_names(request.categorical_features, roles.features, "--categorical")
    others = without(roles.features, categorical)
    for name in (*roles.features, target):
        if pa.types.is_temporal(source.types[name]):
            raise CLIError(
                f"column {name!r} holds dates or times, and features must be numeric or categorical: leave "
                f"it out with --drop {name!r}, or convert it to a number"
            )
    source.require_numeric(others if _family(request).link.classes else [*others, target])
    for name, cell in _padded(source, others).items():
        console.note(
            f"column {name!r} is read as numeric, but has leading zeros ({cell!r}): if its values are "
            f"codes, use --categorical {name!r}"
        )


def _padded(source: FileSource, names: Sequence[str]) -> dict[str, str]:
    """Integer columns of CSV with leading zeros in the first chunk, and an example of each."""
    integers = [name for name in names if pa.types.is_integer(source.types[name])]
    if source.has_types or not integers:
        return {}
    padded = {}
    for chunk in islice(source.verbatim(integers)[0].each(integers), 1):
        for name in integers:
            cells = chunk.frame[name]
            zeros = cells.filter(pc.match_substring_regex(cells, r"^\s*-?0\d+\s*$"))
            if len(zeros):
                padded[name] = zeros[0].as_py().strip()
    return padded


def _ask(names: Sequence[str]) -> str:
    """Ask the user for the target, by name or number."""
    import typer

    for number, name in enumerate(names, 1):
        print(f"{number:4d}  {printable(name)}", file=sys.stderr)
    answer = str(typer.prompt("Target column (name or number)", err=True)).strip()
    if answer not in names and answer.isdigit() and 1 <= int(answer) <= len(names):
        return names[int(answer) - 1]
    return answer


def _family(request: FitRequest) -> Family:
    """The family of ``--likelihood`` or ``--task``; that of regression by default."""
    if request.likelihood is not None:
        return family_of(request.likelihood.value)
    return TASKS[request.task or "regression"]


def _power(text: str) -> str | float:
    """The value of ``--tweedie-power``, which the library checks."""
    try:
        return float(text)
    except ValueError:
        return text


def _require_one_family(request: FitRequest) -> None:
    """Reject a likelihood that is not one of the task's."""
    if request.likelihood is None or request.task is None:
        return
    task = task_of(request.likelihood.value)
    if task != request.task:
        raise UsageError(
            f"--likelihood {request.likelihood} is for --task {task}, and --task is {request.task}: leave "
            "one of them out"
        )


def _estimator(
    request: FitRequest, decision: Decision, roles: TableRoles, console: Console
) -> Estimator:
    from lanam import LANAMClassifier, LANAMRegressor

    names = roles.features
    family = decision.family
    if request.noise != DEFAULTS.noise and not family.has_noise:
        raise UsageError(f"--noise is for --task regression, and the task is {decision.task}")
    own: dict[str, Any] = read_knowledge(request, names, roles.source.types)
    if family.link.classes:
        own["likelihood"] = decision.likelihood or "categorical"
    else:
        own["likelihood"] = decision.likelihood or family.name
        own["tweedie_power"] = _power(request.tweedie_power)
    if request.noise != DEFAULTS.noise:
        own["noise"] = request.noise.value
    if request.interactions is not None:
        own["interactions"] = read_interactions(request.interactions, names)
    kind = LANAMClassifier if family.link.classes else LANAMRegressor
    make = kind.paper if request.paper else kind
    return make(
        **own,
        max_order=request.max_order,
        max_pairs=request.max_pairs,
        time_budget=request.time_budget,
        max_iter=request.max_iter,
        n_restarts=request.n_restarts,
        random_state=request.random_state,
        memory=request.memory,
        n_jobs=request.n_jobs,
        categorical_features=split_names(request.categorical_features, names, "--categorical")
        or "auto",
        verbose=int(not console.silent),
    )
