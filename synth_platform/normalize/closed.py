"""Private contract tables into model space without ever opening them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from synth_platform.contract.tables import CohortTables
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.private_table import PrivateTable, combine
from synth_platform.privacy.within_row import within_row


def encode_closed(
    tables: Mapping[str, PrivateTable[pl.DataFrame]], reference: PublicReference
) -> PrivateTable[EncodedRows]:
    """Join the closed contract tables by patient and encode them with the public encoder: L0 and L1 (8-1 §1.2).

    tables: manifest, clinical and the matrices; one without columns beside row_key stands for an absent modality.
    """

    def assemble(frames: Mapping[str, pl.DataFrame]) -> EncodedRows:
        present = {name: frame if frame.width > 1 else None for name, frame in frames.items()}
        return reference.encoder.encode(CohortTables(**present))  # type: ignore[arg-type]

    return combine(tables, within_row("normalize.assemble", assemble), digest=content_digest)
