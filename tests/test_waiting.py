"""Long fits are announced before they start, and an interrupt is answered soon."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lanam import LANAMClassifier, LANAMRegressor, sessions
from lanam.cli.console import Console
from lanam.core.fit import fitting, prepare
from lanam.core.inference import uncertainty
from lanam.core.inference.gauss_newton import GaussNewton
from lanam.core.rows.plan import Plan
from lanam.errors import WaitWarning, warn_user


class Started(Exception):
    """Training would start now."""


@pytest.fixture
def start(monkeypatch):
    """Stops a fit where its training would start."""

    def started(*_):
        raise Started

    monkeypatch.setattr(GaussNewton, "train", started)


def rows(n_rows, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_rows, n_columns)), rng.standard_normal(n_rows)


@pytest.mark.usefixtures("start")
class TestAWarning:
    def test_of_many_columns_comes_before_the_wait(self):
        X, y = rows(5, 350)
        expected = (
            "this fit may take about 2 minutes: 350 columns have 61,075 interactions to score and 1,750 "
            "coefficients: to wait less, set interactions=0, which leaves out the search for them, or drop "
            "columns"
        )
        with pytest.warns(WaitWarning, match=re.escape(expected)), pytest.raises(Started):
            LANAMRegressor(random_state=0).fit(X, y)

    def test_of_many_classes_names_these(self):
        X, _ = rows(400, 3)
        with (
            pytest.warns(WaitWarning, match=r"3 columns and 100 classes .* merge rare classes, or"),
            pytest.raises(Started),
        ):
            LANAMClassifier(interactions=0, random_state=0).fit(X, np.arange(400) % 100)

    @pytest.mark.parametrize(("n_rows", "n_columns"), [(5, 100), (1000, 30)])
    def test_is_not_given_for_ordinary_fits(self, n_rows, n_columns):
        with pytest.raises(Started):  # warnings are errors
            LANAMRegressor(random_state=0).fit(*rows(n_rows, n_columns))

    def test_without_interactions_there_are_no_pairs_to_wait_for(self):
        with pytest.raises(Started):
            LANAMRegressor(interactions=0, random_state=0).fit(*rows(5, 300))


def test_the_command_line_shows_a_wait_at_once_in_its_words(capsys):
    plan = Plan("columns", 5, 500, 500, 2501, 1e9, False, 1, 2500, 124_750)
    with Console().warnings():
        warn_user(UserWarning("of the fit"))
        sessions._warn_of_wait(plan)
        before = capsys.readouterr().err
    assert "this fit may take about 4 minutes" in before
    assert "--interactions 0" in before
    assert "of the fit" not in before
    assert "of the fit" in capsys.readouterr().err


class TestAnInterrupt:
    def test_before_the_first_pass_has_no_model_to_keep(self, monkeypatch):
        """A model without any pass would take long to complete, and predict the mean."""

        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("lanam.core.inference.gauss_newton.converge", interrupted)
        with pytest.raises(KeyboardInterrupt):
            LANAMRegressor(random_state=0).fit(*rows(50, 2))

    def test_later_leaves_out_what_takes_longest(self, monkeypatch):
        """The uncertainty of hyperparameters took a minute for 5 rows of 400 columns."""
        real = fitting.fit

        def fit(tables, likelihood, options, *more, **keywords):
            def stop(_):
                raise KeyboardInterrupt

            return real(tables, likelihood, replace(options, on_iteration=stop), *more, **keywords)

        def forbidden(*_, **__):
            raise AssertionError

        monkeypatch.setattr(fitting, "fit", fit)
        monkeypatch.setattr(fitting, "_WIDE", 0)
        monkeypatch.setattr(uncertainty, "integrate", forbidden)
        monkeypatch.setattr(fitting, "diagnose", forbidden)
        X, y = rows(50, 2)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = LANAMRegressor(random_state=0).fit(X, y)
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0.0).all()
        assert "NOT converged" in str(model.summary())


def test_the_expected_numbers_are_near_the_actual_ones():
    X, y = rows(200, 4)
    labels = np.digitize(y, [-0.5, 0.5])
    model = LANAMClassifier(interactions=0, random_state=0).fit(X, labels)
    (plan,) = model.plan_.stages
    assert (plan.n_outputs, plan.n_pairs) == (2, 0)
    assert plan.n_coordinates == 2 * 4 * prepare.COLUMN_WIDTH
