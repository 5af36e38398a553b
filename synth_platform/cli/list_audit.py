"""What `synth audit` says of lists and of census plans: each is recomputed from what is stored now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import dagster as dg

from resources.artefacts import CONTENT, ArtefactError, read_artefact
from resources.cohorts import CohortRegistry
from resources.evidence import gather_list_evidence, gather_margins_evidence, judged_lists, judged_margins
from resources.home import HomeResource, SynthHome
from resources.private import fingerprint_key
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.release.discovery import Stage
from synth_platform.release.margins import MarginsStage

Report = dict[str, Any]


def list_reports(place: SynthHome, registry: CohortRegistry, name: str) -> list[Report]:
    """One report for every list of a cohort or study that has a decision."""
    return [_report(place, registry, name, stage, plan) for stage, plan in judged_lists(place, name)]


def margins_reports(place: SynthHome, registry: CohortRegistry, name: str) -> list[Report]:
    """One report for every plan of a census that has a decision."""
    return [_margins_report(place, registry, name, stage, plan) for stage, plan in judged_margins(place, name)]


def _margins_report(place: SynthHome, registry: CohortRegistry, name: str, stage: MarginsStage, plan: str) -> Report:
    from synth_platform.audit.margins import audit_margins

    scope, resource = {"cohort": name, "plan": plan, "stage": stage}, HomeResource(root=str(place.root))
    try:
        evidence = gather_margins_evidence(resource, registry, stage, name, plan)
        report = audit_margins(evidence, expected=scope).as_dict()
        return report | against_stored(place, (stage, "audit"), name, plan, report)
    except (ArtefactError, CohortSpecError) as error:
        return unreadable(scope, [str(error)])


def _report(place: SynthHome, registry: CohortRegistry, name: str, stage: Stage, plan: str) -> Report:
    from synth_platform.audit.discoveries import audit_discoveries

    scope, resource = {"cohort": name, "plan": plan, "stage": stage}, HomeResource(root=str(place.root))
    try:
        evidence = gather_list_evidence(resource, registry, stage, name, plan)
        report = audit_discoveries(evidence, expected=scope).as_dict()
        return report | against_stored(place, (stage, "audit"), name, plan, report)
    except (ArtefactError, CohortSpecError) as error:
        return unreadable(scope, [str(error)])


def unreadable(scope: Mapping[str, str], damaged: list[str]) -> Report:
    """The report of a plan whose stored artefacts are not what was stored: nothing else of it can be believed."""
    failures = [{"name": "G1/artefacts", "kind": "hash", "detail": said} for said in damaged]
    counts = {"G1": {"hash": len(failures)}}
    empty = {"uncovered": [], "stored_report": "MISSING", "others": []}
    return {"status": "FAIL", "scope": dict(scope), "passed": 0, "failed": len(failures), "counts": counts, **empty,
            "failures": failures}  # fmt: skip


def against_stored(place: SynthHome, key: tuple[str, str], cohort: str, plan: str, report: Report) -> Report:
    """Whether the report that releases rely on is of the documents that lie there now; `others`: those that differ."""
    folder = place.artefact(dg.AssetKey(key), cohort, plan)
    if not (folder / CONTENT).exists():
        return {"stored_report": "MISSING", "others": []}
    stored = cast(Report, read_artefact(folder, fingerprint_key(HomeResource(root=str(place.root)))))
    names = sorted(stored["documents"].keys() | report["documents"].keys())
    others = [name for name in names if stored["documents"].get(name) != report["documents"].get(name)]
    standing = "CURRENT" if stored["status"] == "PASS" else "FAILED"
    return {"stored_report": "OF_OTHER_DOCUMENTS" if others else standing, "others": others}
