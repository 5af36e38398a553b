"""What follows from private e-values, whatever they are of: the list, the decision on it, its audit."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.list_releases import list_release_asset
from assets.metadata import CODE_VERSION, ledger_table, significant, table
from assets.partitions import cohort_of, plan_of
from checks.audit import AUDIT_PASSES, audit_check
from checks.descriptions import DISCOVERIES_FIELDS, E_VALUE_FIELDS, LIST_DECISION_FIELDS, describe_document
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import ELIGIBLE, decision_check
from resources.cohorts import CohortRegistry
from resources.evidence import gather_list_evidence
from resources.home import HomeResource
from resources.ledger import LedgerResource
from synth_platform.audit.discoveries import audit_discoveries
from synth_platform.audit.report import REPORT_FIELDS
from synth_platform.discovery.documents import Study, discoveries_document, e_values_document
from synth_platform.discovery.plot import discoveries_png
from synth_platform.privacy.affordable import require_affordable
from synth_platform.privacy.private_table import PrivateTable, unledgered
from synth_platform.release.discovery import Stage, decide_discoveries
from synth_platform.release.discovery_evidence import DOCUMENTS

SHOWN = 20
LIST_CLAIM = "Code that shares nothing with the discoveries recomputes the list, every cost and the decision."
LIST_COLUMNS = ("rank", "feature", "private log e-value", "discovered")


def measured(
    context: dg.AssetExecutionContext,
    home: HomeResource,
    ledger: LedgerResource,
    spec: Any,
    study: Study[Any],
    rows: PrivateTable[Any],
    key: dg.AssetKey,
):
    """The private e-values of a study, paid for or found paid, as the result of the asset `key`."""
    curator = ledger.curator(spec, run_id=context.run.run_id)
    require_affordable(study.peel, rows, curator, ledger.ledger(), spec.privacy.domain)
    document = e_values_document(
        study,
        lambda query: rows.measure(query, curator),
        rows=rows.fingerprint,
        outside=unledgered(rows.accesses),
    )
    for note in curator.notes:
        context.log.info(note)
    return dg.MaterializeResult(
        value=document,
        metadata={
            "contrast": document["contrast"],
            "statistic": document["statistic"]["name"],
            "hypotheses": document["hypotheses"],
            "method": document["method"],
            "size": document["size"],
            "mu": document["mu"],
            "ledger_entries": document["entries"],
            "ledger": ledger_table(ledger.rows(document["entries"])),
        },
        check_results=[schema_check(describe_document(document, E_VALUE_FIELDS), key, home.validations(context, key))],
    )


def discoveries_asset(stage: Stage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/discoveries`: the list in order, with what e-BH makes of it."""
    key = dg.AssetKey([stage, "discoveries"])

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={"e_values": dg.AssetIn(key=[stage, "private_e_values"])},
        check_specs=[schema_check_spec(key, partitions)],
        description="Selected hypotheses by private e-value, and those that boosted e-BH discovers at the level.",
    )
    def discoveries(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        e_values: Mapping[str, Any],
    ):
        spec = registry.contrasted(cohort_of(context))
        plan = spec.discovery_plan(plan_of(context))
        document = discoveries_document(e_values, plan.alpha)
        picture = home.validations(context, key) / "discoveries.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(discoveries_png(document, f"{spec.title}: {plan.key}"))
        shown = [dict(zip(LIST_COLUMNS, _cells(line), strict=True)) for line in document["list"][:SHOWN]]
        return dg.MaterializeResult(
            value=document,
            metadata={
                "discoveries": document["discoveries"],
                "alpha": document["alpha"],
                "hypotheses": document["hypotheses"],
                "list": table(shown, LIST_COLUMNS),
                "picture": dg.MetadataValue.path(str(picture)),
                "ledger_entries": list(e_values["entries"]),
            },
            check_results=[
                schema_check(describe_document(document, DISCOVERIES_FIELDS), key, home.validations(context, key))
            ],
        )

    return discoveries


def list_decision_asset(stage: Stage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/decision`: whether the list may leave, and the independent audit of it."""
    key = dg.AssetKey([stage, "decision"])

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        ins={
            "e_values": dg.AssetIn(key=[stage, "private_e_values"]),
            "discoveries": dg.AssetIn(key=[stage, "discoveries"]),
        },
        check_specs=[
            schema_check_spec(key, partitions),
            check_spec(ELIGIBLE, key, partitions, description="The list may leave: ledger, form, stated error rate."),
        ],
        description="Whether the list may leave the building, with reasons.",
    )
    def decision(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        ledger: LedgerResource,
        home: HomeResource,
        e_values: Mapping[str, Any],
        discoveries: Mapping[str, Any],
    ):
        spec = registry.contrasted(cohort_of(context))
        judged = decide_discoveries(
            spec=spec,
            stage=stage,
            plan=spec.discovery_plan(plan_of(context)),
            e_values=e_values,
            discoveries=discoveries,
            ledger=ledger.ledger(),
            store=ledger.store(),
        )
        return dg.MaterializeResult(
            value=judged,
            metadata={
                "decision": judged["decision"],
                "reasons": judged["reasons"],
                "mu": judged["mu"],
                "epsilon": significant(judged["epsilon"]),
                "delta": judged["delta"],
                "false discovery rate": judged["fdr"]["level"],
                "registration": judged["registration"],
                "ledger_status": judged["ledger"]["status"],
                "ledger_entries": judged["ledger"]["entries"],
                "ledger": ledger_table(ledger.rows(judged["ledger"]["entries"])),
            },
            check_results=[
                schema_check(describe_document(judged, LIST_DECISION_FIELDS), key, home.validations(context, key)),
                decision_check(judged, key),
            ],
        )

    return decision


def list_audit_asset(stage: Stage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/audit`: the list, its costs and its decision once more, by code that shares nothing with them."""
    key = dg.AssetKey([stage, "audit"])

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        deps=[dg.AssetKey([stage, name]) for name in DOCUMENTS],
        check_specs=[
            schema_check_spec(key, partitions),
            check_spec(AUDIT_PASSES, key, partitions, description=LIST_CLAIM, blocking=True),
        ],
        description=LIST_CLAIM,
    )
    def list_audit(
        context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource, ledger: LedgerResource
    ):
        cohort, plan = cohort_of(context), plan_of(context)
        evidence = gather_list_evidence(home, registry, stage, cohort, plan, ledger_url=ledger.url)
        report = audit_discoveries(evidence, expected={"cohort": cohort, "plan": plan, "stage": stage}).as_dict()
        return dg.MaterializeResult(
            value=report,
            metadata={"status": report["status"], "checks": report["passed"] + report["failed"]},
            check_results=[
                schema_check(describe_document(report, REPORT_FIELDS), key, home.validations(context, key)),
                audit_check(report, key),
            ],
        )

    return list_audit


def stage_assets(stage: Stage, partitions: dg.PartitionsDefinition[Any]) -> list[dg.AssetsDefinition]:
    """Everything of a stage that follows from its private e-values."""
    return [
        discoveries_asset(stage, partitions),
        list_decision_asset(stage, partitions),
        list_audit_asset(stage, partitions),
        list_release_asset(stage, partitions),
    ]


def _cells(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return line["rank"], line["feature"], f"{line['log_e']:.2f}", "yes" if line["discovered"] else "no"
