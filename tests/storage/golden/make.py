"""Makes the golden files of the current version of the format; those of earlier ones are left alone.

Run it once for a new version, from the repository's root: ``python -m tests.storage.golden.make``.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.model.scoring import link_moments
from lanam.storage.container import VERSION

FOLDER = Path(__file__).parent


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
    mean, variance = link_moments(model._model, model._columns(frame))
    result = {"link mean": mean, "link variance": variance}
    result["terms"] = model.predict_terms(frame)
    if isinstance(model, LANAMRegressor):
        result["interval"] = model.predict_interval(frame, 0.9)
    else:
        result["probability"] = model.predict_proba(frame)
    return {name: np.asarray(value).tolist() for name, value in result.items()}


if __name__ == "__main__":
    for name, model in models():
        model.save(FOLDER / f"{name}-{VERSION}.lanam")
        text = json.dumps({"rows": rows(), "answers": answers(model)}, indent=1)
        (FOLDER / f"{name}-{VERSION}.json").write_text(text + "\n", encoding="utf-8")
