"""LANAMRegressor: scikit-learn's regressor over the core."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import RegressorMixin

from lanam.additive import AdditiveModel, require_coverage, weighted_mean
from lanam.core.arrays import Array
from lanam.core.model import FittedModel
from lanam.core.predictive import gaussian_log_density
from lanam.data import Schema
from lanam.inputs import read_response


class LANAMRegressor(RegressorMixin, AdditiveModel):  # type: ignore[misc]
    """Laplace-approximated neural additive model for regression.

    The mean of y is an intercept and a sum of functions of single columns, each a small neural
    network. How smooth each function is, which ones are needed at all, and how noisy y is follow
    from maximising the evidence; nothing needs tuning by cross-validation.

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
    likelihood : {"gaussian"}, default="gaussian"
        Distribution of y around its mean.
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
        How networks are trained; "adam" is the paper's, and knows no level effects.
    evidence_update : {"mackay", "gradient"}, default="mackay"
        How precisions and noise follow the evidence; "gradient" is the paper's.
    categorical_features : "auto", default="auto"
        Categorical columns; not available in this version.
    max_knots : int, default=256
        At how many points the function of a column with more values than that is tabulated.
    max_iter : int, default=100
        The most iterations, for each stage (smooth terms, then level effects) of each restart.
    tol : float, default=0.05
        Stop when the log evidence no longer rises by this much.
    n_restarts : int, default=1
        Fits from so many random starts; the one with the best evidence is kept.
    random_state : int, RandomState or None, default=None
        An integer makes the fit repeatable.
    verbose : int, default=0
        1 shows the fit's progress on standard error.

    Attributes
    ----------
    terms_ : tuple of Term
        The terms, active or not: name, kind, columns, status, importance, evidence.
    intercept_ : float
        Mean prediction over the training data.
    noise_std_ : float
        Standard deviation of the noise.
    log_evidence_ : float
        Log evidence of the training data.
    interaction_scores_ : InteractionScores
        Every pair of columns with its score, best first, and why it is in the model or not.
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

    def __init__(
        self,
        *,
        interactions: Any = "auto",
        interaction_score: str = "evidence",
        level_effects: Any = "auto",
        likelihood: str = "gaussian",
        hidden_sizes: Any = (64,),
        pair_hidden_sizes: Any = (64,),
        activation: str = "gelu",
        init_scales: Any = "auto",
        prior_groups: str = "layer",
        posterior: str = "joint",
        curvature: str = "exact",
        solver: str = "gauss-newton",
        evidence_update: str = "mackay",
        categorical_features: Any = "auto",
        max_knots: int = 256,
        max_iter: int = 100,
        tol: float = 0.05,
        n_restarts: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            interactions=interactions,
            interaction_score=interaction_score,
            level_effects=level_effects,
            hidden_sizes=hidden_sizes,
            pair_hidden_sizes=pair_hidden_sizes,
            activation=activation,
            init_scales=init_scales,
            prior_groups=prior_groups,
            posterior=posterior,
            curvature=curvature,
            solver=solver,
            evidence_update=evidence_update,
            categorical_features=categorical_features,
            max_knots=max_knots,
            max_iter=max_iter,
            tol=tol,
            n_restarts=n_restarts,
            random_state=random_state,
            verbose=verbose,
        )
        self.likelihood = likelihood

    def _read_target(self, y: Any, n_rows: int) -> Array:
        return read_response(self, y, n_rows)

    def _encode(self, target: np.ndarray) -> tuple[Array, str]:
        if target.min() == target.max():
            warnings.warn(
                f"y has one value only ({target[0]:g}): the model predicts it everywhere",
                UserWarning,
                stacklevel=3,
            )
        return target, self.likelihood

    def _keep(self, model: FittedModel, schema: Schema, n_rows: int, score: str) -> None:
        self.noise_std_ = float(np.sqrt(model.noise_variance))
        super()._keep(model, schema, n_rows, score)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of y, and the standard deviation of a new observation.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the standard deviation as well. It includes the noise.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,)
            Only with ``return_std=True``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X, y)
        >>> mean, std = model.predict(X[:5], return_std=True)
        >>> bool((std > model.noise_std_).all())
        True
        """
        if not return_std:
            return self._link_mean(X)
        mean, variance = self._link_moments(X)
        return mean, np.sqrt(variance + self._model.noise_variance)

    def predict_interval(self, X: Any, coverage: float = 0.95, kind: str = "response") -> Array:
        """Central intervals of new observations, or of the mean.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        coverage : float, default=0.95
            Probability of the interval.
        kind : {"response", "mean"}, default="response"
            Whether the interval is for a new observation, noise included, or for the mean of y.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
            Lower and upper ends.

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
        if kind not in ("response", "mean"):
            raise ValueError(f"kind={kind!r} is not known: choose 'response' or 'mean'")
        quantile = ndtri(0.5 + 0.5 * require_coverage(coverage))
        mean, variance = self._link_moments(X)
        if kind == "response":
            variance = variance + self._model.noise_variance
        half = quantile * np.sqrt(variance)
        return np.column_stack([mean - half, mean + half])

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log predictive density of observations: the higher the better.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

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
        mean, variance = self._link_moments(X)
        target = self._read_target(y, len(mean))
        density = gaussian_log_density(target, mean, variance + self._model.noise_variance)
        return weighted_mean(density, sample_weight)
