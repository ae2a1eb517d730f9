"""Errors about columns, each with a line of code that fixes the column in the user's library.

The line is meant to be copied. It is the same for training data and for new rows: dates count from a
fixed day, not from the first day of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanam.data.recognition import DATES, ISO, NUMBERS, TIMES, Recognised
from lanam.errors import (
    InputError,
    InputTypeError,
    InputWarning,
    Line,
    MissingColumnsError,
    Setting,
)
from lanam.text import did_you_mean, few, similar

#: Lines that fix a column, by what it holds and by library; `{c}` is its quoted name and `{i}` its
#: index. Without a line, the remedy is to leave the column out.
_LINES: dict[str, dict[str, str]] = {
    "dates": {
        "pandas": 'X[{c}] = (X[{c}] - pd.Timestamp("2000-01-01")).dt.days',
        "polars": 'X = X.with_columns(pl.col({c}).dt.epoch("d"))',
        "pyarrow": (
            "X = X.set_column({i}, {c}, X[{c}].cast(pa.date32(), safe=False).cast(pa.int32()))"
        ),
        "array": 'X = (X - np.datetime64("2000-01-01")) / np.timedelta64(1, "D")',
    },
    "dates with a time zone": {
        "pandas": 'X[{c}] = (X[{c}] - pd.Timestamp("2000-01-01", tz="UTC")).dt.days',
    },
    "dates as objects": {
        "pandas": 'X[{c}] = (pd.to_datetime(X[{c}]) - pd.Timestamp("2000-01-01")).dt.days',
        "array": 'X[:, {i}] = (X[:, {i}].astype("M8[D]") - np.datetime64("2000-01-01")).astype(float)',
    },
    "periods": {"pandas": 'X[{c}] = X[{c}].astype("int64")'},
    "durations": {
        "pandas": "X[{c}] = X[{c}].dt.total_seconds()",
        "polars": "X = X.with_columns(pl.col({c}).dt.total_seconds())",
        "pyarrow": "X = X.set_column({i}, {c}, X[{c}].cast(pa.int64()))",
        "array": 'X = X / np.timedelta64(1, "s")',
    },
    "durations as objects": {
        "pandas": "X[{c}] = pd.to_timedelta(X[{c}]).dt.total_seconds()",
        "array": "X[:, {i}] = [gap.total_seconds() for gap in X[:, {i}]]",
    },
    "times of day": {
        "pandas": "X[{c}] = X[{c}].map(lambda time: time.hour + time.minute / 60, na_action='ignore')",
        "polars": "X = X.with_columns(pl.col({c}).cast(pl.Int64) / 3.6e12)",
        "pyarrow": "X = X.set_column({i}, {c}, X[{c}].cast(pa.time64('ns')).cast(pa.int64()))",
        "array": "X[:, {i}] = [time.hour + time.minute / 60 for time in X[:, {i}]]",
    },
    "lists": {
        "pandas": "X[{c}] = X[{c}].str.len()",
        "array": "X[:, {i}] = [len(values) for values in X[:, {i}]]",
        "polars": "X = X.with_columns(pl.col({c}).list.len())",
    },
    "records": {"polars": "X = X.unnest({c})"},
    "bytes": {
        "pandas": 'X[{c}] = X[{c}].str.decode("utf-8")',
        "polars": "X = X.with_columns(pl.col({c}).cast(pl.String))",
        "pyarrow": "X = X.set_column({i}, {c}, X[{c}].cast(pa.string()))",
        "array": "X = X.astype(str)",
    },
    "bytes as objects": {"array": "X[:, {i}] = [value.decode() for value in X[:, {i}]]"},
    "complex numbers": {
        "pandas": "X[{c}] = X[{c}].map(abs, na_action='ignore')",
        "array": "X = abs(X)",
    },
    "complex numbers as objects": {"array": "X[:, {i}] = abs(X[:, {i}])"},
    "intervals": {"pandas": "X[{c}] = X[{c}].map(lambda interval: interval.mid)"},
    "a mixture": {
        "pandas": 'X[{c}] = X[{c}].astype("string")',
        "polars": (
            "X = X.with_columns(pl.Series({c}, [None if v is None else str(v) for v in X[{c}]]))"
        ),
        "array": "X[:, {i}] = X[:, {i}].astype(str)",
    },
    "to numbers": {
        "pandas": "X[{c}] = X[{c}].astype(float)",
        "polars": "X = X.with_columns(pl.col({c}).cast(pl.Float64))",
        "pyarrow": "X = X.set_column({i}, {c}, X[{c}].cast(pa.float64()))",
        "array": "X = X.astype(object); X[:, {i}] = X[:, {i}].astype(float)",
    },
    "to text": {
        "pandas": 'X[{c}] = X[{c}].astype("string")',
        "polars": "X = X.with_columns(pl.col({c}).cast(pl.String))",
        "pyarrow": "X = X.set_column({i}, {c}, X[{c}].cast(pa.string()))",
        "array": "X = X.astype(object); X[:, {i}] = X[:, {i}].astype(str)",
    },
    "numbers as text": {
        "pandas": 'X[{c}] = pd.to_numeric(X[{c}], errors="coerce")',
        "polars": "X = X.with_columns(pl.col({c}).str.strip_chars().cast(pl.Float64, strict=False))",
        "pyarrow": "X = X.set_column({i}, {c}, X[{c}].cast(pa.float64()))",
        "array": "X = X.astype(object); X[:, {i}] = X[:, {i}].astype(float)",
    },
    # The marks `{m}` are removed; what is no number then is missing.
    "marked numbers as text": {
        "pandas": (
            'X[{c}] = pd.to_numeric(X[{c}]{s}.str.replace(r"{m}", "", regex=True){p}, errors="coerce")'
        ),
        "polars": (
            'X = X.with_columns(pl.col({c}){s}.str.replace_all(r"{m}", ""){p}'
            ".cast(pl.Float64, strict=False))"
        ),
        "pyarrow": (
            'X = X.set_column({i}, {c}, pa.compute.replace_substring_regex(X[{c}], r"{m}", "")'
            ".cast(pa.float64()))"
        ),
        "array": (
            "X = X.astype(object); "
            'X[:, {i}] = [float(re.sub(r"{m}", "", v{s}){p}) for v in X[:, {i}]]'
        ),
    },
    "dates as text": {
        "pandas": (
            'X[{c}] = (pd.to_datetime(X[{c}], format="{f}", utc=True) - '
            'pd.Timestamp("2000-01-01", tz="UTC")).dt.days'
        ),
        "polars": 'X = X.with_columns(pl.col({c}).str.to_datetime("{f}").dt.epoch("d"))',
        "pyarrow": (
            'X = X.set_column({i}, {c}, pa.compute.strptime(X[{c}], "{f}", "s")'
            ".cast(pa.date32(), safe=False).cast(pa.int32()))"
        ),
        "array": (
            "X = X.astype(object); X[:, {i}] = "
            '[datetime.strptime(v, "{f}").toordinal() for v in X[:, {i}]]'
        ),
    },
    "times of day as text": {
        "pandas": 'X[{c}] = pd.to_datetime(X[{c}], format="{f}").map(lambda t: t.hour + t.minute / 60)',
        "polars": 'X = X.with_columns(pl.col({c}).str.to_time("{f}").cast(pl.Int64) / 3.6e12)',
        "array": (
            "X = X.astype(object); X[:, {i}] = "
            '[(t := datetime.strptime(v, "{f}")).hour + t.minute / 60 for v in X[:, {i}]]'
        ),
    },
    "large integers": {
        "pandas": "X[{c}] = X[{c}] - {low}",
        "polars": "X = X.with_columns(pl.col({c}) - {low})",
        "pyarrow": (
            "X = X.set_column({i}, {c}, pa.compute.subtract(X[{c}], pa.scalar({low}, X[{c}].type)))"
        ),
        "array": "X[:, {i}] -= {low}",
    },
    "blanks and case": {
        "pandas": "X[{c}] = X[{c}].str.strip().str.lower()",
        "polars": "X = X.with_columns(pl.col({c}).str.strip_chars().str.to_lowercase())",
        "pyarrow": (
            "X = X.set_column({i}, {c}, pa.compute.utf8_lower(pa.compute.utf8_trim_whitespace(X[{c}])))"
        ),
        "array": "X = X.astype(object); X[:, {i}] = [v.strip().lower() for v in X[:, {i}]]",
    },
    "missing": {
        "pandas": "X[{c}] = X[{c}].replace({v}, np.nan)",
        "polars": "X = X.with_columns(pl.col({c}).replace({v}, None))",
        "pyarrow": (
            "X = X.set_column({i}, {c}, pa.compute.if_else(pa.compute.equal(X[{c}], {v}), None, X[{c}]))"
        ),
        "array": "X = np.where((np.arange(X.shape[1]) == {i}) & (X == {v}), np.nan, X)",
    },
    "leave out": {
        "pandas": "X = X.drop(columns={c})",
        "polars": "X = X.drop({c})",
        "pyarrow": "X = X.drop_columns({c})",
        "array": "X = np.delete(X, {i}, axis=1)",
    },
}

#: What such a line does.
_ADVICE = {
    "dates": "convert them to a number (such as days)",
    "periods": "convert them to a number",
    "durations": "convert them to a number (such as seconds)",
    "times of day": "convert them to a number (such as hours)",
    "lists": "convert them to a number (such as their length)",
    "records": "make each of their fields a column",
    "bytes": "decode them if they are strings",
    "complex numbers": "convert them to numbers (such as the magnitude)",
    "intervals": "convert them to numbers (such as the midpoint) or to strings",
}

#: After a value: what a line does that makes it missing.
AS_MISSING = " as missing"

#: The longest example in a message.
_LONGEST_EXAMPLE = 40
#: How many values of a kind a message shows.
_MOST_SHOWN = 3
#: How many columns a message names.
_MOST_NAMED = 5


@dataclass(frozen=True)
class ColumnRef:
    """A column in a table of some library, for errors about it.

    Examples
    --------
    >>> ColumnRef("when", 2, "polars").line("durations").code
    'X = X.with_columns(pl.col("when").dt.total_seconds())'
    """

    name: str
    index: int
    backend: str | None = None

    def line(self, what: str, **fields: str) -> Line:
        """The line of code that fixes a column which holds ``what``; ``fields`` are further ones of it."""
        backend = self.backend or "array"
        lines = _LINES.get(what, {})
        if backend not in lines:
            lines = _LINES.get(_base_type(what), {})
        quoted = '"' + self.name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        # A pyarrow table may be a chunk of another one, where the column has another index.
        index = f"X.column_names.index({quoted})" if backend == "pyarrow" else self.index
        return Line(what, lines.get(backend, "").format(c=quoted, i=index, **fields))


def _base_type(what: str) -> str:
    """What a column holds, regardless of its representation."""
    return what.removesuffix(" with a time zone").removesuffix(" as objects")


def unsupported_type(place: ColumnRef, what: str, example: object) -> Exception:
    """The error for a column of dates, lists, bytes and the like."""
    plain, line = _base_type(what), place.line(what)
    kind: type[InputError | InputTypeError] = InputError
    takes = "features must be numeric or categorical"
    if plain in ("lists", "records", "objects"):
        # scikit-learn's checks look for these words.
        kind, takes = InputTypeError, "this argument must be made of strings and numbers"
    return kind(
        "column {column!r} holds {what} (for example {shown}), and {takes}",
        "{advice}{example}",
        column=place.name,
        what=plain,
        shown=shown(example),
        takes=takes,
        advice=_ADVICE[plain] if line.code else "leave it out",
        line=line if line.code else place.line("leave out"),
    )


def mixed(place: ColumnRef, number: object, text: object) -> InputError:
    """The error for a column of numbers and strings together."""
    return InputError(
        "column {column!r} holds strings and numbers together (for example {text} and {number})",
        "if it is categorical, convert all values to strings{example}; if it is numeric, convert the "
        "strings to numbers or missing values",
        column=place.name,
        text=shown(text),
        number=shown(number),
        line=place.line("a mixture"),
    )


def free_text(place: ColumnRef, n_values: int, n_rows: int, example: object) -> InputError:
    """The error for a column of sentences."""
    return InputError(
        "column {column!r} holds free text: {n_values} distinct values in {n_rows} rows (for example "
        "{shown})",
        "Leave it out{example}, or derive numeric features from it; if its values are categories, name it "
        "in {categorical_features}",
        column=place.name,
        n_values=n_values,
        n_rows=n_rows,
        shown=shown(example),
        line=place.line("leave out"),
    )


def identifiers(place: ColumnRef, n_values: int, n_rows: int, example: object) -> InputError:
    """The error for a column of strings that identify rows."""
    return InputError(
        "column {column!r} holds identifiers: {n_values} distinct strings in {n_rows} rows (for example "
        "{shown})",
        "Leave it out{example}; if its values are categories, use {categorical}",
        column=place.name,
        n_values=n_values,
        n_rows=n_rows,
        shown=shown(example),
        categorical=_as_categories(place),
        line=place.line("leave out"),
    )


def other_than_text(place: ColumnRef, found: Recognised) -> InputError:
    """The error for a column of strings that are numbers, amounts, dates or times."""
    without = "" if place.backend is None else " with {drop}"  # arrays have no names
    return InputError(
        "column {column!r} holds {what} as text (for example {shown})",
        f"{{advice}}{{example}}{_remarks(found)}, or leave it out{without}; "
        "if its values are categories, use {categorical}",
        column=place.name,
        what=found.what,
        shown=shown(found.example),
        advice=_ADVICE.get(found.what, "convert them to numbers"),
        drop=Setting("drop", [place.name]),
        categorical=_as_categories(place),
        line=_line_of_text(place, found),
    )


def _remarks(found: Recognised) -> str:
    """What becomes of the values that are no plain numbers."""
    limits = f"limits such as {shown(found.limit)} as the number" if found.limit else ""
    lost = few([shown(text) for text in found.lost], _MOST_SHOWN)
    parts = [limits, f"as missing values: {lost}" if lost else ""]
    return f" ({'; '.join(filter(None, parts))})" if any(parts) else ""


def codes_as_text(place: ColumnRef, found: Recognised) -> InputWarning:
    """The warning for a few integers as text, which are made categories."""
    return InputWarning(
        "column {column!r} holds integers as text (for example {shown}), and each of them is a category",
        "if they are quantities, convert them to numbers{example}; if they are codes, use {categorical}",
        column=place.name,
        shown=shown(found.example),
        categorical=_as_categories(place),
        line=_line_of_text(place, found),
    )


def alike_levels(place: ColumnRef, groups: Sequence[Sequence[str]]) -> InputWarning:
    """The warning for categories that look alike."""
    listed = ["/".join(map(shown, group[:_MOST_SHOWN])) for group in groups[:_MOST_SHOWN]]
    return InputWarning(
        "column {column!r} has categories that differ only in case or blanks ({listed}), and each has an "
        "effect of its own",
        "if they are the same, make them one{example}; if not, use {categorical}",
        column=place.name,
        listed=", ".join(listed) + (", ..." if len(groups) > _MOST_SHOWN else ""),
        categorical=_as_categories(place),
        line=place.line("blanks and case"),
    )


def row_identifiers(place: ColumnRef) -> InputWarning:
    """The warning for a column of integers that may only number the rows."""
    return InputWarning(
        "column {column!r} has a different integer in each row",
        "if it only numbers or identifies the rows, leave it out{example}",
        column=place.name,
        line=place.line("leave out"),
    )


def coded_missing(place: ColumnRef, code: int, fraction: float) -> InputWarning:
    """The warning for a number that may stand for missing values."""
    return InputWarning(
        "column {column!r} has the value {code} in {percent} of the rows, far from all others",
        "if that stands for a missing value, make it one{example}",
        column=place.name,
        code=code,
        percent=f"{100.0 * fraction:.2g}%",
        line=Line(f"{code}{AS_MISSING}", place.line("missing", v=str(code)).code),
    )


def inexact(place: ColumnRef, low: int, high: int) -> InputError:
    """The error for integers that floats cannot tell apart."""
    return InputError(
        "column {column!r} has integers above 2^53, from {low} to {high}, which floats cannot tell apart",
        "subtract a constant{example}; if they are identifiers, leave the column out or use {categorical}",
        column=place.name,
        low=low,
        high=high,
        categorical=_as_categories(place),
        line=place.line("large integers", low=str(low)),
    )


def _as_categories(place: ColumnRef) -> Setting:
    return Setting("categorical_features", [place.name])


def _line_of_text(place: ColumnRef, found: Recognised) -> Line:
    """The line that converts strings."""
    if found.what == NUMBERS and not found.marks:
        return place.line("numbers as text")
    if found.what in (DATES, TIMES):
        what = f"{found.what} as text"
        usable = found.format and (found.format != ISO or place.backend == "pandas")
        # The Z of UTC is a zone to chrono, which polars uses, only with this flag.
        zone = "%#z" if place.backend == "polars" else "%z"
        return place.line(what, f=found.format.replace("%z", zone)) if usable else Line(what, "")
    exchanged = [(mark, "-") for mark in found.negative]
    point = [(",", ".")] if found.decimal == "," else []
    if place.backend == "pyarrow" and exchanged + point:
        return Line("marked numbers as text", "")
    fields = {"s": _replacing(place, exchanged), "p": _replacing(place, point)}
    return place.line("marked numbers as text", m=found.marks, **fields)


def _replacing(place: ColumnRef, pairs: Sequence[tuple[str, str]]) -> str:
    """Code that replaces characters of strings, as methods."""
    method = {
        "pandas": ".str.replace({!r}, {!r})",
        "polars": ".str.replace_all({!r}, {!r}, literal=True)",
    }
    one = method.get(place.backend or "", ".replace({!r}, {!r})")
    return "".join(one.format(*pair) for pair in pairs).replace("'", '"')


def type_changed(place: ColumnRef, before: str, now: str, example: object) -> InputError:
    """The error for new rows whose column holds something else than the training data did."""
    return InputError(
        "column {column!r} was {before} in the training data, and is {now} now (for example {shown})",
        "convert it{example}",
        column=place.name,
        before=before,
        now=now,
        shown=shown(example),
        line=place.line("to text" if before == "string" else "to numbers"),
    )


def missing_columns(
    title: str, names: Sequence[str], fitted: Sequence[str], words: str = ""
) -> MissingColumnsError | None:
    """The error for new rows without some of the columns of the fit; None if they have all.

    ``words`` replace the message, except for its remedy.
    """
    lost = [name for name in fitted if name not in names]
    if not lost:
        return None
    others = [name for name in names if name and name not in fitted]
    hint = f": {did_you_mean(lost[0], others, 'its other columns are')}" if others else ""
    plural = "s" if len(lost) > 1 else ""
    return MissingColumnsError(
        "{words}",
        f"If values are not known, add the column{plural} {{with missing values}}",
        column=lost[0],
        words=words
        or f"{title} has no column{plural} {few([repr(name) for name in lost], _MOST_NAMED)}, with which "
        f"the model was fitted{hint}",
        columns=lost,
        similar={name: close for name in lost if (close := similar(name, others))},
    )


def unknown_columns(names: Sequence[str]) -> InputWarning:
    """The warning for columns of new rows that the training data did not have."""
    return InputWarning(
        "{X} has columns that the model was not fitted with, which are ignored: {names}",
        names=few([repr(name) for name in names], _MOST_NAMED),
    )


def shown(value: object) -> str:
    """A value as messages show it: its ``repr`` as plain Python, shortened.

    Examples
    --------
    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    plain = value if isinstance(value, (str, bytes, bool, int, float)) else str(value)
    text = repr(plain)
    return text if len(text) <= _LONGEST_EXAMPLE + 3 else text[:_LONGEST_EXAMPLE] + "..."
