"""`synth cohort add | list | check | tolerances`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.table import Table

from resources.cohorts import CENSUS, STUDY, CohortRegistry
from synth_platform.cli.app import BAD_INPUT, Json, app, console, existing_folder, fail, home, print_json, shown
from synth_platform.cli.calibration import calibration_line, calibration_standing, probe, write_calibration
from synth_platform.cli.census import check_census
from synth_platform.cli.contrast_check import check_study, contrast_sizes, size_line
from synth_platform.contract.census_spec import CensusSpec, load_census_spec
from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec, CohortSpecError, load_cohort_spec
from synth_platform.contract.genotype_spec import GenotypeSpec, load_genotype_spec
from synth_platform.contract.hints import hint
from synth_platform.contract.tables import CohortTables, of_split
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.calibration import Calibration, excess_failure
from synth_platform.evaluation.membership import required_rows
from synth_platform.generators.build import make_generator
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.statistics import StatisticQuery
from synth_platform.sources.read import read_cohort

cohorts = typer.Typer(no_args_is_help=True, help="Register cohorts and hold their files to the contract.")
app.add_typer(cohorts, name="cohort")
Folder = Annotated[
    Path, typer.Argument(help="A folder with a cohort.yaml in it, or a registered name.", metavar="PATH")
]


@cohorts.command("add")
def add(path: Folder) -> None:
    """Register a cohort; it can then be run here and from the Dagster UI."""
    from synth_platform.cli.runner import Runner

    runner = Runner(home(), console())
    spec = runner.registry.add(existing_folder(path))
    runner.add_cohort(spec)
    verb = "discover" if isinstance(spec, GenotypeSpec) else "run"
    domain = f"; privacy domain {spec.privacy.domain}" if spec.privacy is not None else ""
    typer.echo(f"registered {spec.name} ({spec.title}){domain}; run it: synth {verb} {spec.name}")


@cohorts.command("list")
def list_cohorts(as_json: Json = False) -> None:
    """Every registered cohort; one whose cohort.yaml cannot be used is listed with its error."""
    registry = CohortRegistry(path=str(home().cohorts))
    listed = [_listing(registry, name, folder) for name, folder in sorted(registry.folders().items())]
    if as_json:
        print_json(listed)
        return
    table = Table("cohort", "title", "privacy domain", "plans", "generators", "contrasts", "folder")
    for item in listed:
        if "error" in item:
            table.add_row(item["cohort"], "cannot be used", "", "", "", "", shown(item["folder"]))
            typer.echo(f"synth: warning: cohort {item['cohort']!r} cannot be used: {item['error']}", err=True)
        else:
            lists = (" ".join(item[name]) for name in ("plans", "generators", "contrasts"))
            table.add_row(item["cohort"], shown(item["title"]), item["domain"] or "none", *lists, shown(item["folder"]))
    console().print(table if listed else "no cohort registered; add one with: synth cohort add FOLDER")


def _listing(registry: CohortRegistry, name: str, folder: Path) -> dict[str, Any]:
    try:
        spec = registry.registered(name)
    except CohortSpecError as error:
        return {"cohort": name, "error": str(error), "folder": str(folder)}
    plans = {} if isinstance(spec, GenotypeSpec) else spec.plans
    return {
        "cohort": spec.name,
        "title": spec.title,
        "domain": None if spec.privacy is None else spec.privacy.domain,
        "plans": {key: plan.model_dump() for key, plan in plans.items()},
        "generators": list(spec.generators) if isinstance(spec, CohortSpec) else [],
        "contrasts": [] if isinstance(spec, CensusSpec) else list(spec.contrasts),
        "folder": str(folder),
    }


@cohorts.command("check")
def check(path: Folder, as_json: Json = False) -> None:
    """Read a cohort's files and hold them to the contract, without storing anything.

    Public rows that are too few or too alike for the registered generators are found here too, and tolerances that the
    cohort's calibration does not back.
    """
    folder = existing_folder(path)
    if (folder / STUDY).exists():
        check_study(load_genotype_spec(folder / STUDY), folder, as_json=as_json)
        return
    if (folder / CENSUS).exists():
        check_census(load_census_spec(folder / CENSUS), folder, as_json=as_json)
        return
    spec = load_cohort_spec(folder / "cohort.yaml")
    tables = select_registered(read_cohort(spec, folder), spec)
    report = validate(tables, spec)
    fault = None if report.cohort_rejected else _public_fault(spec, report.accepted)
    readable = not report.cohort_rejected and fault is None
    standing = calibration_standing(spec, _reference(spec, report.accepted), folder) if readable else None
    sizes = {} if not readable else contrast_sizes(spec, report.accepted, _reference(spec, report.accepted))
    accepted = standing is not None and not standing["faults"] and all(size["fits"] for size in sizes.values())
    findings = [
        {"code": r.code, "table": r.table, "column": r.column, "count": r.count, "rule": hint(r, tables, spec)}
        for r in report.rejections
    ]
    if as_json:
        print_json(
            {
                "cohort": spec.name,
                "accepted": accepted,
                "rejections": findings,
                "public_rows": fault,
                "calibration": standing,
                "membership_rows": _membership_rows(spec),
                "contrasts": sizes,
            }
        )
    else:
        table = Table("code", "table", "column", "count", "rule")
        for finding in findings:
            table.add_row(*(shown(str(value)) for value in finding.values()))
        if findings:
            console().print(table)
        verdict = "accepted" if accepted else "rejected"
        typer.echo(
            f"{spec.name}: {verdict}; {report.rejected_rows} row(s) set aside, {spec.allowed_rejected_rows} allowed"
        )
        typer.echo(_membership_line(spec))
        if fault is not None:
            fail(fault)
        if standing is not None:
            line = calibration_line(standing, folder)
            fail(line) if standing["faults"] else typer.echo(line)
        for name, size in sizes.items():
            typer.echo(size_line(name, size))
    if not accepted:
        raise typer.Exit(BAD_INPUT)


@cohorts.command("tolerances")
def tolerances(
    path: Folder,
    write: Annotated[bool, typer.Option("--write", help="Freeze the evidence as calibration.json in PATH.")] = False,
    as_json: Json = False,
) -> None:
    """Closest-record tolerances for cohort.yaml, from the registered sizes and the public rows alone.

    Fix them before a synthetic table is seen, and freeze the evidence with --write.
    """
    folder = existing_folder(path)
    spec = load_cohort_spec(folder / "cohort.yaml")
    report = validate(select_registered(read_cohort(spec, folder), spec), spec)
    if report.cohort_rejected:
        fail(f"the contract refuses cohort {spec.name!r}; correct it first, `synth cohort check {path}` shows what")
    calibration = probe(spec, _reference(spec, report.accepted))
    suggested = calibration.tolerances
    registered = {name: getattr(spec.gates, name) for name in suggested}
    false_alarm = excess_failure(spec.synthetic.rows, spec.privacy.n_ref, spec.gates.excess_tolerance)
    written = write_calibration(folder, calibration) if write else None
    if as_json:
        print_json(
            {
                "suggested": suggested,
                "registered": registered,
                "excess_false_alarm": false_alarm,
                "calibration": calibration.as_dict(),
                "membership_rows": _membership_rows(spec),
            }
        )
        return
    typer.echo(f"gates: {{{', '.join(f'{name}: {value}' for name, value in suggested.items())}}}")
    typer.echo(
        f"registered: {', '.join(f'{name} {value}' for name, value in registered.items())}; at that excess tolerance "
        f"{false_alarm:.1%} of the generators that leak nothing are refused"
    )
    console().print(_statistics_table(calibration))
    typer.echo(_membership_line(spec))
    if written is not None:
        typer.echo(f"evidence frozen in {written}")


def _statistics_table(calibration: Calibration) -> Table:
    """Per kind of harmless table and share: the null over the probes and what 8-1's rule makes of it."""
    table = Table("harmless table", "share", "probes", "mean", "sd", "half width", "mean + 2 sd + half width")
    for kind, shares in calibration.statistics.items():
        for share, figures in shares.items():
            row = (kind, share, len(calibration.seeds), *figures.values())
            table.add_row(*(f"{figure:.3f}" if isinstance(figure, float) else str(figure) for figure in row))
    return table


def _reference(spec: CohortSpec, accepted: CohortTables) -> PublicReference:
    try:
        return build_reference(of_split(accepted, spec.reference.split), spec)
    except ValueError as error:
        raise CohortSpecError(f"cohort {spec.name!r}: public rows: {error}") from error


def _public_fault(spec: CohortSpec, accepted: CohortTables) -> str | None:
    """Why a registered generator cannot be made from the public rows, if one cannot: each gets to its first query."""
    plan = Plan(epsilon=spec.privacy.budget.epsilon, delta=spec.privacy.budget.delta)
    try:
        reference = _reference(spec, accepted)
        for code in (code for code in DP_GENERATORS if code in spec.generators):
            with suppress(_Asked):
                make_generator(code, reference, spec, plan).measure(_ask_nothing)
    except CohortSpecError as error:
        return str(error)
    except ValueError as error:
        return f"cohort {spec.name!r}: public rows: {code}: {error}"
    return None


class _Asked(Exception):  # noqa: N818 (no error: the generator came as far as asking)
    """A generator asked its first query."""


def _ask_nothing(_: StatisticQuery[EncodedRows]) -> NoReturn:
    raise _Asked


def _membership_rows(spec: CohortSpec) -> dict[str, int]:
    required = required_rows(spec.gates.membership_limit, attacks=len(spec.gates.attacks))
    return {"required": required, "n_ref": spec.privacy.n_ref}


def _membership_line(spec: CohortSpec) -> str:
    rows = _membership_rows(spec)
    return (
        f"membership can be confirmed only with about {rows['required']} rows a side at limit "
        f"{spec.gates.membership_limit} (n_ref here: {rows['n_ref']})"
    )
