"""LANAMRegressor: scikit-learn's regressor over the core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags

from lanam.additive import (
    AdditiveModel,
    weighted_mean,
)
from lanam.arguments import is_papers
from lanam.chunked import averaged, in_chunks, intervals, predictions, quantiles, summed
from lanam.conformal import Calibration, calibrated_by
from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.core.model.distributions import Predictive
from lanam.core.model.fitted import FittedModel
from lanam.data import Schema
from lanam.errors import InputError
from lanam.explain import (
    GlobalExplanation,
    describe_terms,
    explain_global,
    require_coverage,
)
from lanam.families import FAMILIES, Family, find_family
from lanam.families.base import link_interval
from lanam.inputs import read_response, read_target, read_weights
from lanam.parameters import RegressorParameters


def _squares(model: Any, X: Any, y: Array, sample_weight: Array, exposure: Any = None) -> Array:
    """Sums over rows: of weights, of y and its squares, and of squared residuals."""
    model._require_exposure(exposure)
    mean = model.predict(X, exposure=exposure)
    # From about where they are, because squares of large numbers leave no room for their differences.
    centred = y - float(model.family_.link.inverse(model.intercept_))
    values = np.stack([np.ones(len(y)), centred, centred**2, (y - mean) ** 2])
    return np.asarray(values @ sample_weight)


def _r_squared(model: Any, sums: Array) -> float:
    weight, total, squares, residual = sums
    spread = squares - total**2 / weight
    if spread > 1e-12 * squares:  # and not what rounding leaves of a constant
        return float(1.0 - residual / spread)
    return 1.0 if residual == 0.0 else 0.0  # as scikit-learn has it


class LANAMRegressor(RegressorMixin, RegressorParameters, AdditiveModel):  # type: ignore[misc]
    """Laplace-approximated neural additive model for regression.

    The mean of y is an intercept and a sum of functions of single columns, each a small neural
    network; for counts it is the logarithm of the mean. How smooth each function is, which ones are
    needed at all, and how noisy y is follow from maximising the evidence; nothing needs tuning by
    cross-validation.

    Parameters
    ----------
    interactions : "auto", int or sequence of pairs of columns, default="auto"
        Terms of two columns: as many as the evidence pays for, the best so many, or these, by name or
        index; 0 for none. Pairs that bring nothing are switched off.
    interaction_score : str, default="evidence"
        How pairs are ranked: "evidence" (what a joint term would add to it), or the paper's
        "mutual_information" or "evidence_gain", of the last layer or, with "_full", of all layers.
    level_effects : {"auto", False}, default="auto"
        "auto" adds effects of single values where the evidence asks for them; False keeps smooth
        functions only.
    likelihood : {"gaussian", "poisson"}, default="gaussian"
        Distribution of y around its mean: "gaussian" for numbers with noise, "poisson" for
        counts of events, in a time or among a number that may differ from row to row (``exposure`` of
        :meth:`fit`). The variance of counts is their mean times a dispersion that is learned, 1 at least
        (``dispersion_``).
    noise : {"auto", "constant"}, default="auto"
        "auto" lets the size of a Gaussian noise differ from row to row, by a sum of functions of single
        columns, and its distribution be another than Gaussian, each where that describes rows it was
        not learned from better. "constant" is Gaussian noise of one size, as in the paper, and what
        "auto" is with ``solver="adam"`` or ``curvature="kron"``.
    hidden_sizes : sequence of int, default=(64,)
        Widths of the hidden layers of each column's network.
    pair_hidden_sizes : sequence of int, default=(64,)
        The same for the joint networks of pairs; the paper has (64, 64).
    activation : {"gelu", "relu", "tanh", "silu"}, default="gelu"
        Activation of the hidden layers.
    init_scales : "auto" or sequence of float, default="auto"
        Steepnesses of the hidden units at the start; larger ones make wigglier functions reachable.
        "auto" is (1, 4, 16), and 1 with ``solver="adam"`` or ``curvature="kron"``.
    prior_groups : {"layer", "network"}, default="layer"
        Whether each layer of a network has a prior precision of its own, or the network has one.
    posterior : {"joint", "block"}, default="joint"
        One posterior of all terms together, or one for each term as in the paper.
    curvature : {"exact", "kron"}, default="exact"
        Gauss-Newton curvature, exact or Kronecker-factored as in the paper ("kron" needs
        ``posterior="block"``).
    solver : {"gauss-newton", "adam"}, default="gauss-newton"
        How networks are trained; "adam" is the paper's, for numeric columns without gaps and
        without level effects.
    evidence_update : {"mackay", "gradient"}, default="mackay"
        How precisions and noise follow the evidence; "gradient" is the paper's.
    categorical_features : "auto" or sequence of columns, default="auto"
        Columns whose values are levels with an effect each, by name or index, besides those that
        always are: of text, of truth values, and of a categorical dtype. Integers are numbers unless
        they are named here.
    max_knots : int, default=256
        At how many points the function of a column with more values than that is tabulated.
    max_iter : int, default=100
        The most iterations, for each stage (smooth terms, then level effects) of each restart.
    tol : float, default=0.05
        Stop when the log evidence no longer rises by this much.
    n_restarts : int, default=1
        Fits from so many random starts; the one with the best evidence is kept.
    memory : int or str, default="2GB"
        What sums over rows may take, in bytes or as text: where tables of sums fit, iterations need not go
        over the rows again. What is planned is in ``plan_``, and shown before it is done with
        ``verbose=1``.
    n_jobs : int, default=None
        Threads for passes over many rows; -1 for all cores. None is as many as the environment gives:
        ``OMP_NUM_THREADS`` if it is set, otherwise all cores.
    random_state : int, RandomState or None, default=None
        An integer makes the fit repeatable.
    verbose : int, default=0
        1 shows the fit's progress on standard error.

    Attributes
    ----------
    terms_ : tuple of Term
        The terms, active or not: name, kind, columns, status, importance, evidence.
    intercept_ : float
        Mean prediction over the training data; of counts, the mean logarithm of the rate, over
        exposure.
    noise_std_ : float
        Standard deviation of the noise, over all rows where it differs from row to row
        (:meth:`predict_noise`); NaN for counts, whose noise grows with their mean.
    noise_terms_ : tuple of Term
        What the logarithm of the noise's variance is the sum of, active or not; empty where the noise is
        the same everywhere.
    noise_shape_ : NoiseShape or None
        The distribution of noise that is not Gaussian: ``weights``, ``means`` and ``stds`` of the Gaussians
        that it is a mixture of, in units of the noise's standard deviation, its ``skewness`` and its
        ``excess_kurtosis``. None where it is Gaussian, and for counts.
    missing_noise_std_ : ndarray of shape (n_features,)
        Standard deviation of the noise that a column adds where it is missing: of what it would have
        said. ``noise_std_`` is that of rows without gaps.
    dispersion_ : float
        For counts, the ratio of their variance to their mean given the columns: 1 if they vary as a
        Poisson distribution does, more if events come in clusters. NaN for others.
    log_evidence_ : float
        Log evidence of the training data.
    interaction_scores_ : InteractionScores
        Every pair of columns with its score, best first, and why it is in the model or not.
    calibration_ : Calibration
        What :meth:`calibrate` found on held-out rows; only after that, and until the next fit.
    edits_ : tuple of dict
        Records of what :meth:`edit_term` changed, in this order; empty after a fit.
    plan_ : FitPlan
        What the fit did with its rows: the size of its sums, and how many passes it took.
    n_iter_, converged_, history_
        Number of iterations, whether the evidence had stopped rising, and a record an iteration.
    n_features_in_, feature_names_in_
        Number of columns, and their names where the data had names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lanam import LANAMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LANAMRegressor(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.4)
    True
    """

    calibration_: Calibration

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        family = FAMILIES.get(self.likelihood) if isinstance(self.likelihood, str) else None
        tags.target_tags.positive_only = family is not None and family.positive
        return tags

    @property
    def _asked_family(self) -> Family:
        return find_family(self.likelihood)

    def _set_fitted(self, model: FittedModel, schema: Schema, n_rows: int, score: str) -> None:
        family = find_family(model.likelihood)
        noise, dispersion = family.noise_std(model), family.dispersion(model)
        self.noise_std_ = float("nan") if noise is None else noise
        self.dispersion_ = float("nan") if dispersion is None else dispersion
        gaps = np.zeros(schema.n_columns) if model.gap_variance is None else model.gap_variance
        self.missing_noise_std_ = np.sqrt(gaps)
        self.noise_shape_ = model.shape
        self.noise_terms_ = () if model.noise is None else describe_terms(model.noise, schema)
        super()._set_fitted(model, schema, n_rows, score)

    def _rows(self, X: Any, exposure: Any) -> tuple[FittedModel, Array, Array]:
        """What the family predicts from: model, columns and exposures."""
        columns = self._columns(X)
        return self._model, columns, self._read_exposure(self.family_, exposure, len(columns))

    def _predictive(self, X: Any, exposure: Any) -> Predictive:
        """The distributions of new observations."""
        return self.family_.predictive(*self._rows(X, exposure))

    @in_chunks(predictions)
    def predict(self, X: Any, return_std: bool = False, exposure: Any = None) -> Any:
        """Mean of y, and the standard deviation of a new observation.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            Files as :meth:`fit` takes them are read chunk by chunk. Of a Dask frame the result is Dask's,
            "prediction", and as lazy; with ``return_std=True`` it is a frame. Columns of these that the
            model does not need are left alone.
        return_std : bool, default=False
            Whether to return the standard deviation as well. It includes the noise.
        exposure : float or array-like of shape (n_samples,), default=None
            For counts, what they will be counted over; one by default, for which the mean is the
            rate. Of files and Dask frames the name of a column, or one number.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Averaged over the posterior.
        std : ndarray of shape (n_samples,)
            Only with ``return_std=True``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X, y)
        >>> mean, std = model.predict(X[:5], return_std=True)
        >>> bool((std > model.predict_noise(X[:5])).all())
        True
        """
        family, rows = self.family_, self._rows(X, exposure)
        if not return_std:
            return family.predict(*rows)
        found = family.predictive(*rows)
        return found.mean, found.std

    def predict_noise(self, X: Any) -> Array:
        """Standard deviation of the noise alone: of what no mean, however well known, would explain.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        std : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(500, 1))
        >>> y = X[:, 0] + np.exp(2 * X[:, 0] - 2) * rng.normal(size=500)
        >>> model = LANAMRegressor(random_state=0).fit(X, y)
        >>> [term.name for term in model.noise_terms_ if term.active]
        ['x0']
        >>> quiet, loud = model.predict_noise([[0.0], [1.0]])
        >>> bool(4 < loud / quiet < 12)
        True
        """
        self._require_noise()
        return np.sqrt(scoring.noise_variances(self._model, self._columns(X)))

    def explain_noise(self) -> GlobalExplanation:
        """What makes rows noisy: the functions of single columns that the noise's variance is made of.

        They add up to the logarithm of the variance, of rows without gaps: where a column adds
        0.69, the variance is twice, and the standard deviation 1.4 times what it would be.

        Returns
        -------
        explanation : GlobalExplanation
            Plain data, as that of the mean (:meth:`explain_global`), and drawn in the same way.

        Raises
        ------
        ValueError
            If the noise is the same everywhere (``noise_terms_`` is empty).

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(500, 1))
        >>> y = X[:, 0] + np.exp(2 * X[:, 0] - 2) * rng.normal(size=500)
        >>> noise = LANAMRegressor(random_state=0).fit(X, y).explain_noise()
        >>> mean, std = noise.evaluate("x0", [0.1, 0.9])
        >>> bool(mean[1] - mean[0] > 2)
        True
        """
        self._require_noise()
        noise = self._model.noise
        if noise is None:
            raise InputError(
                f"the noise of this model is the same everywhere: {self._why_constant()}"
            )
        # What is predicted: beyond the data, too, and in the unit of y.
        terms = tuple(
            replace(term, mean=scoring.held_table(term)) if term.active else term
            for term in noise.terms
        )
        intercept = noise.intercept + float(np.log(self._model.noise_variance))
        return explain_global(replace(noise, terms=terms, intercept=intercept), self._schema)

    def _require_noise(self) -> None:
        if not self.family_.has_noise:
            remedy = "see {dispersion_ and predict(X, return_std=True)}"
            raise InputError("the noise of counts is that of their rate", remedy)

    def _why_constant(self) -> str:
        if self.noise == "constant":
            return "{noise='constant'} asks for that"
        if is_papers(self.get_params(deep=False)):
            return "solver='adam' and curvature='kron', the paper's, know no other"
        return "no column was found that says how large it is better than a constant does"

    @in_chunks(quantiles)
    def predict_quantile(
        self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), exposure: Any = None
    ) -> Array:
        """Quantiles of new observations: of the predictive distribution, not of the mean alone.

        They are the model's own, also after :meth:`calibrate`.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        quantiles : float or sequence of float, default=(0.05, 0.5, 0.95)
            Probabilities between 0 and 1.
        exposure : float or array-like of shape (n_samples,), default=None
            As for :meth:`predict`.

        Returns
        -------
        values : ndarray of shape (n_samples, n_quantiles)
            Of counts, the smallest that a new one does not exceed with at least that probability.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(1000, 1))
        >>> y = rng.poisson(3.5 * np.exp(X[:, 0]))
        >>> model = LANAMRegressor(likelihood="poisson", random_state=0).fit(X, y)
        >>> model.predict_quantile([[0.0]], (0.1, 0.5, 0.9))
        array([[1., 3., 6.]])
        """
        probabilities = [require_probability(q) for q in np.atleast_1d(quantiles)]
        rows = self._predictive(X, exposure)
        return np.stack([rows.ppf(p) for p in probabilities], axis=1)

    def predict_cdf(self, X: Any, y: Any, exposure: Any = None) -> Array:
        """Probability that a new observation is at most y: where in its prediction y lies.

        Of a calibrated model's observations these are spread evenly between 0 and 1. They are the
        model's own, also after :meth:`calibrate`.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        y : float or array-like of shape (n_samples,)
        exposure : float or array-like of shape (n_samples,), default=None
            As for :meth:`predict`; a model that was fitted with one needs it here.

        Returns
        -------
        probability : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> X = np.linspace(-1, 1, 50)[:, None]
        >>> model = LANAMRegressor(random_state=0).fit(X, X[:, 0])
        >>> model.predict_cdf([[0.5]], model.predict_quantile([[0.5]], 0.9)[:, 0]).round(3)
        array([0.9])
        """
        self._require_exposure(exposure)
        rows = self._predictive(X, exposure)
        return rows.cdf(self._read_values(y, len(rows.mean)))

    def _read_values(self, y: Any, n_rows: int) -> Array:
        """Observations that are asked about: one for each row, or one for all."""
        values = np.full(n_rows, y) if np.ndim(y) == 0 else y
        return read_response(read_target(self, values, n_rows), type(self).__name__)

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Make :meth:`predict_interval` keep its promise, by rows that the model has not seen.

        Split conformal prediction: afterwards, of new rows that come from where these did, intervals
        hold at least as many as their coverage says, on average over rows and over draws of the
        held-out ones, whatever the model got wrong. They are the model's own intervals of another
        level, so they stay wider where the model is less sure; they need not hold their share of
        every kind of row.

        **The rows must not be training rows**, on which residuals are too small. A few hundred are
        enough; a coverage of 0.95 needs 19 at least, one of 0.99 needs 99. The next fit forgets them.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Held-out rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        exposure : float or array-like of shape (n_samples,), default=None
            As for :meth:`fit`; a model that was fitted with one needs it here.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(900, 1))
        >>> y = X[:, 0] + rng.standard_t(2, size=900)  # far from Gaussian, as the paper's noise is
        >>> model = LANAMRegressor(noise="constant", random_state=0).fit(X[:300], y[:300])
        >>> model = model.calibrate(X[300:600], y[300:600])
        >>> own = model.predict_interval(X[600:], coverage=0.8, calibrated=False)
        >>> mended = model.predict_interval(X[600:], coverage=0.8)
        >>> [
        ...     round(float(((low < y[600:]) & (y[600:] < up)).mean()), 2)
        ...     for low, up in (own.T, mended.T)
        ... ]
        [0.96, 0.8]
        """
        self._require_exposure(exposure)
        rows = self._predictive(X, exposure)
        scores = rows.score(self._read_target(self.family_, y, len(rows.mean)))
        self.calibration_ = calibrated_by(scores, read_weights(sample_weight, len(scores)))
        return self

    @in_chunks(intervals)
    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.95,
        kind: str = "response",
        exposure: Any = None,
        calibrated: bool = True,
    ) -> Array:
        """Central intervals of new observations, or of the mean.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            As for :meth:`predict`; of a Dask frame the columns are "lower" and "upper".
        coverage : float, default=0.95
            Probability of the interval.
        kind : {"response", "mean"}, default="response"
            Whether the interval is for a new observation, noise included, or for the mean of y.
        exposure : float or array-like of shape (n_samples,), default=None
            As for :meth:`predict`.
        calibrated : bool, default=True
            After :meth:`calibrate`, whether intervals of new observations are as wide as the held-out
            rows ask; False gives the model's own, as before. Intervals of the mean are always the
            model's own: no row shows the mean.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
            Lower and upper ends. Of counts both belong to the interval, whose probability is at least
            the coverage: whole numbers rarely have an interval of just that.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X, y)
        >>> lower, upper = model.predict_interval(X, coverage=0.9).T
        >>> bool(0.85 < ((lower < y) & (y < upper)).mean() < 0.95)
        True
        """
        tail = 0.5 - 0.5 * require_coverage(coverage)
        if kind == "response":
            if calibrated and hasattr(self, "calibration_"):
                threshold = self.calibration_.threshold(coverage)
                return self._predictive(X, exposure).interval(threshold)
            ends: Array = self.predict_quantile(X, (tail, 1.0 - tail), exposure)
            return ends
        if kind != "mean":
            raise ValueError(f"kind={kind!r} is not known: choose 'response' or 'mean'")
        model, columns, exposed = self._rows(X, exposure)
        # Quantiles go through the link unchanged.
        ends = link_interval(model, columns, ndtri([tail, 1.0 - tail]))
        return self.family_.response(ends, exposed[:, None])

    def sample(
        self, X: Any, n_samples: int = 100, random_state: Any = None, exposure: Any = None
    ) -> Array:
        """Posterior draws of the mean: each draw is one function, evaluated at all rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        n_samples : int, default=100
            How many draws.
        random_state : int, RandomState or None, default=None
        exposure : float or array-like of shape (n_samples,), default=None
            As for :meth:`predict`.

        Returns
        -------
        draws : ndarray of shape (n_samples, n_rows)
            Draws of the mean of y, without noise.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X[:, [2, 3]], y)
        >>> model.sample(X[:5, [2, 3]], n_samples=10, random_state=0).shape
        (10, 5)
        """
        links = super().sample(X, n_samples, random_state)
        family = self.family_
        return family.response(links, self._read_exposure(family, exposure, links.shape[1]))

    @summed(_squares, _r_squared)
    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """R^2 of the predicted means.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
        y : array-like of shape (n_samples,), or str
            Of files and Dask frames ``y`` and all that follow are names of columns.
        sample_weight : array-like of shape (n_samples,), default=None
        exposure : float or array-like of shape (n_samples,), default=None
            As for :meth:`predict`; a model that was fitted with one needs it here.

        Returns
        -------
        score : float

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> bool(LANAMRegressor(random_state=0).fit(X, y).score(X, y) > 0.4)
        True
        """
        self._require_exposure(exposure)
        mean = self.predict(X, exposure=exposure)
        return float(r2_score(y, mean, sample_weight=sample_weight))

    @averaged
    def log_likelihood(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None
    ) -> float:
        """Mean log predictive density of observations: the higher the better.

        Parameters
        ----------
        X, y, sample_weight, exposure
            As for :meth:`score`.

        Returns
        -------
        log_likelihood : float

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X, y)
        >>> bool(-6 < model.log_likelihood(X, y) < -5)
        True
        """
        self._require_exposure(exposure)
        rows = self._predictive(X, exposure)
        density = rows.log_prob(self._read_target(self.family_, y, len(rows.mean)))
        return weighted_mean(density, sample_weight)

    @averaged
    def crps(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """Mean continuous ranked probability score of observations, in the unit of y: the lower the better.

        It is the mean absolute error of a prediction without uncertainty, and less for one that tells its
        uncertainty honestly.

        Parameters
        ----------
        X, y, sample_weight, exposure
            As for :meth:`score`.

        Returns
        -------
        crps : float

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X, y)
        >>> bool(28 < model.crps(X, y) < 31)
        True
        """
        self._require_exposure(exposure)
        rows = self._predictive(X, exposure)
        found = rows.crps(self._read_target(self.family_, y, len(rows.mean)))
        return weighted_mean(found, sample_weight)


def require_probability(value: Any) -> float:
    """Refuse a quantile that is not between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"quantiles must lie between 0 and 1, and one is {value!r}")
    return float(value)
