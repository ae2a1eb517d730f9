"""Makes the golden files of the current version of the format; those of earlier ones are left alone.

Files of the kinds of models are here, those of the response families in ``families``. Run it once for a new
version, from the repository's root: ``python -m tests.storage.golden.make``.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival
from lanam.core.model.scoring import link_moments
from lanam.storage.container import VERSION

FOLDER = Path(__file__).parent
FAMILIES = FOLDER / "families"


def table():
    """Numbers with gaps and levels with gaps, and what they say."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 300)).round(2)
    color = rng.choice(["red", "grün", "blue"], 300)
    f = np.sin(2.0 * x) + 0.7 * (color == "red") + 0.5 * x * z
    x[rng.random(300) < 0.1] = np.nan
    frame = pd.DataFrame({"x": x, "z": z, "color": color, "same": 1.0})
    frame.loc[::17, "color"] = None
    return frame, f, rng


def models():
    """A calibrated regressor with a pair, an edit and noise that differs and is skewed; a classifier."""
    frame, f, rng = table()
    small = {"max_knots": 16}
    y = f + 0.2 * np.exp(frame["z"]) * (rng.exponential(size=300) - 1.0)
    regressor = LANAMRegressor(interactions=[("x", "z")], **small).fit(frame[:250], y[:250])
    assert any(term.active for term in regressor.noise_terms_)
    assert regressor.noise_shape_.skewness > 0.5
    regressor = regressor.edit_term("x", "clamp", high=1.5, reason="nobody is larger")
    yield "regressor", regressor.calibrate(frame[250:], y[250:])
    labels = np.array(["low", "mid", "high"])[np.digitize(f, [-0.5, 0.5])]
    yield "classifier", LANAMClassifier(interactions=0, **small).fit(frame, labels)


def family_models():
    """A small model of every family that the models above have not, by name."""
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, 120)).round(2)
    color = rng.choice(["red", "grün", "blue"], 120)
    frame = pd.DataFrame({"x": x, "z": z, "color": color, "same": 1.0})
    f = 0.8 * x + 0.5 * (color == "red")
    mean = np.exp(f)
    targets = {
        "lognormal": np.exp(f + 0.3 * rng.normal(size=120)),
        "student": f + 0.3 * rng.standard_t(4.0, 120),
        "gamma": mean * rng.gamma(3.0, size=120) / 3.0,
        "tweedie": np.where(rng.random(120) < 0.3, 0.0, mean * rng.gamma(2.0, size=120)),
        "poisson": rng.poisson(3.0 * mean),
        "negative_binomial": rng.poisson(3.0 * mean * rng.gamma(2.0, size=120)),
    }
    small = {"interactions": 0, "max_knots": 16}
    for name, y in targets.items():
        yield name, LANAMRegressor(likelihood=name, **small).fit(frame, y)
    successes = rng.binomial(9, 1.0 / (1.0 + np.exp(-f)))
    binomial = LANAMRegressor(likelihood="binomial", **small)
    yield "binomial", binomial.fit(frame, successes, trials=9)
    yield "bernoulli", LANAMClassifier(**small).fit(frame, f + rng.logistic(size=120) > 0.0)
    grades = np.digitize(f + rng.logistic(size=120), [-0.5, 1.0])
    yield "ordinal", LANAMClassifier(likelihood="ordinal", **small).fit(frame, grades)
    time = rng.exponential(np.exp(-f)).round(3) + 0.001
    event = np.where(time < 2.0, rng.integers(1, 3, 120), 0)
    survival = LANAMSurvival(time_interactions=["x"], **small)
    yield "survival", survival.fit(frame, event=event, time=np.minimum(time, 2.0))


def rows():
    """Rows to score: seen and new levels, gaps, far-off values; as lists, for JSON."""
    return {
        "x": [0.0, 1.25, None, -40.0, 0.3],
        "z": [0.5, None, -0.7, 2.0, 99.0],
        "color": ["red", "grün", None, "never seen", "blue"],
        "same": [1.0, 1.0, None, 2.0, 1.0],
    }


def answers(model):
    """Predictions of the rows, as lists."""
    frame = pd.DataFrame(rows())
    if isinstance(model, LANAMSurvival):
        return {name: np.asarray(each).tolist() for name, each in survival_answers(model, frame)}
    mean, variance = link_moments(model._model, model._columns(frame))
    result = {"link mean": mean, "link variance": variance}
    result["terms"] = model.predict_terms(frame)
    if isinstance(model, LANAMRegressor):
        result["interval"] = model.predict_interval(frame, 0.9)
    else:
        result["probability"] = model.predict_proba(frame)
    return {name: np.asarray(value).tolist() for name, value in result.items()}


def survival_answers(model, frame):
    """Curves of all causes, with their intervals."""
    times = [0.1, 0.5, 1.5]
    yield "survival", model.predict_survival_function(frame, times)
    yield from (
        (f"{name} of cause {cause}", each)
        for cause in model.causes_
        for name, each in zip(
            ("incidence", "interval"),
            model.predict_cumulative_incidence(frame, cause, times, return_interval=True),
            strict=True,
        )
    )


def write(folder, found):
    """The files and answers of some models."""
    for name, model in found:
        model.save(folder / f"{name}-{VERSION}.lanam")
        text = json.dumps({"rows": rows(), "answers": answers(model)}, indent=1)
        (folder / f"{name}-{VERSION}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER, models())
    write(FAMILIES, family_models())
