"""Provenance: fingerprints of training data, dates, held-out rows; and that model files carry them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lanam
from lanam import LANAMClassifier, LANAMRegressor
from lanam.provenance import HeldOut, Target, held_out_rows, utc_now
from lanam.storage import ModelFileError, from_bytes, of_estimator, to_bytes
from lanam.storage.container import Contents, pack, unpack

GOLDEN = Path(__file__).parent / "storage" / "golden"


def rows(n_rows=80, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "g": rng.choice(["u", "v"], n_rows)})
    X.loc[3, "a"] = np.nan
    return X, X["a"].fillna(0.0) + (X["g"] == "v") + rng.normal(size=n_rows)


def fit(X, y, **more):
    return LANAMRegressor(interactions=0, noise="constant", max_iter=3, tol=1e6).fit(X, y, **more)


@pytest.fixture(scope="module")
def model():
    return fit(*rows())


class TestFingerprint:
    def test_it_is_of_the_rows_in_any_order_and_from_any_source(self, model, tmp_path):
        X, y = rows()
        known = model.provenance_.fingerprint
        assert re.fullmatch("[0-9a-f]{32}", known)
        assert fit(X[::-1], y[::-1]).provenance_.fingerprint == known
        X.assign(y=y).to_parquet(tmp_path / "rows.parquet", row_group_size=30)
        from_file = fit(str(tmp_path / "rows.parquet"), "y")
        assert from_file.provenance_.fingerprint == known

    def test_every_value_counts(self, model):
        X, y = rows()
        known = model.provenance_.fingerprint
        other_y = y.copy()
        other_y[5] += 1e-9
        weight = np.ones(80)
        weight[7] = 2.0
        for changed in (fit(X, other_y), fit(X, y, sample_weight=weight)):
            assert changed.provenance_.fingerprint[:16] == known[:16]  # the same features
            assert changed.provenance_.fingerprint != known
        other_X = X.copy()
        other_X.loc[5, "g"] = {"u": "v", "v": "u"}[X["g"][5]]
        assert fit(other_X, y).provenance_.fingerprint[:16] != known[:16]
        swapped = X.copy()
        swapped.loc[[1, 2], "a"] = X["a"][[2, 1]].to_numpy()
        assert fit(swapped, y).provenance_.fingerprint[:16] != known[:16]

    def test_rows_of_weight_zero_do_not_count(self, model):
        X, y = rows()
        more = fit(
            pd.concat([X, X[:5]], ignore_index=True),
            pd.concat([y, y[:5]]),
            sample_weight=np.repeat([1.0, 0.0], [80, 5]),
        )
        assert more.provenance_.fingerprint == model.provenance_.fingerprint

    def test_counts_have_exposures(self):
        X, _ = rows()
        y = np.arange(80) % 4
        prints = {
            LANAMRegressor(likelihood="poisson", interactions=0, tol=1e6)
            .fit(X, y, exposure=exposure)
            .provenance_.fingerprint
            for exposure in (None, np.linspace(1.0, 2.0, 80))
        }
        assert len(prints) == 2
        assert len({each[:16] for each in prints}) == 1


class TestDate:
    def test_it_is_that_of_the_fit(self, monkeypatch):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
        one, two = (unpack(to_bytes(of_estimator(fit(*rows())))) for _ in range(2))
        assert one.content["provenance"]["date"] == "1970-01-02T00:00:00Z"
        assert one.content["provenance"]["version"] == lanam.__version__
        for contents in (one, two):  # besides the date, only these differ
            for record in contents.content["model"]["history"]:
                del record["seconds"]
        assert pack(one) == pack(two)

    def test_without_a_given_time_it_is_now(self, model):
        assert model.provenance_.date > "2024-01-01T00:00:00Z"
        assert utc_now({"SOURCE_DATE_EPOCH": "yesterday"}) > "2024"


class TestParts:
    def test_rows_of_the_fit_are_recognised(self, model):
        X, _ = rows()
        new, _ = rows(30, seed=1)
        origin = model.provenance_
        assert origin.part_of(model._columns(X[::-1])) == "training"
        assert origin.part_of(model._columns(X[:-1])) == "unknown"
        held = held_out_rows(model, new, np.repeat([True, False], [30, 80]))
        origin = replace(origin, held_out=held)
        assert origin.part_of(model._columns(new)) == "held out"
        assert origin.part_of(model._columns(pd.concat([X, new]))) == "both"
        assert "30 of 110 rows" in repr(origin)

    @pytest.mark.parametrize("part", ["training", "unknown"])
    def test_the_report_says_so(self, model, part, tmp_path):
        X, y = rows() if part == "training" else rows(30, seed=1)
        page = model.report(tmp_path / "r.html", X, y).read_text()
        training = f"On the {len(y)} rows that the model was fitted to: the figures are too" in page
        assert training == (part == "training")
        assert f"fingerprint {model.provenance_.fingerprint}" in page
        assert f"{model.provenance_.date} with lanam {lanam.__version__}" in page


class TestFiles:
    def test_held_out_rows_are_in_the_file(self, model, tmp_path):
        twin = fit(*rows())
        held = np.random.default_rng(0).uniform(size=1003) < 0.2
        twin.provenance_ = replace(twin.provenance_, held_out=HeldOut(held, "0123456789abcdef"))
        same = lanam.load(twin.save(tmp_path / "m.lanam")).provenance_
        assert vars(same) | {"held_out": 0} == vars(twin.provenance_) | {"held_out": 0}
        np.testing.assert_array_equal(same.held_out.rows, held)
        assert same.held_out.fingerprint == "0123456789abcdef"
        assert lanam.load(model.save(tmp_path / "n.lanam")).provenance_.held_out is None

    def test_older_files_have_none(self, tmp_path):
        models = [lanam.load(path) for path in sorted(GOLDEN.glob("**/*.lanam"))]
        assert models
        old = models[0]
        assert old.provenance_ is None
        page = old.report(tmp_path / "r.html").read_text()
        assert "fingerprint" not in page.split("<script")[0]
        assert from_bytes(to_bytes(of_estimator(old))).provenance is None

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("fingerprint", "0" * 31),
            ("fingerprint", "G" * 32),
            ("date", "\x1b[31m"),
            ("date", "2024-05-01"),
            ("version", "1\n2"),
            ("version", 3),
            ("held_out", {"n_rows": 9, "fingerprint": "0" * 16}),
            ("held_out", {"n_rows": 0, "fingerprint": "0" * 16}),
            ("target", {"name": 3, "means": [0.5], "exposure": None}),
            ("target", {"name": "y", "means": 0.5, "exposure": None}),
            ("target", {"name": "y", "means": [0.5], "exposure": -1.0}),
            ("more", 1),
        ],
    )
    def test_damage_is_refused(self, model, key, value):
        contents = unpack(to_bytes(of_estimator(model)))
        content = contents.content
        content["provenance"][key] = value
        with pytest.raises(ModelFileError, match="damaged"):
            from_bytes(pack(Contents(content, contents.arrays)))

    def test_an_edited_model_has_the_provenance_of_its_fit(self, model):
        assert model.edit_term("a", "zero").provenance_ is model.provenance_

    def test_classifiers_have_it_too(self):
        X, y = rows()
        model = LANAMClassifier(interactions=0, max_iter=2, tol=1e6).fit(X, y > 0)
        assert model.provenance_.part_of(model._columns(X)) == "training"


class TestTarget:
    @pytest.mark.parametrize("where", ["Series", "column", "file", "array"])
    def test_its_name_is_known(self, where, tmp_path):
        X, y = rows()
        frame = X.assign(price=y)
        frame.to_parquet(tmp_path / "rows.parquet")
        given = {
            "Series": (X, frame["price"]),
            "column": (frame, "price"),
            "file": (tmp_path / "rows.parquet", "price"),
            "array": (X, np.asarray(y)),
        }
        target = fit(*given[where]).provenance_.target
        assert target.name == (None if where == "array" else "price")
        assert target.means == pytest.approx((y.mean(),))
        assert target.exposure is None

    def test_base_rates(self, tmp_path):
        X, y = rows()
        died = pd.Series((y > y.quantile(0.7)).astype(int), name="died")
        model = LANAMClassifier(interactions=0, max_iter=3, tol=1e6).fit(X, died)
        assert model.provenance_.target == Target("died", (pytest.approx(died.mean()),))
        page = model.report(tmp_path / "report.html").read_text()
        assert "<h1>P(died = 1): LANAMClassifier fitted to" in page
        assert f"<b>{died.mean():.1%}</b><span>base rate of died = 1</span>" in page
        assert "The log-odds of died = 1" in page
        three = pd.Series(np.digitize(y, y.quantile([0.2, 0.6])), name="third")
        model = LANAMClassifier(interactions=0, max_iter=3, tol=1e6).fit(X, three)
        assert model.provenance_.target.means == pytest.approx((0.2, 0.4, 0.4), abs=0.02)
        assert "0 (20.0%), 1 (40.0%)" in model.report(tmp_path / "report.html").read_text()

    def test_exposure(self, tmp_path):
        X, _ = rows()
        years = np.linspace(0.5, 1.5, len(X))
        claims = np.arange(len(X)) % 3
        model = LANAMRegressor(likelihood="poisson", interactions=0)
        target = model.fit(X, claims, exposure=years).provenance_.target
        assert target.exposure == pytest.approx(years.sum())
        assert target.means == pytest.approx((claims.sum() / years.sum(),))
        page = model.report(tmp_path / "report.html").read_text()
        assert f"<b>{years.sum():,.0f}</b><span>total exposure</span>" in page

    def test_model_files(self, tmp_path):
        X, y = rows()
        model = fit(X, pd.Series(y, name="price"))
        loaded = lanam.load(model.save(tmp_path / "m.lanam"))
        assert loaded.provenance_.target == model.provenance_.target
