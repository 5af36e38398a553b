"""Stage `discovery`: which features differ in a registered contrast, asked through the ledger (docs/discoveries.md)."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.discovered import measured, stage_assets
from assets.metadata import CODE_VERSION
from assets.partitions import cohort_discoveries, cohort_of, plan_of
from checks.descriptions import COMPARISON_FIELDS, describe_document
from checks.schema import schema_check, schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from synth_platform.discovery.contrast import close_contrast, contrast_study
from synth_platform.discovery.plot import discoveries_png
from synth_platform.discovery.without_noise import comparison_document
from synth_platform.normalize.reference import PublicReference
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.queries import ScoreError
from synth_platform.release.discovery import DISCOVERY_STAGE

E_VALUES = dg.AssetKey([DISCOVERY_STAGE, "private_e_values"])
COMPARISON = dg.AssetKey([DISCOVERY_STAGE, "comparison"])
INS = {
    "reference": dg.AssetIn(key=["public", "reference"]),
    "matrix": dg.AssetIn(key=["normalized", "matrix"]),
    "clinical": dg.AssetIn(key=["cohort", "clinical"]),
}


@dg.asset(
    key=E_VALUES,
    group_name=DISCOVERY_STAGE,
    partitions_def=cohort_discoveries,
    code_version=CODE_VERSION,
    ins=INS,
    check_specs=[schema_check_spec(E_VALUES, cohort_discoveries)],
    description="The features with the largest e-values, chosen and told with noise; the same request again is free.",
)
def private_e_values(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    ledger: LedgerResource,
    home: HomeResource,
    reference: PublicReference,
    matrix: PrivateTable,
    clinical: PrivateTable,
):
    """Private e-values of a contrast, over all private rows."""
    spec = registry.spec(cohort_of(context))
    plan = spec.discovery_plan(plan_of(context))
    rows = close_contrast(matrix, clinical, spec.contrast(plan.contrast), reference.encoder)
    return measured(context, home, ledger, spec, contrast_study(spec, plan, reference), rows, E_VALUES)


@dg.asset(
    key=COMPARISON,
    group_name=DISCOVERY_STAGE,
    partitions_def=cohort_discoveries,
    code_version=CODE_VERSION,
    ins={**INS, "discoveries": dg.AssetIn(key=[DISCOVERY_STAGE, "discoveries"])},
    check_specs=[schema_check_spec(COMPARISON, cohort_discoveries)],
    description="The same list before noise, for the restricted zone: how many discoveries came back. No figure of it "
    "is shown here, and no release rests on it.",
)
def comparison(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    home: HomeResource,
    reference: PublicReference,
    matrix: PrivateTable,
    clinical: PrivateTable,
    discoveries: Mapping[str, Any],
):
    """What the noise cost; the picture lies beside the stored validation."""
    spec = registry.spec(cohort_of(context))
    plan = spec.discovery_plan(plan_of(context))
    with quiet_errors("comparing discoveries", readable=(ScoreError,)):
        closed = close_contrast(matrix, clinical, spec.contrast(plan.contrast), reference.encoder)
        rows = closed.open_for_gate("discoveries before noise, for comparison")
        document = comparison_document(spec, plan, reference, rows, discoveries)
        picture = home.validations(context, COMPARISON) / "before_noise.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(discoveries_png(discoveries, f"{spec.title}: {plan.key}", document["before_noise"]))
        described = describe_document(document, COMPARISON_FIELDS)
    return dg.MaterializeResult(
        value=document,
        metadata={
            "private_access": "opened for a comparison, restricted zone",
            "picture": dg.MetadataValue.path(str(picture)),
        },
        check_results=[schema_check(described, COMPARISON, home.validations(context, COMPARISON))],
    )


discovery_assets = [private_e_values, comparison, *stage_assets(DISCOVERY_STAGE, cohort_discoveries)]
