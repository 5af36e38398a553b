"""The feature manifest: every feature with its unit, rule and provenance, frozen by its SHA-256 (8-1 §1.1)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.rules import value_rules
from synth_platform.contract.tables import matrices

FEATURE_COLUMNS = ("feature_id", "modality", "kind", "unit", "annotation_version", "statistic_source", "value_rule")


@dataclass(frozen=True)
class FeatureManifest:
    """One row per feature, in the order of the accepted tables; all columns String.

    feature_id:         column name in its table.
    modality:           expression, methylation or clinical.
    kind:               kind of a clinical variable; "continuous" in a matrix.
    unit:               measurement unit.
    annotation_version: the annotation an id belongs to; for clinical variables, the cohort's dictionary.
    statistic_source:   the public rows that the feature's standardisation is estimated from (8-1 §1.2 L1).
    value_rule:         allowed values, as a data dictionary prints them.
    sha256:             digest of the content, the same whatever library wrote the table.

    Raises ValueError if `sha256` is not the digest of `frame`: a manifest that changed is another manifest.
    """

    frame: pl.DataFrame
    sha256: str

    def __post_init__(self) -> None:
        if self.sha256 != content_sha256(self.frame):
            raise ValueError("feature manifest: content and SHA-256 disagree; it was altered after it was frozen")


def feature_manifest(spec: CohortSpec) -> FeatureManifest:
    """The feature manifest of a cohort: expression and methylation panels, then clinical variables."""
    statistics = f"{spec.name}: {spec.reference.split} rows ({spec.source_code})"
    rows: list[tuple[str, ...]] = []
    for matrix, modality in matrices(spec).items():
        rows += [
            (feature, matrix, "continuous", modality.unit, modality.annotation, statistics, str(rule))
            for feature, rule in value_rules(spec, matrix).items()
        ]
    rules, dictionary = value_rules(spec, "clinical"), f"{spec.name}: clinical dictionary"
    rows += [(v.name, "clinical", v.kind, v.unit, dictionary, statistics, str(rules[v.name])) for v in spec.clinical]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(FEATURE_COLUMNS, pl.String), orient="row")
    return FeatureManifest(frame, content_sha256(frame))


def content_sha256(frame: pl.DataFrame) -> str:
    """SHA-256 over the rows as canonical JSON lines (UTF-8, keys sorted, no spaces), in row order.

    Raises ValueError if the columns are not `FEATURE_COLUMNS`.
    """
    if tuple(frame.columns) != FEATURE_COLUMNS:
        raise ValueError(f"feature manifest: columns must be {', '.join(FEATURE_COLUMNS)}, in this order")
    digest = hashlib.sha256()
    for row in frame.iter_rows(named=True):
        line = json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()
