"""``lanam fit --time --event``: a table of subjects to a survival model in a file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lanam.cli.console import Console
from lanam.cli.deciding import hold_out, read_interactions, require_column, split_names
from lanam.cli.errors import UsageError
from lanam.cli.knowledge import read_knowledge
from lanam.cli.models import dropped_text, numbers, open_for, summary_text, without
from lanam.cli.requests import FLAGS, FitRequest
from lanam.cli.tables import are_files, read_rows, require_new
from lanam.engines.dialects import CsvFiles
from lanam.engines.files import FileSource
from lanam.engines.roles import find_features

if TYPE_CHECKING:
    import pyarrow as pa

    from lanam import LANAMSurvival

#: The default of ``--test-share`` for a single file.
_TEST_SHARE = 0.2

#: Options of other fits.
_OTHERS = ("target", "task", "exposure", "calibrate_share", "groups")


def is_survival(request: FitRequest) -> bool:
    """Whether a survival model is asked for."""
    return any(name is not None for name in (request.time, request.event, request.entry))


def fit_survival(request: FitRequest, console: Console) -> None:
    """Fit a survival model, print its summary, and write it."""
    several = are_files(request.data)
    inputs = () if several else (request.data,)
    place = require_new(request.output, force=request.force, inputs=inputs, example="model.lanam")
    source = open_for(None, request.data, request.dialect, console)
    roles, features = _find_roles(request, source)
    console.note(f"task: survival, because --time is {roles['time']!r}")
    model = _estimator(request, source, features, console)
    score = None
    with console.warnings():
        if several:
            drop = without(source.names, [*roles.values(), *features])
            data = (
                request.data if source.dialect is None else CsvFiles(request.data, source.dialect)
            )
            model.fit(data, **roles, drop=drop, checkpoint=request.checkpoint)
        else:
            train, test = _split(request, source, roles, features, console)
            model.fit(**train, checkpoint=request.checkpoint)
            if test is not None:
                score = model.score(**test)
    model.set_params(verbose=0)
    _describe(model, source, roles, features)
    model.save(place, overwrite=request.force)
    summaries = _summaries(model)
    for summary in summaries.values():
        console.print(summary_text(summary))
    if score is not None:
        console.print(f"\nHarrell's C on held-out rows: {score:.3f}")
    console.note(
        f"\nwritten: {place}. Next: lanam predict {place} NEW.csv -o OUT.csv --times T1,T2"
    )
    console.document(
        {
            "model": str(place),
            **roles,
            "task": "survival",
            "causes": model.causes_.tolist(),
            "summaries": {str(cause): each.to_dict() for cause, each in summaries.items()},
            "held_out": None if score is None else {"harrell_c": score},
            "notes": console.notes,
        }
    )


def _find_roles(request: FitRequest, source: FileSource) -> tuple[dict[str, str], list[str]]:
    """The columns by argument of ``fit``, and the features."""
    for name in _OTHERS:
        if getattr(request, name):
            raise UsageError(
                f"{FLAGS.get(name, '--' + name.replace('_', '-'))} is not for --time and --event"
            )
    if request.time is None or request.event is None:
        raise UsageError(
            "a survival model needs --time, the column of the time of follow-up, and --event, that of "
            "whether it ended with an event"
        )
    given = {name: getattr(request, name) for name in ("event", "time", "entry", "sample_weight")}
    roles = {
        argument: require_column(name, source.names, FLAGS.get(argument, f"--{argument}"))
        for argument, name in given.items()
        if name is not None
    }
    names = [name for name in source.names if name]
    drop = split_names(request.drop, names, "--drop")
    return roles, list(find_features(roles, drop, names, source.title))


def _estimator(
    request: FitRequest, source: FileSource, features: list[str], console: Console
) -> LANAMSurvival:
    from lanam import LANAMSurvival

    categorical = split_names(request.categorical_features, features, "--categorical")
    known = read_knowledge(request, features, source.types)
    asked = "auto" if request.interactions is None else request.interactions
    return LANAMSurvival(
        max_order=request.max_order,
        max_pairs=request.max_pairs,
        time_budget=request.time_budget,
        max_iter=request.max_iter,
        random_state=request.random_state,
        memory=request.memory,
        n_jobs=request.n_jobs,
        interactions=read_interactions(asked, features),
        categorical_features=categorical or "auto",
        verbose=int(not console.silent),
        **known,
    )


def _split(
    request: FitRequest,
    source: FileSource,
    roles: dict[str, str],
    features: list[str],
    console: Console,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Arguments of ``fit``, and of ``score`` on held-out rows."""
    table = read_rows(source, [*features, *roles.values()])
    values = {
        argument: numbers(table, name, FLAGS.get(argument, f"--{argument}"))
        for argument, name in roles.items()
    }
    share = _TEST_SHARE if request.test_share is None else request.test_share
    train, test = hold_out(values["event"], len(table), [share], request.random_state)
    note = f"{len(train)} rows to fit"
    if len(test):
        note += f", {len(test)} held out for evaluation (--test-share 0 fits to all)"
    console.note(f"rows: {note}")

    def take(rows: np.ndarray, arguments: tuple[str, ...]) -> dict[str, Any]:
        chosen = {name: values[name][rows] for name in arguments if name in values}
        return {"X": _taken(table, features, rows), **chosen}

    held_out = take(test, ("event", "time")) if len(test) else None
    return take(train, ("event", "time", "entry", "sample_weight")), held_out


def _taken(table: pa.Table, features: list[str], rows: np.ndarray) -> pa.Table:
    return table.select(features).take(rows)


def _describe(
    model: LANAMSurvival, source: FileSource, roles: dict[str, str], features: list[str]
) -> None:
    """What later commands need to know of the table."""
    # Frames of the model in Python are not of the library that reads files here.
    model._schema = replace(model._schema, backend=None)
    if source.dialect is not None:
        model.dialect_ = source.dialect
    left_out = without(source.names, [roles["event"], *features])
    model.metadata_ = {
        "target": roles["event"],
        "task": "survival",
        "time": roles["time"],
        "dropped": dropped_text(left_out),
    }


def _summaries(model: LANAMSurvival) -> dict[int, Any]:
    """The summary of each cause's hazard."""
    causes = model.causes_.tolist()
    return {cause: model.for_cause(cause).summary() for cause in causes}
