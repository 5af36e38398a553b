"""census.yaml: a categorical table or published tables, everything about them that is fixed before they are counted.

Scalars are read as they are written, as in a recipe: the category `no` is not a boolean and `007` not seven.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from synth_platform.contract.as_written import AsWritten
from synth_platform.contract.cohort_sections import Budget
from synth_platform.contract.cohort_spec import CohortSpecError, faults
from synth_platform.contract.options import Strict
from synth_platform.contract.recipe import Recipe, RecipeError, with_hierarchies

REPLICATE = "replicate"

Variant = Literal["controlled", "coarsened", "adjusted"]
Zeros = Literal["kept", "lifted"]
Rounding = Literal["nearest", "up", "down"]
Adjustment = Literal["apportion", "subtract", "subtract_multiple", "subtract_below_limit"]


class CensusPrivacy(Strict):
    """Whose budget a plan of policy `dp` spends: one person more or less, against a public number of people."""

    domain: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
    unit: Literal["person"] = "person"
    n_ref: PositiveInt
    budget: Budget

    @model_validator(mode="after")
    def _delta_below_one_in_n(self) -> CensusPrivacy:
        if self.budget.delta >= 1 / self.n_ref:
            raise ValueError(f"budget.delta must be below 1/n_ref = {1 / self.n_ref:.3g}")
        return self


class CensusSource(Strict):
    """Where counts come from: one file of microdata (CSV or Parquet), or a folder of published tables.

    totals: `equal` asks published tables for one total; `differ` takes tables that were rounded as they are.
    """

    microdata: str | None = None
    tables: str | None = None
    totals: Literal["equal", "differ"] = "equal"

    @model_validator(mode="after")
    def _is_one_of_them(self) -> CensusSource:
        if (self.microdata is None) == (self.tables is None):
            raise ValueError("give microdata (a file) or tables (a folder of published tables), one of them")
        if self.microdata is not None and self.totals != "equal":
            raise ValueError("totals: microdata have one total; leave it out")
        return self


class _Tables(Strict):
    """What every plan says of its synthetic tables. rows: of each, the total of its margins if None."""

    replicates: Annotated[int, Field(ge=1, le=100)] = 1
    rows: PositiveInt | None = None
    seed: Annotated[int, Field(ge=0)] = 1


class SdcPlan(_Tables):
    """Statistical disclosure control: margins are coarsened. It is not differential privacy.

    The options are those of `margins.coarsen`, which says what each of them does.
    """

    policy: Literal["sdc"]
    limit: Annotated[int, Field(ge=2)] = 10
    variant: Variant = "coarsened"
    zeros: Zeros = "lifted"
    rounding: Rounding = "nearest"
    adjustment: Adjustment = "apportion"
    total: PositiveInt | None = None

    @model_validator(mode="after")
    def _options_are_of_the_variant(self) -> SdcPlan:
        if self.variant == "controlled" and self.rounding != "nearest":
            raise ValueError("rounding: the controlled variant rounds nothing; leave it out")
        if self.variant != "adjusted" and (self.adjustment != "apportion" or self.total is not None):
            raise ValueError(f"adjustment, total: the {self.variant} variant is not adjusted; leave them out")
        return self


class DpPlan(_Tables):
    """Differential privacy: Gaussian noise on the margins through the ledger.

    epsilon: at the domain's delta. margins: all that the recipe declares, or those an adaptive choice finds worst
    modelled (AIM).
    """

    policy: Literal["dp"]
    epsilon: PositiveFloat
    margins: Literal["declared", "adaptive"] = "declared"


CensusPlan = Annotated[SdcPlan | DpPlan, Field(discriminator="policy")]
PlanName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]


class CensusSpec(Strict):
    """One census cohort, as its steward registered it."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    kind: Literal["census"]
    title: str
    dua_tag: str
    publication: Literal["statuses_only", "aggregates"] = "statuses_only"
    source: CensusSource
    recipe: Recipe = Recipe()
    privacy: CensusPrivacy | None = None
    plans: Annotated[dict[PlanName, CensusPlan], Field(min_length=1)]

    @model_validator(mode="after")
    def _noisy_plans_can_be_paid(self) -> CensusSpec:
        for name, plan in self.plans.items():
            if not isinstance(plan, DpPlan):
                continue
            if self.privacy is None:
                raise ValueError(f"plans.{name}: a plan of policy dp spends a budget; add the section privacy")
            if self.source.microdata is None:
                raise ValueError(
                    f"plans.{name}: policy dp adds noise to counts of microdata; published tables have none"
                )
            if plan.epsilon > self.privacy.budget.epsilon:
                raise ValueError(
                    f"plans.{name}.epsilon is above privacy.budget.epsilon: it could never be paid; lower it"
                )
        merged = [name for name, own in self.recipe.variables.items() if own.declares and own.combine_below is not None]
        if merged:
            raise ValueError(
                f"recipe.variables.{merged[0]}.combine_below: beside declared categories it tells which of them are "
                "small; write groups or wider bands instead"
            )
        if self.source.tables is not None and self.recipe.of_rows:
            raise ValueError(
                "recipe: published tables are counted, and each is a margin; only structural_zeros applies"
            )
        return self

    @property
    def counted_by(self) -> Recipe | None:
        """The recipe that rows are counted by; None for published tables, whose labels are public."""
        return None if self.source.tables is not None else self.recipe

    def plan(self, name: str) -> SdcPlan | DpPlan:
        """The plan of that name. Raises CohortSpecError for one that is not registered."""
        if name not in self.plans:
            raise CohortSpecError(f"census {self.name!r} has no plan {name!r}; it has {', '.join(self.plans)}")
        return self.plans[name]

    def registration_of(self, name: str) -> str:
        """SHA-256 of everything that the package of a plan depends on besides the people counted.

        Publication is among it: what of utility may leave is not changed between audit and release.
        """
        fixed = {
            "source": self.source.model_dump(mode="json"),
            "recipe": self.recipe.model_dump(mode="json"),
            "domain": None if self.privacy is None else self.privacy.domain,
            "publication": self.publication,
            "plan": self.plan(name).model_dump(mode="json"),
        }
        return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()


def load_census_spec(path: Path) -> CensusSpec:
    """Read and check one census.yaml. Raises CohortSpecError naming the file and every offending field."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=AsWritten)
    except FileNotFoundError as error:
        raise CohortSpecError(f"{path}: no such file; a census cohort is a folder with a census.yaml in it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CohortSpecError(f"{path}: not readable as YAML: {error}") from error
    if not isinstance(document, dict):
        raise CohortSpecError(f"{path}: expected a mapping of fields, such as `name:`")
    try:
        if isinstance(document.get("recipe"), dict):
            document["recipe"] = with_hierarchies(document["recipe"], path)
        return CensusSpec.model_validate(document)
    except RecipeError as error:
        raise CohortSpecError(str(error)) from error
    except ValidationError as error:
        raise CohortSpecError(f"{path}: {faults(error)}") from error
