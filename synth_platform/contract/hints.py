"""What a finding asks for: the rule that was broken, from the registration alone; never a cell or a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from synth_platform.contract.codes import Rejection, RejectionCode
from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.rules import KEY_RULE, ValueRule, value_rules
from synth_platform.contract.tables import MATRICES, REFERENCE_BATCH, SYNTHETIC_SPLIT, CohortTables

_TYPES = {"real": "a number", "integer": "a whole number", "text": "text"}
_FIXED: Mapping[RejectionCode, str] = {
    "CONTROLLED_ACCESS": "open-access data alone: no row, nor dua_tag in cohort.yaml, under a controlled tag",
    "SPLIT_EMPTY": "public, train and test need at least one row each",
    "DUPLICATE_UNIT": "one row per patient in every table",
    "KEY_FORMAT": "three capitals at most, a dash, six digits",
}


def hint(rejection: Rejection, tables: CohortTables, spec: CohortSpec) -> str:
    """The rule behind one finding of `validate(tables, spec)`, or what to do about it, in one line.

    Only names, rules and bounds that cohort.yaml registers, and the type a column is stored as; of the manifest's
    values, those that a steward's rows may have.
    """
    code, table, column = rejection.code, rejection.table, rejection.column
    rule = {"row_key": KEY_RULE, **value_rules(spec, table)}.get(column or "")
    if rule is not None and table == "manifest":
        rule = replace(rule, values=tuple(v for v in rule.values if v not in (SYNTHETIC_SPLIT, REFERENCE_BATCH)))
    if code in _FIXED:
        return _FIXED[code]
    if code in ("FORBIDDEN_FIELD", "UNKNOWN_FIELD", "FEATURE_SET"):
        return _fields(code, table, column, spec, registered=rule is not None)
    if code == "KEY_SET":
        return f"the keys of {table} and of the manifest (modality_mask) must name the same patients"
    if code == "DTYPE" and rule is not None and column is not None:
        return _types(rule, type(tables.frame(table).schema[column]).__name__)
    if column == "row_key":
        return "every row needs a key"
    return f"{rule}" + ("; a missing value is an empty cell" if code == "NON_FINITE" and rule and rule.nullable else "")


def _fields(code: RejectionCode, table: TableName, column: str | None, spec: CohortSpec, *, registered: bool) -> str:
    where = f"{table}.panel" if table in MATRICES else table
    if code == "FORBIDDEN_FIELD":
        if registered:
            return "no dates or times: store days since a reference day"
        return "identifiers, dates and free text are never read: remove the column"
    if registered:
        return f"registered, but absent: add the column, or take it out of {where} in cohort.yaml"
    if column is None:
        absent = f"registered, but absent: bring the table, or take {table} out of cohort.yaml"
        return absent if code == "FEATURE_SET" else f"not registered: drop the table, or add {table} to cohort.yaml"
    if table == "manifest":
        return f"the manifest has {', '.join(value_rules(spec, table))} and the key alone: remove the column"
    return f"not registered: remove the column, or add it to {where} in cohort.yaml"


def _types(rule: ValueRule, found: str) -> str:
    wrong = ": at least one cell is no number" if found == "String" and rule.storage != "text" else ""
    return f"{_TYPES[rule.storage]}, but the column holds {found}{wrong}"
