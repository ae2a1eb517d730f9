"""Graphs, run in onnxruntime."""

import builtins
import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

from lanam import LANAMRegressor
from tests.export.cases import KINDS, NAME, case, check_link, check_response

pytestmark = pytest.mark.filterwarnings("ignore:column '", "ignore:of the 60 categories")


def session_of(content):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(session, X, missing="", names=None):
    inputs = {}
    for each in session.get_inputs():
        values = X[(names or {}).get(each.name, each.name)]
        if each.type == "tensor(string)":
            inputs[each.name] = (
                values.astype(object).where(values.notna(), missing).to_numpy(object)
            )
        else:
            inputs[each.name] = values.to_numpy(np.float64)
    found = session.run(None, inputs)
    return dict(zip([each.name for each in session.get_outputs()], found, strict=True))


@pytest.mark.parametrize("kind", [*KINDS, "nothing"])
def test_the_runtime_agrees_with_the_model(kind):
    found = case(kind)
    missing = "(gone)" if kind == "odd" else ""
    result = run(session_of(found.model.export(None, to="onnx", missing=missing)), found.X, missing)
    check_link(found, result["link_mean"], result["link_variance"])
    if hasattr(found.model, "classes_"):
        assert list(result) == ["link_mean", "link_variance", "probability"]
        check_response(found, result["probability"])
    else:
        assert list(result) == ["link_mean", "link_variance", "prediction", "observation_variance"]
        check_response(found, result["prediction"], result["observation_variance"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_alone(kind):
    found = case(kind)
    missing = "(gone)" if kind == "odd" else ""
    content = found.model.export(None, to="onnx", missing=missing, variance=False)
    result = run(session_of(content), found.X, missing)
    assert list(result) == ["link_mean"]
    check_link(found, result["link_mean"])
    assert len(content) < len(found.model.export(None, to="onnx", missing=missing))


@pytest.mark.parametrize("kind", ["gaussian", "many", "noisy"])
def test_any_number_of_rows(kind):
    found = case(kind)
    session = session_of(found.model.export(None, to="onnx"))
    whole = run(session, found.X)
    for n in (0, 1, 7):
        part = run(session, found.X[:n])
        for name, values in part.items():
            assert values.shape == (n, *whole[name].shape[1:])
            np.testing.assert_allclose(values, whole[name][:n], rtol=1e-12)


def test_inputs_are_the_columns_that_are_read():
    model = case("gaussian").model
    inputs = {
        each.name: each.type for each in session_of(model.export(None, to="onnx")).get_inputs()
    }
    X = case("gaussian").X
    text = {X.columns[2], "size"}
    assert inputs == {
        name: "tensor(string)" if name in text else "tensor(double)"
        for name in X
        if name not in ("noise", "same")
    }


def test_hostile_names_of_inputs_and_other_ones():
    found = case("odd")
    content = found.model.export(
        None, to="onnx", missing="(gone)", columns={"zone": "lanam/3", "half": "lanam/constant 1"}
    )
    session = session_of(content)
    assert NAME in [each.name for each in session.get_inputs()]
    result = run(session, found.X, "(gone)", {"lanam/3": "zone", "lanam/constant 1": "half"})
    check_link(found, result["link_mean"])


def test_metadata():
    graph = onnx.load_from_string(case("many").model.export(None, to="onnx"))
    facts = {each.key: each.value for each in graph.metadata_props}
    assert facts["link"] == "softmax"
    labels = [facts[f"class_{k}"] for k in range(3)]
    assert labels == case("many").model.classes_.tolist()
    assert graph.producer_name == "lanam"
    assert {each.domain: each.version for each in graph.opset_import} == {"": 15, "ai.onnx.ml": 2}


def test_extreme_values_and_ends_of_intervals():
    found = case("gaussian")
    hours = np.linspace(0.0, 24.0, 97)
    X = pd.concat([found.X[:1]] * len(hours), ignore_index=True).assign(hour=hours)
    X["zone"] = [3.0, 3.0 + 2e-6, 3.0 + 4e-6, 1e-9, -1e300, 1e300, *[5.0] * 91]
    X["load"] = [1e308, -1e308, *[50.0] * 95]
    found = type(found)(found.model, X)
    check_link(found, run(session_of(found.model.export(None, to="onnx")), X)["link_mean"])


# errors


def test_an_empty_string_as_a_category():
    with pytest.raises(
        ValueError, match=r"missing='' is a category of column \"it's\": pass another string"
    ):
        case("odd").model.export(None, to="onnx")


def small(names, values=None):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=200) for name in names})
    if values is not None:
        X[names[0]] = rng.choice(np.array(values, dtype=object), 200)
        effect = (X[names[0]] == values[0]) * 3.0
    else:
        effect = X.sum(axis=1)
    model = LANAMRegressor(
        interactions=0,
        hidden_sizes=(16,),
        random_state=0,
        categorical_features=names[: bool(values)],
    )
    return model.fit(X, effect + 0.1 * rng.normal(size=200))


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (
            ["a", "link_mean"],
            {},
            "'link_mean' is the name of a result: rename it by columns=",
        ),
        (["a", "b"], {"columns": {"b": "a"}}, "'a' stands for two inputs"),
        (["a", "b"], {"columns": {"b": ""}}, "'' cannot name an input"),
    ],
)
def test_invalid_names(names, options, message):
    with pytest.raises(ValueError, match=message):
        small(names).export(None, to="onnx", **options)


def test_categories_that_are_equal_as_doubles():
    model = small(["id"], [2**60, 2**60 + 1])
    with pytest.raises(ValueError, match="column 'id' has categories that are the same number"):
        model.export(None, to="onnx")


def test_without_the_package(monkeypatch):
    imported = builtins.__import__

    def refuse(name, *rest):
        if name == "onnx":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        ImportError, match=r"needs the package onnx: install it with `pip install onnx`"
    ):
        case("two").model.export(None, to="onnx")
    assert case("two").model.export(None, to="csv")


def test_edits_are_in_the_metadata():
    model = case("odd").model
    edited = model.edit_term("flag", "zero", levels=True, reason='"é"\n').edit_term(NAME, "zero")
    for one in (model, edited):
        graph = onnx.load_from_string(one.export(None, to="onnx", missing="(gone)"))
        facts = {each.key: each.value for each in graph.metadata_props}
        assert json.loads(facts["edits"]) == list(one.edits_)
    with pytest.raises(TypeError, match="has no option 'edits'"):
        model.export(None, to="onnx", edits=())
