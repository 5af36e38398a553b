"""cohort.yaml: everything about a cohort that is fixed, publicly, before its private rows are read."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from synth_platform.contract.discovery_options import Discovery, DiscoveryPlan, plan_of_key, require_contrasts
from synth_platform.contract.names import forbidden_term
from synth_platform.contract.options import G0AOptions, G0Options, GateOptions, Share, Strict

EndpointName = Literal["c_index", "macro_f1", "auroc", "spearman"]
GeneratorCode = Literal["G0", "G0A", "S_ORACLE", "S_COPY", "S_MIX", "S_MARGINAL", "S_PUBLIC"]
ClinicalKind = Literal["continuous", "binary", "categorical", "ordinal", "survival_time", "event"]
ExpressionUnit = Literal["tpm", "count", "log2_expression"]
MethylationUnit = Literal["beta", "m_value"]
MatrixName = Literal["expression", "methylation"]
TableName = Literal["manifest", "expression", "methylation", "clinical"]

DP_GENERATORS: tuple[GeneratorCode, ...] = ("G0", "G0A")
CONTROLS: tuple[GeneratorCode, ...] = ("S_ORACLE", "S_COPY", "S_MIX", "S_MARGINAL", "S_PUBLIC")
RELEASABLE_DUA_TAG = "RELEASE_REVIEWED"

_NOT_JUDGED = {"title", "dua_tag", "publication", "plans", "generators", "discovery"}


class CohortSpecError(ValueError):
    """cohort.yaml is not usable; the message names the file, the field and what to do."""


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


class CohortSpec(Strict):
    """One cohort, as its steward registered it."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    kind: Literal["omics"]
    title: str
    source_code: Literal["TCGA", "GEO", "MIMIC_IV", "VIRTUAL", "LOCAL"]
    privacy: Privacy
    dua_tag: str
    publication: Literal["statuses_only", "aggregates"] = "statuses_only"
    source: Source
    expression: Modality | None = None
    methylation: Modality | None = None
    clinical: tuple[ClinicalVariable, ...]
    outcome: Outcome
    keep_labels: tuple[str, ...] = ()
    batches: Annotated[tuple[str, ...], Field(min_length=1)]
    latent_batches: tuple[str, ...] = ()
    allowed_rejected_rows: Annotated[int, Field(ge=0)] = 0
    quantile_map: bool = False
    endpoints: Annotated[tuple[Endpoint, ...], Field(min_length=4, max_length=4)]
    reference: ReferenceOptions = ReferenceOptions()
    plans: dict[str, Plan]
    generators: tuple[GeneratorCode, ...]
    g0: Annotated[G0Options, Field(validate_default=True)] = G0Options()
    g0a: G0AOptions = G0AOptions()
    gates: GateOptions = GateOptions()
    synthetic: Synthetic
    discovery: Discovery | None = None

    @field_validator("plans")
    @classmethod
    def _plans_can_be_kept(cls, plans: dict[str, Plan], info: ValidationInfo) -> dict[str, Plan]:
        privacy: Privacy | None = info.data.get("privacy")
        wrong = []
        for key, plan in plans.items():
            named = _named_epsilon(key)
            if named is not None and named != plan.epsilon:
                wrong.append(f"{key}.epsilon is {plan.epsilon:g}, but its name says {named:g}; rename the plan")
            if privacy is not None and plan.epsilon > privacy.budget.epsilon:
                cap = f"privacy.budget.epsilon = {privacy.budget.epsilon:g}"
                wrong.append(f"{key}.epsilon is {plan.epsilon:g}, above {cap}: it could never be paid; lower it")
            if privacy is not None and plan.delta >= 1 / privacy.n_ref:
                wrong.append(f"{key}.delta must be below 1/n_ref = {1 / privacy.n_ref:.3g} (8-1 §2.1)")
        if wrong:
            raise ValueError("; ".join(wrong))
        return plans

    @field_validator("g0")
    @classmethod
    def _latent_directions_exist(cls, g0: G0Options, info: ValidationInfo) -> G0Options:
        fields = info.data  # those above that are right themselves
        needed = {"expression", "methylation", "clinical", "outcome", "generators"}
        if not needed <= fields.keys() or "G0" not in fields["generators"]:
            return g0
        panels = [modality.panel for modality in (fields["expression"], fields["methylation"]) if modality is not None]
        outcome = set(fields["outcome"].model_dump().values())
        covariates = [variable for variable in fields["clinical"] if variable.name not in outcome]
        features = sum(map(len, panels)) + sum(variable.columns for variable in covariates)
        if g0.latent > features and not any(isinstance(panel, str) for panel in panels):
            raise ValueError(f"latent is {g0.latent}, but the cohort has only {features} features; lower it")
        return g0

    @model_validator(mode="after")
    def _names_agree(self) -> CohortSpec:
        variables = {variable.name: variable for variable in self.clinical}
        if len(variables) != len(self.clinical):
            raise ValueError("clinical: a variable name appears twice")
        for role, kinds in (("label", ("categorical", "ordinal")), ("time", ("survival_time",)), ("event", ("event",))):
            name = getattr(self.outcome, role)
            if name not in variables or variables[name].kind not in kinds:
                raise ValueError(f"outcome.{role}: {name!r} must be a clinical variable of kind {' or '.join(kinds)}")
        unknown = set(self.keep_labels) - set(variables[self.outcome.label].categories)
        if unknown:
            raise ValueError(f"keep_labels: {sorted(unknown)} are not categories of {self.outcome.label!r}")
        if {endpoint.name for endpoint in self.endpoints} != {"c_index", "macro_f1", "auroc", "spearman"}:
            raise ValueError("endpoints: register each of c_index, macro_f1, auroc and spearman once")
        if self.expression is None and self.methylation is None:
            raise ValueError("expression, methylation: an omics cohort needs at least one matrix")
        if len(set(self.batches)) != len(self.batches) or "REFERENCE" in self.batches:
            raise ValueError("batches: each once, and none called REFERENCE, the condition synthetic rows stand in")
        panels = [m.panel for m in (self.expression, self.methylation) if m and not isinstance(m.panel, str)]
        features = [feature for panel in panels for feature in panel]
        if len({"row_key", *variables, *features}) != 1 + len(variables) + len(features):
            raise ValueError("panels, clinical: a feature id stands for one column of one table; give each its own")
        if self.discovery is not None:
            values = {name: (variable.kind, variable.categories) for name, variable in variables.items()}
            matrices = [name for name in ("expression", "methylation") if getattr(self, name) is not None]
            require_contrasts(self.discovery, values, matrices, self.outcome.time)
        if set(self.latent_batches) - set(self.batches):
            raise ValueError("latent_batches: every entry must be one of batches")
        if "S_ORACLE" in self.generators and self.source.reader != "virtual":
            raise ValueError("generators: S_ORACLE needs a world to draw from, only the virtual reader has one")
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """Class labels in code order: `keep_labels`, or every category of the label variable."""
        if self.keep_labels:
            return self.keep_labels
        return next(v.categories for v in self.clinical if v.name == self.outcome.label)

    @property
    def registration(self) -> str:
        """SHA-256 of everything a gate's verdict depends on; the rest may change without judging again."""
        fixed = self.model_dump(mode="json", exclude=_NOT_JUDGED)
        return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()

    def plan(self, key: str) -> Plan:
        """The plan under `key`; `eps<number>` names an (epsilon, domain delta) plan without registering it.

        One such promise has one name, `plan_key`: another spelling would let the same table leave once more.
        """
        if key in self.plans:
            return self.plans[key]
        epsilon = _named_epsilon(key)
        if not epsilon:
            raise CohortSpecError(
                f"cohort {self.name!r} has no plan {key!r}; plans are {sorted(self.plans)} or eps<number>, e.g. eps0.5"
            )
        canonical = self.plan_key(epsilon)
        if key != canonical:
            raise CohortSpecError(f"cohort {self.name!r}: plan {key!r} is called {canonical!r}; use that key")
        return Plan(epsilon=epsilon, delta=self.privacy.budget.delta)

    def discovery_plan(self, key: str) -> DiscoveryPlan:
        """The discovery plan under `key`. Raises CohortSpecError where the cohort registers no such contrast."""
        if self.discovery is None:
            raise CohortSpecError(
                f"cohort {self.name!r} registers no contrasts; write discovery.contrasts into its cohort.yaml"
            )
        try:
            return plan_of_key(self.discovery, key)
        except ValueError as error:
            raise CohortSpecError(f"cohort {self.name!r}: {error}") from error

    def plan_key(self, epsilon: float) -> str:
        """The key of the plan (epsilon, domain delta): the first registered one, else eps<number> at six decimals."""
        promise = Plan(epsilon=epsilon, delta=self.privacy.budget.delta)
        registered = (key for key, plan in self.plans.items() if plan == promise)
        return next(registered, f"eps{epsilon:.6f}".rstrip("0").rstrip("."))


def _named_epsilon(key: str) -> float | None:
    """The number in a plan key of the form eps<number>."""
    match = re.fullmatch(r"eps(\d+(?:\.\d+)?)", key)
    return None if match is None else float(match[1])


def load_cohort_spec(path: Path) -> CohortSpec:
    """Read and check one cohort.yaml; panels named by file are read from beside it.

    Raises CohortSpecError naming the file and every offending field.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CohortSpecError(f"{path}: no such file; a cohort is a folder with a cohort.yaml in it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CohortSpecError(f"{path}: not readable as YAML: {error}") from error
    if not isinstance(document, dict):
        raise CohortSpecError(f"{path}: expected a mapping of fields, found {type(document).__name__}")
    for modality in ("expression", "methylation"):
        section = document.get(modality)
        if isinstance(section, dict) and isinstance(section.get("panel"), str):
            section["panel"] = _read_panel(path, modality, section["panel"])
    try:
        return CohortSpec.model_validate(document)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc'])) or '(whole file)'}: {_message(e)}" for e in error.errors()]
        raise CohortSpecError(f"{path}: {len(lines)} field(s) to correct\n" + "\n".join(lines)) from error


def _message(error: ErrorDetails) -> str:
    return error["msg"].removeprefix("Value error, ")


def _read_panel(spec_path: Path, modality: str, name: str) -> list[str]:
    panel_path = spec_path.parent / name
    if not panel_path.is_file():
        raise CohortSpecError(f"{spec_path}: {modality}.panel names {name!r}, but {panel_path} does not exist")
    return [line.strip() for line in panel_path.read_text(encoding="utf-8").splitlines() if line.strip()]
