"""A model's portable tables are complete: a reader of their documentation reproduces its predictions."""

import math

import numpy as np
import pandas as pd
import pytest

from lanam import LANAMClassifier, LANAMRegressor
from lanam.core.fit import prepare
from lanam.explain.portable import explain_portable
from tests.oracles import assert_close
from tests.report.examples import example, hard_rows


def portable(model):
    return explain_portable(model._model, model._schema, model._labels)


# the reader: row by row, in loops, from the docstring of lanam.explain.portable


def read_axis(axis, value):
    """Entries with interpolation weights; None for a missing value without an entry."""
    points = axis.points.tolist()
    if math.isnan(value):
        return None if axis.missing is None else [(axis.missing, 1.0)]
    if axis.kind == "codes":
        return [(points[int(value)] if 0 <= value < len(points) else axis.other, 1.0)]
    if axis.kind == "levels":
        for entry, point in enumerate(points):
            if abs(value - point) <= 1e-6 * abs(point):
                return [(entry, 1.0)]
        return [(axis.other, 1.0)]
    if axis.kind == "bins":
        return [(sum(point <= value for point in points), 1.0)]
    assert axis.kind == "knots"
    if value <= points[0]:
        return [(0, 1.0)]
    if value >= points[-1]:
        return [(len(points) - 1, 1.0)]
    right = next(entry for entry, point in enumerate(points) if point > value)
    share = (value - points[right - 1]) / (points[right] - points[right - 1])
    return [(right - 1, 1.0 - share), (right, share)]


def read_table(table, row):
    """Entries of a term's table with weights; None for a missing value without an entry."""
    reads = [read_axis(axis, row[k]) for axis, k in zip(table.axes, table.features, strict=True)]
    if None in reads:
        return None
    if len(reads) == 1:
        return reads[0]
    first, second = reads
    n_second = table.axes[1].n_entries
    return [(i * n_second + j, p * q) for i, p in first for j, q in second]


def weighted(array, entries):
    return sum(weight * np.asarray(array[entry]) for entry, weight in entries)


class Reader:
    def __init__(self, portable):
        self.model = portable
        self.n_classes = np.size(portable.intercept)
        self.contrasts = np.eye(1) if portable.contrasts is None else portable.contrasts
        self.n_outputs = self.contrasts.shape[1]

    def term(self, table, row):
        """Mean, a vector over all coordinates for each output, and additional covariance."""
        size = len(self.model.factor)
        vectors = np.zeros((self.n_outputs, size))
        entries = read_table(table, row)
        if entries is None:
            return np.zeros(self.n_classes), vectors, np.atleast_2d(table.unknown_variance)
        mean = np.atleast_1d(weighted(table.mean, entries))
        if table.coupling is not None:
            vectors[0] = weighted(table.coupling, entries)
            return mean, vectors, np.atleast_2d(weighted(table.own_variance, entries))
        own = weighted(table.table, entries)
        for k in range(self.n_outputs):
            start = table.start + k * len(own)
            vectors[k, start : start + len(own)] = own
        return mean, vectors, np.zeros((self.n_classes, self.n_classes))

    def covariance(self, vectors):
        products = vectors @ self.model.factor
        return self.contrasts @ products @ products.T @ self.contrasts.T

    def row(self, row):
        """Mean and covariance of the sum; mean and variances of every term, by index."""
        mean = np.atleast_1d(self.model.intercept).copy()
        vectors = np.zeros((self.n_outputs, len(self.model.factor)))
        vectors[:, -self.n_outputs :] = np.eye(self.n_outputs)
        extra, terms = np.zeros((self.n_classes, self.n_classes)), {}
        for table in self.model.tables:
            own_mean, own_vectors, own_extra = self.term(table, row)
            terms[table.index] = own_mean, np.diag(self.covariance(own_vectors) + own_extra)
            mean += own_mean
            vectors += own_vectors
            extra += own_extra
        return mean, self.covariance(vectors) + extra, terms

    def noise(self, row):
        extra = [self.model.missing_variance[k] for k, value in enumerate(row) if math.isnan(value)]
        actual = [(table, read_table(table, row)) for table in self.model.noise_tables]
        logs = [weighted(table.mean, entries) for table, entries in actual if entries is not None]
        return self.model.noise_variance * math.exp(self.model.log_noise + sum(logs)) + sum(extra)


def probit(odds, variance):
    return 1.0 / (1.0 + math.exp(-odds / math.sqrt(1.0 + math.pi / 8.0 * variance)))


def class_probabilities(mean, covariance):
    shares = []
    for c in range(len(mean)):
        total = 0.0
        for d in range(len(mean)):
            variance = covariance[c, c] + covariance[d, d] - 2.0 * covariance[c, d]
            total += math.exp((mean[d] - mean[c]) / math.sqrt(1.0 + math.pi / 8.0 * variance))
        shares.append(1.0 / total)
    return np.array(shares) / sum(shares)


def check(model, X, exposure=None):
    """All results of a model for rows, as the reader returns them."""
    reader, cells = Reader(portable(model)), model._columns(X)
    means, covariances, terms = zip(*map(reader.row, cells), strict=True)
    means, covariances = np.array(means), np.array(covariances)
    if hasattr(model, "classes_"):
        probability = model.predict_proba(X)
        if len(model.classes_) == 2:
            actual = [probit(m[0], v[0, 0]) for m, v in zip(means, covariances, strict=True)]
            assert_close(actual, probability[:, 1], "single precision")
        else:
            actual = [class_probabilities(m, v) for m, v in zip(means, covariances, strict=True)]
            assert_close(actual, probability, "single precision")
    elif math.isnan(model.noise_std_):
        exposure = np.ones(len(X)) if exposure is None else exposure
        mean, std = model.predict(X, return_std=True, exposure=exposure)
        link, spread = means[:, 0], covariances[:, 0, 0]
        count = exposure * np.exp(link + 0.5 * spread)
        assert_close(count / mean, np.ones(len(X)), "single precision")
        # The rate varies by more than its posterior uncertainty.
        dispersion = reader.model.noise_variance
        second = np.exp(spread) * (1.0 + (dispersion - 1.0) / count)
        variance = count + count**2 * (second - 1.0)
        assert_close(np.sqrt(variance) / std, np.ones(len(X)), "single precision")
    else:
        mean, std = model.predict(X, return_std=True)
        assert_close(means[:, 0], mean, "single precision")
        noise = [reader.noise(row) for row in cells]
        assert_close(np.sqrt(covariances[:, 0, 0] + noise), std, "single precision")
        half = model.predict_interval(X, coverage=0.6826894921370859, kind="mean") @ [-0.5, 0.5]
        assert_close(np.sqrt(covariances[:, 0, 0]), half, "single precision")
    contributions, stds = model.predict_terms(X, return_std=True)
    actual, found_std = np.zeros_like(contributions), np.zeros_like(stds)
    for i, own in enumerate(terms):
        for k, (mean, variance) in own.items():
            actual[i, k] = mean if contributions.ndim == 3 else mean[0]
            found_std[i, k] = np.sqrt(variance if contributions.ndim == 3 else variance[0])
    assert_close(actual, contributions, "single precision")
    assert_close(found_std, stds, "single precision")


@pytest.mark.parametrize("kind", ["gaussian", "counts", "two", "many"])
@pytest.mark.filterwarnings("ignore:column '")  # unseen values, counted
def test_the_reader_agrees_with_the_model(kind):
    case = example(kind)
    check(case.model, case.X[:20], *(value[:20] for value in case.more.values()))
    X, more = hard_rows(case)
    check(case.model, X, *more.values())


def test_the_examples_have_every_kind_of_table():
    model = example("gaussian").model
    tables = {table.name: table for table in portable(model).tables}
    kinds = {name: tuple(axis.kind for axis in table.axes) for name, table in tables.items()}
    assert kinds["zone (levels)"] == ("levels",)
    assert kinds["hour (levels)"] == ("bins",)
    actual = {tuple(sorted(kind)) for kind in kinds.values() if len(kind) == 2}
    assert actual == {("knots", "knots"), ("codes", "knots"), ("codes", "codes")}
    # A missing value without an entry, and one with.
    assert tables["load"].unknown_variance > 0.0
    assert tables["load"].axes[0].missing is None
    assert tables["gap"].unknown_variance is None
    assert (portable(model).missing_variance > 0.0).any()
    assert portable(example("counts").model).noise_variance > 1.0
    assert portable(example("many").model).contrasts.shape == (3, 2)
    assert portable(example("many").model).tables[0].unknown_variance.shape == (3, 3)


def test_only_active_terms_have_tables():
    model = example("gaussian").model
    active = [index for index, term in enumerate(model.terms_) if term.active]
    assert [table.index for table in portable(model).tables] == active
    assert len(active) < len(model.terms_)


def shops(n=500, n_levels=60, seed=0):
    rng = np.random.default_rng(seed)
    shop, x = np.arange(n) % n_levels, rng.uniform(-2.0, 2.0, n)
    f = rng.standard_normal(n_levels)[shop] + np.sin(2.0 * x)
    table = pd.DataFrame({"shop": [f"shop {k}" for k in shop], "x": x})
    table.loc[::14, "shop"] = None
    return table, f + 0.3 * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore:column '")
class TestHighCardinality:
    @pytest.fixture(autouse=True)
    def _few_are_many(self, monkeypatch):
        monkeypatch.setattr(prepare, "_WIDE", 10)

    def rows(self, X):
        strange = pd.DataFrame(
            {"shop": ["new", None, "shop 3", "new"], "x": [0.0, 1.0, 99.0, np.nan]}
        )
        return pd.concat([X[:30], strange], ignore_index=True)

    @pytest.mark.parametrize("posterior", ["joint", "block"])
    def test_numbers(self, posterior):
        X, y = shops()
        model = LANAMRegressor(posterior=posterior, hidden_sizes=(16,), random_state=0).fit(X, y)
        wide = portable(model).tables[0]
        assert wide.coupling.shape == (62, len(portable(model).factor))
        assert wide.table.shape[1] == 0
        check(model, self.rows(X))

    def test_two_classes(self):
        X, y = shops()
        model = LANAMClassifier(hidden_sizes=(16,), random_state=0).fit(X, y > 0.0)
        assert portable(model).tables[0].own_variance is not None
        check(model, self.rows(X))

    @pytest.mark.filterwarnings("ignore:of the 60 categories")
    def test_categories_that_share_an_entry(self):
        X, y = shops()
        frequent = {f"shop {k}" for k in range(20, 25)}
        rows = np.repeat(np.arange(len(X)), np.where(X["shop"].isin(frequent), 3, 1))
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
        model = LANAMClassifier(hidden_sizes=(16,), interactions=0, random_state=0)
        model.fit(X, np.digitize(y, [-0.7, 0.7]))
        table = portable(model).tables[0]
        # Two outputs: five categories have an entry, all others share that of unseen ones.
        shared = table.axes[0].points == table.axes[0].other
        assert shared.sum() == 55
        names = np.array(model._schema.columns[0].levels)
        assert set(names[~shared]) == frequent
        assert {"shop 1", "shop 20"} <= set(X["shop"][:30])
        check(model, self.rows(X))


def test_outlying_numbers_keep_their_digits():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"tiny": 1e-200 * rng.normal(size=300), "huge": 1e130 * rng.normal(size=300)})
    y = 1e200 * X["tiny"] + np.sin(X["huge"] / 1e130) + 0.1 * rng.normal(size=300)
    model = LANAMRegressor(hidden_sizes=(16,), interactions=0, random_state=0).fit(X, y)
    assert all(term.active for term in model.terms_)
    check(model, pd.concat([X[:20], 1e5 * X[:5]]))


def test_values_are_the_same_to_six_digits():
    """A value that was rounded to single precision matches, a different one does not."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 25, 800) / 10.0 + 0.1
    y = rng.normal(size=25)[np.rint(10 * x - 1).astype(int)] + 0.1 * rng.normal(size=800)
    model = LANAMRegressor(hidden_sizes=(16,), random_state=0).fit(x[:, None], y)
    assert "levels" in [table.axes[0].kind for table in portable(model).tables]
    rows = np.concatenate([x[:10], x[:10].astype(np.float32).astype(float), x[:10] + 1e-4])
    check(model, rows[:, None])
