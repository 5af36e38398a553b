"""Gates: the verdicts on every synthetic table. Their figures are functions of private rows and stay restricted."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from assets.generators import partitions_of
from assets.metadata import CODE_VERSION
from assets.partitions import cohort_of
from checks.descriptions import VERDICT_FIELDS, describe_document
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import VERDICT, verdict_check
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS, GeneratorCode
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE, Gate
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.release.verdicts import judged_instead


def gate_asset(code: GeneratorCode, gate: Gate) -> dg.AssetsDefinition:
    """`<code>/<gate>`: one verdict, with its status as a check that people can read."""
    key = dg.AssetKey([code, gate.name])
    partitions = partitions_of(code)

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={
            "reference": dg.AssetIn(key=["public", "reference"]),
            "corrected": dg.AssetIn(key=["normalized", "batch_corrected"]),
            "attacked": dg.AssetIn(key=["normalized", "attacked"]),
            "tables": dg.AssetIn(key=[code, "synthetic"]),
            "power": dg.AssetIn(key=["gates", "power"]),
        },
        check_specs=[
            schema_check_spec(key, partitions),
            check_spec(VERDICT, key, partitions, description=gate.claim),
        ],
        description=gate.claim,
    )
    def verdict(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        reference: PublicReference,
        corrected: EncodedRows,
        attacked: EncodedRows,
        tables: pl.DataFrame,
        power: Mapping[str, Any],
    ):
        spec = registry.spec(cohort_of(context))
        with quiet_errors(gate.name):
            judged = gate.judge(spec, reference, corrected, attacked, tables)
        return dg.MaterializeResult(
            value=judged,
            metadata={"status": judged["status"], "private_access": "gate, restricted zone"},
            check_results=[
                schema_check(describe_document(judged, VERDICT_FIELDS), key, home.validations(context, key)),
                verdict_check(judged, gate, code, power, judged_instead(spec, code).get(gate.name), key),
            ],
        )

    return verdict


gate_assets = [gate_asset(code, gate) for code in (*DP_GENERATORS, *CONTROLS) for gate in (*GATES, INFERENCE_GATE)]
