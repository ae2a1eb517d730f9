"""Normal equations of terms that are summed by level equal those of the whole design."""

import numpy as np
import pytest

from lanam.core.rows import equations
from lanam.core.rows.statistics import Around, Rows
from lanam.core.terms.knots import Position
from tests.likelihoods import LIKELIHOODS, find_likelihood
from tests.oracles import assert_close


@pytest.mark.parametrize("chunk", [50, 500])
@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "softmax"])
def test_sums_by_level(name, chunk, monkeypatch):
    monkeypatch.setattr(equations, "_DESIGN_CHUNK_ROWS", chunk)
    rng, n = np.random.default_rng(0), 300
    sizes = (9, 40, 12, 35)
    smooth = [
        Position(rng.integers(0, size - 1, n), ((1, rng.uniform(size=n).astype(np.float32)),))
        for size in (9, 12)
    ]
    levels = [Position(rng.integers(0, size, n)) for size in (40, 35)]
    positions = (smooth[0], levels[0], smooth[1], levels[1])
    likelihood = find_likelihood("softmax", 3) if name == "softmax" else LIKELIHOODS[name]
    y = rng.integers(0, 2, n).astype(float)
    rows = Rows(positions, sizes, y, rng.uniform(0.5, 2.0, n))
    n_outputs = likelihood.n_outputs
    shape = () if n_outputs == 1 else (n_outputs,)
    values = tuple(0.3 * rng.standard_normal((size, *shape)) for size in sizes)
    around = Around(likelihood, values, 0.2 if n_outputs == 1 else np.full(n_outputs, 0.2))
    kept = (1, 0, 3, 2)
    tables = [rng.standard_normal((sizes[k], 3 if k in (0, 2) else sizes[k])) for k in kept]
    assert equations._summed_by_level(rows, kept, tables) == (0, 2)
    found = equations.normal_equations(rows, around, kept, tables)
    monkeypatch.setattr(equations, "_MANY_LEVELS", 100)
    expected = equations.normal_equations(rows, around, kept, tables)
    assert_close(found[0], expected[0], "rounding")
    assert_close(found[1], expected[1], "rounding")
    assert_close(found[0], found[0].T, "rounding")
