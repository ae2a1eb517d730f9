"""``lanam demo``: a newcomer's first minute.

Fits a model to scikit-learn's diabetes data, checks it on held-out patients, draws it and writes a report.
Then lets it find the one pair of columns that interacts in a formula where the answer is known.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lanam.cli.console import Console
from lanam.cli.errors import CLIError
from lanam.cli.explain import draw
from lanam.cli.requests import Demo
from lanam.cli.writing import open_table, require_new

if TYPE_CHECKING:
    from lanam import LANAMRegressor

DATA, MODEL, REPORT = "lanam-demo.csv", "lanam-demo.lanam", "lanam-demo.html"
CURVES, PAIR = "lanam-demo.png", "lanam-demo-pair.png"

TARGET = "progression"
_TITLE = "Diabetes: how far the disease has progressed after a year"


def demo(request: Demo, console: Console) -> None:
    """Fit, check, draw and report a model of real data, and say what to look at."""
    folder = Path(request.folder)
    if not folder.is_dir():
        raise CLIError(f"there is no folder {folder}: make it first")
    for name in (DATA, MODEL, REPORT, CURVES, PAIR):
        require_new(str(folder / name), force=request.force, example=name)
    draws = find_spec("matplotlib") is not None
    model = _show_a_model(folder, draws, console)
    _show_a_pair(folder, draws, console)
    _say_what_next(folder, console)
    console.document({"summary": model.summary().to_dict(), "folder": str(folder)})


def diabetes() -> pa.Table:
    """Ten measurements of 442 patients in their own units, and how far the disease is a year later."""
    from sklearn.datasets import load_diabetes

    # `scaled=False` keeps age in years and the body mass index in kg/m^2, so that curves can be read
    # without a key.
    data = load_diabetes(scaled=False)
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    columns["sex"] = columns["sex"].astype(int)
    return pa.table({**columns, TARGET: data.target})


def _show_a_model(folder: Path, draws: bool, console: Console) -> LANAMRegressor:
    from lanam import LANAMRegressor, coverage_report

    table = diabetes()
    with open_table(str(folder / DATA), table.schema) as writer:
        writer.write_table(table)
    rows = np.random.default_rng(0).permutation(table.num_rows)
    test, train = (table.take(np.sort(part)) for part in np.split(rows, [table.num_rows // 4]))
    X_train, X_test = train.drop_columns(TARGET), test.drop_columns(TARGET)
    y_train, y_test = train[TARGET].to_numpy(), test[TARGET].to_numpy()
    console.tell(
        f"Ten measurements of {table.num_rows} patients: which of them tell how far the disease has "
        f"progressed a year later?\n"
    )
    model = LANAMRegressor(
        categorical_features=["sex"], random_state=0, verbose=int(not console.silent)
    )
    model.fit(X_train, y_train)
    model.set_params(verbose=0)
    model.metadata_ = {"target": TARGET, "task": "regression"}
    model.save(folder / MODEL)
    console.tell(f"\n{model.summary()}\n")
    score = model.score(X_test, y_test)
    console.tell(f"On {len(y_test)} patients the model has not seen, R^2 {score:.3f}:")
    console.tell(coverage_report(model, X_test, y_test))
    model.report(folder / REPORT, X_test, y_test, title=_TITLE)
    if draws:
        from lanam.plot import plot_shapes

        draw(plot_shapes(model.explain_global()), str(folder / CURVES))
        console.tell(f"\nThe curves are in {folder / CURVES}. What to look at:")
        console.tell("  - a panel is one term of the sum: what each value adds to the prediction;")
        console.tell(
            "  - the band is the model's own uncertainty: it widens where patients are few;"
        )
        console.tell("  - what the evidence did not need is switched off, as the summary says.")
    return model


def _show_a_pair(folder: Path, draws: bool, console: Console) -> None:
    """Friedman's first function, of whose 45 pairs of columns one interacts."""
    from sklearn.datasets import make_friedman1

    from lanam import LANAMRegressor

    X, y = make_friedman1(n_samples=500, noise=1.0, random_state=0)
    model = LANAMRegressor(random_state=0).fit(X, y)
    console.tell(
        "\nIn 10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4 + noise, the best of all pairs are"
    )
    console.tell("\n".join(model.interaction_scores_.lines(3)))
    if draws:
        from lanam.plot import plot_interaction

        draw(plot_interaction(model.explain_global(), ("x0", "x1")), str(folder / PAIR))
        console.tell(
            f"\nThe pair is in {folder / PAIR}: what x0 and x1 add together, beyond their own curves."
        )


def _say_what_next(folder: Path, console: Console) -> None:
    model, data = folder / MODEL, folder / DATA
    console.tell(
        f"\nAll of it, and a page on which to play with the model, is in {folder / REPORT}: open it in a "
        "browser.\nThe data and the model are there too. Try:\n"
        f"  lanam explain {model} --term bmi\n"
        f"  lanam explain {model} --row 3 --data {data}\n"
        f"  lanam predict {model} {data} --interval 0.9 -o predictions.csv"
    )
