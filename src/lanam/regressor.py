"""LANAMRegressor: a scikit-learn regressor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from lanam.additive import AdditiveModel, weighted_mean
from lanam.arguments import is_papers
from lanam.choosing import better_than_gaussian, compare, suiting
from lanam.chunked import averaged, in_chunks, summed
from lanam.conformal import Calibration, calibrated_by
from lanam.core.arrays import Array
from lanam.core.model import scoring
from lanam.core.model.distributions import Predictive
from lanam.core.model.fitted import FittedModel
from lanam.data import Schema
from lanam.errors import InputError
from lanam.explain import GlobalExplanation, describe_terms, explain_global, require_coverage
from lanam.families import ANY, AUTO, FAMILIES, Family, find_family, find_numeric_family
from lanam.families.base import link_interval
from lanam.family_scores import FamilyScores
from lanam.inputs import read_groups, read_response, read_target, read_weights
from lanam.parameters import RegressorParameters
from lanam.sessions import Session
from lanam.training import FitInputs, TrainingData, TrainingRows


def _squares(model: Any, X: Any, y: Array, sample_weight: Array, **given: Any) -> Array:
    """Sums over rows: of weights, of y and its squares, and of squared residuals."""
    model._require_given(**given)
    mean = model.predict(X, **given)
    # Centred, because squares of large numbers would cancel.
    centred = y - float(model.family_.link.inverse(model.intercept_))
    values = np.stack([np.ones(len(y)), centred, centred**2, (y - mean) ** 2])
    return np.asarray(values @ sample_weight)


def _r_squared(model: Any, sums: Array) -> float:
    weight, total, squares, residual = sums
    spread = squares - total**2 / weight
    if spread > 1e-12 * squares:  # more than rounding errors of a constant
        return float(1.0 - residual / spread)
    return 1.0 if residual == 0.0 else 0.0  # as in scikit-learn


class LANAMRegressor(RegressorMixin, RegressorParameters, AdditiveModel):  # type: ignore[misc]
    """Laplace-approximated neural additive model for regression.

    The mean of y, for counts its logarithm, is an intercept plus a sum of shape functions, one small
    neural network per column, plus interactions of two and three columns. By default the networks are
    linearised at their initial weights, and the posterior is computed exactly; :meth:`paper` trains them as
    in the paper. Smoothness, feature selection and residual variance follow from maximising the marginal
    likelihood (the evidence), without cross-validation.

    Parameters
    ----------
    interactions : "auto", int or sequence of pairs and triples of columns, default="auto"
        Interactions: as many as the evidence supports, the best k pairs, or these, by name or index; 0 for
        none. Interactions that the data do not support are dropped.
    interaction_score : str, default="evidence"
        How candidate interactions are ranked: "evidence" (log evidence gain of a joint term), or the
        paper's "mutual_information" or "evidence_gain", of the last layer or, with "_full", of all layers.
    max_order : {1, 2, 3}, default=3
        The largest number of columns of an interaction. Triples are searched for after the pairs, and kept
        if left-out observations are surely predicted better.
    max_pairs : int, default=50
        The most pairs that ``interactions="auto"`` adds, and the most triples.
    time_budget : float, default=None
        Seconds of training after which the search for interactions ends, with those found
        until then; main effects and noise are always fitted. ``interaction_scores_`` names the pairs that
        were not tried. Results then depend on the speed of the machine.
    level_effects : {"auto", False}, default="auto"
        "auto" adds effects of single values to a smooth function where the evidence supports them; False
        keeps smooth functions only.
    likelihood : str, default="gaussian"
        Conditional distribution of y.

        - Real numbers: "gaussian", or "student" for heavy tails (Student's t, whose degrees of freedom are
          learned).
        - Positive numbers: "lognormal" (the Gaussian model of ``log y``), or "gamma" (a standard deviation
          proportional to the mean).
        - Counts of events: "poisson" (a variance of the mean times a learned dispersion of at least 1), or
          "negative_binomial" (the mean plus a learned multiple of its square), with an ``exposure`` in
          :meth:`fit` if they were counted over different times or populations.

        - Amounts that can be zero, per ``exposure``: "tweedie" (a Poisson number of Gamma amounts).
        - Successes among ``trials``: "binomial".
        - "auto": those that suit y are fitted without interactions and compared by log evidence
          (``family_scores_``).

        "gaussian" and "student" add contributions to y, "binomial" to the log-odds, all others to the
        logarithm of the mean ("lognormal": of the median).
    tweedie_power : "auto" or float, default="auto"
        For "tweedie", the power of the mean that the variance is proportional to, between 1 and 2: learned,
        or this number.
    noise : {"auto", "constant"}, default="auto"
        "auto" allows heteroscedastic Gaussian noise (its log variance a sum of functions of single columns)
        and a non-Gaussian residual distribution, each if it improves the cross-validated log-likelihood.
        "constant" is homoscedastic Gaussian noise as in the paper, and implied by ``solver="adam"`` and
        ``curvature="kron"``.
    hidden_sizes : "auto" or sequence of int, default="auto"
        Widths of the hidden layers of each column's network, which starts at random weights. "auto" is one
        hidden layer of infinite width, without random numbers; with ``solver="adam"`` or
        ``curvature="kron"`` it is (64,).
    pair_hidden_sizes : "auto" or sequence of int, default="auto"
        The same for an interaction's network; (64, 64) in the paper.
    activation : {"gelu", "relu", "tanh", "silu"}, default="gelu"
        Activation of the hidden layers.
    init_scales : "auto" or sequence of float, default="auto"
        Scales of the first layer's initial weights; larger ones allow higher frequencies. "auto" is
        (1, 4, 16), and 1 with ``solver="adam"`` or ``curvature="kron"``.
    prior_groups : {"layer", "network"}, default="layer"
        Whether each layer or each network has a prior precision of its own.
    posterior : {"joint", "block"}, default="joint"
        Joint posterior of all terms, or block-diagonal (one block per term) as in the paper.
    curvature : {"exact", "kron"}, default="exact"
        Gauss-Newton curvature, exact or Kronecker-factored as in the paper ("kron" requires
        ``posterior="block"``).
    solver : {"gauss-newton", "adam"}, default="gauss-newton"
        How networks are trained; "adam" is the paper's, without level effects and for rows in memory. With
        more than two classes it needs ``curvature="kron"``.
    evidence_update : {"mackay", "gradient"}, default="mackay"
        How prior precisions and residual variance maximise the evidence: MacKay's fixed-point updates, or
        gradient steps as in the paper.
    pure : bool, default=True
        Whether an interaction is what its columns do together, without their main effects. False, as in the
        paper, lets it say main effects too: curves of single columns then hold only a part of these.
    learning_rates : sequence of float, default=(0.1, 0.01, 0.001)
        With ``solver="adam"``: networks are trained with each, and the highest evidence is kept.
    schedule : {"constant", "cosine"}, default="constant"
        With ``solver="adam"``: the learning rate within a round, constant or falling to zero as a cosine.
        The evidence is then that of networks without the noise of batches and large steps.
    epochs, evidence_steps : int, default=100 and 30
        With ``solver="adam"``: the length of a round, passes over the rows and then steps of precisions and
        noise on the evidence. ``max_iter`` is the maximum number of rounds.
    batch_size : int, default=512
        With ``solver="adam"``: the maximum number of rows of a step.
    patience : int, default=4
        With ``solver="adam"``: rounds without a rise of the evidence, by ``tol`` and 0.0005 for each row,
        after which training ends. The best one is kept.
    categorical_features : "auto" or sequence of columns, default="auto"
        Categorical columns, by name or index, in addition to string, boolean and categorical dtypes, which
        always are. Integers are numeric unless they are listed here.
    monotonic_cst : dict of column to {1, -1, 0}, or array-like of these, default=None
        Columns whose effect increases (1) or decreases (-1) with their values, or with the order of their
        categories (``ordered``): so does every prediction, whatever the other columns are, and every
        posterior draw. Constrained columns have no per-value effects. Not for more than two classes.
    shape_cst : dict of column to {"convex", "concave"}, default=None
        Numeric columns whose effect is convex or concave; they have no interactions.
    cyclic : dict of column to float, default=None
        Columns of cyclic quantities and their periods, for example ``{"hour": 24}``: values and slopes meet
        where the period ends, also in interactions, and values of other periods are the same. Cyclic and
        linear columns have no per-value effects.
    linear : sequence of columns, default=None
        Columns whose main effects are straight lines, also beyond the data. Their interactions may bend;
        leave them out with ``exclude_pairs``.
    ordered : dict of column to sequence of categories, default=None
        Categorical columns and the order of their categories, for example
        ``{"stage": ["I", "II", "III"]}``: neighbours are shrunk to each other. Categories without data are
        interpolated; others than these are errors. In interactions categories are as without an order.
    keep : sequence of columns, default=None
        Columns whose main effects are never dropped. One without support is shrunk to near zero and has a
        band.
    exclude_pairs : sequence of pairs of columns, default=None
        Interactions that are never tried.
    by : dict of column to column, default=None
        Numeric columns whose curves differ between groups, and the column that has the groups, for example
        ``{"dose": "treatment"}``. The curve of a group is the common one (the column's main effect), the
        group's effect (that of the other column) and a deviation; deviations share their precisions, so
        they are shrunk together, and an unseen group has the common curve with a wider band. With a numeric
        second column the deviation is a curve times its value (a varying coefficient). Deviations that the
        data do not support are dropped.
    random_slopes : sequence of pairs of columns, default=None
        The same with straight lines, for example ``[("time", "patient")]``: a line in time for each
        patient, beside the patients' effects (random intercepts).
    spatial : sequence of pairs of columns, default=None
        Coordinates, for example ``[("longitude", "latitude")]``: two numeric columns with one surface and
        no curves. It is alike in all directions, so both must have the same unit; its roughness is chosen
        by evidence, and it is as fine as the rows allow. Either may still interact with other columns.
    max_knots : int, default=256
        Number of grid points at which the function of a column is tabulated if it has more distinct values.
    max_iter : int, default=100
        Maximum number of iterations of each stage (smooth terms, then level effects) of each restart.
    tol : float, default=0.05
        Stop when the log evidence rises by less than this.
    n_restarts : int, default=1
        Number of random initialisations of finite networks (``hidden_sizes``); the fit with the highest
        evidence is kept. The default fit has no random numbers and needs none.
    memory : int or str, default="2GB"
        Memory for sufficient statistics, in bytes or as a string: where cross-tables of the columns fit,
        iterations need no further pass over the rows. The plan is in ``plan_``, and is shown before the
        fit with ``verbose=1``.
    n_jobs : int, default=None
        Number of threads for passes over many rows; -1 for all cores. None is ``OMP_NUM_THREADS`` if it is
        set, otherwise all cores.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights of finite networks (``hidden_sizes``, or ``solver="adam"``); the
        default fit has no random numbers.
    verbose : int, default=0
        1 shows progress on standard error.

    Attributes
    ----------
    terms_ : tuple of Term
        All terms, active or dropped: name, kind, columns, status, importance, evidence.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Importance of each column, as scikit-learn has it: they sum to one, or are all zero without an
        active term. The importance of a term is its mean absolute contribution (``terms_``), and that of
        an interaction is split evenly between its columns.
    intercept_ : float
        Mean prediction over the training data; for counts, mean log rate.
    noise_std_ : float
        Residual standard deviation; of heteroscedastic noise the average over rows (see
        :meth:`predict_noise`). NaN for counts, whose variance grows with their mean.
    noise_terms_ : tuple of Term
        Terms of the log residual variance, active or dropped; empty if the noise is homoscedastic.
    noise_shape_ : NoiseShape or None
        A residual distribution that is not Gaussian: a mixture of Gaussians with ``weights``, ``means`` and
        ``stds`` in units of the residual standard deviation, its ``skewness`` and ``excess_kurtosis``. None
        if it is Gaussian, and for counts.
    missing_noise_std_ : ndarray of shape (n_features,)
        Standard deviation of the additional residual of rows in which a column is missing. ``noise_std_``
        is that of complete rows.
    dispersion_ : float
        For "poisson", the ratio of the variance of counts to their mean: 1 for a Poisson distribution, more
        with overdispersion. For "negative_binomial" and "gamma" the coefficient of the squared mean in the
        variance, for "tweedie" that of the mean's power. NaN for others.
    family_parameters_ : dict
        The likelihood's own parameters that were learned, by name: "shape" ("gamma"), "dispersion"
        ("negative_binomial"), "scale" and "degrees_of_freedom" ("student"), "dispersion" and "power"
        ("tweedie"); empty for others.
    log_evidence_ : float
        Log evidence (log marginal likelihood) of the training data.
    interaction_scores_ : InteractionScores
        All pairs of columns and the likely triples, best first: score, and whether or why not the
        interaction is in the model.
    calibration_ : Calibration
        The result of :meth:`calibrate`; discarded by the next fit.
    edits_ : tuple of dict
        Records of :meth:`edit_term`, in order; empty after a fit.
    family_ : Family
        The response family: link, predictive distribution, and encoding of the target.
    family_scores_ : FamilyScores
        With ``likelihood="auto"``, the families that suit y with their log evidences, best first.
    plan_ : FitPlan
        How the fit processed its rows: sizes of sufficient statistics, number of passes.
    provenance_ : Provenance or None
        Fingerprint of the training data, date of the fit and version; None for models of older files.
    group_std_ : dict
        Standard deviations of groups' curves around the common one (``by``, ``random_slopes``) by the
        term's name: those of the prior, on the link scale, averaged over the data; of lines, of their
        slopes per unit of the column.
    n_iter_, converged_, history_
        Number of iterations, whether the evidence converged, and one record per iteration. The last one
        also has ``deviance_explained``: the fraction of the intercept-only model's deviance that the model
        explains on the rows it was fitted to (of many, on a sample), which for Gaussian noise is R2; and
        ``parameters_per_row``, ``cooks_distance`` (the largest) with its ``influential_row``,
        ``separated`` (classes) and ``close_calls``, by which fits that cannot be trusted are announced, and
        ``interaction_thresholds``, the lowest and highest that tried interactions had to reach.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the data had names.

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
        if self.likelihood == AUTO:
            return ANY
        return find_numeric_family(self.likelihood).configured(self.get_params(deep=False))

    def _choose_family(self, data: TrainingData, inputs: FitInputs, session: Session) -> Family:
        self.__dict__.pop("family_scores_", None)
        if self.likelihood != AUTO:
            return self._asked_family
        given = {"exposed": inputs.exposure is not None, "trials": inputs.trials is not None}
        arguments = self.get_params(deep=False)
        found = [family.configured(arguments) for family in suiting(data.support(), **given)]
        options, seed, exposed = session.options, session.seed, given["exposed"]
        scores = compare(found, data, options, seed, exposed=exposed) if len(found) > 1 else []
        self.family_scores_ = FamilyScores.of(scores or [(found[0].name, float("nan"))])
        return next(each for each in found if each.name == self.family_scores_[0]["family"])

    def _with_remark(self, model: FittedModel, rows: TrainingRows, session: Session) -> FittedModel:
        if self.likelihood == AUTO and len(self.family_scores_) == 1:  # known only now
            evidence = rows.encoding.to_user(model).log_evidence
            self.family_scores_ = FamilyScores.of([(model.likelihood, evidence)])
        if self.likelihood == AUTO or not model.history or not session.options.diagnostics:
            return model
        better = better_than_gaussian(model, rows, session.options, session.seed)
        if better is None:
            return model
        *before, last = model.history
        name, nats = better
        history = *before, {**last, "better_family": name, "better_by": nats}
        return replace(model, history=history)

    def _set_fitted(self, model: FittedModel, schema: Schema, n_rows: int, score: str) -> None:
        family = find_family(model.likelihood)
        noise, dispersion = family.noise_std(model), family.dispersion(model)
        self.noise_std_ = float("nan") if noise is None else noise
        self.dispersion_ = float("nan") if dispersion is None else dispersion
        missing = model.missing_variance
        self.missing_noise_std_ = np.sqrt(
            np.zeros(schema.n_columns) if missing is None else missing
        )
        self.noise_shape_ = model.shape
        self.noise_terms_ = () if model.noise is None else describe_terms(model.noise, schema)
        super()._set_fitted(model, schema, n_rows, score)

    def _predictive(
        self, X: Any, exposure: Any = None, trials: Any = None, offset: Any = None
    ) -> Predictive:
        """Predictive distributions of new observations."""
        return self.family_.predictive(self._model, self._rows(X, exposure, trials, offset))

    @in_chunks
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
    ) -> Any:
        """Predictive mean of y, and the standard deviation of a new observation.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            Files as in :meth:`fit` are read chunk by chunk. For a Dask frame the result is a lazy Dask
            series "prediction", or a frame with ``return_std=True``. Columns that the model does not use
            are ignored.
        return_std : bool, default=False
            Whether to return the standard deviation as well, including the noise. Outside the range of the
            training data functions run out flat (straight ones go on for half of the range), and the
            standard deviation grows with the distance; ``explain_local(X).outside`` tells such rows.
        exposure : float or array-like of shape (n_samples,), default=None
            For counts, their exposure; by default one, for which the mean is the rate. For files and Dask
            frames the name of a column, or one number.
        trials : int or array-like of shape (n_samples,), default=None
            For successes (``likelihood="binomial"``), the number of trials; by default one, for which the
            mean is the probability of a success. For files and Dask frames as for ``exposure``.
        offset : float or array-like of shape (n_samples,), default=None
            Known part of the prediction on the link scale, which is added to the sum of terms; zero by
            default. For files and Dask frames as for ``exposure``.

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
        family, rows = self.family_, self._rows(X, exposure, trials, offset)
        if not return_std:
            return family.predict(self._model, rows)
        predictive = family.predictive(self._model, rows)
        return predictive.mean, predictive.std

    def predict_noise(self, X: Any) -> Array:
        """Residual standard deviation of each row, without the uncertainty of the mean.

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
        """Shape functions of heteroscedastic noise.

        They sum to the log residual variance of complete rows: a contribution of 0.69 doubles the variance
        and multiplies the standard deviation by 1.4.

        Returns
        -------
        explanation : GlobalExplanation
            Plain data, to plot as that of the mean (:meth:`explain_global`).

        Raises
        ------
        ValueError
            If the noise is homoscedastic (``noise_terms_`` is empty).

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
            raise InputError(f"the noise of this model is homoscedastic: {self._why_constant()}")
        # As predicted: constant outside the range of the data, and in the unit of y.
        terms = tuple(
            replace(term, mean=scoring.held_table(term)) if term.active else term
            for term in noise.terms
        )
        intercept = noise.intercept + float(np.log(self._model.noise_variance))
        return explain_global(replace(noise, terms=terms, intercept=intercept), self._schema)

    def _require_noise(self) -> None:
        family = self.family_
        if not family.has_noise:
            what = (
                "counts follows from their rate" if family.discrete else "y follows from its mean"
            )
            remedy = "see {dispersion_ and predict(X, return_std=True)}"
            raise InputError(f"the noise of {what}", remedy)

    def _why_constant(self) -> str:
        if not self.family_.likelihood().heteroscedastic:
            return f"{{likelihood={self.family_.name!r}}} knows no other"
        if self.noise == "constant":
            return "it was fitted with {noise='constant'}"
        if is_papers(self.get_params(deep=False)):
            return "solver='adam' and curvature='kron', the paper's, support no other"
        return "heteroscedastic noise did not improve the cross-validated log-likelihood"

    @in_chunks
    def predict_quantile(
        self,
        X: Any,
        quantiles: Any = (0.05, 0.5, 0.95),
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
    ) -> Array:
        """Quantiles of the predictive distribution of new observations.

        :meth:`calibrate` does not change them.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        quantiles : float or sequence of float, default=(0.05, 0.5, 0.95)
            Probabilities between 0 and 1.
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`predict`.

        Returns
        -------
        values : ndarray of shape (n_samples, n_quantiles)
            For counts, the smallest that a new one does not exceed with at least that probability.

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
        rows = self._predictive(X, exposure, trials, offset)
        return np.stack([rows.ppf(p) for p in probabilities], axis=1)

    def predict_cdf(
        self, X: Any, y: Any, exposure: Any = None, *, trials: Any = None, offset: Any = None
    ) -> Array:
        """Predictive distribution function: the probability that a new observation is at most y.

        At the observations themselves these are PIT values, uniform between 0 and 1 if the model is
        calibrated. :meth:`calibrate` does not change them.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        y : float or array-like of shape (n_samples,)
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`predict`; required if the model was fitted with one.

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
        self._require_given(exposure, trials, offset)
        rows = self._predictive(X, exposure, trials, offset)
        return rows.cdf(self._read_values(y, len(rows.mean)))

    def _read_values(self, y: Any, n_rows: int) -> Array:
        """Validated values of y: one for each row, or one for all."""
        values = np.full(n_rows, y) if np.ndim(y) == 0 else y
        return read_response(read_target(self, values, n_rows), type(self).__name__)

    def calibrate(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
        groups: Any = None,
    ) -> Self:
        """Calibrate :meth:`predict_interval` with held-out rows (split conformal prediction).

        Intervals of exchangeable new rows then have at least the requested coverage, marginally over rows
        and calibration sets, even if the model is misspecified. They are intervals of the predictive
        distribution at an adjusted coverage, so they stay wider where the model is less certain; coverage
        conditional on the inputs is not guaranteed.

        **The rows must be held out**: residuals of training rows are too small. A few hundred are enough; a
        coverage of 0.95 needs at least 19, one of 0.99 at least 99. The next fit discards the calibration.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Held-out rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Frequency weights.
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`fit`; required if the model was fitted with one.
        groups : array-like of shape (n_samples,), default=None
            The group of each row (patient, hospital, site), of which new rows are of other ones: the
            guarantee is then that of a row of a new group, and as many groups are needed as rows without.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from lanam import LANAMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(900, 1))
        >>> y = X[:, 0] + rng.standard_t(2, size=900)  # heavy tails, and a Gaussian model
        >>> model = LANAMRegressor(noise="constant", random_state=0).fit(X[:300], y[:300])
        >>> model = model.calibrate(X[300:600], y[300:600])
        >>> coverages = []
        >>> for calibrated in (False, True):
        ...     low, high = model.predict_interval(X[600:], coverage=0.8, calibrated=calibrated).T
        ...     coverages.append(round(float(((low < y[600:]) & (y[600:] < high)).mean()), 2))
        >>> coverages
        [0.96, 0.8]
        """
        self._require_given(exposure, trials, offset)
        rows = self._predictive(X, exposure, trials, offset)
        scores = rows.score(self._read_target(self.family_, y, len(rows.mean)))
        weight = read_weights(sample_weight, len(scores))
        group = None if groups is None else read_groups(groups, len(scores))
        self.calibration_ = calibrated_by(scores, weight, group)
        return self

    @in_chunks
    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.95,
        kind: str = "response",
        exposure: Any = None,
        calibrated: bool = True,
        *,
        trials: Any = None,
        offset: Any = None,
    ) -> Array:
        """Central prediction intervals of new observations, or credible intervals of the mean.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
            As in :meth:`predict`; for a Dask frame the columns are "lower" and "upper".
        coverage : float, default=0.95
            Probability of the interval.
        kind : {"response", "mean"}, default="response"
            Prediction interval of a new observation, including noise, or credible interval of the mean.
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`predict`.
        calibrated : bool, default=True
            After :meth:`calibrate`, whether prediction intervals use the calibration; False gives those of
            the predictive distribution. Credible intervals of the mean are never calibrated.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2)
            Lower and upper ends. For counts both belong to the interval, and its probability is at least
            the coverage, because the distribution is discrete.

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
                return self._predictive(X, exposure, trials, offset).interval(threshold)
            ends: Array = self.predict_quantile(
                X, (tail, 1.0 - tail), exposure, trials=trials, offset=offset
            )
            return ends
        if kind != "mean":
            raise ValueError(f"kind={kind!r} is not known: choose 'response' or 'mean'")
        rows = self._rows(X, exposure, trials, offset)
        # Quantiles are equivariant under the monotone link.
        ends = link_interval(self._model, rows, ndtri([tail, 1.0 - tail]))
        return self.family_.expected(self._model, rows, ends.T).T

    def sample(
        self,
        X: Any,
        n_samples: int = 100,
        random_state: Any = None,
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
    ) -> Array:
        """Posterior draws of the mean; each draw is one function, evaluated at all rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        n_samples : int, default=100
            Number of draws.
        random_state : int, RandomState or None, default=None
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`predict`.

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
        rows = self._rows(X, exposure, trials, offset)
        links = self._sample_links(rows, n_samples, random_state)
        return self.family_.expected(self._model, rows, links)

    @summed(_squares, _r_squared)
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
    ) -> float:
        """R^2 of the predicted means.

        Parameters
        ----------
        X : frame, array-like of shape (n_samples, n_features), files or Dask frame
        y : array-like of shape (n_samples,), or str
            For files and Dask frames ``y`` and the following arguments are names of columns.
        sample_weight : array-like of shape (n_samples,), default=None
        exposure, trials, offset : float or array-like of shape (n_samples,), default=None
            As in :meth:`predict`; required if the model was fitted with one.

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
        self._require_given(exposure, trials, offset)
        mean = self.predict(X, exposure=exposure, trials=trials, offset=offset)
        from sklearn.metrics import r2_score  # slow to import

        return float(r2_score(y, mean, sample_weight=sample_weight))

    @averaged
    def log_likelihood(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
    ) -> float:
        """Mean log predictive density of the observations; higher is better.

        Parameters
        ----------
        X, y, sample_weight, exposure, trials, offset
            As in :meth:`score`.

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
        self._require_given(exposure, trials, offset)
        rows = self._predictive(X, exposure, trials, offset)
        density = rows.log_prob(self._read_target(self.family_, y, len(rows.mean)))
        return weighted_mean(density, sample_weight)

    @averaged
    def crps(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        trials: Any = None,
        offset: Any = None,
    ) -> float:
        """Mean continuous ranked probability score (CRPS) in the unit of y; lower is better.

        A proper score that generalises the mean absolute error to predictive distributions.

        Parameters
        ----------
        X, y, sample_weight, exposure, trials, offset
            As in :meth:`score`.

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
        self._require_given(exposure, trials, offset)
        rows = self._predictive(X, exposure, trials, offset)
        scores = rows.crps(self._read_target(self.family_, y, len(rows.mean)))
        return weighted_mean(scores, sample_weight)


def require_probability(value: Any) -> float:
    """Refuse a quantile that is not between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"quantiles must lie between 0 and 1, and one is {value!r}")
    return float(value)
