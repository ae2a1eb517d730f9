"""Uses a model in every way that a user could, and says what is wrong with the answers."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd

from lanam.data import CATEGORICAL
from lanam.report.material import gather
from lanam.report.page import page_data
from lanam.storage import from_bytes, of_estimator, to_bytes

#: Below is rounding: ends of an interval that are both, say, 1e150.
_ROUNDING = 1e-9


class WrongAnswerError(Exception):
    """An answer that no model should give."""


@contextmanager
def strict():
    """Numpy's warnings are errors, and all others are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def rows_for(model, n_random=8, seed=0):
    """Rows of a model's columns: ends, middle, typical, missing, unseen and extreme values."""
    rng = np.random.default_rng(seed)
    cells = [_cells(column, rng, n_random) for column in model._schema.columns]
    # Every kind of value beside every other one, and rows in which all columns are alike.
    n_rows = max(map(len, cells))
    columns = [[column[k % len(column)] for k in range(n_rows)] for column in cells]
    shuffled = [[column[k] for k in rng.permutation(n_rows)] for column in columns]
    both = [first + second for first, second in zip(columns, shuffled, strict=True)]
    if not hasattr(model, "feature_names_in_"):
        return np.column_stack([np.array(column, dtype=object) for column in both])
    names = [column.name for column in model._schema.columns]
    return pd.DataFrame(
        {name: pd.Series(column, dtype=object) for name, column in zip(names, both, strict=True)}
    )


def _cells(column, rng, n_random):
    if column.kind == CATEGORICAL:
        seen = list(column.levels[:20])
        text = not seen or isinstance(seen[0], str)
        return [*seen, None, "never seen" if text else type(seen[0])(1)]
    low, high = (0.0 if np.isnan(end) else end for end in (column.lowest, column.highest))
    with np.errstate(all="ignore"):
        inside = low + (high - low) * rng.random(n_random)
    ends = [low, high, 0.0, 1.0, -1e300, 1e300, 1e-300, np.nan]
    return [*ends, *np.where(np.isfinite(inside), inside, low).tolist()]


def require_finite(what, *numbers):
    """Refuse anything but finite numbers."""
    for number in numbers:
        array = np.asarray(number, dtype=np.float64)
        if not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)]
            raise WrongAnswerError(f"{what}: {len(wrong)} of {array.size} are {wrong[0]}")


def require_ordered(what, interval):
    """Refuse intervals that are not finite, or whose ends are exchanged."""
    require_finite(what, interval)
    lower, upper = interval[..., 0], interval[..., 1]
    slack = _ROUNDING * np.maximum(np.abs(lower), np.abs(upper))
    if (lower > upper + slack).any():
        raise WrongAnswerError(f"{what}: a lower end above the upper one")


def require_positive(what, std):
    """Refuse standard deviations that are not finite, or negative."""
    require_finite(what, std)
    if (np.asarray(std) < 0.0).any():
        raise WrongAnswerError(f"{what}: a negative one")


def predict_curves(model, X):
    """Survival and incidences with their intervals, and what follows from them."""
    survival, interval = model.predict_survival_function(X, return_interval=True)
    require_ordered("survival", np.stack([np.zeros_like(survival), survival], -1))
    require_ordered("survival", np.stack([survival, np.ones_like(survival)], -1))
    require_ordered("intervals of survival", interval)
    total = sum(model.predict_cumulative_incidence(X, cause) for cause in model.causes_)
    if np.abs(total - (1.0 - survival)).max() > 1e-6:
        raise WrongAnswerError("incidences do not sum to one minus survival")
    require_finite("risks", model.predict(X))
    require_positive("restricted means", model.predict_rmst(X))
    if np.isnan(model.predict_quantile(X, 0.5)).any():
        raise WrongAnswerError("a quantile is nan")


def predict(model, X):
    """Predictions with their uncertainties."""
    if hasattr(model, "causes_"):
        predict_curves(model, X)
        model = model.for_cause(model.causes_[0])
    elif hasattr(model, "classes_"):
        proba = model.predict_proba(X)
        require_ordered("probabilities", np.stack([np.zeros_like(proba), proba], -1))
        if np.abs(proba.sum(axis=1) - 1.0).max() > 1e-6:
            raise WrongAnswerError("probabilities do not sum to one")
        assert np.isin(model.predict(X), model.classes_).all()
        require_ordered("credible intervals", model.predict_interval(X, n_samples=50))
        if hasattr(model, "calibration_"):
            _if_enough(lambda: model.predict_set(X, 0.5))
    else:
        exposure = {"exposure": 2.0} if model.family_.takes_exposure else {}
        exposure |= {"trials": 5.0} if model.family_.takes_trials else {}
        mean, std = model.predict(X, return_std=True, **exposure)
        require_finite("predictions", mean)
        require_positive("standard deviations", std)
        for kind in ("response", "mean"):
            ends = _if_enough(lambda kind=kind: model.predict_interval(X, 0.5, kind, **exposure))
            require_ordered(f"intervals of the {kind}", ends)
        require_ordered("quantiles", model.predict_quantile(X, (0.1, 0.9), **exposure))
    mean, std = model.predict_terms(X, return_std=True)
    require_finite("contributions", mean)
    require_positive("standard deviations of contributions", std)


def _if_enough(intervals):
    """Intervals, unless there are too few rows for their calibration, which is said."""
    try:
        return intervals()
    except ValueError as error:
        if "held-out rows" not in str(error):
            raise
        return np.zeros((1, 2))


def explain(model, X):
    """Explanations, of all rows together and of each."""
    if hasattr(model, "causes_"):
        model = model.for_cause(model.causes_[0])
    whole = model.explain_global()
    for term in whole:
        require_finite(f"the function of {term.name!r}", term.mean)
        require_positive(f"the standard deviation of {term.name!r}", term.std)
    whole.to_frame()
    local = model.explain_local(X)
    require_finite("local explanations", local.contributions)
    require_ordered("intervals of contributions", local.contribution_interval())
    if not model.family_.link.several:
        require_ordered("intervals of the response", local.response_interval())
    local.to_frame()
    if getattr(model, "noise_terms_", None):
        require_positive("noise", model.predict_noise(X))
    for text in (str(model.summary()), repr(model), repr(model.interaction_scores_)):
        require_printable(text)


def require_printable(text):
    """Refuse characters that a terminal obeys."""
    bad = [letter for letter in text if not letter.isprintable() and letter not in "\n\t"]
    if bad:
        raise WrongAnswerError(f"{bad[0]!r} is printed")


#: Why a model that works has no SQL.
_NOT_IN_SQL = ("databases have at most", "cannot be written in SQL: use larger units")


def write(model):
    """Everything that is written: exports, the page of the report, the file itself."""
    from_bytes(to_bytes(of_estimator(model)))
    if hasattr(model, "causes_"):
        model = model.for_cause(model.causes_[0])
    for to in ("json", "csv"):
        model.export(None, to=to)
    try:
        model.export(None, to="sql")
    except ValueError as error:
        if not any(reason in str(error) for reason in _NOT_IN_SQL):
            raise
    size = np.size(model._model.intercept)
    normals = np.random.default_rng(0).standard_normal((10, size)) if size > 1 else None
    portable = model._portable
    more = {
        "title": None,
        "coverage": 0.95,
        "report": None,
        "rows": None,
        "noise": None,
        "part": "",
    }
    page_data(gather(model, portable=portable, schema=model._schema, normals=normals, **more))


def use(model, X=None, *, thorough=True):
    """Use a model in every way; `WrongAnswerError`, or whatever error there is."""
    X = rows_for(model) if X is None else X
    with strict():
        predict(model, X)
        if thorough:
            explain(model, X)
            write(model)
