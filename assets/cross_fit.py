"""Utility by cross-fitting, for cohorts whose test split alone is too small to judge by: trainings that never leave."""

import dagster as dg

from assets.metadata import CODE_VERSION
from assets.partitions import cohort_of, cohort_plans, plan_of
from checks.cross_fit import CLAIM, cross_fit_check
from checks.descriptions import VERDICT_FIELDS, describe_document
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import VERDICT
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from synth_platform.contract.cohort_spec import DP_GENERATORS, GeneratorCode
from synth_platform.normalize.reference import PublicReference
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.trials.cross_fit import cross_fit_utility, not_registered

NAME = "cross_fit_utility"


def cross_fit_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/cross_fit_utility`: the generator trained on all folds but one, judged on every private row."""
    key = dg.AssetKey([code, NAME])

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=cohort_plans,
        code_version=CODE_VERSION,
        ins={
            "reference": dg.AssetIn(key=["public", "reference"]),
            "matrix": dg.AssetIn(key=["normalized", "matrix"]),
        },
        check_specs=[
            schema_check_spec(key, cohort_plans),
            check_spec(VERDICT, key, cohort_plans, description=CLAIM),
        ],
        description=CLAIM,
    )
    def verdict(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        home: HomeResource,
        reference: PublicReference,
        matrix: PrivateTable,
    ):
        spec = registry.spec(cohort_of(context))
        judged = not_registered(spec)
        if judged is None:
            with quiet_errors(NAME):
                rows = matrix.open_for_gate("cross-fit utility")
                judged = cross_fit_utility(code, spec, reference, spec.plan(plan_of(context)), rows)
        return dg.MaterializeResult(
            value=judged,
            metadata={"status": judged["status"], "private_access": "gate, seeded trials, restricted zone"},
            check_results=[
                schema_check(describe_document(judged, VERDICT_FIELDS), key, home.validations(context, key)),
                cross_fit_check(judged, key),
            ],
        )

    return verdict


cross_fit_assets = [cross_fit_asset(code) for code in DP_GENERATORS]
