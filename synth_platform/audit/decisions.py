"""G4: known verdicts of the controls, every decision derived anew, and what was published of it (8-1 §3.5, §3.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synth_platform.audit.findings import Findings
from synth_platform.audit.ledger import Book, highest_row
from synth_platform.audit.reading import Document, figure, item, mapping, number, sequence, text, whole
from synth_platform.audit.rules import release_rule
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS, RELEASABLE_DUA_TAG
from synth_platform.contract.options import GateOptions

LIMITS = ("membership_limit", "train_closer_tolerance", "excess_tolerance")
_ENTRY = ("entry_id", "cohort", "code", "sensitivity", "scale", "neighbouring", "noise_source")

# 8-1 §3.7. What a control must come to, because of how it is made: a leak that passes, or a useless table that does,
# shows a gate that does not judge, and stops every release.
Statuses = frozenset[str]
KNOWN: Mapping[str, Mapping[str, Statuses]] = {
    "S_ORACLE": {"ledger": frozenset({"ABSENT"})},
    "S_COPY": {"closest_record": frozenset({"FAIL"}), "ledger": frozenset({"ABSENT"})},
    "S_MIX": {"closest_record": frozenset({"FAIL"}), "ledger": frozenset({"ABSENT"})},
    "S_MARGINAL": {"utility": frozenset({"FAIL"}), "ledger": frozenset({"ABSENT"})},
    "S_PUBLIC": {"ledger": frozenset({"OK"})},
}
# What a control should come to as well, and a note where it does not: a harmless one is refused by chance now and then,
# at rates that are known, and copies of few rows among very many members leave the AUROC where it was.
_NO_LEAK = {"closest_record": frozenset({"PASS"}), "membership": frozenset({"PASS_CONFIRMED", "PASS_POINT"})}
EXPECTED: Mapping[str, Mapping[str, Statuses]] = {
    "S_ORACLE": {"utility": frozenset({"PASS_CONFIRMED", "PASS_POINT", "HOLD"}), **_NO_LEAK},
    "S_COPY": {"membership": frozenset({"FAIL"})},
    "S_PUBLIC": _NO_LEAK,
}


def audit_known_verdict(found: Findings, code: str, decision: Document) -> None:
    """A control is BLOCKED and has the statuses that its making demands."""
    found.same(f"G4/{code}/known/decision", "known_verdict", item(decision, "decision"), "BLOCKED")
    for gate, allowed in KNOWN[code].items():
        status = text(decision, gate, "status")
        found.holds(f"G4/{code}/known/{gate}", "known_verdict", status in allowed, f"status {status}")
    for gate, allowed in EXPECTED.get(code, {}).items():
        status = text(decision, gate, "status")
        if status not in allowed:
            found.notes.append(f"{code}/{gate}: {status}")


def audit_decision(found: Findings, code: str, generator: Document, evidence: Document, book: Book) -> None:
    """The decision follows from its gate documents, its ledger block and what is registered."""
    documents, registered = mapping(generator, "documents"), mapping(evidence, "registered")
    decision = mapping(documents, "decision")
    name = f"G4/{code}/decision"
    dp = code in DP_GENERATORS
    _copied(found, name, decision, _chosen(documents, mapping(evidence, "cohort_documents"), registered, dp=dp))
    plan = mapping(registered, "plan") if dp else {}
    ledger = mapping(decision, "ledger")
    fields: dict[str, Any] = {
        "cohort": text(evidence, "scope", "cohort"),
        "generator": code,
        "plan": text(evidence, "scope", "plan") if dp else None,
        "epsilon": number(plan, "epsilon") if dp else figure(ledger, "epsilon_pld"),
        "delta": number(plan, "delta") if dp else None,
        "mu": figure(ledger, "mu"),
        "limits": {limit: number(registered, "gates", limit) for limit in LIMITS},
    }
    for field, own in fields.items():
        found.same(f"{name}/{field}", "decision_field", item(decision, field), own)
    violations = whole(generator, "violations")
    found.same(f"{name}/schema", "schema", item(decision, "schema", "violations"), violations)

    grade, reasons = release_rule(
        violations=violations,
        utility=text(decision, "utility", "status"),
        closest_record=text(decision, "closest_record", "status"),
        membership=text(decision, "membership", "status"),
        formal=text(ledger, "status"),
    )
    before = list(_preconditions(code, generator, registered))
    if text(decision, "inference", "status") == "FAIL":
        before.append("INFERENCE_FAIL")
    found.same(f"{name}/grade", "decision", item(decision, "decision"), "BLOCKED" if before else grade)
    found.same(f"{name}/reasons", "decision", sorted(sequence(decision, "reasons")), sorted([*before, *reasons]))
    notes = list(_notes(decision, registered)) if dp else []
    found.same(f"{name}/notes", "decision", sorted(sequence(decision, "notes")), sorted(notes))
    eligible = item(decision, "decision") != "BLOCKED"
    entries = [book.entries.get(str(entry)) for entry in sequence(ledger, "entries")]
    paid = bool(entries) and all(entry is not None and entry.committed is not None for entry in entries)
    found.holds(f"{name}/paid", "paid", paid or not eligible, "eligible without committed ledger entries")


def _chosen(documents: Document, of_cohort: Document, registered: Document, *, dp: bool) -> Document:
    """What a decision must say of its gates: their summaries, each of the design that was registered to count.

    A control is judged by the direct designs. Half splits speak of the generator, so the released table itself must not
    fail beside them.
    """
    utility = mapping(documents, "utility_gate", "summary")
    utility_design = text(registered, "gates", "utility_design") if dp else "holdout"
    if utility_design == "cross_fit":
        utility = mapping(documents, "cross_fit_utility", "summary")
    membership = {**mapping(documents, "membership_gate", "summary"), "design": "direct"}
    if dp and text(registered, "gates", "membership_design") == "half_split":
        halves, direct = mapping(documents, "half_split_audit", "summary"), membership["status"]
        status = direct if direct == "FAIL" else item(halves, "status")
        membership = {**halves, "status": status, "design": "half_split", "direct": direct}
    return {
        "utility": {"status": item(utility, "status"), "design": utility_design},
        "endpoints": item(utility, "endpoints"),
        "closest_record": item(documents, "closest_record_gate", "summary"),
        "membership": membership,
        "inference": item(documents, "inference_gate", "summary"),
        "power": item(of_cohort, "gates/power", "summary"),
    }


def _copied(found: Findings, name: str, decision: Document, chosen: Document) -> None:
    for part, own in chosen.items():
        found.same(f"{name}/{part}", "copied", item(decision, part), own, public=False)


def _preconditions(code: str, generator: Document, registered: Document) -> Iterator[str]:
    if text(registered, "dua_tag") != RELEASABLE_DUA_TAG:
        yield "DUA_NOT_REVIEWED"
    if code in CONTROLS:
        yield "CONTROL_GENERATOR"
    elif code not in DP_GENERATORS:
        yield "UNKNOWN_GENERATOR"
    if item(generator, "state", "seeded") is not False:
        yield "SEEDED_NOISE"


def _notes(decision: Document, registered: Document) -> Iterator[str]:
    lifts = [figure(endpoint, "lift") for endpoint in mapping(decision, "endpoints").values()]
    if max((lift for lift in lifts if lift is not None), default=0.0) <= 0:
        yield "NO_PRIVATE_LIFT"
    if number(registered, "gates", "membership_limit") > GateOptions().membership_limit:
        yield "LOOSENED_MEMBERSHIP_LIMIT"
    powers = {
        "UTILITY": number(decision, "power", "utility_gate", "power"),
        "CLOSEST_RECORD": number(decision, "power", "closest_record", "power"),
        "MEMBERSHIP": number(decision, "membership", "power"),
    }
    floor = number(registered, "gates", "power_floor")
    yield from (f"LOW_POWER_{gate}" for gate, power in powers.items() if power < floor)


def audit_package(
    found: Findings, code: str, package: Document, decision: Document, registered: Document, book: Book
) -> None:
    """The published decision is part of the stored one, says no more than the policy, and its ledger is the chain's."""
    name = f"G4/{code}/package"
    published, ledger = mapping(package, "decision"), mapping(package, "ledger")
    found.same(f"{name}/eligible", "package", item(decision, "decision") != "BLOCKED", True)
    for field, claimed in published.items():
        found.holds(f"{name}/decision/{field}", "package", _part_of(claimed, decision.get(field)), "not as it stands")
    if text(registered, "publication") == "statuses_only":
        gates = ("utility", "closest_record", "membership", "inference")
        shown = [mapping(published, gate) for gate in gates if gate in published]
        shown += mapping(published, "endpoints").values()
        only = all(set(gate) <= {"status", "design"} for gate in shown)
        found.holds(f"{name}/policy", "package", only, "figures beside statuses")
    listed, files = mapping(package, "checksums"), mapping(package, "files")
    for file in sorted({*listed, *files}):
        found.same(f"{name}/{file}/sha256", "package_hash", listed.get(file), files.get(file))
    for key in ("domain", "unit", "delta"):
        own = item(decision, "delta") if key == "delta" else item(registered, key)
        found.same(f"{name}/ledger/{key}", "package_ledger", item(ledger, key), own)
    for key, value in mapping(ledger, "cost").items():
        found.same(f"{name}/ledger/{key}", "package_ledger", value, item(decision, "ledger", key))
    entries = sequence(ledger, "entries")
    ids = [text(entry, "entry_id") for entry in entries]
    found.same(f"{name}/ledger/entries", "package_ledger", ids, item(decision, "ledger", "entries"))
    for entry in entries:
        _entry(found, f"{name}/ledger/{entry['entry_id']}", entry, book)
    found.same(f"{name}/ledger/head", "package_ledger", item(ledger, "head_hash"), highest_row(book, ids).get("hash"))


def _entry(found: Findings, name: str, published: Document, book: Book) -> None:
    held = book.entries.get(text(published, "entry_id"))
    same = held is not None and all(published.get(key) == held.reserved.get(key) for key in _ENTRY)
    found.holds(name, "package_ledger", same, "not as the ledger has it")
    event = held is not None and item(published, "event") == held.event
    found.holds(f"{name}/event", "package_ledger", event, "not as the ledger has it")


def _part_of(part: object, document: object) -> bool:
    """Whether everything in `part` stands in `document`, at the same place."""
    if isinstance(part, Mapping):
        return isinstance(document, Mapping) and all(
            k in document and _part_of(v, document[k]) for k, v in part.items()
        )
    if isinstance(part, Sequence) and not isinstance(part, str):
        return part == document
    return type(part) is type(document) and part == document
