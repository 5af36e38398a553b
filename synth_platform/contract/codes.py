"""Rejections: what the contract found, as code, table, column and count; never a cell or a row key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from synth_platform.contract.cohort_sections import TableName

RejectionCode = Literal[
    "FORBIDDEN_FIELD",  # a field that may hold an identifier, free text or a date, at any depth
    "UNKNOWN_FIELD",  # a table or column the cohort does not register
    "FEATURE_SET",  # a registered column is absent, or a matrix has a column that is not in its panel
    "DTYPE",  # a registered column is stored as another type than its rule asks for
    "CONTROLLED_ACCESS",  # rows under a controlled-access tag, which the contract excludes altogether
    "SPLIT_EMPTY",  # a split without which nothing can be fitted or judged has no row
    "RANGE",  # a number outside the registered bounds or unit
    "CATEGORY",  # a value outside the registered set
    "NON_FINITE",  # NaN or infinity; missing is null
    "MISSING",  # null where the rule has no missing values
    "DUPLICATE_UNIT",  # a patient with more than one row in a table
    "KEY_FORMAT",  # a row key that is no opaque token
    "KEY_SET",  # a row whose table and modality mask disagree, or that no manifest row announces
]
TABLE_CODES: frozenset[RejectionCode] = frozenset(
    {"FORBIDDEN_FIELD", "UNKNOWN_FIELD", "FEATURE_SET", "DTYPE", "CONTROLLED_ACCESS", "SPLIT_EMPTY"}
)


@dataclass(frozen=True)
class Rejection:
    """One finding.

    code:   codes in `TABLE_CODES` refuse the whole cohort, the others set single rows aside.
    column: a registered column by name. A name that is not registered is data until it is (a transposed table has
            patient barcodes for column names), so such a column is named by its place: "#3", or "#3 (patient_id)"
            with the forbidden term found; "split (train)" is the split that is empty. None: the table itself.
    count:  rows concerned; a code in `TABLE_CODES` concerns all rows of the table, and counts at least 1; an empty
            split counts 1, which says nothing of how many rows the others have.
    """

    code: RejectionCode
    table: TableName
    column: str | None
    count: int

    @property
    def refuses_cohort(self) -> bool:
        """True if no row of the cohort can be accepted."""
        return self.code in TABLE_CODES


def column_place(position: int, term: str | None = None) -> str:
    """How a column without a registered name is called; `position` counts from 0, the label from 1."""
    return f"#{position + 1}" + (f" ({term})" if term else "")
