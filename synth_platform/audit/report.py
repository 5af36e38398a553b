"""The audit: one evidence document and one conformance document in, one report out. Nothing it reads can stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from synth_platform.audit.conformance import audit_conformance
from synth_platform.audit.decisions import audit_decision, audit_known_verdict, audit_package
from synth_platform.audit.findings import Check, Findings
from synth_platform.audit.formal import audit_formal, promise_of
from synth_platform.audit.half_split import audit_half_split
from synth_platform.audit.inference import audit_inference
from synth_platform.audit.ledger import Book, audit_ledger
from synth_platform.audit.mechanism import audit_charge, audit_mechanism
from synth_platform.audit.power import NAME as POWER
from synth_platform.audit.power import audit_power
from synth_platform.audit.privacy_gates import audit_closest_record, audit_membership, epsilon_lower_bound
from synth_platform.audit.reading import Document, digest_or_unreadable, item, leaves, mapping, section_of
from synth_platform.audit.structure import audit_structure
from synth_platform.audit.utility import audit_cross_fit, audit_utility
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS

Auditor = Callable[[Findings, str, Document, Document], None]

AUDITORS: Mapping[str, Auditor] = {
    "utility_gate": audit_utility,
    "closest_record_gate": audit_closest_record,
    "membership_gate": audit_membership,
    "inference_gate": audit_inference,
    "half_split_audit": audit_half_split,
    "cross_fit_utility": audit_cross_fit,
    "mechanism_audit": audit_mechanism,
}
EMPTY_BOOK = Book(MappingProxyType({}), False, MappingProxyType({}), ())


REPORT_FIELDS = (
    "status",
    "scope",
    "passed",
    "failed",
    "counts",
    "failures",
    "notes",
    "uncovered",
    "documents",
    "evidence_sha256",
    "conformance_sha256",
)


@dataclass(frozen=True)
class Report:
    """What an audit found. It holds names, statuses and public figures, nothing that is a function of private rows.

    documents: SHA-256 of the canonical JSON of every document that was audited, by `<generator>/<document>`; whoever
    relies on a document compares it. notes: statuses of controls that are not what they should be and stop nothing.
    uncovered: summary figures that no check recomputes.
    """

    scope: Mapping[str, str]
    checks: tuple[Check, ...]
    counts: Mapping[str, Mapping[str, int]]
    notes: tuple[str, ...]
    uncovered: tuple[str, ...]
    documents: Mapping[str, str]
    evidence_sha256: str
    conformance_sha256: str

    @property
    def failures(self) -> tuple[Check, ...]:
        """Checks that do not hold."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def ok(self) -> bool:
        """Whether something was audited and every check holds."""
        return bool(self.documents) and not self.failures

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready form; of the checks that hold only the numbers."""
        return {
            "status": "PASS" if self.ok else "FAIL",
            "scope": dict(self.scope),
            "passed": len(self.checks) - len(self.failures),
            "failed": len(self.failures),
            "counts": {gate: dict(kinds) for gate, kinds in self.counts.items()},
            "failures": [{"name": c.name, "kind": c.kind, "detail": c.detail} for c in self.failures],
            "notes": list(self.notes),
            "uncovered": list(self.uncovered),
            "documents": dict(self.documents),
            "evidence_sha256": self.evidence_sha256,
            "conformance_sha256": self.conformance_sha256,
        }


def audit(evidence: object, conformance: object, *, expected: Mapping[str, str] = MappingProxyType({})) -> Report:
    """Recompute everything the two documents claim (8-1 §3.6 G1-G4). Never raises for what they hold.

    expected: cohort, plan or domain that the evidence must be of.
    """
    found = Findings()
    body: Document = evidence if isinstance(evidence, Mapping) else {}
    rules: Document = conformance if isinstance(conformance, Mapping) else {}
    with found.section("G1"):
        audit_structure(found, body, expected)
    with found.section("G2/conformance"):
        audit_conformance(found, rules)
    book = EMPTY_BOOK
    with found.section("G2/ledger"):
        book = audit_ledger(found, mapping(body, "ledger"), mapping(body, "registered"))
    with found.section(f"G3/{POWER}"):
        if mapping(body, "generators"):
            audit_power(found, mapping(body, "cohort_documents", POWER), mapping(body, "registered"))
    with found.section("G3"):
        for code in mapping(body, "generators"):
            _audit_generator(found, str(code), body, book)
    return Report(
        scope={key: str(value) for key, value in section_of(body, "scope").items()},
        checks=tuple(found.checks),
        counts=found.counts(),
        notes=tuple(found.notes),
        uncovered=tuple(found.uncovered),
        documents=_documents(body),
        evidence_sha256=digest_or_unreadable(body),
        conformance_sha256=digest_or_unreadable(rules),
    )


def _audit_generator(found: Findings, code: str, evidence: Document, book: Book) -> None:
    with found.section(f"G3/{code}"):
        generator = mapping(evidence, "generators", code)
        registered = mapping(evidence, "registered")
        documents = mapping(generator, "documents")
        _tables(found, code, generator, registered)
        for name, document in documents.items():
            if name in AUDITORS:
                with found.section(f"G3/{code}/{name}"):
                    AUDITORS[name](found, f"G3/{code}/{name}", document, registered)
            elif name != "decision":
                found.uncovered += [f"{code}/{name}/{'.'.join(path)}" for path, _ in leaves(document.get("summary"))]
        dp = code in DP_GENERATORS
        with found.section(f"G3/{code}/mechanism_audit/charged"):
            if dp:
                audit_charge(found, code, documents, book)
        with found.section(f"G2/{code}/ledger"):
            proven = None
            if dp:
                delta = float(item(registered, "plan", "delta"))
                proven = epsilon_lower_bound(mapping(documents, "membership_gate", "evidence", "scores"), delta)
            promise = promise_of(registered, documents, dp=dp, proven=proven)
            ledger = mapping(documents, "decision", "ledger")
            audit_formal(found, code, ledger, mapping(generator, "state"), book, promise)
        with found.section(f"G4/{code}/decision"):
            audit_decision(found, code, generator, evidence, book)
        if code in CONTROLS:
            with found.section(f"G4/{code}/known"):
                audit_known_verdict(found, code, mapping(documents, "decision"))
        if code in mapping(evidence, "packages"):
            with found.section(f"G4/{code}/package"):
                package = mapping(evidence, "packages", code)
                audit_package(found, code, package, mapping(documents, "decision"), registered, book)


def _tables(found: Findings, code: str, generator: Document, registered: Document) -> None:
    """One table of the registered size for every registered seed."""
    tables = mapping(generator, "tables")
    seeds = sorted(str(seed) for seed in item(registered, "seeds"))
    found.same(f"G3/{code}/tables/seeds", "length", sorted(tables), seeds)
    for seed, rows in tables.items():
        found.same(f"G3/{code}/tables/{seed}", "length", rows, item(registered, "rows"))


def _documents(evidence: Document) -> dict[str, str]:
    return dict(sorted(_digests(evidence)))


def _digests(evidence: Document) -> Iterator[tuple[str, str]]:
    for name, document in section_of(evidence, "cohort_documents").items():
        yield str(name), digest_or_unreadable(document)
    for code, generator in section_of(evidence, "generators").items():
        if isinstance(generator, Mapping):
            for name, document in section_of(generator, "documents").items():
                yield f"{code}/{name}", digest_or_unreadable(document)
