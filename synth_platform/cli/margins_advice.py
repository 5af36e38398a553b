"""What to do about margins that disclose too much: other options or recipes, tried before they are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from synth_platform.cli.margins_run import disclosed, read_source
from synth_platform.contract.census_spec import CensusSpec, SdcPlan
from synth_platform.margins.margin import MarginSet

Document = Mapping[str, Any]
USUAL = 10  # the limit that is taken where none is given
COMBINED = (2, 5, 10)  # times the limit: rows below which categories are combined
SWOLLEN = 1.2  # times the total of the least margin, from which on a person is told
WORST = 3  # tables that are named where nothing helps
REASONS = {
    "small_cell_recoverable": "a small count can be recovered",
    "attribute_disclosed": "all people of a group are known to be in one category",
    "zero_inferred": "a released cell that may by itself have people is known to be empty",
    "differencing": "two tables differ by few people",
    "margins_contradict": "no table of people has all these margins",
}


def advice(spec: CensusSpec, name: str, folder: Path, disclosure: Document) -> list[str]:
    """Which one change makes the margins pass, as it was found by trying; else what did not help, and where to look."""
    tried = []
    for words, changed in _changes(spec, name):
        plan = changed.plan(name)
        assert isinstance(plan, SdcPlan)
        try:
            _, document = disclosed(changed, plan, read_source(changed, folder))
        except ValueError:
            document = {"status": "FAIL"}
        if document["status"] == "PASS":
            return [f"the margins pass with {words}"]
        tried.append(words)
    failing = [table["title"] for table in disclosure["tables"] if _fails(table)][:WORST]
    said = [f"they do not pass with {', '.join(tried)} either"] if tried else []
    where = f", above all of {', '.join(failing)}" if failing else ""
    return [*said, f"band, group or drop variables with rare categories in the recipe{where}"]


def swollen(protected: MarginSet, plan: SdcPlan) -> list[str]:
    """Whether small counts that were lifted outweigh the true ones: then no table can follow the margins.

    Figures are of protected margins, whose totals would be equal if protection had changed nothing.
    """
    least, most = (choose(protected, key=lambda margin: margin.total) for choose in (min, max))
    times = most.total / least.total
    if times < SWOLLEN:
        return []
    widest = max(most.names, key=lambda name: len(protected.domain.project([name]).variables[0]))
    who = "" if plan.zeros == "lifted" else " with people"
    return [
        f"{most.title} counts {times:.3g} times as many people as {least.title}, since every combination{who} counts "
        f"as {plan.limit} at least: band, group or drop {widest}, or write combine_below in the recipe"
    ]


def _changes(spec: CensusSpec, name: str) -> Iterator[tuple[str, CensusSpec]]:
    """One change after the other, the least first."""
    plan = spec.plan(name)
    assert isinstance(plan, SdcPlan)
    default = SdcPlan(policy="sdc", limit=plan.limit, replicates=plan.replicates, rows=plan.rows, seed=plan.seed)
    plans = []
    if plan.zeros == "kept":
        plans.append(("--zeros lifted", plan.model_copy(update={"zeros": "lifted"})))
    if plan.variant != default.variant:
        said = "--variant coarsened" + (" --zeros lifted" if plan.zeros == "kept" else "")
        plans.append((said, default))
    if plan.limit < USUAL:
        plans.append((f"--limit {USUAL}", plan.model_copy(update={"limit": USUAL})))
    for words, other in plans:
        yield words, spec.model_copy(update={"plans": {name: other}})
    if spec.source.microdata is None:
        return
    for times in COMBINED:
        below = times * plan.limit
        if below > (spec.recipe.combine_below or 0):
            recipe = spec.recipe.model_copy(update={"combine_below": below})
            yield f"`combine_below: {below}` in the recipe", spec.model_copy(update={"recipe": recipe})


def _fails(table: Document) -> bool:
    return bool(table["recoverable"] or table["groups_disclosed"] or table["zeros_inferred"])
