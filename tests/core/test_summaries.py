"""The summary of all rows, and the fit itself, do not depend on the chunks."""

import weakref
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import expit

from lanam.core.fit import fitting, prepare
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import DUPLICATE
from lanam.core.rows import quadratics, sketches, summaries
from lanam.core.rows.summaries import summarise_tables
from lanam.core.rows.tables import ArrayTables, EncodedRows
from lanam.core.terms.knots import choose_categories
from tests.core import in_memory
from tests.core.in_chunks import CUTS, Chunks, cut
from tests.likelihoods import LIKELIHOODS, find_likelihood

RNG = np.random.default_rng


@pytest.fixture(params=list(CUTS))
def how(request):
    return request.param


def example(n=500, seed=0):
    """Numeric columns of all kinds, codes of which some never occur, missing values, weights."""
    rng = RNG(seed)
    columns = np.column_stack(
        [
            rng.standard_normal(n),
            rng.integers(0, 9, n) * 0.1,
            1e200 * rng.standard_normal(n),
            1e-200 * rng.standard_normal(n),
            np.where(rng.uniform(size=n) < 0.5, -0.0, 0.0),
            np.full(n, np.nan),
            rng.integers(0, 6, n),
            rng.choice([0.0, 3.0, 4.0], n),
            np.arange(n) // 100,
        ]
    )
    columns[rng.uniform(size=n) < 0.2, 1] = np.nan
    columns[: n // 2, 0] = np.nan  # no number at all in the first chunks
    columns[rng.uniform(size=n) < 0.2, 6] = np.nan
    return columns, rng.normal(5.0, 2.0, n), rng.uniform(0.2, 3.0, n)


N_LEVELS = (-1, -1, -1, -1, -1, -1, 7, 5, 12)


def whole_and_chunks(how, columns, y, weight, n_levels=(), **extras):
    tables = (in_memory.tables(columns, y, weight), cut(how, columns, y, weight))
    return tuple(summarise_tables(own, n_levels, **extras) for own in tables)


class TestSummaries:
    def test_rows_and_the_response(self, how):
        expected, found = whole_and_chunks(how, *example(), N_LEVELS)
        assert found.n_rows == expected.n_rows == 500
        assert found.n_distinct == expected.n_distinct == 500
        assert found.total_weight == pytest.approx(expected.total_weight, rel=1e-13)
        assert found.spread.magnitude == expected.spread.magnitude
        assert found.spread.mean == pytest.approx(expected.spread.mean, rel=1e-13)
        assert found.spread.variance == pytest.approx(expected.spread.variance, rel=1e-13)
        assert found.missing_columns == expected.missing_columns == (0, 1, 5, 6)
        assert found.duplicates == expected.duplicates == {}

    def test_values_and_masses(self, how):
        columns, y, weight = example()
        expected, found = whole_and_chunks(how, columns, y, weight, N_LEVELS)
        for k, (one, other) in enumerate(zip(found.columns, expected.columns, strict=True)):
            np.testing.assert_array_equal(one.distribution.values, other.distribution.values)
            assert one.distribution.scale == other.distribution.scale
            assert one.n_values == other.n_values == len(other.distribution.values)
            gone = np.isnan(columns[:, k])
            np.testing.assert_allclose(one.distribution.mass, other.distribution.mass, rtol=1e-12)
            assert one.distribution.missing == pytest.approx(weight[gone].sum(), rel=1e-12)
            # By direct computation.
            values = one.distribution.values * one.distribution.scale
            np.testing.assert_array_equal(values, np.unique(columns[~gone, k] + 0.0))
            by_hand = [weight[columns[:, k] == value].sum() for value in values]
            np.testing.assert_allclose(one.distribution.mass, by_hand, rtol=1e-12)

    def test_plain_weights_are_counted_exactly(self, how):
        columns, y, _ = example()
        expected, found = whole_and_chunks(how, columns, y, np.ones(500), N_LEVELS)
        assert found.total_weight == 500.0
        for one, other in zip(found.columns, expected.columns, strict=True):
            np.testing.assert_array_equal(one.distribution.mass, other.distribution.mass)
            np.testing.assert_array_equal(one.mass, other.mass)
            assert one.distribution.missing == other.distribution.missing

    def test_codes(self, how):
        columns, y, weight = example()
        expected, found = whole_and_chunks(how, columns, y, weight, N_LEVELS)
        for k, n_levels in enumerate(N_LEVELS):
            one, other = found.columns[k], expected.columns[k]
            assert len(one.mass) == max(n_levels, 0)
            np.testing.assert_allclose(one.mass, other.mass, rtol=1e-12)
            np.testing.assert_array_equal(one.mass == 0.0, other.mass == 0.0)

    def test_of_levels_of_the_same_weight_the_first_are_chosen_in_any_order_of_rows(self, how):
        rng = RNG(3)
        columns = rng.permutation(np.repeat(np.arange(40.0), 5))[:, None]
        expected, found = (
            choose_categories(own.columns[0].mass, 11)
            for own in whole_and_chunks(how, columns, np.zeros(200), np.ones(200), (40,))
        )
        np.testing.assert_array_equal(found.entry_of, expected.entry_of)
        assert set(np.flatnonzero(found.entry_of < 11)) == set(range(11))

    def test_copies_of_rows(self, how):
        columns, y, weight = example()
        copies = RNG(0).permutation(np.repeat(np.arange(500), 3))
        expected, found = whole_and_chunks(
            how, columns[copies], y[copies], weight[copies], N_LEVELS
        )
        assert found.n_distinct == expected.n_distinct == 500
        assert found.n_rows == 1500

    def test_classes(self, how):
        rng = RNG(0)
        y, weight = rng.choice([0.0, 1.0, 3.0], 200), rng.uniform(0.5, 2.0, 200)
        given = (rng.standard_normal((200, 1)), y, weight, (-1,))
        expected, found = whole_and_chunks(how, *given, n_classes=5)
        by_hand = [weight[y == k].sum() for k in range(5)]
        np.testing.assert_allclose(found.classes, by_hand)
        np.testing.assert_allclose(expected.classes, by_hand)
        for own in whole_and_chunks(how, *given):
            assert len(own.classes) == 0

    def test_columns_with_many_values(self, how, monkeypatch):
        """Quantiles are within the error bound of sketches; range and mean are exact."""
        monkeypatch.setattr(sketches, "EXACT_VALUES", 256)
        rng = RNG(0)
        columns, weight = rng.standard_exponential((3000, 1)), rng.uniform(0.5, 2.0, 3000)
        expected, found = (
            own.columns[0] for own in whole_and_chunks(how, columns, np.zeros(3000), weight)
        )
        one, other = found.distribution, expected.distribution
        assert len(one.values) <= 256 < len(other.values)
        assert found.n_values == pytest.approx(3000, rel=0.25)  # 1 / sqrt(256), four times
        assert one.scale == other.scale
        assert one.mass.sum() == pytest.approx(other.mass.sum())
        assert (one.values[0], one.values[-1]) == (other.values[0], other.values[-1])
        mean = other.values @ other.mass / other.mass.sum()
        assert one.values @ one.mass / one.mass.sum() == pytest.approx(mean)
        ranks = [np.cumsum(own.mass) / own.mass.sum() for own in (one, other)]
        theirs = ranks[1][np.searchsorted(other.values, one.values, side="right") - 1]
        assert np.abs(ranks[0] - theirs).max() < 0.05


class TestSample:
    def given(self, n=700):
        rng = RNG(0)
        return rng.standard_normal((n, 2)), rng.poisson(2.0, n).astype(float), rng.uniform(1, 2, n)

    def rows(self, table):
        return {
            (*row, y, w)
            for row, y, w in zip(
                table.columns.tolist(), table.response.tolist(), table.weight.tolist(), strict=True
            )
        }

    def test_it_does_not_depend_on_chunks_or_order(self, how):
        columns, y, weight = self.given()
        expected, found = whole_and_chunks(how, columns, y, weight, n_sample=50)
        assert len(found.sample) == len(expected.sample) == 50
        for field in ("columns", "response", "weight"):
            np.testing.assert_array_equal(
                getattr(found.sample, field), getattr(expected.sample, field)
            )
        assert self.rows(found.sample) <= self.rows(EncodedRows(columns, y, weight))
        order = RNG(1).permutation(700)
        turned = cut(how, columns[order], y[order], weight[order])
        again = summarise_tables(turned, n_sample=50).sample
        np.testing.assert_array_equal(again.columns, found.sample.columns)

    def test_a_larger_sample_is_all_rows(self, how):
        columns, y, weight = self.given(60)
        for own in whole_and_chunks(how, columns, y, weight, n_sample=100):
            assert self.rows(own.sample) == self.rows(EncodedRows(columns, y, weight))

    def test_no_sample_by_default(self, how):
        for own in whole_and_chunks(how, *self.given()):
            assert own.sample is None

    def test_copies_are_one_row_with_their_weight(self, how):
        rng = RNG(0)
        columns = rng.integers(0, 3, (900, 2)).astype(float)
        y, weight = rng.integers(0, 2, 900).astype(float), rng.uniform(0.5, 2.0, 900)
        expected = {}
        for key, own in zip(np.column_stack([columns, y]).tolist(), weight, strict=True):
            expected[tuple(key)] = expected.get(tuple(key), 0.0) + own
        assert len(expected) == 18
        samples = []
        for n_sample in (5, 18, 100):
            for own in whole_and_chunks(how, columns, y, weight, n_sample=n_sample):
                table = own.sample
                assert len(table) == min(n_sample, 18)
                rows = [tuple(row) for row in np.column_stack([table.columns, table.response])]
                assert len(set(rows)) == len(rows)
                np.testing.assert_allclose(table.weight, [expected[row] for row in rows])
                samples.append(rows)
        # A smaller sample is the beginning of a larger one.
        assert all(rows[:5] == samples[0] for rows in samples)

    def test_all_rows_of_zeros_and_ones(self, how):
        columns = np.stack(np.meshgrid(*[[0.0, 1.0]] * 9), axis=-1).reshape(-1, 9)
        y, weight = np.tile([0.0, 1.0], 256), RNG(0).uniform(0.5, 2.0, 512)
        for own in whole_and_chunks(how, columns, y, weight, n_sample=1000):
            assert own.n_distinct == 512
            assert self.rows(own.sample) == self.rows(EncodedRows(columns, y, weight))

    def test_it_is_representative(self):
        columns, y, weight = self.given(20_000)
        sample = summarise_tables(in_memory.tables(columns, y, weight), n_sample=2000).sample
        # Three standard errors.
        assert sample.columns.mean() == pytest.approx(0.0, abs=3 / np.sqrt(4000))
        assert sample.response.mean() == pytest.approx(2.0, abs=3 * np.sqrt(2.0 / 2000))


class TestDuplicates:
    """Duplicate columns, and columns that differ in one row."""

    N = 300

    def found(self, how, columns, n_levels=()):
        whole, chunks = whole_and_chunks(
            how, columns, np.zeros(len(columns)), np.ones(len(columns)), n_levels
        )
        assert chunks.duplicates == whole.duplicates
        return chunks.duplicates

    def test_equal_numeric_columns(self, how):
        rng = RNG(0)
        a, b = rng.standard_normal(self.N), rng.integers(0, 4, self.N).astype(float)
        b[::7] = np.nan
        columns = np.column_stack([a, b, a, rng.permutation(a), b, a])
        assert self.found(how, columns) == {2: 0, 4: 1, 5: 0}

    @pytest.mark.parametrize("where", [0, 1, 150, 298])
    def test_no_duplicates_if_two_rows_are_swapped(self, how, where):
        # The distributions are equal; only the rows differ.
        a = RNG(0).standard_normal(self.N)
        b = a.copy()
        b[[where, where + 1]] = a[[where + 1, where]]
        assert self.found(how, np.column_stack([a, b])) == {}

    def test_missing_values_must_be_in_the_same_rows(self, how):
        a = np.repeat([1.0, 2.0, np.nan], 100)
        b = np.repeat([1.0, np.nan, 2.0], 100)
        assert self.found(how, np.column_stack([a, b])) == {}
        assert self.found(how, np.column_stack([a, a])) == {1: 0}

    def test_the_sign_of_zero_does_not_matter(self, how):
        a = RNG(0).integers(0, 2, self.N).astype(float)
        assert self.found(how, np.column_stack([a, np.where(a == 0.0, -0.0, a)])) == {1: 0}

    def test_the_same_categories_by_other_codes(self, how):
        rng = RNG(0)
        a = rng.integers(0, 5, self.N).astype(float)
        names = np.array([7.0, 2.0, 0.0, 4.0, 3.0])
        b = names[a.astype(int)]
        columns = np.column_stack([a, b, rng.permutation(a)])
        assert self.found(how, columns, (5, 8, 5)) == {1: 0}
        # As numbers they differ.
        assert self.found(how, columns) == {}
        assert self.found(how, columns, (5, -1, 5)) == {}
        assert self.found(how, np.column_stack([a, a]), (5, -1)) == {}

    @pytest.mark.parametrize("where", [0, 1, 150, 298])
    def test_no_duplicates_if_one_code_differs(self, how, where):
        a = np.tile(np.arange(4.0), self.N // 4)
        names = np.array([3.0, 0.0, 1.0, 2.0])
        b = names[a.astype(int)]
        b[[where, where + 1]] = b[[where + 1, where]]
        assert self.found(how, np.column_stack([a, b]), (4, 4)) == {}

    def test_merged_categories_are_no_duplicates(self, how):
        # The first partition refines the second, but they are not equal.
        a = np.tile(np.arange(4.0), self.N // 4)
        assert self.found(how, np.column_stack([a, a // 2]), (4, 2)) == {}
        assert self.found(how, np.column_stack([a // 2, a]), (2, 4)) == {}

    def test_categories_without_rows_do_not_matter(self, how):
        a = RNG(0).integers(0, 3, self.N).astype(float)
        assert self.found(how, np.column_stack([a, a + 4.0]), (3, 9)) == {1: 0}

    def test_missing_is_not_a_category(self, how):
        a = np.tile([0.0, 1.0, 2.0, np.nan], self.N // 4)
        turned = np.tile([0.0, 1.0, np.nan, 2.0], self.N // 4)
        assert self.found(how, np.column_stack([a, turned]), (3, 3)) == {}
        named = np.tile([2.0, 0.0, 1.0, np.nan], self.N // 4)
        assert self.found(how, np.column_stack([a, named]), (3, 3)) == {1: 0}

    def test_many_columns_with_the_same_distribution(self, how):
        # Permutations of the same values, in triples of which two are equal.
        rng = RNG(0)
        own = [rng.permutation(np.arange(float(self.N))) for _ in range(12)]
        columns = np.column_stack([column for column in own for _ in range(2)])
        assert self.found(how, columns) == {2 * k + 1: 2 * k for k in range(12)}

    def test_a_second_pass_only_if_distributions_are_equal(self):
        passes = []

        class Counted(Chunks):
            def chunks(self):
                passes.append(1)
                return super().chunks()

        rng = RNG(0)
        apart = rng.standard_normal((self.N, 3))
        alike = np.column_stack([apart, rng.permutation(apart[:, 0])])
        for columns, expected in ((apart, 1), (alike, 2)):
            passes.clear()
            tables = Counted(EncodedRows(columns, np.zeros(self.N), np.ones(self.N)), (100, 170))
            assert summarise_tables(tables).duplicates == {}
            assert len(passes) == expected

    def test_weights_do_not_matter(self, how):
        a = RNG(0).integers(0, 5, self.N).astype(float)
        weight = RNG(1).uniform(0.1, 7.0, self.N)
        columns = np.column_stack([a, 4.0 - a, a])
        for own in whole_and_chunks(how, columns, a, weight, (5, 5, -1)):
            assert own.duplicates == {1: 0}
        for own in whole_and_chunks(how, columns, a, weight):
            assert own.duplicates == {2: 0}


# --- the whole fit ----------------------------------------------------------------------------------

QUICK = Options(hidden_sizes=(12,), pair_hidden_sizes=(10,), max_knots=512)


def fit_data(name, n=400, seed=0):
    """Two interacting columns, a discrete one, codes and a duplicate of them, missing values, weights."""
    rng = RNG(seed)
    columns = np.column_stack(
        [
            rng.uniform(-2.0, 2.0, n),
            rng.uniform(-2.0, 2.0, n),
            rng.integers(0, 25, n),
            rng.integers(0, 5, n),
            np.zeros(n),
        ]
    ).astype(float)
    jagged, by_code = rng.standard_normal(25), 1.2 * rng.standard_normal(5)
    f = np.sin(2.0 * columns[:, 0]) + columns[:, 0] * columns[:, 1] + columns[:, 1]
    f += jagged[columns[:, 2].astype(int)] + by_code[columns[:, 3].astype(int)]
    columns[:, 4] = 4.0 - columns[:, 3]
    columns[rng.uniform(size=n) < 0.2, 1] = np.nan
    columns[rng.uniform(size=n) < 0.1, 3] = np.nan
    columns[:, 4] = np.where(np.isnan(columns[:, 3]), np.nan, columns[:, 4])
    y = {
        "gaussian": lambda: 10.0 + 3.0 * f + 0.5 * rng.standard_normal(n),
        "bernoulli": lambda: (rng.uniform(size=n) < expit(2.0 * f)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(0.5 * f)).astype(float),
        "softmax": lambda: np.argmax(
            np.column_stack([f, -f, 0.5 * np.ones(n)]) + rng.gumbel(size=(n, 3)), axis=1
        ).astype(float),
    }[name]()
    return columns, y, rng.integers(1, 4, n) * 0.5


FIT_LEVELS = (-1, -1, -1, 5, 5)


def assert_same_model(found, expected, columns):
    """All results of a model are equal up to the order of summation."""
    assert [(t.kind, t.features, t.status) for t in found.terms] == [
        (t.kind, t.features, t.status) for t in expected.terms
    ]
    assert found.stop_reason == expected.stop_reason
    assert [own["stage"] for own in found.history] == [own["stage"] for own in expected.history]
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-4)
    assert found.noise_variance == pytest.approx(expected.noise_variance, rel=1e-6)
    assert (found.missing_variance is None) == (expected.missing_variance is None)
    if found.missing_variance is not None:
        np.testing.assert_allclose(
            found.missing_variance, expected.missing_variance, rtol=1e-5, atol=1e-9
        )
    one, other = (scoring.link_moments(model, columns) for model in (found, expected))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * np.abs(b).max())
    for a, b in zip(found.terms, expected.terms, strict=True):
        np.testing.assert_allclose(a.data_mass, b.data_mass, rtol=1e-9, atol=1e-12)
        # Over entries, not rows: larger where a function changes its sign between entries.
        assert b.importance - 1e-6 <= a.importance <= 1.05 * b.importance + 1e-6
    assert [pair.features for pair in found.scored] == [pair.features for pair in expected.scored]
    assert [pair.status for pair in found.scored] == [pair.status for pair in expected.scored]
    for a, b in zip(found.scored, expected.scored, strict=True):
        assert a.score == pytest.approx(b.score, rel=1e-5, abs=1e-5)


@cache
def fitted(name, options=QUICK):
    """The fit in memory."""
    return in_memory.fit(*fit_data(name), name, options, 0, FIT_LEVELS)


class TestFit:
    def in_chunks(self, how, name, options=QUICK):
        likelihood = find_likelihood(name, 3)
        return fitting.fit(cut(how, *fit_data(name)), likelihood, options, 0, FIT_LEVELS)

    # All cuts for numeric responses; two of them for others, whose jobs differ.
    @pytest.mark.parametrize(
        ("name", "how"),
        [("gaussian", how) for how in CUTS]
        + [
            (name, how)
            for name in ("bernoulli", "poisson", "softmax")
            for how in ("odd ones in groups", "many")
        ],
    )
    def test_main_effects(self, how, name):
        expected = fitted(name)
        assert_same_model(self.in_chunks(how, name), expected, fit_data(name)[0])
        assert expected.terms[4].status == DUPLICATE
        assert sum(term.active for term in expected.terms) >= 3
        if name == "gaussian":
            assert expected.missing_variance is not None
            assert ("level", (2,)) in [(t.kind, t.features) for t in expected.terms]

    @pytest.mark.parametrize("name", ["gaussian", "bernoulli", "poisson", "softmax"])
    def test_pairs(self, name):
        options = replace(QUICK, interactions=2)
        found = self.in_chunks("odd ones in groups", name, options)
        expected = fitted(name, options)
        assert_same_model(found, expected, fit_data(name)[0])
        assert ("pair", (0, 1)) in [(t.kind, t.features) for t in expected.terms]

    @pytest.mark.parametrize(
        "change",
        [
            {"posterior": "block"},
            {"curvature": "kron", "posterior": "block", "init_scales": (1.0,)},
            {"max_knots": 24},
            {"memory": 0.0},
            {"evidence_update": "gradient", "max_iter": 5},
            {"interactions": "auto", "interaction_score": "evidence_gain"},
            {"n_restarts": 2},
        ],
    )
    def test_other_options(self, change):
        options = replace(QUICK, **change)
        found = self.in_chunks("odd ones", "gaussian", options)
        assert_same_model(found, fitted("gaussian", options), fit_data("gaussian")[0])

    @pytest.mark.parametrize("how", ["odd ones in groups", "one pass", "many"])
    def test_high_cardinality(self, how, monkeypatch):
        monkeypatch.setattr(prepare, "_WIDE", 10)
        rng = RNG(0)
        columns = np.column_stack([rng.integers(0, 30, 600), rng.integers(0, 15, 600)])
        columns = columns.astype(float)
        effect = rng.standard_normal(30)
        y = effect[columns[:, 0].astype(int)] + (columns[:, 1] == 3.0) + rng.normal(size=600)
        given = (columns, y, np.ones(600))
        expected = in_memory.fit(*given, "gaussian", QUICK, 0, (30, 15))
        assert expected.terms[0].coupling is not None
        found = fitting.fit(cut(how, *given), LIKELIHOODS["gaussian"], QUICK, 0, (30, 15))
        assert_same_model(found, expected, columns)
        assert found.terms[0].coupling is not None
        # The same rare categories of the other column share an entry.
        np.testing.assert_array_equal(
            found.terms[1].entries.entry_of, expected.terms[1].entries.entry_of
        )
        assert expected.terms[1].entries.n_own == 10

    @pytest.mark.parametrize("how", ["odd ones in groups", "many"])
    @pytest.mark.parametrize("name", ["gaussian", "bernoulli"])
    def test_adding_pairs(self, how, name):
        model, data = fitted(name), fit_data(name)
        options = replace(QUICK, interactions=((0, 1),))
        expected = in_memory.fit_on(model, *data, options, 0)
        found = fitting.fit_on(model, cut(how, *data), in_memory._of(model), options, 0)
        assert_same_model(found, expected, data[0])
        assert ("pair", (0, 1)) in [(t.kind, t.features) for t in expected.terms]

    @pytest.mark.parametrize("name", ["bernoulli", "poisson", "softmax"])
    @pytest.mark.parametrize("many", [1 << 18, 100])
    def test_as_if_rows_were_many(self, name, many, monkeypatch):
        """Starting from a sample, and with expansions in cross-tables."""
        # The largest sample that is worth it. From 80 rows, precisions of the binary response converge to
        # another optimum, at any tolerance: its log evidence is less by 2.6.
        monkeypatch.setattr(prepare, "SAMPLE_ROWS", 100)
        monkeypatch.setattr(quadratics, "MANY_ROWS", many)
        columns, y, weight = fit_data(name)
        expected = in_memory.fit(columns, y, weight, name, QUICK, 0, FIT_LEVELS)
        assert_same_model(self.in_chunks("odd ones in groups", name), expected, columns)
        stages = {record["stage"] for record in expected.history}
        assert "sample" in stages
        # It converges to the same optimum, or to another one of the precisions nearby.
        plain = fitted(name)
        assert expected.log_evidence == pytest.approx(plain.log_evidence, abs=2.0)
        assert [t.status for t in expected.terms] == [t.status for t in plain.terms]
        (one, _), (other, variance) = (
            scoring.link_moments(model, columns) for model in (expected, plain)
        )
        # With several classes there is one covariance per row.
        own = np.diagonal(variance, axis1=1, axis2=2) if variance.ndim == 3 else variance
        assert (np.abs(one - other) < np.sqrt(own)).all()

    def test_a_sketch_suffices_for_many_values(self, monkeypatch):
        """With sketches, knots move a little, functions hardly."""
        monkeypatch.setattr(sketches, "EXACT_VALUES", 1000)
        rng = RNG(0)
        columns = np.column_stack([rng.standard_normal(5000), rng.exponential(size=5000)])
        truth = np.sin(2.0 * columns[:, 0]) + np.sqrt(columns[:, 1])
        y, options = truth + 0.3 * rng.standard_normal(5000), Options(hidden_sizes=(12,))
        expected = in_memory.fit(columns, y, np.ones(5000), "gaussian", options, 0)
        found = fitting.fit(cut("many", columns, y), LIKELIHOODS["gaussian"], options, 0)
        assert found.log_evidence == pytest.approx(expected.log_evidence, abs=3.0)
        assert found.noise_variance == pytest.approx(expected.noise_variance, rel=0.01)
        (one, deviation), (other, _) = (
            scoring.link_moments(model, columns) for model in (found, expected)
        )
        # Far closer to each other than to the truth.
        assert np.sqrt(np.mean((one - other) ** 2)) < 0.2 * np.sqrt(np.mean((other - truth) ** 2))
        assert not np.array_equal(one, other)
        assert (np.abs(one - other) < 2.0 * np.sqrt(deviation)).mean() > 0.99


class TestFromASample:
    """A sample determines where training starts, not where it ends."""

    def both(self, columns, y, name, monkeypatch):
        options, weight = Options(hidden_sizes=(12,)), np.ones(len(y))
        plain = in_memory.fit(columns, y, weight, name, options, 0)
        monkeypatch.setattr(prepare, "SAMPLE_ROWS", len(y) // 20)
        found = in_memory.fit(columns, y, weight, name, options, 0)
        assert "sample" in {record["stage"] for record in found.history}
        return found, plain

    def test_effects_without_data_in_the_sample_are_found(self, monkeypatch):
        rng = RNG(0)
        columns = rng.standard_normal((10_000, 2))
        y = rng.poisson(np.exp(0.5 * columns[:, 0] + 0.08 * columns[:, 1])).astype(float)
        found, plain = self.both(columns, y, "poisson", monkeypatch)
        assert plain.terms[1].active
        assert plain.terms[1].evidence > 10.0
        assert found.terms[1].active
        assert found.log_evidence == pytest.approx(plain.log_evidence, abs=0.5)

    def test_where_most_rows_are_copies(self, monkeypatch):
        rng = RNG(0)
        columns = rng.integers(0, 2, (20_000, 8)).astype(float)
        f = columns @ rng.standard_normal(8) - 0.5
        y = (rng.uniform(size=20_000) < expit(f)).astype(float)
        found, plain = self.both(columns, y, "bernoulli", monkeypatch)
        assert found.log_evidence == pytest.approx(plain.log_evidence, abs=0.1)
        # The sample was all distinct rows.
        passes = [record["stage"] for record in found.history]
        assert passes.count("smooth") <= 3


def test_a_fit_to_chunks_does_not_keep_them():
    """Chunks are released after each job."""
    alive = []

    class Watched(Chunks):
        def total(self, job, merge=None):
            def watched():
                for chunk in self.chunks():
                    alive.append(weakref.ref(chunk.columns))
                    assert sum(own() is not None for own in alive) <= 2
                    yield chunk

            totals = job(watched())
            assert not any(own() is not None for own in alive[:-1])
            return totals

    columns, y, weight = fit_data("gaussian")
    chunks = Watched(EncodedRows(columns, y, weight), (50, 120, 130, 300))
    model = fitting.fit(chunks, LIKELIHOODS["gaussian"], QUICK, 0, FIT_LEVELS)
    assert np.isfinite(model.log_evidence)
    assert len(alive) >= 10


def test_a_table_in_memory_is_one_chunk():
    columns, y, weight = fit_data("gaussian")
    assert isinstance(in_memory.tables(columns, y, weight), ArrayTables)
    assert summaries.summarise_tables(in_memory.tables(columns, y, weight)).n_rows == 400
