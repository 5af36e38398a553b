"""Value rules: what a cell of each registered column may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import polars as pl

from synth_platform.contract.codes import RejectionCode
from synth_platform.contract.cohort_sections import ClinicalVariable, TableName
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import (
    REAL_SPLITS,
    REFERENCE_BATCH,
    SYNTHETIC_SPLIT,
    matrices,
    panel,
)

Storage = Literal["real", "integer", "text"]
_STORED_AS: Mapping[Storage, type[pl.DataType]] = {"real": pl.Float64, "integer": pl.Int64, "text": pl.String}


@dataclass(frozen=True)
class ValueRule:
    """What a column's cells may be.

    storage:  "real" accepts any float or integer column, "integer" any integer column, "text" String, Categorical or
              Enum; accepted tables hold Float64, Int64 and String.
    lower, upper: inclusive bounds of a number; `above` excludes the lower bound itself. whole: no fraction.
    values:   the allowed texts.
    nullable: null is a missing value; without it, null is a violation.
    outside:  code of a value that is not allowed.
    """

    storage: Storage
    lower: float | None = None
    upper: float | None = None
    above: bool = False
    whole: bool = False
    values: tuple[str, ...] = ()
    nullable: bool = False
    outside: RejectionCode = "RANGE"

    def accepts(self, dtype: pl.DataType) -> bool:
        """Whether a column of this type can hold the rule's values."""
        if self.storage == "text":
            return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
        return dtype.is_integer() or (self.storage == "real" and dtype.is_float())

    @property
    def dtype(self) -> type[pl.DataType]:
        """Type of the column in an accepted table."""
        return _STORED_AS[self.storage]

    def __str__(self) -> str:
        if self.storage == "text":
            body = " | ".join(self.values)
        else:
            opening = "(" if self.above or self.lower is None else "["
            lower = "-inf" if self.lower is None else f"{self.lower:.12g}"
            upper = "inf)" if self.upper is None else f"{self.upper:.12g}]"
            body = f"{opening}{lower}, {upper}" + (" whole" if self.whole or self.storage == "integer" else "")
        return body + (" or null" if self.nullable else "")


KEY_RULE = ValueRule("text")  # the type of row_key; its format is the business of `keys`

# What a unit can physically hold. A single cell beyond it, such as 1.7e308, would be finite and still overflow every
# mean and distance after it. TPM are parts of a million by definition. No flow cell gives 1e9 reads to one gene. A
# ratio of two 64-bit counts has a logarithm within +-64; a double-precision beta cannot be nearer to 0 or 1 than 2^-53.
HIGHEST_TPM = 1e6
HIGHEST_COUNT = 1e9
LOG2_LIMIT = 64.0
M_LIMIT = 53.0

# Sequencing gives every gene of a measured sample a number (0 is a measurement), so expression has no nulls;
# an array probe can fail detection, so methylation has (8-1 §1.1).
_UNIT_RULES: Mapping[str, ValueRule] = {
    "tpm": ValueRule("real", lower=0, upper=HIGHEST_TPM),
    "count": ValueRule("real", lower=0, upper=HIGHEST_COUNT, whole=True),
    "log2_expression": ValueRule("real", lower=-LOG2_LIMIT, upper=LOG2_LIMIT),
    "beta": ValueRule("real", lower=0, upper=1, nullable=True),
    "m_value": ValueRule("real", lower=-M_LIMIT, upper=M_LIMIT, nullable=True),
}


def value_rules(spec: CohortSpec, table: TableName) -> dict[str, ValueRule]:
    """Rule of every registered column of a table except row_key, in the order of an accepted table."""
    if table == "manifest":
        return _manifest_rules(spec)
    if table == "clinical":
        return {variable.name: _clinical_rule(variable) for variable in spec.clinical}
    modality = matrices(spec).get(table)
    return {} if modality is None else dict.fromkeys(panel(spec, table), _UNIT_RULES[modality.unit])


def modality_masks(spec: CohortSpec) -> tuple[str, ...]:
    """Every mask a patient of this cohort can have; the clinical table holds the outcome and is always observed."""
    names = tuple(matrices(spec))
    subsets = (chosen for size in range(len(names) + 1) for chosen in combinations(names, size))
    return tuple(",".join((*chosen, "clinical")) for chosen in subsets)


def _manifest_rules(spec: CohortSpec) -> dict[str, ValueRule]:
    values = {
        "source": (spec.source_code,),
        "batch_id": (*spec.batches, REFERENCE_BATCH),
        "split": (*REAL_SPLITS, SYNTHETIC_SPLIT),
        "dua_tag": (spec.dua_tag,),
        "modality_mask": modality_masks(spec),
    }
    return {column: ValueRule("text", values=allowed, outside="CATEGORY") for column, allowed in values.items()}


def _clinical_rule(variable: ClinicalVariable) -> ValueRule:
    if variable.kind in ("categorical", "ordinal"):
        return ValueRule("text", values=variable.categories, nullable=variable.nullable, outside="CATEGORY")
    if variable.kind in ("binary", "event"):
        return ValueRule("integer", lower=0, upper=1, nullable=variable.nullable, outside="CATEGORY")
    lower, above = variable.minimum, False
    if variable.kind == "survival_time" and (lower is None or lower <= 0):
        lower, above = 0.0, True  # the generators take the logarithm of follow-up (8-1 §2.2)
    return ValueRule(
        "integer" if variable.integer else "real",
        lower=lower,
        upper=variable.maximum,
        above=above,
        nullable=variable.nullable,
    )
