"""Sections of a cohort.yaml: privacy, source, matrices, clinical variables, outcome, endpoints, plans."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from synth_platform.contract.names import forbidden_term
from synth_platform.contract.options import Share, Strict

EndpointName = Literal["c_index", "macro_f1", "auroc", "spearman"]
ClinicalKind = Literal["continuous", "binary", "categorical", "ordinal", "survival_time", "event"]
ExpressionUnit = Literal["tpm", "count", "log2_expression"]
MethylationUnit = Literal["beta", "m_value"]
MatrixName = Literal["expression", "methylation"]
TableName = Literal["manifest", "expression", "methylation", "clinical"]


class Budget(Strict):
    """The cap of a privacy domain: the composed RDP figure of all its entries stays at or below epsilon at delta."""

    epsilon: PositiveFloat
    delta: Share


class Privacy(Strict):
    """Whose budget is spent, per what unit, against which public size."""

    domain: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
    unit: Literal["patient"] = "patient"
    adjacency: Literal["add_remove"] = "add_remove"
    n_ref: PositiveInt
    budget: Budget

    @model_validator(mode="after")
    def _delta_below_one_in_n(self) -> Privacy:
        if self.budget.delta >= 1 / self.n_ref:
            raise ValueError(f"budget.delta must be below 1/n_ref = {1 / self.n_ref:.3g} (8-1 §2.1)")
        return self


class Source(Strict):
    """Where rows come from: `virtual` draws a world from options; `tables` reads Parquet or CSV contract tables.

    `keys` says what the files' keys are: "reissue" replaces every one of them, "opaque" keeps tokens that the steward
    made, which no origin system knows.
    """

    reader: Literal["virtual", "tables"]
    files: dict[Literal["manifest", "expression", "methylation", "clinical"], str] = Field(default_factory=dict)
    key_column: str = "row_key"
    keys: Literal["reissue", "opaque"] = "reissue"
    batch_column: str = "batch_id"
    split_column: str = "split"
    options: dict[str, Any] = Field(default_factory=dict)


class Modality(Strict):
    """One matrix: its unit and its frozen panel: feature ids in order, written out or in a text file, one id a line."""

    unit: ExpressionUnit | MethylationUnit
    panel: tuple[str, ...] | str
    annotation: str
    id_pattern: str | None = None

    @model_validator(mode="after")
    def _panel_is_a_set_of_ids(self) -> Modality:
        if isinstance(self.panel, str):
            return self
        if not self.panel or len(set(self.panel)) != len(self.panel):
            raise ValueError("panel: needs at least one feature id, and each one once")
        if self.id_pattern is not None:
            other = [feature for feature in self.panel if re.fullmatch(self.id_pattern, feature) is None]
            if other:
                raise ValueError(f"panel: {len(other)} id(s) do not match id_pattern, the first is {other[0]!r}")
        return self


class ClinicalVariable(Strict):
    """A registered clinical variable and its value rule. Bounds are inclusive, in `unit`."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    kind: ClinicalKind
    unit: str = "1"
    minimum: float | None = None
    maximum: float | None = None
    categories: tuple[str, ...] = ()
    nullable: bool = False
    integer: bool = False
    description: str = ""

    @model_validator(mode="after")
    def _has_its_rule(self) -> ClinicalVariable:
        term = forbidden_term(self.name)
        if term is not None:
            raise ValueError(f"{self.name}: a field about {term!r} cannot be registered (8-1 §1.1)")
        if None not in (self.minimum, self.maximum) and self.minimum > self.maximum:  # type: ignore[operator]
            raise ValueError(f"{self.name}: minimum is above maximum")
        if len(set(self.categories)) != len(self.categories):
            raise ValueError(f"{self.name}: a category appears twice")
        if self.kind in ("categorical", "ordinal") and len(self.categories) < 2:
            raise ValueError(f"{self.name}: a {self.kind} variable needs at least two categories")
        if self.kind in ("continuous", "survival_time") and (self.minimum is None or self.maximum is None):
            raise ValueError(f"{self.name}: a {self.kind} variable needs minimum and maximum")
        if self.kind in ("survival_time", "event") and self.nullable:
            raise ValueError(f"{self.name}: an outcome variable cannot be nullable")
        return self

    @property
    def columns(self) -> int:
        """How many features it becomes as a covariate: one per category, else one; one more where it may be missing."""
        return (len(self.categories) if self.kind == "categorical" else 1) + self.nullable


class Outcome(Strict):
    """The variables the endpoints and conditioning cells are made of: class label, survival time and event."""

    label: str
    time: str
    event: str


class Endpoint(Strict):
    """A pre-registered endpoint with its chance level (8-1 §3.2); `top_k` is for the rank endpoint's Jaccard."""

    name: EndpointName
    chance: Annotated[float, Field(ge=0, lt=1)]
    top_k: PositiveInt = 10


class Plan(Strict):
    """One (epsilon, delta) promise of a statistic release."""

    epsilon: PositiveFloat
    delta: Share


class ReferenceOptions(Strict):
    """The public arm: which split it is and how small a batch may be before batch correction skips it."""

    split: Literal["public"] = "public"
    minimum_batch: PositiveInt = 8


class Synthetic(Strict):
    """How many rows a table has and the sampling seeds R >= 5; the first seed's table is the one that is released."""

    rows: PositiveInt
    seeds: Annotated[tuple[int, ...], Field(min_length=5)]
