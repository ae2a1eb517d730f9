"""A model with a term of three columns, made by hand: scored, explained, saved, exported and edited."""

import copy
import json
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lanam import LANAMRegressor, load
from lanam.core.arrays import fixed_point
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedTerm
from lanam.core.terms.knots import Grid, place_knots, summarise
from lanam.plot import plot_importance, plot_interaction, plot_local, plot_shapes
from tests.core.in_memory import place_categories
from tests.export import test_json, test_onnx, test_sql
from tests.oracles import assert_close, entry_matrix

RNG = np.random.default_rng
N, WIDTH = 150, 4
CITIES = ["Bonn", "Paris", "Rome"]
NAME = "age x city x size"


@pytest.fixture(scope="module")
def table():
    rng = RNG(0)
    city = rng.integers(0, 3, N)
    size = rng.exponential(size=N).round(2)
    city_names = np.array(CITIES, dtype=object)[city]
    city_names[:5] = None
    size[rng.uniform(size=N) < 0.1] = np.nan
    X = pd.DataFrame({"age": rng.uniform(20, 80, N).round(), "city": city_names, "size": size})
    return X, X["age"] / 20 + city + np.nan_to_num(size) + rng.normal(size=N)


def columns_of(X):
    return np.column_stack(
        [X["age"], X["city"].map(dict(zip(CITIES, range(3), strict=True))), X["size"]]
    ).astype(float)


@pytest.fixture(scope="module")
def model(table):
    """A fitted model, and beside its terms one of all three columns."""
    X, y = table
    model = LANAMRegressor(interactions=0, random_state=0).fit(X, y)
    age, city, size = columns_of(X).T
    axes = (
        place_knots(summarise(age, np.ones(N)), 5, np.array([0.2])),
        place_categories(city, np.ones(N), 3),
        place_knots(summarise(size, np.ones(N)), 4, np.array([0.2])),
    )
    grid = Grid(axes)
    rng = RNG(1)
    share = entry_matrix(grid, age, city, size).mean(axis=0)
    term = FittedTerm(
        kind="interaction",
        features=(0, 1, 2),
        entries=grid,
        data_mass=share,
        mean=rng.normal(size=len(grid)),
        table=fixed_point(rng.normal(size=(len(grid), WIDTH))),
        status="active",
        importance=0.7,
        effective_parameters=3.0,
        evidence=5.0,
        precision=np.ones(2),
        expansion=np.empty(0),
    )
    known = model._model
    n_before = len(known.cov_cholesky) - 1
    root = np.zeros((n_before + WIDTH + 1,) * 2)
    old = [*range(n_before), n_before + WIDTH]
    root[np.ix_(old, old)] = known.cov_cholesky
    root[n_before:-1, : n_before + WIDTH] = 0.02 * rng.normal(size=(WIDTH, n_before + WIDTH))
    made = replace(known, terms=(*known.terms, term), cov_cholesky=fixed_point(np.tril(root)))
    result = copy.copy(model)
    result._set_fitted(made, model._schema, N, "evidence")
    return result


@pytest.fixture(scope="module")
def rows():
    """Rows on knots and between them, beyond the data, missing, and of cities never seen."""
    return pd.DataFrame(
        {
            "age": [33.0, 51.5, 20.0, 95.0, 64.2, 40.0],
            "city": ["Rome", "Bonn", "Paris", "Rome", None, "Bonn"],
            "size": [0.4, np.nan, 1.25, 0.0, 2.5, 0.77],
        }
    )


@pytest.fixture(scope="module")
def expected(model, rows):
    """Mean and variance of the term in these rows, from what each takes of every entry."""
    term = model._model.terms[-1]
    columns = columns_of(rows)
    weights = entry_matrix(term.entries, *columns.T)
    root = model._model.cov_cholesky[-WIDTH - 1 : -1]
    design = weights @ term.table
    return weights @ term.mean, np.einsum("ni,ij,nj->n", design, root @ root.T, design)


@pytest.fixture(scope="module")
def moments(model, rows):
    """Mean and variance of the rows' predictions, without noise."""
    return scoring.link_moments(model._model, columns_of(rows))


class TestScoring:
    def test_reads_its_table(self, model, rows, expected):
        mean, std = model.predict_terms(rows, return_std=True)
        assert_close(mean[:, -1], expected[0], "single precision")
        assert_close(std[:, -1] ** 2, expected[1], "single precision")

    def test_is_part_of_predictions_and_draws(self, model, rows):
        terms = model.predict_terms(rows)
        assert_close(model.predict(rows), model.intercept_ + terms.sum(axis=1), "rounding")
        draws = model.sample(rows, 4000, random_state=0)
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - model.predict(rows)) < 5.0 * error).all()

    def test_is_saved_and_loaded(self, model, rows, tmp_path):
        model.save(tmp_path / "model.lanam")
        again = load(tmp_path / "model.lanam")
        assert again._model.terms[-1].entries.shape == model._model.terms[-1].entries.shape
        for found, known in zip(
            again.predict(rows, return_std=True), model.predict(rows, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(found, known)
        assert again.explain_global().to_json() == model.explain_global().to_json()


class TestExplaining:
    def test_the_surface_has_an_axis_for_every_column(self, model, table):
        surface = model.explain_global()[NAME]
        grid = model._model.terms[-1].entries
        assert (surface.name, surface.kind, surface.joint) == (NAME, "interaction", True)
        assert surface.mean.shape == surface.std.shape == surface.density.shape == grid.shape
        assert [axis.name for axis in surface.axes] == ["age", "city", "size"]
        assert [axis.kind for axis in surface.axes] == ["numeric", "categorical", "numeric"]
        assert surface.axes[1].values.tolist() == CITIES
        assert [axis.others for axis in surface.axes] == [
            (),
            ("(missing)", "(other levels)"),
            ("(missing)",),
        ]
        for k, axis in enumerate(surface.axes):
            others = tuple(other for other in range(3) if other != k)
            np.testing.assert_allclose(axis.density, surface.density.sum(axis=others))
            np.testing.assert_array_equal(axis.inside, surface.inside.any(axis=others))
        np.testing.assert_array_equal(surface.axes[2].values, grid.axes[2].values)
        assert surface.values is surface.axes[0].values
        lower, upper = surface.band(simultaneous=True)
        assert lower.shape == upper.shape == grid.shape
        assert NAME not in [pair.name for pair in model.explain_global().pairs]

    def test_as_plain_data_and_as_a_frame(self, model):
        explanation = model.explain_global()
        surface, facts = explanation[NAME], json.loads(explanation.to_json())["terms"][-1]
        assert np.shape(facts["mean"]) == surface.mean.shape
        for prefix, axis in zip(("", "second_", "third_"), surface.axes, strict=True):
            assert facts[f"{prefix}values"] == axis.values.tolist()
            assert tuple(facts[f"{prefix}others"]) == axis.others
        frame = explanation.to_frame(beyond=True)
        own = frame[frame["term"] == NAME]
        assert len(own) == surface.mean.size
        i, j, k = np.unravel_index(61, surface.mean.shape)
        row = own.iloc[61]
        assert row["mean"] == surface.mean[i, j, k]
        assert row["value"] == surface.axes[0].values[i]
        assert row["second_level"] == [*CITIES, "(missing)", "(other levels)"][j]
        assert row["third_value"] == surface.axes[2].values[k]
        assert frame[frame["term"] == "age"]["third_value"].isna().all()

    def test_at_any_values(self, model, rows, expected):
        explanation = model.explain_global()
        with pytest.warns(UserWarning, match="outside the range of the training data"):
            mean, std = explanation.evaluate(NAME, rows["age"], rows["city"], rows["size"])
        assert_close(mean, expected[0], "single precision")
        assert_close(std**2, expected[1], "single precision")
        with pytest.raises(ValueError, match=f"'{NAME}' has 3 columns: pass values of each"):
            explanation.evaluate(NAME, rows["age"], rows["city"])

    def test_rows(self, model, rows):
        local = model.explain_local(rows)
        assert len(local.column_values) == 3
        assert local.column_values[1][:4, -1].tolist() == rows["city"][:4].tolist()
        assert local.column_values[2][0, -1] == 0.4
        assert np.isnan(local.column_values[2][:, 0]).all()
        assert set(json.loads(local.to_json())) >= {"values", "second_values", "third_values"}
        frame = local.to_frame()
        assert frame[frame["term"] == NAME]["third_value"].tolist()[0] == 0.4

    def test_differences_with_and_without_the_other_columns(self, model):
        explanation = model.explain_global()
        alone = explanation.difference("age", 60, 30)
        assert alone.left_out == (NAME,)
        assert alone.left_out_columns == ("city", "size")
        given = explanation.difference("age", 60, 30, given={"city": "Rome", "size": 1.0})
        means = explanation.evaluate(NAME, [60, 30], ["Rome"] * 2, [1.0] * 2)[0]
        assert given.mean - alone.mean == pytest.approx(means[0] - means[1], rel=1e-5)

    def test_differences_on_average_over_the_other_columns(self, model, table):
        explanation = model.explain_global()
        alone = explanation.difference("age", 60, 30)
        averaged = explanation.difference("age", 60, 30, given="average")
        assert averaged.averaged == ("city", "size")
        X = table[0]
        sides = [
            explanation.evaluate(NAME, [age] * N, X["city"].tolist(), X["size"].tolist())[0].mean()
            for age in (60, 30)
        ]
        assert averaged.mean - alone.mean == pytest.approx(sides[0] - sides[1], abs=1e-5)


class TestDrawing:
    def test_slices_are_drawn(self, model):
        explanation = model.explain_global()
        surface = explanation[NAME]
        panels = plot_interaction(explanation, NAME)
        assert panels.shape == (3, 2)
        titles = [ax.get_title() for ax in panels[:, 0]]
        assert titles == [f"city = {city}: mean" for city in CITIES]
        assert {ax.get_xlabel() for ax in panels.ravel()} == {"age"}
        assert {ax.get_ylabel() for ax in panels.ravel()} == {"size"}
        # All slices have the same colours.
        limits = {ax.collections[0].get_clim() for ax in panels[:, 0]}
        seen = surface.density > 0.0
        assert limits == {(-np.abs(surface.mean[seen]).max(), np.abs(surface.mean[seen]).max())}
        notes = " ".join(text.get_text() for text in panels[0, 0].figure.texts)
        assert "Joint effect of the three columns" in notes
        figure = np.ravel(plot_shapes(explanation))[0].figure
        assert f"Interactions (see plot_interaction): {NAME}" in " ".join(
            text.get_text() for text in figure.texts
        )

    def test_slices_of_a_numeric_column_are_curves_of_categories(self, model):
        panels = plot_interaction(
            model.explain_global(), ("city", "size", "age"), by="age", n_slices=2
        )
        assert panels.shape == (2, 1)
        assert all(ax.get_title().startswith("age = ") for ax in panels[:, 0])
        whole = plot_interaction(model.explain_global(), NAME, by="size", main_effects=True)
        notes = " ".join(text.get_text() for text in whole[0, 0].figure.texts)
        assert "including the terms of one or two of them" in notes

    def test_unknown_slices(self, model):
        with pytest.raises(ValueError, match="by='zone' is not a column of 'age x city x size'"):
            plot_interaction(model.explain_global(), NAME, by="zone")
        with pytest.raises(ValueError, match="at each of 3 slices"):
            plot_interaction(model.explain_global(), NAME, axes=[plt.gca()])

    def test_slices_are_parts_of_the_table(self, model):
        surface = model.explain_global()[NAME]
        slices = surface.slices("city")
        for k, one in enumerate(slices):
            np.testing.assert_array_equal(one.mean, surface.mean[:, k])
            np.testing.assert_array_equal(one.std, surface.std[:, k])
            assert one.feature_names == ("age", "size")
            assert one.density.sum() == pytest.approx(1.0)
            for place, axis in enumerate(one.axes):
                np.testing.assert_allclose(axis.density, one.density.sum(axis=1 - place))
        # At values in the middles of halves of the data.
        ages = surface.axes[0]
        reached = np.cumsum(ages.density[: len(ages.values)])
        for half, one in zip((0.25, 0.75), surface.slices("age", 2), strict=True):
            k = int(np.searchsorted(reached, half * reached[-1]))
            np.testing.assert_array_equal(one.mean, surface.mean[k])
            assert one.name == f"{NAME} at age = {ages.values[k]:.4g}"

    def test_importances_and_rows_are(self, model, rows):
        labels = plot_importance(model.explain_global()).get_yticklabels()
        assert NAME in [label.get_text() for label in labels]
        labels = plot_local(model.explain_local(rows[3:4]), everything=True).get_yticklabels()
        assert "age = 95\nx city = Rome\nx size = 0" in [label.get_text() for label in labels]


class TestExports:
    @pytest.mark.parametrize("variance", [False, True])
    def test_sql(self, model, rows, variance, moments):
        for dialect in ("sqlite", "duckdb"):
            found = test_sql.scored(model, rows, dialect, variance=variance)
            np.testing.assert_allclose(found["link_mean"], moments[0], rtol=1e-5)
            if variance:
                np.testing.assert_allclose(found["link_variance"], moments[1], rtol=1e-5)

    def test_onnx(self, model, rows, moments):
        session = test_onnx.session_of(model.export(None, to="onnx"))
        found = test_onnx.run(session, rows)
        np.testing.assert_allclose(found["link_mean"].ravel(), moments[0], rtol=1e-5)
        np.testing.assert_allclose(found["link_variance"].ravel(), moments[1], rtol=1e-5)

    def test_json(self, model, rows, moments):
        tables = json.loads(model.export(None, to="json"))
        score = test_json.printed_scorer(tables)["score"]
        found = [score(row) for row in rows.to_dict("records")]
        np.testing.assert_allclose(np.ravel([mean for mean, _ in found]), moments[0], rtol=1e-5)
        np.testing.assert_allclose(np.ravel([own for _, own in found]), moments[1], rtol=1e-5)

    def test_a_rating_table(self, model, tmp_path):
        model.export(tmp_path / "rating.csv")
        table = pd.read_csv(tmp_path / "rating.csv")
        own = table[table["term"] == NAME]
        surface = model.explain_global()[NAME]
        # One more entry of age, as rows without it need one.
        shape = surface.mean.shape
        assert len(own) == (shape[0] + 1) * shape[1] * shape[2]
        assert own["third_column"].unique().tolist() == ["size"]
        first = own.iloc[0]
        assert first["contribution"] == pytest.approx(surface.mean[0, 0, 0])


class TestEditing:
    def test_zero_in_a_box(self, model, rows):
        where = {"low": {"age": 30}, "high": {"age": 45}, "levels": {"city": ["Rome"]}}
        edited = model.edit_term(NAME, "zero", **where)
        before, after = model.predict_terms(rows)[:, -1], edited.predict_terms(rows)[:, -1]
        assert after[0] == 0.0
        np.testing.assert_allclose(after[[1, 2, 3, 5]], before[[1, 2, 3, 5]], atol=1e-6)
        with pytest.raises(ValueError, match="is of 3 columns: use 'zero'"):
            model.edit_term(NAME, "smooth")
