"""What both estimators share: fitting, taking predictions apart, explaining.

Thin on purpose: it checks, delegates and names things. ``inputs`` reads tables, ``arguments`` reads
options, ``core`` fits and scores, ``explain`` and ``summary`` put the result into words.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
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
from lanam.arguments import read_interactions, read_options
from lanam.batch_predict import predict_files
from lanam.chunked import contributions, in_chunks, require_in_memory
from lanam.core.arrays import Array
from lanam.core.fit import fitting
from lanam.core.fit.solvers import CURVATURES, SOLVERS
from lanam.core.inference.options import Options
from lanam.core.model import scoring
from lanam.core.model.fitted import FittedModel
from lanam.core.terms.knots import Categories
from lanam.data import CATEGORICAL, NewValuesWarning, Schema
from lanam.editing import Edit, Where, edit
from lanam.engines import is_chunked, open_source
from lanam.engines.dialects import Dialect
from lanam.engines.interface import Reading
from lanam.errors import InputError, Message, Setting, warn_user
from lanam.explain import GlobalExplanation, LocalExplanation
from lanam.families import Encoding, Family, find_family
from lanam.files import require_place, write_atomically
from lanam.inputs import read_columns, read_exposure, read_target_of, read_weights
from lanam.interactions import InteractionScores, describe_pairs
from lanam.outputs import Wanted
from lanam.parameters import Parameters, read_memory
from lanam.sessions import FitPlan, Session
from lanam.summary import Summary, summarise
from lanam.training import ChunkedData, Given, InMemoryData, Looked, TrainingData, name_of_target

#: How many columns an error names before it only counts them.
_MAX_LISTED = 10

#: The part of its memory in which a fit keeps rows of files, if all fit.
_KEPT = 0.25


class UnfinishedWarning(Message, ConvergenceWarning):  # type: ignore[misc]
    """A fit that did not end by itself; the best model so far is kept."""


class AdditiveModel(Parameters, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the estimators; not for use by itself."""

    _model: FittedModel
    _schema: Schema
    interaction_scores_: InteractionScores
    edits_: tuple[Edit, ...]
    dialect_: Dialect
    metadata_: Mapping[str, object]
    plan_: FitPlan
    _exposed = False  # whether the fit was given exposures other than one

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        target: str | None = None,
        drop: Sequence[str] = (),
        checkpoint: Any = None,
    ) -> Self:
        """Fit the model.

        Ctrl-C stops training and keeps the best model so far.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), or files
            A pandas, polars or pyarrow frame, an array, or a list of rows. Columns are numbers, or
            categories (see ``categorical_features``); values may be missing. Or what need not fit in
            memory: the name of a Parquet, CSV or Arrow file, of a folder of them or a pattern such as
            "sales/*.parquet", a Dask frame, a relation of DuckDB, a polars LazyFrame, or a function that
            opens a stream of Arrow's; these hold the target as well. CSV files that are not written as
            usual are named by :func:`lanam.csv_files`.
        y : array-like of shape (n_samples,), or str
            The target, or the name of its column.
        sample_weight : array-like of shape (n_samples,), or str, default=None
            How often each row counts: a weight of 2 is the row twice, 0 leaves it out. Of files and
            Dask frames the name of a column.
        exposure : float, array-like of shape (n_samples,), or str, default=None
            For counts, what each was counted over: hours, kilometres, insured years, inhabitants. The
            mean of y is the exposure times the rate, and the rate is what is learned. One by
            default. Of files and Dask frames a number or the name of a column.
        target : str, default=None
            The name of the target's column, in place of ``y``.
        drop : sequence of str, default=()
            Columns to leave out.
        checkpoint : str or path, default=None
            A folder for what is learned of the rows on the way: a fit that was stopped goes on from
            there when it is started again with the same data and arguments.

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

        Twice the hours, twice the events:

        >>> hours = np.tile([1.0, 2.0], 100)
        >>> X, events = np.tile(X, (4, 1)), 10 * hours
        >>> counts = LANAMRegressor(likelihood="poisson", random_state=0)
        >>> counts.fit(X, events, exposure=hours).predict(X[:2], exposure=3.0).round(1)
        array([30., 30.])
        """
        refuse_exposure(self._asked_family, exposure)
        options = read_options(self.get_params(deep=False))
        # A fit that fails leaves no mixture of two.
        for learned in ("_model", "calibration_", "metadata_", "dialect_"):
            self.__dict__.pop(learned, None)
        given = Given(X, name_of_target(y, target), sample_weight, exposure, drop)
        with Session(options, self.random_state, self.verbose) as session:
            data = self._open(given, session, checkpoint is not None)
            pairs = read_interactions(self.interactions, data.names)
            rows = data.read(self._asked_family)
            require_applicable(options, rows.schema, rows.encoding)
            self._learn_classes(rows.encoding.classes)
            if checkpoint is not None:
                own = {"family": rows.encoding.family.name, "levels": rows.schema.n_levels}
                session.keep_at(checkpoint, {**data.about(), **own, "pairs": self.interactions})
            looked = Looked(rows)
            model = fitting.fit(
                rows.tables(session.log),
                rows.encoding.likelihood,
                replace(session.options, interactions=pairs),
                session.seed,
                rows.schema.n_levels,
                looked,
            )
        self._set_fitted(
            rows.encoding.to_user(model), looked.schema, looked.n_rows, options.interaction_score
        )
        if data.dialect is not None:
            self.dialect_ = data.dialect
        self.plan_ = session.plan
        self._warn_if_unfinished()
        self._warn_of_shared_levels()
        self._exposed = exposure is not None and bool(np.any(np.asarray(exposure) != 1.0))
        return self

    def _open(
        self, given: Given, session: Session, totals: bool, known: Schema | None = None
    ) -> TrainingData:
        """The training data, read with the threads and the memory that this fit may have.

        ``totals`` is whether the solver may ask for totals over the rows only.
        """
        in_chunks = is_chunked(given.X)
        if totals or in_chunks:
            require_totals(session.options)
        if not in_chunks:
            return InMemoryData(self, given, known)
        room = int(read_memory(self.memory) * _KEPT)
        dialect = getattr(self, "dialect_", None)
        reading = Reading(session.options.n_jobs, room, session.show_rows, dialect=dialect)
        return ChunkedData(self, given, open_source(given.X, reading), known)

    def _learn_classes(self, classes: np.ndarray) -> None:
        """Set the classes of a classifier."""

    @property
    def _asked_family(self) -> Family:
        """The response family that :meth:`fit` is asked for."""
        raise NotImplementedError

    @property
    def family_(self) -> Family:
        """The response family of the fitted model."""
        check_is_fitted(self)
        return find_family(self._model.likelihood)

    def add_interactions(
        self,
        X: Any,
        y: Any,
        interactions: Any = "auto",
        *,
        interaction_score: str | None = None,
        sample_weight: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Add pairs of columns to a fitted model without fitting its first stage again.

        All terms that are there are where training starts; then all are trained together, and pairs that
        the evidence does not pay for are switched off, as :meth:`fit` does. Without a pair that
        pays, the model stays as it is. A model whose terms were edited is refused: training would undo
        that, so add pairs first.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            The training data.
        y : array-like of shape (n_samples,)
            The target.
        interactions : "auto", int or sequence of pairs of columns, default="auto"
            As for the constructor: how many, or which.
        interaction_score : str, default=None
            As for the constructor, whose value it has by default.
        sample_weight : array-like of shape (n_samples,), default=None
            As for :meth:`fit`.
        exposure : float or array-like of shape (n_samples,), default=None
            As for :meth:`fit`.

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
        self._require_exposure(exposure)
        arguments = self.get_params(deep=False)
        if interaction_score is not None:
            arguments["interaction_score"] = interaction_score
        options = read_options(arguments)
        check_is_fitted(self)
        require_unedited(self.edits_)
        pairs = read_interactions(interactions, self._schema.names)
        given = Given(X, y, sample_weight, exposure)
        with Session(
            replace(options, interactions=pairs), self.random_state, self.verbose
        ) as session:
            data = self._open(given, session, False, self._schema)
            if not pairs:  # what was learned of pairs before is still so
                return self
            rows = data.read(self.family_, self._labels)
            require_applicable(options, self._schema, rows.encoding)
            looked = Looked(rows)
            model = fitting.fit_on(
                rows.encoding.to_core(self._model),
                rows.tables(session.log),
                rows.encoding.likelihood,
                session.options,
                session.seed,
                looked,
            )
        self._set_fitted(
            rows.encoding.to_user(model), self._schema, looked.n_rows, options.interaction_score
        )
        self.plan_ = session.plan
        self._warn_if_unfinished()
        return self

    def _require_exposure(self, exposure: Any) -> None:
        """Refuse targets of a model of rates without what they were counted over.

        Predictions without it are rates; counts against these would say that the model is all wrong.
        """
        check_is_fitted(self)
        if exposure is None and self._exposed:
            raise InputError(
                "the model was fitted with an exposure, and y is counts over some",
                "{pass} what these were counted over as {exposure=...}, or {exposure=1.0} if it was one "
                "for every row",
                argument="exposure",
            )

    def _read_target(self, family: Family, y: Any, n_rows: int) -> np.ndarray:
        """The target of the rows, checked."""
        return read_target_of(family, self, y, n_rows)

    def _read_exposure(self, family: Family, exposure: Any, n_rows: int) -> Array:
        """What the rows' targets were counted over, checked."""
        refuse_exposure(family, exposure)
        return read_exposure(exposure, n_rows)

    def _set_fitted(self, model: FittedModel, schema: Schema, n_rows: int, score: str) -> None:
        """Set the learned attributes."""
        self.__dict__.pop("calibration_", None)  # that was of another model
        self._model, self._schema, self._n_rows = model, schema, n_rows
        self.edits_ = ()
        self.terms_ = explain.describe_terms(model, schema)
        several = model.contrasts is not None
        self.intercept_ = np.array(model.intercept) if several else float(model.intercept)
        self.log_evidence_ = float(model.log_evidence)
        self.interaction_scores_ = describe_pairs(model, schema, score)
        self.n_iter_ = model.n_iter
        self.converged_ = model.converged
        self.history_ = [dict(record) for record in model.history]

    def _warn_if_unfinished(self) -> None:
        """Warn if the fit did not end by itself."""
        if self._model.stop_reason == "interrupted":
            problem = (
                "Training was interrupted after {n_iter} iterations; the best model so far is kept"
            )
            remedy = "Fit again to train to the end."
            warn_user(UnfinishedWarning(problem, remedy, n_iter=self.n_iter_))
        elif not self.converged_:
            warn_user(
                UnfinishedWarning(
                    "The log evidence was still rising after {given} iterations; the best model so far is "
                    "kept",
                    "Raise {argument} to train on, or raise tol={tol} to call this converged.",
                    argument="max_iter",
                    value=self.max_iter,
                    tol=self.tol,
                )
            )

    def _warn_of_shared_levels(self) -> None:
        """Warn of columns with more levels than can have effects of their own."""
        told = []
        for term in self._model.terms:
            own = term.entries
            if isinstance(own, Categories) and own.n_own < len(own.entry_of):
                name = self._schema.names[term.features[0]]
                told.append(
                    f"of the {len(own.entry_of)} levels of column {name!r} the {own.n_own} most "
                    "frequent"
                )
        if told:
            warn_user(
                UserWarning(
                    f"{', and '.join(told)} have an effect of their own; all others share that of a new "
                    "level. Very many levels are for one column, and for two classes at most: combine "
                    "levels, or leave the column out if it only numbers the rows."
                )
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Not `string`, though text is welcome: scikit-learn's check of it asks that a dictionary
        # among numbers is taken without an error.
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    @property
    def _labels(self) -> np.ndarray | None:
        """The classes of a classifier."""
        return None

    def _columns(self, X: Any) -> Array:
        """Rows to score, as an array in the order of the fit."""
        check_is_fitted(self)
        require_in_memory(X)
        return read_columns(self, X, fitting=False)[0]

    def _link_mean(self, X: Any) -> Array:
        columns = self._columns(X)
        return scoring.link_mean(self._model, columns)

    def _link_moments(self, X: Any) -> tuple[Array, Array]:
        columns = self._columns(X)
        return scoring.link_moments(self._model, columns)

    @in_chunks(contributions)
    def predict_terms(self, X: Any, return_std: bool = False) -> Any:
        """What each term adds to the prediction of each row.

        Together with ``intercept_`` the terms sum to the prediction on the link scale, on which
        terms add up: the target's own for a regressor, its logarithm for counts, log-odds for a
        classifier of two classes. Of more than two each has a score, its log-probability up to what
        all have in common: contributions then sum to zero over the classes.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            Of a Dask frame the results are a Dask frame with the terms' names.
        return_std : bool, default=False
            Whether to return the contributions' posterior standard deviations as well.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_terms)
            In the order of ``terms_``; zero for terms that are switched off. Of more than two
            classes, (n_samples, n_terms, n_classes).
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
        """What each term adds to the prediction of each row, as :meth:`predict_terms`.

        For pipelines, and for frames: after ``set_output(transform="pandas")`` or ``"polars"``
        contributions come with the terms' names.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            Of a Dask frame the results are one with these names, unless ``set_output`` asks for another,
            which then holds all rows in memory.

        Returns
        -------
        contributions : ndarray or frame of shape (n_samples, n_terms)
            Of more than two classes, (n_samples, n_terms * n_classes): those of the first term to
            every class, then those of the second.

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
        """Names of the columns of :meth:`transform`: those of the terms, and of the classes if many.

        Parameters
        ----------
        input_features : sequence of str, default=None
            Names of the columns, if any: those of the fit.

        Returns
        -------
        names : ndarray of shape (n_terms,)
            Of more than two classes "term [class]", (n_terms * n_classes,).

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
        if self._labels is not None and len(self._labels) > 2:
            labels = self._labels.tolist()
            names = [f"{name} [{label}]" for name in names for label in labels]
        return np.array(distinct(names), dtype=object)

    def _require_known(self, names: list[Any]) -> None:
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to the number of columns, "
                f"{self.n_features_in_}, and has {len(names)}"
            )
        known = getattr(self, "feature_names_in_", None)
        if known is not None and list(known) != names:
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
        prefix: str = "",
        overwrite: bool = False,
    ) -> int:
        """Predict rows in files, or of a Dask frame, into files; memory is for a few chunks.

        Results are there when they are whole: whatever happens on the way, nothing half is left.

        Parameters
        ----------
        X : str, path, sequence of these, or Dask frame
            Files as :meth:`fit` takes them. Columns that the model does not need are left alone.
        output : str or path
            A folder, in which there is a Parquet file of the same name for every file, or one for every
            partition; or one file for all, if the name ends in ".parquet" or ".csv". Workers of a Dask
            cluster must see the folder.
        interval : float, default=None
            Add "lower" and "upper", the ends of intervals of this coverage.
        std : bool, default=False
            Add "std", the standard deviation of a new observation.
        terms : bool, default=False
            Add the intercept and what each term contributes.
        proba : bool, default=False
            Add the probability of each class.
        keep : sequence of str, default=()
            Columns of the table that stand beside the predictions; those of CSV files that the model does
            not need stay the text that they are.
        exposure : str or float, default=None
            For counts, the name of the column that says what they will be counted over, or one number.
        prefix : str, default=""
            What stands before the names of all that is predicted.
        overwrite : bool, default=False
            Whether a file, or a folder of Parquet files, that is there is replaced.

        Returns
        -------
        n_rows : int
            How many rows were predicted.

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
        wanted = Wanted(interval, std, terms, proba, prefix)
        return predict_files(
            self, X, output, wanted, keep=keep, exposure=exposure, overwrite=overwrite
        )

    def sample(self, X: Any, n_samples: int = 100, random_state: Any = None) -> Array:
        """Posterior draws of the mean: each draw is one function, evaluated at all rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        n_samples : int, default=100
            How many draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        draws : ndarray of shape (n_samples, n_rows)
            Draws of the mean of y, without noise; for a classifier, of probabilities.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from lanam import LANAMRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LANAMRegressor(random_state=0).fit(X[:, [2, 3]], y)
        >>> model.sample(X[:5, [2, 3]], n_samples=10, random_state=0).shape
        (10, 5)
        """
        columns = self._columns(X)
        return scoring.sample_links(self._model, columns, n_samples, generator(random_state))

    def summary(self) -> Summary:
        """What the fit found, as a table with one row a term.

        Returns
        -------
        summary : Summary
            Print it, or take it as data with ``to_frame()`` or ``to_dict()``.

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
            classes=self._labels,
            edits=self.edits_,
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
    ) -> Self:
        """A new model with a term that was changed by hand; this one stays as it is.

        What is known better than the data says it, or must not count, can be put in, and the record
        goes along: in ``edits_``, in the summary, in reports and in saved files, and what was edited is
        marked in explanations and drawings. Bands, draws and all else follow exactly from the posterior
        of the fit: where a term was set to zero its band has no width, by decision and not by knowledge.
        The intercept stays, so predictions change nowhere else. ``evidence`` and
        ``effective_parameters`` are still those of the fit; a calibration is forgotten, because it was
        of another model. The noise is that of the fit as well: intervals of new observations do not know
        of edits until ``calibrate`` was called with held-out rows.

        Parameters
        ----------
        name : str or pair of str
            A column's, for all that it does alone; or a term's, from ``terms_``: "a x b" is a pair, "a
            (levels)" the effects of single values.
        action : {"zero", "clamp", "smooth"}
            "zero": the term adds nothing there. "clamp": below ``low`` and above ``high`` it stays as
            it is at these. "smooth": between ``low`` and ``high`` it is a straight line, or smoother, see
            ``width``; levels of a categorical column get their mean effect.
        low, high : number, default=None
            The range in the column's unit, both ends included; None or infinity is no end. Of a pair
            mappings, such as ``low={"age": 60}``: what is in all of the ranges is edited.
        levels : level or sequence of levels, default=None
            Those to edit of a categorical column; of a pair, a mapping.
        missing : bool, default=None
            For "zero", whether missing values are edited, with a range or alone. By default they are if
            nothing else is said and the whole term is. Of a pair, a mapping.
        width : float, default=None
            For "smooth", in the column's unit: the function becomes its mean over so much on either
            side, over less towards the ends of the range. By default it becomes a straight line.
        reason : str, default=None
            Why, for the record.

        Returns
        -------
        model : estimator
            Of the same class, fitted.

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
            self._model, self._schema, name, action, where, width=width, reason=reason
        )
        result = copy.copy(self)
        result._set_fitted(model, self._schema, self._n_rows, self.interaction_scores_.score)
        result.edits_ = (*self.edits_, record)
        if hasattr(self, "metadata_"):  # what is noted of one is not noted of the other
            result.metadata_ = copy.deepcopy(self.metadata_)
        return result

    def explain_global(self) -> GlobalExplanation:
        """The functions the model consists of, with uncertainty, data density and importance.

        Returns
        -------
        explanation : GlobalExplanation
            Plain data; :func:`lanam.plot.plot_shapes` draws it.

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
        return explain.explain_global(self._model, self._schema, self._labels)

    def explain_local(self, X: Any) -> LocalExplanation:
        """The predictions of some rows, taken apart.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)

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
        columns = self._columns(X)
        return explain.explain_local(self._model, self._schema, columns, self._labels)

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
        sample_weight: Any = None,
    ) -> Path:
        """Write a report: one HTML file to hand to others, which opens from disk without a network.

        It shows the data and the fit, what was switched off and why, shapes, pairs and importances,
        calibration on the rows that are given, and a what-if page: move a slider or pick a row, and the
        prediction, its band and every contribution follow.

        Parameters
        ----------
        path : str or path
            The file to write, such as "report.html". A file that is there is replaced.
        X : frame or array-like of shape (n_samples, n_features), default=None
            Rows that can be picked on the what-if page. Best are rows that the model has not seen.
        y : array-like of shape (n_samples,), default=None
            Their targets, for the section on calibration.
        title : str, default=None
            What stands on top.
        n_rows : int, default=200
            How many of the rows are put into the file, evenly spread over them; 0 for none, if the data
            must not leave the house.
        coverage : float, default=0.95
            Of the bands on the what-if page, before the reader chooses another.
        exposure : float or array-like of shape (n_samples,), default=None
            For counts, what they were counted over.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts for the calibration.

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
        from lanam import report  # only here: its parts are an extra
        from lanam.metrics import coverage_report

        if X is None and (y is not None or exposure is not None or sample_weight is not None):
            raise ValueError("y, exposure and sample_weight belong to rows: pass X as well")
        rows = checked = noise = None
        if X is not None:
            columns = self._columns(X)
            family = self.family_
            exposed = self._read_exposure(family, exposure, len(columns))
            target = None if y is None else self._read_target(family, y, len(columns))
            rows = report.pick_rows(
                columns, n_rows, target, exposed if family.takes_exposure else None
            )
            if self._model.noise is not None:
                noise = np.sqrt(scoring.noise_variances(self._model, columns))
        if y is not None:
            with warnings.catch_warnings():  # what is new in these rows was said above
                warnings.simplefilter("ignore", NewValuesWarning)
                checked = coverage_report(
                    self, X, y, exposure=exposure, sample_weight=sample_weight
                )
        n_classes = np.size(self._model.intercept)
        material = report.gather(
            self,
            portable=explain.explain_portable(self._model, self._schema, self._labels),
            schema=self._schema,
            normals=generator(0).standard_normal((1000, n_classes)) if n_classes > 1 else None,
            title=title,
            coverage=explain.require_coverage(coverage),
            report=checked,
            rows=rows,
            noise=noise,
        )
        return report.write_report(path, material)

    def save(self, path: Any, *, overwrite: bool = True) -> Path:
        """Write the fitted model into a file, from which :func:`lanam.load` makes it again.

        The file holds plain values and arrays, no pickle and no code, in a documented format: it can be
        read in years, by newer versions too. It has no rows of the training data, but ranges, names
        and levels of its columns. A file that is there stays whole until the new one is.

        Parameters
        ----------
        path : str or path
            The file to write, such as "model.lanam".
        overwrite : bool, default=True
            Whether a file that is there is replaced; if not, it is an error.

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
        return write_atomically(target, storage.to_bytes(storage.of_estimator(self)), "the model")

    def export(self, path: Any, to: str | None = None, **options: Any) -> Any:
        """Write the model for where there is no Python: lookup tables, a rating table, SQL or ONNX.

        Each is complete: rows are scored with it as :meth:`predict` does, also where values are missing,
        new, or beyond the range of the training data.

        Parameters
        ----------
        path : str, path or None
            The file to write; one that is there is replaced. None returns the content instead.
        to : {"json", "csv", "sql", "onnx"}, default=None
            The format; by default what the file's name ends in. "json": all lookup tables. "csv": a
            rating table that people can read. "sql": a query with mean and variance. "onnx": a
            graph, which takes the package onnx.
        **options
            ``variance=False`` leaves the variance out, of all but "csv". Of "sql": ``table``,
            ``dialect`` ("sqlite", "duckdb" or "standard"), ``columns`` (a dictionary of what columns are
            called there) and ``keep`` (columns that stand beside the results). Of "onnx": ``columns``,
            and ``missing``, the text that stands for a missing one. Of "json": ``indent``.

        Returns
        -------
        path : Path
            The file; or with ``path=None`` its content, text or bytes.

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
        from lanam import export  # only here: few need it

        if path is None and to is None:
            raise ValueError("path=None returns the content, and to= must say in which format")
        kind = export.require_format(to) if path is None else export.format_of(path, to)
        portable = explain.explain_portable(self._model, self._schema, self._labels)
        content = partial(
            export.render,
            kind,
            portable,
            self._schema,
            options,
            calibration=getattr(self, "calibration_", None),
            edits=self.edits_,
        )
        return content() if path is None else export.write_export(path, content)


def require_unedited(edits: tuple[Edit, ...]) -> None:
    """Refuse to train a model further that was edited.

    Raises
    ------
    ValueError
        It says in which order to do both.
    """
    if edits:
        plural = "s" if len(edits) > 1 else ""
        raise ValueError(
            f"this model has {len(edits)} edit{plural}, and adding pairs trains all terms again, which "
            "would undo that: add pairs to the model before it was edited, then edit"
        )


def require_totals(options: Options) -> None:
    """Refuse a solver that asks more of the rows than totals over them.

    Raises
    ------
    ValueError
    """
    if SOLVERS[options.solver].in_memory:
        raise ValueError(
            f"solver={options.solver!r}, the paper's, draws batches of rows in memory: files, Dask frames "
            "and checkpoints are for solver='gauss-newton', the default"
        )


def refuse_exposure(family: Family, exposure: Any) -> None:
    """Refuse an exposure for a response that is not counted over one."""
    if exposure is not None and not family.takes_exposure:
        raise InputError(
            "{argument} is what counts are counted over, and {family} is not for counts",
            "{set likelihood='poisson'}, or leave {argument} out",
            argument="exposure",
            family=Setting("likelihood", family.name),
        )


def require_applicable(options: Options, schema: Schema, encoding: Encoding) -> None:
    """Refuse the paper's solver and curvature for data that the paper does not treat.

    Raises
    ------
    ValueError
        It says what of the data it is, and what to do.
    """
    n_classes = len(encoding.classes)
    several = [f"y has {n_classes} classes"] if n_classes > 2 else []
    if SOLVERS[options.solver].networks_only and (found := several + _not_numbers(schema)):
        raise ValueError(
            f"solver={options.solver!r}, the paper's, trains networks of numeric columns without gaps, for "
            f"numbers, counts or two classes: {_listed(found)}. Use solver='gauss-newton', the default, "
            "for these."
        )
    if CURVATURES[options.curvature].factored and several:
        raise ValueError(
            f"curvature={options.curvature!r}, the paper's, has no form for more than two classes: "
            f"{several[0]}. Use curvature='exact', the default."
        )


def _not_numbers(schema: Schema) -> list[str]:
    return [
        f"column {column.name!r} "
        + ("is categorical" if column.kind == CATEGORICAL else "has missing values")
        for column in schema.columns
        if column.kind == CATEGORICAL or column.missing
    ]


def _listed(found: list[str]) -> str:
    more = [f"and so on, {len(found)} in all"] if len(found) > _MAX_LISTED else []
    return ", ".join(found[:_MAX_LISTED] + more)


def generator(random_state: Any) -> np.random.Generator:
    """A numpy generator from what scikit-learn calls a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def distinct(names: list[str]) -> list[str]:
    """The names, with a number behind those that occurred before.

    Examples
    --------
    >>> distinct(["a", "b", "a x b", "a x b"])  # the last one a column of that name, perhaps
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
    """Mean over rows, weighted if there are weights."""
    return float(np.average(values, weights=read_weights(sample_weight, len(values))))
