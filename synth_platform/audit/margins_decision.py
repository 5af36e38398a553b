"""G4, the decision on margins: by tables of our own from the statuses of its documents, under the policy's promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from synth_platform.audit.findings import Findings
from synth_platform.audit.ledger import Book
from synth_platform.audit.margins_disclosure import PASS
from synth_platform.audit.reading import Document, item, mapping, number, sequence, text, whole
from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG

BLOCKED = "BLOCKED"
MOST_MISSED = 0.1
# Policy, word of assurance and grade of each stage.
POLICIES: Mapping[str, tuple[str, str, str]] = {
    "margins": ("sdc", "SDC", "ELIGIBLE_SDC"),
    "dp_margins": ("dp", "DP", "ELIGIBLE_FORMAL"),
}
FORMAL: Mapping[str, str] = {
    "ABSENT": "LEDGER_ABSENT",
    "BUDGET_EXCEEDED": "BUDGET_EXCEEDED",
    "CONTRADICTION": "DP_AUDIT_CONTRADICTION",
}
FIELDS = (
    "cohort",
    "generator",
    "plan",
    "policy",
    "assurance",
    "options",
    "registration",
    "disclosure",
    "fit",
    "schema",
    "utility",
    "ledger",
    "epsilon",
    "delta",
    "mu",
    "decision",
    "reasons",
    "notes",
)
_PROMISE = ("ledger", "epsilon", "delta", "mu")


def audit_margins_decision(found: Findings, stage: str, evidence: Document, violations: int, book: Book) -> None:
    """violations: 0 where the audit found every replicate inside its domain and zeros."""
    name, registered = f"G4/{stage}/decision", mapping(evidence, "registered")
    documents, plan = mapping(evidence, "documents"), mapping(evidence, "registered", "plan")
    decision, model = mapping(documents, "decision"), mapping(evidence, "model")
    policy, assurance, grade = POLICIES[stage]
    found.same(f"{name}/fields", "structure", sorted(decision), sorted(FIELDS))
    fit = {key: item(model, key) for key in ("engine", "status", "largest_residual")}
    fields: dict[str, Any] = {
        "cohort": text(registered, "cohort"),
        "generator": stage,
        "plan": text(evidence, "scope", "plan"),
        "policy": policy,
        "assurance": assurance,
        "options": dict(plan),
        "registration": text(registered, "registration"),
        "fit": fit,
        "utility": {"status": text(documents, "utility_gate", "status")},
        "notes": [] if text(model, "status") == "matched" else ["MARGINS_NOT_MATCHED"],
    }
    if policy == "sdc":
        gate = mapping(documents, "disclosure_gate")
        fields["disclosure"] = {key: item(gate, key) for key in ("status", "reasons", "limit")}
    else:
        fields |= {"disclosure": None, "delta": number(registered, "budget", "delta"), "epsilon": plan["epsilon"]}
    for field, own in fields.items():
        found.same(f"{name}/{field}", "decision_field", item(decision, field), own)
    found.same(f"{name}/policy/registered", "decision_field", text(plan, "policy"), policy)
    for field in _PROMISE:
        # Of entries that do not stand no mu follows.
        due = policy == "dp" and (field != "mu" or item(decision, "ledger", "mu") is not None)
        found.same(f"{name}/{field}/promised", "promise", item(decision, field) is not None, due)
    claimed = whole(decision, "schema", "violations")
    found.holds(f"{name}/schema", "schema", (claimed == 0) is (violations == 0), f"claimed {claimed}")
    reasons = sorted(set(_reasons(policy, registered, documents, evidence, claimed)))
    found.same(f"{name}/reasons", "decision", sorted(sequence(decision, "reasons")), reasons)
    found.same(f"{name}/grade", "decision", text(decision, "decision"), BLOCKED if reasons else grade)
    if policy == "dp":
        entries = [book.entries.get(str(entry)) for entry in sequence(evidence, "measured", "entries")]
        paid = bool(entries) and all(entry is not None and entry.committed is not None for entry in entries)
        blocked = item(decision, "decision") == BLOCKED
        found.holds(f"{name}/paid", "paid", paid or blocked, "eligible without committed ledger entries")


def _reasons(
    policy: str, registered: Document, documents: Document, evidence: Document, violations: int
) -> Iterator[str]:
    if text(registered, "dua_tag") != RELEASABLE_DUA_TAG:
        yield "DUA_NOT_REVIEWED"
    if violations:
        yield "SCHEMA_VIOLATION"
    if number(evidence, "model", "largest_residual") > MOST_MISSED:
        yield "FIT_FAIL"
    if policy == "sdc":
        if text(documents, "disclosure_gate", "status") != PASS:
            yield "DISCLOSURE_FAIL"
        return
    if item(evidence, "measured", "seeded") is not False:
        yield "SEEDED_NOISE"
    ledger = mapping(documents, "decision", "ledger")
    status = text(ledger, "status")
    if status != "OK":
        yield FORMAL[status]
    if not sequence(ledger, "entries"):
        yield "LEDGER_ABSENT"
