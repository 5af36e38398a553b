"""`synth audit`: evidence built anew from what is stored now, and recomputed by the independent audit."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from resources.cohorts import CohortRegistry
from resources.evidence import damaged_artefacts, gather_evidence, judged_plans
from resources.home import HomeResource, SynthHome
from synth_platform.cli.app import VERDICT_FAILED, Json, app, console, fail, home, print_json
from synth_platform.cli.list_audit import against_stored, list_reports, margins_reports, unreadable
from synth_platform.contract.cohort_spec import CohortSpec

Report = dict[str, Any]
SHOWN = 25  # failed checks of a plan on a screen


@app.command()
def audit(
    cohort: Annotated[str | None, typer.Argument(help="A registered cohort or study; all of them by default.")] = None,
    as_json: Json = False,
) -> None:
    """Recompute every verdict, list of discoveries and decision that is stored now, by other code.

    Exit code 1 if a check fails or a document is another one than the audit in front of the releases saw.
    """
    place = home()
    registry = CohortRegistry(path=str(place.cohorts))
    reports = []
    for name in [cohort] if cohort else sorted(registry.folders()):
        reports += [*_table_reports(place, registry, name), *list_reports(place, registry, name)]
        reports += margins_reports(place, registry, name)
    if not reports:
        fail("nothing was judged under a plan yet; run a cohort first: synth run COHORT, or synth discover COHORT")
    if as_json:
        print_json(reports)
    else:
        for report in reports:
            _show(report)
    if any(report["status"] != "PASS" or report["others"] for report in reports):
        raise typer.Exit(VERDICT_FAILED)


def _table_reports(place: SynthHome, registry: CohortRegistry, name: str) -> list[Report]:
    """One report for every plan of a cohort under which a synthetic table was judged."""
    from synth_platform.audit.report import audit as audit_evidence
    from synth_platform.release.conformance import conformance

    spec = registry.registered(name)
    if not isinstance(spec, CohortSpec):
        return []
    reports, plans, resource = [], judged_plans(place, spec), HomeResource(root=str(place.root))
    rules = conformance() if plans else {}
    for plan in plans:
        scope = {"cohort": name, "plan": plan}
        if damaged := damaged_artefacts(resource, registry, name, plan):
            reports.append(unreadable(scope, damaged))
            continue
        report = audit_evidence(gather_evidence(resource, registry, name, plan), rules, expected=scope).as_dict()
        reports.append(report | against_stored(place, ("audit", "report"), name, plan, report))
    return reports


def _show(report: Report) -> None:
    scope = report["scope"]
    stored = f"{scope['stage']}/audit" if "stage" in scope else "audit/report"
    title = " · ".join(str(scope[name]) for name in ("cohort", "stage", "plan") if name in scope)
    table = Table("gate", "kind", "checks")
    for gate, kinds in report["counts"].items():
        for kind, number in kinds.items():
            table.add_row(gate, kind, str(number))
        table.add_section()
    table.add_row("", "all", str(report["passed"] + report["failed"]))
    screen = console()
    screen.print(f"{title}: {report['status']}", style="italic", highlight=False, markup=False)
    screen.print(table)
    for failure in report["failures"][:SHOWN]:
        screen.print(
            f"  FAILED {failure['name']} ({failure['kind']}): {failure['detail']}", highlight=False, markup=False
        )
    if len(report["failures"]) > SHOWN:
        screen.print(f"  and {len(report['failures']) - SHOWN} more that fail: --json has all", highlight=False)
    for name in report["uncovered"]:
        screen.print(f"  not recomputed: {name}", highlight=False, markup=False)
    for name in report["others"]:
        screen.print(f"  FAILED {name}: not the document that {stored} is about", highlight=False, markup=False)
    words = {
        "CURRENT": "",
        "MISSING": f"there is no stored {stored} of it",
        "OF_OTHER_DOCUMENTS": f"releases rest on the stored {stored}",
        "FAILED": f"the stored {stored} does not pass",
    }
    if said := words[report["stored_report"]]:
        screen.print(f"  note: {said}; run the plan again", highlight=False)
