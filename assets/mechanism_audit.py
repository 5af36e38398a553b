"""Mechanism audits: the code that makes statistics is attacked with worst rows; no private row is read.

Noise comes from the operating system, as in production, so a re-run gives other scores: the status is the same but for
the stated false-alarm rate.
"""

import dagster as dg

from assets.metadata import CODE_VERSION
from assets.partitions import cohort_of, cohort_plans, plan_of
from checks.descriptions import VERDICT_FIELDS, describe_document
from checks.mechanism import NOT_CONTRADICTED, not_contradicted
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from synth_platform.contract.cohort_spec import DP_GENERATORS, GeneratorCode
from synth_platform.normalize.reference import PublicReference
from synth_platform.trials.mechanism_audit import mechanism_audit_document

CLAIM = "What leaves the mechanism tells no more about a worst row than the ledger charges for it."


def mechanism_audit_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/mechanism_audit`: lower bounds on the privacy cost of the build that runs here, beside its charge."""
    key = dg.AssetKey([code, "mechanism_audit"])

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=cohort_plans,
        code_version=CODE_VERSION,
        ins={"reference": dg.AssetIn(key=["public", "reference"])},
        check_specs=[
            schema_check_spec(key, cohort_plans),
            check_spec(NOT_CONTRADICTED, key, cohort_plans, description=CLAIM),
        ],
        description=CLAIM,
    )
    def audit(
        context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource, reference: PublicReference
    ):
        spec = registry.spec(cohort_of(context))
        document = mechanism_audit_document(code, spec, reference, spec.plan(plan_of(context)))
        return dg.MaterializeResult(
            value=document,
            metadata={"status": document["status"], "private_access": "none"},
            check_results=[
                schema_check(describe_document(document, VERDICT_FIELDS), key, home.validations(context, key)),
                not_contradicted(document, key),
            ],
        )

    return audit


mechanism_audit_assets = [mechanism_audit_asset(code) for code in DP_GENERATORS]
