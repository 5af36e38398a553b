"""study.yaml: a genotype study, everything about it that is fixed, publicly, before its genotypes are read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, PositiveInt, ValidationError, ValidationInfo, field_validator, model_validator

from synth_platform.contract.cohort_sections import Budget
from synth_platform.contract.cohort_spec import CohortSpecError, faults
from synth_platform.contract.discovery_options import (
    ContrastName,
    DiscoveryPlan,
    Terms,
    Values,
    impossible,
    plan_of_key,
    plan_on,
)
from synth_platform.contract.options import Share, Strict


class StudyPrivacy(Strict):
    """Whose budget is spent; the privacy unit is one sample, replaced within its group."""

    domain: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
    budget: Budget


class Genotypes(Strict):
    """The genotype file, and its list of variants, which must be public: those of an array or a reference panel.

    field: GT for called genotypes, DS for imputed dosages. variants, list_sha256: length and digest of the list, as
    `synth cohort check` tells them. frequency: public allele frequency that the e-values are made for.
    """

    file: str
    field: Literal["GT", "DS"] = "GT"
    variants: PositiveInt
    list_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    frequency: Share = 0.25


class Phenotype(Strict):
    """Who is a case and who a control: values of a column of a table, or `fam` for column 6 of the .fam.

    sizes: [cases, controls] among the genotyped samples, public.
    """

    file: str
    key: str = "sample"
    column: str = "phenotype"
    case: Values = ()
    control: Values = ()
    sizes: tuple[PositiveInt, PositiveInt]
    description: str = ""

    @model_validator(mode="after")
    def _tells_case_from_control(self) -> Phenotype:
        if self.from_fam and (self.case or self.control):
            raise ValueError("case, control: a .fam says 2 for case and 1 for control; leave both out")
        if not self.from_fam and (not self.case or not self.control or set(self.case) & set(self.control)):
            raise ValueError("case, control: needs at least one value for each, and none for both")
        if len({*self.case, *self.control}) != len(self.case) + len(self.control):
            raise ValueError("case, control: a value appears twice")
        return self

    @property
    def from_fam(self) -> bool:
        """Whether column 6 of the .fam is read."""
        return self.file == "fam"


class GenotypeSpec(Strict):
    """One genotype study, as its steward registered it."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    kind: Literal["genotypes"]
    title: str
    dua_tag: str
    privacy: StudyPrivacy
    genotypes: Genotypes
    phenotypes: Annotated[dict[ContrastName, Phenotype], Field(min_length=1)]
    discovery: Annotated[Terms, Field(validate_default=True)] = Terms()

    @field_validator("discovery")
    @classmethod
    def _lists_can_be_made(cls, terms: Terms, info: ValidationInfo) -> Terms:
        fields = info.data  # those above that are right themselves
        if {"privacy", "genotypes", "phenotypes"} <= fields.keys():
            plan = plan_on(terms, next(iter(fields["phenotypes"])))
            wrong = impossible(plan, fields["genotypes"].variants, fields["privacy"].budget)
            if wrong:
                raise ValueError("; ".join(f"{term}: {fault}" for term, fault in wrong.items()))
        return terms

    @model_validator(mode="after")
    def _delta_is_small(self) -> GenotypeSpec:
        people = max(sum(phenotype.sizes) for phenotype in self.phenotypes.values())
        if self.privacy.budget.delta >= 1 / people:
            raise ValueError(f"privacy.budget.delta: must be below one in the number of samples, {1 / people:.3g}")
        return self

    @property
    def publication(self) -> Literal["statuses_only"]:
        """A list of discoveries has no gate figures to publish."""
        return "statuses_only"

    @property
    def contrasts(self) -> tuple[str, ...]:
        """Names of its phenotypes."""
        return tuple(self.phenotypes)

    def discovery_plan(self, key: str) -> DiscoveryPlan:
        """The discovery plan under `key`. Raises CohortSpecError where no plan of these phenotypes is called so."""
        try:
            return plan_of_key(self.phenotypes, key)
        except ValueError as error:
            raise CohortSpecError(f"study {self.name!r}: {error}") from error

    def plan_of(self, contrast: str) -> DiscoveryPlan:
        """The plan of a phenotype on the registered terms. Raises CohortSpecError for an unknown one."""
        if contrast not in self.phenotypes:
            raise CohortSpecError(
                f"study {self.name!r} has no phenotype {contrast!r}; it has {', '.join(self.phenotypes)}"
            )
        return plan_on(self.discovery, contrast)

    def hypotheses_of(self, _contrast: str) -> int:
        """How many variants a phenotype is compared over: all of them."""
        return self.genotypes.variants

    def sizes_of(self, contrast: str) -> tuple[int, ...]:
        """Registered group sizes of a phenotype."""
        return self.phenotypes[contrast].sizes

    def registration_of(self, plan: DiscoveryPlan) -> str:
        """SHA-256 of everything that the discoveries of a plan depend on besides the genotypes."""
        fixed = {
            "genotypes": self.genotypes.model_dump(mode="json"),
            "phenotype": self.phenotypes[plan.contrast].model_dump(mode="json", exclude={"description"}),
            "domain": self.privacy.domain,
            "plan": vars(plan),
        }
        return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()


def load_genotype_spec(path: Path) -> GenotypeSpec:
    """Read and check one study.yaml. Raises CohortSpecError naming the file and every offending field."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CohortSpecError(f"{path}: no such file; a genotype study is a folder with a study.yaml in it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CohortSpecError(f"{path}: not readable as YAML: {error}") from error
    if not isinstance(document, dict):
        raise CohortSpecError(f"{path}: expected a mapping of fields, found {type(document).__name__}")
    try:
        return GenotypeSpec.model_validate(document)
    except ValidationError as error:
        raise CohortSpecError(f"{path}: {faults(error)}") from error
