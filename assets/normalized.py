"""Stage `normalized`: private rows in model space; the matrix stays closed, batch correction is for gates only."""

import dagster as dg

from assets.metadata import CODE_VERSION
from assets.partitions import omics_cohorts
from checks.descriptions import describe_correction, describe_rows
from checks.schema import schema_check, schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.private import stored_rows
from synth_platform.normalize.closed import encode_closed
from synth_platform.normalize.real_arm import correct_attacked, correct_real_arm
from synth_platform.normalize.reference import PublicReference
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import PrivateTable

MATRIX = dg.AssetKey(["normalized", "matrix"])
CORRECTION = dg.AssetKey(["normalized", "batch_correction"])
CORRECTED = dg.AssetKey(["normalized", "batch_corrected"])
ATTACKED = dg.AssetKey(["normalized", "attacked"])


def _out(key: dg.AssetKey, description: str) -> dg.AssetOut:
    return dg.AssetOut(key=key, group_name="normalized", description=description, code_version=CODE_VERSION)


@dg.asset(
    key=MATRIX,
    group_name="normalized",
    partitions_def=omics_cohorts,
    code_version=CODE_VERSION,
    ins={
        "reference": dg.AssetIn(key=["public", "reference"]),
        **{name: dg.AssetIn(key=["cohort", name]) for name in ("manifest", "expression", "methylation", "clinical")},
    },
    check_specs=[schema_check_spec(MATRIX, omics_cohorts)],
)
def normalized_matrix(
    context: dg.AssetExecutionContext,
    home: HomeResource,
    reference: PublicReference,
    manifest: PrivateTable,
    expression: PrivateTable,
    methylation: PrivateTable,
    clinical: PrivateTable,
):
    """L0 and L1 of the private rows: within-row maps on a closed table, so no ledger entry (8-1 §1.2)."""
    tables = {"manifest": manifest, "expression": expression, "methylation": methylation, "clinical": clinical}
    matrix = encode_closed(tables, reference)
    with quiet_errors("describing the matrix"):
        described = describe_rows(stored_rows(matrix), reference)
    return dg.MaterializeResult(
        value=matrix,
        metadata={"features": len(reference.rows.features), "private_access": "within-row maps only"},
        check_results=[schema_check(described, MATRIX, home.validations(context, MATRIX))],
    )


@dg.multi_asset(
    name="real_arm",
    partitions_def=omics_cohorts,
    ins={"reference": dg.AssetIn(key=["public", "reference"]), "matrix": dg.AssetIn(key=MATRIX)},
    outs={
        "correction": _out(
            CORRECTION, "Batch correction fitted on the training split (8-1 §1.2 L2a); for gates and controls."
        ),
        "corrected": _out(CORRECTED, "The real arm that gates compare with: private rows after batch correction."),
        "attacked": _out(
            ATTACKED, "Private rows that attacks score: the correction is fitted on all of them, whatever their split."
        ),
    },
    check_specs=[schema_check_spec(key, omics_cohorts) for key in (CORRECTION, CORRECTED, ATTACKED)],
)
def real_arm(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    home: HomeResource,
    reference: PublicReference,
    matrix: PrivateTable,
):
    """Batch correction fitted on the training split, for gates and controls (8-1 §1.2 L2a); never on the DP path.

    Attacks score rows of their own, whose correction does not know the split.
    """
    spec = registry.spec(context.partition_key)
    with quiet_errors("batch correction of the real arm"):
        rows = matrix.open_for_gate("real arm: batch correction")
        correction, corrected = correct_real_arm(rows, reference, spec)
        attacked = correct_attacked(rows, reference, spec)
        described = {key: describe_rows(arm, reference) for key, arm in ((CORRECTED, corrected), (ATTACKED, attacked))}
    access = {"private_access": "opened for gates, restricted zone; its result cannot be measured again"}
    yield dg.MaterializeResult(
        asset_key=CORRECTION,
        value=correction,
        metadata=access,
        check_results=[
            schema_check(describe_correction(correction), CORRECTION, home.validations(context, CORRECTION))
        ],
    )
    for key, arm in ((CORRECTED, corrected), (ATTACKED, attacked)):
        yield dg.MaterializeResult(
            asset_key=key,
            value=arm,
            metadata=access,
            check_results=[schema_check(described[key], key, home.validations(context, key))],
        )
