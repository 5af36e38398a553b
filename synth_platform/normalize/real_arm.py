"""Private rows after batch correction, no longer measurable: the real arm, and the rows that attacks score."""

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


def correct_attacked(rows: EncodedRows, reference: PublicReference, spec: CohortSpec) -> EncodedRows:
    """All private rows, corrected by one fit on all of them: the rows that attacks score (8-1 §3.4).

    The real arm will not do: a correction fitted on training rows fits those rows better than others, and by that alone
    they are nearer to whatever lies in the middle. This map is symmetric in the rows and blind to their split, so under
    a random split, and a table that does not depend on it, members and non-members are exchangeable.
    """
    columns = reference.encoder.omics_columns
    return fit_batch(rows, columns=columns, minimum_batch=spec.reference.minimum_batch).apply(rows)
