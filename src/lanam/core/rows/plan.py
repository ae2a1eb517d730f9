"""What a fit is going to do with its rows, told before they are summed."""

from __future__ import annotations

from dataclasses import dataclass

from lanam.core.likelihoods import Likelihood
from lanam.core.rows.cross_tables import cross_table_bytes
from lanam.core.rows.quadratics import tables_pay


@dataclass(frozen=True)
class Plan:
    """The size of a stage, and how its rows are summed.

    Attributes
    ----------
    stage
        Its name.
    n_rows, n_columns, n_terms, n_entries
        How many there are; entries are those of all terms' tables or, if these are too many to be
        summed into, those that rows read.
    table_bytes
        What cross-tables of these entries take.
    memory
        What they may take.
    in_tables
        Whether rows are summed into cross-tables, so that iterations do not touch them; otherwise every
        iteration goes over all rows.
    """

    stage: str
    n_rows: int
    n_columns: int
    n_terms: int
    n_entries: int
    table_bytes: int
    memory: float
    in_tables: bool

    @classmethod
    def of(
        cls,
        stage: str,
        n_terms: int,
        shape: tuple[int, int],
        likelihood: Likelihood,
        memory: float,
        n_entries: int,
    ) -> Plan:
        """The plan of a stage with so many terms and entries, on a table of ``shape``."""
        size = cross_table_bytes(n_entries)
        in_tables = tables_pay(likelihood, shape[0], n_entries, memory)
        return cls(stage, *shape, n_terms, n_entries, size, memory, in_tables)

    def __str__(self) -> str:
        told = (
            f"{self.stage}: {self.n_rows:,} rows x {self.n_columns} columns, {self.n_terms} terms; "
            f"cross-tables of {self.n_entries:,} entries take {self.table_bytes / 1e6:,.0f} MB of "
            f"{self.memory / 1e6:,.0f} MB"
        )
        if self.in_tables:
            return told + ": rows are summed into them"
        return told + ": every iteration goes over all rows"
