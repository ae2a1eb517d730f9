"""Completed tables, by hand: medians, levels, indicators, and whose effect an indicator is."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.peers.completed import Completed, complete
from benchmarks.peers.interface import Fitted, Prediction
from benchmarks.peers.linear import Linear

gap = np.nan


def small() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": [1.0, gap, 3.0, 8.0],
            "b": [gap, 2.0, 2.0, 4.0],
            "c": [gap, 5.0, 6.0, 7.0],  # missing where b is
            "sex": ["m", "f", None, "f"],
            "unit": ["x", "y", "z", "z"],
            "whole": [1, 2, 3, 4],
        }
    )


def test_medians_levels_and_indicators():
    completion = complete(small())
    assert completion.names == (
        *("a", "b", "c", "sex=m", "unit=x", "unit=y", "unit=z", "whole"),
        *("a missing", "b missing", "sex missing"),
    )
    expected = [
        # a, b, c, sex=m, unit=x, y, z, whole, a, b, sex missing
        [1, 2, 6, 1, 1, 0, 0, 1, 0, 1, 0],
        [3, 2, 5, 0, 0, 1, 0, 2, 1, 0, 0],
        [3, 2, 6, 0, 0, 0, 1, 3, 0, 0, 1],
        [8, 4, 7, 0, 0, 0, 1, 4, 0, 0, 0],
    ]
    np.testing.assert_array_equal(completion(small()), expected)


def test_other_rows_get_the_training_rows_values():
    other = pd.DataFrame(
        {"a": [gap], "b": [9.0], "c": [gap], "sex": ["?"], "unit": [None], "whole": [gap]}
    )
    # an unknown level and a gap are the commonest level; b stands for the pattern of b and c
    expected = [[3, 9, 6, 0, 0, 0, 1, 2.5, 1, 0, 0]]
    np.testing.assert_array_equal(complete(small())(other), expected)


def test_rare_and_constant_indicators_are_left_out():
    values = np.ones((1000, 4))
    values[:4, 0] = gap  # 0.4%
    values[:5, 1] = gap  # 0.5%
    values[:996, 2] = gap  # 99.6%
    values[:, 3] = gap
    completion = complete(values)
    assert completion.names == ("0", "1", "2", "3", "1 missing")
    assert completion(values)[:, 3].tolist() == [0.0] * 1000
    assert not np.isnan(completion(values)).any()


def test_an_array_without_gaps_is_untouched():
    values = np.arange(6.0).reshape(3, 2)
    assert complete(values)(values) is values
    # but gaps in later rows are filled all the same
    np.testing.assert_array_equal(complete(values)(np.array([[gap, 1.0]])), [[2.0, 1.0]])


class Recorder:
    """A model whose effect of column k is k + 1 at rows that have one there; remembers what it got."""

    name = "recorder"

    def missing(self):
        return "not here"

    def fit(self, X, y, task, seed, threads):
        self.got = X
        return Fitted(
            lambda rows: Prediction(rows.sum(axis=1)),
            effect=lambda rows, k: ((k + 1) * (rows[:, k] == 1), np.full(len(rows), k + 1.0)),
            info={"kept": 1},
        )


def test_completed_models():
    recorder = Recorder()
    completed = Completed(recorder)
    assert (completed.name, completed.missing()) == ("recorder", "not here")
    fitted = completed.fit(small(), np.zeros(4), "regression", 0, 1)
    assert isinstance(recorder.got, np.ndarray)
    assert fitted.info == {"kept": 1, "completed_columns": 11}
    assert fitted.predict_mean is None
    assert fitted.predict(small()).mean[0] == 13

    mean, std = fitted.effect(small(), 0)
    assert mean.tolist() == [1, 9, 0, 0]  # value of 1 in the first row, indicator in the second
    assert std.tolist() == [np.hypot(1, 9)] * 4
    # b and c share the tenth column
    assert fitted.effect(small(), 1)[0].tolist() == [5, 0, 0, 0]
    assert fitted.effect(small(), 2)[0].tolist() == [5, 0, 0, 0]
    assert fitted.effect(small(), 2)[1].tolist() == [np.hypot(3, 5)] * 4
    # the levels of a word are one effect
    assert fitted.effect(small(), 4)[0].tolist() == [5, 6, 7, 7]
    assert fitted.effect(small(), 5)[0].tolist() == [8, 0, 0, 0]


def test_effects_add_up_to_the_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "c"])
    y = X.sum(axis=1).to_numpy() + rng.standard_normal(200)
    X.loc[:60, ["a", "b"]] = gap
    X["word"] = rng.choice(["u", "v", "w"], 200)
    fitted = Completed(Linear()).fit(X, y, "regression", 0, 1)
    total = sum(fitted.effect(X, column)[0] for column in range(4))
    np.testing.assert_allclose(total, fitted.predict(X).mean - y.mean(), atol=1e-9)
    assert total.mean() == pytest.approx(0, abs=1e-9)


def test_completed_arrays_go_straight_through():
    recorder = Recorder()
    values = np.eye(3)
    fitted = Completed(recorder).fit(values, np.zeros(3), "regression", 0, 1)
    assert recorder.got is values
    assert fitted.info == {"kept": 1}
    assert fitted.effect(values, 2)[0].tolist() == [0, 0, 3]


def test_an_indicator_is_up_only_where_the_whole_group_is_missing():
    X = pd.DataFrame({"a": [np.nan, 1.0] * 50, "b": [np.nan, 2.0] * 50})
    completion = complete(X)
    rows = pd.DataFrame({"a": [np.nan, np.nan, 3.0], "b": [np.nan, 4.0, np.nan]})
    assert completion(rows)[:, 2].tolist() == [1.0, 0.0, 0.0]
