"""The arguments for interactions and categorical features: valid forms, and errors for others."""

import numpy as np
import pytest

from lanam import LANAMRegressor
from lanam.arguments import read_interactions, read_options
from lanam.data import read_categorical

NAMES = ("age", "sex", "bmi", "bp")


@pytest.mark.parametrize("nothing", [0, 0.0, None, [], (), set(), np.int32(0), np.empty((0, 2))])
def test_no_interactions(nothing):
    assert read_interactions(nothing, NAMES) == 0


@pytest.mark.parametrize("auto", ["auto", np.str_("auto"), np.array("auto")])
def test_auto(auto):
    assert read_interactions(auto, NAMES) == "auto"


@pytest.mark.parametrize("count", [1, 6, 10**30, np.int64(3), np.uint8(3), np.array(3)])
def test_number_of_interactions(count):
    found = read_interactions(count, NAMES)
    assert type(found) is int
    assert found == count


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("age", "bmi")], ((0, 2),)),
        ([("bmi", "age")], ((0, 2),)),  # the order within a pair does not matter
        ([["age", "bmi"]], ((0, 2),)),
        ((("age", "bmi"), ("sex", "bp")), ((0, 2), (1, 3))),
        ([("sex", "bp"), ("age", "bmi")], ((0, 2), (1, 3))),  # nor does that of pairs
        ([("age", "bmi"), ("bmi", "age"), (0, 2)], ((0, 2),)),
        ({("age", "bmi"), ("bmi", "age")}, ((0, 2),)),
        ({frozenset({"age", "bmi"})}, ((0, 2),)),
        (frozenset({(0, 1)}), ((0, 1),)),
        ([{"bmi", "age"}], ((0, 2),)),
        ([("age", 2)], ((0, 2),)),
        ([(3, 0)], ((0, 3),)),
        ([(np.int64(3), np.uint8(0))], ((0, 3),)),
        ([np.array([3, 0])], ((0, 3),)),
        (np.array([[0, 1], [3, 2]]), ((0, 1), (2, 3))),
        (np.array([["age", "bp"]]), ((0, 3),)),
        (np.array([("age", 1)], dtype=object), ((0, 1),)),
    ],
)
def test_pairs(pairs, expected):
    found = read_interactions(pairs, NAMES)
    assert found == expected
    assert all(type(index) is int for pair in found for index in pair)


def test_names_that_are_numbers_are_names():
    # A name is looked up before anything else; an integer is always an index.
    assert read_interactions([("1", "0")], ("1", "0", "2")) == ((0, 1),)
    assert read_interactions([(1, 2)], ("1", "0", "2")) == ((1, 2),)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([("age", "bim")], "names the column 'bim', which X does not have; did you mean 'bmi'?"),
        ([("age", "BMI")], "names the column 'BMI', which X does not have"),
        (
            [("age", "height")],
            "names the column 'height', which X does not have; its columns are 'age', 'sex', 'bmi', "
            "'bp'",
        ),
        ([("age", "")], "names the column '', which X does not have; its columns are 'age'"),
        ([(0, 4)], "interactions has the column 4, and X has columns 0 to 3"),
        ([(0, 10**30)], "and X has columns 0 to 3"),
        ([(-1, 0)], "interactions has the column -1, and X has columns 0 to 3"),
        ([(np.int64(0), np.int64(9))], "interactions has the column 9, and X has columns 0 to 3"),
        (("age", "bmi"), "'age' is neither: write [('age', 'bmi')] for one pair"),
        (["age", "bmi"], "'age' is neither: write [('age', 'bmi')] for one pair"),
        (["ab"], "'ab' is neither"),
        ((0, 1), "0 is neither: write [('age', 'bmi')] for one pair"),
        (np.array([0, 1]), "0 is neither"),
        ([("age",)], "('age',) is neither"),
        ([("age", "bmi", "bp", "sex")], "('age', 'bmi', 'bp', 'sex') is neither"),
        ([("age", "bmi", 0)], "has the triple ('age', 'bmi', 0): a column has no interaction with"),
        ([()], "() is neither"),
        ([None], "None is neither"),
        ([[("age", "bmi")]], "[('age', 'bmi')] is neither"),
        ([[("age", "bmi"), ("sex", "bp")]], "has ('age', 'bmi') for a column: use its name"),
        (np.zeros((2, 2, 2)), "for a column: use its name, or its index from 0"),
        ([("age", "age")], "has the pair ('age', 'age'): a column has no interaction with itself"),
        ([("age", 0)], "has the pair ('age', 0): a column has no interaction with itself"),
        ([{"age"}], "{'age'} is neither"),
        ([(0.0, 1.0)], "interactions has 0.0 for a column: use its name, or its index from 0"),
        (np.array([[0.0, 1.0]]), "interactions has 0.0 for a column"),
        ([(True, 2)], "interactions has True for a column: use its name, or its index from 0"),
        ([(np.bool_(True), 2)], "for a column: use its name, or its index from 0"),
        ([("age", None)], "interactions has None for a column"),
        (
            "all",
            "interactions='all' is not known: use 'auto', how many interactions to add, or pairs",
        ),
        ("Auto", "interactions='Auto' is not known"),
        ("3", "interactions='3' is not known"),
        ("", "interactions='' is not known"),
        ("age", "interactions='age' is not known"),
        (-1, "interactions=-1 is not known: use 'auto', how many interactions to add"),
        (np.int64(-2), "interactions=-2 is not known"),
        (2.0, "interactions=2.0 is not known"),
        (0.5, "interactions=0.5 is not known"),
        (np.nan, "interactions=nan is not known"),
        (np.inf, "interactions=inf is not known"),
        (True, "interactions=True is not known"),
        (False, "interactions=False is not known"),
        (np.True_, "interactions=True is not known"),
        ({"age": "bmi"}, "interactions={'age': 'bmi'} is not known"),
        (object, "is not known: use 'auto'"),
        (iter([("age", "bmi")]), "is not known: use 'auto'"),
    ],
)
def test_invalid_values(value, message):
    with pytest.raises(ValueError, match=r"^interactions") as error:
        read_interactions(value, NAMES)
    assert message in str(error.value)


def test_triples():
    assert read_interactions([("bp", "age", "bmi"), ("age", "sex")], NAMES) == ((0, 1), (0, 2, 3))


def test_no_more_columns_than_the_largest_order():
    message = r"has the triple .* and max_order=2 is the largest .*: set max_order=3"
    with pytest.raises(ValueError, match=message):
        read_interactions([("bp", "age", "bmi")], NAMES, 2)


def test_long_lists_of_columns_are_cut():
    names = [f"column {k}" for k in range(30)]
    with pytest.raises(ValueError, match="'column 7' and 22 more"):
        read_interactions([("zzz", "column 1")], names)


def test_one_column_has_no_interactions():
    with pytest.raises(ValueError, match="the column 1, and X has columns 0 to 0"):
        read_interactions([(0, 1)], ("x0",))


def test_categorical_features_are_names_or_indices():
    assert read_categorical(["bmi", 0], NAMES) == {0, 2}
    with pytest.raises(
        ValueError, match=r"^categorical_features names the column 'bim', .*'bmi'\?"
    ):
        read_categorical(["bim"], NAMES)


@pytest.mark.parametrize("value", [["bmi"], [2], "auto", None, "anything"])
def test_options_do_not_read_categorical_features(value):
    arguments = LANAMRegressor(categorical_features=value).get_params()
    assert read_options(arguments) == read_options(LANAMRegressor().get_params())


def test_likelihoods():
    read_options(LANAMRegressor(likelihood="poisson").get_params())
    with pytest.raises(ValueError, match="is not known: choose 'gaussian', 'lognormal'"):
        LANAMRegressor(likelihood="cauchy").fit([[0.0], [1.0]], [0.0, 1.0])
