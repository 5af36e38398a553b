"""Decisions: the release rule over all gates, one per synthetic table. Always materialised, eligible or not."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from assets.generators import partitions_of
from assets.metadata import CODE_VERSION, ledger_table
from assets.partitions import cohort_of, plan_of
from checks.descriptions import DECISION_FIELDS, describe_document
from checks.known_verdicts import KNOWN_VERDICT, known_verdict_check
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import ELIGIBLE, decision_check
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS, GeneratorCode
from synth_platform.generators.protocol import GeneratorState
from synth_platform.release.assess import assess
from synth_platform.release.verdicts import verdict_names


def decision_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/decision`."""
    key = dg.AssetKey([code, "decision"])
    partitions = partitions_of(code)
    extra = (
        check_spec(ELIGIBLE, key, partitions, description="The release rule lets this table leave the building.")
        if code in DP_GENERATORS
        else check_spec(KNOWN_VERDICT, key, partitions, description="The gates judge this control as they must.")
    )

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={
            "tables": dg.AssetIn(key=[code, "synthetic"]),
            "state": dg.AssetIn(key=[code, "checkpoint"]),
            "power": dg.AssetIn(key=["gates", "power"]),
            **{name: dg.AssetIn(key=[code, name]) for name in verdict_names(code)},
        },
        check_specs=[schema_check_spec(key, partitions), extra],
        description="The release decision with its reasons.",
    )
    def decision(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        ledger: LedgerResource,
        home: HomeResource,
        tables: pl.DataFrame,
        state: GeneratorState,
        power: Mapping[str, Any],
        **verdicts: Mapping[str, Any],
    ):
        judged = assess(
            spec=registry.spec(cohort_of(context)),
            code=code,
            plan_key=plan_of(context) or None,
            tables=tables,
            state=state,
            verdicts=verdicts,
            power=power,
            ledger=ledger.ledger(),
            store=ledger.store(),
        ).as_dict()
        verdict = decision_check(judged, key) if code in DP_GENERATORS else known_verdict_check(judged, key)
        return dg.MaterializeResult(
            value=judged,
            metadata={
                "decision": judged["decision"],
                "reasons": judged["reasons"],
                "notes": judged["notes"],
                "registration": judged["registration"],
                "ledger_status": judged["ledger"]["status"],
                "ledger_reasons": judged["ledger"]["reasons"],
                "ledger_entries": judged["ledger"]["entries"],
                "ledger": ledger_table(ledger.rows(judged["ledger"]["entries"])),
            },
            check_results=[
                schema_check(describe_document(judged, DECISION_FIELDS), key, home.validations(context, key)),
                verdict,
            ],
        )

    return decision


decision_assets = [decision_asset(code) for code in (*DP_GENERATORS, *CONTROLS)]
