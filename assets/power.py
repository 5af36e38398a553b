"""Stage `gates`: what the gates can tell on the rows of a cohort, before any generator is judged on them."""

import dagster as dg

from assets.metadata import CODE_VERSION
from assets.partitions import omics_cohorts
from checks.descriptions import VERDICT_FIELDS, describe_document
from checks.power import CLAIM, POWER, power_check
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from synth_platform.normalize.batch import BatchCorrection
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.trials.power import gate_power
from synth_platform.trials.stage import Stage

KEY = dg.AssetKey(["gates", "power"])


@dg.asset(
    key=KEY,
    group_name="gates",
    partitions_def=omics_cohorts,
    code_version=CODE_VERSION,
    ins={
        "reference": dg.AssetIn(key=["public", "reference"]),
        "matrix": dg.AssetIn(key=["normalized", "matrix"]),
        "correction": dg.AssetIn(key=["normalized", "batch_correction"]),
        "corrected": dg.AssetIn(key=["normalized", "batch_corrected"]),
    },
    check_specs=[
        schema_check_spec(KEY, omics_cohorts),
        check_spec(POWER, KEY, omics_cohorts, description=CLAIM),
    ],
    description=CLAIM,
)
def gates_power(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    home: HomeResource,
    reference: PublicReference,
    matrix: PrivateTable,
    correction: BatchCorrection,
    corrected: EncodedRows,
):
    """How often a fresh draw of the truth passes each endpoint and gate, and how many rows would make it 90 %."""
    spec = registry.spec(context.partition_key)
    with quiet_errors("power of the gates"):
        rows = matrix.open_for_gate("power of the gates")
        judged = gate_power(Stage(spec, reference, rows, corrected, correction))
    return dg.MaterializeResult(
        value=judged,
        metadata={"status": judged["status"], "private_access": "gate, seeded trials, restricted zone"},
        check_results=[
            schema_check(describe_document(judged, VERDICT_FIELDS), KEY, home.validations(context, KEY)),
            power_check(judged, KEY),
        ],
    )
