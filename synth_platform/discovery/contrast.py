"""A contrast of a cohort: from its closed tables to the rows that an e-value is computed of, and what is asked of them.

Which patients are cases and which are controls follows from each one's own record, so the join costs nothing. The
table is named by all private rows of the cohort, whatever the contrast, so that the same patients under another domain
are recognised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.discovery_options import Contrast, DiscoveryPlan
from synth_platform.discovery.documents import Study
from synth_platform.discovery.planned import contrast_statistic, released_of
from synth_platform.discovery.scores import SizesError
from synth_platform.discovery.statistics.log_rank import Survival
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray, LogEStatistic
from synth_platform.normalize.encoder import Encoder
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex
from synth_platform.privacy.private_table import PrivateTable, combine
from synth_platform.privacy.within_row import within_row


@dataclass(frozen=True, eq=False)
class ContrastRows:
    """Patients of a contrast.

    values: [n, m] standardised features in the order of `family`. outcome: [n] cases, or what was seen of each patient.
    source: digest of the private rows they were taken from; it names the table, and no statistic looks at it.
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
    return combine(
        cast(Mapping[str, PrivateTable[object]], {"matrix": matrix, "clinical": clinical}),
        within_row(
            "discovery.contrast",
            lambda parts: contrast_rows(
                cast(EncodedRows, parts["matrix"]), cast(pl.DataFrame, parts["clinical"]), contrast, encoder
            ),
        ),
        digest=lambda rows: rows.source,
    )


def contrast_rows(rows: EncodedRows, clinical: pl.DataFrame, contrast: Contrast, encoder: Encoder) -> ContrastRows:
    """Open rows of a contrast, from all private rows and their clinical table."""
    source = content_digest(rows)
    values = rows.x[:, [encoder.features.index(feature) for feature in family(contrast, encoder)]]
    if contrast.statistic == "log_rank":
        return ContrastRows(values, Survival(rows.time, rows.event.astype(np.bool_)), source)
    keys = pl.DataFrame({"row_key": rows.key.tolist()})
    joined = keys.join(clinical, on="row_key", how="left", maintain_order="left")
    value = joined[contrast.variable].cast(pl.String)
    case = value.is_in(list(contrast.case)).fill_null(False).to_numpy()
    others = value.is_in(list(contrast.control)) if contrast.control else value.is_not_null()
    kept = case | others.fill_null(False).to_numpy()
    return ContrastRows(values[kept], case[kept], source)


def contrast_study(spec: CohortSpec, plan: DiscoveryPlan, reference: PublicReference) -> Study[ContrastRows]:
    """What a plan asks of the closed rows of its contrast.

    Raises CohortSpecError for a contrast that is not registered, or a plan for which no e-value can be made.
    """
    contrast = spec.contrast(plan.contrast)
    features = family(contrast, reference.encoder)

    def log_e(statistic: LogEStatistic[Any], rows: ContrastRows) -> FloatArray:
        if group_sizes(rows) != contrast.sizes:
            raise SizesError(plan.contrast)
        return statistic.log_e(rows.values, rows.outcome)

    return Study(
        plan=plan,
        hypotheses=len(features),
        made_for=contrast_statistic(contrast, plan, len(features), reference.rows),
        expected=released_of(plan, len(features)),
        log_e=log_e,
        names=lambda positions: [features[position] for position in positions],
        compared={
            "variable": contrast.variable,
            "case": sorted(contrast.case),
            "control": sorted(contrast.control),
            "features": list(contrast.features),
            "family": sha256_hex(canonical_json(list(features))),
        },
    )


def group_sizes(rows: ContrastRows) -> tuple[int, ...]:
    """Cases and controls of two groups, or all rows of a survival contrast: a private figure until it is registered."""
    if isinstance(rows.outcome, Survival):
        return (len(rows.values),)
    cases = int(rows.outcome.sum())
    return (cases, len(rows.values) - cases)
