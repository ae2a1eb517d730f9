"""Which format is written, where, and with which options."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from lanam import LANAMRegressor
from lanam.export import FORMATS
from tests.export.cases import case


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    fitted = LANAMRegressor(interactions=0, hidden_sizes=(16,), random_state=0)
    return fitted.fit(X, X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=200))


def content(path):
    return path.read_bytes() if path.suffix == ".onnx" else path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", FORMATS)
def test_the_extension_selects_the_format(model, kind, tmp_path):
    path = model.export(tmp_path / f"model.{kind}")
    assert path == tmp_path / f"model.{kind}"
    assert content(path) == model.export(None, to=kind)
    assert model.export(str(tmp_path / "model.X"), to=kind) == tmp_path / "model.X"
    assert (tmp_path / "model.X").read_bytes() == path.read_bytes()


def test_columns_without_names(model):
    query = model.export(None, to="sql", variance=False)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE data (x0 REAL, x1 REAL)")
        database.execute("INSERT INTO data VALUES (0.5, -0.5)")
        (row,) = database.execute(query)
    assert row == pytest.approx((0.5, -0.5, model.predict([[0.5, -0.5]])[0]), rel=1e-6)


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (
            "model.txt",
            None,
            r"'model.txt' has no known extension: end it with one of .json",
        ),
        ("model", None, "'model' has no known extension"),
        ("model.json", "xml", r"to='xml' is not known: choose from 'json', 'csv', 'sql', 'onnx'"),
        (None, None, "path=None returns the content: specify its format"),
        (None, "pmml", "to='pmml' is not known"),
    ],
)
def test_unknown_formats(model, path, to, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        model.export(path and tmp_path / path, to)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("to", "option", "message"),
    [
        ("csv", "variance", "export to='csv' has no option 'variance': its options are bands"),
        (
            "json",
            "dialect",
            "export to='json' has no option 'dialect': its options are variance, indent",
        ),
        ("sql", "calibration", "its options are table, columns, keep, dialect, variance"),
        ("onnx", "table", "its options are columns, missing, variance"),
    ],
)
def test_unknown_options(model, to, option, message):
    with pytest.raises(TypeError, match=message):
        model.export(None, to=to, **{option: None})


def test_a_failed_export_keeps_the_existing_file(model, tmp_path):
    path = tmp_path / "score.sql"
    path.write_text("SELECT 1")
    with pytest.raises(ValueError, match="dialect='mysql'"):
        model.export(path, dialect="mysql")
    assert path.read_text() == "SELECT 1"
    assert list(tmp_path.iterdir()) == [path]


def test_places_where_no_file_can_be(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        model.export(tmp_path / "nowhere" / "model.json")
    with pytest.raises(
        IsADirectoryError, match=r"is a folder: pass the name of a file, such as model\.json"
    ):
        model.export(tmp_path, to="json")


def test_unfitted():
    with pytest.raises(NotFittedError):
        LANAMRegressor().export("model.json")
    assert not Path("model.json").exists()


def test_other_alphabets_stay_as_they_are(tmp_path):
    found = case("odd").model
    for kind in ("json", "csv", "sql"):
        assert "Ünï" in found.export(tmp_path / f"odd.{kind}").read_text(encoding="utf-8")
