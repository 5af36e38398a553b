"""Column checks: names, set and types of a table's columns, decided without reading a cell."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from synth_platform.contract.codes import Rejection, RejectionCode, column_place
from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.names import forbidden_content, forbidden_term
from synth_platform.contract.rules import KEY_RULE, ValueRule
from synth_platform.contract.tables import MATRICES


def check_columns(
    name: TableName, table: pl.DataFrame, rules: Mapping[str, ValueRule]
) -> tuple[list[Rejection], dict[str, ValueRule]]:
    """(findings, rules of the columns that can be checked cell by cell, row_key among them) of one table.

    A forbidden field is reported as such wherever it stands: as a column, as a nested field, or as a date in a
    registered column. What is left over is a feature-set mismatch in a matrix, whose panel is exact, and an unknown
    field elsewhere. A column of nulls alone has no cell of a wrong type, whatever its own type.
    """
    rows = max(table.height, 1)
    findings: list[Rejection] = []
    usable: dict[str, ValueRule] = {}
    schema = table.schema  # built anew at each access
    registered = {"row_key": KEY_RULE, **rules}
    unregistered: RejectionCode = "FEATURE_SET" if name in MATRICES else "UNKNOWN_FIELD"
    for position, (column, dtype) in enumerate(schema.items()):
        rule = registered.get(column)
        term = forbidden_content(dtype)
        if rule is None:
            term = forbidden_term(column) or term
            code: RejectionCode = unregistered if term is None else "FORBIDDEN_FIELD"
            findings.append(Rejection(code, name, column_place(position, term), rows))
        elif term is not None:
            findings.append(Rejection("FORBIDDEN_FIELD", name, column, rows))
        elif rule.accepts(dtype) or (column != "row_key" and table[column].null_count() == table.height):
            usable[column] = rule
        else:
            findings.append(Rejection("DTYPE", name, column, rows))
    findings += [Rejection("FEATURE_SET", name, column, rows) for column in registered if column not in schema]
    return findings, usable
