"""Base class of the estimators: fitting, contributions, explanations, reports, files.

A thin layer: ``inputs`` validates tables, ``arguments`` validates options, ``core`` fits and predicts,
``explain`` and ``summary`` describe the result.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from lanam import explain, storage
from lanam.adequacy import Plan, adequacy
from lanam.arguments import read_interactions, read_options
from lanam.batch_predict import OutputOptions, predict_files
from lanam.cautions import cautions
from lanam.chunked import in_chunks, require_in_memory
from lanam.constraints import argument_of
from lanam.core.arrays import Array
from lanam.core.fit import fitting
from lanam.core.fit.solvers import CURVATURES, SOLVERS
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.rows.summaries import DataSummary
from lanam.core.terms.knots import Categories, Grid
from lanam.data import NewValuesWarning, Schema, as_frame
from lanam.editing import Edit, Where, edit
from lanam.engines import is_chunked, open_source
from lanam.engines.dialects import Dialect
from lanam.engines.interface import ReadOptions, Source
from lanam.errors import InputError, Message, Setting, warn_user
from lanam.explain import GlobalExplanation, LocalExplanation, PortableModel
from lanam.families import Encoding, Family, find_family
from lanam.families.base import NewRows
from lanam.files import require_place, write_atomically
from lanam.inputs import (
    read_columns,
    read_exposure,
    read_offset,
    read_target_of,
    read_trials,
    read_weights,
)
from lanam.interactions import InteractionScores, describe_interactions
from lanam.knowledge import read_knowledge, require_fitting, require_networks
from lanam.metrics.adequacy import Adequacy
from lanam.parameters import PAPER, Parameters, read_memory
from lanam.provenance import Provenance, provenance
from lanam.sessions import FitPlan, Session
from lanam.summary import Summary, summarise
from lanam.training import (
    ChunkedData,
    FitInputs,
    InMemoryData,
    TrainingData,
    TrainingRows,
    name_of_target,
)

#: Fraction of ``memory`` in which a fit caches the encoded rows of files, if all of them fit.
_CACHE_FRACTION = 0.25


class UnfinishedWarning(Message, ConvergenceWarning):  # type: ignore[misc]
    """The fit stopped before convergence; the best model so far is kept."""


class AdditiveModel(Parameters, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the estimators; not for use by itself."""

    _model: FittedModel
    _schema: Schema
    interaction_scores_: InteractionScores
    edits_: tuple[Edit, ...]
    dialect_: Dialect
    metadata_: Mapping[str, object]
    plan_: FitPlan
    provenance_: Provenance | None
    _exposed = False  # whether the model was fitted with exposures or trials other than one
    _has_offset = False

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The estimator with the settings of Bouchiat et al. (2024): LA-NAM as in the paper.

        Networks of 64 units are trained by gradient descent, with a Kronecker-factored posterior for each
        of them and one prior precision each, at three learning rates of which the one with the highest
        evidence is kept. ``interactions=10`` is the paper's LA-NAM10: the ten pairs with the highest mutual
        information, with joint networks of two layers, which also say main effects. The noise of a
        regressor is Gaussian and homoscedastic.

        Parameters
        ----------
        **parameters
            Parameters of the constructor, in place of the paper's.

        Returns
        -------
        estimator : LANAMRegressor or LANAMClassifier
            Not fitted yet.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = LANAMRegressor.paper(random_state=0, learning_rates=(0.1,), tol=1.0)
        >>> model.solver, model.curvature, model.batch_size
        ('adam', 'kron', 512)
        >>> bool(model.fit(X[["bmi", "bp"]], y).score(X[["bmi", "bp"]], y) > 0.35)
        True
        """
        known = cls._get_param_names()
        papers = {name: value for name, value in PAPER.items() if name in known}
        return cls(**(papers | parameters))

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
        groups: Any = None,
        target: str | None = None,
        drop: Sequence[str] = (),
        checkpoint: Any = None,
    ) -> Self:
        """Fit the model.

        Ctrl-C stops training early and keeps the best model so far: none before the first iteration, and
        for more than 1,000 coordinates one whose bands are given the hyperparameters.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or files
            A pandas, polars or pyarrow frame, an array, or a list of rows. Columns are numeric or
            categorical (see ``categorical_features``); missing values are allowed. Or out-of-core data,
            which includes the target: the name of a Parquet, CSV or Arrow file, of a folder of them, or a
            pattern such as "sales/*.parquet"; a Dask frame, a DuckDB relation, a polars LazyFrame, or a
            function that returns a new Arrow stream. CSV files with another delimiter, decimal mark or
            encoding are described by :func:`lanam.csv_files`.
        y : array-like of shape (n_samples,), or str
            The target, or the name of its column.
        sample_weight : array-like of shape (n_samples,), or str, default=None
            Frequency weights: a weight of 2 counts the row twice, 0 leaves it out. For files and Dask
            frames the name of a column.
        exposure : float, array-like of shape (n_samples,), or str, default=None
            For counts, the exposure of each row: hours, kilometres, insured years, inhabitants. The mean
            of y is exposure times rate, and the model predicts the rate (``log(exposure)`` is the offset of
            a GLM). One by default. For files and Dask frames a number or the name of a column.
        trials : int, array-like of shape (n_samples,), or str, default=None
            For successes (``likelihood="binomial"``), the number of trials that each row counts them among.
            One by default. For files and Dask frames a number or the name of a column.
        offset : float, array-like of shape (n_samples,), or str, default=None
            Known part of the prediction on the link scale, added to the sum of terms with the coefficient
            one. Zero by default; not for more than two classes. For files and Dask frames as for
            ``exposure``.
        groups : array-like of shape (n_samples,), or str, default=None
            The group of each row (patient, hospital, site), or the name of a column that has it, which
            stays a feature: rows of one group are not independent. Where the noise is cross-validated
            (``noise="auto"``), whole groups are left out. For files and Dask frames the name of a column.
        target : str, default=None
            The name of the target's column, in place of ``y``.
        drop : sequence of str, default=()
            Columns to leave out.
        checkpoint : str or path, default=None
            A folder for intermediate results: an interrupted fit resumes there when it is called again
            with the same data and arguments.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> X = np.linspace(-1, 1, 50)[:, None]
        >>> model = LANAMRegressor(random_state=0).fit(X, X[:, 0] ** 2)
        >>> model.converged_
        True

        Counts with an exposure: twice the hours, twice the events.

        >>> hours = np.tile([1.0, 2.0], 100)
        >>> X, events = np.tile(X, (4, 1)), 10 * hours
        >>> counts = LANAMRegressor(likelihood="poisson", random_state=0)
        >>> counts.fit(X, events, exposure=hours).predict(X[:2], exposure=3.0).round(1)
        array([30., 30.])
        """
        refuse_given(self._asked_family, exposure, trials, offset)
        options = read_options(self.get_params(deep=False))
        # A fit that fails must not leave a mixture of two models.
        for learned in ("_model", "calibration_", "metadata_", "dialect_"):
            self.__dict__.pop(learned, None)
        given = exposure, drop, trials, offset, groups
        inputs = FitInputs(X, name_of_target(y, target), sample_weight, *given)
        with Session(options, self.random_state, self.verbose) as session:
            data = self._open(inputs, session, checkpoint is not None)
            pairs = read_interactions(self.interactions, data.names, options.max_order)
            self._take_knowledge(session, data.names)
            family = self._choose_family(data, inputs, session)
            rows = data.read(family)
            require_fitting(session.options.knowledge, rows.schema)
            require_applicable(session.options, rows.encoding)
            refuse_given(rows.encoding.family, exposure, trials, offset)
            self._learn_classes(rows.encoding.classes)
            if checkpoint is not None:
                response = {"family": rows.encoding.family.name, "levels": rows.schema.n_levels}
                session.keep_at(
                    checkpoint, {**data.about(), **response, "pairs": self.interactions}
                )
            session.options = replace(session.options, interactions=pairs)
            self._train(session, rows, partial(fitting.fit, n_levels=rows.schema.n_levels))
        if data.dialect is not None:
            self.dialect_ = data.dialect
        self._warn_if_unfinished()
        self._warn_of_pooled_categories()
        self._warn_of_doubts()
        size = exposure if trials is None else trials
        self._exposed = size is not None and bool(np.any(np.asarray(size) != 1.0))
        self._has_offset = offset is not None and bool(np.any(np.asarray(offset) != 0.0))
        return self

    def _train(
        self, session: Session, rows: TrainingRows, train: Callable[..., FittedModel]
    ) -> None:
        """Train a model on the rows and set the learned attributes."""
        session.constant = rows.encoding.constant

        def check(summary: DataSummary) -> None:
            rows.check(summary)
            require_fitting(session.options.knowledge, rows.schema)

        model = train(
            rows.tables(session.log),
            rows.encoding.likelihood,
            session.options,
            session.seed,
            on_summary=check,
        )
        model = self._with_remark(rows.with_record(model), rows, session)
        model = rows.encoding.to_user(model)
        score = session.options.interaction_score
        self._set_fitted(model, rows.schema, rows.n_rows, score)
        self.plan_ = session.plan
        self.provenance_ = provenance(rows.fingerprint, rows.target)

    def _take_knowledge(self, session: Session, names: Sequence[str], **arguments: Any) -> None:
        """Add to the options what the parameters say of columns with these names."""
        knowledge = read_knowledge(self.get_params(deep=False) | arguments, names)
        session.options = replace(session.options, knowledge=knowledge)
        require_networks(session.options)

    def _choose_family(self, data: TrainingData, inputs: FitInputs, session: Session) -> Family:
        """The response family of this fit."""
        return self._asked_family

    def _with_remark(self, model: FittedModel, rows: TrainingRows, session: Session) -> FittedModel:
        """The model with a remark about its family, if there is one to make."""
        return model

    def _open(
        self, inputs: FitInputs, session: Session, totals: bool, fitted: Schema | None = None
    ) -> TrainingData:
        """The training data, opened with the threads and the memory of this fit.

        ``totals`` is whether the fit may use nothing of the rows but totals over them.
        """
        in_chunks = is_chunked(inputs.X)
        if totals or in_chunks:
            require_totals(session.options)
        if not in_chunks:
            return InMemoryData(self, inputs, fitted)
        return ChunkedData(self, inputs, self._open_source(inputs.X, session), fitted)

    def _open_source(self, table: Any, session: Session) -> Source:
        """A table in chunks, with the threads and the memory of this fit."""
        cache = int(read_memory(self.memory) * _CACHE_FRACTION)
        dialect = getattr(self, "dialect_", None)
        reading = ReadOptions(session.options.n_jobs, cache, session.show_rows, dialect=dialect)
        return open_source(table, reading)

    def _learn_classes(self, classes: np.ndarray) -> None:
        """Set the classes of a classifier."""

    @property
    def _asked_family(self) -> Family:
        """The response family of the next fit."""
        raise NotImplementedError

    @property
    def family_(self) -> Family:
        """The response family of the fitted model."""
        check_is_fitted(self)
        return find_family(self._model.likelihood).of_model(self._model)

    @property
    def family_parameters_(self) -> dict[str, float | list[float]]:
        """The likelihood's own parameters that were learned, by name; empty where there are none."""
        return self.family_.likelihood_of(self._model).named_parameters

    @property
    def feature_importances_(self) -> Array:
        """Importance of each column, in scikit-learn's convention: they sum to one.

        An interaction's importance is split evenly between its columns.
        """
        check_is_fitted(self)
        importances = np.zeros(self._schema.n_columns)
        for term in self.terms_:
            importances[list(term.features)] += term.importance / len(term.features)
        return importances / (importances.sum() or 1.0)

    def add_interactions(
        self,
        X: Any,
        y: Any,
        interactions: Any = "auto",
        *,
        interaction_score: str | None = None,
        sample_weight: Any = None,
        exposure: Any = None,
        trials: Any = None,
        offset: Any = None,
    ) -> Self:
        """Add interactions to a fitted model without refitting its main effects from scratch.

        Training starts from the fitted terms and updates all of them jointly; interactions that the data
        do not support are dropped, as in :meth:`fit`. If none is supported, the model does not change. A
        model with edited terms is refused, because training would undo the edits: add interactions first.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            The training data.
        y : array-like of shape (n_samples,)
            The target.
        interactions : "auto", int or sequence of pairs and triples of columns, default="auto"
            As in the constructor: how many, or which.
        interaction_score : str, default=None
            As in the constructor, whose value is the default.
        sample_weight : array-like of shape (n_samples,), default=None
            As in :meth:`fit`.
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 3))
        >>> y = X[:, 0] * X[:, 2] + 0.1 * rng.normal(size=300)
        >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X, y)
        >>> model = model.add_interactions(X, y)
        >>> [term.name for term in model.terms_ if term.active and term.kind == "pair"]
        ['x0 x x2']
        """
        self._require_given(exposure, trials, offset)
        arguments = self.get_params(deep=False)
        if interaction_score is not None:
            arguments["interaction_score"] = interaction_score
        options = read_options(arguments)
        check_is_fitted(self)
        require_unedited(self.edits_)
        pairs = read_interactions(interactions, self._schema.names, options.max_order)
        inputs = FitInputs(X, y, sample_weight, exposure, trials=trials, offset=offset)
        with Session(
            replace(options, interactions=pairs), self.random_state, self.verbose
        ) as session:
            data = self._open(inputs, session, False, self._schema)
            if not pairs:
                return self
            self._take_knowledge(session, self._schema.names, interactions=interactions)
            rows = data.read(self.family_, self._labels)
            require_applicable(session.options, rows.encoding)
            first_stage = rows.encoding.to_core(self._model)
            self._train(session, rows, partial(fitting.fit_on, first_stage))
        self._warn_if_unfinished()
        self._warn_of_doubts()
        return self

    def _require_given(self, exposure: Any = None, trials: Any = None, offset: Any = None) -> None:
        """Refuse targets without their exposure, trials or offset if the model was fitted with some.

        Predictions without an exposure are rates, to which counts must not be compared.
        """
        check_is_fitted(self)
        if self._exposed and (trials if self.family_.takes_trials else exposure) is None:
            if self.family_.takes_trials:
                raise InputError(
                    "the model was fitted with trials, and y has successes without them",
                    "{pass} the trials of these rows as {trials=...}",
                    argument="trials",
                )
            raise InputError(
                "the model was fitted with an exposure, and y has counts without one",
                "{pass} the exposure of these rows as {exposure=...}, or {exposure=1.0} if it was one for "
                "every row",
                argument="exposure",
            )
        if self._has_offset and offset is None:
            raise InputError(
                "the model was fitted with an offset, and these rows have none",
                "{pass} theirs as {offset=...}, or {offset=0.0}",
                argument="offset",
            )

    def _read_target(self, family: Family, y: Any, n_rows: int) -> np.ndarray:
        """The validated target of the rows."""
        return read_target_of(family, self, y, n_rows)

    def _read_given(
        self, n_rows: int, exposure: Any = None, trials: Any = None, offset: Any = None
    ) -> tuple[Array, Array | None]:
        """The validated exposures (or trials) and offsets of the rows."""
        family = self.family_
        refuse_given(family, exposure, trials, offset)
        size = (
            read_trials(trials, n_rows) if family.takes_trials else read_exposure(exposure, n_rows)
        )
        return size, None if offset is None else read_offset(offset, n_rows)

    def _rows(
        self, X: Any, exposure: Any = None, trials: Any = None, offset: Any = None
    ) -> NewRows:
        """Rows to predict."""
        columns = self._columns(X)
        return NewRows(columns, *self._read_given(len(columns), exposure, trials, offset))

    def _set_fitted(self, model: FittedModel, schema: Schema, n_rows: int, score: str) -> None:
        """Set the learned attributes."""
        self.__dict__.pop("calibration_", None)  # of the previous model
        self._model, self._schema, self._n_rows = model, schema, n_rows
        self.edits_ = ()
        self.terms_ = explain.describe_terms(model, schema)
        several = model.contrasts is not None
        self.intercept_ = np.array(model.intercept) if several else float(model.intercept)
        self.log_evidence_ = float(model.log_evidence)
        self.interaction_scores_ = describe_interactions(model, schema, score)
        self.n_iter_ = model.n_iter
        self.converged_ = model.converged
        self.history_ = [dict(record) for record in model.history]

    @property
    def _follow_up(self) -> storage.SavedFollowUp | None:
        """What a survival model has besides, to save."""
        return None

    def _restore(self, saved: storage.SavedModel) -> None:
        """Set the learned attributes that only some estimators have."""

    def _warn_if_unfinished(self) -> None:
        """Warn if the fit stopped before convergence."""
        if self._model.stop_reason == "interrupted":
            problem = (
                "Training was interrupted after {n_iter} iterations; the best model so far is kept"
            )
            remedy = "Fit again to train to convergence."
            warn_user(UnfinishedWarning(problem, remedy, n_iter=self.n_iter_))
        elif not self.converged_:
            warn_user(
                UnfinishedWarning(
                    "The log evidence was still rising after {given} iterations; the best model so far is "
                    "kept",
                    "Raise {argument} to train longer, or raise tol={tol} to accept this as converged.",
                    argument="max_iter",
                    value=self.max_iter,
                    tol=self.tol,
                )
            )

    def _warn_of_doubts(self) -> None:
        """Warn of a fit that its rows hardly determine."""
        for caution in cautions(self._model, self._schema):
            warn_user(caution)

    def _warn_of_pooled_categories(self) -> None:
        """Warn of columns with more categories than can have effects of their own."""
        pooled = [
            f"of the {len(term.entries.entry_of)} categories of column "
            f"{self._schema.names[term.features[0]]!r} the {term.entries.n_own} most frequent"
            for term in self._model.terms
            if isinstance(term.entries, Categories)
            and term.entries.n_own < len(term.entries.entry_of)
        ]
        if pooled:
            warn_user(
                UserWarning(
                    f"{', and '.join(pooled)} have an effect of their own; all others share that of an "
                    "unseen category. One column of very many categories is supported, for at most two "
                    "classes: merge categories, or drop the column if it is a row identifier."
                )
            )

        known = read_knowledge(
            self.get_params(deep=False) | {"interactions": 0}, self._inputs.names
        )
        for term in self._model.terms:
            grid = term.entries
            if term.features not in known.grouped or not isinstance(grid, Grid):
                continue
            for feature, axis in zip(term.features, grid.axes, strict=True):
                if isinstance(axis, Categories) and axis.n_own < len(axis.entry_of):
                    warn_user(
                        UserWarning(
                            f"of the {len(axis.entry_of)} groups of column "
                            f"{self._schema.names[feature]!r} the {axis.n_own} largest have their own "
                            "curves; all others have the common one, with the band of an unseen group"
                        )
                    )

    @property
    def group_std_(self) -> dict[str, float]:
        """Standard deviations of groups' curves around the common one (``by``, ``random_slopes``), by term.

        Those of the prior, as tuned: on the link scale, averaged over the data; of lines, of their slopes
        per unit of the column.
        """
        check_is_fitted(self)
        known = read_knowledge(
            self.get_params(deep=False) | {"interactions": 0}, self._inputs.names
        )
        return {
            self.terms_[k].name: scoring.prior_std(term)
            for k, term in enumerate(self._model.terms)
            if term.active and term.features in known.grouped
        }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Not `string`, though strings are supported: scikit-learn's check of it wants a dictionary among
        # numbers to be accepted.
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    @property
    def _inputs(self) -> Schema:
        """The columns that rows to predict must have."""
        return self._schema

    @property
    def _labels(self) -> np.ndarray | None:
        """The classes of a classifier."""
        return None

    @property
    def _explained_labels(self) -> np.ndarray | None:
        """The labels by which explanations name what contributions are to."""
        return self._labels

    @property
    def _portable(self) -> PortableModel:
        """The model as tables."""
        return explain.explain_portable(
            self._model, self._schema, self._explained_labels, self._labels
        )

    def _columns(self, X: Any) -> Array:
        """Rows to predict, encoded as an array with columns in the order of the fit."""
        check_is_fitted(self)
        require_in_memory(X)
        return read_columns(self, X, fitting=False, used=self._model.used)[0]

    @in_chunks
    def predict_terms(self, X: Any, return_std: bool = False) -> Any:
        """Contribution of each term to the prediction of each row.

        Contributions and ``intercept_`` sum to the prediction on the link scale: the unit of y for a
        regressor, its logarithm for counts, log-odds for two classes. With more classes each has a centred
        logit (its log-probability up to a constant), and contributions sum to zero over the classes.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            For a Dask frame the result is a Dask frame with one column per term.
        return_std : bool, default=False
            Whether to return posterior standard deviations as well.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_terms)
            In the order of ``terms_``; zero for dropped terms. With more than two classes,
            (n_samples, n_terms, n_classes).
        std : ndarray of the same shape
            Only with ``return_std=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X, y)
        >>> terms = model.predict_terms(X)
        >>> np.allclose(model.intercept_ + terms.sum(axis=1), model.predict(X))
        True
        """
        columns = self._columns(X)
        means = scoring.term_means(self._model, columns)
        if not return_std:
            return means
        return means, np.sqrt(scoring.term_variances(self._model, columns))

    def transform(self, X: Any) -> Any:
        """Contribution of each term to the prediction of each row, as :meth:`predict_terms`.

        For pipelines, and for frames: after ``set_output(transform="pandas")`` or ``"polars"`` columns
        have the names of the terms.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            For a Dask frame the result is a Dask frame, unless ``set_output`` asks for another library,
            which then holds all rows in memory.

        Returns
        -------
        contributions : ndarray or frame of shape (n_samples, n_terms)
            With more than two classes, (n_samples, n_terms * n_classes): the contributions of the first
            term to every class, then those of the second.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = LANAMRegressor(interactions=0, random_state=0).set_output(transform="pandas")
        >>> list(model.fit(X[["bmi", "bp"]], y).transform(X[["bmi", "bp"]]).columns)
        ['bmi', 'bp']
        """
        terms = self.predict_terms(X)
        return terms.reshape(len(terms), -1) if isinstance(terms, np.ndarray) else terms

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : sequence of str, default=None
            If given, must equal ``feature_names_in_``.

        Returns
        -------
        names : ndarray of shape (n_terms,)
            Names of the terms; with more than two classes "term [class]", (n_terms * n_classes,).

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> X = np.linspace(-1, 1, 50)[:, None]
        >>> LANAMRegressor(random_state=0).fit(X, X[:, 0] ** 2).get_feature_names_out()
        array(['x0'], dtype=object)
        """
        check_is_fitted(self)
        if input_features is not None:
            self._require_known(list(input_features))
        names = [term.name for term in self.terms_]
        if self._labels is not None and self.family_.link.several:
            labels = self._labels.tolist()
            names = [f"{name} [{label}]" for name in names for label in labels]
        return np.array(distinct(names), dtype=object)

    def _require_known(self, names: list[Any]) -> None:
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to the number of columns, "
                f"{self.n_features_in_}, and has {len(names)}"
            )
        fitted_names = getattr(self, "feature_names_in_", None)
        if fitted_names is not None and list(fitted_names) != names:
            raise ValueError(
                "input_features is not equal to feature_names_in_: terms are named after the "
                "columns of the fit, so leave input_features out"
            )

    def predict_files(
        self,
        X: Any,
        output: Any,
        *,
        interval: float | None = None,
        std: bool = False,
        terms: bool = False,
        proba: bool = False,
        keep: Sequence[str] = (),
        exposure: Any = None,
        trials: Any = None,
        offset: Any = None,
        times: Sequence[float] = (),
        prefix: str = "",
        overwrite: bool = False,
    ) -> int:
        """Predict rows of files, or of a Dask frame, and write the predictions to files, chunk by chunk.

        Output is written atomically: an interrupted run leaves no partial file.

        Parameters
        ----------
        X : str, path, sequence of these, or Dask frame
            Files as in :meth:`fit`. Columns that the model does not use are ignored.
        output : str or path
            A folder, which gets one Parquet file per input file or partition; or a single file, if the
            name ends in ".parquet" or ".csv". Workers of a Dask cluster need access to the folder.
        interval : float, default=None
            Add "lower" and "upper", the ends of intervals with this coverage.
        std : bool, default=False
            Add "std", the standard deviation of a new observation.
        terms : bool, default=False
            Add the intercept and the contribution of each term.
        proba : bool, default=False
            Add the probability of each class.
        keep : sequence of str, default=()
            Columns of the input to copy to the output. Columns of CSV files that the model does not use are
            copied verbatim.
        exposure : str or float, default=None
            For counts, the name of the column with the exposure, or one number.
        trials, offset : str or float, default=None
            The same for the trials of successes, and for offsets.
        times : sequence of float, default=()
            For survival models, add "survival_<time>" and, with competing risks, the cumulative incidence
            of each cause, "incidence_<cause>_<time>"; with ``interval`` also the ends of their intervals.
        prefix : str, default=""
            Prefix of the names of all predicted columns.
        overwrite : bool, default=False
            Whether to replace an existing file, or folder of Parquet files.

        Returns
        -------
        n_rows : int
            Number of predicted rows.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     X.to_parquet(f"{folder}/new.parquet")
        ...     n_rows = model.predict_files(f"{folder}/new.parquet", f"{folder}/out", keep=["age"])
        ...     n_rows, pd.read_parquet(f"{folder}/out").columns.tolist()
        (442, ['age', 'prediction'])
        """
        options = OutputOptions(interval, std, terms, proba, prefix, tuple(times))
        given = {"exposure": exposure, "trials": trials, "offset": offset}
        return predict_files(self, X, output, options, keep=keep, **given, overwrite=overwrite)

    def _sample_links(self, rows: NewRows, n_samples: int, random_state: Any) -> Array:
        """Posterior draws (n_samples, n_rows) of the linear predictor, each a function of all rows."""
        draws = scoring.sample_links(self._model, rows.columns, n_samples, generator(random_state))
        return draws if rows.offset is None else np.asarray(draws + rows.offset)

    def summary(self) -> Summary:
        """Summary of the fit, with one row per term.

        Returns
        -------
        summary : Summary
            To print, or as data by ``to_frame()`` or ``to_dict()``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> model.summary().rows[0]["term"]
        'bmi'
        """
        check_is_fitted(self)
        return summarise(
            self._model,
            self._schema,
            self.interaction_scores_,
            estimator=type(self).__name__,
            n_rows=self._n_rows,
            classes=self._explained_labels,
            edits=self.edits_,
            family_scores=getattr(self, "family_scores_", None),
        )

    def edit_term(
        self,
        name: Any,
        action: str,
        *,
        low: Any = None,
        high: Any = None,
        levels: Any = None,
        missing: Any = None,
        width: float | None = None,
        reason: str | None = None,
        author: str | None = None,
    ) -> Self:
        """A copy of the model with a term edited by hand; this model does not change.

        For expert knowledge that overrides the data, or effects that must not be used. Every edit is
        recorded in ``edits_``, the summary, reports and saved files, and is marked in explanations and
        plots. Credible bands and posterior draws follow exactly from the posterior of the fit: where a term
        was set to zero its band has zero width, by decision and not by evidence. The intercept does not
        change, so predictions elsewhere stay as they are. ``evidence`` and ``effective_parameters`` remain
        those of the fit; a calibration is discarded. The residual variance is that of the fit, too:
        prediction intervals do not account for edits until ``calibrate`` is called with held-out rows.

        Parameters
        ----------
        name : str or pair of str
            A column, for its main effect; or a term, by its name in ``terms_``: "a x b" for an interaction,
            "a (levels)" for per-value effects.
        action : {"zero", "clamp", "smooth", "monotone", "increasing", "decreasing"}
            "zero": the contribution is zero there. "clamp": below ``low`` and above ``high`` the function
            is constant. "smooth": between ``low`` and ``high`` the function is a straight line, or a moving
            average (see ``width``); categories get their mean effect. "increasing", "decreasing": the
            effect of a column, with its interactions, increases or decreases between ``low`` and ``high``,
            as in a fit with ``monotonic_cst``: all terms follow. "monotone": in the direction from the
            curve's one end to the other.
        low, high : number, default=None
            The range in the column's unit, both ends included; None or infinity is unbounded. For an
            interaction mappings, such as ``low={"age": 60}``; the intersection of the ranges is edited.
        levels : category or sequence of categories, default=None
            Categories of a categorical column to edit; for an interaction, a mapping.
        missing : bool, default=None
            For "zero", whether the effect of missing values is edited, with a range or alone. By default
            only if the whole term is. For an interaction, a mapping.
        width : float, default=None
            For "smooth", half the window of the moving average in the column's unit; the window shrinks
            towards the ends of the range. By default the function becomes a straight line.
        reason : str, default=None
            The reason, for the record.
        author : str, default=None
            Who edits the term, for the record. It has the date as well; if ``SOURCE_DATE_EPOCH`` is set in
            the environment, that time.

        Returns
        -------
        model : estimator
            A fitted estimator of the same class.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
        >>> edited = model.edit_term("bmi", "clamp", high=38, reason="few patients")
        >>> edited.edits_[0]["action"], len(model.edits_)
        ('clamp', 0)
        >>> bmi = edited.explain_global()["bmi"]
        >>> bool(bmi.edited[bmi.values > 38].all())
        True
        """
        check_is_fitted(self)
        where = Where(low, high, levels, missing)
        model, record = edit(
            *(self._model, self._schema, name, action, where),
            width=width,
            reason=reason,
            author=author,
        )
        result = copy.copy(self)
        result._set_fitted(model, self._schema, self._n_rows, self.interaction_scores_.score)
        result.edits_ = (*self.edits_, record)
        if hasattr(self, "metadata_"):  # each model has metadata of its own
            result.metadata_ = copy.deepcopy(self.metadata_)
        return result

    def explain_global(self) -> GlobalExplanation:
        """Shape functions of all terms, with uncertainty, data density and importance.

        Returns
        -------
        explanation : GlobalExplanation
            Plain data; :func:`lanam.plot.plot_shapes` plots it.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> model.explain_global()["bmi"].active
        True
        """
        check_is_fitted(self)
        return explain.explain_global(self._model, self._schema, self._explained_labels)

    def test_shape(
        self, column: Any, shape: str, *, between: Any = None, tolerance: float = 0.02
    ) -> Any:
        """The evidence that the effect of a column has a shape, against all other curves.

        From draws of the posterior and the prior of the column's main effect: interactions and per-value
        effects are left out. For a model that was fitted without constraints on the column.

        Parameters
        ----------
        column : str or int
            A numeric column or one with ``ordered`` categories, by name or index.
        shape : {"increasing", "decreasing", "convex", "concave"}
            The shape; categories can increase and decrease only.
        between : (float, float), default=None
            The range of values; by default that of the training data.
        tolerance : float, default=0.02
            Departures up to this fraction of a curve's own range count as none. Draws of a curve are never
            flat, so without it a plateau would speak against every direction.

        Returns
        -------
        test : lanam.explain.ShapeTest
            Posterior probability, prior probability and Bayes factor; it prints as a sentence. With more
            than two classes, a tuple with one for each.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> print(model.test_shape("bmi", "increasing"))
        bmi is increasing (18 to 42.2): posterior probability ...; Bayes factor ... for it (...)
        """
        check_is_fitted(self)
        return explain.shape_test(self._model, self._schema, column, shape, between, tolerance)

    def explain_local(self, X: Any, *, offset: Any = None) -> LocalExplanation:
        """Predictions of single rows, decomposed into contributions.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the prediction on the link scale, as in :meth:`fit`; zero by default.

        Returns
        -------
        explanation : LocalExplanation
            Intercept, contributions and prediction of every row, with standard deviations.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> X = X[["bmi", "bp"]]
        >>> local = LANAMRegressor(random_state=0).fit(X, y).explain_local(X[:1])
        >>> local.to_frame()["term"].tolist()
        ['(intercept)', 'bmi', 'bp', '(prediction)']
        """
        rows = self._rows(X, offset=offset)
        schema, frame = self._schema, as_frame(X)
        if frame is not None:  # perhaps of another library than the training data
            schema = replace(schema, backend=frame.implementation.name.lower())
        return explain.explain_local(
            self._model, schema, rows.columns, self._explained_labels, rows.offset
        )

    def adequacy(
        self,
        X: Any,
        y: Any,
        *,
        n_splits: int = 5,
        coverage: float = 0.95,
        max_columns: int = 5,
        max_rows: int = 20_000,
        held_out: bool | None = None,
        exposure: Any = None,
        trials: Any = None,
        offset: Any = None,
        sample_weight: Any = None,
        random_state: Any = 0,
    ) -> Adequacy:
        """How much a black box would gain over this model, and which columns together hold it.

        Boosted trees are added to the model's predictions on the link scale, cross-validated, by LightGBM
        where it is installed and otherwise by scikit-learn. What they gain, as a share of what can be
        explained at all, is what additive terms miss: terms of more columns, or shapes too fine for
        the model. The model's predictions are of rows that it has not seen: it is refitted without each
        fold, with the parameters of its constructor, unless the rows were held out of its fit.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            The training data, or rows that were held out.
        y : array-like of shape (n_samples,)
            Their targets.
        n_splits : int, default=5
            Number of folds.
        coverage : float, default=0.95
            Confidence level of the intervals.
        max_columns : int, default=5
            The number of columns, those that matter most to the trees, of which all sets of up to three are
            searched for what they hold together; 0 for no search.
        max_rows : int, default=20000
            More rows are sampled.
        held_out : bool, default=None
            Whether the model has not seen the rows, so that it need not be refitted. By default only if
            ``lanam fit`` recorded it.
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Frequency weights.
        random_state : int, RandomState or None, default=0
            Seed of the folds.

        Returns
        -------
        adequacy : Adequacy
            To print, or as data; :func:`lanam.plot.plot_adequacy` plots it.

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-1, 1, size=(300, 2))
        >>> y = X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=300)
        >>> adequacy = LANAMRegressor().fit(X, y).adequacy(X, y, n_splits=3)
        >>> adequacy.missed.clear
        False
        """
        self._require_given(exposure, trials, offset)
        plan = Plan(n_splits, coverage, max_columns, max_rows, held_out, random_state)
        given = {"exposure": exposure, "trials": trials, "offset": offset}
        given |= {"sample_weight": sample_weight}
        given = {name: value for name, value in given.items() if value is not None}
        return adequacy(self, X, y, plan, given)

    def report(
        self,
        path: Any,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        n_rows: int = 200,
        coverage: float = 0.95,
        exposure: Any = None,
        trials: Any = None,
        offset: Any = None,
        sample_weight: Any = None,
        adequacy: bool = False,
        overwrite: bool = True,
    ) -> Path:
        """Write a report: a single, self-contained HTML file that works offline.

        It has the data and the fit, dropped terms with the reason, shape functions, interactions and
        importances, calibration on the given rows, and a what-if page on which the prediction, its interval
        and every contribution follow the inputs.

        Parameters
        ----------
        path : str or path
            The file to write, such as "report.html".
        X : frame or array-like of shape (n_samples, n_features), default=None
            Rows to pick from on the what-if page, preferably held out.
        y : array-like of shape (n_samples,), default=None
            Their targets, for the section on calibration.
        title : str, default=None
            Title of the page.
        n_rows : int, default=200
            Number of rows stored in the file, evenly spaced; 0 for none, if the data are confidential.
        coverage : float, default=0.95
            Initial coverage of the intervals on the what-if page.
        exposure : float or array-like of shape (n_samples,), default=None
            For counts, the exposure of the rows.
        trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Frequency weights of the rows, for the calibration.
        adequacy : bool, default=False
            Whether to show what a black box would gain on the given rows (:meth:`adequacy`), for which the
            model is refitted five times, unless the rows were held out of its fit.
        overwrite : bool, default=True
            Whether to replace an existing file; if not, it is an error.

        Returns
        -------
        path : Path
            The file.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = LANAMRegressor(random_state=0).fit(X[:300], y[:300])
        >>> with TemporaryDirectory() as folder:
        ...     path = model.report(Path(folder) / "report.html", X[300:], y[300:])
        ...     path.stat().st_size < 4e6
        True
        """
        check_is_fitted(self)
        from lanam import report  # only here: its dependencies are an extra
        from lanam.metrics import coverage_report

        given = {"exposure": exposure, "trials": trials, "offset": offset}
        given = {name: value for name, value in given.items() if value is not None}
        if X is None and (y is not None or given or sample_weight is not None):
            raise ValueError("y, exposure and sample_weight belong to rows: pass X as well")
        if adequacy and y is None:
            raise InputError(
                "{argument} is of rows and their targets",
                "pass X and y as well",
                argument="adequacy",
            )
        rows = coverages = noise = None
        part = "unknown"
        if X is not None:
            columns = self._columns(X)
            if self.provenance_ is not None:
                part = self.provenance_.part_of(columns)
            family = self.family_
            exposed, _ = self._read_given(len(columns), **given)
            target = None if y is None else self._read_target(family, y, len(columns))
            rows = report.pick_rows(
                columns, n_rows, target, exposed if family.takes_exposure else None
            )
            if self._model.noise is not None:
                noise = np.sqrt(scoring.noise_variances(self._model, columns))
        if y is not None:
            with warnings.catch_warnings():  # unseen values of these rows were warned of above
                warnings.simplefilter("ignore", NewValuesWarning)
                coverages = coverage_report(self, X, y, **given, sample_weight=sample_weight)
        missed = None
        if adequacy:
            missed = self.adequacy(X, y, **given, sample_weight=sample_weight)
        return self._write_report(
            path,
            title,
            coverage,
            overwrite=overwrite,
            report=coverages,
            rows=rows,
            noise=noise,
            part=part,
            adequacy=missed,
        )

    def _write_report(
        self,
        path: Any,
        title: str | None,
        coverage: float,
        *,
        overwrite: bool,
        report: Any = None,
        rows: Any = None,
        noise: Array | None = None,
        part: str = "unknown",
        adequacy: Adequacy | None = None,
    ) -> Path:
        """Write a report with what some rows say of the model, if any."""
        from lanam.report import gather, write_report

        n_classes = np.size(self._model.intercept)
        material = gather(
            self,
            portable=self._portable,
            schema=self._schema,
            normals=generator(0).standard_normal((1000, n_classes)) if n_classes > 1 else None,
            title=title,
            coverage=explain.require_coverage(coverage),
            report=report,
            rows=rows,
            noise=noise,
            part=part,
            adequacy=adequacy,
        )
        return write_report(path, material, overwrite=overwrite)

    def save(self, path: Any, *, overwrite: bool = True) -> Path:
        """Save the fitted model to a file, which :func:`lanam.load` reads.

        The file has plain values and arrays, no pickle and no code, in a documented format that newer
        versions read as well. It has no rows of the training data, but ranges, names and categories of its
        columns. It is written atomically.

        Parameters
        ----------
        path : str or path
            The file to write, such as "model.lanam".
        overwrite : bool, default=True
            Whether to replace an existing file; if not, it is an error.

        Returns
        -------
        path : Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> import lanam
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = lanam.LANAMRegressor(random_state=0).fit(X[["bmi", "bp"]], y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = model.save(f"{folder}/model.lanam")
        ...     lanam.load(path).feature_names_in_.tolist()
        ['bmi', 'bp']
        """
        check_is_fitted(self)
        target = require_place(path, overwrite=overwrite)
        content = storage.to_bytes(storage.of_estimator(self))
        return write_atomically(target, content, "the model", overwrite=overwrite)

    def export(
        self, path: Any, to: str | None = None, *, overwrite: bool = True, **options: Any
    ) -> Any:
        """Export the model for use without Python: lookup tables, a rating table, SQL or ONNX.

        Exports are complete: they reproduce :meth:`predict`, also for missing values, unseen categories,
        and values outside the range of the training data.

        Parameters
        ----------
        path : str, path or None
            The file to write. None returns the content instead.
        to : {"json", "csv", "sql", "onnx"}, default=None
            The format; by default the extension of ``path``. "json": all lookup tables. "csv": a
            human-readable rating table. "sql": a query with mean and variance. "onnx": a graph, which
            requires the package onnx.
        overwrite : bool, default=True
            Whether to replace an existing file; if not, it is an error.
        **options
            ``variance=False`` omits the variance (all but "csv"). For "sql": ``table``, ``dialect``
            ("sqlite", "duckdb" or "standard"), ``columns`` (a mapping from columns of the model to columns
            of the table) and ``keep`` (further columns to select). For "onnx": ``columns``, and
            ``missing``, the string that encodes a missing value. For "json": ``indent``. For "csv":
            ``bands``, about how many ranges numeric columns have; the table is then for people, within
            the training data and relative to a base level of each column, and no longer exact.

        Returns
        -------
        path : Path
            The file; or with ``path=None`` its content, str or bytes.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = LANAMRegressor(interactions=0, random_state=0).fit(X[["bmi", "bp"]], y)
        >>> print(model.export(None, to="csv").splitlines()[0])
        term,column,kind,value,below,meaning,contribution,std,share
        >>> query = model.export(None, to="sql", table="patients", variance=False)
        """
        check_is_fitted(self)
        from lanam import export  # only here, to keep imports fast

        if path is None and to is None:
            raise ValueError("path=None returns the content: specify its format with to=")
        kind = export.require_format(to) if path is None else export.format_of(path, to)
        portable = self._portable
        content = partial(
            export.render,
            kind,
            portable,
            self._schema,
            options,
            calibration=getattr(self, "calibration_", None),
            edits=self.edits_,
        )
        if path is None:
            return content()
        return export.write_export(path, content, overwrite=overwrite)


def require_unedited(edits: tuple[Edit, ...]) -> None:
    """Refuse to train an edited model further."""
    if edits:
        plural = "s" if len(edits) > 1 else ""
        raise ValueError(
            f"this model has {len(edits)} edit{plural}, which training would undo, and adding interactions "
            "trains all terms again: add interactions before editing"
        )


def require_totals(options: Options) -> None:
    """Refuse a solver that needs more of the rows than totals over them."""
    if SOLVERS[options.solver].in_memory:
        raise ValueError(
            f"solver={options.solver!r}, the paper's, draws mini-batches of rows in memory: use "
            "solver='gauss-newton', the default, for files, Dask frames and checkpoints"
        )


def refuse_given(
    family: Family, exposure: Any = None, trials: Any = None, offset: Any = None
) -> None:
    """Refuse arguments that a response family has no use for."""
    chosen = Setting("likelihood", family.name)
    if exposure is not None and not family.takes_exposure:
        raise InputError(
            "{argument} is for counts, and {family} is not",
            "{set likelihood='poisson'}, or leave {argument} out",
            argument="exposure",
            family=chosen,
        )
    if trials is not None and not family.takes_trials:
        raise InputError(
            "{argument} is for successes among trials, and {family} is not",
            "{set likelihood='binomial'}, or leave {argument} out",
            argument="trials",
            family=chosen,
        )
    if offset is not None and family.link.several:
        raise InputError(
            "{argument} would move the logits of all classes alike, which changes nothing",
            "leave it out, or fit a model for each class against the others",
            argument="offset",
        )


def require_applicable(options: Options, encoding: Encoding) -> None:
    """Refuse options that have no form for several classes, or for them in the paper's way."""
    n_classes = len(encoding.classes)
    if options.knowledge.constraints and encoding.likelihood.n_outputs > 1:
        raise InputError(
            f"{{argument}} needs one function of each column, and y has {n_classes} classes with one each",
            "set likelihood='ordinal' if the classes have an order, or fit one class against the others",
            argument=argument_of(options.knowledge),
        )
    if n_classes < 3:
        return
    trained, factored = SOLVERS[options.solver].trained, CURVATURES[options.curvature].factored
    if trained and not factored:
        raise InputError(
            f"{{given}} trains a network for every class, and y has {n_classes} classes: their posterior "
            "has Kronecker factors",
            "set curvature='kron' and posterior='block', or solver='gauss-newton', the default",
            argument="solver",
            value=options.solver,
        )
    if factored and not trained:
        raise InputError(
            f"{{given}} is of networks of each class, and y has {n_classes} classes",
            "set solver='adam', which trains them, or curvature='exact', the default",
            argument="curvature",
            value=options.curvature,
        )
    if trained and options.interaction_score.endswith("_full"):
        raise InputError(
            f"{{given}} is of a joint posterior of all layers, and y has {n_classes} classes",
            f"set interaction_score={options.interaction_score.removesuffix('_full')!r}",
            argument="interaction_score",
            value=options.interaction_score,
        )


def generator(random_state: Any) -> np.random.Generator:
    """A numpy generator from scikit-learn's ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def distinct(names: list[str]) -> list[str]:
    """The names, made unique by a number.

    Examples
    --------
    >>> distinct(["a", "b", "a x b", "a x b"])  # the last one is a column of that name
    ['a', 'b', 'a x b', 'a x b (2)']
    """
    seen: dict[str, int] = {}
    result = []
    for name in names:
        unique = name
        while unique in seen:
            seen[name] += 1
            unique = f"{name} ({seen[name]})"
        seen[unique] = 1
        result.append(unique)
    return result


def weighted_mean(values: Array, sample_weight: Any) -> float:
    """Weighted mean over rows."""
    return float(np.average(values, weights=read_weights(sample_weight, len(values))))
