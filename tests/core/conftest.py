"""What several tests of the core need."""

import pytest

from lanam.core.terms import linearise


@pytest.fixture
def lossless(monkeypatch):
    """Compression that keeps every direction but rounding, so that dense twins must agree."""
    monkeypatch.setattr(linearise, "RANK_TOLERANCE", 1e-10)
    monkeypatch.setattr(linearise, "PAIR_TOLERANCE", 1e-10)
    monkeypatch.setattr(linearise, "COARSE_TOLERANCE", 1e-10)
