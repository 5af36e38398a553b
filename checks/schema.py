"""Schema checks: one great-expectations suite over a per-column summary, cheap at 20,000 columns."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import dagster as dg
import polars as pl
from upath import UPath

from checks.specs import check_spec
from checks.summaries import Described
from synth_platform.privacy.private_errors import quiet_errors

SCHEMA = "schema"


def schema_check_spec(asset: dg.AssetKey, partitions: dg.PartitionsDefinition[Any] | None) -> dg.AssetCheckSpec:
    """The blocking schema check that every asset carries."""
    return check_spec(
        SCHEMA,
        asset,
        partitions,
        blocking=True,
        description="great-expectations suite over the artefact's column summary; see the stored validation result.",
    )


def schema_check(described: Described, asset: dg.AssetKey, folder: UPath) -> dg.AssetCheckResult:
    """Run the suite on a described artefact and store the validation (JSON and HTML) under `folder`.

    Metadata names the failed expectations and columns, never a value: summaries of private tables hold exact extremes,
    which is also why an error of the suite comes without its message.
    """
    with quiet_errors("the schema suite"):
        result = _validate(described.joined())
    failed = sorted(r["claim"] for r in result["results"] if not r["success"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "validation.json").write_text(json.dumps(result, indent=1, sort_keys=True), encoding="utf-8")
    (folder / "validation.html").write_text(_render(result, asset.to_user_string()), encoding="utf-8")
    return dg.AssetCheckResult(
        check_name=SCHEMA,
        asset_key=asset,
        passed=bool(result["success"]),
        severity=dg.AssetCheckSeverity.ERROR,
        description="; ".join(failed) or f"{len(result['results'])} expectations hold",
        metadata={
            "validation": dg.MetadataValue.path(str(folder / "validation.html")),
            "columns": described.rules.height,
            "failed_columns": dg.MetadataValue.json(described.offending(limit=50)),
        },
    )


def _validate(table: pl.DataFrame) -> dict[str, Any]:
    """Whether each claim holds, and nothing else of what great-expectations tells.

    Its metadata names the batch by a plain hash of the summary, which would confirm a guess of the private extremes.
    """
    result = (
        _batch_definition()
        .get_batch(batch_parameters={"dataframe": table.to_pandas()})
        .validate(_suite(), result_format="BOOLEAN_ONLY")
    )
    return {
        "success": bool(result.success),
        "results": [
            {
                "claim": r.expectation_config.meta["claim"],
                "expectation": r.expectation_config.type,
                "success": bool(r.success),
            }
            for r in result.results
        ],
    }


@cache
def _batch_definition() -> Any:
    import great_expectations as gx  # seconds of imports: only where a check runs

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return (
        context.data_sources.add_pandas("summary")
        .add_dataframe_asset("columns")
        .add_batch_definition_whole_dataframe("all")
    )


@cache
def _suite() -> Any:
    import great_expectations as gx
    import great_expectations.expectations as gxe

    skip = {"ignore_row_if": "either_value_is_missing"}
    return gx.ExpectationSuite(
        name=SCHEMA,
        expectations=[
            gxe.ExpectColumnValuesToBeUnique(column="column", meta={"claim": "every column appears once"}),
            gxe.ExpectColumnValuesToBeInSet(
                column="registered", value_set=[True], meta={"claim": "every column is registered"}
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="present", value_set=[True], meta={"claim": "every registered column is present"}
            ),
            gxe.ExpectColumnPairValuesToBeEqual(
                column_A="dtype",
                column_B="expected_dtype",
                **skip,
                meta={"claim": "columns have their registered type"},
            ),
            gxe.ExpectColumnMaxToBeBetween(column="non_finite", max_value=0, meta={"claim": "numbers are finite"}),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="allowed_nulls",
                column_B="nulls",
                or_equal=True,
                **skip,
                meta={"claim": "nulls only where the variable may be missing"},
            ),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="minimum",
                column_B="allowed_minimum",
                or_equal=True,
                **skip,
                meta={"claim": "values are not below their registered minimum"},
            ),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="allowed_maximum",
                column_B="maximum",
                or_equal=True,
                **skip,
                meta={"claim": "values are not above their registered maximum"},
            ),
        ],
    )


def _render(result: dict[str, Any], title: str) -> str:
    rows = "".join(
        f"<tr class='{'ok' if r['success'] else 'bad'}'><td>{'holds' if r['success'] else 'FAILS'}</td>"
        f"<td>{r['claim']}</td><td><code>{r['expectation']}</code></td></tr>"
        for r in result["results"]
    )
    return (
        "<!doctype html><meta charset='utf-8'><title>Schema validation</title>"
        "<style>body{font:15px system-ui;margin:2rem}td{padding:.3rem .8rem;border-bottom:1px solid #ddd}"
        ".ok td:first-child{color:#137333}.bad td{color:#b3261e;font-weight:600}</style>"
        f"<h1>{title}</h1><p>{'All expectations hold' if result['success'] else 'The artefact is refused'}.</p>"
        f"<table>{rows}</table>"
    )
