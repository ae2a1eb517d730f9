"""Strings that are something else than categories: refused with a line that fixes them, or warned of."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lanam import LANAMRegressor
from lanam.cli.errors import in_flags
from lanam.data.recognition import alike, code_of_missing, numbers_rows, recognise
from lanam.engines.roles import read_roles
from lanam.engines.survey import survey
from lanam.errors import InputError, InputWarning
from tests.data.test_refusals import NAMES, learn
from tests.engines.test_survey import Frames

SPACES = {**NAMES, "re": re, "datetime": datetime.datetime}

KINDS = [
    (["€48.965", "€1.234", "€900"], "amounts of money", [48965.0, 1234.0, 900.0]),
    (["$1,234.50", "-$12.25"], "amounts of money", [1234.5, -12.25]),
    (["CHF 1'200.50", "CHF 30"], "amounts of money", [1200.5, 30.0]),
    (["1000 kr", "20 kr"], "amounts of money", [1000.0, 20.0]),
    (["16,5%", "8 %"], "percentages", [16.5, 8.0]),
    (["1,234", "12"], "numbers with thousands separators", [1234.0, 12.0]),
    (["1.234.567,89", "12,5"], "numbers with thousands separators", [1234567.89, 12.5]),
    (["12,5", "3,25"], "numbers with thousands separators or a decimal comma", [12.5, 3.25]),
    (["1.5", "-2", "3e2"], "numbers as text", [1.5, -2.0, 300.0]),
    (["24/10/2023", "01/01/2000"], "dates", [8697, 0]),
    (["10/24/2023", "01/01/2000"], "dates", [8697, 0]),
    (["24.10.2023", "01.01.2000"], "dates", [8697, 0]),
    (["2023-10-24 13:45:00", "2000-01-01 00:00:00"], "dates", [8697, 0]),
    (["2023-10-24T13:45:00Z", "2000-01-01T00:00:00Z"], "dates", [8697, 0]),
    (["24 Oct 2023", "1 Jan 2000"], "dates", [8697, 0]),
    (["October 24, 2023", "January 1, 2000"], "dates", [8697, 0]),
    (["24/10/2023 13:45", "01/01/2000 9:30"], "dates", [8697, 0]),
    (["13:45", "9:30"], "times of day", [13.75, 9.5]),
    (["01:45 PM", "09:30 AM"], "times of day", [13.75, 9.5]),
    (["€1,200.50", "(€1,009)", "€ (12)"], "amounts of money", [1200.5, -1009.0, -12.0]),
    (["1.200,50 €", "(1.009,00 €)"], "amounts of money", [1200.5, -1009.0]),
    (["1.5", "\u22122.5", "(3)"], "numbers as text", [1.5, -2.5, -3.0]),
    (["<0.1", *(f"{k}.5" for k in range(12))], "numbers", [0.1, *(k + 0.5 for k in range(12))]),
    ([f"{k}.5 kg" for k in range(25)], "numbers with a unit", [k + 0.5 for k in range(25)]),
]

LIBRARIES = {
    "pandas": lambda values: pd.DataFrame({"c": values}),
    "polars": lambda values: pl.DataFrame({"c": values}),
    "pyarrow": lambda values: pa.table({"c": values}),
    "numpy": lambda values: np.array([[value] for value in values], dtype=object),
}

CATEGORIES = [
    ["red", "green"],
    ["20-29", "30-39", "40+"],
    ["01067", "80331"],
    ["A12", "B7"],
    ["<5", "5 to 10", ">10"],
    ["v1.2.3", "v1.10.0"],
    ["10.0.0.1", "10.0.0.2"],
    ["12-34-56", "98-76-54"],
    ["1st", "2nd", "3rd"],
    ["1 bed", "2 beds"],
    ["$5", "five", "six", "seven"],
    ["<50", ">=50"],
    ["(0,1]", "(1,2]", "(2,3]"],
    ["(1)", "(2)", "(3)"],
]


class TestKinds:
    @pytest.mark.parametrize(("values", "what", "numbers"), KINDS)
    @pytest.mark.parametrize("library", LIBRARIES)
    def test_refused_with_a_line_that_fixes_it(self, library, values, what, numbers):
        table = LIBRARIES[library](values)
        with pytest.raises(InputError, match=f"column '(c|x0)' holds {what}") as caught:
            learn(table)
        error = caught.value
        assert error.column in ("c", "x0")
        assert f"categorical_features=['{error.column}']" in error.remedy
        lines = re.findall("`(.*?)`", str(error))
        if not lines:  # arrow has no functions for these
            assert library == "pyarrow"
            found = recognise(values, 2)
            assert what == "times of day" or found.decimal == "," or found.negative
            return
        names = {**SPACES, "X": table}
        exec(lines[0], names)
        columns, _ = learn(names["X"])
        if what == "dates":  # libraries count from different days
            columns = columns - columns[-1]
        np.testing.assert_allclose(columns[:, 0], numbers)

    @pytest.mark.parametrize("values", CATEGORIES)
    def test_categories_are_none(self, values):
        assert recognise(sorted(values), 100) is None

    @pytest.mark.parametrize(("values", "what", "numbers"), KINDS)
    def test_declared_columns_are_categories(self, values, what, numbers):
        _, schema = learn(pd.DataFrame({"c": values}), frozenset([0]))
        assert set(schema.columns[0].levels) == set(values)
        _, schema = learn(pd.DataFrame({"c": values}, dtype="category"))
        assert set(schema.columns[0].levels) == set(values)

    def test_marks_of_missing_values_and_a_few_odd_cells(self):
        numbers = [f"{k}.25" for k in range(20)]
        assert recognise([*numbers, "?", "n/a", "none"], 30).what == "numbers"
        assert recognise([*numbers, "see below"], 30).what == "numbers"
        assert recognise([*numbers, *"abcde"], 30) is None

    def test_what_becomes_of_odd_cells(self):
        numbers = [f"{k}.25" for k in range(30)]
        with pytest.raises(InputError, match=r"\(as missing values: 'low'\), or leave"):
            learn(pd.DataFrame({"c": [*numbers, "low", "?"]}))
        words = r"\(limits such as '<0.1' as the number; as missing values: 'low'\), or leave"
        with pytest.raises(InputError, match=words):
            learn(pd.DataFrame({"c": [*numbers, "low", "<0.1"]}))

    def test_times_with_and_without_fractions(self):
        found = recognise(["2023-10-24 13:45:00", "2023-10-24 13:45:00.5"], 2)
        assert (found.what, found.format) == ("dates", "ISO8601")
        with pytest.raises(InputError, match='format="ISO8601"'):
            learn(pd.DataFrame({"c": ["2023-10-24 13:45:00", "2023-10-24 13:45:00.5"]}))

    def test_a_constant_is_none(self):
        assert recognise(["01.01.2024"], 100) is None

    def test_thousands_of_values_are_sampled(self):
        assert recognise([f"${k:,}" for k in range(5000)], 9000).what == "amounts of money"


class TestIdentifiers:
    def test_strings(self):
        frame = pd.DataFrame({"patient": [f"P-{k:04d}" for k in range(60)]})
        with pytest.raises(InputError, match="'patient' holds identifiers: 60 distinct") as caught:
            learn(frame)
        assert 'X = X.drop(columns="patient")' in str(caught.value)
        assert caught.value.column == "patient"
        _, schema = learn(pd.concat([frame] * 2))
        assert len(schema.columns[0].levels) == 60
        _, schema = learn(frame[:40])  # too few to tell
        assert len(schema.columns[0].levels) == 40

    def test_integers(self):
        rows = np.arange(100.0)
        assert numbers_rows("row", rows, 100, 100, 99.0)
        assert numbers_rows("row", rows[::3], 98.2, 100, 150.0)  # a sample, an estimate
        assert not numbers_rows("row", rows + 0.5, 100, 100, 99.0)
        assert not numbers_rows("row", rows, 60, 100, 99.0)
        assert not numbers_rows("row", rows[:40], 40, 40, 39.0)
        assert not numbers_rows("day", rows + 8766.0, 100, 100, 8865.0)
        far = rows * 1000.0
        assert not numbers_rows("income", far, 100, 100, 99_000.0)
        for name in ("id", "ID", "customer_id", "PassengerId", "order key"):
            assert numbers_rows(name, far, 100, 100, 99_000.0)
        assert not numbers_rows("humid", far, 100, 100, 99_000.0)
        policies = 1_000_000.0 + 80_000.0 * rows
        assert numbers_rows("policy", policies, 100, 100, policies[-1])
        assert not numbers_rows("policy", policies, 100, 100, 2.0 * policies[-1])
        assert not numbers_rows("seconds", 1.7e9 + 3600.0 * rows, 100, 100, 1.7e9 + 360_000.0)


class TestCodesOfMissingValues:
    VALUES = np.array([3.0, 5.5, 2.0, 7.0])

    @pytest.mark.parametrize("code", [-99, 99, -999, 9999, -99999])
    def test_recognised(self, code):
        assert code_of_missing(np.append(self.VALUES, [code] * 3)) == code

    @pytest.mark.parametrize(
        "values",
        [
            [],
            [-999.0] * 5,
            [1.0, 2.0, 3.0, -999.0],
            [1.0, 2.0, 3.0, -99.5, -99.5, -99.5],
            [1.0, 2.0, 3.0, -98.0, -98.0, -98.0],
            [1.0, 40.0, 80.0, 99.0, 99.0, 99.0],
            [1.0, 1.0, 1.0, 99.0, 99.0, 99.0],
        ],
        ids=["none", "all", "one row", "a fraction", "another", "near", "two values"],
    )
    def test_others_are_none(self, values):
        assert code_of_missing(np.array(values)) is None

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_a_warning_with_a_line_that_fixes_it(self, library):
        rng = np.random.default_rng(0)
        values = rng.uniform(1.0, 5.0, 60).tolist()
        values[::10] = [-999.0] * 6
        table = LIBRARIES[library](values)
        table = table.astype(float) if library == "numpy" else table
        words = "column '(c|x0)' has the value -999 in 10% of the rows, far from all others"
        model = LANAMRegressor(interactions=0, hidden_sizes=(4,), noise="constant")
        with pytest.warns(InputWarning, match=words) as caught:
            model.fit(table, rng.normal(size=60))
        (line,) = re.findall("`(.*?)`", str(caught[0].message))
        names = {**SPACES, "X": table}
        exec(line, names)
        assert np.isnan(learn(names["X"])[0]).sum() == 6
        assert "for example with --missing=-999" in in_flags(caught[0].message)


class TestWarnings:
    def test_levels_that_look_alike(self):
        frame = pd.DataFrame({"sex": ["Male", "male ", "MALE", "female"]})
        with pytest.warns(InputWarning, match=r"'MALE'/'Male'/'male '") as caught:
            learn(frame)
        assert caught[0].message.column == "sex"
        (line,) = re.findall("`(.*?)`", str(caught[0].message))
        names = {**SPACES, "X": frame.copy()}
        exec(line, names)
        assert learn(names["X"])[1].columns[0].levels == ("female", "male")
        with pytest.warns(InputWarning, match="differ only in case"):
            learn(frame.astype("category"))
        learn(frame, frozenset([0]))  # no warning: declared

    def test_composed_characters(self):
        assert alike(["Zu\u0308rich", "Zürich", "Bern"]) == [["Zu\u0308rich", "Zürich"]]

    def test_a_few_integers_as_text(self):
        with pytest.warns(InputWarning, match="'zone' holds integers as text .*'1'"):
            _, schema = learn(pd.DataFrame({"zone": ["1", "2", "3"]}))
        assert schema.columns[0].levels == ("1", "2", "3")
        learn(pd.DataFrame({"zone": ["1", "2", "3"]}), frozenset([0]))
        with pytest.raises(InputError, match="holds numbers as text"):
            learn(pd.DataFrame({"zone": [str(k) for k in range(30)]}))


class TestChunks:
    """The survey of chunks judges as the rows in memory are judged."""

    @pytest.mark.parametrize(("values", "what", "numbers"), KINDS)
    def test_refused(self, values, what, numbers):
        frame = pd.DataFrame({"c": values, "y": 1.0})
        source = Frames([frame[:1], frame[1:]])
        with pytest.raises(InputError, match=f"in the frames: column 'c' holds {what}") as caught:
            survey(source, read_roles(source, "y"))
        assert "X being the table with these rows" in str(caught.value) or "`" not in str(caught)
        survey(source, read_roles(source, "y"), ["c"])

    def test_identifiers(self):
        frame = pd.DataFrame({"c": [f"P-{k:04d}" for k in range(80)], "y": 1.0})
        source = Frames([frame[:40], frame[40:]])
        with pytest.raises(InputError, match="in the frames: column 'c' holds identifiers: 80"):
            survey(source, read_roles(source, "y"))

    def test_warnings(self):
        frame = pd.DataFrame({"sex": ["Male", "male "], "zone": ["1", "2"], "y": 1.0})
        source = Frames([frame[:1], frame[1:]])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            survey(source, read_roles(source, "y"))
        assert [each.message.column for each in caught] == ["sex", "zone"]
        assert str(caught[0].message).startswith("in the frames: column 'sex'")
