"""What a fit is going to do with its rows, estimated before anything is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanam.core.likelihoods import Likelihood
from lanam.core.rows.cross_tables import cross_table_bytes
from lanam.core.rows.quadratics import sums_pay
from lanam.core.terms.term import Term


@dataclass(frozen=True)
class Plan:
    """The size of a stage, and how its rows are summed.

    Attributes
    ----------
    stage
        Its name.
    n_rows, n_columns, n_terms, n_entries
        How many there are; entries are those of all terms' tables.
    table_bytes
        What cross-tables of all entries take.
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
        terms: Sequence[Term],
        shape: tuple[int, int],
        likelihood: Likelihood,
        memory: float,
    ) -> Plan:
        """The plan of a stage with these terms, on a table of ``shape``."""
        n_entries = sum(len(term.entries) for term in terms) + 1
        size = cross_table_bytes(n_entries)
        pay = sums_pay(shape[0], n_entries, memory, exact=likelihood.quadratic)
        in_tables = pay and likelihood.n_outputs == 1
        return cls(stage, *shape, len(terms), n_entries, size, memory, in_tables)

    def __str__(self) -> str:
        told = (
            f"{self.stage}: {self.n_rows:,} rows x {self.n_columns} columns, {self.n_terms} terms; "
            f"cross-tables of {self.n_entries:,} entries take {self.table_bytes / 1e6:,.0f} MB of "
            f"{self.memory / 1e6:,.0f} MB"
        )
        if self.in_tables:
            return told + ": rows are summed into them"
        return told + ": every iteration goes over all rows"
