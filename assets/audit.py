"""Stage `audit`: evidence of everything that was judged under a plan, and its recomputation by other code."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.metadata import CODE_VERSION
from assets.partitions import cohort_of, cohort_plans, plan_of
from checks.audit import AUDIT_PASSES, CLAIM, audit_check
from checks.descriptions import describe_document
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from resources.cohorts import CohortRegistry
from resources.evidence import INPUTS, gather_evidence
from resources.home import HomeResource
from resources.ledger import LedgerResource
from synth_platform.audit.report import REPORT_FIELDS, audit
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS
from synth_platform.release.conformance import conformance

EVIDENCE = dg.AssetKey(["audit", "evidence"])
REPORT = dg.AssetKey(["audit", "report"])
PARTS = ("evidence", "conformance")


@dg.asset(
    key=EVIDENCE,
    group_name="audit",
    partitions_def=cohort_plans,
    code_version=CODE_VERSION,
    deps=[
        *(dg.AssetKey.from_user_string(name) for name in INPUTS),
        *(dg.AssetKey([code, "decision"]) for code in (*DP_GENERATORS, *CONTROLS)),
    ],
    check_specs=[schema_check_spec(EVIDENCE, cohort_plans)],
    description="What every verdict was computed from, read from the store: a run may have judged one generator only.",
)
def audit_evidence(
    context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource, ledger: LedgerResource
):
    """Evidence of the cohort and plan, with the conformance document of the code that runs."""
    evidence = gather_evidence(home, registry, cohort_of(context), plan_of(context), ledger_url=ledger.url)
    document = dict(zip(PARTS, (evidence, conformance()), strict=True))
    return dg.MaterializeResult(
        value=document,
        metadata={"generators": sorted(evidence["generators"]), "private_access": "evidence, restricted zone"},
        check_results=[schema_check(describe_document(document, PARTS), EVIDENCE, home.validations(context, EVIDENCE))],
    )


@dg.asset(
    key=REPORT,
    group_name="audit",
    partitions_def=cohort_plans,
    code_version=CODE_VERSION,
    ins={"evidence": dg.AssetIn(key=EVIDENCE)},
    check_specs=[
        schema_check_spec(REPORT, cohort_plans),
        check_spec(AUDIT_PASSES, REPORT, cohort_plans, description=CLAIM, blocking=True),
    ],
    description=CLAIM,
)
def audit_report(context: dg.AssetExecutionContext, home: HomeResource, evidence: Mapping[str, Any]):
    """The audit of the stored evidence."""
    scope = {"cohort": cohort_of(context), "plan": plan_of(context)}
    report = audit(evidence["evidence"], evidence["conformance"], expected=scope).as_dict()
    return dg.MaterializeResult(
        value=report,
        metadata={"status": report["status"], "checks": report["passed"] + report["failed"]},
        check_results=[
            schema_check(describe_document(report, REPORT_FIELDS), REPORT, home.validations(context, REPORT)),
            audit_check(report, REPORT),
        ],
    )


audit_assets = [audit_evidence, audit_report]
