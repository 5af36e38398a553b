"""From what lies in a home to the evidence of a cohort and plan, by path: a run may have judged one generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
from upath import UPath

from resources.artefacts import CONTENT, ArtefactError, artefact_fingerprint, read_artefact, read_content
from resources.cohorts import CohortRegistry
from resources.home import HomeResource, SynthHome
from resources.ledger import home_ledger, statistic_store
from resources.private import fingerprint_key
from synth_platform.contract.census_spec import REPLICATE
from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec, GeneratorCode
from synth_platform.margins.replicates import coded, replicate
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.release.discovery import STAGES, Stage
from synth_platform.release.discovery_evidence import DOCUMENTS as LIST_DOCUMENTS
from synth_platform.release.discovery_evidence import write_list_evidence
from synth_platform.release.evidence import Judged, write_evidence
from synth_platform.release.margins import MARGINS_STAGES, SDC_STAGE, MarginsStage, protected_margins, release_name
from synth_platform.release.margins_evidence import write_margins_evidence
from synth_platform.release.margins_rederive import counted, real_rows

INPUTS = ("normalized/attacked", "normalized/batch_corrected", "public/reference")
NOT_VERDICTS = frozenset({"release"})


def gather_evidence(
    home: HomeResource, registry: CohortRegistry, cohort: str, plan: str, *, ledger_url: str | None = None
) -> dict[str, Any]:
    """The evidence of what is stored now, sealed. Raises ArtefactError where something is half-written or altered."""
    spec, place, key = registry.spec(cohort), home.paths, fingerprint_key(home)
    parts = _folders(place, spec, plan)
    inputs = {name: place.artefact(dg.AssetKey.from_user_string(name), cohort) for name in INPUTS}
    inputs |= {f"{code}/{name}": place.artefact(dg.AssetKey([code, name]), *folder) for code, folder in parts.items()
               for name in ("checkpoint", "synthetic")}  # fmt: skip
    return write_evidence(
        spec=spec,
        plan_key=plan,
        reference=read_artefact(inputs["public/reference"], key),
        real=read_artefact(inputs["normalized/batch_corrected"], key),
        attacked=read_artefact(inputs["normalized/attacked"], key),
        judged={code: _judged(place, spec, code, plan, folder, key) for code, folder in parts.items()},
        cohort_documents=_documents(place.restricted / "gates", (cohort,), key, prefix="gates/"),
        fingerprints={name: artefact_fingerprint(folder, key) for name, folder in inputs.items()},
        ledger=home_ledger(place, ledger_url),
        store=statistic_store(place),
    )


def gather_list_evidence(
    home: HomeResource, registry: CohortRegistry, stage: Stage, cohort: str, plan: str, *, ledger_url: str | None = None
) -> dict[str, Any]:
    """The evidence of a list of discoveries as it is stored now. Raises ArtefactError as `gather_evidence` does."""
    spec, place, key = registry.contrasted(cohort), home.paths, fingerprint_key(home)
    documents = {
        name: read_artefact(place.artefact(dg.AssetKey([stage, name]), cohort, plan), key) for name in LIST_DOCUMENTS
    }
    package = place.released / f"{cohort}-{stage}-{plan}"
    return write_list_evidence(
        spec=spec,
        stage=stage,
        plan=spec.discovery_plan(plan),
        documents=documents,
        ledger=home_ledger(place, ledger_url),
        store=statistic_store(place),
        package=package if package.is_dir() else None,
    )


def gather_margins_evidence(
    home: HomeResource,
    registry: CohortRegistry,
    stage: MarginsStage,
    cohort: str,
    plan: str,
    *,
    ledger_url: str | None = None,
) -> dict[str, Any]:
    """The evidence of a census plan as it is stored now. Raises ArtefactError as `gather_evidence` does."""
    spec, place, key = registry.census(cohort), home.paths, fingerprint_key(home)
    coarsened = stage == SDC_STAGE

    def stored(name: str) -> Any:
        return read_artefact(place.artefact(dg.AssetKey([stage, name]), cohort, plan), key)

    protected = stored("coarsened" if coarsened else "measured")
    margins = protected_margins(protected)
    rows = read_artefact(place.artefact(dg.AssetKey([SDC_STAGE, "curated"]), cohort), key)
    fitted, tables = stored("model"), stored("synthetic")
    package = place.released / release_name(cohort, stage, plan)
    with quiet_errors("gathering evidence of margins"):
        return write_margins_evidence(
            spec=spec,
            stage=stage,
            plan=plan,
            counted=counted(spec, rows) if coarsened else None,
            real=real_rows(rows, margins.domain, "evidence of utility"),
            protected=margins,
            disclosure=stored("disclosure_gate") if coarsened else None,
            fitted=fitted,
            synthetic=[coded(replicate(tables, n), margins.domain) for n in tables[REPLICATE].unique().sort()],
            utility=stored("utility_gate"),
            decision=stored("decision"),
            measured=None if coarsened else protected,
            ledger=None if coarsened else home_ledger(place, ledger_url),
            store=None if coarsened else statistic_store(place),
            package=package if package.is_dir() else None,
        )


def damaged_artefacts(home: HomeResource, registry: CohortRegistry, cohort: str, plan: str) -> list[str]:
    """What is wrong with stored artefacts that evidence is made of, one sentence a file; empty if all can be read."""
    spec, place, key = registry.spec(cohort), home.paths, fingerprint_key(home)
    stages = [(code, parts) for code, parts in _folders(place, spec, plan).items()]
    folders = [folder for code, parts in stages for _, folder in _stored_stages(place.restricted / code, parts)]
    folders += [folder for _, folder in _stored_stages(place.restricted / "gates", (cohort,))]
    folders += [place.artefact(dg.AssetKey.from_user_string(name), cohort) for name in INPUTS]
    folders += [folder for _, folder in _stored_stages(place.restricted / "audit", (cohort, plan))]
    said = []
    for folder in folders:
        try:
            read_artefact(folder, key)
        except ArtefactError as error:
            said.append(str(error))
    return said


def judged_plans(place: SynthHome, spec: CohortSpec) -> list[str]:
    """Plans of a cohort under which at least one DP table has a decision."""
    folders = [place.artefact(dg.AssetKey([code, "decision"]), spec.name) for code in DP_GENERATORS]
    return sorted({plan.name for folder in folders if folder.exists() for plan in folder.iterdir() if _stored(plan)})


def judged_lists(place: SynthHome, name: str) -> list[tuple[Stage, str]]:
    """Stage and plan of every list of a cohort or study that has a decision."""
    decisions = [(stage, place.artefact(dg.AssetKey([stage, "decision"]), name)) for stage in STAGES]
    return [(stage, plan) for stage, folder in decisions for plan in _plans(folder)]


def judged_margins(place: SynthHome, name: str) -> list[tuple[MarginsStage, str]]:
    """Stage and plan of every plan of a census that has a decision."""
    decisions = [(stage, place.artefact(dg.AssetKey([stage, "decision"]), name)) for stage in MARGINS_STAGES]
    return [(stage, plan) for stage, folder in decisions for plan in _plans(folder)]


def _plans(folder: UPath) -> list[str]:
    """Names of the plans that have something stored under a cohort's folder of an asset."""
    return sorted(path.name for path in folder.iterdir() if _stored(path)) if folder.exists() else []


def _folders(place: SynthHome, spec: CohortSpec, plan: str) -> dict[GeneratorCode, tuple[str, ...]]:
    """Partition of every generator that has a decision: cohort and plan, or cohort alone for a control."""
    parts = {code: (spec.name, plan) if code in DP_GENERATORS else (spec.name,) for code in spec.generators}
    return {code: p for code, p in parts.items() if _stored(place.artefact(dg.AssetKey([code, "decision"]), *p))}


def _judged(
    place: SynthHome, spec: CohortSpec, code: GeneratorCode, plan: str, parts: tuple[str, ...], key: FingerprintKey
) -> Judged:
    package = place.released / f"{spec.name}-{code}-{plan}"
    return Judged(
        documents=_documents(place.restricted / code, parts, key),
        state=read_artefact(place.artefact(dg.AssetKey([code, "checkpoint"]), *parts), key),
        tables=read_artefact(place.artefact(dg.AssetKey([code, "synthetic"]), *parts), key),
        package=package if code in DP_GENERATORS and package.is_dir() else None,
    )


def _documents(
    root: UPath, parts: tuple[str, ...], key: FingerprintKey, prefix: str = ""
) -> dict[str, Mapping[str, Any]]:
    return {prefix + name: read_artefact(folder, key) for name, folder in _document_folders(root, parts)}


def _document_folders(root: UPath, parts: tuple[str, ...]) -> Iterator[tuple[str, UPath]]:
    """Stored documents under a stage; whatever verdicts a stage may have, they are all evidence."""
    for name, folder in _stored_stages(root, parts):
        if name not in NOT_VERDICTS and read_content(folder)["codec"] == "document":
            yield name, folder


def _stored_stages(root: UPath, parts: tuple[str, ...]) -> Iterator[tuple[str, UPath]]:
    """Name and folder of every artefact stored for a partition under a stage."""
    for stage in sorted(root.iterdir(), key=lambda path: path.name) if root.exists() else []:
        folder = stage.joinpath(*parts)
        if _stored(folder):
            yield stage.name, folder


def _stored(folder: UPath) -> bool:
    return bool((folder / CONTENT).exists())
