"""The plan of a fit's stage, reported before its rows are summed."""

from __future__ import annotations

from dataclasses import dataclass

from lanam.core.rows.cross_tables import cross_table_bytes


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
    """

    stage: str
    n_rows: int
    n_columns: int
    n_terms: int
    n_entries: int
    memory: float
    in_tables: bool

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
