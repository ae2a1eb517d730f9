"""LANAMSurvival: times to an event, censored and truncated, by one or more causes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lanam import explain, follow_up
from lanam.additive import require_unedited
from lanam.adequacy import Plan, survival_adequacy
from lanam.arguments import read_interactions, read_options, read_time_interactions
from lanam.chunked import require_in_memory
from lanam.core.arrays import Array
from lanam.core.fit import fitting
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.rows.follow_up import FollowUp, FollowUpTables, Timeline
from lanam.core.rows.tables import Log, Tables
from lanam.data import Schema, as_frame
from lanam.engines import is_chunked
from lanam.errors import InputError
from lanam.explain import GlobalExplanation, LocalExplanation
from lanam.families import SURVIVAL, Encoding, Family
from lanam.follow_up import FollowUpInputs, Subjects, split_target, with_time
from lanam.hazard_predictions import HazardPredictions
from lanam.interactions import InteractionScores, describe_interactions
from lanam.knowledge import require_fitting
from lanam.metrics.adequacy import Adequacy
from lanam.parameters import SurvivalParameters, read_intervals
from lanam.sessions import Session
from lanam.storage import SavedFollowUp, SavedModel
from lanam.summary import Summary
from lanam.training import TrainingRows


class LANAMSurvival(SurvivalParameters, HazardPredictions):
    """Laplace-approximated neural additive model for times to an event.

    The logarithm of the hazard, the rate of events among those still at risk, is an intercept plus a shape
    function per column, a function of time (the baseline hazard), and interactions: of columns, and of a
    column with time. The latter are effects that change during follow-up, added where the evidence
    supports them, so that proportional hazards are a result and not an assumption. Follow-up is cut into
    intervals in which the hazard is constant.

    Rows may be censored, enter late (left truncation), and have events of several causes (competing risks):
    there is one model of the hazard for each.

    Parameters
    ----------
    interactions
        As in :class:`LANAMRegressor`, of columns.
    time_interactions : "auto", int or sequence of columns, default="auto"
        Columns whose effect may change with time: those that the evidence supports, the best k, or
        these; 0 for proportional hazards.
    n_intervals : "auto" or int, default="auto"
        The largest number of intervals of follow-up, each with about as many events; "auto" is up to 20,
        with at least 3 events each.
    interaction_score, max_order, max_pairs, time_budget, level_effects, hidden_sizes, activation
        As in :class:`LANAMRegressor`; triples have no time.
    pair_hidden_sizes
        As in :class:`LANAMRegressor`.
    init_scales, prior_groups, posterior, curvature, solver, evidence_update, categorical_features
        As in :class:`LANAMRegressor`; the solver "adam" and the curvature "kron" are not supported.
    pure, learning_rates, schedule, epochs, batch_size, evidence_steps, patience
        Of the solver "adam", and without effect here.
    monotonic_cst, shape_cst
        As in :class:`LANAMRegressor`; constraints are on the log hazard.
    cyclic, linear, ordered, keep, exclude_pairs, by, random_slopes, spatial, max_knots, max_iter, tol
        As in :class:`LANAMRegressor`.
    n_restarts, memory, n_jobs, random_state, verbose
        As in :class:`LANAMRegressor`.

    Attributes
    ----------
    causes_ : ndarray of int
        Codes of the events, ascending: ``[1]`` without competing risks.
    unique_times_ : ndarray of shape (n_intervals_ + 1,)
        The ends of the intervals of follow-up, at which curves are evaluated by default.
    terms_, intercept_, interaction_scores_, feature_importances_, history_
        As in :class:`LANAMRegressor`, of the log hazard; the time is the last column. With several causes,
        of the first: ``for_cause(2).terms_`` has those of another.
    log_evidence_ : float
        Log evidence of the training data, of all causes.
    proportional_hazards_ : InteractionScores
        The test of proportional hazards: for each column the score of an interaction with time, and whether
        it is in the model or what it would gain, in log evidence.
    edits_, family_, plan_, provenance_, n_iter_, converged_, n_features_in_, feature_names_in_
        As in :class:`LANAMRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from lanam import LANAMSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(300, 2))
    >>> time = rng.exponential(np.exp(-X[:, 0]))
    >>> event, time = time < 2, np.minimum(time, 2)
    >>> model = LANAMSurvival(random_state=0).fit(X, event=event, time=time)
    >>> bool(model.score(X, event=event, time=time) > 0.6)
    True
    >>> model.predict_survival_function(X[:3], times=[0.5, 1.0]).shape
    (3, 2)
    """

    @property
    def _asked_family(self) -> Family:
        return SURVIVAL

    @property
    def _inputs(self) -> Schema:
        return replace(self._schema, columns=self._schema.columns[:-1])

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        event: Any = None,
        time: Any = None,
        entry: Any = None,
        drop: Sequence[str] = (),
        checkpoint: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or files
            As in :meth:`LANAMRegressor.fit`.
        y : structured array of shape (n_samples,), default=None
            Event and time, as scikit-survival has them; or pass ``event`` and ``time``.
        sample_weight : array-like of shape (n_samples,), or str, default=None
            Frequency weights.
        event : array-like of shape (n_samples,), or str, default=None
            Whether an event ended follow-up; with competing risks the code of its cause, 0 for censored.
            The name of a column for frames, files and Dask frames.
        time : array-like of shape (n_samples,), or str, default=None
            Time of the event or of censoring; or the name of its column.
        entry : array-like of shape (n_samples,), or str, default=None
            Time from which a row is at risk (left truncation); 0 by default.
        drop : sequence of str, default=()
            Columns to leave out.
        checkpoint : str or path, default=None
            As in :meth:`LANAMRegressor.fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame(
        ...     {"age": rng.uniform(40, 80, 200), "days": rng.exponential(300, 200)}
        ... )
        >>> table["died"] = table["days"] < 500
        >>> table["days"] = table["days"].clip(upper=500)
        >>> model = LANAMSurvival(random_state=0).fit(table, event="died", time="days")
        >>> list(model.feature_names_in_)
        ['age']
        """
        event, time = split_target(y, event, time)
        options = read_options(self.get_params(deep=False))
        if options.solver != "gauss-newton" or options.curvature != "exact":
            raise InputError(
                "{given} is the paper's, which has no survival models",
                "use solver='gauss-newton' and curvature='exact', the defaults",
                argument="solver" if options.solver != "gauss-newton" else "curvature",
                value=self.solver if options.solver != "gauss-newton" else self.curvature,
            )
        for learned in ("_model", "_models", "metadata_", "dialect_"):
            self.__dict__.pop(learned, None)
        inputs = FollowUpInputs(X, event, time, entry, sample_weight, drop)
        with Session(options, self.random_state, self.verbose) as session:
            subjects = self._open_subjects(inputs, session)
            names = subjects.schema.names
            self._take_knowledge(session, names)
            require_fitting(session.options.knowledge, subjects.schema)
            session.options = replace(
                session.options,
                interactions=read_interactions(self.interactions, names, options.max_order),
                time=len(names),
                time_interactions=read_time_interactions(self.time_interactions, names),
            )
            if checkpoint is not None:
                asked = {"pairs": self.interactions, "with time": self.time_interactions}
                about = {"family": SURVIVAL.name, "levels": subjects.schema.n_levels, **asked}
                session.keep_at(checkpoint, {**subjects.about(), **about})
            self._fit_causes(session, subjects)
        if subjects.dialect is not None:
            self.dialect_ = subjects.dialect
        self._warn_if_unfinished()
        self._warn_of_pooled_categories()
        self._warn_of_doubts()
        return self

    def _open_subjects(self, inputs: FollowUpInputs, session: Session) -> Subjects:
        if not is_chunked(inputs.X):
            return follow_up.in_memory(self, inputs)
        return follow_up.in_chunks(self, inputs, self._open_source(inputs.X, session))

    def _fit_causes(self, session: Session, subjects: Subjects) -> None:
        """A model of each cause's hazard, on common intervals."""
        tables = subjects.tables(session.log)
        found = FollowUp.of(tables)
        follow_up.require_events(found)
        timeline = found.timeline(read_intervals(self.n_intervals, "n_intervals"))
        schema = with_time(subjects.schema, subjects.time_name, timeline)
        models, causes = [], found.codes.astype(int)
        for cause in causes:
            rows = self._rows_of(session, subjects, tables, cause, timeline)
            training = replace(rows, schema=schema)
            self._train(session, training, partial(fitting.fit, n_levels=schema.n_levels))
            models.append(self._model)
            schema = self._schema
        self._set_causes(tuple(models), causes, timeline)

    def _rows_of(
        self, session: Session, subjects: Subjects, tables: Tables, cause: int, timeline: Timeline
    ) -> TrainingRows:
        """The rows in which one cause's hazard is counts; events of others end follow-up."""
        log = None if subjects.logged else session.log
        rows = FollowUpTables(tables, timeline, float(cause), log, session.options.n_jobs)
        encoding = Encoding(
            SURVIVAL,
            unit=timeline.unit,
            log_unit=float(np.log(timeline.unit)),
            constant=rows.constant,
        )
        return TrainingRows(
            partial(_given, rows), encoding, subjects.schema, subjects.event_name, subjects.ranged
        )

    def _set_causes(
        self, models: tuple[FittedModel, ...], causes: np.ndarray, timeline: Timeline
    ) -> None:
        """Set the learned attributes of several models."""
        self._models, self._timeline, self.causes_ = models, timeline, causes
        self.unique_times_ = timeline.edges.copy()
        score = self.interaction_scores_.score
        self._set_fitted(models[0], self._schema, self._n_rows, score)
        self.log_evidence_ = float(sum(model.log_evidence for model in models))
        self.converged_ = all(model.converged for model in models)

    @property
    def feature_importances_(self) -> Array:
        """Importance of each column, as a regressor has it: without the time, they sum to one."""
        importances = super().feature_importances_[:-1]
        return np.asarray(importances / (importances.sum() or 1.0))

    @property
    def proportional_hazards_(self) -> InteractionScores:
        """The candidate interactions with time."""
        self._require_one_cause("proportional_hazards_")
        time, score = self._schema.n_columns - 1, self.interaction_scores_.score
        return describe_interactions(self._model, self._schema, score, of=time)

    @property
    def _follow_up(self) -> SavedFollowUp:
        return SavedFollowUp(self._timeline, self.causes_, self._models[1:])

    def _restore(self, saved: SavedModel) -> None:
        found = saved.follow_up
        assert found is not None
        self._set_causes((saved.model, *found.others), found.causes, found.timeline)
        self.n_features_in_ = self._inputs.n_columns

    def for_cause(self, cause: int) -> LANAMSurvival:
        """The model of one cause's hazard, with events of others as censoring.

        Its explanations, summary, report and files are those of this cause alone. Its survival function is
        that of a world in which the others do not happen: see :meth:`predict_cumulative_incidence`.

        Parameters
        ----------
        cause : int
            One of ``causes_``.

        Returns
        -------
        model : LANAMSurvival

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(200, 1)), rng.exponential(size=200)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=rng.integers(0, 3, 200), time=time)
        >>> model.causes_, model.for_cause(2).causes_
        (array([1, 2]), array([2]))
        """
        check_is_fitted(self)
        index = self._index_of(cause)
        result = copy.copy(self)
        result._set_causes((self._models[index],), self.causes_[index : index + 1], self._timeline)
        return result

    def _require_one_cause(self, method: str) -> None:
        check_is_fitted(self)
        if len(self.causes_) > 1:
            known = " and ".join(map(str, self.causes_.tolist()))
            raise InputError(
                f"this model has the causes {known}, each with a hazard of its own",
                f"take one, for example model.for_cause({self.causes_[0]}).{method}",
            )

    def _columns_at(self, X: Any, time: Any, method: str) -> Array:
        """Encoded rows with a time, by default the middle of the events."""
        self._require_one_cause(method)
        columns = self._columns(X)
        if time is None:
            time = self._timeline.middles[len(self._timeline) // 2]
        times = np.broadcast_to(self._read_times(time), len(columns))
        return np.column_stack([columns, self._timeline.middles[self._timeline.interval_of(times)]])

    def predict_terms(self, X: Any, return_std: bool = False, time: Any = None) -> Any:
        """Contribution of each term to the log hazard of each row at a time.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return posterior standard deviations as well.
        time : float or array-like of shape (n_samples,), default=None
            The time; by default one at which half of the events have happened. Only the term of time and
            interactions with it depend on it.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_terms)
            Together with ``intercept_`` they sum to the log hazard.
        std : ndarray of the same shape
            Only with ``return_std=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> log_hazard = model.intercept_ + model.predict_terms(X, time=1.0).sum(axis=1)
        >>> np.allclose(np.exp(log_hazard), model.predict_hazard(X, [1.0])[:, 0])
        True
        """
        columns = self._columns_at(X, time, "predict_terms(X)")
        means = scoring.term_means(self._model, columns)
        if not return_std:
            return means
        return means, np.sqrt(scoring.term_variances(self._model, columns))

    def transform(self, X: Any) -> Any:
        """Contribution of each term to the log hazard of each row, as :meth:`predict_terms`.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        contributions : ndarray or frame of shape (n_samples, n_terms)

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> model.transform(X).shape == (300, len(model.terms_))
        True
        """
        return self.predict_terms(X)

    def explain_local(  # type: ignore[override]
        self, X: Any, time: Any = None
    ) -> LocalExplanation:
        """Log hazards of single rows at a time, decomposed into contributions.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        time : float or array-like of shape (n_samples,), default=None
            As in :meth:`predict_terms`.

        Returns
        -------
        explanation : LocalExplanation
            Intercept, contributions and log hazard of every row, with standard deviations.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(np.exp(-2 * np.arange(300) / 300))
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> model.explain_local(X[:1]).to_frame()["term"].tolist()[0]
        '(intercept)'
        """
        columns = self._columns_at(X, time, "explain_local(X)")
        schema, frame = self._schema, as_frame(X)
        if frame is not None:  # perhaps of another library than the training data
            schema = replace(schema, backend=frame.implementation.name.lower())
        return explain.explain_local(self._model, schema, columns)

    def explain_global(self) -> GlobalExplanation:
        """Shape functions of the log hazard, of which one is that of time.

        Returns
        -------
        explanation : GlobalExplanation
            As that of a regressor.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> [shape.name for shape in model.explain_global().terms]
        ['x0', 'time']
        """
        self._require_one_cause("explain_global()")
        return super().explain_global()

    def summary(self) -> Summary:
        """Summary of the fit, with one row per term and the test of proportional hazards.

        Returns
        -------
        summary : Summary
            As that of a regressor. Its fact ``proportional_hazards`` has, for each column, whether an
            effect that changes with time is in the model, or what it would gain.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> model.summary().facts["n_rows"]
        300
        """
        self._require_one_cause("summary()")
        summary = super().summary()
        tested = {row["feature_names"][0]: row["status"] for row in self.proportional_hazards_.rows}
        return replace(summary, facts={**summary.facts, "proportional_hazards": tested})

    def adequacy(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        *,
        event: Any = None,
        time: Any = None,
        entry: Any = None,
        sample_weight: Any = None,
        n_splits: int = 5,
        coverage: float = 0.95,
        max_columns: int = 5,
        max_rows: int = 20_000,
        held_out: bool | None = None,
        random_state: Any = 0,
    ) -> Adequacy:
        """How much a black box would gain, and by which columns, as :meth:`LANAMRegressor.adequacy`.

        The trees have the time as a column, so an effect that changes during follow-up, and that the model
        lacks, is found as an interaction with it.

        Parameters
        ----------
        X, y, event, time, entry, sample_weight
            As in :meth:`fit`, in memory: the training data, or rows that were held out.
        n_splits, coverage, max_columns, max_rows, held_out, random_state
            As for a regressor.

        Returns
        -------
        adequacy : Adequacy

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> model.adequacy(X, event=np.ones(300), time=time, n_splits=2).missed.clear
        False
        """
        self._require_one_cause("adequacy(...)")
        require_in_memory(X)
        event, time = split_target(y, event, time)
        plan = Plan(n_splits, coverage, max_columns, max_rows, held_out, random_state)
        inputs = FollowUpInputs(X, event, time, entry, sample_weight)
        inputs, subjects = follow_up.read_subjects(self, inputs)
        given = {name: value for name, value in inputs.names.items() if value is not None}
        return survival_adequacy(self, inputs.X, subjects, plan, given)

    def report(  # type: ignore[override]
        self,
        path: Any,
        X: Any = None,
        *,
        time: Any = None,
        title: str | None = None,
        n_rows: int = 200,
        coverage: float = 0.95,
        overwrite: bool = True,
    ) -> Path:
        """Write a report, as :meth:`LANAMRegressor.report`, with survival curves on its what-if page.

        Parameters
        ----------
        path : str or path
            The file to write, such as "report.html".
        X : frame or array-like of shape (n_samples, n_features), default=None
            Rows to pick from on the what-if page.
        time : float or array-like of shape (n_samples,), default=None
            Their times there, as in :meth:`predict_terms`.
        title, n_rows, coverage, overwrite
            As for a regressor.

        Returns
        -------
        path : Path
            The file.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> with TemporaryDirectory() as folder:
        ...     model.report(Path(folder) / "report.html", X).stat().st_size < 4e6
        True
        """
        self._require_one_cause("report(...)")
        rows = None
        if X is not None:
            from lanam.report import pick_rows

            rows = pick_rows(self._columns_at(X, time, "report(...)"), n_rows)
        return self._write_report(path, title, coverage, overwrite=overwrite, rows=rows)

    def export(self, path: Any, to: str | None = None, **options: Any) -> Any:
        """Export the hazard as tables of the columns and the time, as :meth:`LANAMRegressor.export`.

        Parameters
        ----------
        path, to, **options
            As for a regressor.

        Returns
        -------
        path : Path
            The file; or with ``path=None`` its content.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X, time = rng.uniform(size=(300, 1)), rng.exponential(size=300)
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> model.export(None, to="csv").splitlines()[0]
        'term,column,kind,value,below,meaning,contribution,std,hazard ratio,share'
        """
        self._require_one_cause("export(...)")
        return super().export(path, to, **options)

    def add_interactions(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        interactions: Any = "auto",
        interaction_score: str | None = None,
        sample_weight: Any = None,
        *,
        event: Any = None,
        time: Any = None,
        entry: Any = None,
        time_interactions: Any = "auto",
    ) -> Self:
        """Add interactions to the hazards of a fitted model, without fitting their terms again first.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            The training data.
        y, sample_weight, event, time, entry
            As in :meth:`fit`.
        interactions : "auto", int or sequence of pairs of columns, default="auto"
            Interactions of columns, as in the constructor.
        interaction_score : str, default=None
            As in the constructor, whose value is the default.
        time_interactions : "auto", int or sequence of columns, default="auto"
            Columns whose effect may change with time, as in the constructor.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(600, 2))
        >>> time = rng.exponential(np.exp(-3 * X[:, 0] * X[:, 1]))
        >>> model = LANAMSurvival(interactions=0, time_interactions=0).fit(
        ...     X, event=np.ones(600), time=time
        ... )
        >>> model = model.add_interactions(X, event=np.ones(600), time=time)
        >>> [term.name for term in model.terms_ if term.active and term.kind == "pair"]
        ['x0 x x1']
        """
        check_is_fitted(self)
        require_unedited(self.edits_)
        event, time = split_target(y, event, time)
        arguments = self.get_params(deep=False)
        if interaction_score is not None:
            arguments["interaction_score"] = interaction_score
        names = self._inputs.names
        options = replace(
            read_options(arguments),
            interactions=read_interactions(interactions, names),
            time=len(names),
            time_interactions=read_time_interactions(time_interactions, names),
        )
        inputs = FollowUpInputs(X, event, time, entry, sample_weight)
        subjects = follow_up.again_in_memory(self, inputs)
        wider = copy.copy(self)  # which an error leaves as it was
        models = []
        with Session(options, self.random_state, self.verbose) as session:
            wider._take_knowledge(session, names, interactions=interactions)
            tables = subjects.tables(session.log)
            for cause, model in zip(self.causes_, self._models, strict=True):
                rows = wider._rows_of(session, subjects, tables, cause, self._timeline)
                first_stage = rows.encoding.to_core(model)
                wider._train(session, rows, partial(fitting.fit_on, first_stage))
                models.append(wider._model)
        wider._set_causes(tuple(models), self.causes_, self._timeline)
        self.__dict__.update(wider.__dict__)
        self._warn_if_unfinished()
        self._warn_of_doubts()
        return self

    def edit_term(self, name: Any, action: str, **edit: Any) -> LANAMSurvival:
        """A copy of the model with a term edited by hand, as :meth:`LANAMRegressor.edit_term`.

        Parameters
        ----------
        name, action, **edit
            As for a regressor.

        Returns
        -------
        model : LANAMSurvival

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMSurvival
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(300, 1))
        >>> time = rng.exponential(np.exp(-2 * X[:, 0]))
        >>> model = LANAMSurvival(random_state=0).fit(X, event=np.ones(300), time=time)
        >>> model.edit_term("x0", "clamp", high=0.5).edits_[0]["term"]
        'x0'
        """
        self._require_one_cause("edit_term(...)")
        edited: LANAMSurvival = super().edit_term(name, action, **edit)
        edited._models = (edited._model,)
        return edited


def _given(tables: Tables, log: Log) -> Tables:
    """The tables, whose totals are logged already."""
    return tables
