"""`synth run`, `synth decisions`, `synth lineage`, `synth demo`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import dagster as dg
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from checks.audit import AUDIT_PASSES
from resources.artefacts import CONTENT, read_artefact
from resources.cohorts import CohortRegistry
from resources.home import HomeResource, SynthHome
from resources.ledger import home_ledger
from resources.private import fingerprint_key
from synth_platform.cli.app import BAD_INPUT, VERDICT_FAILED, Json, app, console, fail, home, print_json, shown
from synth_platform.cli.census import margins_table, read_margins_decisions
from synth_platform.cli.lineage import Node, trace
from synth_platform.cli.table import decision_tables
from synth_platform.contract.census_spec import CensusSpec
from synth_platform.contract.cohort_spec import (
    CONTROLS,
    DP_GENERATORS,
    CohortSpec,
    CohortSpecError,
    GeneratorCode,
)
from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.contract.registered import Contrasted
from synth_platform.evaluation.controls import misjudged
from synth_platform.privacy.ledger import BudgetExceeded

if TYPE_CHECKING:
    from synth_platform.cli.runner import Outcome, Runner

BUNDLED = Path(__file__).resolve().parents[2] / "cohorts"
Cohort = Annotated[str, typer.Argument(help="A registered cohort's name.")]


@app.command()
def run(
    cohort: Cohort,
    generator: Annotated[list[str] | None, typer.Option(help="One generator; may be given several times.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="One ε at the domain's δ, instead of the plans.")] = None,
    as_json: Json = False,
) -> None:
    """Take a cohort or a census from its files to judged releases; exit code 1 if none of its tables is eligible."""
    from synth_platform.cli.runner import Runner

    runner = Runner(home(), console(stderr=as_json))  # progress beside the document, never in it
    registered = runner.registry.registered(cohort)
    if isinstance(registered, CensusSpec):
        if generator or epsilon is not None:
            raise CohortSpecError(f"{cohort!r} is a census: its plans stand in census.yaml; leave the options out")
        _run_census(runner, registered, as_json=as_json)
        return
    spec = runner.registry.spec(cohort)
    chosen = _generators(spec, generator)
    plans = list(spec.plans) if epsilon is None else [_plan_key(spec, epsilon)]
    runner.add_cohort(spec)
    outcomes = runner.run(spec, plans, chosen)
    report_failures(outcomes)
    decisions = [
        d for d in read_decisions(home(), [spec.name]) if d["generator"] in chosen and d["plan"] in (None, *plans)
    ]
    if as_json:
        print_json(decisions)
    else:
        show_decisions(console(), decisions)
    mechanisms = [d for d in decisions if d["generator"] in DP_GENERATORS]
    if mechanisms and all(d["decision"] == "BLOCKED" for d in mechanisms):
        raise typer.Exit(VERDICT_FAILED)


def _run_census(runner: Runner, spec: CensusSpec, *, as_json: bool) -> None:
    runner.add_cohort(spec)
    report_failures(runner.synthesise(spec, list(spec.plans)))
    found = [one for one in read_margins_decisions(home(), [spec.name]) if one["plan"] in spec.plans]
    if as_json:
        print_json(found)
    else:
        console().print(margins_table(found))
    if all(one["decision"] == "BLOCKED" for one in found):
        raise typer.Exit(VERDICT_FAILED)


@app.command()
def decisions(as_json: Json = False) -> None:
    """Every release decision so far, with figures: for the restricted zone."""
    place = home()
    registry = CohortRegistry(path=str(place.cohorts))
    found, margins = read_decisions(place, registry.cohorts()), read_margins_decisions(place, registry.censuses())
    if as_json:
        print_json([*found, *margins])
    elif found or margins:
        show_decisions(console(), found)
        if margins:
            console().print(margins_table(margins))
    else:
        typer.echo("no decision yet; run a cohort first: synth run COHORT")


@app.command()
def lineage(
    release: Annotated[str, typer.Argument(help="A package name such as virtual-G0A-eps1.")], as_json: Json = False
) -> None:
    """Everything behind a release: artefacts, fingerprints, ledger entries."""
    from synth_platform.definitions import build_definitions

    place = home()
    parts = release.split("-", 2)
    if len(parts) != 3 or not (place.released / release).is_dir():
        known = sorted(path.name for path in place.released.iterdir() if path.is_dir())
        fail(f"no release {release!r}; releases are {', '.join(known) or 'none yet'}")
    cohort, code, plan = parts
    graph = build_definitions().resolve_asset_graph()
    node = trace(place.instance(), graph, dg.AssetKey([code, "release"]), cohort, plan)
    rows = [row for row in home_ledger(place).table() if row["entry_id"] in node.ledger_entries]
    if as_json:
        print_json({"release": release, "lineage": node.as_dict(), "ledger": rows})
        return
    console().print(_tree(node, set()))
    table = Table("entry", "state", "sensitivity", "noise scale", "neighbouring", "noise", "time", "hash")
    for row in rows:
        names = ("entry_id", "state", "sensitivity", "scale", "neighbouring", "noise_source", "time", "hash")
        table.add_row(*(f"{row[name]:.6g}" if isinstance(row[name], float) else str(row[name])[:28] for name in names))
    console().print(table)


@app.command()
def demo() -> None:
    """Run the bundled cohorts, study and census, all controls and generators, and show what was decided."""
    from synth_platform.cli.discoveries import lists_table, read_list
    from synth_platform.cli.runner import Runner

    started = time.monotonic()
    place, screen = home(), console()
    runner = Runner(place, screen)
    outcomes: list[Outcome] = []
    specs: list[CohortSpec] = []
    studies: list[GenotypeSpec] = []
    for folder in sorted(BUNDLED.glob("*/cohort.yaml"), reverse=True):
        spec = runner.registry.spec(runner.registry.add(folder.parent).name)
        specs.append(spec)
        screen.print(Text.assemble(shown(spec.name, "bold"), shown(f": {spec.title}")))
        runner.add_cohort(spec)
        outcomes += runner.run(spec, list(spec.plans), spec.generators)
        outcomes += runner.discover(spec, [spec.plan_of(name) for name in spec.contrasts])
    for folder in sorted(BUNDLED.glob("*/study.yaml")):
        study = runner.registry.study(runner.registry.add(folder.parent).name)
        studies.append(study)
        screen.print(Text.assemble(shown(study.name, "bold"), shown(f": {study.title}")))
        runner.add_cohort(study)
        outcomes += runner.discover(study, [study.plan_of(name) for name in study.contrasts])
    censuses: list[CensusSpec] = []
    for folder in sorted(BUNDLED.glob("*/census.yaml")):
        census = runner.registry.census(runner.registry.add(folder.parent).name)
        censuses.append(census)
        screen.print(Text.assemble(shown(census.name, "bold"), shown(f": {census.title}")))
        runner.add_cohort(census)
        outcomes += runner.synthesise(census, list(census.plans))
    report_failures(outcomes)
    found = read_decisions(place, [spec.name for spec in specs])
    show_decisions(screen, found)
    registered: list[Contrasted] = [*specs, *studies]
    lists = [read_list(place, spec, spec.plan_of(name).key) for spec in registered for name in spec.contrasts]
    screen.print(lists_table(lists))
    screen.print(margins_table(read_margins_decisions(place, [census.name for census in censuses])))
    screen.print(
        f"{sum(o.assets for o in outcomes)} assets in {time.monotonic() - started:.0f} s. "
        f"Releases: {place.released}\n"
        "Look around: make ui (materialise, re-run), make governance (nobody can change anything), or\n"
        f"  export SYNTH_HOME={place.root}\n"
        "  .venv/bin/synth decisions --json | discover COHORT | audit | reaudit | releases | ledger budget | "
        "lineage RELEASE",
        highlight=False,
    )


def show_decisions(screen: Console, found: Sequence[dict[str, Any]]) -> None:
    """The decision tables of every cohort."""
    for table in decision_tables(found, screen.width):
        screen.print(table)
    controls = [decision for decision in found if decision["generator"] in CONTROLS]
    faults = [
        f"  {decision['cohort']} {decision['generator']}: {fault}"
        for decision in controls
        for fault in misjudged(decision)
    ]
    if controls:
        judged = f"Controls judged as they must be: {len(controls) - len(faults)} of {len(controls)}"
        screen.print("\n".join([judged, *faults]), highlight=False)


def read_decisions(place: SynthHome, cohorts: list[str]) -> list[dict[str, Any]]:
    """Stored decision documents, by cohort, controls first."""
    key = fingerprint_key(HomeResource(root=str(place.root)))
    codes = sorted(get_args(GeneratorCode), key=lambda code: (code in DP_GENERATORS, code))
    found = []
    for cohort in cohorts:
        for code in codes:
            folder = place.artefact(dg.AssetKey([code, "decision"]), cohort)
            folders = [folder] if code not in DP_GENERATORS else sorted(folder.iterdir()) if folder.exists() else []
            found += [cast(dict[str, Any], read_artefact(f, key)) for f in folders if (f / CONTENT).exists()]
    return found


def _generators(spec: CohortSpec, wanted: list[str] | None) -> list[GeneratorCode]:
    unknown = set(wanted or []) - set(spec.generators)
    if unknown:
        raise CohortSpecError(
            f"cohort {spec.name!r} does not register {', '.join(sorted(unknown))}; "
            f"it registers {', '.join(spec.generators)}"
        )
    return [code for code in spec.generators if wanted is None or code in wanted]


def _plan_key(spec: CohortSpec, epsilon: float) -> str:
    if not 0 < epsilon < math.inf:
        raise CohortSpecError(f"--epsilon {epsilon:g}: epsilon must be > 0 and finite")
    if round(epsilon, 6) != epsilon:
        raise CohortSpecError(
            f"--epsilon {epsilon:g}: a plan is named by its epsilon at six decimals, at least 0.000001"
        )
    key = spec.plan_key(epsilon)
    spec.plan(key)
    return key


def report_failures(outcomes: Sequence[Outcome]) -> None:
    """Leave with the message of the first job that failed, if one did."""
    for outcome in outcomes:
        if outcome.failure is not None:
            fail(f"{outcome.partition}: {outcome.failure}", _exit_code(outcome.failure))


def _exit_code(failure: str) -> int:
    return VERDICT_FAILED if BudgetExceeded.code in failure or AUDIT_PASSES in failure else BAD_INPUT


def _tree(node: Node, seen: set[str]) -> Tree:
    mark = f"{node.fingerprint[:16]}" if node.fingerprint else "not materialised"
    entries = f"  ledger: {', '.join(node.ledger_entries)}" if node.ledger_entries else ""
    tree = Tree(f"{node.asset}  [dim]{node.partition}  {mark}[/dim]{entries}", highlight=False)
    for child in node.inputs:
        if child.asset in seen:
            tree.add(f"[dim]{child.asset} (above)[/dim]")
        else:
            seen.add(child.asset)
            tree.children.append(_tree(child, seen))
    return tree
