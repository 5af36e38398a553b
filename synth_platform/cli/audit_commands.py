"""`synth audit`: evidence built anew from what is stored now, and recomputed by the independent audit."""

from __future__ import annotations

from typing import Annotated, Any

import dagster as dg
import typer
from rich.table import Table

from resources.artefacts import CONTENT, read_artefact
from resources.cohorts import CohortRegistry
from resources.evidence import gather_evidence, judged_plans
from resources.home import HomeResource, SynthHome
from resources.private import fingerprint_key
from synth_platform.cli.app import VERDICT_FAILED, Json, app, console, fail, home, print_json

Report = dict[str, Any]


@app.command()
def audit(
    cohort: Annotated[str | None, typer.Argument(help="A registered cohort; all of them by default.")] = None,
    as_json: Json = False,
) -> None:
    """Recompute every verdict and decision that is stored now, by other code; exit code 1 if a check fails."""
    from synth_platform.audit.report import audit as audit_evidence
    from synth_platform.release.conformance import conformance

    place = home()
    registry = CohortRegistry(path=str(place.cohorts))
    specs = [registry.spec(name) for name in ([cohort] if cohort else sorted(registry.folders()))]
    partitions = [(spec.name, plan) for spec in specs for plan in judged_plans(place, spec)]
    if not partitions:
        fail("nothing was judged under a plan yet; run a cohort first: synth run COHORT")
    rules = conformance()
    reports = []
    for name, plan in partitions:
        evidence = gather_evidence(HomeResource(root=str(place.root)), registry, name, plan)
        report = audit_evidence(evidence, rules, expected={"cohort": name, "plan": plan}).as_dict()
        reports.append({**report, "stored_report": _stored_report(place, name, plan, report)})
    if as_json:
        print_json(reports)
    else:
        for report in reports:
            _show(report)
    if any(report["status"] != "PASS" for report in reports):
        raise typer.Exit(VERDICT_FAILED)


def _stored_report(place: SynthHome, cohort: str, plan: str, report: Report) -> str:
    """Whether the report that releases rely on is of the documents that lie there now."""
    folder = place.artefact(dg.AssetKey(["audit", "report"]), cohort, plan)
    if not (folder / CONTENT).exists():
        return "MISSING"
    stored = read_artefact(folder, fingerprint_key(HomeResource(root=str(place.root))))
    if stored["documents"] != report["documents"]:
        return "OF_OTHER_DOCUMENTS"
    return "CURRENT" if stored["status"] == "PASS" else "FAILED"


def _show(report: Report) -> None:
    scope = f"{report['scope'].get('cohort')} · {report['scope'].get('plan')}"
    table = Table("gate", "kind", "checks", title=f"{scope}: {report['status']}", title_justify="left")
    for gate, kinds in report["counts"].items():
        for kind, number in kinds.items():
            table.add_row(gate, kind, str(number))
        table.add_section()
    table.add_row("", "all", str(report["passed"] + report["failed"]))
    screen = console()
    screen.print(table)
    for failure in report["failures"]:
        screen.print(
            f"  FAILED {failure['name']} ({failure['kind']}): {failure['detail']}", highlight=False, markup=False
        )
    for note in report["notes"]:
        screen.print(f"  note: {note}", highlight=False, markup=False)
    for name in report["uncovered"]:
        screen.print(f"  not recomputed: {name}", highlight=False, markup=False)
    if report["stored_report"] != "CURRENT":
        words = {
            "MISSING": "there is no stored audit/report",
            "OF_OTHER_DOCUMENTS": "the stored audit/report is of others",
            "FAILED": "the stored audit/report does not pass",
        }
        screen.print(f"  note: {words[report['stored_report']]}; run the plan again", highlight=False)
