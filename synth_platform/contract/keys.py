"""Row checks across columns and tables: opaque keys, one row per patient, masks, splits, access tags."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from synth_platform.contract.codes import Rejection, RejectionCode
from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.names import words
from synth_platform.contract.rules import modality_masks
from synth_platform.contract.tables import (
    NEEDED_SPLITS,
    OPAQUE_KEY,
    REAL_SPLITS,
    REFERENCE_BATCH,
    SYNTHETIC_PREFIX,
    SYNTHETIC_SPLIT,
    CohortTables,
)

_KEY = pl.col("row_key")


@dataclass
class RowFindings:
    """Findings so far, and the keys of the rows they set aside."""

    rejections: list[Rejection] = field(default_factory=list)
    keys: list[pl.Series] = field(default_factory=list)

    def add(self, code: RejectionCode, table: TableName, column: str, keys: pl.Series) -> None:
        """Record a finding for the rows with these keys, if there are any."""
        if len(keys):
            self.rejections.append(Rejection(code, table, column, len(keys)))
            self.keys.append(keys)


def check_keys(tables: CohortTables, found: RowFindings) -> None:
    """Every key is an opaque token, and stands once in its table. All copies of a repeated key are set aside.

    Which of a patient's samples to keep is decided by a rule of the source, before the contract (8-1 §1.1).
    """
    for name, table in tables:
        keys = table.select("row_key")
        found.add("MISSING", name, "row_key", keys.filter(_KEY.is_null())["row_key"])
        found.add("KEY_FORMAT", name, "row_key", keys.filter(~_KEY.str.contains(OPAQUE_KEY))["row_key"])
        repeated = keys.filter(_KEY.is_not_null() & _KEY.is_duplicated())
        found.add("DUPLICATE_UNIT", name, "row_key", repeated["row_key"])


def check_links(tables: CohortTables, spec: CohortSpec, found: RowFindings) -> None:
    """A patient has a row in exactly the tables that the modality mask names; no row is without its manifest row."""
    manifest = tables.manifest.filter(_KEY.is_not_null())
    masked = manifest.filter(pl.col("modality_mask").is_in(modality_masks(spec)))
    for name, table in tables:
        if name == "manifest":
            continue
        keys = table.select("row_key").filter(_KEY.is_not_null())
        announced = pl.col("modality_mask").str.split(",").list.contains(name)
        missing = masked.filter(announced).join(keys, on="row_key", how="anti")
        hidden = keys.join(masked.filter(~announced), on="row_key", how="semi")
        orphans = keys.join(manifest, on="row_key", how="anti")
        found.add("KEY_SET", name, "row_key", pl.concat(part["row_key"] for part in (missing, hidden, orphans)))


def check_manifest(manifest: pl.DataFrame, found: RowFindings) -> None:
    """Generated rows, and only they, have keys "S-......"; only they may stand in the reference batch."""
    synthetic = pl.col("split") == SYNTHETIC_SPLIT
    marked = manifest.filter(_KEY.str.contains(OPAQUE_KEY) & pl.col("split").is_in((*REAL_SPLITS, SYNTHETIC_SPLIT)))
    disagree = marked.filter(synthetic != _KEY.str.starts_with(SYNTHETIC_PREFIX))
    found.add("CATEGORY", "manifest", "split", disagree["row_key"])
    in_reference = manifest.filter(~synthetic & (pl.col("batch_id") == REFERENCE_BATCH))
    found.add("CATEGORY", "manifest", "batch_id", in_reference["row_key"])


def check_splits(manifest: pl.DataFrame) -> list[Rejection]:
    """The splits of a real cohort that nothing can be made or judged without, and that have no row."""
    found = set(manifest["split"].unique())
    return [Rejection("SPLIT_EMPTY", "manifest", f"split ({name})", 1) for name in NEEDED_SPLITS if name not in found]


def check_access(manifest: pl.DataFrame, spec: CohortSpec) -> list[Rejection]:
    """Rows under a tag with the word "controlled" in it, in the manifest or as the cohort's own `dua_tag`.

    Open-access data alone may be read (8-1 §1.1); "controlled" is what GDC and dbGaP call the other tier.
    """
    tags = manifest["dua_tag"].unique().drop_nulls()
    rows = manifest["dua_tag"].is_in([tag for tag in tags if _is_controlled(tag)]).sum()
    if _is_controlled(spec.dua_tag):
        rows = max(manifest.height, 1)
    return [Rejection("CONTROLLED_ACCESS", "manifest", "dua_tag", int(rows))] if rows else []


def _is_controlled(tag: str) -> bool:
    return "controlled" in words(tag)
