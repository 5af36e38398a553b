"""The repeated half-split audit: one step a block of trainings, results through the block store, then the verdict."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
from upath import UPath

from assets.metadata import CODE_VERSION
from assets.partitions import cohort_of, cohort_plans, plan_of
from checks.descriptions import VERDICT_FIELDS, describe_document
from checks.half_split import half_split_check
from checks.schema import SCHEMA, schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import VERDICT
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec, GeneratorCode
from synth_platform.normalize.reference import PublicReference
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.trials.blocks import BlockError, BlockStore
from synth_platform.trials.half_split import HalfSplit, block_count, dp_half_split
from synth_platform.trials.half_split_gate import (
    CLAIM,
    NAME,
    half_split_document,
    not_registered,
    registers_half_split,
)

BLOCKS = "half_split_blocks"


def half_split_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/half_split_audit`: a graph of steps, so that any executor can spread the blocks and a killed run goes on.

    A block travels through the store, not from step to step: a step that dies loses its own block and no other.
    """
    key = dg.AssetKey([code, NAME])
    specs = [
        schema_check_spec(key, cohort_plans),
        check_spec(VERDICT, key, cohort_plans, description=CLAIM),
    ]

    @dg.op(name=f"{code}_blocks", out=dg.DynamicOut(dg.Nothing))
    def blocks(context: dg.AssetExecutionContext, registry: CohortRegistry) -> Iterator[dg.DynamicOutput[None]]:
        """One output a block; none where the audit is not registered."""
        spec = registry.spec(cohort_of(context))
        for block in range(block_count(spec.gates.repetitions) if registers_half_split(spec) else 0):
            yield dg.DynamicOutput(None, mapping_key=str(block))

    @dg.op(name=f"{code}_block", ins={"after": dg.In(dg.Nothing)}, out=dg.Out(dg.Nothing))
    def block(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        reference: PublicReference,
        matrix: PrivateTable,
    ) -> None:
        """Train and attack the repetitions of one block, unless they are stored already."""
        spec = registry.spec(cohort_of(context))
        number = int(context.op_execution_context.get_mapping_key() or "0")
        with quiet_errors(NAME, readable=(BlockError,)):
            audit = _audit(code, spec, spec.plan(plan_of(context)), reference, matrix)
            computed = audit.run_block(BlockStore(_folder(home, code, spec.name, plan_of(context))), number)
        context.log.info(f"block {number}: {'computed' if computed else 'stored already'}")

    @dg.op(
        name=f"{code}_half_split",
        ins={"finished": dg.In(dg.Nothing)},
        out={"result": dg.Out(), **{spec.name: dg.Out(dg.Nothing) for spec in specs}},
    )
    def verdict(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        reference: PublicReference,
        matrix: PrivateTable,
    ) -> Iterator[Any]:
        """Judge all blocks together."""
        spec = registry.spec(cohort_of(context))
        plan = spec.plan(plan_of(context))
        if registers_half_split(spec):
            with quiet_errors(NAME, readable=(BlockError,)):
                audit = _audit(code, spec, plan, reference, matrix)
                scores = audit.collect(BlockStore(_folder(home, code, spec.name, plan_of(context))))
                judged = half_split_document(spec, code, plan, audit.halves, scores)
        else:
            judged = not_registered(spec)
        yield dg.Output(
            judged,
            "result",
            metadata={"status": judged["status"], "private_access": "audit trainings, restricted zone, never released"},
        )
        yield schema_check(describe_document(judged, VERDICT_FIELDS), key, home.validations(context, key))
        yield half_split_check(judged, spec.gates.power_floor, key)

    @dg.graph_asset(
        key=key,
        group_name=code,
        partitions_def=cohort_plans,
        code_version=CODE_VERSION,
        ins={
            "reference": dg.AssetIn(key=["public", "reference"]),
            "matrix": dg.AssetIn(key=["normalized", "matrix"]),
        },
        check_specs=specs,
        description=CLAIM,
    )
    def half_split_audit(reference, matrix):
        finished = blocks().map(lambda one: block(after=one, reference=reference, matrix=matrix))
        judged = verdict(finished=finished.collect(), reference=reference, matrix=matrix)
        return {
            "result": judged.result,
            specs[0].get_python_identifier(): getattr(judged, SCHEMA),
            specs[1].get_python_identifier(): getattr(judged, VERDICT),
        }

    return half_split_audit


def _audit(
    code: GeneratorCode, spec: CohortSpec, plan: Plan, reference: PublicReference, matrix: PrivateTable
) -> HalfSplit:
    rows = matrix.open_for_gate("half-split audit")
    return dp_half_split(code, spec, reference, plan, rows, matrix.fingerprint)


def _folder(home: HomeResource, code: GeneratorCode, cohort: str, plan: str) -> UPath:
    return home.paths.restricted.joinpath(BLOCKS, code, cohort, plan)


half_split_assets = [half_split_asset(code) for code in DP_GENERATORS]
