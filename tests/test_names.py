"""A column named as an interaction is: every term can be told from the others by its name."""

import json

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor
from lanam.cli import main
from lanam.plot import plot_interaction, plot_shapes
from lanam.text import term_name

PAIR = "a x b (interaction)"


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (150, 3)), columns=["a", "b", "a x b"])
    y = 3 * X["a"] * X["b"] + X["a x b"] ** 2 + X["a"] + 0.1 * rng.normal(size=150)
    model = LANAMRegressor(interactions=[("a", "b")], noise="constant", random_state=0)
    return model.fit(X, y), X, y


def test_names_of_terms_are_unique(fitted):
    model, _, _ = fitted
    assert [term.name for term in model.terms_] == ["a", "b", "a x b", PAIR]
    assert model.get_feature_names_out().tolist() == ["a", "b", "a x b", PAIR]
    assert model.interaction_scores_[0]["pair"] == PAIR
    assert {row["pair"] for row in model.interaction_scores_} == {
        PAIR,
        "a x 'a x b'",
        "b x 'a x b'",
    }


def test_lookups(fitted):
    model, X, _ = fitted
    explanation = model.explain_global()
    assert explanation["a x b"].features == (2,)
    assert explanation[PAIR].features == explanation["b", "a"].features == (0, 1)
    mean, _ = explanation.evaluate(PAIR, X["a"], X["b"])
    contributions = model.predict_terms(X)
    np.testing.assert_allclose(mean, contributions[:, 3], atol=1e-12)
    assert explanation.evaluate("a x b", [0.5])[0].shape == (1,)


def test_edits(fitted):
    model, _, _ = fitted
    assert model.edit_term("a x b", "zero").edits_[0]["terms"] == ["a x b"]
    for name in (PAIR, ("a", "b")):
        assert model.edit_term(name, "zero").edits_[0]["terms"] == [PAIR]


def test_summary_frames_and_plots(fitted):
    model, X, _ = fitted
    lines = str(model.summary()).splitlines()
    assert sum(line.startswith(f"{PAIR} ") for line in lines) == 1
    assert sum(line.startswith("a x b  ") for line in lines) == 1
    explanation = model.explain_global()
    assert {"a x b", PAIR} <= set(explanation.to_frame()["term"])
    assert {"a x b", PAIR} <= set(model.explain_local(X[:1]).to_frame()["term"])
    axes = plot_shapes(explanation)
    assert "a x b" in {ax.get_xlabel() for ax in np.ravel(axes)}
    assert plot_interaction(explanation, PAIR) is not None
    with pytest.raises(KeyError, match="no interaction 'a x b'"):
        plot_interaction(explanation, "a x b")


def test_exports_and_the_command_line(fitted, tmp_path, monkeypatch, capsys):
    model, X, y = fitted
    monkeypatch.chdir(tmp_path)
    model.save("m.lanam")
    X.assign(y=y).to_csv("rows.csv", index=False)
    assert main(["predict", "m.lanam", "rows.csv", "-o", "out.csv", "--terms", "-q"]) == 0
    out = pd.read_csv("out.csv")
    columns = [name for name in out if "a x b" in name]
    assert len(columns) == 2
    np.testing.assert_allclose(out[columns[1]], model.predict_terms(X)[:, 3], rtol=1e-6)
    capsys.readouterr()
    for given, kind in (("a x b", "smooth"), (PAIR, "pair"), ("b:a", "pair")):
        assert main(["explain", "m.lanam", "--term", given, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["kind"] == kind
    assert main(["export", "m.lanam", "-o", "m.csv", "-q"]) == 0
    assert {"a x b", PAIR} <= set(pd.read_csv("m.csv")["term"])


def test_pairs_of_columns_whose_names_have_the_sign():
    assert term_name(["a", "b x c"]) != term_name(["a x b", "c"]) != term_name(["a", "b", "c"])
    assert term_name(["a"], ["a (levels)"], " (levels)") == "a (levels) (per value)"
    assert term_name(["a"], ["a"]) == "a"
