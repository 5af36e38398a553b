"""The public reference: everything a generator may know of public rows, made once and free of budget."""

from __future__ import annotations

from dataclasses import dataclass

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables
from synth_platform.normalize.batch import BatchCorrection, fit_batch
from synth_platform.normalize.encoder import Encoder, fit_encoder
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.within_row import WithinRow, within_row


@dataclass(frozen=True, eq=False)
class PublicReference:
    """Public rows in model space with the constants made of them.

    encoder: L0 and L1. rows: the public rows, corrected by batch_correction. batch_correction: L2(a) fitted on the
    public arm; None if fewer than two of its batches are large enough. labels, batches, latent_batches, n_ref: as the
    cohort registers them; latent_batches are names, a subset of batches.
    """

    encoder: Encoder
    rows: EncodedRows
    labels: tuple[str, ...]
    batches: tuple[str, ...]
    latent_batches: tuple[str, ...]
    n_ref: int
    batch_correction: BatchCorrection | None = None


def build_reference(public: CohortTables, spec: CohortSpec) -> PublicReference:
    """Encoder and batch-corrected public rows of a cohort; raises EncodeError if a row is not of the public split.

    The correction keeps label differences (X_i is the label): small public batches differ in their mix of labels, and a
    fit without it would take that difference for a batch effect.
    """
    encoder = fit_encoder(public, spec)
    rows = encoder.encode(public)
    correction = fit_batch(
        rows, columns=encoder.omics_columns, minimum_batch=spec.reference.minimum_batch, preserve_labels=True
    )
    corrects = len(correction.batches) >= 2
    return PublicReference(
        encoder=encoder,
        rows=correction.apply_frozen(rows) if corrects else rows,
        labels=spec.labels,
        batches=spec.batches,
        latent_batches=spec.latent_batches,
        n_ref=spec.privacy.n_ref,
        batch_correction=correction if corrects else None,
    )


def public_batch_map(reference: PublicReference) -> WithinRow[EncodedRows, EncodedRows]:
    """Correct private rows by the public batch parameters: public constants, so a within-row map at no cost.

    Rows of a batch that the public arm does not know, or knows too few rows of, stay as they are.
    """
    correction = reference.batch_correction
    return within_row("normalize.public_batch", (lambda rows: rows) if correction is None else correction.apply_frozen)
