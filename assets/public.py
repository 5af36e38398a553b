"""Stage `public`: everything the private path may know beforehand, made of public rows alone."""

import dagster as dg

from assets.metadata import CODE_VERSION
from assets.partitions import omics_cohorts
from checks.descriptions import describe_reference
from checks.schema import schema_check, schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from synth_platform.contract.tables import CohortTables
from synth_platform.normalize.reference import build_reference

REFERENCE = dg.AssetKey(["public", "reference"])


@dg.asset(
    key=REFERENCE,
    group_name="public",
    partitions_def=omics_cohorts,
    code_version=CODE_VERSION,
    ins={"public_rows": dg.AssetIn(key=["public", "rows"])},
    check_specs=[schema_check_spec(REFERENCE, omics_cohorts)],
)
def public_reference(
    context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource, public_rows: CohortTables
):
    """L1 parameters, label and batch lists, and the encoded public rows (8-1 §1.2 L1, §2.1 stage A)."""
    reference = build_reference(public_rows, registry.spec(context.partition_key))
    return dg.MaterializeResult(
        value=reference,
        metadata={
            "features": len(reference.rows.features),
            "public_rows": len(reference.rows),
            "labels": list(reference.labels),
            "n_ref": reference.n_ref,
        },
        check_results=[schema_check(describe_reference(reference), REFERENCE, home.validations(context, REFERENCE))],
    )
