"""The models of the paper's experiments: what each is, where it stands, and how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

FIRST = "First order"
PAIRS = "With pairs of columns"
ALL = "Fully interacting, and the mean as control"
NETWORKS = "Other networks and posteriors, first order"
BLOCKS = (FIRST, PAIRS, ALL, NETWORKS)
CONTROL = "mean"

#: The paper's models, by the names they have in published.csv; its figures alone have the last three.
PAPER_NAMES = {
    "linear": "Linear",
    "gam": "GAM",
    "nam": "NAM",
    "nam-relu-deep": "NAM (64-64-32, ReLU)",
    "nam-relu": "NAM (64, ReLU)",
    "nam-gelu": "NAM (64, GELU)",
    "la-nam": "LA-NAM",
    "oak-gp": "OAK-GP",
    "ebm": "EBM",
    "la-nam-10": "LA-NAM10",
    "la-nam-10-dagger": "LA-NAM10†",
    "oak-gp-star": "OAK-GP*",
    "ebm-10": "EBM10",
    "lightgbm": "LightGBM",
    "deep-ensemble": "DE",
    "mean-field": "MFVI",
    "mc-dropout": "MC-Dropout",
}

# Told apart by those who do not see all colours (Okabe and Ito).
BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PINK, GREY, DARK, BROWN = "#cc79a7", "#7f7f7f", "#444444", "#b8860b"
DASHED, DOTTED = (0, (4, 2)), (0, (1, 1))


@dataclass(frozen=True)
class Model:
    """A model as the page shows it.

    ``theirs`` is the paper's name of it in published.csv, ``plain`` the same model without pairs. A
    family has one colour, and its variants differ in their lines.
    """

    name: str
    block: str
    label: str
    what: str
    theirs: str | None = None
    plain: str | None = None
    colour: str = "#000000"
    line: Any = "-"

    @property
    def ours(self) -> bool:
        return self.name.startswith("lanam")

    @property
    def in_paper(self) -> str | None:
        return PAPER_NAMES[self.theirs] if self.theirs else None


def family(colour: str, *models: Model) -> tuple[Model, ...]:
    """Models of one colour."""
    return tuple(replace(model, colour=colour) for model in models)


LAPLACE = family(
    BLUE,
    Model(
        "lanam",
        FIRST,
        "LA-NAM (ours)",
        "ours with default settings, without interactions",
        theirs="la-nam",
    ),
    Model(
        "lanam-smooth",
        FIRST,
        "LA-NAM, smooth",
        "ours without effects of single values",
        line=DOTTED,
    ),
    Model(
        "lanam-constant",
        FIRST,
        "LA-NAM, one noise",
        "ours with noise of the same size in all rows",
        line=DOTTED,
    ),
    Model(
        "lanam-paper",
        FIRST,
        "LA-NAM\n(paper's settings)",
        "ours with the paper's posterior, curvature and solver",
        theirs="la-nam",
        line=DASHED,
    ),
    Model(
        "public",
        FIRST,
        "LA-NAM\n(public code)",
        "the paper's own implementation",
        theirs="la-nam",
        line=DASHED,
    ),
    Model(
        "lanam-auto",
        PAIRS,
        "LA-NAM, pairs",
        "ours with default settings: interactions that the evidence supports",
        plain="lanam",
        line=DASHED,
    ),
    Model(
        "lanam10",
        PAIRS,
        "LA-NAM, 10 pairs",
        "ours with up to ten pairs by our own score",
        plain="lanam",
        line=DASHED,
    ),
    Model(
        "lanam10-constant",
        PAIRS,
        "LA-NAM, 10 pairs, one noise",
        "`lanam10` with noise of the same size in all rows",
        plain="lanam-constant",
        line=DOTTED,
    ),
    Model(
        "lanam10-mi",
        PAIRS,
        "LA-NAM, 10 pairs (MI)",
        "ours with up to ten pairs by mutual information",
        theirs="la-nam-10",
        plain="lanam",
        line=DOTTED,
    ),
    Model(
        "lanam10-gain",
        PAIRS,
        "LA-NAM, 10 pairs (gain)",
        "ours with up to ten pairs by the gain of the evidence",
        theirs="la-nam-10-dagger",
        plain="lanam",
        line=DOTTED,
    ),
    Model(
        "lanam10-paper",
        PAIRS,
        "LA-NAM, 10 pairs\n(paper's settings)",
        "`lanam-paper` with ten pairs",
        theirs="la-nam-10",
        plain="lanam-paper",
        line=DASHED,
    ),
)
ADDITIVE_NETWORKS = family(
    ORANGE,
    Model("nam", FIRST, "NAM", "ensemble of ExU networks with dropout", theirs="nam"),
    *(
        Model(name, NETWORKS, label, "`nam` with other networks", theirs=name, line=DASHED)
        for name, label in (
            ("nam-relu-deep", "NAM\n(64-64-32, ReLU)"),
            ("nam-relu", "NAM (64, ReLU)"),
            ("nam-gelu", "NAM (64, GELU)"),
        )
    ),
)
PROCESSES = family(
    GREEN,
    Model(
        "oak",
        FIRST,
        "OAK-GP",
        "Gaussian process with the orthogonal additive kernel",
        theirs="oak-gp",
    ),
    Model(
        "oak2",
        PAIRS,
        "OAK-GP*",
        "`oak` with all pairs",
        theirs="oak-gp-star",
        plain="oak",
        line=DASHED,
    ),
)
BOOSTED = family(
    RED,
    Model("ebm", FIRST, "EBM", "boosted trees of one column each", theirs="ebm"),
    Model(
        "ebm10",
        PAIRS,
        "EBM, 10 pairs",
        "`ebm` with ten pairs",
        theirs="ebm-10",
        plain="ebm",
        line=DASHED,
    ),
)
TREES = family(
    DARK,
    Model(
        "lightgbm",
        ALL,
        "LightGBM (one fit)",
        "boosted trees, one fit with early stopping",
        line=DASHED,
    ),
    Model("lightgbm-grid", ALL, "LightGBM", "boosted trees, the paper's grid", theirs="lightgbm"),
    Model(
        "catboost",
        ALL,
        "CatBoost (one fit)",
        "boosted symmetric trees, one fit with early stopping",
        line=DOTTED,
    ),
)
MODELS = {
    model.name: model
    for model in (
        Model(
            "linear",
            FIRST,
            "linear",
            "ridge or logistic regression, penalty by cross-validation",
            theirs="linear",
            colour=GREY,
        ),
        Model(
            "pygam", FIRST, "GAM (splines)", "smoothing splines (pygam)", theirs="gam", colour=PINK
        ),
        *ADDITIVE_NETWORKS,
        *LAPLACE,
        *PROCESSES,
        *BOOSTED,
        *TREES,
        Model(CONTROL, ALL, "mean", "predicts the mean: a control"),
        Model(
            "deep-ensemble",
            NETWORKS,
            "deep ensemble",
            "ensemble of our networks",
            theirs="deep-ensemble",
            colour=BROWN,
        ),
        Model(
            "mean-field",
            NETWORKS,
            "mean-field VI",
            "Bayes by Backprop",
            theirs="mean-field",
            colour=PINK,
        ),
        Model(
            "mc-dropout",
            NETWORKS,
            "MC dropout",
            "dropout at prediction",
            theirs="mc-dropout",
            colour=RED,
        ),
    )
}
OURS = tuple(name for name, model in MODELS.items() if model.ours)


def model_of(name: str) -> Model:
    """A model by name; one that nobody has described stands in no block."""
    return MODELS.get(name, Model(name, "", name, ""))


def in_block(block: str) -> tuple[str, ...]:
    """The names of a block's models."""
    return tuple(name for name, model in MODELS.items() if model.block == block)


def in_blocks(present: Sequence[str]) -> dict[str, list[str]]:
    """Those that are there, by block; a last one has those that belong to none."""
    there = list(dict.fromkeys(present))
    blocks = {block: [m for m in in_block(block) if m in there] for block in BLOCKS}
    blocks["Others"] = [m for m in there if m not in MODELS]
    return {block: models for block, models in blocks.items() if models}
