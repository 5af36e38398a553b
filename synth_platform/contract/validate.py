"""The validator that real and synthetic tables pass alike: which rows are accepted, and what was refused (8-1 §1.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from synth_platform.contract.codes import Rejection, RejectionCode
from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.columns import check_columns
from synth_platform.contract.keys import (
    RowFindings,
    check_access,
    check_keys,
    check_links,
    check_manifest,
    check_splits,
)
from synth_platform.contract.rules import KEY_RULE, ValueRule, value_rules
from synth_platform.contract.tables import SYNTHETIC_SPLIT, CohortTables, matrices
from synth_platform.contract.values import check_values


@dataclass(frozen=True)
class ValidationReport:
    """What the contract found.

    rejections:      sorted findings; empty means that every row was accepted.
    accepted:        the accepted rows in registered column order and types, every table in manifest order; no row if a
                     finding refuses the cohort.
    rejected_rows:   patients set aside: distinct keys of all tables together that are not accepted (a missing key
                     counts as one).
    cohort_rejected: True if a finding refuses the cohort or more rows were set aside than the cohort allows.
    """

    rejections: tuple[Rejection, ...]
    accepted: CohortTables
    rejected_rows: int
    cohort_rejected: bool

    @property
    def violations(self) -> int:
        """Sum of all counts: 0 is what the release rule asks of a synthetic table (8-1 §3.5)."""
        return sum(rejection.count for rejection in self.rejections)

    @property
    def explanation(self) -> str:
        """One line for people: verdict and findings, without a cell or a key."""
        if not self.rejections:
            return "accepted: no finding"
        verdict = "cohort rejected" if self.cohort_rejected else "accepted with rows set aside"
        shown = "; ".join(
            f"{r.code} {r.table}{'.' + r.column if r.column else ''} x{r.count}" for r in self.rejections[:10]
        )
        rest = len(self.rejections) - 10
        return f"{verdict}, {self.rejected_rows} row(s): {shown}" + (
            f"; and {rest} more finding(s)" if rest > 0 else ""
        )


def validate(tables: CohortTables, spec: CohortSpec) -> ValidationReport:
    """Check tables against the cohort's registration.

    Findings about columns and tables refuse the cohort; findings about cells and keys set the patient's rows aside in
    all tables. Beside the input this needs the memory of one column, and a copy of the accepted rows where rows were
    set aside or a column changes its type.
    """
    findings = _table_findings(tables, spec)
    usable: dict[TableName, dict[str, ValueRule]] = {}
    for name, table in tables:
        found_here, usable[name] = check_columns(name, table, value_rules(spec, name))
        findings += found_here
    tables = tables.map(lambda name, table: _in_registered_types(table, usable[name]))

    rows = RowFindings()
    keyed = all("row_key" in usable[name] for name, _ in tables)
    for name, table in tables:
        found_here, mask = check_values(name, table, {c: r for c, r in usable[name].items() if r is not KEY_RULE})
        rows.rejections += found_here
        if keyed:
            rows.keys.append(table["row_key"].filter(pl.Series(mask)))
    real = False
    if keyed and value_rules(spec, "manifest").keys() <= usable["manifest"].keys():
        real = SYNTHETIC_SPLIT not in tables.manifest["split"]
        findings += check_access(tables.manifest, spec)
        findings += check_splits(tables.manifest) if real else []
        check_keys(tables, rows)
        check_links(tables, spec, rows)
        check_manifest(tables.manifest, rows)

    patients = pl.concat(t["row_key"] for _, t in tables).n_unique() if keyed else tables.manifest.height
    accepted = _empty(spec) if findings else _accept(tables, spec, pl.concat(rows.keys).unique())
    too_many = patients - accepted.manifest.height > spec.allowed_rejected_rows
    if real and not findings and not too_many:
        findings += check_splits(accepted.manifest)  # the rows set aside may have been the last of a split
    accepted = _empty(spec) if findings else accepted
    return ValidationReport(
        rejections=_merged([*findings, *rows.rejections]),
        accepted=accepted,
        rejected_rows=patients - accepted.manifest.height,
        cohort_rejected=bool(findings) or too_many,
    )


def select_registered(tables: CohortTables, spec: CohortSpec) -> CohortTables:
    """The rows whose label is one of `keep_labels`: a selection the cohort declares publicly, not a rejection.

    Only patients with a registered label that is not kept are left out; a missing or unknown label stays, for
    `validate` to find. Works before validation and after it; tables without the columns it needs stay as they are.
    """
    label = next(variable for variable in spec.clinical if variable.name == spec.outcome.label)
    left_out = set(label.categories) - set(spec.labels)
    keyed = all(table.schema.get("row_key") == pl.String for _, table in tables)
    if not left_out or not keyed or tables.clinical.schema.get(label.name) != pl.String:
        return tables
    dropped = tables.clinical.filter(pl.col(label.name).is_in(left_out)).select("row_key")
    return tables.map(lambda _, table: table.join(dropped, on="row_key", how="anti", maintain_order="left"))


def rejections_frame(rejections: Iterable[Rejection]) -> pl.DataFrame:
    """The rejections as a table: code, table, column (String), count (Int64), refuses_cohort (Boolean)."""
    schema = {
        "code": pl.String,
        "table": pl.String,
        "column": pl.String,
        "count": pl.Int64,
        "refuses_cohort": pl.Boolean,
    }
    rows = [(r.code, r.table, r.column, r.count, r.refuses_cohort) for r in rejections]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _table_findings(tables: CohortTables, spec: CohortSpec) -> list[Rejection]:
    present = {name for name, _ in tables}
    registered = {"manifest", "clinical", *matrices(spec)}
    rows = max(tables.manifest.height, 1)
    return [
        *(Rejection("FEATURE_SET", name, None, rows) for name in matrices(spec) if name not in present),
        *(Rejection("UNKNOWN_FIELD", name, None, rows) for name, _ in tables if name not in registered),
    ]


def _in_registered_types(table: pl.DataFrame, rules: Mapping[str, ValueRule]) -> pl.DataFrame:
    """Dictionary-coded texts as plain ones, and columns of nulls alone in the type of their rule."""
    changes = {
        column: rules[column].dtype
        for column, dtype in table.schema.items()
        if column in rules and (isinstance(dtype, pl.Categorical | pl.Enum) or not rules[column].accepts(dtype))
    }
    return table.with_columns(pl.col(column).cast(dtype, strict=False) for column, dtype in changes.items())


def _accept(tables: CohortTables, spec: CohortSpec, refused: pl.Series) -> CohortTables:
    kept = tables.manifest.select("row_key").filter(~pl.col("row_key").is_in(refused.drop_nulls().implode()))
    kept = kept.drop_nulls()

    def accepted(name: TableName, table: pl.DataFrame) -> pl.DataFrame:
        schema = _schema(spec, name)
        if not table["row_key"].equals(kept["row_key"]):
            table = kept.join(table, on="row_key", how="inner", maintain_order="left")
        return table.select(schema.keys()).cast(schema)  # type: ignore[arg-type]  # a dict of types is a schema

    return tables.map(accepted)


def _empty(spec: CohortSpec) -> CohortTables:
    frames = {name: pl.DataFrame(schema=_schema(spec, name)) for name in matrices(spec)}
    return CohortTables(
        manifest=pl.DataFrame(schema=_schema(spec, "manifest")),
        expression=frames.get("expression"),
        methylation=frames.get("methylation"),
        clinical=pl.DataFrame(schema=_schema(spec, "clinical")),
    )


def _schema(spec: CohortSpec, name: TableName) -> dict[str, type[pl.DataType]]:
    return {"row_key": pl.String, **{column: rule.dtype for column, rule in value_rules(spec, name).items()}}


def _merged(rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """Sorted, with one entry for each (code, table, column)."""
    counts: Counter[tuple[RejectionCode, TableName, str | None]] = Counter()
    for r in rejections:
        counts[r.code, r.table, r.column] += r.count
    ordered = sorted(counts.items(), key=lambda item: (item[0][1], item[0][0], item[0][2] or ""))
    return tuple(Rejection(code, table, column, count) for (code, table, column), count in ordered)
