"""Errors about columns, each with a line of code that fixes the column in the user's library.

The line is meant to be copied. It is the same for training data and for new rows: dates count from a
fixed day, not from the first day of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanam.errors import InputError, InputTypeError, Line

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
    "leave out": {
        "pandas": "X = X.drop(columns={c})",
        "polars": "X = X.drop({c})",
        "pyarrow": "X = X.drop_columns({c})",
        "array": "X = np.delete(X, {i}, axis=1)",
    },
}

#: What such a line does.
_ADVICE = {
    "dates": "convert them to a number, such as days",
    "periods": "convert them to a number",
    "durations": "convert them to a number, such as seconds",
    "times of day": "convert them to a number, such as hours",
    "lists": "convert them to a number, such as their length",
    "records": "make each of their fields a column",
    "bytes": "decode them if they are strings",
    "complex numbers": "convert them to numbers, such as the magnitude",
    "intervals": "convert them to numbers, such as the midpoint, or to strings",
}

#: The longest example in a message.
_LONGEST_EXAMPLE = 40


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

    def line(self, what: str) -> Line:
        """The line of code that fixes a column which holds ``what``."""
        backend = self.backend or "array"
        lines = _LINES.get(what, {})
        if backend not in lines:
            lines = _LINES.get(_base_type(what), {})
        quoted = '"' + self.name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        # A pyarrow table may be a chunk of another one, where the column has another index.
        index = f"X.column_names.index({quoted})" if backend == "pyarrow" else self.index
        return Line(what, lines.get(backend, "").format(c=quoted, i=index))


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
