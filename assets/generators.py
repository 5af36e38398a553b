"""Stages named after the generators: checkpoint and synthetic table of each."""

from typing import Any

import dagster as dg

from assets.metadata import CODE_VERSION, ledger_table, open_table_metadata
from assets.partitions import cohort_of, cohort_plans, omics_cohorts, plan_of
from checks.descriptions import describe_state, describe_synthetic
from checks.known_verdicts import CONTROL_IN_WORDS
from checks.schema import schema_check, schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS, GeneratorCode
from synth_platform.generators.build import fit_measured, fresh_rows, make_generator
from synth_platform.generators.controls import fit_control
from synth_platform.generators.protocol import GeneratorState, Measured
from synth_platform.generators.registry import sample
from synth_platform.normalize.batch import BatchCorrection
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.replicates import draw_replicates
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.private_errors import quiet_errors


def partitions_of(code: GeneratorCode) -> dg.PartitionsDefinition[Any]:
    """Cohort x plan for what depends on a privacy target, cohort alone for controls."""
    return cohort_plans if code in DP_GENERATORS else omics_cohorts


def dp_checkpoint_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/checkpoint` of a DP generator: post-processing of paid-for statistics."""
    key = dg.AssetKey([code, "checkpoint"])

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=cohort_plans,
        code_version=CODE_VERSION,
        ins={
            "reference": dg.AssetIn(key=["public", "reference"]),
            "measured": dg.AssetIn(key=["statistics", code]),
        },
        check_specs=[schema_check_spec(key, cohort_plans)],
        description=f"{code} fitted from public rows and statistic releases; it never sees the private table.",
    )
    def checkpoint(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        ledger: LedgerResource,
        home: HomeResource,
        reference: PublicReference,
        measured: Measured,
    ):
        spec = registry.spec(cohort_of(context))
        state = fit_measured(make_generator(code, reference, spec, spec.plan(plan_of(context))), measured)
        return dg.MaterializeResult(
            value=state,
            metadata={
                "ledger_entries": list(state.entries),
                "ledger": ledger_table(ledger.rows(state.entries)),
            },
            check_results=[schema_check(describe_state(state), key, home.validations(context, key))],
        )

    return checkpoint


def control_checkpoint_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/checkpoint` of a control: rows to draw from, restricted, without a ledger entry."""
    key = dg.AssetKey([code, "checkpoint"])

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=omics_cohorts,
        code_version=CODE_VERSION,
        ins={
            "reference": dg.AssetIn(key=["public", "reference"]),
            "correction": dg.AssetIn(key=["normalized", "batch_correction"]),
            "corrected": dg.AssetIn(key=["normalized", "batch_corrected"]),
        },
        check_specs=[schema_check_spec(key, omics_cohorts)],
        description=f"Control, never released: {CONTROL_IN_WORDS[code]}.",
    )
    def checkpoint(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        reference: PublicReference,
        correction: BatchCorrection,
        corrected: EncodedRows,
    ):
        spec = registry.spec(cohort_of(context))
        fresh = fresh_rows(spec, reference, correction)
        with quiet_errors(code):
            state = fit_control(code, reference=reference, train=corrected.where_split("train"), fresh=fresh)
        return dg.MaterializeResult(
            value=state,
            metadata={"ledger_entries": [], "unledgered_accesses": list(state.unledgered)},
            check_results=[schema_check(describe_state(state), key, home.validations(context, key))],
        )

    return checkpoint


def synthetic_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/synthetic`: one table per sampling seed, in native units and types."""
    key = dg.AssetKey([code, "synthetic"])
    partitions = partitions_of(code)

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={
            "reference": dg.AssetIn(key=["public", "reference"]),
            "state": dg.AssetIn(key=[code, "checkpoint"]),
        },
        check_specs=[schema_check_spec(key, partitions)],
        description="Synthetic tables, one per sampling seed; the first seed's is the one that may be released.",
    )
    def synthetic(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        reference: PublicReference,
        state: GeneratorState,
    ):
        spec = registry.spec(cohort_of(context))
        tables = draw_replicates(
            lambda seed: sample(state, rows=spec.synthetic.rows, seed=seed), reference.encoder, spec.synthetic.seeds
        )
        return dg.MaterializeResult(
            value=tables,
            metadata={**open_table_metadata(tables), "ledger_entries": list(state.entries)},
            check_results=[schema_check(describe_synthetic(tables, spec), key, home.validations(context, key))],
        )

    return synthetic


generator_assets = [
    *(dp_checkpoint_asset(code) for code in DP_GENERATORS),
    *(control_checkpoint_asset(code) for code in CONTROLS),
    *(synthetic_asset(code) for code in (*DP_GENERATORS, *CONTROLS)),
]
