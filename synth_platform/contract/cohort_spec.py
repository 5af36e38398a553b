"""cohort.yaml: everything about a cohort that is fixed, publicly, before its private rows are read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import (
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from synth_platform.contract.cohort_sections import (
    ClinicalVariable,
    Endpoint,
    Modality,
    Outcome,
    Plan,
    Privacy,
    ReferenceOptions,
    Source,
    Synthetic,
)
from synth_platform.contract.discovery_options import (
    Contrast,
    Discovery,
    DiscoveryPlan,
    figure,
    impossible,
    plan_of_key,
    plan_on,
    require_contrasts,
)
from synth_platform.contract.options import G0AOptions, G0Options, GateOptions, Strict

GeneratorCode = Literal["G0", "G0A", "S_ORACLE", "S_COPY", "S_MIX", "S_MARGINAL", "S_PUBLIC"]

DP_GENERATORS: tuple[GeneratorCode, ...] = ("G0", "G0A")
CONTROLS: tuple[GeneratorCode, ...] = ("S_ORACLE", "S_COPY", "S_MIX", "S_MARGINAL", "S_PUBLIC")
RELEASABLE_DUA_TAG = "RELEASE_REVIEWED"

# What no gate's verdict depends on, and what discoveries do depend on.
_NOT_JUDGED = {"title", "dua_tag", "publication", "plans", "generators", "discovery"}
_DISCOVERED = {"expression", "methylation", "clinical", "outcome", "keep_labels", "quantile_map"}


class CohortSpecError(ValueError):
    """cohort.yaml is not usable; the message names the file, the field and what to do."""


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

    @field_validator("discovery")
    @classmethod
    def _lists_can_be_made(cls, discovery: Discovery | None, info: ValidationInfo) -> Discovery | None:
        fields = info.data  # those above that are right themselves
        if discovery is None or not {"privacy", "expression", "methylation"} <= fields.keys():
            return discovery
        wrong: dict[str, None] = {}
        for name, contrast in discovery.contrasts.items():
            hypotheses = _features([fields[matrix] for matrix in contrast.features])
            faults = impossible(plan_on(discovery, name), hypotheses, fields["privacy"].budget)
            wrong |= dict.fromkeys(f"{term}: {fault}" for term, fault in faults.items())
        if wrong:
            raise ValueError("; ".join(wrong))
        return discovery

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

    @property
    def contrasts(self) -> tuple[str, ...]:
        """Names of its contrasts; none where it registers no discovery."""
        return () if self.discovery is None else tuple(self.discovery.contrasts)

    def contrast(self, name: str) -> Contrast:
        """A registered contrast. Raises CohortSpecError where there is none of that name."""
        return self._discovery(name).contrasts[name]

    def plan_of(self, contrast: str) -> DiscoveryPlan:
        """The plan of a contrast on the registered terms. Raises CohortSpecError for an unknown one."""
        return plan_on(self._discovery(contrast), contrast)

    def discovery_plan(self, key: str) -> DiscoveryPlan:
        """The discovery plan under `key`. Raises CohortSpecError where no plan of these contrasts is called so."""
        try:
            self._discovery()
            return plan_of_key(self.contrasts, key)
        except ValueError as error:
            raise CohortSpecError(f"cohort {self.name!r}: {error}") from error

    def hypotheses_of(self, contrast: str) -> int | None:
        """How many features a contrast compares; None where a panel is a file that was not read."""
        return _features([getattr(self, matrix) for matrix in self.contrast(contrast).features])

    def sizes_of(self, contrast: str) -> tuple[int, ...]:
        """Registered group sizes of a contrast."""
        return self.contrast(contrast).sizes

    def registration_of(self, plan: DiscoveryPlan) -> str:
        """SHA-256 of everything that the discoveries of a plan depend on besides the rows; no gate is among it."""
        cohort = self.model_dump(mode="json", include=_DISCOVERED)
        contrast = self.contrast(plan.contrast).model_dump(mode="json", exclude={"description"})
        fixed = {"cohort": cohort, "domain": self.privacy.domain, "contrast": contrast, "plan": vars(plan)}
        return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()

    def _discovery(self, contrast: str | None = None) -> Discovery:
        if self.discovery is None:
            raise CohortSpecError(
                f"cohort {self.name!r} registers no contrasts; write discovery.contrasts into its cohort.yaml"
            )
        if contrast is not None and contrast not in self.discovery.contrasts:
            raise CohortSpecError(
                f"cohort {self.name!r} has no contrast {contrast!r}; it registers {', '.join(self.discovery.contrasts)}"
            )
        return self.discovery

    def plan_key(self, epsilon: float) -> str:
        """The key of the plan (epsilon, domain delta): the first registered one, else eps<number> at six decimals."""
        promise = Plan(epsilon=epsilon, delta=self.privacy.budget.delta)
        registered = (key for key, plan in self.plans.items() if plan == promise)
        return next(registered, f"eps{figure(epsilon)}")


def _features(matrices: Sequence[Modality | None]) -> int | None:
    """Features of matrices together; None where a panel is named by a file."""
    panels = [matrix.panel for matrix in matrices if matrix is not None]
    return None if any(isinstance(panel, str) for panel in panels) else sum(map(len, panels))


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
        raise CohortSpecError(
            f"{path}: no such file; a cohort is a folder with a cohort.yaml in it, a genotype study one with a "
            "study.yaml"
        ) from error
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
        raise CohortSpecError(f"{path}: {faults(error)}") from error


def faults(error: ValidationError) -> str:
    """Every field that has to be corrected, one a line."""
    lines = [f"  {'.'.join(map(str, e['loc'])) or '(whole file)'}: {_message(e)}" for e in error.errors()]
    return f"{len(lines)} field(s) to correct\n" + "\n".join(lines)


def _message(error: ErrorDetails) -> str:
    return error["msg"].removeprefix("Value error, ")


def _read_panel(spec_path: Path, modality: str, name: str) -> list[str]:
    panel_path = spec_path.parent / name
    if not panel_path.is_file():
        raise CohortSpecError(f"{spec_path}: {modality}.panel names {name!r}, but {panel_path} does not exist")
    return [line.strip() for line in panel_path.read_text(encoding="utf-8").splitlines() if line.strip()]
