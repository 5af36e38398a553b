"""`synth audit`: evidence built anew from what is stored now, and recomputed by the independent audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import dagster as dg
import typer
from rich.table import Table

from resources.artefacts import CONTENT, read_artefact
from resources.cohorts import CohortRegistry
from resources.evidence import damaged_artefacts, gather_evidence, judged_plans
from resources.home import HomeResource, SynthHome
from resources.private import fingerprint_key
from synth_platform.cli.app import VERDICT_FAILED, Json, app, console, fail, home, print_json

Report = dict[str, Any]
SHOWN = 25  # failed checks of a plan on a screen


@app.command()
def audit(
    cohort: Annotated[str | None, typer.Argument(help="A registered cohort; all of them by default.")] = None,
    as_json: Json = False,
) -> None:
    """Recompute every verdict and decision that is stored now, by other code.

    Exit code 1 if a check fails or a document is another one than the audit in front of the releases saw.
    """
    from synth_platform.audit.report import audit as audit_evidence
    from synth_platform.release.conformance import conformance

    place = home()
    registry = CohortRegistry(path=str(place.cohorts))
    specs = [registry.spec(name) for name in ([cohort] if cohort else registry.cohorts())]
    partitions = [(spec.name, plan) for spec in specs for plan in judged_plans(place, spec)]
    if not partitions:
        fail("nothing was judged under a plan yet; run a cohort first: synth run COHORT")
    rules = conformance()
    reports = []
    for name, plan in partitions:
        scope, resource = {"cohort": name, "plan": plan}, HomeResource(root=str(place.root))
        if damaged := damaged_artefacts(resource, registry, name, plan):
            reports.append(_unreadable(scope, damaged))
            continue
        report = audit_evidence(gather_evidence(resource, registry, name, plan), rules, expected=scope).as_dict()
        reports.append(report | _against_stored(place, name, plan, report))
    if as_json:
        print_json(reports)
    else:
        for report in reports:
            _show(report)
    if any(report["status"] != "PASS" or report["others"] for report in reports):
        raise typer.Exit(VERDICT_FAILED)


def _unreadable(scope: Mapping[str, str], damaged: Sequence[str]) -> Report:
    """The report of a plan whose stored artefacts are not what was stored: nothing else of it can be believed."""
    failures = [{"name": "G1/artefacts", "kind": "hash", "detail": said} for said in damaged]
    counts = {"G1": {"hash": len(failures)}}
    empty = {"uncovered": [], "stored_report": "MISSING", "others": []}
    return {"status": "FAIL", "scope": dict(scope), "passed": 0, "failed": len(failures), "counts": counts, **empty,
            "failures": failures}  # fmt: skip


def _against_stored(place: SynthHome, cohort: str, plan: str, report: Report) -> Report:
    """Whether the report that releases rely on is of the documents that lie there now; `others`: those that differ."""
    folder = place.artefact(dg.AssetKey(["audit", "report"]), cohort, plan)
    if not (folder / CONTENT).exists():
        return {"stored_report": "MISSING", "others": []}
    stored = read_artefact(folder, fingerprint_key(HomeResource(root=str(place.root))))
    names = sorted(stored["documents"].keys() | report["documents"].keys())
    others = [name for name in names if stored["documents"].get(name) != report["documents"].get(name)]
    standing = "CURRENT" if stored["status"] == "PASS" else "FAILED"
    return {"stored_report": "OF_OTHER_DOCUMENTS" if others else standing, "others": others}


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
    for failure in report["failures"][:SHOWN]:
        screen.print(
            f"  FAILED {failure['name']} ({failure['kind']}): {failure['detail']}", highlight=False, markup=False
        )
    if len(report["failures"]) > SHOWN:
        screen.print(f"  and {len(report['failures']) - SHOWN} more that fail: --json has all", highlight=False)
    for name in report["uncovered"]:
        screen.print(f"  not recomputed: {name}", highlight=False, markup=False)
    for name in report["others"]:
        screen.print(f"  FAILED {name}: not the document that audit/report is about", highlight=False, markup=False)
    words = {
        "CURRENT": "",
        "MISSING": "there is no stored audit/report of it",
        "OF_OTHER_DOCUMENTS": "releases rest on the stored audit/report",
        "FAILED": "the stored audit/report does not pass",
    }
    if said := words[report["stored_report"]]:
        screen.print(f"  note: {said}; run the plan again", highlight=False)
