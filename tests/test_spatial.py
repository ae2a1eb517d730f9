"""``spatial``: one surface of two coordinates, with their main effects and alike in all directions."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival, load
from lanam.errors import InputError
from lanam.explain.portable import explain_portable
from lanam.plot import plot_interaction

PAIR = [("east", "north")]


def country(n_rows=500, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "east": rng.uniform(0, 10, n_rows),
            "north": rng.uniform(40, 46, n_rows),
            "age": rng.uniform(0, 1, n_rows),
        }
    )
    f = np.sin(X["east"]) * np.cos(1.5 * X["north"]) + X["age"]
    return X, f.to_numpy(), rng


@pytest.fixture(scope="module")
def mapped():
    X, f, rng = country()
    y = f + 0.2 * rng.normal(size=len(X))
    return X, f, y, LANAMRegressor(spatial=PAIR, noise="constant").fit(X, y)


def test_the_surface_is_found_and_has_no_curves_beside_it(mapped):
    X, f, _, model = mapped
    assert np.mean((model.predict(X) - f) ** 2) < 0.04 * np.var(f)
    status = {term.name: (term.kind, term.status) for term in model.terms_}
    assert status["east x north"] == ("spatial", "active")
    assert status["east"][1] == status["north"][1] == "left out: a coordinate of a surface"
    assert "east x north" not in [row["pair"] for row in model.interaction_scores_.rows]


def test_its_band_holds_the_truth(mapped):
    X, f, _, model = mapped
    columns = model.predict_terms(X, return_std=True)
    k = [term.name for term in model.terms_].index("east x north")
    mean, std = columns[0][:, k], columns[1][:, k]
    truth = f - X["age"] - np.mean(f - X["age"])
    assert 0.88 < np.mean(np.abs(mean - truth) < 1.96 * std) <= 1.0


def test_directions_are_alike():
    rng = np.random.default_rng(1)
    places = rng.normal(size=(400, 2))
    turned = places @ np.array([[0.8, -0.6], [0.6, 0.8]])
    f = np.sin(2.0 * places[:, 0])
    y = f + 0.2 * rng.normal(size=400)
    errors = [
        np.mean((LANAMRegressor(spatial=[(0, 1)], noise="constant").fit(X, y).predict(X) - f) ** 2)
        for X in (places, turned)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=0.25)
    assert max(errors) < 0.05 * np.var(f)


def test_more_rows_are_a_finer_map():
    X, f, _ = country(1200)
    shapes = []
    for n_rows in (300, 1200):
        model = LANAMRegressor(spatial=PAIR, noise="constant").fit(X[:n_rows], f[:n_rows])
        shapes.append(model.explain_global()["east x north"].mean.shape)
    assert shapes[0] < shapes[1]


def test_noise_alone_has_no_surface():
    X, _, rng = country(300)
    model = LANAMRegressor(spatial=PAIR, noise="constant").fit(X, rng.normal(size=300))
    assert not [term for term in model.terms_ if term.active and term.kind == "spatial"]
    assert {term.status for term in model.terms_ if term.name in ("east", "north")} == {
        "dropped: not supported by the data"
    }


def test_rows_without_a_position_are_predicted(mapped):
    X, _, y, _ = mapped
    X = X.copy()
    X.loc[::10, "north"] = np.nan
    y = np.where(X["north"].isna(), y + 3.0, y)
    model = LANAMRegressor(spatial=PAIR, interactions=0, noise="constant").fit(X, y)
    lost = X["north"].isna()
    assert np.mean(model.predict(X)[lost]) == pytest.approx(np.mean(y[lost]), abs=0.3)


def test_files_have_the_same_map(mapped, tmp_path):
    X, _, y, model = mapped
    X.assign(y=y).to_parquet(tmp_path / "t.parquet")
    again = LANAMRegressor(spatial=PAIR, noise="constant").fit(tmp_path / "t.parquet", "y")
    assert again.predict(X) == pytest.approx(model.predict(X), abs=1e-6)


def test_saved_models_can_be_trained_further(mapped, tmp_path):
    X, _, y, model = mapped
    again = load(model.save(tmp_path / "m.lanam"))
    assert np.array_equal(again.predict(X), model.predict(X))
    wider = again.add_interactions(X, y, [("east", "age")])
    # Other anchors, by the mass that the file has: the same prior, but for what anchors leave out.
    assert np.std(wider.predict(X) - model.predict(X)) < 0.05


def test_classes_and_survival_have_maps():
    X, f, rng = country(250)
    grades = np.digitize(f + 0.2 * rng.normal(size=250), [0.0, 1.0])
    classes = LANAMClassifier(spatial=PAIR, interactions=0).fit(X, grades)
    time = rng.exponential(np.exp(-2.0 * f))
    alive = LANAMSurvival(spatial=PAIR, interactions=0, time_interactions=0)
    alive.fit(X, event=time < 2, time=np.minimum(time, 2))
    for model in (classes, alive):
        assert [term.name for term in model.terms_ if term.kind == "spatial" and term.active]


def test_its_plot_is_a_map_with_contours_of_the_standard_deviation(mapped):
    axes = plot_interaction(mapped[3].explain_global(), "east x north")
    words = " ".join(text.get_text() for text in axes[0].figure.findobj(plt.Text))
    assert "including their main effects" in words.replace("\n", " ")
    assert "Contours: standard deviation." in words.replace("\n", " ")
    assert axes[0].get_aspect() == 1.0
    plt.close("all")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"spatial": [("east", "nroth")]}, "spatial names the column 'nroth'"),
        ({"spatial": ("east", "north")}, "is not a pair"),
        ({"spatial": [("east", "place")]}, "the column 'place', which is categorical"),
        ({"spatial": [("east", "north"), ("north", "age")]}, "two surfaces of the column 'north'"),
        ({"spatial": PAIR, "linear": ["east"]}, "both name the column 'east'"),
        ({"spatial": PAIR, "interactions": [("north", "east")]}, "has as a surface"),
        ({"spatial": PAIR, "hidden_sizes": (8,)}, "infinitely wide networks"),
    ],
)
def test_what_cannot_be_a_surface(arguments, words):
    X, f, _ = country(60)
    X["place"] = np.where(X["age"] > 0.5, "a", "b")
    with pytest.raises(InputError, match=words):
        LANAMRegressor(**arguments).fit(X, f)


def test_a_constant_coordinate_is_refused():
    X, f, _ = country(60)
    with pytest.raises(InputError, match="'north', which is constant"):
        LANAMRegressor(spatial=PAIR).fit(X.assign(north=1.0), f)


def test_the_band_is_the_priors_where_no_data_is():
    rng = np.random.default_rng(0)
    places = rng.uniform(-3.0, 3.0, size=(1500, 2))
    places = places[np.hypot(*places.T) > 1.5]  # a lake
    f = np.sin(1.5 * places[:, 0]) + np.cos(2.0 * places[:, 1])
    y = f + 0.1 * rng.normal(size=len(f))
    model = LANAMRegressor(spatial=[(0, 1)], noise="constant").fit(places, y)
    lake = rng.uniform(-0.5, 0.5, size=(50, 2))
    truth = np.sin(1.5 * lake[:, 0]) + np.cos(2.0 * lake[:, 1])
    mean, std = (part.sum(axis=1) for part in model.predict_terms(lake, return_std=True))
    away = np.abs(model.intercept_ + mean - truth)
    assert np.mean(away < 2.0 * std) > 0.9
    on_land = model.predict_terms(places, return_std=True)[1].sum(axis=1)
    assert std.min() > 3.0 * np.median(on_land)


def test_differences_need_the_other_coordinate(mapped):
    model = mapped[3]
    explanation = model.explain_global()
    at = [pd.DataFrame({"east": [east], "north": [42.0], "age": [0.5]}) for east in (3.0, 5.0)]
    expected = model.predict(at[0]) - model.predict(at[1])
    found = explanation.difference("east", 3.0, 5.0, given={"north": 42.0})
    assert found.mean == pytest.approx(expected[0])
    with pytest.raises(ValueError, match="is a coordinate of a surface"):
        explanation.difference("east", 3.0, 5.0)
    assert explanation.difference("east", 3.0, 5.0, given="average").std > 0.0


def test_coordinates_have_fields_in_the_report(mapped, tmp_path):
    pytest.importorskip("plotly")
    from lanam.report import gather
    from lanam.report.fields import fields

    X, _, _, model = mapped
    known = dict.fromkeys(("normals", "title", "report", "rows", "noise"))
    material = gather(
        model,
        portable=explain_portable(model._model, model._schema),
        schema=model._schema,
        coverage=0.95,
        part="unknown",
        **known,
    )
    east = fields(material)[0][0]
    assert east["low"] < 1.0 < 9.0 < east["high"]
    assert east["value"] == pytest.approx(X["east"].median(), abs=1.0)


def test_dask_frames_have_the_same_map(mapped):
    pytest.importorskip("distributed")
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    X, _, y, model = mapped
    frame = dd.from_pandas(X.assign(y=y), npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        again = LANAMRegressor(spatial=PAIR, noise="constant").fit(frame, "y")
    assert again.predict(X) == pytest.approx(model.predict(X), abs=1e-6)
