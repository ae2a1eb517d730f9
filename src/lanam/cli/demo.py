"""``lanam demo``: fit, evaluate and explain a model of real data, for newcomers.

Fits scikit-learn's diabetes data, evaluates on held-out patients, plots, and writes a report. A second fit
finds the one interaction of a known function.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lanam.cli.console import Console
from lanam.cli.errors import CLIError
from lanam.cli.explain import save_plot
from lanam.cli.requests import DemoRequest
from lanam.cli.tables import open_writer, require_new

if TYPE_CHECKING:
    from lanam import LANAMRegressor

DATA, MODEL, REPORT = "lanam-demo.csv", "lanam-demo.lanam", "lanam-demo.html"
CURVES, PAIR = "lanam-demo.png", "lanam-demo-pair.png"

TARGET = "progression"
_TITLE = "Diabetes: progression of the disease after one year"


def demo(request: DemoRequest, console: Console) -> None:
    """Fit, evaluate, plot and report a model of real data, and explain what to look at."""
    folder = Path(request.folder)
    if not folder.is_dir():
        raise CLIError(f"there is no folder {folder}: create it first")
    for name in (DATA, MODEL, REPORT, CURVES, PAIR):
        require_new(str(folder / name), force=request.force, example=name)
    plots = find_spec("matplotlib") is not None
    model = _show_model(folder, request.force, plots, console)
    _show_interaction(folder, request.force, plots, console)
    _show_next_steps(folder, console)
    console.document({"summary": model.summary().to_dict(), "folder": str(folder)})


def diabetes() -> pa.Table:
    """Ten measurements of 442 patients in their original units, and the progression a year later."""
    from sklearn.datasets import load_diabetes

    # `scaled=False` keeps age in years and the body mass index in kg/m^2.
    data = load_diabetes(scaled=False)
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    columns["sex"] = columns["sex"].astype(int)
    return pa.table({**columns, TARGET: data.target})


def _show_model(folder: Path, force: bool, plots: bool, console: Console) -> LANAMRegressor:
    from lanam import LANAMRegressor, coverage_report

    table = diabetes()
    with open_writer(str(folder / DATA), table.schema, force=force) as writer:
        writer.write_table(table)
    rows = np.random.default_rng(0).permutation(table.num_rows)
    test, train = (table.take(np.sort(part)) for part in np.split(rows, [table.num_rows // 4]))
    X_train, X_test = train.drop_columns(TARGET), test.drop_columns(TARGET)
    y_train, y_test = train[TARGET].to_numpy(), test[TARGET].to_numpy()
    console.print(
        f"Diabetes: which of ten measurements of {table.num_rows} patients predict the progression of the "
        "disease a year later?\n"
    )
    model = LANAMRegressor(
        categorical_features=["sex"], random_state=0, verbose=int(not console.silent)
    )
    model.fit(X_train, y_train)
    model.set_params(verbose=0)
    model.metadata_ = {"target": TARGET, "task": "regression"}
    model.save(folder / MODEL, overwrite=force)
    console.print(f"\n{model.summary()}\n")
    score = model.score(X_test, y_test)
    console.print(f"On {len(y_test)} held-out patients, R^2 {score:.3f}:")
    console.print(coverage_report(model, X_test, y_test))
    model.report(folder / REPORT, X_test, y_test, title=_TITLE, overwrite=force)
    if plots:
        from lanam.plot import plot_shapes

        save_plot(plot_shapes(model.explain_global()), str(folder / CURVES), force=force)
        console.print(
            f"\nThe shape functions are in {folder / CURVES}. How to read them:\n"
            "  - a panel shows one term: the contribution of each value to the prediction;\n"
            "  - the 95% credible band is wider where there are fewer patients;\n"
            "  - terms that the data do not support are dropped, as the summary shows."
        )
    return model


def _show_interaction(folder: Path, force: bool, plots: bool, console: Console) -> None:
    """Friedman's first function, with one interaction among 45 pairs of columns."""
    from sklearn.datasets import make_friedman1

    from lanam import LANAMRegressor

    X, y = make_friedman1(n_samples=500, noise=1.0, random_state=0)
    model = LANAMRegressor(random_state=0).fit(X, y)
    console.print(
        "\nInteractions in 10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4 + noise, the best first:"
    )
    console.print("\n".join(model.interaction_scores_.lines(3)))
    if plots:
        from lanam.plot import plot_interaction

        plot = plot_interaction(model.explain_global(), ("x0", "x1"))
        save_plot(plot, str(folder / PAIR), force=force)
        console.print(
            f"\nThe interaction is in {folder / PAIR}: the joint contribution of x0 and x1 beyond their "
            "main effects."
        )


def _show_next_steps(folder: Path, console: Console) -> None:
    model, data = folder / MODEL, folder / DATA
    console.print(
        f"\nThe report is {folder / REPORT}: open it in a browser.\nNext, try:\n"
        f"  lanam explain {model} --term bmi\n"
        f"  lanam explain {model} --row 3 --data {data}\n"
        f"  lanam predict {model} {data} --interval 0.9 -o predictions.csv"
    )
