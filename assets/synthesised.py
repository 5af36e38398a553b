"""What follows from protected margins, whichever policy protects them: model, tables, utility, audit, release."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from assets.metadata import CODE_VERSION, private_table_metadata, significant, table
from assets.partitions import cohort_of, plan_of
from checks.audit import AUDIT_PASSES, audit_check
from checks.descriptions import MARGINS_DECISION_FIELDS, describe_document, describe_fitted, describe_replicates
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import VERDICT, decision_check, margins_utility_check
from resources.cohorts import CohortRegistry
from resources.evidence import gather_margins_evidence
from resources.home import HomeResource
from resources.ledger import LedgerResource
from synth_platform.audit.margins import audit_margins
from synth_platform.audit.report import REPORT_FIELDS
from synth_platform.margins.measures.heat_map import heat_map_png
from synth_platform.margins.measures.tables import documented
from synth_platform.margins.planned import compare, model, tables
from synth_platform.margins.replicates import coded, replicate, stacked
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.release.margins import (
    DP_STAGE,
    SDC_STAGE,
    MarginsStage,
    protected_margins,
)
from synth_platform.release.margins_rederive import real_rows

PROTECTED = {SDC_STAGE: "coarsened", DP_STAGE: "measured"}
CLAIM = (
    "Code that shares nothing with the margins recomputes counts, bounds, residuals, tables, costs and the decision."
)
# Dagster infers a type from every annotation of an input, and takes neither unions nor protocols.
Counted = Any  # PrivateTable[Rows] | MarginSet
Protected = Any  # MarginSet | NoisyMargins
Model = Any  # Fitted
SHOWN = 60  # margins in a table of metadata


def model_asset(stage: MarginsStage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/model`: the distribution of maximum entropy that has the protected margins."""
    key = dg.AssetKey([stage, "model"])

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={"protected": dg.AssetIn(key=[stage, PROTECTED[stage]])},
        check_specs=[schema_check_spec(key, partitions)],
        description="The distribution of maximum entropy that has the margins, with what it misses of each.",
    )
    def fitted(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        protected: Protected,
    ):
        plan, margins = registry.census(cohort_of(context)).plan(plan_of(context)), protected_margins(protected)
        found = model(margins, plan)
        report = found.report
        worst = sorted(report.residuals.items(), key=lambda item: -item[1])[:SHOWN]
        return dg.MaterializeResult(
            value=found,
            metadata={
                "engine": report.engine,
                "status": report.status,
                "cycles": report.cycles,
                "largest residual": significant(report.largest_residual),
                "residuals": table([{"margin": name, "residual": f"{miss:.2g}"} for name, miss in worst],
                                   ("margin", "residual")),
            },
            check_results=[schema_check(describe_fitted(found, margins), key, home.validations(context, key))],
        )  # fmt: skip

    return fitted


def synthetic_asset(stage: MarginsStage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/synthetic`: the plan's tables, drawn from the model."""
    key = dg.AssetKey([stage, "synthetic"])

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={"fitted": dg.AssetIn(key=[stage, "model"])},
        check_specs=[schema_check_spec(key, partitions)],
        description="Synthetic rows of the model, with the labels and types of the source.",
    )
    def synthetic(context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource, fitted: Model):
        plan = registry.census(cohort_of(context)).plan(plan_of(context))
        frame = stacked(tables(fitted, plan))
        return dg.MaterializeResult(
            value=frame,
            metadata={
                "replicates": plan.replicates,
                "seed": plan.seed,
                **private_table_metadata(frame),
            },  # a plan that is blocked tells no total,
            check_results=[
                schema_check(
                    describe_replicates(frame, fitted.domain, plan.replicates), key, home.validations(context, key)
                )
            ],
        )

    return synthetic


def utility_asset(stage: MarginsStage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/utility_gate`: the first table beside the private rows, for the restricted zone."""
    key = dg.AssetKey([stage, "utility_gate"])

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={
            "rows": dg.AssetIn(key=[SDC_STAGE, "curated"]),
            "protected": dg.AssetIn(key=[stage, PROTECTED[stage]]),
            "synthesised": dg.AssetIn(key=[stage, "synthetic"]),
        },
        check_specs=[
            schema_check_spec(key, partitions),
            check_spec(VERDICT, key, partitions, description="Every table that a margin holds is acceptably kept."),
        ],
        description="How well tables of two and three variables, and propensity models, tell synthetic from real.",
    )
    def utility_gate(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        rows: Counted,
        protected: Protected,
        synthesised: pl.DataFrame,
    ):
        spec, margins = registry.census(cohort_of(context)), protected_margins(protected)
        plan = spec.plan(plan_of(context))
        with quiet_errors("comparing with private rows"):
            real = real_rows(rows, margins.domain, "utility of synthetic tables")
            document = compare(real, coded(replicate(synthesised), margins.domain), margins, plan)
        picture = home.validations(context, key) / "two_way.png"
        metadata = {"status": document["status"]}
        if "two_way" in document:
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_bytes(heat_map_png(documented(document["two_way"]), f"{spec.title}: {plan_of(context)}"))
            metadata["picture"] = dg.MetadataValue.path(str(picture))
        return dg.MaterializeResult(
            value=document,
            metadata=metadata,
            check_results=[
                schema_check(describe_document(document, tuple(document)), key, home.validations(context, key)),
                margins_utility_check(document, key),
            ],
        )

    return utility_gate


def decided(context: dg.AssetExecutionContext, home: HomeResource, judged: Mapping[str, Any], key: dg.AssetKey):
    """A decision document as the result of the asset `key`."""
    return dg.MaterializeResult(
        value=judged,
        metadata={
            name: judged[name]
            for name in ("decision", "reasons", "notes", "policy", "assurance", "registration", "epsilon", "delta")
            if judged[name] is not None
        }
        | {"fit": judged["fit"]["status"], "utility": judged["utility"]["status"]},
        check_results=[
            schema_check(describe_document(judged, MARGINS_DECISION_FIELDS), key, home.validations(context, key)),
            decision_check(judged, key),
        ],
    )


def audit_asset(stage: MarginsStage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/audit`: everything once more, by code that shares nothing with it."""
    key = dg.AssetKey([stage, "audit"])

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        deps=[dg.AssetKey([SDC_STAGE, "curated"]), *(dg.AssetKey([stage, name]) for name in stored_in(stage))],
        check_specs=[
            schema_check_spec(key, partitions),
            check_spec(AUDIT_PASSES, key, partitions, description=CLAIM, blocking=True),
        ],
        description=CLAIM,
    )
    def margins_audit(
        context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource, ledger: LedgerResource
    ):
        cohort, plan = cohort_of(context), plan_of(context)
        evidence = gather_margins_evidence(home, registry, stage, cohort, plan, ledger_url=ledger.url)
        report = audit_margins(evidence, expected={"cohort": cohort, "plan": plan, "stage": stage}).as_dict()
        return dg.MaterializeResult(
            value=report,
            metadata={"status": report["status"], "checks": report["passed"] + report["failed"]},
            check_results=[
                schema_check(describe_document(report, REPORT_FIELDS), key, home.validations(context, key)),
                audit_check(report, key),
            ],
        )

    return margins_audit


def stored_in(stage: MarginsStage) -> tuple[str, ...]:
    """Names of the stored artefacts of a plan that its release rests on."""
    gates = ("disclosure_gate",) if stage == SDC_STAGE else ()
    return (PROTECTED[stage], *gates, "model", "synthetic", "utility_gate", "decision")
