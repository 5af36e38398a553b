"""What refuses a cohort, what sets rows aside, and what an accepted table looks like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.codes import TABLE_CODES, Rejection
from synth_platform.contract.tables import CohortTables, from_wide, to_wide
from synth_platform.contract.validate import rejections_frame, select_registered, validate


def found(report) -> set[tuple[str, str, str | None, int]]:
    return {(r.code, r.table, r.column, r.count) for r in report.rejections}


def with_clinical(tables: CohortTables, *columns: pl.Expr | pl.Series) -> CohortTables:
    return replace(tables, clinical=tables.clinical.with_columns(*columns))


def test_rows_set_aside_are_tolerated_up_to_the_declared_number(tables, make_spec) -> None:
    broken = with_clinical(tables, pl.Series("age", [17, 50, 50, 50, 50, 91]))
    for allowed, rejected in ((0, True), (1, True), (2, False), (3, False)):
        report = validate(broken, make_spec(allowed_rejected_rows=allowed))
        assert (report.rejected_rows, report.cohort_rejected) == (2, rejected)
        assert report.accepted.manifest.height == 4


def test_a_column_finding_refuses_the_cohort_however_many_rows_are_allowed(tables, make_spec) -> None:
    report = validate(with_clinical(tables, pl.lit("x").alias("ward")), make_spec(allowed_rejected_rows=100))
    assert report.cohort_rejected
    assert report.rejected_rows == 6
    assert all(table.height == 0 for _, table in report.accepted)
    assert report.accepted.clinical.columns == tables.clinical.columns


def test_a_patient_set_aside_leaves_every_table(tables, make_spec) -> None:
    broken = with_clinical(tables, pl.Series("survival_days", [1, -5, 300, 400, 500, 600]))
    report = validate(broken, make_spec(allowed_rejected_rows=1))
    for _, table in report.accepted:
        assert tables.manifest["row_key"][1] not in table["row_key"].to_list()
    assert report.accepted.methylation.height == 4


def test_names_of_unregistered_columns_are_not_repeated(tables, spec) -> None:
    """A transposed matrix has the original barcodes for column names; a finding must not carry them out."""
    barcodes = [f"TCGA-A{n}-00{n}{n}" for n in range(6)]
    transposed = pl.DataFrame({"row_key": ["HLA-DOB", "ENSG1"], **{code: [0.0, 1.0] for code in barcodes}})
    report = validate(replace(tables, expression=transposed), spec)
    text = repr(report) + report.explanation + str(rejections_frame(report.rejections).rows())
    assert report.cohort_rejected
    assert not any(code in text for code in barcodes)
    assert ("FEATURE_SET", "expression", "#2", 2) in found(report)


@pytest.mark.parametrize("tag", ["CONTROLLED", "CONTROLLED_ACCESS", "dbGaP-controlled", "TcgaControlledTier"])
def test_controlled_access_refuses_the_cohort(tag, tables, make_spec) -> None:
    tags = pl.Series("dua_tag", [tag] + ["RELEASE_REVIEWED"] * 5)
    one_row = replace(tables, manifest=tables.manifest.with_columns(tags))
    report = validate(one_row, make_spec(allowed_rejected_rows=6))
    assert ("CONTROLLED_ACCESS", "manifest", "dua_tag", 1) in found(report)
    assert report.cohort_rejected
    everywhere = replace(tables, manifest=tables.manifest.with_columns(pl.lit(tag).alias("dua_tag")))
    report = validate(everywhere, make_spec(dua_tag=tag))
    assert found(report) == {("CONTROLLED_ACCESS", "manifest", "dua_tag", 6)}
    contradiction = validate(tables, make_spec(dua_tag=tag))
    assert ("CONTROLLED_ACCESS", "manifest", "dua_tag", 6) in found(contradiction)


def test_an_open_tag_that_is_not_reviewed_is_valid(tables, make_spec) -> None:
    """The tag blocks the release, not the reading (8-1 §1.1)."""
    pending = replace(tables, manifest=tables.manifest.with_columns(pl.lit("UNDER_REVIEW").alias("dua_tag")))
    assert validate(pending, make_spec(dua_tag="UNDER_REVIEW")).rejections == ()


@pytest.mark.parametrize(
    ("unit", "valid", "broken"),
    [
        (
            "tpm",
            [0.0, 0.5, 1e6],
            [(-0.5, "RANGE"), (1e6 + 1e-3, "RANGE"), (1.7e308, "RANGE"), (np.inf, "NON_FINITE"), (None, "MISSING")],
        ),
        (
            "count",
            [0.0, 7.0, 1e9],
            [
                (-1.0, "RANGE"),
                (0.5, "RANGE"),
                (1e9 + 1, "RANGE"),
                (1.7e308, "RANGE"),
                (np.nan, "NON_FINITE"),
                (None, "MISSING"),
            ],
        ),
        (
            "log2_expression",
            [-64.0, 0.0, 64.0],
            [(-64.1, "RANGE"), (64.1, "RANGE"), (-1.7e308, "RANGE"), (-np.inf, "NON_FINITE"), (None, "MISSING")],
        ),
    ],
)
def test_expression_units(unit, valid, broken, tables, make_spec) -> None:
    spec = make_spec(expression={"unit": unit, "annotation": "x", "panel": ["G"]})
    cells = [*valid, *valid]
    matrix = pl.DataFrame({"row_key": tables.manifest["row_key"], "G": cells})
    assert validate(replace(tables, expression=matrix), spec).rejections == ()
    for value, code in broken:
        changed = matrix.with_columns(pl.Series("G", [*cells[:-1], value], dtype=pl.Float64))
        assert found(validate(replace(tables, expression=changed), spec)) == {(code, "expression", "G", 1)}


@pytest.mark.parametrize(
    ("unit", "valid", "broken"),
    [
        ("beta", [0.0, None, 1.0], [(-1e-9, "RANGE"), (1.0 + 1e-9, "RANGE"), (np.nan, "NON_FINITE")]),
        (
            "m_value",
            [-53.0, None, 53.0],
            [(-53.1, "RANGE"), (53.1, "RANGE"), (1.7e308, "RANGE"), (np.inf, "NON_FINITE")],
        ),
    ],
)
def test_methylation_units(unit, valid, broken, tables, make_spec) -> None:
    """Null is a detection failure and valid; NaN is not a way to write null."""
    spec = make_spec(methylation={"unit": unit, "annotation": "x", "panel": ["cg1"]})
    cells = [*valid, 0.5, 0.5]
    matrix = pl.DataFrame({"row_key": tables.methylation["row_key"], "cg1": cells})
    assert validate(replace(tables, methylation=matrix), spec).rejections == ()
    for value, code in broken:
        changed = matrix.with_columns(pl.Series("cg1", [*cells[:-1], value], dtype=pl.Float64))
        assert found(validate(replace(tables, methylation=changed), spec)) == {(code, "methylation", "cg1", 1)}


@pytest.mark.parametrize(
    ("column", "dtype", "code"),
    [
        ("survival_days", pl.Float64, "DTYPE"),
        ("died", pl.Boolean, "DTYPE"),
        ("smoker", pl.Float64, "DTYPE"),
        ("marker", pl.String, "DTYPE"),
        ("age", pl.Duration("ms"), "DTYPE"),
        ("age", pl.Datetime("ms"), "FORBIDDEN_FIELD"),
    ],
)
def test_registered_columns_of_another_type(column, dtype, code, tables, spec) -> None:
    report = validate(with_clinical(tables, pl.col(column).cast(dtype)), spec)
    assert found(report) == {(code, "clinical", column, 6)}


def test_categories_stored_as_numbers_are_of_another_type(tables, spec) -> None:
    report = validate(with_clinical(tables, pl.Series("subtype", [0, 1, 2, 0, 1, 2])), spec)
    assert found(report) == {("DTYPE", "clinical", "subtype", 6)}


def test_harmless_encodings_are_accepted_and_stored_in_the_registered_types(tables, spec) -> None:
    encoded = CohortTables(
        manifest=tables.manifest.with_columns(pl.all().exclude("row_key").cast(pl.Categorical)),
        expression=tables.expression.with_columns(
            pl.lit(7).alias("HLA-DOB"), pl.col("ENSG00000012048").cast(pl.Float32)
        ),
        methylation=tables.methylation,
        clinical=tables.clinical.with_columns(
            pl.col("subtype").cast(pl.Enum(["A", "B", "C"])),
            pl.col("age").cast(pl.UInt8),
            pl.lit(None).alias("smoker"),
        ),
    )
    report = validate(encoded, spec)
    assert report.rejections == ()
    for name, table in report.accepted:
        assert table.schema == tables.frame(name).schema


def test_accepted_tables_have_registered_column_order_and_manifest_row_order(tables, spec) -> None:
    shuffled = tables.map(lambda _, table: table.select(reversed(table.columns)).reverse())
    report = validate(replace(shuffled, manifest=tables.manifest), spec)
    assert report.rejections == ()
    assert all(table.equals(tables.frame(name)) for name, table in report.accepted)


def test_tables_that_are_absent_or_not_registered(tables, make_spec) -> None:
    spec = make_spec()
    assert ("FEATURE_SET", "expression", None, 6) in found(validate(replace(tables, expression=None), spec))
    narrow = make_spec(methylation=None)
    assert ("UNKNOWN_FIELD", "methylation", None, 6) in found(validate(tables, narrow))


@pytest.mark.parametrize("table", ["manifest", "expression", "methylation", "clinical"])
def test_a_table_without_usable_keys_refuses_the_cohort(table, tables, spec) -> None:
    keyless = replace(tables, **{table: tables.frame(table).drop("row_key")})
    assert ("FEATURE_SET", table, "row_key", tables.frame(table).height) in found(validate(keyless, spec))
    for keys in (pl.lit(1), pl.lit(None), pl.struct(pl.lit(1).alias("x"))):
        numbered = replace(tables, **{table: tables.frame(table).with_columns(keys.alias("row_key"))})
        report = validate(numbered, spec)
        assert ("DTYPE", table, "row_key", tables.frame(table).height) in found(report)
        assert report.cohort_rejected


def test_everything_is_reported_at_once(tables, spec) -> None:
    broken = with_clinical(tables, pl.lit("x").alias("mrn"), pl.Series("age", [17, 50, 50, 50, 50, 50]))
    assert found(validate(broken, spec)) == {
        ("FORBIDDEN_FIELD", "clinical", "#9 (mrn)", 6),
        ("RANGE", "clinical", "age", 1),
    }


def test_synthetic_rows_pass_the_same_validator(tables, spec) -> None:
    keys = pl.Series("row_key", [f"S-{n:06d}" for n in range(1, 7)])
    wide = to_wide(tables).with_columns(keys)
    assert validate(from_wide(wide, spec), spec).rejections == ()
    report = validate(from_wide(wide.with_columns(tables.manifest["row_key"]), spec), spec)
    assert found(report) == {("CATEGORY", "manifest", "split", 6)}  # a real row's token on a synthetic row


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("source", "GEO"),
        ("batch_id", "REFERENCE"),
        ("batch_id", "B-03"),
        ("split", "synthetic"),
        ("split", "Train"),
        ("dua_tag", "PENDING"),
        ("modality_mask", "clinical,expression,methylation"),
        ("modality_mask", "expression,methylation"),
    ],
)
def test_near_misses_in_the_manifest(column, value, tables, spec) -> None:
    """Values that exist elsewhere, in another order or for synthetic rows only."""
    cells = [*tables.manifest[column][:2], value, *tables.manifest[column][3:]]
    changed = replace(tables, manifest=tables.manifest.with_columns(pl.Series(column, cells)))
    assert found(validate(changed, spec)) == {("CATEGORY", "manifest", column, 1)}


def test_a_real_row_cannot_carry_a_synthetic_key(tables, spec) -> None:
    renamed = tables.map(lambda _, t: t.with_columns(pl.col("row_key").str.replace("^P", "S")))
    assert found(validate(renamed, spec)) == {("CATEGORY", "manifest", "split", 6)}


def test_a_cell_with_two_faults_of_one_kind_counts_once(tables, spec) -> None:
    renamed = tables.map(lambda _, t: t.with_columns(pl.col("row_key").str.replace("^P-000104", "S-000001")))
    manifest = renamed.manifest.with_columns(pl.Series("split", ["Train", *tables.manifest["split"][1:]]))
    assert found(validate(replace(renamed, manifest=manifest), spec)) == {("CATEGORY", "manifest", "split", 1)}


def test_whole_number_columns_of_any_width_hold_counts(tables, make_spec) -> None:
    spec = make_spec(expression={"unit": "count", "annotation": "x", "panel": ["G"]})
    for dtype in (pl.Int64, pl.UInt64, pl.Int8, pl.Float32):
        matrix = pl.DataFrame({"row_key": tables.manifest["row_key"], "G": pl.Series([0, 1, 2, 3, 4, 5], dtype=dtype)})
        report = validate(replace(tables, expression=matrix), spec)
        assert report.rejections == ()
        assert report.accepted.expression["G"].dtype == pl.Float64


def with_splits(tables: CohortTables, *splits: str) -> CohortTables:
    return replace(tables, manifest=tables.manifest.with_columns(pl.Series("split", splits)))


def test_a_cohort_without_rows_is_refused(tables, make_spec) -> None:
    """Claim: every needed split is named, however many rows may be set aside."""
    report = validate(tables.map(lambda _, table: table.clear()), make_spec(allowed_rejected_rows=100))
    assert found(report) == {("SPLIT_EMPTY", "manifest", f"split ({name})", 1) for name in ("public", "train", "test")}
    assert report.cohort_rejected


@pytest.mark.parametrize(
    ("splits", "empty"),
    [
        (["train"] * 3 + ["holdout"] + ["test"] * 2, {"public"}),
        (["public"] * 3 + ["holdout"] + ["test"] * 2, {"train"}),
        (["public"] * 2 + ["train"] * 3 + ["holdout"], {"test"}),
        (["public"] * 6, {"train", "test"}),
        (["public"] * 2 + ["train"] * 3 + ["test"], set()),
    ],
)
def test_a_split_that_is_needed_must_have_a_row(splits, empty, tables, make_spec) -> None:
    """Claim: the empty split is named and no other is counted; without holdout rows the test rows are non-members."""
    report = validate(with_splits(tables, *splits), make_spec(allowed_rejected_rows=100))
    assert found(report) == {("SPLIT_EMPTY", "manifest", f"split ({name})", 1) for name in empty}
    assert report.cohort_rejected == bool(empty)
    assert report.accepted.manifest.height == (0 if empty else 6)


def test_rows_set_aside_can_leave_a_split_empty(tables, make_spec) -> None:
    """Claim: the last public row, broken but tolerated, refuses the cohort; beyond tolerance it is only set aside."""
    broken = with_clinical(tables, pl.Series("age", [17, 50, 50, 50, 50, 50]))
    lone = with_splits(broken, "public", *["train"] * 3, "holdout", "test")
    age = ("RANGE", "clinical", "age", 1)
    tolerant = validate(lone, make_spec(allowed_rejected_rows=1))
    assert found(tolerant) == {age, ("SPLIT_EMPTY", "manifest", "split (public)", 1)}
    assert (tolerant.cohort_rejected, tolerant.accepted.manifest.height) == (True, 0)
    assert found(validate(lone, make_spec())) == {age}


def test_registered_selection_is_no_rejection(tables, make_spec) -> None:
    spec = make_spec(keep_labels=["A", "C"])
    broken = with_clinical(tables, pl.Series("subtype", ["A", "B", "C", None, "B", "D"]))
    chosen = select_registered(broken, spec)
    assert chosen.clinical["subtype"].to_list() == ["A", "C", None, "D"]
    assert [table.height for _, table in chosen] == [4, 4, 3, 4]
    assert found(validate(chosen, spec)) == {
        ("MISSING", "clinical", "subtype", 1),
        ("CATEGORY", "clinical", "subtype", 1),
    }
    assert select_registered(tables, make_spec()).clinical.equals(tables.clinical)


def test_selection_leaves_unusable_tables_to_the_validator(tables, make_spec) -> None:
    spec = make_spec(keep_labels=["A", "C"])
    for clinical in (tables.clinical.drop("subtype"), tables.clinical.drop("row_key")):
        broken = replace(tables, clinical=clinical)
        assert select_registered(broken, spec) == broken


def test_rejections_frame_keeps_every_figure() -> None:
    rejections = [Rejection("RANGE", "clinical", "age", 3), Rejection("FEATURE_SET", "expression", None, 6)]
    frame = rejections_frame(rejections)
    assert frame.rows() == [("RANGE", "clinical", "age", 3, False), ("FEATURE_SET", "expression", None, 6, True)]
    assert rejections_frame([]).schema == frame.schema
    assert {"FORBIDDEN_FIELD", "UNKNOWN_FIELD", "FEATURE_SET", "DTYPE"} < TABLE_CODES
