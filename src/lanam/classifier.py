"""LANAMClassifier: scikit-learn's classifier over the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from lanam.additive import AdditiveModel, generator, weighted_mean
from lanam.chunked import (
    averaged,
    decisions,
    in_chunks,
    intervals,
    predictions,
    probabilities,
    sets,
)
from lanam.conformal import Calibration, calibrated_by, class_sets, own_scores, smallest_sets
from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.explain import require_coverage
from lanam.families import BERNOULLI, ClassFamily, Family
from lanam.families.base import link_interval
from lanam.families.labels import number_labels
from lanam.inputs import read_weights

#: Values that are held at once where every row has draws, or a covariance of its classes.
_CHUNK_VALUES = 1 << 22


class LANAMClassifier(ClassifierMixin, AdditiveModel):  # type: ignore[misc]
    """Laplace-approximated neural additive model for classes.

    Of two classes, the log-odds of the second are an intercept and a sum of functions of single
    columns, each a small neural network. Of more, every class has such a sum, its log-probability up
    to what all classes have in common (softmax): the terms' functions sum to zero over the classes. A
    term is in the model for all classes or for none.

    Probabilities are averaged over the posterior: where the model is unsure they move towards each
    other.

    Parameters
    ----------
    interactions, interaction_score, level_effects, hidden_sizes, pair_hidden_sizes, activation
        As for :class:`LANAMRegressor`.
    init_scales, prior_groups, posterior, curvature, solver, evidence_update, categorical_features
        As for :class:`LANAMRegressor`.
    max_knots, max_iter, tol, n_restarts, memory, n_jobs, random_state, verbose
        As for :class:`LANAMRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; probabilities' columns are in this order.
    intercept_ : float or ndarray of shape (n_classes,)
        Mean log-odds over the training data; of more than two classes, a score for each.
    terms_, log_evidence_, interaction_scores_
        As for :class:`LANAMRegressor`, in log-odds.
    calibration_ : Calibration
        What :meth:`calibrate` found on held-out rows; only after that, and until the next fit.
    edits_, plan_, n_iter_, converged_, history_, n_features_in_, feature_names_in_
        As for :class:`LANAMRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from lanam import LANAMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
    >>> bool(model.score(X[:, :5], y) > 0.9)
    True

    Of more than two classes each has a column, and a function in every term:

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LANAMClassifier(interactions=0, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape, model.predict_terms(X).shape
    ((150, 3), (150, 4, 3))
    """

    calibration_: Calibration

    @property
    def _asked_family(self) -> Family:
        return BERNOULLI  # or that of more classes, once they are counted

    def _learn_classes(self, classes: np.ndarray) -> None:
        self.classes_ = classes

    def _numbers(self, labels: np.ndarray) -> np.ndarray:
        """Which class each label is; others than the training data's are refused."""
        return number_labels(labels, self.classes_)

    @property
    def family_(self) -> ClassFamily:
        """The response family of the fitted model."""
        family = super().family_
        assert isinstance(family, ClassFamily)
        return family

    @property
    def _labels(self) -> np.ndarray:
        return self.classes_

    def _of_links(
        self, X: Any, function: Callable[[Array, Array], Array], n_draws: int = 1
    ) -> Array:
        """A function of mean and variance of the rows' links, in parts that fit into memory."""
        columns = self._columns(X)
        n_classes = len(self.classes_)
        size = max(_CHUNK_VALUES // (n_classes * max(n_classes, n_draws)), 1)
        starts = range(0, len(columns), size)
        moments = (scoring.link_moments(self._model, columns[at : at + size]) for at in starts)
        return np.concatenate([function(*each) for each in moments])

    @in_chunks(decisions)
    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second class, or the log-probability of each of more than two.

        Averaged over the posterior: the logit or the logarithm of ``predict_proba``, so both rank
        rows alike. What they are at the posterior mean, of more than two classes up to what all have
        in common, is ``intercept_ + predict_terms(X).sum(axis=1)``.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        decision : ndarray of shape (n_samples,)
            Of more than two classes, (n_samples, n_classes).

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
        check_is_fitted(self)
        return self._of_links(X, self.family_.decision)

    @in_chunks(predictions)
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            Files as :meth:`fit` takes them are read chunk by chunk. Of a Dask frame the result is Dask's,
            "prediction", and as lazy. Columns that the model does not need are left alone.

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
        if self.family_.link.several:
            # Doubt about a class moves its probability, so here the variance may decide.
            number = self.decision_function(X).argmax(axis=1)
        else:
            # Of two the class does not depend on the variance, which is dearer than the mean.
            number = (self._link_mean(X) > 0.0).astype(int)
        labels: np.ndarray = self.classes_[number]
        return labels

    @in_chunks(probabilities)
    def predict_proba(
        self, X: Any, method: str = "probit", n_samples: int = 1000, random_state: Any = 0
    ) -> Array:
        """Probability of each class, averaged over the posterior.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            As for :meth:`predict`; of a Dask frame the columns are called as the classes.
        method : {"probit", "mc"}, default="probit"
            MacKay's closed-form approximation of the average (of more than two classes, of the
            log-odds of every two of them), or a mean over draws.
        n_samples : int, default=1000
            How many draws, for "mc".
        random_state : int, RandomState or None, default=0
            Of the draws, for "mc".

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; rows sum to one.

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
            return self.family_.probability(self.decision_function(X))
        if method != "mc":
            raise ValueError(f"method={method!r} is not known: choose 'probit' or 'mc'")
        return self._of_draws(X, lambda draws: draws.mean(axis=1), n_samples, random_state)

    def _of_draws(
        self, X: Any, function: Callable[[Array], Array], n_samples: int, random_state: Any
    ) -> Array:
        """A function of draws (n, n_samples, n_classes) of the rows' probabilities."""
        family = self.family_
        # A row's links are Gaussian, so draws of single rows are as good as draws of functions.
        shape = family.n_normals(n_samples, len(self.classes_))
        normal = generator(random_state).standard_normal(shape)

        def of_moments(mean: Array, variance: Array) -> Array:
            return function(family.draw(mean, variance, normal))

        return self._of_links(X, of_moments, n_samples)

    @in_chunks(intervals)
    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.95,
        kind: str = "mean",
        n_samples: int = 1000,
        random_state: Any = 0,
    ) -> Array:
        """Central intervals of the probability of the second class, or of each of more than two.

        :meth:`calibrate` does not change them: no row shows a probability, only a class.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        coverage : float, default=0.95
            Posterior probability of the interval.
        kind : {"mean"}, default="mean"
            Only the probability has an interval; a class has none.
        n_samples : int, default=1000
            Of more than two classes, intervals are quantiles of so many draws.
        random_state : int, RandomState or None, default=0
            Of these draws.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
            Lower and upper ends. Of more than two classes, (n_samples, n_classes, 2).

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
        upper = 0.5 + 0.5 * require_coverage(coverage)
        if self.family_.link.several:

            def quantiles(draws: Array) -> Array:
                return np.moveaxis(np.quantile(draws, [1.0 - upper, upper], axis=1), 0, -1)

            return self._of_draws(X, quantiles, n_samples, random_state)
        ends = link_interval(self._model, self._columns(X), ndtri([1.0 - upper, upper]))
        return self.family_.link.inverse(ends)

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make :meth:`predict_set` keep its promise, by rows that the model has not seen.

        Split conformal prediction with adaptive sets: afterwards, of new rows that come from where these
        did, sets hold the class of at least as many as their coverage says, on average over rows
        and over draws of the held-out ones, whatever the model got wrong. Probabilities and their
        intervals stay as they are.

        **The rows must not be training rows**, on which the model is too sure. A few hundred are enough;
        a coverage of 0.95 needs 19 at least, one of 0.99 needs 99. The next fit forgets them.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Held-out rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from lanam import LANAMClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LANAMClassifier(interactions=0, random_state=0).fit(X[::3], y[::3])
        >>> model = model.calibrate(X[1::3], y[1::3])
        >>> sets = model.predict_set(X[2::3], coverage=0.9)
        >>> bool(sets[range(50), y[2::3]].mean() > 0.8)
        True
        """
        probability = self.predict_proba(X)
        weight = read_weights(sample_weight, len(probability))
        numbers = self._numbers(self._read_target(self.family_, y, len(probability)))
        self.calibration_ = calibrated_by(own_scores(probability, numbers), weight)
        return self

    @in_chunks(sets)
    def predict_set(
        self, X: Any, coverage: float = 0.9, calibrated: bool = True
    ) -> NDArray[np.bool_]:
        """Sets of classes that hold each row's own with the given probability.

        The fewest most probable classes whose probabilities sum to the coverage; after :meth:`calibrate`,
        to what the held-out rows ask. The most probable class is always in. Sets hold *at least* their
        coverage: where one class is right more often than that, no smaller set is left.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        coverage : float, default=0.9
            Probability that the set holds the class.
        calibrated : bool, default=True
            After :meth:`calibrate`, whether to use the held-out rows; False gives the model's own sets.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from lanam import LANAMClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LANAMClassifier(interactions=0, random_state=0).fit(X[::2], y[::2])
        >>> model.predict_set([[5.0, 3.4, 1.5, 0.2]], coverage=0.8)
        array([[ True, False, False]])
        """
        require_coverage(coverage)
        probability = self.predict_proba(X)
        if calibrated and hasattr(self, "calibration_"):
            return class_sets(probability, self.calibration_.threshold(coverage))
        return smallest_sets(probability, coverage)

    def sample(self, X: Any, n_samples: int = 100, random_state: Any = None) -> Array:
        """Posterior draws of the probability of the second class, or of each of more than two.

        Each draw is one model, evaluated at all rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        n_samples : int, default=100
            How many draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        draws : ndarray of shape (n_samples, n_rows)
            Of more than two classes, (n_samples, n_rows, n_classes).

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> model.sample(X[:3, :5], n_samples=10, random_state=0).shape
        (10, 3)
        """
        links = super().sample(X, n_samples, random_state)
        return self.family_.link.inverse(links)

    @averaged
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows whose most probable class is their own.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
        y : array-like of shape (n_samples,), or str
            Of files and Dask frames ``y`` and ``sample_weight`` are names of columns.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> bool(LANAMClassifier(random_state=0).fit(X[:, :5], y).score(X[:, :5], y) > 0.9)
        True
        """
        return float(ClassifierMixin.score(self, X, y, sample_weight))

    @averaged
    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log probability of the observed classes: the higher the better.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`score`.

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
        decision = self.decision_function(X)
        numbers = self._numbers(self._read_target(self.family_, y, len(decision)))
        return weighted_mean(self.family_.log_prob(decision, numbers), sample_weight)
