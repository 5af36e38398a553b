"""What `synth run`, `synth decisions` and `synth cohort check` do with a census."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import dagster as dg
import typer
from rich.table import Table

from resources.artefacts import read_artefact
from resources.evidence import judged_margins
from resources.home import HomeResource, SynthHome
from resources.private import fingerprint_key
from synth_platform.cli.app import BAD_INPUT, print_json, shown
from synth_platform.contract.census_spec import CensusSpec, SdcPlan
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.declared import UndeclaredError, declared_domain
from synth_platform.margins.planned import protect
from synth_platform.margins.reading.census import read_census
from synth_platform.release.margins import release_name

COLUMNS = ("census", "policy", "plan", "decision", "disclosure", "ε", "δ", "fit", "utility", "reasons and notes")


def read_margins_decisions(place: SynthHome, names: Sequence[str]) -> list[dict[str, Any]]:
    """Stored decision documents of census plans, by census, with the package where there is one."""
    key = fingerprint_key(HomeResource(root=str(place.root)))
    found = []
    for name in names:
        for stage, plan in judged_margins(place, name):
            stored = read_artefact(place.artefact(dg.AssetKey([stage, "decision"]), name, plan), key)
            package = place.released / release_name(name, stage, plan)
            found.append({**cast(dict[str, Any], stored), "package": str(package) if package.is_dir() else None})
    return found


def margins_table(found: Sequence[dict[str, Any]]) -> Table:
    """Decisions on census plans, one a line."""
    table = Table(*COLUMNS, title="Synthetic tables of margins", title_justify="left")
    for one in found:
        disclosure = one["disclosure"]["status"] if one["disclosure"] else "-"
        promised = (f"{one['epsilon']:g}", f"{one['delta']:g}") if one["epsilon"] else ("-", "-")
        said = ", ".join([*one["reasons"], *one["notes"]]) or "-"
        table.add_row(
            shown(one["cohort"]),
            one["policy"],
            shown(one["plan"]),
            shown(one["decision"], "green" if one["decision"] != "BLOCKED" else "red"),
            disclosure,
            *promised,
            one["fit"]["status"],
            one["utility"]["status"],
            said,
        )
    return table


def check_census(spec: CensusSpec, folder: Path, *, as_json: bool) -> None:
    """Read a census and hold it to its recipe, without storing anything; errors are those of the reader.

    Tells what a person outside may know: variables, numbers of margins and cells, and whether plans of policy `dp`
    have a declared domain.
    """
    try:
        census = read_census(spec, folder)
        counted = census if isinstance(census, MarginSet) else census.curated.margin_set()
        for plan in spec.plans.values():
            if isinstance(plan, SdcPlan):
                protect(counted, plan, spec.counted_by)
    except ValueError as error:  # of files; the registered words of a cohort are CohortSpecError
        raise CohortSpecError(f"census {spec.name!r}: {error}") from error
    margins = counted
    noisy = [name for name, plan in spec.plans.items() if not isinstance(plan, SdcPlan)]
    fault = None
    try:
        declared = declared_domain(spec.recipe) if noisy else None
        if declared is not None and set(declared.names) != set(margins.domain.names):
            fault = "every column of the table has to be under `variables` of the recipe, or in `drop`"
    except UndeclaredError as error:
        fault = str(error)
    document = {
        "cohort": spec.name,
        "accepted": fault is None,
        "source": "published tables" if isinstance(census, MarginSet) else "microdata",
        "variables": list(margins.domain.names),
        "cells": margins.domain.cells,
        "margins": len(margins.margins),
        "structural_zeros": len(margins.zeros),
        "plans": {name: plan.policy for name, plan in spec.plans.items()},
        "declared": fault,
    }
    if as_json:
        print_json(document)
    else:
        typer.echo(
            f"{spec.name}: {'accepted' if fault is None else 'rejected'}; {len(margins.domain.names)} variables, "
            f"{len(margins.margins)} margins, {margins.domain.cells:,} cells; plans {', '.join(spec.plans)}"
        )
        if fault is not None:
            typer.echo(f"plans of policy dp ({', '.join(noisy)}): {fault}")
    if fault is not None:
        raise typer.Exit(BAD_INPUT)
