"""Survival: LANAMSurvival beside Cox models and a random survival forest (scikit-survival).

    python -m benchmarks.survival --data DIR

Parts: ``quality`` (discrimination, Brier score and calibration of five folds), ``external`` (developed on
Rotterdam, validated on GBSG), ``coverage`` (of 95% bands, in simulations) and ``scale`` (many subjects).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import Row, make_parser, read_options

PARTS = ("quality", "external", "coverage", "scale")
MODELS = ("lanam", "cox", "cox-splines", "forest")
_SEEDS, _SUBJECTS = 50, 1000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts and write their tables."""
    parser = make_parser("survival", __doc__, PARTS)
    parser.add_argument("--seeds", type=int, default=_SEEDS, help="of each simulation")
    parser.add_argument("--scale-subjects", type=int, default=1_000_000)
    options = read_options(parser, arguments, PARTS, ("quality", "external"))
    import pandas as pd

    runs: dict[str, Callable[[Any], list[Row]]] = {
        "quality": _quality,
        "external": _external,
        "coverage": _coverage,
        "scale": _scale,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        if not options.tables_only:
            rows = pd.DataFrame(runs[part](options))
            rows.to_csv(options.out / f"{part}.csv", index=False)
    report = _report(options.out)
    print(report)
    if options.page:
        options.page.write_text(report)


# --- models --------------------------------------------------------------------------------------


def _columns(X: Any, splines: bool) -> Any:
    """Categories one-hot, missing values the median and an indicator; numbers standardised, or splines."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

    numbers = [SimpleImputer(strategy="median", add_indicator=not splines)]
    if splines:
        numbers.append(SplineTransformer(n_knots=4, degree=3, knots="quantile", include_bias=False))
    return make_column_transformer(
        (make_pipeline(*numbers, StandardScaler()), make_column_selector(dtype_include="number")),
        (
            make_pipeline(
                SimpleImputer(strategy="constant", fill_value="missing"),
                OneHotEncoder(handle_unknown="ignore", min_frequency=5),
            ),
            make_column_selector(dtype_exclude="number"),
        ),
        sparse_threshold=0.0,
    )


def _peer(name: str) -> Any:
    from sklearn.pipeline import make_pipeline
    from sksurv.ensemble import RandomSurvivalForest
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    if name == "forest":
        last: Any = RandomSurvivalForest(300, min_samples_leaf=15, random_state=0, n_jobs=1)
    else:
        # Some shrinkage, without which rare categories and splines of small data diverge.
        last = CoxPHSurvivalAnalysis(alpha=1.0 if name == "cox" else 10.0)
    return make_pipeline(_columns(None, name == "cox-splines"), last)


class _Fitted:
    """A model of all events, with its risk scores and survival curves."""

    def __init__(self, name: str, train: Any) -> None:
        from lanam import LANAMSurvival

        began = time.perf_counter()
        event = train.event > 0
        if name == "lanam":
            self._model: Any = LANAMSurvival(random_state=0)
            self._model.fit(train.X, event=event, time=train.time)
        else:
            from sksurv.util import Surv

            self._model = _peer(name).fit(train.X, Surv.from_arrays(event, train.time))
        self.seconds, self._name = time.perf_counter() - began, name

    def risk(self, X: Any) -> Any:
        """Risk scores."""
        return self._model.predict(X)

    def survival(self, X: Any, times: Any) -> Any:
        """Survival (n, T)."""
        import numpy as np

        if self._name == "lanam":
            return self._model.predict_survival_function(X, times)
        curves = self._model.predict_survival_function(X)
        first, last = curves[0].domain
        return np.stack([np.atleast_1d(curve(np.clip(times, first, last))) for curve in curves])

    def survival_at(self, X: Any, own: Any) -> Any:
        """Survival of each row at its own time."""
        import numpy as np

        if self._name == "lanam":
            own = np.minimum(own, self._model.unique_times_[-1])
            times, places = np.unique(own, return_inverse=True)
            return self.survival(X, times)[np.arange(len(X)), places]
        curves = self._model.predict_survival_function(X)
        first, last = curves[0].domain
        at = zip(curves, np.clip(own, first, last), strict=True)
        return np.array([float(curve(when)) for curve, when in at])


# --- discrimination, Brier score, calibration -----------------------------------------------------


def _scores(name: str, train: Any, test: Any) -> Row:
    import numpy as np

    from lanam.metrics import harrell_c, integrated_brier_score, time_dependent_auc, uno_c

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _Fitted(name, train)
        censoring = train.event > 0, train.time
        events, ends = test.event > 0, test.time
        times = np.quantile(train.time[train.event > 0], np.linspace(0.1, 0.8, 30))
        times = np.unique(times[(times < ends.max()) & (times > ends.min())])
        risk = model.risk(test.X)
        curves = model.survival(test.X, times)
        own = model.survival_at(test.X, ends)
    tau = float(np.quantile(train.time, 0.9))
    return {
        "model": name,
        "seconds": model.seconds,
        "harrell": harrell_c(events, ends, risk),
        "uno": uno_c(events, ends, risk, censoring=censoring, tau=tau),
        "auc": float(
            np.nanmean(time_dependent_auc(events, ends, 1.0 - curves, times, censoring=censoring))
        ),
        "ibs": integrated_brier_score(events, ends, curves, times, censoring=censoring),
        "own": " ".join(f"{value:.4f}" for value in own),
        "events": " ".join(map(str, events.astype(int))),
    }


def _quality(options: Any) -> list[Row]:
    from sklearn.model_selection import KFold

    from benchmarks.data.survival import SETS, load
    from benchmarks.environment import say

    rows: list[Row] = []
    for name in options.sets or SETS:
        cohort = load(name, options.data)
        folds = KFold(5, shuffle=True, random_state=0).split(cohort.X)
        for fold, (train, test) in enumerate(folds):
            if fold >= options.folds:
                break
            for model in options.models or MODELS:
                row = _scores(model, cohort.part(train), cohort.part(test))
                rows.append({"set": name, "fold": fold, **row})
                say(f"{name} {fold} {model}: {row['seconds']:.1f} s, C {row['uno']:.3f}")
    return rows


def _external(options: Any) -> list[Row]:
    from benchmarks.data.survival import SHARED, load

    train, test = load("rotterdam", options.data), load("gbsg", options.data)
    train.X.drop(columns=[c for c in train.X if c not in SHARED], inplace=True)
    # Grade 1 is rare in Rotterdam's coding, which has 2 and 3 only.
    test.X["grade"] = test.X["grade"].clip(lower=2)
    shared = [column for column in SHARED if column in train.X]
    train, test = (type(c)(c.X[shared], c.event, c.time) for c in (train, test))
    return [_scores(model, train, test) for model in options.models or MODELS]


# --- bands, and many subjects ----------------------------------------------------------------------


def _coverage(options: Any) -> list[Row]:
    import numpy as np

    from benchmarks.data.survival import SIMULATIONS
    from benchmarks.environment import say
    from lanam import LANAMSurvival

    rows: list[Row] = []
    X = np.random.default_rng(99).uniform(-1.0, 1.0, size=(200, 4))
    for simulation in SIMULATIONS:
        for seed in range(options.seeds):
            drawn = simulation.draw(_SUBJECTS, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = LANAMSurvival(random_state=0)
                model.fit(drawn.X.to_numpy(), event=drawn.event, time=drawn.time)
            at = float(np.median(drawn.time[drawn.event > 0]))
            truth = simulation.incidence(X, at)
            _, interval = model.predict_survival_function(X, at, return_interval=True)
            left = 1.0 - truth.sum(axis=1)
            row = {"simulation": simulation.name, "seed": seed, "survival": _inside(interval, left)}
            for k, cause in enumerate(model.causes_ if len(model.causes_) > 1 else ()):
                _, interval = model.predict_cumulative_incidence(X, cause, at, return_interval=True)
                row[f"incidence {cause}"] = _inside(interval, truth[:, k])
            rows.append(row)
        say(f"{simulation.name}: {np.mean([r['survival'] for r in rows[-options.seeds :]]):.3f}")
    return rows


def _inside(interval: Any, truth: Any) -> float:
    low, high = interval[:, 0].T
    return float(((low <= truth) & (truth <= high)).mean())


def _scale(options: Any) -> list[Row]:
    import resource

    import numpy as np

    from lanam import LANAMSurvival

    rng, n = np.random.default_rng(0), options.scale_subjects
    X = rng.normal(size=(n, 10))
    hazard = np.exp(X[:, 0] + np.sin(2.0 * X[:, 1]))
    died, censored = rng.exponential(1.0 / hazard), rng.uniform(0.2, 3.0, n)
    rows = []
    for name, pairs in (("curves", 0), ("curves and all interactions", "auto")):
        began = time.perf_counter()
        model = LANAMSurvival(
            interactions=pairs, time_interactions=pairs, random_state=0, n_jobs=options.threads
        )
        model.fit(X, event=died < censored, time=np.minimum(died, censored))
        seconds = time.perf_counter() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        rows.append({"fit": name, "subjects": n, "seconds": seconds, "peak GB": memory})
    return rows


# --- tables ----------------------------------------------------------------------------------------


def _report(folder: Path) -> str:
    import pandas as pd

    makers = {
        "quality": _quality_tables,
        "external": _external_table,
        "coverage": _coverage_table,
        "scale": _scale_table,
    }
    files = ((folder / f"{part}.csv", make) for part, make in makers.items())
    return "\n".join(make(pd.read_csv(file)) for file, make in files if file.exists())


def _p_value(rows: Any) -> float:
    """Of D-calibration, of all rows of all folds."""
    import numpy as np

    from lanam.metrics import d_calibration

    own, events = (
        np.concatenate([np.array(cell.split(), dtype=float) for cell in rows[column]])
        for column in ("own", "events")
    )
    return d_calibration(events.astype(bool), own).p_value


def _quality_tables(rows: Any) -> str:
    from benchmarks.markdown import markdown, number, plus_minus

    models = [model for model in MODELS if model in set(rows["model"])]
    parts = []
    titles = {
        "uno": "Uno's C (higher is better)",
        "ibs": "Integrated Brier score (lower is better)",
        "seconds": "Seconds of a fit",
    }
    for column, title in titles.items():
        cells = [
            [name]
            + [
                plus_minus(of_set[of_set["model"] == m][column], 1 if column == "seconds" else 3)
                for m in models
            ]
            for name, of_set in rows.groupby("set", sort=False)
        ]
        parts.append(markdown(["set", *models], cells, title))
    cells = [
        [name] + [number(_p_value(of_set[of_set["model"] == m])) for m in models]
        for name, of_set in rows.groupby("set", sort=False)
    ]
    parts.append(markdown(["set", *models], cells, "D-calibration, p-value of all folds"))
    return "\n".join(parts)


def _external_table(rows: Any) -> str:
    from benchmarks.markdown import markdown, number

    cells = [
        [
            row.model,
            number(row.uno),
            number(row.auc),
            number(row.ibs),
            number(_p_value(rows[rows.model == row.model])),
        ]
        for row in rows.itertuples()
    ]
    header = ["model", "Uno's C", "mean AUC", "integrated Brier", "D-calibration p"]
    return markdown(header, cells, "Developed on Rotterdam, validated on GBSG")


def _coverage_table(rows: Any) -> str:
    from benchmarks.markdown import markdown, plus_minus

    columns = [c for c in rows if c not in ("simulation", "seed")]
    cells = [
        [name, *(plus_minus(own[c]) if own[c].notna().any() else "" for c in columns)]
        for name, own in rows.groupby("simulation", sort=False)
    ]
    return markdown(["simulation", *columns], cells, "Coverage of 95% bands at the median time")


def _scale_table(rows: Any) -> str:
    from benchmarks.markdown import markdown, number

    cells = [
        [row["fit"], f"{row['subjects']:,}", number(row["seconds"], 0), number(row["peak GB"], 1)]
        for _, row in rows.iterrows()
    ]
    return markdown(["fit", "subjects", "seconds", "peak GB"], cells, "Many subjects")


if __name__ == "__main__":
    main()
