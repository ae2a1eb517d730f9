"""Predictions of survival models: risk, survival, cumulative incidence, quantiles, restricted means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from lanam import follow_up
from lanam.additive import AdditiveModel
from lanam.chunked import in_chunks, require_in_memory
from lanam.core.arrays import Array
from lanam.core.model.fitted import FittedModel
from lanam.core.model.hazards import (
    CumulativeHazard,
    Curve,
    Function,
    Hazards,
    Incidence,
    RestrictedMean,
    Survival,
    inverted,
)
from lanam.core.rows.follow_up import Timeline
from lanam.errors import InputError
from lanam.explain import SurvivalCurves, require_coverage
from lanam.explain.curves import row_labels
from lanam.follow_up import split_target
from lanam.inputs import read_columns
from lanam.metrics.survival import harrell_c


class HazardPredictions(AdditiveModel):
    """What is predicted from the hazards of one or more causes; a part of :class:`LANAMSurvival`."""

    causes_: np.ndarray
    unique_times_: Array
    _models: tuple[FittedModel, ...]
    _timeline: Timeline

    def _index_of(self, cause: Any) -> int:
        """The index of a cause; the only one by default."""
        if cause is None and len(self.causes_) == 1:
            return 0
        found = np.flatnonzero(self.causes_ == cause)
        if len(found) == 0:
            known = ", ".join(map(str, self.causes_.tolist()))
            raise InputError(
                "{given} is not a cause of this model"
                if cause is not None
                else "{argument} is missing",
                f"its causes are {known}",
                argument="cause",
                value=cause,
            )
        return int(found[0])

    def _columns(self, X: Any) -> Array:
        check_is_fitted(self)
        require_in_memory(X)
        time = self._schema.n_columns - 1
        used = frozenset().union(*(model.used for model in self._models)) - {time}
        return read_columns(self, X, fitting=False, used=used)[0]

    @property
    def _hazards(self) -> Hazards:
        return Hazards(self._models, self._timeline)

    def _curve(
        self, X: Any, times: Any, function: Function, coverage: float | None
    ) -> tuple[Curve, Array]:
        columns = self._columns(X)
        grid = self._read_times(times)
        return self._hazards.curve(function, columns, grid, std=coverage is not None), grid

    def _read_times(self, times: Any) -> Array:
        """Times within follow-up; the ends of the intervals by default."""
        if times is None:
            return self.unique_times_
        grid = np.atleast_1d(np.asarray(times, dtype=np.float64))
        first, last = self.unique_times_[[0, -1]]
        if grid.ndim != 1 or not np.isfinite(grid).all():
            raise InputError("{argument} must be finite numbers", argument="times")
        if (bad := (grid < min(first, 0.0)) | (grid > last * (1.0 + 1e-12))).any():
            raise InputError(
                f"{{argument}} has {grid[bad][0]:g}, and follow-up of the training data was from {first:g} "
                f"to {last:g}",
                "of later times the data say nothing: leave them out",
                argument="times",
            )
        return grid

    def _values(
        self,
        X: Any,
        times: Any,
        function: Function,
        return_interval: bool,
        coverage: float,
    ) -> Any:
        asked = require_coverage(coverage) if return_interval else None
        curve, _ = self._curve(X, times, function, asked)
        if asked is None:
            return curve.value
        return curve.value, curve.interval(float(ndtri(0.5 + 0.5 * asked)))

    @in_chunks
    def predict(self, X: Any) -> Array:
        """Risk score of each row: higher means earlier.

        The logarithm of the mean of the cumulative hazard over the ends of the intervals, as many events
        apart: the expected number of events if a row could have many. It orders rows where effects change
        with time, too.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame

        Returns
        -------
        risk : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(300, 1))
        >>> time = rng.exponential(np.exp(-2 * X[:, 0]))
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> low, high = model.predict([[-1.0], [1.0]])
        >>> bool(low < high)
        True
        """
        check_is_fitted(self)
        curve, _ = self._curve(X, self.unique_times_[1:], CumulativeHazard(), None)
        return np.asarray(np.log(curve.value.mean(axis=1)))

    def predict_survival_function(
        self, X: Any, times: Any = None, return_interval: bool = False, coverage: float = 0.95
    ) -> Any:
        """Probability of no event, of any cause, until each time.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        times : float or sequence of float, default=None
            Times within the follow-up of the training data; ``unique_times_`` by default.
        return_interval : bool, default=False
            Whether to return pointwise credible intervals as well.
        coverage : float, default=0.95
            Their probability.

        Returns
        -------
        survival : ndarray of shape (n_samples, n_times)
        interval : ndarray of shape (n_samples, n_times, 2)
            Only with ``return_interval=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> survival, interval = model.predict_survival_function(X[:2], [1.0], return_interval=True)
        >>> bool((interval[..., 0] < survival).all() and (survival < interval[..., 1]).all())
        True
        """
        return self._values(X, times, Survival(), return_interval, coverage)

    def predict_cumulative_hazard_function(
        self, X: Any, times: Any = None, return_interval: bool = False, coverage: float = 0.95
    ) -> Any:
        """Cumulative hazard, of all causes, until each time: minus the logarithm of survival.

        Parameters
        ----------
        X, times, return_interval, coverage
            As in :meth:`predict_survival_function`.

        Returns
        -------
        cumulative_hazard : ndarray of shape (n_samples, n_times)
        interval : ndarray of shape (n_samples, n_times, 2)
            Only with ``return_interval=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> hazard = model.predict_cumulative_hazard_function(X[:1], [1.0])
        >>> np.allclose(np.exp(-hazard), model.predict_survival_function(X[:1], [1.0]))
        True
        """
        return self._values(X, times, CumulativeHazard(), return_interval, coverage)

    def predict_cumulative_incidence(
        self,
        X: Any,
        cause: int | None = None,
        times: Any = None,
        return_interval: bool = False,
        coverage: float = 0.95,
    ) -> Any:
        """Probability of an event of a cause until each time, in competition with the others.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        cause : int, default=None
            One of ``causes_``; may be left out if there is one.
        times, return_interval, coverage
            As in :meth:`predict_survival_function`.

        Returns
        -------
        incidence : ndarray of shape (n_samples, n_times)
        interval : ndarray of shape (n_samples, n_times, 2)
            Only with ``return_interval=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=rng.integers(1, 3, 300), time=time)
        >>> both = sum(model.predict_cumulative_incidence(X, cause, [1.0]) for cause in (1, 2))
        >>> np.allclose(both, 1 - model.predict_survival_function(X, [1.0]))
        True
        """
        check_is_fitted(self)
        return self._values(X, times, Incidence(self._index_of(cause)), return_interval, coverage)

    def explain_survival(
        self,
        X: Any,
        times: Any = None,
        *,
        cause: int | None = None,
        coverage: float = 0.95,
        labels: Sequence[Any] | None = None,
    ) -> SurvivalCurves:
        """Curves of single rows with their intervals, as data.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        times : sequence of float, default=None
            A fine grid over follow-up by default.
        cause : int, default=None
            The cause whose cumulative incidence is asked for; survival by default.
        coverage : float, default=0.95
            Probability of the intervals.
        labels : sequence of str, default=None
            Names of the rows.

        Returns
        -------
        curves : SurvivalCurves
            Plain data; :func:`lanam.plot.plot_survival` plots it.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> model.explain_survival(X[:3], times=[0.5, 1.0])
        SurvivalCurves(survival of 3 rows at 2 times)
        """
        check_is_fitted(self)
        grid = self._fine_times if times is None else self._read_times(times)
        function = Survival() if cause is None else Incidence(self._index_of(cause))
        value, interval = self._values(X, grid, function, True, coverage)
        return SurvivalCurves(
            kind="survival" if cause is None else "incidence",
            times=grid,
            value=value,
            lower=interval[..., 0],
            upper=interval[..., 1],
            coverage=coverage,
            labels=row_labels(labels, len(value)),
            time_name=self._schema.names[-1],
            cause=cause,
            backend=self._schema.backend,
        )

    def predict_hazard(self, X: Any, times: Any = None, cause: int | None = None) -> Array:
        """Hazard at each time: events per unit of time among those still at risk.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        times : float or sequence of float, default=None
            As in :meth:`predict_survival_function`.
        cause : int, default=None
            One of ``causes_``; the sum of all by default.

        Returns
        -------
        hazard : ndarray of shape (n_samples, n_times)

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(500, 1)), rng.exponential(size=500)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(500), time=time)
        >>> bool(0.7 < model.predict_hazard([[0.5]], [0.5])[0, 0] < 1.4)
        True
        """
        columns = self._columns(X)
        interval = self._timeline.interval_of(self._read_times(times))
        hazards = np.exp(self._hazards.log_hazards(columns)[:, :, interval])
        if cause is not None:
            return np.asarray(hazards[self._index_of(cause)])
        return np.asarray(hazards.sum(axis=0))

    def predict_quantile(
        self,
        X: Any,
        q: float = 0.5,
        return_interval: bool = False,
        coverage: float = 0.95,
    ) -> Any:
        """Time by which the event has happened with probability ``q``, of any cause: the median by default.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        q : float, default=0.5
            Probability between 0 and 1.
        return_interval, coverage
            As in :meth:`predict_survival_function`.

        Returns
        -------
        time : ndarray of shape (n_samples,)
            Infinity where it is not reached during follow-up.
        interval : ndarray of shape (n_samples, 2)
            Only with ``return_interval=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(500, 1)), rng.exponential(size=500)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(500), time=time)
        >>> bool(0.5 < model.predict_quantile([[0.5]])[0] < 0.9)
        True
        """
        if not 0.0 < q < 1.0:
            raise InputError("{given} must lie between 0 and 1", argument="q", value=q)
        check_is_fitted(self)
        asked = require_coverage(coverage) if return_interval else None
        curve, grid = self._curve(X, self._fine_times, CumulativeHazard(), asked)
        level = np.array([-np.log1p(-q)])
        time = inverted(level, grid, curve.value)[:, 0]
        if asked is None:
            return time
        # The time is late where the hazard is low.
        ends = curve.interval(float(ndtri(0.5 + 0.5 * asked)))
        sides = [inverted(level, grid, ends[:, :, side])[:, 0] for side in (1, 0)]
        return time, np.stack(sides, axis=1)

    @property
    def _fine_times(self) -> Array:
        """The ends of the intervals, and times between them."""
        edges = self.unique_times_
        parts = np.linspace(0.0, 1.0, 4, endpoint=False)
        inner = (edges[:-1, None] + np.diff(edges)[:, None] * parts).ravel()
        return np.append(inner, edges[-1])

    def predict_rmst(
        self,
        X: Any,
        horizon: float | None = None,
        return_interval: bool = False,
        coverage: float = 0.95,
    ) -> Any:
        """Restricted mean survival time: the mean time without an event until a horizon.

        With late entry, time counts from the first at which a row of the training data was at risk.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        horizon : float, default=None
            The end of follow-up by default.
        return_interval, coverage
            As in :meth:`predict_survival_function`.

        Returns
        -------
        time : ndarray of shape (n_samples,)
        interval : ndarray of shape (n_samples, 2)
            Only with ``return_interval=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(500, 1)), rng.exponential(size=500)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(500), time=time)
        >>> bool(0.55 < model.predict_rmst([[0.5]], 1.0)[0] < 0.7)
        True
        """
        check_is_fitted(self)
        last = self.unique_times_[-1] if horizon is None else horizon
        found = self._values(X, [last], RestrictedMean(), return_interval, coverage)
        if not return_interval:
            return found[:, 0]
        value, interval = found
        return value[:, 0], np.clip(interval[:, 0], 0.0, last - min(self.unique_times_[0], last))

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        event: Any = None,
        time: Any = None,
    ) -> float:
        """Harrell's C: how often, of two rows, that with the higher risk has the earlier event.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        y, event, time
            As in :meth:`fit`; the names of columns of a frame, too. With competing risks an event is one
            of any cause.
        sample_weight : array-like of shape (n_samples,), default=None
            Frequency weights.

        Returns
        -------
        score : float

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(300, 1))
        >>> time = rng.exponential(np.exp(-2 * X[:, 0]))
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> bool(0.6 < model.score(X, event=np.ones(300), time=time) < 0.9)
        True
        """
        check_is_fitted(self)
        event, time = split_target(y, event, time)
        X, event, time = follow_up.read_outcome(self, X, event, time)
        return harrell_c(event > 0.0, time, self.predict(X), sample_weight=sample_weight)
