"""What curation did to each column, for the person who judges it.

Labels and numbers of rows come from microdata: the report belongs in the restricted zone and says so itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from synth_platform.margins.domain import Kind

StepName = Literal["grouped", "bottom_coded", "top_coded", "banded", "combined", "missing"]


@dataclass(frozen=True)
class CurationStep:
    """One step on one column.

    labels: what it made, in order. rows: rows that now have one of these labels by this step. merged: by label, the
    categories that became it; numbers that were coded or banded are told by their labels alone. small: whether the
    combined category itself has fewer rows than the limit.
    """

    step: StepName
    labels: tuple[str, ...]
    rows: int
    merged: Mapping[str, tuple[str, ...]] | None = None
    small: bool | None = None


@dataclass(frozen=True)
class ColumnCuration:
    """A column after curation: its type, its number of categories, and the steps in the order they were taken."""

    name: str
    kind: Kind
    categories: int
    steps: tuple[CurationStep, ...]


@dataclass(frozen=True)
class CurationReport:
    """Steps by column, and what was dropped. Restricted: labels and rows are those of microdata."""

    source: str
    rows: int
    dropped: tuple[str, ...]
    columns: tuple[ColumnCuration, ...]
    zone: Literal["restricted"] = "restricted"

    def to_json(self) -> dict[str, object]:
        """The report in JSON values; null where a field says nothing about a step."""
        told: dict[str, object] = json.loads(json.dumps(asdict(self)))
        return told
