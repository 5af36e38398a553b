"""Cell checks: every cell of a table against the rule of its column.

A summary finds the few columns that can hold a violation; only those are read row by row, one at a time, so that time
and memory grow with the table and not with a second copy of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.contract.codes import Rejection, RejectionCode
from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.rules import ValueRule
from synth_platform.contract.summary import column_summary

Mask = NDArray[np.bool_]


def check_values(name: TableName, table: pl.DataFrame, rules: Mapping[str, ValueRule]) -> tuple[list[Rejection], Mask]:
    """(findings by code and column, [rows] mask of the rows that hold one). `rules` names the columns to check."""
    findings: list[Rejection] = []
    refused: Mask = np.zeros(table.height, dtype=np.bool_)
    cells = {column.name: column for column in table.iter_columns()}  # a look-up by name in the frame is a search
    for column in _suspects(table, rules):
        for code, mask in _violations(cells[column], rules[column]):
            if mask.any():
                findings.append(Rejection(code, name, column, int(mask.sum())))
                refused |= mask
    return findings, refused


def _suspects(table: pl.DataFrame, rules: Mapping[str, ValueRule]) -> Iterator[str]:
    fractional = _fractional(table, [column for column, rule in rules.items() if rule.whole])
    for line in column_summary(table.select(rules.keys())).iter_rows(named=True):
        column, rule = line["column"], rules[line["column"]]
        minimum, maximum = line["minimum"], line["maximum"]
        if (
            rule.storage == "text"
            or (line["nulls"] and not rule.nullable)
            or line["non_finite"]
            or column in fractional
            or (rule.lower is not None and minimum is not None and (minimum < rule.lower or rule.above))
            or (rule.upper is not None and maximum is not None and maximum > rule.upper)
        ):
            yield column


def _fractional(table: pl.DataFrame, columns: list[str]) -> set[str]:
    if not columns or not table.height:
        return set()
    found = table.select((pl.col(columns) != pl.col(columns).floor()).any()).row(0, named=True)
    return {column for column, fraction in found.items() if fraction}


def _violations(cells: pl.Series, rule: ValueRule) -> Iterator[tuple[RejectionCode, Mask]]:
    null: Mask = cells.is_null().to_numpy() if cells.null_count() else np.zeros(len(cells), dtype=np.bool_)
    if not rule.nullable:
        yield "MISSING", null
    if rule.storage == "text":
        yield rule.outside, ~null & ~cells.is_in(rule.values).fill_null(True).to_numpy()
        return
    numbers = cells.cast(pl.Float64).to_numpy()
    finite = np.isfinite(numbers)
    yield "NON_FINITE", ~null & ~finite
    outside: Mask = np.zeros(len(cells), dtype=np.bool_)
    if rule.lower is not None:
        outside |= numbers <= rule.lower if rule.above else numbers < rule.lower
    if rule.upper is not None:
        outside |= numbers > rule.upper
    if rule.whole:
        outside |= numbers != np.floor(numbers)
    yield rule.outside, outside & finite
