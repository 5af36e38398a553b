"""The real arm: private rows as gates and controls compare them, batch-corrected and no longer measurable."""

from __future__ import annotations

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.normalize.batch import BatchCorrection, fit_batch
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows


def correct_real_arm(
    rows: EncodedRows, reference: PublicReference, spec: CohortSpec
) -> tuple[BatchCorrection, EncodedRows]:
    """Batch correction fitted on the training split alone, and all private rows corrected by it (8-1 §1.2 L2a).

    Every corrected row depends on all training rows, so the result is plain rows, not a closed table: nothing computed
    from it has a bounded sensitivity. The correction does not know labels: with the label as covariate, a test row's
    own label would enter its features.
    """
    correction = fit_batch(
        rows.where_split("train"),
        columns=reference.encoder.omics_columns,
        minimum_batch=spec.reference.minimum_batch,
    )
    return correction, correction.apply(rows)
