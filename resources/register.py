"""The release register of a home, as assets see it, and re-auditing what stands in it."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import dagster as dg
import polars as pl

from resources.artefacts import CONTENT, ArtefactError, read_artefact
from resources.cohorts import CohortRegistry
from resources.evidence import gather_list_evidence, gather_margins_evidence
from resources.home import HomeResource, SynthHome
from resources.ledger import home_ledger
from resources.private import fingerprint_key
from synth_platform.audit.discoveries import audit_discoveries
from synth_platform.audit.margins import audit_margins
from synth_platform.audit.report import audit
from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError
from synth_platform.contract.registered import Registered
from synth_platform.margins.replicates import replicate
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.replicates import SEED, native_table
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.fingerprint import FingerprintKeyError
from synth_platform.privacy.ledger import Ledger, LedgerError
from synth_platform.privacy.private_errors import PrivateComputationError
from synth_platform.release.discovery import STAGES, Stage
from synth_platform.release.discovery_package import list_frame
from synth_platform.release.findings import HinderedError, Hindrance, RecallReason
from synth_platform.release.margins import MARGINS_STAGES, MarginsStage
from synth_platform.release.reaudit import reaudit
from synth_platform.release.rederive import same_constants, stage_of_files
from synth_platform.release.register import Release, ReleaseRegister
from synth_platform.sources.tables import SourceError


def home_register(home: SynthHome, url: str | None = None) -> ReleaseRegister:
    """The release register of a home."""
    return ReleaseRegister(url or home.register_url, statuses=home.statuses)


class RegisterResource(dg.ConfigurableResource[None]):
    """The release register at `url`."""

    url: str
    home: HomeResource

    def register(self) -> ReleaseRegister:
        """The register itself."""
        return home_register(self.home.paths, self.url)


@dataclass(frozen=True)
class Round:
    """One re-audit of every published release.

    releases: the register afterwards. recalled: names and reasons of what was recalled in this round. standing_recalls:
    those, and what was recalled before and is still in the released zone. hindered: names of releases whose look stays
    open, and why.
    """

    releases: tuple[Release, ...]
    recalled: Mapping[str, tuple[RecallReason, ...]]
    standing_recalls: Mapping[str, tuple[RecallReason, ...]]
    hindered: Mapping[str, tuple[Hindrance, ...]]

    def as_dict(self) -> dict[str, Any]:
        """One object of `synth reaudit --json`."""
        return {
            "releases": [release.as_dict() for release in self.releases],
            "recalled": {name: list(reasons) for name, reasons in self.standing_recalls.items()},
            "hindered": {name: list(codes) for name, codes in self.hindered.items()},
        }


def reaudit_home(home: HomeResource, register: ReleaseRegister, registry: CohortRegistry, ledger_url: str) -> Round:
    """Look at every published release again, and name what is in the released zone without being one."""
    place, held, known = home.paths, HomeHoldings(home, registry, ledger_url), register.releases()
    hindered: dict[str, tuple[Hindrance, ...]] = dict.fromkeys(
        _unregistered(place.released, {*known, place.statuses.name}), ("UNREGISTERED",)
    )
    published = {name: release for name, release in known.items() if release.status == "PUBLISHED"}
    for name, release in published.items():
        if codes := reaudit(release, place.released / name, register, held).hindrances:
            hindered[name] = codes
    register.write_statuses()  # a process that died after recalling may not have come to it
    after = register.releases()
    recalled = {name: release.reasons for name, release in after.items() if release.status == "RECALLED"}
    return Round(
        releases=tuple(after.values()),
        recalled={name: reasons for name, reasons in recalled.items() if name in published},
        standing_recalls={
            name: reasons for name, reasons in recalled.items() if name in published or (place.released / name).exists()
        },
        hindered=hindered,
    )


def _unregistered(released: Path, known: Collection[str]) -> list[str]:
    """What lies in the released zone and is not `known`; drafts, whose names begin with a dot, are not counted."""
    names = sorted(path.name for path in released.iterdir())
    return [name for name in names if not name.startswith(".") and name not in known]


@dataclass(frozen=True)
class HomeHoldings:
    """`Holdings` of a home: its ledger, its registered cohorts and its restricted zone."""

    home: HomeResource
    registry: CohortRegistry
    ledger_url: str

    def ledger(self, release: Release) -> Ledger:
        """The ledger, held to this release alone."""
        return home_ledger(self.home.paths, self.ledger_url, release=release.name)

    def spec(self, release: Release) -> Registered:
        """cohort.yaml or study.yaml as it reads now."""
        with _hindered("COHORT_UNREADABLE"):
            return self.registry.registered(release.cohort)

    def registration(self, release: Release) -> str:
        """That of the cohort, or of a plan of lists or of a census."""
        with _hindered("COHORT_UNREADABLE"):
            if release.generator in MARGINS_STAGES:
                return self.registry.census(release.cohort).registration_of(release.plan)
            if release.generator in STAGES:
                spec = self.registry.contrasted(release.cohort)
                return spec.registration_of(spec.discovery_plan(release.plan))
            return self.registry.spec(release.cohort).registration

    def decision(self, release: Release) -> Mapping[str, Any]:
        """`<generator>/decision` of the plan."""
        return cast(Mapping[str, Any], self._stored([release.generator, "decision"], release.cohort, release.plan))

    def table(self, release: Release) -> pl.DataFrame:
        """The first table of what is synthetic, or the stored list."""
        if release.generator in MARGINS_STAGES:
            stacked = self._stored([release.generator, "synthetic"], release.cohort, release.plan)
            return replicate(cast(pl.DataFrame, stacked))
        if release.generator in STAGES:
            return list_frame(
                cast(
                    Mapping[str, Any],
                    self._stored([release.generator, "discoveries"], release.cohort, release.plan),
                )
            )
        tables = cast(pl.DataFrame, self._stored([release.generator, "synthetic"], release.cohort, release.plan))
        return native_table(tables, tables[SEED][0])

    def audited(self, release: Release) -> bool:
        """Whether the audit, run again, confirms the stored evidence of the plan.

        Raises HinderedError NOT_AUDITED without evidence, which is no way around the audit, and AUDIT_DISAGREES where
        its stored report confirmed the same evidence: then it is the audit that has changed, which is for a person to
        look at and recalls nothing.
        """
        scope = {"cohort": release.cohort, "plan": release.plan}
        if release.generator in STAGES:
            return self._list_audited(release, scope)
        if release.generator in MARGINS_STAGES:
            return self._margins_audited(release, scope)
        evidence, before = (self._document(["audit", name], *scope.values()) for name in ("evidence", "report"))
        if evidence is None:
            raise HinderedError("NOT_AUDITED")
        report = audit(evidence["evidence"], evidence["conformance"], expected=scope).as_dict()
        if report["status"] != "PASS" and before is not None:
            same = {name: before[name] == report[name] for name in ("status", "evidence_sha256")}
            if same == {"status": False, "evidence_sha256": True}:
                raise HinderedError("AUDIT_DISAGREES")
        return bool(report["status"] == "PASS")

    def _list_audited(self, release: Release, scope: Mapping[str, str]) -> bool:
        """Whether the audit confirms a list as it is stored now, costs and chain included."""
        stage = cast(Stage, release.generator)
        if self._document([stage, "audit"], *scope.values()) is None:
            raise HinderedError("NOT_AUDITED")
        with _hindered("ARTEFACTS_UNREADABLE"):
            evidence = gather_list_evidence(
                self.home, self.registry, stage, release.cohort, release.plan, ledger_url=self.ledger_url
            )
        return bool(audit_discoveries(evidence, expected={**scope, "stage": stage}).ok)

    def _margins_audited(self, release: Release, scope: Mapping[str, str]) -> bool:
        """Whether the audit confirms a census plan as it is stored now, costs and chain included."""
        stage = cast(MarginsStage, release.generator)
        if self._document([stage, "audit"], *scope.values()) is None:
            raise HinderedError("NOT_AUDITED")
        with _hindered("ARTEFACTS_UNREADABLE"):
            evidence = gather_margins_evidence(
                self.home, self.registry, stage, release.cohort, release.plan, ledger_url=self.ledger_url
            )
        return bool(audit_margins(evidence, expected={**scope, "stage": stage}).ok)

    def rows(self, release: Release) -> tuple[CohortSpec, PublicReference, EncodedRows]:
        """The cohort with `public/reference` and `normalized/attacked`, as its files give them now.

        Raises HinderedError ROWS_REPLACED where they do not, or where the ledger charged the release for other rows.
        """
        reference = cast(PublicReference, self._stored(["public", "reference"], release.cohort))
        attacked = cast(EncodedRows, self._stored(["normalized", "attacked"], release.cohort))
        with _hindered("SOURCES_UNREADABLE"):
            spec = self.registry.spec(release.cohort)
            stage = stage_of_files(spec, self.registry.folder(release.cohort))
        with _hindered("LEDGER_UNREADABLE"):
            package = self.home.paths.released / release.name
            paid = [entry["entry_id"] for entry in json.loads((package / "ledger.json").read_bytes())["entries"]]
            chain = self.ledger(release).chain()
            charged = {row["input_fingerprint"] for row in chain if row["entry_id"] in paid}
            members = fingerprint_key(self.home).name(content_digest(stage.rows))
        if not (
            same_constants(reference, stage.reference)
            and content_digest(attacked) == content_digest(stage.attacked)
            and charged == {members}
        ):
            raise HinderedError("ROWS_REPLACED")
        return spec, reference, attacked

    def _document(self, key: Sequence[str], *partition: str) -> Mapping[str, Any] | None:
        """A stored document, None where there never was one."""
        if not (self.home.paths.artefact(dg.AssetKey(key), *partition) / CONTENT).exists():
            return None
        return cast(Mapping[str, Any], self._stored(key, *partition))

    def _stored(self, key: Sequence[str], *partition: str) -> object:
        with _hindered("ARTEFACTS_UNREADABLE"):
            return read_artefact(self.home.paths.artefact(dg.AssetKey(key), *partition), fingerprint_key(self.home))


_UNREADABLE = (
    ArtefactError,
    CohortSpecError,
    FingerprintKeyError,
    LedgerError,
    OSError,
    PrivateComputationError,
    SourceError,
)


@contextmanager
def _hindered(code: Hindrance) -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        raise HinderedError(code) from error
