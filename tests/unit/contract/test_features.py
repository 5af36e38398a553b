"""The feature manifest lists every registered feature once, and its SHA-256 freezes all of it."""

from __future__ import annotations

import hashlib
import io

import polars as pl
import pytest

from synth_platform.contract.features import FeatureManifest, feature_manifest


def test_one_line_per_feature_in_table_order(spec, tables) -> None:
    frame = feature_manifest(spec).frame
    columns = [c for t in (tables.expression, tables.methylation, tables.clinical) for c in t.columns if c != "row_key"]
    assert frame["feature_id"].to_list() == columns
    rows = {row["feature_id"]: row for row in frame.iter_rows(named=True)}
    assert rows["HLA-DOB"] == {
        "feature_id": "HLA-DOB",
        "modality": "expression",
        "kind": "continuous",
        "unit": "tpm",
        "annotation_version": "GENCODE 36",
        "statistic_source": "small: public rows (TCGA)",
        "value_rule": "[0, 1000000]",
    }
    assert rows["cg00000029"]["value_rule"] == "[0, 1] or null"
    assert rows["age"]["unit"] == "year"
    assert rows["age"]["value_rule"] == "[18, 90] whole"
    assert rows["survival_days"]["value_rule"] == "(0, 5000] whole"
    assert rows["stage"]["value_rule"] == "I | II | III or null"


def test_digest_is_that_of_canonical_json_lines(spec) -> None:
    """Recomputed with sha256 over text written by hand, so that any other tool can check a stored manifest."""
    manifest = feature_manifest(spec)
    lines = [
        "{"
        f'"annotation_version":"{row["annotation_version"]}","feature_id":"{row["feature_id"]}","kind":"{row["kind"]}",'
        f'"modality":"{row["modality"]}","statistic_source":"{row["statistic_source"]}","unit":"{row["unit"]}",'
        f'"value_rule":"{row["value_rule"]}"'
        "}\n"
        for row in manifest.frame.iter_rows(named=True)
    ]
    assert manifest.sha256 == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_digest_survives_storage(spec) -> None:
    manifest = feature_manifest(spec)
    buffer = io.BytesIO()
    manifest.frame.write_parquet(buffer)
    buffer.seek(0)
    assert FeatureManifest(pl.read_parquet(buffer), manifest.sha256).sha256 == manifest.sha256


@pytest.mark.parametrize("column", ["feature_id", "modality", "kind", "unit", "annotation_version", "statistic_source"])
def test_an_altered_manifest_is_refused(column, spec) -> None:
    manifest = feature_manifest(spec)
    altered = manifest.frame.with_columns(pl.lit("x").alias(column))
    with pytest.raises(ValueError, match="altered after it was frozen"):
        FeatureManifest(altered, manifest.sha256)
    with pytest.raises(ValueError, match="altered after it was frozen"):
        FeatureManifest(manifest.frame.reverse(), manifest.sha256)


def test_every_registered_fact_changes_the_digest(make_spec) -> None:
    expression = {"unit": "tpm", "annotation": "GENCODE 36", "panel": ["G1", "G2"]}
    variants = [
        expression,
        expression | {"unit": "count"},
        expression | {"annotation": "GENCODE 37"},
        expression | {"panel": ["G2", "G1"]},
        expression | {"panel": ["G1", "G3"]},
    ]
    digests = [feature_manifest(make_spec(expression=variant)).sha256 for variant in variants]
    assert len(set(digests)) == len(variants)
