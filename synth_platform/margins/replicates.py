"""Synthetic tables of a plan in one frame, a column `replicate` before the variables, and back into codes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from synth_platform.contract.census_spec import REPLICATE
from synth_platform.margins.domain import Domain
from synth_platform.margins.rows import Rows

FIRST = 1


def stacked(tables: Sequence[Rows]) -> pl.DataFrame:
    """All tables with original values, numbered from 1."""
    return pl.concat(
        rows.frame.insert_column(0, pl.lit(number, pl.Int64).alias(REPLICATE))
        for number, rows in enumerate(tables, start=FIRST)
    )


def replicate(tables: pl.DataFrame, number: int = FIRST) -> pl.DataFrame:
    """One table, without its number."""
    return tables.filter(pl.col(REPLICATE) == number).drop(REPLICATE)


def codes(table: pl.DataFrame, domain: Domain) -> list[pl.Series]:
    """By variable, positions of values in its categories, null for a value that is none of them."""
    found = []
    for variable in domain.variables:
        position = pl.int_range(len(variable), dtype=pl.Int64, eager=True)
        known = pl.DataFrame({"value": variable.values(position.to_numpy()), "code": position})
        values = pl.DataFrame({"value": table[variable.name]})
        found.append(values.join(known, on="value", how="left", nulls_equal=True, maintain_order="left")["code"])
    return found


def coded(table: pl.DataFrame, domain: Domain) -> Rows:
    """A table in codes. Raises ValueError that names the variable of a value that is none of its categories."""
    columns = codes(table, domain)
    wrong = next((v.name for v, column in zip(domain.variables, columns, strict=True) if column.null_count()), None)
    if wrong is not None:
        raise ValueError(f"variable {wrong}: a value is none of its categories")
    return Rows(domain, pl.DataFrame(columns, schema=list(domain.names)).to_numpy())
