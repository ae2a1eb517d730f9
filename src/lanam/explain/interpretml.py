"""The interface of InterpretML's ``show`` and ``preserve``: data in its format, and figures.

The format is that of its own additive models, which its plots and third-party tools read. Bounds are two
standard deviations from the mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanam.core.arrays import Array, Intercept
from lanam.data import make_frame
from lanam.explain import interpretml_figures as figures
from lanam.explain.ranges import data_histogram, trimmed
from lanam.explain.terms import Shape, Surface, SurfaceAxis, Term
from lanam.explain.values import OnLinkScale, Values, cell_words

#: InterpretML's names for kinds of terms.
_TYPES = {"smooth": "continuous", "pair": "interaction", "interaction": "interaction"}
_TYPES |= {"spatial": "interaction"}

#: Bins of the histogram of the data; InterpretML labels each.
_BINS = 12


class ShownByInterpret(OnLinkScale):
    """An explanation that InterpretML shows, under ``name`` in its dashboard."""

    name = "LANAM"
    terms: tuple[Term, ...]

    @property
    def feature_names(self) -> list[str]:
        """The terms' names, InterpretML's way."""
        return [term.name for term in self.terms]

    @property
    def feature_types(self) -> list[str]:
        """The terms' kinds in InterpretML's terms: continuous, nominal or interaction."""
        return [_TYPES.get(term.kind, "nominal") for term in self.terms]

    def data(self, key: int | None = None) -> Any:
        """The data of a figure, in InterpretML's format.

        Parameters
        ----------
        key
            An entry of the selector; None: the overview of all, -1: overview and all entries.
        """
        if key is None:
            return self._overall()
        if key != -1:
            return self._specific(self._place(key))
        everything = [self._specific(place) for place in range(len(self))]
        return {"overall": self._overall(), "specific": everything}

    def _place(self, key: int) -> int:
        if not 0 <= key < len(self):
            raise KeyError(f"no entry {key}; there are {len(self)}, counted from 0")
        return int(key)

    def _labels(self) -> list[str] | None:
        """A classifier's labels."""
        if not self.family.link.classes:
            return None
        return [str(name) for name in self.classes or (0, 1)]

    def __len__(self) -> int:
        raise NotImplementedError

    def _overall(self) -> dict[str, Any] | None:
        raise NotImplementedError

    def _specific(self, place: int) -> dict[str, Any]:
        raise NotImplementedError


class ShownTerms(ShownByInterpret):
    """A model for InterpretML: importances, and a figure for each term."""

    explanation_type = "global"
    terms: tuple[Shape | Surface, ...]

    @property
    def selector(self) -> Any:
        """A pandas frame with one row per term, for InterpretML's selection menu."""
        types = [{"nominal": "categorical"}.get(word, word) for word in self.feature_types]
        n_levels = [
            len(term.values) if term.kind == "categorical" else np.nan for term in self.terms
        ]
        columns = {
            "Name": self.feature_names,
            "Type": types,
            "# Unique": n_levels,
            "% Non-zero": np.full(len(types), np.nan),  # InterpretML leaves it empty, too
            "Importance": [_rounded(term.importance) for term in self.terms],
            "Status": [term.status for term in self.terms],
        }
        return make_frame(columns, "pandas")

    def visualize(self, key: int | None = None) -> Any:
        """A plotly figure of the importances or, with ``key``, of a term; None without values."""
        facts = self.data(key)
        if key is None:
            return figures.draw_importances(facts)
        term = self.terms[self._place(key)]
        if len(term.features) > 2:
            return None
        if isinstance(term, Surface):
            return figures.draw_pair(facts, term.name, term.feature_names)
        if not len(term.values):
            return None
        draw = figures.draw_curve if term.kind == "smooth" else figures.draw_levels
        return draw(facts, term.name)

    def _overall(self) -> dict[str, Any]:
        return {
            "type": "univariate",
            "names": self.feature_names,
            "scores": [term.importance for term in self.terms],
            "errors": [2.0 * term.importance_std for term in self.terms],
        }

    def _specific(self, place: int) -> dict[str, Any]:
        term = self.terms[place]
        if isinstance(term, Surface):
            facts = _surface_facts(term)
        else:
            facts = _shape_facts(term) | {"scores_range": self._range()}
        if self.family.link.several:
            facts["meta"] = {"label_names": self._labels()}
        return facts

    def _range(self) -> tuple[float, float]:
        """One vertical range for all univariate terms, so that figures can be compared."""
        low, high = 0.0, 0.0
        for term in self.terms:
            facts = {} if isinstance(term, Surface) else _shape_facts(term)
            for part in (facts, facts.get("missing", {})):
                low = min(low, np.min(part.get("lower_bounds", 0.0), initial=0.0))
                high = max(high, np.max(part.get("upper_bounds", 0.0), initial=0.0))
        margin = 0.04 * (high - low) or 1.0
        return float(low - margin), float(high + margin)


class ShownRows(ShownByInterpret):
    """Explained predictions for InterpretML: a figure for each row."""

    explanation_type = "local"
    terms: tuple[Term, ...]
    intercept: float | Array
    intercept_std: float | Array
    offset: Array | None
    column_values: tuple[Values, ...]
    contributions: Array
    contributions_std: Array
    response: Array

    @property
    def selector(self) -> Any:
        """A pandas frame with one row per prediction, for InterpretML's selection menu."""
        rows = [self._performance(place) for place in range(len(self))]
        labels = self._labels()
        unknown = np.full(len(rows), np.nan)  # explanations have no targets
        columns: dict[str, Any] = {
            "Actual": unknown,
            "Predicted": [
                labels[row["predicted"]] if labels else _rounded(row["predicted"]) for row in rows
            ],
        }
        if labels:
            columns["PrScore"] = [_rounded(row["predicted_score"]) for row in rows]
            columns["AcScore"] = unknown
        return make_frame(columns | {"Resid": unknown, "AbsResid": unknown}, "pandas")

    def visualize(self, key: int | None = None) -> Any:
        """A plotly figure of a row's contributions; None without ``key``, as for InterpretML's models."""
        return None if key is None else figures.draw_row(self.data(key))

    def _overall(self) -> None:
        return None

    def _constants(self, place: int) -> dict[str, Any]:
        """The parts of a prediction that no term has: the intercept, and the offset if there is one."""
        known = [] if self.offset is None else [float(self.offset[place])]
        return {
            "names": ["Intercept", *["Offset"] * len(known)],
            "scores": [self.intercept, *known],
            "errors": [2.0 * self.intercept_std, *[0.0] * len(known)],
            "values": [1] * (1 + len(known)),
        }

    def _specific(self, place: int) -> dict[str, Any]:
        cells = zip(self.terms, *(values[place] for values in self.column_values), strict=True)
        facts = {
            "type": "univariate",
            "names": self.feature_names,
            "scores": list(self.contributions[place]),
            "errors": list(2.0 * self.contributions_std[place]),
            "values": [cell_words(*own[: len(term.features)]) for term, *own in cells],
            "extra": self._constants(place),
            "perf": self._performance(place),
        }
        if self._labels() is not None:
            facts["meta"] = {"label_names": self._labels()}
        return facts

    def _performance(self, place: int) -> dict[str, Any]:
        """The prediction; the actual values are unknown."""
        response = self.response[place]
        several = self.family.link.several
        classes = np.atleast_1d(response) if several else np.array([1.0 - response, response])
        best, is_classification = int(np.argmax(classes)), self._labels() is not None
        return {
            "is_classification": is_classification,
            "actual": np.nan,
            "predicted": best if is_classification else float(response),
            "actual_score": np.nan,
            "predicted_score": float(classes[best] if is_classification else response),
        }


def _shape_facts(shape: Shape) -> dict[str, Any]:
    """A univariate term: its curve within the range of the data, or its categories."""
    if shape.kind != "smooth":
        others = [other for other in shape.others if other[3] > 0.0]
        labels = map(str if shape.kind == "categorical" else "{:g}".format, shape.values)
        names = [*labels, *(other[0] for other in others)]
        mean = np.array([*shape.mean, *(other[1] for other in others)])
        std = np.array([*shape.std, *(other[2] for other in others)])
        shares = [*shape.density, *(other[3] for other in others)]
        density = {"names": names, "scores": shares}
        return {"type": "univariate", "names": names} | _bounds(mean, std) | {"density": density}
    inside = shape.inside
    facts: dict[str, Any] = {"type": "univariate", "names": shape.values[inside].tolist()}
    facts |= _bounds(shape.mean[inside], shape.std[inside])
    if inside.any():
        ends = trimmed(shape.values, shape.density, shape.values[inside])
        heights, edges = data_histogram(shape, _BINS, ends)
        facts["density"] = {"names": edges.tolist(), "scores": heights.tolist()}
    if shape.missing_density is not None:
        name, middle, margin, share = shape.others[0]
        facts["missing"] = {"name": name, "density": share} | _bounds(np.asarray(middle), margin)
    return facts


def _surface_facts(surface: Surface) -> dict[str, Any]:
    """An interaction within the range of the data; InterpretML shows its first two columns."""
    part = np.ix_(*(axis.inside for axis in surface.axes))
    largest = float(np.abs(surface.mean[part]).max(initial=0.0)) or 1.0
    return {
        "type": "interaction",
        **dict(zip(("left_names", "right_names"), map(_axis_names, surface.axes), strict=False)),
        "scores_range": (-largest, largest),  # centred at zero, separate for each interaction
    } | _bounds(surface.mean[part], surface.std[part])


def _axis_names(axis: SurfaceAxis) -> list[float] | list[str]:
    """Numbers if all entries are numeric, else labels."""
    values, n_values = axis.values, len(axis.values)
    if values.dtype != object and not axis.inside[n_values:].any():
        return list(values[axis.inside[:n_values]].tolist())
    form = str if values.dtype == object else "{:.4g}".format
    names = [*map(form, values), *axis.others]
    return [names[place] for place in np.flatnonzero(axis.inside)]


def _bounds(mean: Array, std: Intercept) -> dict[str, Array]:
    return {"scores": mean, "upper_bounds": mean + 2.0 * std, "lower_bounds": mean - 2.0 * std}


def _rounded(value: float) -> float:
    """Four significant digits, for display."""
    return float(f"{value:.4g}")
