"""Parameters are declared once: constructors, checks and the core's options all come from there."""

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

from lanam import LANAMClassifier, LANAMRegressor
from lanam.arguments import read_options
from lanam.core.fit.solvers import CURVATURES, SOLVERS
from lanam.core.inference.evidence import UPDATES
from lanam.errors import InputError
from lanam.parameters import DEFAULTS, PARAMETERS

ONLY_NUMBERS = {"likelihood", "noise", "tweedie_power"}
#: Parameters that a classifier declares itself, after those of both.
ONLY_CLASSES = {"likelihood": "categorical"}


@pytest.mark.parametrize("kind", [LANAMRegressor, LANAMClassifier])
def test_signatures_are_the_declarations(kind):
    shown = inspect.signature(kind).parameters
    expected = [name for name in PARAMETERS if kind is LANAMRegressor or name not in ONLY_NUMBERS]
    own = {} if kind is LANAMRegressor else ONLY_CLASSES
    expected += own
    assert list(shown) == expected
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in shown.values())
    model = kind()
    for name, each in shown.items():
        assert getattr(model, name) == each.default
        if name in own:
            assert each.default == own[name]
        else:
            assert each.default == PARAMETERS[name].default == getattr(DEFAULTS, name)
    assert sorted(model.get_params()) == sorted(expected)


def test_others_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'wings'"):
        LANAMRegressor(wings=2)
    with pytest.raises(TypeError, match="noise"):
        LANAMClassifier(noise="constant")
    with pytest.raises(TypeError, match="positional"):
        LANAMRegressor("auto")


def test_errors_about_names_help():
    """They name the estimator, and what was meant."""
    with pytest.raises(
        TypeError, match=r"^LANAMRegressor got an unexpected .* 'max_bins'"
    ) as caught:
        LANAMRegressor(max_bins=3)
    assert "did you mean 'max_knots'" in str(caught.value)
    with pytest.raises(
        TypeError, match=r"^LANAMClassifier got .*: its parameters are 'interactions'"
    ):
        LANAMClassifier(wings=2)
    for kind in (LANAMRegressor, LANAMClassifier):
        with pytest.raises(TypeError, match=r"'drop': pass it to `fit\(\.\.\., drop=\.\.\.\)`"):
            kind(drop=["id"])


def test_copies_have_what_was_given():
    sizes = [8, 8]
    model = LANAMRegressor(hidden_sizes=sizes, noise="constant")
    assert model.hidden_sizes is sizes
    assert repr(model) == "LANAMRegressor(hidden_sizes=[8, 8], noise='constant')"
    for copied in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copied.get_params() == model.get_params()
    assert model.set_params(max_iter=7).max_iter == 7
    assert LANAMRegressor().max_iter == 100  # not that of the class


def test_dask_tells_two_fits_apart():
    tokenize = pytest.importorskip("dask.base").tokenize
    x = np.linspace(-1.0, 1.0, 30)[:, None]
    model = LANAMRegressor(hidden_sizes=(4,), random_state=0)
    before = tokenize(model)
    assert tokenize(model.fit(x, x[:, 0])) != before
    assert tokenize(clone(model).fit(x, -x[:, 0])) != tokenize(model)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "activation",
            "sine",
            "activation='sine' is not known: choose 'gelu', 'relu', 'tanh' or 'silu'",
        ),
        ("level_effects", 0, "level_effects=0 is not known: choose 'auto' or False"),
        ("noise", "loud", "noise='loud' is not known: choose 'auto' or 'constant'"),
        ("max_knots", 15, "max_knots=15 must be an integer of at least 16"),
        ("max_iter", True, "max_iter=True must be an integer of at least 1"),
        ("max_iter", 2.0, "max_iter=2.0 must be an integer of at least 1"),
        ("tol", np.inf, "tol=inf must be a finite number of at least 0"),
        (
            "hidden_sizes",
            8,
            "hidden_sizes=8 must be 'auto' or a sequence of layer widths, for example (64,)",
        ),
        ("hidden_sizes", (8, 0), "every entry of hidden_sizes=0 must be an integer of at least 1"),
        (
            "init_scales",
            (1.0, -1.0),
            "init_scales=(1.0, -1.0) must be 'auto' or a sequence of positive",
        ),
        (
            "memory",
            "much",
            "memory='much' is not known: give a number of bytes, or for example '2GB'",
        ),
        (
            "n_jobs",
            0,
            "n_jobs=0 is not known: give a number of threads, -1 for all cores, or None for",
        ),
    ],
)
def test_errors_name_the_argument(name, value, said):
    with pytest.raises(ValueError, match=f"{name}=") as caught:
        read_options(LANAMRegressor(**{name: value}).get_params())
    assert isinstance(caught.value, InputError)
    assert str(caught.value).startswith(said)
    assert caught.value.argument == name


@pytest.mark.parametrize("name", sorted(name for name in PARAMETERS if PARAMETERS[name].metadata))
def test_every_check_refuses_something(name):
    with pytest.raises(ValueError, match=name):
        read_options(LANAMRegressor(**{name: object()}).get_params())


def test_numpys_values_are_values():
    given = {"max_iter": np.int64(7), "tol": np.float64(0.1), "activation": np.str_("relu")}
    given |= {
        "level_effects": np.False_,
        "hidden_sizes": np.array([8, 4]),
        "n_restarts": np.uint8(2),
    }
    options = read_options(LANAMRegressor(**given).get_params())
    assert (options.max_iter, options.tol, options.activation) == (7, 0.1, "relu")
    assert (options.level_effects, options.hidden_sizes, options.n_restarts) == (False, (8, 4), 2)


def test_parameters_of_a_users_class_are_left_to_it():
    class Own(LANAMRegressor):
        wings = 2

        def get_params(self, deep=True):
            return {**super().get_params(deep), "wings": self.wings}

    x = np.linspace(-1.0, 1.0, 30)[:, None]
    assert Own(hidden_sizes=(4,), random_state=0).fit(x, x[:, 0]).converged_


@pytest.mark.parametrize(
    ("name", "known"),
    [("solver", SOLVERS), ("curvature", CURVATURES), ("evidence_update", UPDATES)],
)
def test_words_are_those_that_the_core_knows(name, known):
    with pytest.raises(InputError, match="choose") as caught:
        PARAMETERS[name].metadata["read"]("another", name)
    assert re.findall(r"'([^']*)'", str(caught.value))[1:] == list(known)
