"""A contrast of a cohort: from its closed tables to the rows that an e-value is computed of, still closed.

Which patients are cases and which are controls follows from each one's own record, so the join costs nothing. The
table is named by all private rows of the cohort, whatever the contrast, so that the same patients under another domain
are recognised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl

from synth_platform.contract.discovery_options import Contrast
from synth_platform.discovery.statistics.log_rank import Survival
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray
from synth_platform.normalize.encoder import Encoder
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.private_table import PrivateTable, combine
from synth_platform.privacy.within_row import within_row


@dataclass(frozen=True, eq=False)
class ContrastRows:
    """Patients of a contrast.

    values: [n, m] standardised features in the order of `family`. outcome: [n] cases, or what was seen of each patient.
    source: digest of the private rows they were taken from.
    """

    values: FloatArray
    outcome: BoolArray | Survival
    source: bytes


def family(contrast: Contrast, encoder: Encoder) -> tuple[str, ...]:
    """The hypotheses of a contrast: features of its matrices, in the encoder's order."""
    return tuple(f for matrix in encoder.matrices if matrix.modality in contrast.features for f in matrix.panel)


def close_contrast(
    matrix: PrivateTable[EncodedRows], clinical: PrivateTable[pl.DataFrame], contrast: Contrast, encoder: Encoder
) -> PrivateTable[ContrastRows]:
    """The closed rows of a contrast: all private splits, because no gate looks at them.

    A missing cell of an omics feature counts as the public mean, a missing value of the contrast's variable leaves the
    patient out.
    """
    columns = [encoder.features.index(feature) for feature in family(contrast, encoder)]

    def assemble(parts: Mapping[str, object]) -> ContrastRows:
        rows, frame = cast(EncodedRows, parts["matrix"]), cast(pl.DataFrame, parts["clinical"])
        source, values = content_digest(rows), rows.x[:, columns]
        if contrast.statistic == "log_rank":
            return ContrastRows(values, Survival(rows.time, rows.event.astype(np.bool_)), source)
        keys = pl.DataFrame({"row_key": rows.key.tolist()})
        value = keys.join(frame, on="row_key", how="left", maintain_order="left")[contrast.variable].cast(pl.String)
        case = value.is_in(list(contrast.case)).fill_null(False).to_numpy()
        others = value.is_in(list(contrast.control)) if contrast.control else value.is_not_null()
        control = others.fill_null(False).to_numpy() & ~case
        kept = case | control
        return ContrastRows(values[kept], case[kept], source)

    return combine(
        cast(Mapping[str, PrivateTable[object]], {"matrix": matrix, "clinical": clinical}),
        within_row("discovery.contrast", assemble),
        digest=lambda rows: rows.source,
    )
