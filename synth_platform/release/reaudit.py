"""One release looked at again: package, ledger, agreement, decision, audit, and the attacks with fresh randomness.

What is found is a code (`findings`); figures go into the register alone, which is restricted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG, CohortSpec
from synth_platform.contract.options import AttackCode
from synth_platform.contract.registered import Registered
from synth_platform.contract.tables import from_wide
from synth_platform.evaluation.looks import look_log_e
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.ledger import Ledger, LedgerError
from synth_platform.privacy.ledger_chain import ANCHOR_LOST
from synth_platform.privacy.private_errors import PrivateComputationError, quiet_errors
from synth_platform.release.findings import Finding, HinderedError, Hindrance, recalling
from synth_platform.release.folder import CHECKSUMS, PackageError, verify_package
from synth_platform.release.margins import SDC_STAGE
from synth_platform.release.publish import published_ledger
from synth_platform.release.register import Release, ReleaseRegister
from synth_platform.release.standing import standing_fault

Document = Mapping[str, Any]


class Holdings(Protocol):
    """What a release is held against, read only when its re-audit comes to it.

    Every method raises HinderedError where what it reads cannot be read now.
    """

    def ledger(self, release: Release) -> Ledger:
        """The ledger, held to the head of this release alone: one damaged package recalls no other."""

    def spec(self, release: Release) -> Registered:
        """The specification of the cohort or study as its file reads now."""

    def registration(self, release: Release) -> str:
        """Digest of what is registered now for a release like this one."""

    def decision(self, release: Release) -> Document:
        """The standing decision on the release's cohort, generator and plan."""

    def table(self, release: Release) -> pl.DataFrame:
        """The stored table that should be in the package: synthetic rows of the first seed, or a list."""

    def audited(self, release: Release) -> bool:
        """Whether the independent audit confirms the stored evidence of the release."""

    def rows(self, release: Release) -> tuple[CohortSpec, PublicReference, EncodedRows]:
        """The cohort, its public reference and its private rows as attacks score them."""


@dataclass(frozen=True)
class Reaudit:
    """What one re-audit came to. hindrances: why its look is still open; none where it is finished."""

    release: str
    look: int
    findings: tuple[Finding, ...]
    hindrances: tuple[Hindrance, ...]


def package_checksum(package: Path) -> str:
    """SHA-256 of a package's list of checksums: the identity of what was published."""
    return hashlib.sha256((package / CHECKSUMS).read_bytes()).hexdigest()


def reaudit(release: Release, package: Path, register: ReleaseRegister, held: Holdings) -> Reaudit:
    """Look at one published release again and record it.

    A fault recalls the release at once, and nothing more is asked of it. Otherwise its table is attacked with the
    look's own randomness, and the register decides by all the evidence so far. Where something cannot be read, the
    look stays open and the next re-audit does it again, with the same seed.
    """
    look = register.start_look(release.name)
    findings: list[Finding] = []
    hindrances: list[Hindrance] = []
    for examine in (_package, _ledger, _agreement, _decision, _table, _audit):
        try:
            findings += examine(release, package, held)
        except HinderedError as hindered:
            hindrances.append(hindered.code)
            if hindered.code == "TABLE_REPLACED" and release.generator == SDC_STAGE:
                break  # what is audited now is another table, which never left
        if recalling(findings):
            register.finish_look(look, {}, findings)
            return Reaudit(release.name, look.number, tuple(findings), ())
    if not hindrances:
        try:
            register.finish_look(look, _attack(release, package, held, look.seed), findings)
        except HinderedError as hindered:
            hindrances.append(hindered.code)
    return Reaudit(release.name, look.number, tuple(findings), tuple(dict.fromkeys(hindrances)))


def _package(release: Release, package: Path, _: Holdings) -> Iterator[Finding]:
    if not package.is_dir():
        yield "WITHDRAWN"
        return
    try:
        verify_package(package)
        if package_checksum(package) != release.checksum:
            yield "CHECKSUMS"
    except (PackageError, UnicodeDecodeError):
        yield "CHECKSUMS"
    except OSError as error:
        raise HinderedError("PACKAGE_UNREADABLE") from error


def _ledger(release: Release, package: Path, held: Holdings) -> Iterator[Finding]:
    if release.generator == SDC_STAGE:
        return  # it spent nothing, which its decision says and the audit holds it to
    published = _document(package, "ledger.json")
    try:
        book = held.ledger(release)
        report, rows = book.verify(), book.table()
    except LedgerError as error:
        raise HinderedError("LEDGER_UNREADABLE") from error
    faults = {problem.what for problem in report.problems}
    if ANCHOR_LOST in faults:
        yield "ANCHOR_LOST"
    if faults - {ANCHOR_LOST} or not _rests_on(published, rows):
        yield "LEDGER"


def _rests_on(published: Document, rows: list[dict[str, Any]]) -> bool:
    """Whether the ledger holds, word for word, the entries and the head that a package names."""
    try:
        entries, head = published_ledger(rows, [entry["entry_id"] for entry in published["entries"]])
    except ValueError:
        return False
    return bool(json.loads(json.dumps(entries)) == published["entries"] and head == published["head_hash"])


def _agreement(release: Release, _: Path, held: Holdings) -> Iterator[Finding]:
    if held.spec(release).dua_tag != RELEASABLE_DUA_TAG:
        yield "DUA"


def _decision(release: Release, package: Path, held: Holdings) -> Iterator[Finding]:
    decision = held.decision(release)
    if standing_fault(package, decision, held.spec(release).publication) is not None:
        yield "DECISION" if decision["decision"] == "BLOCKED" else "SUPERSEDED"


def _table(release: Release, package: Path, held: Holdings) -> Iterator[Finding]:
    """The stored table may differ only where its plan was run again since, under other rules or on other statistics."""
    left, stored = pl.read_parquet(package / "table.parquet"), held.table(release)
    if left.schema == stored.schema and left.equals(stored):
        return
    published, standing = _document(package, "decision.json"), held.decision(release)
    if release.generator == SDC_STAGE:  # no ledger names its people: the plan was run again on an updated file
        raise HinderedError("TABLE_REPLACED")
    if not (
        published["registration"] == standing["registration"] == held.registration(release)
        and _paid(published) == _paid(standing)
    ):
        raise HinderedError("TABLE_REPLACED")
    yield "TABLE"


def _paid(decision: Document) -> list[str]:
    """Ledger entries that a decision rests on; none under the policy `sdc`."""
    return [] if decision["ledger"] is None else list(decision["ledger"]["entries"])


def _audit(release: Release, _: Path, held: Holdings) -> Iterator[Finding]:
    if not held.audited(release):
        yield "AUDIT"


def _attack(release: Release, package: Path, held: Holdings, seed: int) -> Mapping[AttackCode, float]:
    """log e-values of the look, on the terms the release was published under: cohort.yaml of today changes nothing.

    A list of discoveries, which has no attacks in its terms, gives no evidence either way.
    """
    if not release.terms.attacks:
        return {}
    spec, reference, attacked = held.rows(release)
    try:
        with quiet_errors("the attacks of the re-audit"):
            table = reference.encoder.encode(from_wide(pl.read_parquet(package / "table.parquet"), spec))
            return look_log_e(
                attacked.where_split("train").x,
                attacked.where_split("holdout", "test").x,
                table.x,
                reference.rows.x,
                attacks=release.terms.attacks,
                neighbours=release.terms.neighbours,
                limit=release.terms.membership_limit,
                seed=seed,
            )
    except PrivateComputationError as error:
        raise HinderedError("ATTACKS_FAILED") from error


def _document(package: Path, name: str) -> Document:
    document: Document = json.loads((package / name).read_bytes())
    return document
