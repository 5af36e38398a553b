"""A census that nobody registered: what `synth margins` was asked, as the specification that the platform works by."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dp_accounting import GaussianDpEvent
from pydantic import ValidationError

from resources.home import SynthHome
from resources.ledger import home_ledger
from synth_platform.cli.margins_run import MarginsError
from synth_platform.contract.census_spec import CensusSpec
from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG, faults
from synth_platform.contract.recipe import Recipe, load_recipe
from synth_platform.margins.reading.published import FORMATS
from synth_platform.privacy.accounting import epsilon_rdp, gaussian_mu

DELTA = 1e-6
SDC_PLAN = "sdc"


def spec_of(
    source: Path, *, totals: str | None, recipe: Path | None, plan: Mapping[str, Any], privacy: Mapping[str, Any] | None
) -> CensusSpec:
    """The census of a file, or of a folder of tables where `totals` is given, with one plan.

    It is called reviewed because the steward is at the command; the note NOT_REGISTERED says that no register knows of
    it. Raises RecipeError, or MarginsError for what cannot be a census.
    """
    stem = source.name
    for form in FORMATS:
        stem = stem.removesuffix(form)
    where: dict[str, Any] = {"microdata": source.name} if totals is None else {"tables": source.name, "totals": totals}
    name = f"eps{plan['epsilon']:g}" if plan["policy"] == "dp" else SDC_PLAN
    document = {
        "name": slug(stem),
        "kind": "census",
        "title": stem,
        "dua_tag": RELEASABLE_DUA_TAG,
        "source": where,
        "recipe": Recipe() if recipe is None else load_recipe(recipe),
        "privacy": privacy,
        "plans": {name: {key: value for key, value in plan.items() if value is not None}},
    }
    try:
        return CensusSpec.model_validate(document)
    except ValidationError as error:
        raise MarginsError(faults(error)) from error


def privacy_of(home: SynthHome, source: Path, epsilon: float, people: int, domain: str | None) -> dict[str, Any]:
    """Whose budget pays: of a domain that the ledger knows its cap, of a new one as much as this ε costs.

    The cap binds the figure that stays valid whatever is asked next (RDP), which is above the exact ε of a single
    answer: 1.08 for 1. δ of a new domain is 10⁻⁶, or the next power of ten below 1/people. Raises MarginsError for an
    ε that is not positive.
    """
    if not 0 < epsilon < math.inf:
        raise MarginsError(f"--dp-epsilon {epsilon:g}: it has to be above 0, such as 1")
    name = slug(source.name.split(".")[0]) if domain is None else domain
    ledger = home_ledger(home)
    if name in ledger.domains():
        cap = ledger.budget(name)
        budget = {"epsilon": max(cap.epsilon, epsilon), "delta": cap.delta}
    else:
        delta = min(DELTA, float(f"1e-{len(str(people))}"))
        cost = epsilon_rdp([GaussianDpEvent(1 / gaussian_mu(epsilon, delta))], delta)
        budget = {"epsilon": math.ceil(cost * 1e6) / 1e6, "delta": delta}
    return {"domain": name, "n_ref": people, "budget": budget}


def slug(text: str) -> str:
    """Words as the name of a cohort or a domain: lower case letters, digits and _, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return plain if re.match(r"[a-z]", plain) else f"census_{plain}".rstrip("_")
