"""What a table may not hold, in words: each error names the column and the line that mends it.

The line is in the idiom of the user's library, and is meant to be copied. It is the same for
training data and for new rows: dates count from a fixed day, not from the first day of the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanam.errors import InputError, InputTypeError, Line

#: Lines that mend a column, by what it holds and by library; `{c}` is its quoted name and `{i}` its
#: index. A library without a line of its own is told to leave the column out.
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

#: What is said of what such a line does, or of what else there is to do.
_ADVICE = {
    "dates": "turn them into a number that matters, such as days",
    "periods": "turn them into a number that matters",
    "durations": "turn them into a number, such as seconds",
    "times of day": "turn them into a number, such as hours",
    "lists": "turn them into a number that matters, such as their length",
    "records": "make a column of each of their fields",
    "bytes": "decode them if they are text",
    "complex numbers": "turn them into numbers that matter, such as the magnitude",
    "intervals": "turn them into numbers, such as their middle, or into text",
}

#: How long an example in a message may be.
_LONGEST_EXAMPLE = 40


@dataclass(frozen=True)
class Place:
    """Which column of which kind of table an error is about.

    Examples
    --------
    >>> Place("when", 2, "polars").line("durations").code
    'X = X.with_columns(pl.col("when").dt.total_seconds())'
    """

    name: str
    index: int
    backend: str | None = None

    def line(self, what: str) -> Line:
        """The line of code that mends a column which holds ``what``."""
        backend = self.backend or "array"
        lines = _LINES.get(what, {})
        if backend not in lines:
            lines = _LINES.get(_plainly(what), {})
        quoted = '"' + self.name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        # Arrow's tables are often chunks of others, in which a column has another index.
        index = f"X.column_names.index({quoted})" if backend == "pyarrow" else self.index
        return Line(what, lines.get(backend, "").format(c=quoted, i=index))


def _plainly(what: str) -> str:
    """What a column holds, without how it holds it."""
    return what.removesuffix(" with a time zone").removesuffix(" as objects")


def not_a_value(place: Place, what: str, example: object) -> Exception:
    """The error for a column of dates, lists, bytes and the like."""
    plain, line = _plainly(what), place.line(what)
    kind: type[InputError | InputTypeError] = InputError
    takes = "lanam takes numbers and categories"
    if plain in ("lists", "records", "objects"):
        # The words that scikit-learn's checks look for.
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


def mixed(place: Place, number: object, text: object) -> InputError:
    """The error for a column of numbers and text together."""
    return InputError(
        "column {column!r} holds text and numbers together (for example {text} and {number}), and lanam "
        "does not guess which it is",
        "if it is a category, make all of it text{example}; if it is a number, turn the text into "
        "numbers, or into missing values",
        column=place.name,
        text=shown(text),
        number=shown(number),
        line=place.line("a mixture"),
    )


def free_text(place: Place, n_values: int, n_rows: int, example: object) -> InputError:
    """The error for a column of sentences."""
    return InputError(
        "column {column!r} holds free text: {n_values} different values in {n_rows} rows (for example "
        "{shown})",
        "Leave it out{example}, or make numbers of it that matter; if its values are categories after "
        "all, name it in {categorical_features}",
        column=place.name,
        n_values=n_values,
        n_rows=n_rows,
        shown=shown(example),
        line=place.line("leave out"),
    )


def changed(place: Place, before: str, now: str, example: object) -> InputError:
    """The error for new rows whose column holds something else than the training data did."""
    return InputError(
        "column {column!r} held {before} in the training data, and holds {now} now (for example {shown})",
        "convert it{example}",
        column=place.name,
        before=before,
        now=now,
        shown=shown(example),
        line=place.line("to text" if before == "text" else "to numbers"),
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
