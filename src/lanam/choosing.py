"""The response family by evidence: families that suit y, fitted to the first order and compared.

Evidences of families are on one scale: densities of y itself, with all constants and Jacobians; counts have
the spacing one. Noise that depends on columns is learned after the evidence, and counts by what it gains in
log-likelihood. Each parameter of a likelihood beyond the first is charged half the logarithm of the number
of rows, as in BIC. The quasi-likelihood of counts with a dispersion is normalised first. Amounts of which
some are exactly zero have no density beside it: only Tweedie suits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lanam.core.arrays import Array
from lanam.core.fit import fitting
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.model.mixtures import GAUSSIAN as NORMAL
from lanam.core.model.mixtures import Mixture
from lanam.core.rows.summaries import DataSummary
from lanam.core.rows.tables import ArrayTables, EncodedRows
from lanam.core.terms.knowledge import NOTHING
from lanam.families import (
    BINOMIAL,
    GAMMA,
    GAUSSIAN,
    LOGNORMAL,
    NEGATIVE_BINOMIAL,
    POISSON,
    STUDENT,
    TWEEDIE,
    Family,
)
from lanam.families.checks import Support
from lanam.training import TrainingData, TrainingRows

#: Whole numbers up to this may be counts only; beyond it they may also be measured in whole units.
_FEW = 30.0
#: Rows of the sample on which a remark is based, and the nats that it takes.
_REMARK_ROWS = 1000
_REMARKABLE = 10.0


def suiting(support: Support, *, exposed: bool = False, trials: bool = False) -> list[Family]:
    """The families that suit a target, the simplest first.

    Examples
    --------
    >>> [family.name for family in suiting(Support(0.5, 9.0, False))]
    ['gaussian', 'student', 'lognormal', 'gamma']
    >>> [family.name for family in suiting(Support(0.0, 9.0, True))]
    ['poisson', 'negative_binomial']
    """
    if trials:
        return [BINOMIAL]
    counts = [POISSON, NEGATIVE_BINOMIAL] if support.whole and support.lowest >= 0.0 else []
    if exposed:
        return counts or [TWEEDIE]
    if counts and support.highest <= _FEW:
        return list(counts)
    if support.zeros > 1 and not counts and support.lowest == 0.0:
        return [TWEEDIE]
    positive = [LOGNORMAL, GAMMA] if support.lowest > 0.0 else []
    return [GAUSSIAN, STUDENT, *positive, *counts]


def compare(
    families: Sequence[Family],
    data: TrainingData,
    options: Options,
    seed: int,
    *,
    exposed: bool = False,
) -> list[tuple[str, float]]:
    """The scores of families by fits of the first order to the training data."""
    simple = _simple(options)
    return [
        (family.name, _score_of(data.read(family), simple, seed, exposed=exposed))
        for family in families
    ]


def _simple(options: Options) -> Options:
    """A fit of the first order, which is not announced."""
    return replace(options, interactions=0, diagnostics=False, on_plan=None, on_iteration=None)


def _score_of(rows: TrainingRows, options: Options, seed: int, *, exposed: bool) -> float:
    family, likelihood = rows.encoding.family, rows.encoding.likelihood
    summaries: list[DataSummary] = []

    def fitted(noise: bool) -> FittedModel:
        tables = rows.tables(lambda job, compute: compute())
        settings = (replace(options, noise=noise), seed, rows.schema.n_levels, summaries.append)
        with np.errstate(all="ignore"):
            return fitting.fit(tables, likelihood, *settings)

    model, gain = fitted(False), 0.0
    summary = summaries[0]
    if likelihood.heteroscedastic and options.noise and summary.sample is not None:
        # Of the noise that depends on columns only: heavy tails and skewness are other families'.
        noisier = replace(fitted(True), shape=None)
        gain = noise_gain(noisier, family, summary.sample) if noisier.noise is not None else 0.0
    charge = 0.5 * max(len(model.parameters) - 1, 0) * math.log(summary.total_weight)
    evidence = rows.encoding.to_user(model).log_evidence
    if summary.sample is not None:
        lacks = family.evidence_correction(model, summary.sample, exposed=exposed)
        evidence += lacks * summary.total_weight / float(summary.sample.weight.sum())
    return float(evidence + gain * summary.total_weight - charge)


def noise_gain(model: FittedModel, family: Family, sample: EncodedRows) -> float:
    """What a noise model and a residual distribution gain per row in log-likelihood."""
    if model.parameters or not family.has_noise or (model.noise is None and model.shape is None):
        return 0.0
    mean, nothing = scoring.link_mean(model, sample.columns), np.zeros(len(sample))
    noise = scoring.noise_variances(model, sample.columns)
    usual = np.full(len(sample), np.average((sample.response - mean) ** 2, weights=sample.weight))
    rows = [
        Mixture(mean, nothing, variance, shape).log_prob(sample.response)
        for variance, shape in ((noise, model.shape or NORMAL), (usual, NORMAL))
    ]
    return max(float(np.average(rows[0] - rows[1], weights=sample.weight)), 0.0)


def better_than_gaussian(
    model: FittedModel, rows: TrainingRows, options: Options, seed: int
) -> tuple[str, float] | None:
    """A family that describes a sample of positive numbers or counts better, and by how many nats.

    By quick fits of the columns that a Gaussian model uses, of those families that describe the sample
    better around the means of that model already. Its functions are not theirs, but a wrong family is far
    off.
    """
    if rows.sample is None or rows.encoding.family is not GAUSSIAN:
        return None
    support, used = Support.of(rows.sample.response), sorted(model.used)
    others = [family for family in suiting(support) if family not in (GAUSSIAN, STUDENT)]
    if not others or not used or support.lowest == support.highest:
        return None
    sample = rows.sample
    some = slice(0, _REMARK_ROWS)  # in the order of hashes
    columns = np.asfortranarray(sample.columns[some][:, used])
    n_levels = [rows.schema.n_levels[k] for k in used]
    quick = replace(_simple(options), level_effects=False, noise=False, tol=0.5, max_iter=20)
    quick = replace(quick, knowledge=NOTHING)  # which numbers all columns

    y, weight = sample.response[some], sample.weight[some]
    mean = scoring.link_mean(model, sample.columns[some])
    # Half of the smallest amount stands for means that no amount has.
    positive = np.log(np.maximum(mean, 0.5 * y.min(initial=1.0, where=y > 0.0)))

    def evidence(family: Family, offset: Array | None = None) -> float:
        """Of the columns, or of a constant beside the offset."""
        ones, around = np.ones(len(y)), offset is not None
        encoding = family.encoding(family.statistics(y, weight, ones))
        rows = encoding.response(y, weight, ones, offset)
        tables = ArrayTables(rows.with_columns(columns[:, :0] if around else columns))
        levels = [] if around else n_levels
        fitted = fitting.fit(tables, encoding.likelihood, quick, seed, levels)
        return encoding.to_user(fitted).log_evidence

    try:
        with np.errstate(all="ignore"):
            least = evidence(GAUSSIAN, mean) + _REMARKABLE
            others = [family for family in others if evidence(family, positive) > least]
            if not others:
                return None
            gaussian = evidence(GAUSSIAN)
            best = max((evidence(family), family.name) for family in others)
    except (ArithmeticError, np.linalg.LinAlgError):  # a remark must not end a fit
        return None
    gaussian += noise_gain(model, GAUSSIAN, sample) * float(sample.weight[some].sum())
    better = best[0] - gaussian
    return (best[1], better) if better >= _REMARKABLE else None
