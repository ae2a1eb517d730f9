"""Fixtures of the core's tests."""

import math

import pytest

from lanam.core.inference import uncertainty
from lanam.core.terms import linearise


@pytest.fixture
def lossless(monkeypatch):
    """Compression that drops only rounding errors, so that dense references must agree."""
    monkeypatch.setattr(linearise, "RANK_TOLERANCE", 1e-10)
    monkeypatch.setattr(linearise, "PAIR_TOLERANCE", 1e-10)
    monkeypatch.setattr(linearise, "TRIPLE_TOLERANCE", 1e-10)
    monkeypatch.setattr(linearise, "COARSE_TOLERANCE", 1e-10)


@pytest.fixture
def given_hyperparameters(monkeypatch):
    """Posteriors given the hyperparameters, as dense references have them."""
    monkeypatch.setattr(
        uncertainty, "integrate", lambda model, noise, posterior: (posterior, math.inf)
    )
