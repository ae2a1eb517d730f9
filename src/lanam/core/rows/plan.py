"""The plan of a fit's stage, reported before its rows are summed."""

from __future__ import annotations

from dataclasses import dataclass

from lanam.core.rows.cross_tables import cross_table_bytes

#: Seconds of a fit per cubed coordinate, and per pair and output; on one core of 2026. Measured: 3 s for
#: 608 coordinates (20 classes, 4 columns), 19 s for 1482 (40 classes), 29 s for 1693 (5 rows x 500
#: columns), and 167 s for 124,750 pairs (of these columns).
_SECONDS_PER_CUBE = 6e-9
_SECONDS_PER_PAIR = 1.3e-3


@dataclass(frozen=True)
class Plan:
    """The size of a stage, and how its rows are summed.

    Attributes
    ----------
    stage
        Its name.
    n_rows, n_columns, n_terms, n_entries
        Sizes; entries are those of all terms' tables or, if these are too many for cross-tables, those
        that rows read.
    memory
        Bytes that cross-tables may take.
    in_tables
        Whether rows are summed into cross-tables, so that iterations do not touch them; otherwise every
        iteration goes over all rows.
    n_outputs, n_coordinates, n_pairs
        The outputs of each term (one, or one per class but the last), the coordinates of all of them, and
        the pairs of columns to score: approximate, for the time that the fit takes.
    """

    stage: str
    n_rows: int
    n_columns: int
    n_terms: int
    n_entries: int
    memory: float
    in_tables: bool
    n_outputs: int = 1
    n_coordinates: int = 0
    n_pairs: int = 0

    @property
    def solving_seconds(self) -> float:
        """Expected time of the regressions."""
        return _SECONDS_PER_CUBE * float(self.n_coordinates) ** 3

    @property
    def pair_seconds(self) -> float:
        """Expected time of the scores of pairs."""
        return _SECONDS_PER_PAIR * self.n_pairs * self.n_outputs

    @property
    def table_bytes(self) -> int:
        """Bytes that cross-tables of these entries take."""
        return cross_table_bytes(self.n_entries)

    def __str__(self) -> str:
        use = "every iteration goes over all rows"
        if self.in_tables:
            use = "rows are summed into them"
        return (
            f"{self.stage}: {self.n_rows:,} rows x {self.n_columns} columns, {self.n_terms} terms; "
            f"cross-tables of {self.n_entries:,} entries take {self.table_bytes / 1e6:,.0f} MB of "
            f"{self.memory / 1e6:,.0f} MB: {use}"
        )
