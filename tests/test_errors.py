"""Errors with fields: one message for Python and other front ends, with column, row and remedy."""

import ast
import copy
import functools
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Formatter

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lanam
from lanam import LANAMRegressor
from lanam.cli.errors import _WORDS
from lanam.cli.requests import FLAGS
from lanam.engines.interface import Chunk, in_chunk
from lanam.errors import (
    InputError,
    InputTypeError,
    Line,
    Message,
    MessageFormat,
    located,
    warn_user,
)
from lanam.storage.errors import ModelFileError

#: The fields of every message.
FIELDS = {"argument", "column", "example", "given", "row", "value"}

DROP = Line("leave out", "X = X.drop(columns=1)")


class TestMessages:
    def test_fields(self):
        model, rows = LANAMRegressor(), [[1.0], [2.0], [3.0]]
        with pytest.raises(ValueError, match="Negative values in sample_weight: 1 of 3") as caught:
            model.fit(rows, [1.0, 2.0, 4.0], sample_weight=[1.0, -1.0, 1.0])
        assert (caught.value.argument, caught.value.row) == ("sample_weight", 1)
        assert caught.value.remedy.startswith("A weight counts how often a row was seen")
        table = pd.DataFrame(
            {"when": pd.to_datetime(["2020", "2021", "2022"]), "x": [1.0, 2.0, 3.0]}
        )
        with pytest.raises(InputError) as caught:
            model.fit(table, [1.0, 2.0, 4.0])
        assert caught.value.column == "when"
        assert caught.value.remedy.startswith("convert them to a number (such as days)")
        assert (
            caught.value.line.code == 'X["when"] = (X["when"] - pd.Timestamp("2000-01-01")).dt.days'
        )
        with pytest.raises(InputError) as caught:
            LANAMRegressor(categorical_features=["y"]).fit(table[["x"]], [1.0, 2.0, 4.0])
        assert (caught.value.argument, caught.value.column) == ("categorical_features", "y")

    @pytest.mark.parametrize(
        ("remedy", "text"), [("", "no"), ("wait", "no: wait"), ("Wait.", "no. Wait.")]
    )
    def test_remedies_follow_a_colon_or_a_full_stop(self, remedy, text):
        assert str(InputError("no", remedy)) == text

    def test_other_formats(self):
        class Shouting(MessageFormat):
            def word(self, name):
                return name.upper()

            def setting(self, setting):
                return f"{setting.argument.upper()} {setting.value}"

        error = InputError(
            "{given}, {column!r}, {more:.1f}, {a.b(c)=0}",
            argument="x",
            value=1,
            column="{c}",
            more=2.0,
        )
        assert str(error) == "x=1, '{c}', 2.0, a.b(c)=0"
        assert error.formatted(Shouting()) == "X 1, '{c}', 2.0, A.B(C)=0"

    @pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
    @pytest.mark.parametrize(
        "error",
        [
            InputError("{column!r}{example}, {n}", "a remedy", column="{c}", row=3, line=DROP, n=2),
            InputTypeError("{argument} in row {row}", argument="y", row=0).located("in {a}: ", 7),
            ModelFileError("is damaged ({'a': 1})", "{model.save(path)}"),
        ],
    )
    def test_copies(self, error, copied):
        same = copied(error)
        assert type(same) is type(error)
        assert str(same) == str(error)
        assert same.args == (str(error),)
        assert (same.column, same.row, same.remedy) == (error.column, error.row, error.remedy)


class TestLocations:
    def test_rows_are_numbered_within_the_table(self):
        error = InputError("a missing value in row {row}", "fill it", row=3)
        assert (
            str(error.located("in a.parquet: ", 100))
            == "in a.parquet: a missing value in row 104 (counting from 1): fill it"
        )
        unchanged = (3, "a missing value in row 4 (counting from 1): fill it")
        assert (error.row, str(error)) == unchanged
        chunk = Chunk(None, "b", 10, 0)
        with pytest.raises(InputError) as caught, in_chunk(chunk), in_chunk(chunk, "c"):
            raise error
        assert (
            str(caught.value)
            == "in b, column 'c': a missing value in row 14 (counting from 1): fill it"
        )

    def test_the_meaning_of_x_in_code(self):
        error = InputError("too much", "leave it out{example}", line=DROP)
        code = "leave it out, for example with `X = X.drop(columns=1)`"
        assert str(error) == f"too much: {code}"
        assert str(error.located("in a.csv: ")) == (
            f"in a.csv: too much: {code} (X being the table with these rows)"
        )

    @pytest.mark.parametrize(
        ("kind", "ours"), [(ValueError, InputError), (TypeError, InputTypeError)]
    )
    def test_errors_of_other_libraries(self, kind, ours):
        error = located(kind("{odd} words"), "in a.csv: ", 5)
        assert type(error) is ours
        assert str(error) == "in a.csv: {odd} words"
        with (
            pytest.raises(kind, match=r"^in b, column 'c': \{odd\}") as caught,
            in_chunk(Chunk(None, "b", 0, 0), "c"),
        ):
            raise kind("{odd} words")
        assert isinstance(caught.value, Message)


KINDS = {
    "FileThereError",
    "FitWarning",
    "InputError",
    "InputTypeError",
    "InputWarning",
    "UnfinishedWarning",
    "kind",
}


def messages():
    """Calls in the source that make a message: the place, its keywords, and the names in braces."""
    for path in sorted(Path(lanam.__file__).parent.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        named = [node for node in nodes if isinstance(node, ast.Assign)]
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KINDS:
                text = "".join(_text(argument, named) for argument in node.args[:2])
                marks = {mark for _, mark, *_ in Formatter().parse(text) if mark is not None}
                yield (
                    f"{path.name}:{node.lineno}",
                    {keyword.arg for keyword in node.keywords},
                    marks,
                )


def _text(node, named):
    """The text of a constant, of an f-string without its values, or of the last assignment to a name."""
    if isinstance(node, ast.Name):
        same = [assign for assign in named if getattr(assign.targets[0], "id", "") == node.id]
        before = [assign for assign in same if assign.lineno < node.lineno]
        return _text(max(before, key=lambda last: last.lineno).value, named) if before else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, named) for part in node.values)
    return node.value if isinstance(node, ast.Constant) else ""


def test_names_in_braces_are_fields_or_words_of_the_command_line():
    calls = list(messages())
    assert len(calls) > 30
    words = {*FLAGS, *_WORDS}
    for where, keywords, marks in calls:
        assert marks <= FIELDS | keywords | words, where
        assert not marks & {"given", "argument"} or "argument" in keywords, where
        assert "example" not in marks or "line" in keywords, where


class TestWarnings:
    """They point at the user's line, also if scikit-learn calls or wraps the methods."""

    X = pd.DataFrame({"a": np.linspace(-1.0, 1.0, 60), "b": np.tile([0.0, 1.0, 2.0], 20)})
    y = np.sin(5 * X["a"].to_numpy())
    hasty = LANAMRegressor(max_iter=1, hidden_sizes=(4,), interactions=0, random_state=0)

    @pytest.mark.parametrize(
        "fit",
        [
            lambda test: test.hasty.fit(test.X, test.y),
            lambda test: make_pipeline(StandardScaler(), test.hasty).fit(test.X, test.y),
            lambda test: make_pipeline(test.hasty).fit_transform(test.X, test.y),
            lambda test: test.hasty.fit_transform(test.X, test.y),
            lambda test: (
                LANAMRegressor(**test.hasty.get_params())
                .set_output(transform="pandas")
                .fit_transform(test.X, test.y)
            ),
            lambda test: cross_val_score(test.hasty, test.X, test.y, cv=2),
        ],
    )
    def test_fits(self, fit):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(self)
        warned = [record for record in caught if issubclass(record.category, ConvergenceWarning)]
        assert warned
        assert {record.filename for record in warned} == {__file__}

    @pytest.mark.parametrize("output", ["default", "pandas"])
    def test_unseen_values(self, output):
        model = LANAMRegressor(hidden_sizes=(4,), interactions=0, random_state=0).fit(
            self.X, self.y
        )
        model.set_output(transform=output)
        odd = self.X.assign(a=np.nan)
        for method in (model.predict, model.transform, make_pipeline(model).transform):
            with pytest.warns(lanam.data.NewValuesWarning) as caught:
                method(odd)
            assert caught[0].filename == __file__


class TestPlaces:
    """Warnings show the user's line, or none: never a line of a library."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda warn: list(map(warn, [0])),
            lambda warn: functools.reduce(lambda _, value: warn(value), [0], None),
            lambda warn: np.apply_along_axis(warn, 0, np.ones(1)),
            lambda warn: pd.Series([0]).map(warn),
        ],
    )
    def test_other_libraries_lie_between(self, call):
        with pytest.warns(UserWarning, match="here") as caught:
            call(lambda _: warn_user(UserWarning("here")) or 0)
        assert {each.filename for each in caught} == {__file__}

    def test_without_a_line_of_the_user(self):
        with (
            pytest.warns(UserWarning, match="in a thread") as caught,
            ThreadPoolExecutor() as pool,
        ):
            pool.submit(warn_user, UserWarning("in a thread"))
        assert [Path(each.filename).exists() for each in caught] == [False]
