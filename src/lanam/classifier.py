"""LANAMClassifier: scikit-learn's classifier over the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, ndtri
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from lanam.additive import AdditiveModel, generator, require_coverage, weighted_mean
from lanam.core.arrays import Array
from lanam.core.predictive import moderated_log_odds
from lanam.inputs import read_labels
from lanam.observations import Observations

#: Rows times draws that are held at once when probabilities are averaged over draws.
_CHUNK_VALUES = 1 << 22


class LANAMClassifier(ClassifierMixin, AdditiveModel):  # type: ignore[misc]
    """Laplace-approximated neural additive model for two classes.

    The log-odds of the second class are an intercept and a sum of functions of single columns, each
    a small neural network. Probabilities are averaged over the posterior: where the model is unsure
    of the log-odds they move towards one half.

    Parameters
    ----------
    interactions, interaction_score, level_effects, hidden_sizes, pair_hidden_sizes, activation
        As for :class:`LANAMRegressor`.
    init_scales, prior_groups, posterior, curvature, solver, evidence_update, categorical_features
        As for :class:`LANAMRegressor`.
    max_knots, max_iter, tol, n_restarts, random_state, verbose
        As for :class:`LANAMRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; probabilities' columns are in this order.
    terms_, intercept_, log_evidence_, interaction_scores_
        As for :class:`LANAMRegressor`, in log-odds.
    n_iter_, converged_, history_, n_features_in_, feature_names_in_
        As for :class:`LANAMRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from lanam import LANAMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
    >>> bool(model.score(X[:, :5], y) > 0.9)
    True
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _read_target(self, y: Any, n_rows: int) -> np.ndarray:
        return read_labels(self, y, n_rows)

    def _encode(self, target: np.ndarray, weight: Array, exposure: Array) -> Observations:
        check_classification_targets(target)
        self.classes_, response = np.unique(target, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(target)}, with {len(self.classes_)} classes: combine classes, or "
                "fit one model a class with sklearn.multiclass.OneVsRestClassifier."
            )
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(
                f"y has one class only ({only!r}) among the rows with a positive weight: a "
                "classifier needs rows of two classes"
            )
        return Observations(response.astype(np.float64), weight, "bernoulli")

    def _encode_again(self, target: np.ndarray, weight: Array, exposure: Array) -> Observations:
        return Observations(self._is_second(target).astype(np.float64), weight, "bernoulli")

    def _is_second(self, labels: np.ndarray) -> np.ndarray:
        """Which labels are of the second class; others than the training data's are refused."""
        second = labels == self.classes_[1]
        unknown = ~(second | (labels == self.classes_[0]))
        if unknown.any():
            label = labels[unknown].tolist()[0]
            raise ValueError(
                f"y has the label {label!r}, which was not among the training data's: "
                f"{self.classes_.tolist()}"
            )
        return second

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class, averaged over the posterior.

        The logit of ``predict_proba``, so both rank rows alike. The log-odds at the posterior mean
        are ``intercept_ + predict_terms(X).sum(axis=1)``.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        log_odds : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> odds = np.exp(model.decision_function(X[:3, :5]))
        >>> np.allclose(odds / (1 + odds), model.predict_proba(X[:3, :5])[:, 1])
        True
        """
        mean, variance = self._link_moments(X)
        return moderated_log_odds(mean, variance)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> model.predict(X[:3, :5])
        array([0, 0, 0])
        """
        # The class does not depend on the variance, which is dearer than the mean.
        link = self._link_mean(X)
        labels: np.ndarray = self.classes_[(link > 0.0).astype(int)]
        return labels

    def predict_proba(
        self, X: Any, method: str = "probit", n_samples: int = 1000, random_state: Any = 0
    ) -> Array:
        """Probability of each class, averaged over the posterior.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        method : {"probit", "mc"}, default="probit"
            MacKay's closed-form approximation of the average, or a mean over draws.
        n_samples : int, default=1000
            How many draws, for "mc".
        random_state : int, RandomState or None, default=0
            Of the draws, for "mc".

        Returns
        -------
        probability : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> model.predict_proba(X[:3, :5]).shape
        (3, 2)
        """
        if method == "probit":
            logit = self.decision_function(X)
            return np.column_stack([expit(-logit), expit(logit)])
        if method != "mc":
            raise ValueError(f"method={method!r} is not known: choose 'probit' or 'mc'")
        mean, variance = self._link_moments(X)
        # A row's log-odds are Gaussian, so draws of single rows are as good as draws of functions.
        draws = generator(random_state).standard_normal(n_samples)
        second = np.empty_like(mean)
        step = max(_CHUNK_VALUES // n_samples, 1)
        for start in range(0, len(mean), step):
            part = slice(start, start + step)
            links = mean[part, None] + np.sqrt(variance[part, None]) * draws
            second[part] = expit(links).mean(axis=1)
        return np.column_stack([1.0 - second, second])

    def predict_interval(self, X: Any, coverage: float = 0.95, kind: str = "mean") -> Array:
        """Central intervals of the probability of the second class.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        coverage : float, default=0.95
            Posterior probability of the interval.
        kind : {"mean"}, default="mean"
            Only the probability has an interval; a class has none.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
            Lower and upper ends.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> model.predict_interval(X[:3, :5], coverage=0.9).shape
        (3, 2)
        """
        if kind != "mean":
            raise ValueError(
                f"kind={kind!r} does not apply to classes: choose 'mean', the interval of the "
                "probability"
            )
        quantile = ndtri(0.5 + 0.5 * require_coverage(coverage))
        mean, variance = self._link_moments(X)
        half = quantile * np.sqrt(variance)
        return np.asarray(expit(np.column_stack([mean - half, mean + half])))

    def sample(self, X: Any, n_samples: int = 100, random_state: Any = None) -> Array:
        """Posterior draws of the probability of the second class.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        n_samples : int, default=100
            How many draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        draws : ndarray of shape (n_samples, n_rows)

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> model.sample(X[:3, :5], n_samples=10, random_state=0).shape
        (10, 3)
        """
        return np.asarray(expit(super().sample(X, n_samples, random_state)))

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log probability of the observed classes: the higher the better.

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
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> bool(-0.3 < model.log_likelihood(X[:, :5], y) < 0)
        True
        """
        logit = self.decision_function(X)
        labels = self._read_target(y, len(logit))
        second = self._is_second(labels)
        # log p and log(1 - p) from the logit itself: a probability near one would be rounded.
        return weighted_mean(log_expit(np.where(second, logit, -logit)), sample_weight)
