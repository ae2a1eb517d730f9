"""Nothing from a table or a file reaches a terminal with characters that it obeys."""

import warnings

import numpy as np
import pandas as pd
import pytest

import lanam
from lanam import LANAMClassifier, LANAMRegressor
from lanam.metrics import coverage_report
from lanam.text import printable, visible

ESCAPE, BIDI = "\x1b[31m", "\u202e"
NAMES = [f"a{ESCAPE}", f"b{BIDI}", "c\x9b2J\u2066"]
SMALL = {"interactions": 1, "random_state": 0, "max_knots": 16}


def table(n=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({NAMES[0]: rng.normal(size=n), NAMES[1]: rng.normal(size=n)})
    X[NAMES[2]] = rng.choice([f"x{ESCAPE}", f"y{BIDI}", "z\u2028"], n)
    f = X[NAMES[0]] * X[NAMES[1]] + (X[NAMES[2]] == f"x{ESCAPE}")
    return X, f + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def regressor():
    X, y = table()
    model = LANAMRegressor(noise="constant", **SMALL).fit(X, y)
    return model.edit_term(NAMES[0], "clamp", high=1.0, reason=f"because{ESCAPE}")


@pytest.fixture(scope="module")
def classifier():
    X, y = table()
    labels = np.array([f"low{ESCAPE}", f"mid{BIDI}", "high\x9b"])[np.digitize(y, [-0.2, 0.6])]
    return LANAMClassifier(**SMALL).fit(X, labels), labels


def require_harmless(*texts):
    for text in texts:
        found = [letter for letter in str(text) if not letter.isprintable() and letter != "\n"]
        assert not found, (found, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("red \x1b[31m", r"red \x1b[31m"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\u200e\u061c\ufeff", r"\u200e\u061c\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\udb40\udc41"),
        ("naïve 日本 می\u200cخواهم 👩\u200d🔬", "naïve 日本 می\u200cخواهم 👩\u200d🔬"),
    ],
)
def test_visible(text, shown):
    assert visible(text) == shown
    assert printable(f"{text}\n") == f"{shown}\n"


def test_prints(regressor):
    X, y = table()
    report = coverage_report(regressor, X, y)
    whole, local = regressor.explain_global(), regressor.explain_local(X[:3])
    difference = whole.difference(NAMES[2], f"x{ESCAPE}", f"y{BIDI}")
    require_harmless(regressor.summary(), report, regressor.interaction_scores_, difference)
    objects = (regressor, regressor.summary(), whole, local, whole[NAMES[2]], difference, report)
    require_harmless(*map(repr, objects), *map(str, objects))
    require_harmless(*map(repr, regressor.terms_))


def test_prints_of_classes(classifier):
    model, labels = classifier
    X, _ = table()
    whole = model.explain_global()
    texts = (model.summary(), coverage_report(model, X, labels), whole, model.explain_local(X[:2]))
    require_harmless(*texts, *map(repr, texts))
    require_harmless(whole.difference(NAMES[2], f"x{ESCAPE}", f"y{BIDI}"))


def test_errors_and_warnings(regressor, classifier):
    X, y = table()
    calls = [
        lambda: regressor.predict(X.drop(columns=NAMES[0])),
        lambda: regressor.predict(X.assign(**{NAMES[0]: f"word{ESCAPE}"})),
        lambda: regressor.explain_global()[f"d{ESCAPE}"],
        lambda: regressor.explain_global().difference(f"q{ESCAPE}", 0.0, 1.0),
        lambda: regressor.edit_term(f"d{ESCAPE}", "zero"),
        lambda: LANAMRegressor(interactions=[(NAMES[0], f"d{BIDI}")]).fit(X, y),
        lambda: LANAMRegressor().fit(X, [f"word{ESCAPE}"] * len(X)),
        lambda: LANAMRegressor(categorical_features=[f"d{ESCAPE}"]).fit(X, y),
        lambda: LANAMClassifier().fit(X, [f"only{ESCAPE}"] * len(X)),
        lambda: classifier[0].log_likelihood(X, [f"other{ESCAPE}"] * len(X)),
    ]
    for k, call in enumerate(calls):
        with pytest.raises((ValueError, KeyError, TypeError)) as caught:
            pytest.fail(f"call {k} is no error: {call()}")
        require_harmless(caught.value)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        regressor.predict(X.assign(**{NAMES[2]: f"new{ESCAPE}", f"more{BIDI}": 1.0}))
    assert found
    require_harmless(*(warning.message for warning in found))


def test_a_file(regressor, tmp_path):
    regressor.metadata_ = {f"key{ESCAPE}": f"value{BIDI}"}
    model = lanam.load(regressor.save(tmp_path / "model.lanam"))
    require_harmless(model.summary(), repr(model))


def test_half_a_surrogate_pair_is_escaped_where_it_cannot_be_written(tmp_path):
    X = np.array([["a\ud800", "b"][k % 2] for k in range(80)], dtype=object)[:, None]
    model = LANAMRegressor(noise="constant", random_state=0).fit(X, np.arange(80) % 2 + 0.0)
    model = lanam.load(model.save(tmp_path / "model.lanam"))
    np.testing.assert_allclose(model.predict(X[:2]), [0.0, 1.0], atol=0.1)
    frame = model.explain_global().to_frame()
    strings = frame["level"].dtype != object  # pandas 2 has objects, which may have halves
    assert frame["level"].tolist()[0] == ("a\\ud800" if strings else "a\ud800")
    assert "a\\ud800" in model.export(tmp_path / "table.csv", to="csv").read_text("utf-8")
