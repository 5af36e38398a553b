"""`synth cohort add | list | check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from resources.cohorts import CohortRegistry
from synth_platform.cli.app import BAD_INPUT, Json, app, console, existing_folder, home, print_json
from synth_platform.contract.cohort_spec import CohortSpecError, load_cohort_spec
from synth_platform.contract.tables import of_split
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.calibration import excess_failure, excess_tolerance, train_closer_tolerance
from synth_platform.normalize.reference import build_reference
from synth_platform.sources.read import read_cohort

cohorts = typer.Typer(no_args_is_help=True, help="Register cohorts and hold their files to the contract.")
app.add_typer(cohorts, name="cohort")
Folder = Annotated[Path, typer.Argument(help="A folder with a cohort.yaml in it.", metavar="PATH")]


@cohorts.command("add")
def add(path: Folder) -> None:
    """Register a cohort; it can then be run here and from the Dagster UI."""
    from synth_platform.cli.runner import Runner

    runner = Runner(home(), console())
    spec = runner.registry.add(existing_folder(path))
    runner.add_cohort(spec)
    typer.echo(
        f"registered {spec.name} ({spec.title}); privacy domain {spec.privacy.domain}; run it: synth run {spec.name}"
    )


@cohorts.command("list")
def list_cohorts(as_json: Json = False) -> None:
    """Every registered cohort; one whose cohort.yaml cannot be used is listed with its error."""
    registry = CohortRegistry(path=str(home().cohorts))
    listed = [_listing(registry, name, folder) for name, folder in sorted(registry.folders().items())]
    if as_json:
        print_json(listed)
        return
    table = Table("cohort", "title", "privacy domain", "plans", "generators", "folder")
    for item in listed:
        if "error" in item:
            table.add_row(item["cohort"], "cannot be used", "", "", "", item["folder"])
            typer.echo(f"synth: warning: cohort {item['cohort']!r} cannot be used: {item['error']}", err=True)
        else:
            plans, generators = (" ".join(item[name]) for name in ("plans", "generators"))
            table.add_row(item["cohort"], item["title"], item["domain"], plans, generators, item["folder"])
    console().print(table if listed else "no cohort registered; add one with: synth cohort add FOLDER")


def _listing(registry: CohortRegistry, name: str, folder: Path) -> dict[str, Any]:
    try:
        spec = registry.spec(name)
    except CohortSpecError as error:
        return {"cohort": name, "error": str(error), "folder": str(folder)}
    return {
        "cohort": spec.name,
        "title": spec.title,
        "domain": spec.privacy.domain,
        "plans": {key: plan.model_dump() for key, plan in spec.plans.items()},
        "generators": list(spec.generators),
        "folder": str(folder),
    }


@cohorts.command("check")
def check(path: Folder, as_json: Json = False) -> None:
    """Read a cohort's files and hold them to the contract, without storing anything."""
    folder = existing_folder(path)
    spec = load_cohort_spec(folder / "cohort.yaml")
    report = validate(select_registered(read_cohort(spec, folder), spec), spec)
    findings = [{"code": r.code, "table": r.table, "column": r.column, "count": r.count} for r in report.rejections]
    if as_json:
        print_json({"cohort": spec.name, "accepted": not report.cohort_rejected, "rejections": findings})
    else:
        table = Table("code", "table", "column", "count")
        for finding in findings:
            table.add_row(*(str(value) for value in finding.values()))
        if findings:
            console().print(table)
        verdict = "rejected" if report.cohort_rejected else "accepted"
        typer.echo(
            f"{spec.name}: {verdict}; {report.rejected_rows} row(s) set aside, {spec.allowed_rejected_rows} allowed"
        )
    if report.cohort_rejected:
        raise typer.Exit(BAD_INPUT)


@cohorts.command("tolerances")
def tolerances(path: Folder, as_json: Json = False) -> None:
    """Closest-record tolerances for cohort.yaml, from the registered sizes and the public rows alone."""
    folder = existing_folder(path)
    spec = load_cohort_spec(folder / "cohort.yaml")
    accepted = validate(select_registered(read_cohort(spec, folder), spec), spec).accepted
    public = build_reference(of_split(accepted, spec.reference.split), spec).rows
    synthetic, arm = spec.synthetic.rows, spec.privacy.n_ref
    suggested = {
        "train_closer_tolerance": train_closer_tolerance(public, train_rows=arm, synthetic_rows=synthetic),
        "excess_tolerance": excess_tolerance(synthetic, arm),
    }
    registered = {name: getattr(spec.gates, name) for name in suggested}
    false_alarm = excess_failure(synthetic, arm, spec.gates.excess_tolerance)
    if as_json:
        print_json({"suggested": suggested, "registered": registered, "excess_false_alarm": false_alarm})
        return
    typer.echo(f"gates: {{{', '.join(f'{name}: {value}' for name, value in suggested.items())}}}")
    typer.echo(
        f"registered: {', '.join(f'{name} {value}' for name, value in registered.items())}; at that excess tolerance "
        f"{false_alarm:.1%} of the generators that leak nothing are refused"
    )
