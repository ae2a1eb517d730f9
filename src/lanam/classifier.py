"""LANAMClassifier: a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from lanam.additive import AdditiveModel, generator, weighted_mean
from lanam.chunked import averaged, in_chunks
from lanam.conformal import Calibration, calibrated_by, class_sets, own_scores, smallest_sets
from lanam.core.arrays import Array
from lanam.errors import InputError, choose
from lanam.explain import require_coverage
from lanam.families import BERNOULLI, ORDINAL, ClassFamily, Family
from lanam.families.base import NewRows, link_interval
from lanam.families.labels import number_labels
from lanam.families.ordinal import OrdinalFamily
from lanam.inputs import read_groups, read_weights
from lanam.parameters import ClassifierParameters, refuse_class_weight
from lanam.sessions import Session
from lanam.training import FitInputs, TrainingData, order_of

#: Maximum number of values in memory when each row has draws, or a covariance matrix of its classes.
_CHUNK_VALUES = 1 << 22


class LANAMClassifier(ClassifierMixin, ClassifierParameters, AdditiveModel):  # type: ignore[misc]
    """Laplace-approximated neural additive model for classification.

    With two classes, the log-odds of the second are an intercept plus a sum of shape functions, one small
    neural network per column, plus interactions. With more, every class has such a sum, its
    centred logit (softmax), and shape functions sum to zero over the classes. A term is active for all
    classes or for none.

    Probabilities are averaged over the posterior: uncertainty moves them towards each other. There is no
    ``class_weight``, because probabilities would no longer be those of the data: to act on a rare class,
    lower the threshold of :meth:`predict_proba`.

    Parameters
    ----------
    likelihood : {"categorical", "ordinal"}, default="categorical"
        "ordinal" for more than two classes in an order, such as grades: one sum of shape functions, whose
        scale is divided by learned cut points (proportional odds). The order is that of an ordered
        categorical dtype of y, otherwise the sorted one. Contributions are to the log-odds of passing
        any of the cut points.
    interactions, interaction_score, max_order, max_pairs, time_budget, level_effects, hidden_sizes
        As in :class:`LANAMRegressor`.
    pair_hidden_sizes
        As in :class:`LANAMRegressor`.
    activation, init_scales, prior_groups, posterior, curvature, solver, evidence_update, pure
        As in :class:`LANAMRegressor`.
    learning_rates, schedule, epochs, batch_size, evidence_steps, patience
        As in :class:`LANAMRegressor`.
    categorical_features, monotonic_cst, shape_cst
        As in :class:`LANAMRegressor`; constraints are on the log-odds of two or ordinal classes.
    cyclic, linear, ordered, keep, exclude_pairs, by, random_slopes, spatial
        As in :class:`LANAMRegressor`.
    max_knots, max_iter, tol, n_restarts, memory, n_jobs, random_state, verbose
        As in :class:`LANAMRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels, the order of the columns of probabilities; with ``likelihood="ordinal"`` in
        the order of the grades.
    family_parameters_ : dict
        With ``likelihood="ordinal"`` the "cut_points", of which the first is 0; otherwise empty.
    intercept_ : float or ndarray of shape (n_classes,)
        Mean log-odds over the training data; with more than two classes, the mean centred logits.
    terms_, log_evidence_, interaction_scores_, feature_importances_
        As in :class:`LANAMRegressor`, in log-odds.
    calibration_ : Calibration
        The result of :meth:`calibrate`; discarded by the next fit.
    edits_, family_, group_std_, plan_, provenance_, n_iter_, converged_, history_, n_features_in_,
    feature_names_in_
        As in :class:`LANAMRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from lanam import LANAMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
    >>> bool(model.score(X[:, :5], y) > 0.9)
    True

    With more than two classes every term has one shape function per class:

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LANAMClassifier(interactions=0, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape, model.predict_terms(X).shape
    ((150, 3), (150, 4, 3))
    """

    calibration_: Calibration

    @property
    def _asked_family(self) -> Family:
        if self.likelihood == "categorical":
            return BERNOULLI  # the encoding of y replaces it if there are more than two classes
        if self.likelihood == ORDINAL.name:
            return ORDINAL
        raise InputError(
            "{given} is not known",
            choose("categorical", ORDINAL.name),
            argument="likelihood",
            value=self.likelihood,
        )

    def _choose_family(self, data: TrainingData, inputs: FitInputs, session: Session) -> Family:
        asked = self._asked_family
        return OrdinalFamily(order_of(inputs)) if asked is ORDINAL else asked

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the constructor, as scikit-learn's estimators do.

        Examples
        --------
        >>> from lanam import LANAMClassifier
        >>> LANAMClassifier().set_params(interactions=0).interactions
        0
        """
        refuse_class_weight(params)
        super().set_params(**params)
        return self

    def _learn_classes(self, classes: np.ndarray) -> None:
        self.classes_ = classes

    def _numbers(self, labels: np.ndarray) -> np.ndarray:
        """Indices of the labels in ``classes_``; unseen labels are refused."""
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

    @property
    def _explained_labels(self) -> np.ndarray:
        return self.family_.explained(self.classes_)

    def _of_links(
        self, rows: NewRows, function: Callable[[Array, Array], Array], n_draws: int = 1
    ) -> Array:
        """A function of mean and variance of the rows' logits, applied in chunks to bound memory."""
        n_classes = len(self.classes_)
        size = max(_CHUNK_VALUES // (n_classes * max(n_classes, n_draws)), 1)
        starts = range(0, len(rows.columns), size)
        moments = (rows.part(slice(at, at + size)).moments(self._model) for at in starts)
        return np.concatenate([function(*each) for each in moments])

    @in_chunks
    def decision_function(self, X: Any, *, offset: Any = None) -> Array:
        """Log-odds of the second class, or log-probabilities of more than two classes.

        Averaged over the posterior: the logit, or logarithm, of ``predict_proba``.
        Logits at the posterior mean are ``intercept_ + predict_terms(X).sum(axis=1)``.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

        Returns
        -------
        decision : ndarray of shape (n_samples,)
            With more than two classes, (n_samples, n_classes).

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
        return self._of_links(self._rows(X, offset=offset), self.family_.decision)

    @in_chunks
    def predict(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """The most probable class of each row.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            Files as in :meth:`fit` are read chunk by chunk. For a Dask frame the result is a lazy Dask
            series "prediction". Columns that the model does not use are ignored.
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

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
        check_is_fitted(self)
        if len(self.classes_) > 2:
            # The variance of the logits changes which class is the most probable.
            number = self.decision_function(X, offset=offset).argmax(axis=1)
        else:
            # With two classes it does not, and the mean alone is cheaper.
            rows = self._rows(X, offset=offset)
            number = (rows.mean(self._model) > 0.0).astype(int)
        labels: np.ndarray = self.classes_[number]
        return labels

    @in_chunks
    def predict_proba(
        self,
        X: Any,
        method: str = "probit",
        n_samples: int = 1000,
        random_state: Any = 0,
        *,
        offset: Any = None,
    ) -> Array:
        """Probability of each class, averaged over the posterior.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            As in :meth:`predict`; for a Dask frame columns have the names of the classes.
        method : {"probit", "mc"}, default="probit"
            MacKay's probit approximation of the posterior average (with more than two classes, of all
            pairwise log-odds), or Monte Carlo.
        n_samples : int, default=1000
            Number of draws, for "mc".
        random_state : int, RandomState or None, default=0
            Seed of the draws, for "mc".
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

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
            return self.family_.probability(self.decision_function(X, offset=offset))
        if method != "mc":
            raise ValueError(f"method={method!r} is not known: choose 'probit' or 'mc'")
        rows = self._rows(X, offset=offset)
        return self._of_draws(rows, lambda draws: draws.mean(axis=1), n_samples, random_state)

    def _of_draws(
        self, rows: NewRows, function: Callable[[Array], Array], n_samples: int, random_state: Any
    ) -> Array:
        """A function of draws (n, n_samples, n_classes) of the rows' probabilities."""
        family = self.family_
        # Only marginal posteriors of rows are needed, so each row is drawn independently.
        shape = family.n_normals(n_samples, len(self.classes_))
        normal = generator(random_state).standard_normal(shape)

        def of_moments(mean: Array, variance: Array) -> Array:
            return function(family.draw(mean, variance, normal))

        return self._of_links(rows, of_moments, n_samples)

    @in_chunks
    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.95,
        kind: str = "mean",
        n_samples: int = 1000,
        random_state: Any = 0,
        *,
        offset: Any = None,
    ) -> Array:
        """Central credible intervals of the probability of the second class, or of every class.

        :meth:`calibrate` does not change them, because probabilities are not observed.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        coverage : float, default=0.95
            Posterior probability of the interval.
        kind : {"mean"}, default="mean"
            For compatibility with the regressor; see :meth:`predict_set` for sets of classes.
        n_samples : int, default=1000
            With more than two classes, the number of posterior draws of which intervals are quantiles.
        random_state : int, RandomState or None, default=0
            Seed of these draws.
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
            Lower and upper ends. With more than two classes, (n_samples, n_classes, 2).

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
        rows = self._rows(X, offset=offset)
        if len(self.classes_) > 2:

            def quantiles(draws: Array) -> Array:
                return np.moveaxis(np.quantile(draws, [1.0 - upper, upper], axis=1), 0, -1)

            return self._of_draws(rows, quantiles, n_samples, random_state)
        ends = link_interval(self._model, rows, ndtri([1.0 - upper, upper]))
        return self.family_.link.inverse(ends)

    def calibrate(
        self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, groups: Any = None
    ) -> Self:
        """Calibrate :meth:`predict_set` with held-out rows (split conformal prediction, adaptive sets).

        Sets of exchangeable new rows then contain the true class with at least the requested coverage,
        marginally over rows and calibration sets, even if the model is misspecified. Probabilities and
        their intervals do not change.

        **The rows must be held out**: the model is overconfident on training rows. A few hundred are
        enough; a coverage of 0.95 needs at least 19, one of 0.99 at least 99. The next fit discards the
        calibration.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Held-out rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Frequency weights.
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, of which new rows are of other ones: the guarantee is then that of a row
            of a new group, and as many groups are needed as rows without.

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
        self._require_given(offset=offset)
        probability = self.predict_proba(X, offset=offset)
        weight = read_weights(sample_weight, len(probability))
        numbers = self._numbers(self._read_target(self.family_, y, len(probability)))
        group = None if groups is None else read_groups(groups, len(probability))
        self.calibration_ = calibrated_by(own_scores(probability, numbers), weight, group)
        return self

    @in_chunks
    def predict_set(
        self, X: Any, coverage: float = 0.9, calibrated: bool = True, *, offset: Any = None
    ) -> NDArray[np.bool_]:
        """Prediction sets: sets of classes that contain the true class with the given probability.

        The smallest sets of most probable classes whose probabilities sum to the coverage, or after
        :meth:`calibrate` to the conformal threshold. The most probable class is always included, so
        coverage is *at least* the requested one.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        coverage : float, default=0.9
            Probability that the set contains the true class.
        calibrated : bool, default=True
            After :meth:`calibrate`, whether to use the calibration.
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

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
        probability = self.predict_proba(X, offset=offset)
        if calibrated and hasattr(self, "calibration_"):
            return class_sets(probability, self.calibration_.threshold(coverage))
        return smallest_sets(probability, coverage)

    def sample(
        self, X: Any, n_samples: int = 100, random_state: Any = None, *, offset: Any = None
    ) -> Array:
        """Posterior draws of the probability of the second class, or of every class.

        Each draw is one function, evaluated at all rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        n_samples : int, default=100
            Number of draws.
        random_state : int, RandomState or None, default=None
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

        Returns
        -------
        draws : ndarray of shape (n_samples, n_rows)
            With more than two classes, (n_samples, n_rows, n_classes).

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from lanam import LANAMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = LANAMClassifier(random_state=0).fit(X[:, :5], y)
        >>> model.sample(X[:3, :5], n_samples=10, random_state=0).shape
        (10, 3)
        """
        return self.family_.at_link(
            self._sample_links(self._rows(X, offset=offset), n_samples, random_state)
        )

    @averaged
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Accuracy: the fraction of rows whose most probable class is the true one.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
        y : array-like of shape (n_samples,), or str
            For files and Dask frames ``y`` and ``sample_weight`` are names of columns.
        sample_weight : array-like of shape (n_samples,), default=None
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

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
        self._require_given(offset=offset)
        labels = self.predict(X, offset=offset)
        from sklearn.metrics import accuracy_score  # slow to import

        return float(accuracy_score(y, labels, sample_weight=sample_weight))

    @averaged
    def log_likelihood(
        self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None
    ) -> float:
        """Mean log probability of the observed classes; higher is better.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`score`.
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the log-odds, as in :meth:`fit`; zero by default.

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
        self._require_given(offset=offset)
        decision = self.decision_function(X, offset=offset)
        numbers = self._numbers(self._read_target(self.family_, y, len(decision)))
        return weighted_mean(self.family_.log_prob(decision, numbers), sample_weight)
