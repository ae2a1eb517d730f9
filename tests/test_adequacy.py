"""What a model misses: nothing of additive truths, planted interactions by their columns."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_predict

from lanam import LANAMClassifier, LANAMRegressor, LANAMSurvival
from lanam.black_box import LeftOver, boost, encode_for_trees
from lanam.errors import InputError
from lanam.families import GAUSSIAN
from lanam.metrics import Adequacy
from lanam.plot import plot_adequacy
from lanam.provenance import HeldOut, features_fingerprint


def uniform(n_rows, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, size=(n_rows, n_columns)), rng


def fitted(X, y, **parameters):
    return LANAMRegressor(interactions=0, noise="constant", **parameters).fit(X, y)


@pytest.fixture(scope="module")
def crossed():
    """A product that a model without interactions misses, and its adequacy."""
    X, rng = uniform(500)
    y = X[:, 0] + 3 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=500)
    model = fitted(X, y)
    return X, y, model, model.adequacy(X, y, n_splits=3)


def test_nothing_is_missed_of_an_additive_truth():
    for seed in range(3):
        X, rng = uniform(400, seed=seed)
        y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=400)
        missed = fitted(X, y).adequacy(X, y, n_splits=3).missed
        assert missed.lower <= 0.0 <= missed.upper < 0.1


def test_a_product_is_found(crossed):
    *_, adequacy = crossed
    # The variance of the product, of that of all, both over that of three times a uniform number's.
    truth = (9 / 9) / (9 / 9 + 1 / 3)
    assert truth - 0.2 < adequacy.missed.share < truth + 0.05
    assert adequacy.together[0].columns == ("x1", "x2")
    others = [each for each in adequacy.together[1:] if each.clear]
    assert all(each.share < 0.1 for each in others)
    assert adequacy.loss - adequacy.black_box_loss == pytest.approx(adequacy.missed.gain)
    whole = adequacy.constant_loss - adequacy.black_box_loss
    assert adequacy.missed.share == pytest.approx(adequacy.missed.gain / whole)


def test_a_product_of_three_columns_is_found_whole():
    X, rng = uniform(700)
    y = X[:, 0] + 6 * X[:, 0] * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=700)
    adequacy = fitted(X, y).adequacy(X, y, n_splits=3)
    assert adequacy.together[0].columns == ("x0", "x1", "x2")
    assert adequacy.missed.clear
    assert adequacy.missed.share > 0.5


def test_losses_are_those_of_refitted_models(crossed):
    X, y, _model, adequacy = crossed
    # Of other folds, so that they agree up to their noise.
    mean = cross_val_predict(LANAMRegressor(interactions=0, noise="constant"), X, y, cv=3)
    assert adequacy.loss == pytest.approx(np.mean((y - mean) ** 2), rel=0.05)
    assert adequacy.constant_loss == pytest.approx(np.var(y), rel=0.05)
    assert adequacy.refitted


def test_rows_that_were_held_out_need_no_refit(crossed, monkeypatch):
    X, y, model, _ = crossed
    monkeypatch.setattr(LANAMRegressor, "fit", None)
    adequacy = model.adequacy(X, y, held_out=True, n_splits=3, max_columns=0)
    assert not adequacy.refitted
    assert adequacy.together == ()
    assert adequacy.loss == pytest.approx(np.mean((y - model.predict(X)) ** 2))


def test_rows_without_weight_do_not_count(crossed):
    X, y, model, _ = crossed
    options = {"held_out": True, "n_splits": 3, "max_columns": 0}
    weight = np.ones(500)
    weight[::5] = 0.0
    some = weight > 0.0
    weighted = model.adequacy(X, y, sample_weight=weight, **options)
    assert weighted.to_dict() == model.adequacy(X[some], y[some], **options).to_dict()
    assert weighted.n_rows == 400


def test_weights_count_rows():
    X, y = uniform(60)[0], np.arange(60.0)
    weight = 1.0 + np.arange(60) % 2
    column = np.zeros(60, dtype=bool)
    one = LeftOver(
        X, column[:3], y, y * 0, y * 0, np.ones(60), weight, np.arange(60), GAUSSIAN.likelihood()
    )
    assert one.losses(y * 0) == pytest.approx(y**2)
    assert one.row_weight == pytest.approx(weight)


def test_categories_missing_values_and_exposures():
    X, rng = uniform(700, 2)
    group = rng.choice(["a", "b", "c"], 700)
    hours = rng.uniform(0.5, 2.0, 700)
    slope = pd.Series({"a": -1.5, "b": 0.0, "c": 1.5})[group].to_numpy()
    table = pd.DataFrame({"x": X[:, 0], "group": group, "other": X[:, 1]})
    table.loc[::10, "x"] = np.nan
    rate = np.exp(0.5 + slope * np.nan_to_num(table["x"].to_numpy()))
    y = rng.poisson(rate * hours)
    model = LANAMRegressor(likelihood="poisson", interactions=0).fit(table, y, exposure=hours)
    adequacy = model.adequacy(table, y, exposure=hours, n_splits=2)
    assert adequacy.measure == "deviance"
    assert adequacy.missed.clear
    assert adequacy.together[0].columns == ("x", "group")
    with pytest.raises(InputError, match="fitted with an exposure"):
        model.adequacy(table, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_measured_in_nats(n_classes):
    X, rng = uniform(600, 2)
    y = np.digitize(3 * X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=600), [0.0, 0.6][: n_classes - 1])
    labels = np.array(["low", "middle", "high"])[y]
    model = LANAMClassifier(interactions=0).fit(X, labels)
    adequacy = model.adequacy(X, labels, n_splits=2)
    assert adequacy.measure == "log loss (nats)"
    shares = np.bincount(y) / 600
    assert adequacy.constant_loss == pytest.approx(-(shares * np.log(shares)).sum(), rel=0.02)
    assert adequacy.together[0].columns == ("x0", "x1")


def test_a_class_of_one_row_cannot_be_left_out():
    X, _ = uniform(60, 2)
    y = np.where(X[:, 0] > 0.0, "b", "a")
    model = LANAMClassifier(interactions=0).fit(X, np.append(y[:-2], ["c", "c"]))
    with pytest.raises(InputError, match="all classes of the model"):
        model.adequacy(X, np.append(y[:-1], "c"), n_splits=2)


def test_more_held_out_rows_than_are_sampled_need_no_refit(crossed):
    X, y, *_ = crossed
    some = np.arange(500) % 2 == 0
    part = fitted(X[some], y[some])
    fingerprint = features_fingerprint(part._columns(X[~some]))
    part.provenance_ = replace(part.provenance_, held_out=HeldOut(~some, fingerprint))
    found = part.adequacy(X[~some], y[~some], max_rows=100, n_splits=2, max_columns=0)
    assert (found.refitted, found.n_rows) == (False, 100)


def test_offsets_are_known_to_all():
    X, rng = uniform(300, 2)
    offset = 100.0 * X[:, 1]
    y = X[:, 0] + offset + 0.3 * rng.normal(size=300)
    model = LANAMRegressor(interactions=0).fit(X[:, :1], y, offset=offset)
    adequacy = model.adequacy(X[:, :1], y, offset=offset, n_splits=3)
    assert adequacy.constant_loss == pytest.approx(np.var(y - offset), rel=0.1)
    assert not adequacy.missed.clear


def test_survival_finds_what_its_hazard_misses():
    X, rng = uniform(900, 2)
    time = rng.exponential(np.exp(-4 * X[:, 0] * X[:, 1]))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(
        died=np.where(time < 2, 1 + (rng.random(900) < 0.1), 0), days=np.minimum(time, 2)
    )
    model = LANAMSurvival(interactions=0, time_interactions=0, n_intervals=4)
    model.fit(table, event="died", time="days")
    adequacy = model.for_cause(1).adequacy(table, event="died", time="days", n_splits=3)
    assert adequacy.measure == "log loss (nats)"
    assert adequacy.n_rows == 900
    assert adequacy.together[0].columns == ("a", "b")
    assert adequacy.missed.clear
    with pytest.raises(InputError, match="each with a hazard of its own"):
        model.adequacy(table, event="died", time="days")


def test_trees_are_none_where_nothing_is_left():
    X, rng = uniform(200)
    nothing = np.zeros(200)
    left = LeftOver(
        X,
        np.zeros(3, dtype=bool),
        rng.normal(size=200),
        nothing,
        nothing,
        np.ones(200),
        np.ones(200),
        np.arange(200),
        GAUSSIAN.likelihood(),
    )
    trees = boost(left, np.arange(200), 0)
    assert trees.rounds == ()
    assert not trees.predict(X).any()


def test_trees_have_codes_of_bins_and_categories():
    values = np.repeat(np.arange(300.0), 3)
    values[:5] = np.nan
    values[-3:] = 7.0
    table = np.column_stack([values, values, values % 5])
    encoded = encode_for_trees(table, np.array([True, False, False]))
    assert np.array_equal(np.isnan(encoded), np.isnan(table))
    assert encoded[-1, 0] == 0.0  # the most frequent one
    assert np.nanmax(encoded[:, 0]) == 249.0 >= np.nanmax(encoded[:, 1]) > 240.0
    order = np.argsort(values[5:], kind="stable")
    assert (np.diff(encoded[5:, 1][order]) >= 0.0).all()
    assert np.array_equal(encoded[:, 2], table[:, 2], equal_nan=True)  # few values are kept apart


def test_an_edited_model_cannot_be_refitted(crossed):
    X, y, model, _ = crossed
    edited = model.edit_term("x0", "zero")
    with pytest.raises(InputError, match="held_out=True"):
        edited.adequacy(X, y)
    assert edited.adequacy(X, y, held_out=True, max_columns=0).loss > 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_splits": 1}, "n_splits=1"),
        ({"n_splits": 400}, "n_splits=400 folds need at least twice as many rows"),
        ({"max_columns": -1}, "max_columns=-1"),
        ({"coverage": 95}, "coverage"),
        ({"sample_weight": -np.ones(500)}, "sample_weight"),
    ],
)
def test_wrong_arguments(crossed, arguments, words):
    X, y, model, _ = crossed
    with pytest.raises(ValueError, match=words):
        model.adequacy(X, y, **arguments)


def test_more_rows_are_sampled(crossed):
    X, y, model, _ = crossed
    adequacy = model.adequacy(X, y, max_rows=100, n_splits=2, max_columns=0, held_out=True)
    assert adequacy.n_rows == 100


def test_it_prints_and_is_data(crossed):
    *_, adequacy = crossed
    text = str(adequacy)
    assert text.startswith("The model misses")
    assert "x1 x x2" in text
    assert "squared error" in text
    assert adequacy.basis in text
    frame = adequacy.to_frame("pandas")
    assert frame["columns"].tolist()[:2] == ["all columns", "x1 x x2"]
    assert frame["share"][1] == adequacy.together[0].share
    assert adequacy.to_dict()["missed"]["share"] == adequacy.missed.share
    assert "<table>" in adequacy._repr_html_()


def test_the_plot_shows_the_shares(crossed):
    *_, adequacy = crossed
    ax = plot_adequacy(adequacy, max_sets=2)
    assert [bar.get_width() for bar in ax.patches] == [
        100 * each.share for each in (adequacy.missed, *adequacy.together[:2])
    ]
    assert "95% intervals" in "".join(text.get_text() for text in ax.figure.findobj(plt.Text))
    plt.close("all")
    with pytest.raises(TypeError, match="adequacy"):
        plot_adequacy("model")
    assert isinstance(adequacy, Adequacy)


def test_the_report_shows_it(crossed, tmp_path):
    pytest.importorskip("plotly")
    X, y, model, _ = crossed
    page = model.report(tmp_path / "a.html", X[:200], y[:200], adequacy=True).read_text("utf-8")
    assert 'id="adequacy"' in page
    assert "Missed share by columns" in page
    assert 'id="adequacy"' not in model.report(tmp_path / "b.html", X, y).read_text("utf-8")
    with pytest.raises(InputError, match="adequacy is of rows and their targets"):
        model.report(tmp_path / "c.html", adequacy=True)
