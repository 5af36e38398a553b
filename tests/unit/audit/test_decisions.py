"""Every note, reason and precondition, as production decides them, passes the audit; each one flipped is named."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dp_accounting import GaussianDpEvent

from checks.verdicts import IN_WORDS
from synth_platform.audit.decisions import audit_decision
from synth_platform.audit.findings import Findings
from synth_platform.audit.formal import audit_formal, promise_of
from synth_platform.audit.ledger import audit_ledger
from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec
from synth_platform.contract.options import GateOptions
from synth_platform.privacy.formal import formal_status
from synth_platform.privacy.ledger import Ledger, ReserveRequest
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.decision import decide_release
from synth_platform.release.verdicts import membership_summary, utility_summary

Document = dict[str, Any]
NOTES = (
    "NO_PRIVATE_LIFT",
    "LOOSENED_MEMBERSHIP_LIMIT",
    "LOW_POWER_UTILITY",
    "LOW_POWER_CLOSEST_RECORD",
    "LOW_POWER_MEMBERSHIP",
)
REASONS = tuple(code for code in IN_WORDS if code not in NOTES)
LEDGER_REASONS = ("SEEDED_NOISE", "MECHANISM_AUDIT_CONTRADICTION", "DP_AUDIT_CONTRADICTION", "PLAN_EXCEEDED")
BUDGET = {"epsilon": 4.0, "delta": 1e-5}


@dataclass(frozen=True)
class Case:
    """What one table came to; a good one but for what is changed."""

    code: str = "G0A"
    dua_tag: str = "RELEASE_REVIEWED"
    gates: Document = field(default_factory=dict)
    utility: str = "PASS_CONFIRMED"
    cross_fit: str = "NOT_REGISTERED"
    closest_record: str = "PASS"
    membership: str = "PASS_CONFIRMED"
    half_split: str = "NOT_REGISTERED"
    inference: str = "PASS"
    mechanism: str = "OK"
    lift: float | None = 0.1
    power: Document = field(default_factory=dict)
    direct_power: float = 0.9
    seeded: bool = False
    violations: int = 0
    proven: float = 0.0
    epsilon: float = 3.0
    unledgered: tuple[str, ...] = ()


HALVES, FOLDS = {"membership_design": "half_split"}, {"utility_design": "cross_fit"}
CASES = {
    "clean": Case(),
    "point": Case(utility="PASS_POINT"),
    "dua": Case(dua_tag="OPEN"),
    "control": Case(code="S_COPY", unledgered=("control",), closest_record="FAIL", lift=None, direct_power=0.1),
    "free control": Case(code="S_PUBLIC"),
    "unknown": Case(code="G99"),
    "seeded": Case(seeded=True),
    "unledgered": Case(unledgered=("peek",)),
    "inference": Case(inference="FAIL"),
    "inference undecided": Case(inference="UNDECIDED"),
    "schema": Case(violations=3),
    "utility fail": Case(utility="FAIL"),
    "utility hold": Case(utility="HOLD"),
    "closest record": Case(closest_record="FAIL"),
    "membership fail": Case(membership="FAIL"),
    "membership point": Case(membership="PASS_POINT"),
    "attacked": Case(proven=3.5),
    "mechanism": Case(mechanism="CONTRADICTION"),
    "overspent": Case(epsilon=0.5),
    "no lift": Case(lift=0.0),
    "undefined lift": Case(lift=None),
    "loosened": Case(gates={"membership_limit": 0.6}),
    "weak utility": Case(power={"utility_gate": 0.6}),
    "weak endpoint": Case(power={"endpoint": 0.6}),
    "weak closest record": Case(power={"closest_record": 0.5}),
    "weak membership": Case(direct_power=0.1),
    "power at the floor": Case(power={"utility_gate": 0.8, "closest_record": 0.8}, direct_power=0.8),
    "another floor": Case(gates={"power_floor": 0.95}),
    "half splits": Case(gates=HALVES, half_split="PASS_CONFIRMED", membership="PASS_POINT", direct_power=0.1),
    "half splits, direct fails": Case(gates=HALVES, half_split="PASS_CONFIRMED", membership="FAIL"),
    "half splits fail": Case(gates=HALVES, half_split="FAIL"),
    "half splits unsure": Case(gates=HALVES, half_split="PASS_POINT"),
    "cross-fitted": Case(gates=FOLDS, cross_fit="PASS_CONFIRMED", utility="HOLD"),
    "cross-fitted, holdout fails": Case(gates=FOLDS, cross_fit="PASS_POINT", utility="FAIL"),
    "cross-fitted fails": Case(gates=FOLDS, cross_fit="FAIL"),
    "all at once": Case(
        dua_tag="OPEN", seeded=True, violations=1, inference="FAIL", gates=HALVES | FOLDS, half_split="FAIL",
        cross_fit="HOLD", closest_record="FAIL", lift=-0.1, power={"utility_gate": 0.0, "closest_record": 0.0},
    ),
}  # fmt: skip


class Stored:
    """Stands for a store whose releases are what the ledger says."""

    def load(self, entry: object) -> None:
        """Nothing to object."""


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """One committed statistic."""
    folder: Path = tmp_path_factory.mktemp("ledger")
    book = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    book.set_budget("d", BUDGET["epsilon"], BUDGET["delta"])
    request = ReserveRequest(
        domain="d",
        cohort="c",
        code="G0A_COUNTS",
        event=GaussianDpEvent(2.0),
        sensitivity=1.0,
        scale=2.0,
        noise_source="cryptographic",
        request_fingerprint="request",
        input_fingerprint="rows",
        run_id="run",
    )
    book.commit(book.reserve(request).entry_id, "a" * 64)
    return book


def evidence_of(case: Case, ledger: Ledger) -> Document:
    """The parts of an evidence document that decisions are audited by, decided as production does."""
    gates, dp = GateOptions(**case.gates), case.code in DP_GENERATORS
    entries = [] if case.code.startswith("S_") else [entry.entry_id for entry in ledger.entries("d")]
    endpoints = {"auroc": {"lift": case.lift, "status": case.utility}, "c_index": {"lift": -0.2, "status": "HOLD"}}
    documents: Document = {
        "utility_gate": {"status": case.utility, "endpoints": endpoints},
        "closest_record_gate": {"status": case.closest_record, "duplicates": 0},
        "membership_gate": {"status": case.membership, "attacks": {}, "power": case.direct_power},
        "inference_gate": {"status": case.inference},
    }
    if dp:
        documents |= {
            "half_split_audit": {"status": case.half_split, "design": "half_split", "attacks": {}, "power": 0.9},
            "cross_fit_utility": {"status": case.cross_fit, "endpoints": {"auroc": {"lift": 0.2}}},
            "mechanism_audit": {"status": case.mechanism},
        }
    documents = {name: {"status": held["status"], "summary": held} for name, held in documents.items()}
    powers = {"utility_gate": 0.9, "closest_record": 0.9, "endpoint": 0.9} | case.power
    power = {"utility": {"auroc": {"power": powers.pop("endpoint")}}, **{k: {"power": v} for k, v in powers.items()}}
    spec, plan = cast(CohortSpec, SimpleNamespace(gates=gates)), Plan(epsilon=case.epsilon, delta=1e-5)
    formal = formal_status(
        entries=entries,
        unledgered=case.unledgered,
        seeded=case.seeded,
        ledger=ledger,
        store=cast(StatisticStore, Stored()),
        domain="d",
        epsilon=plan.epsilon if dp else 0.0,
        delta=1e-5,
        epsilon_lower_bound=case.proven if dp else None,
        mechanism_contradicted=dp and case.mechanism == "CONTRADICTION",
    )
    decision = decide_release(
        cohort="c",
        generator=case.code,
        plan_key="p" if dp else None,
        plan=plan if dp else None,
        dua_tag=case.dua_tag,
        seeded=case.seeded,
        schema_violations=case.violations,
        utility=utility_summary(spec, case.code, documents),  # type: ignore[arg-type]
        closest_record=documents["closest_record_gate"]["summary"],
        membership=membership_summary(spec, case.code, documents),  # type: ignore[arg-type]
        inference=documents["inference_gate"]["summary"],
        power=power,
        gates=gates,
        registration="e5" * 32,
        formal=formal,
    )
    documents["decision"] = decision.as_dict()
    rows = ledger.chain()
    evidence = {
        "scope": {"cohort": "c", "plan": "p"},
        "registered": {
            "cohort": "c",
            "domain": "d",
            "dua_tag": case.dua_tag,
            "plan": plan.model_dump(),
            "budget": BUDGET,
            "gates": gates.model_dump(),
            "g0": {"clip": 4.5},
        },
        "cohort_documents": {"gates/power": {"summary": power}},
        "generators": {
            case.code: {
                "documents": documents,
                "state": {"entries": entries, "unledgered": list(case.unledgered), "seeded": case.seeded},
                "violations": case.violations,
            }
        },
        "ledger": {
            "rows": rows,
            "head": rows[-1]["hash"],
            "statistics": {entry.entry_id: entry.artefact_fingerprint for entry in ledger.entries("d")},
            "verified": True,
        },
    }
    return cast(Document, json.loads(json.dumps(evidence)))


def failures(case: Case, evidence: Document) -> set[str]:
    found, registered = Findings(), evidence["registered"]
    book = audit_ledger(found, evidence["ledger"], registered)
    generator = evidence["generators"][case.code]
    documents = generator["documents"]
    promise = promise_of(registered, documents, dp=case.code in DP_GENERATORS, proven=case.proven)
    audit_formal(found, case.code, documents["decision"]["ledger"], generator["state"], book, promise)
    audit_decision(found, case.code, generator, evidence, book)
    return {check.name for check in found.checks if not check.passed}


def decision_of(case: Case, evidence: Document) -> Document:
    return cast(Document, evidence["generators"][case.code]["documents"]["decision"])


def toggled(codes: list[str], code: str) -> None:
    if code in codes:
        codes.remove(code)
    else:
        codes.append(code)


@pytest.mark.parametrize("name", CASES)
def test_what_production_decides_passes(name: str, ledger: Ledger) -> None:
    """Claim: no honest decision fails the audit, whatever blocks it and whatever it notes."""
    assert failures(CASES[name], evidence_of(CASES[name], ledger)) == set()


@pytest.mark.parametrize("name", CASES)
def test_what_is_flipped_is_named(name: str, ledger: Ledger) -> None:
    """Claim: a note, a reason or a word of the ledger that is left out or made up fails, and so does another grade."""
    case, honest = CASES[name], evidence_of(CASES[name], ledger)
    flips = [(f"G4/{case.code}/decision/notes", "notes", code) for code in NOTES]
    flips += [(f"G4/{case.code}/decision/reasons", "reasons", code) for code in REASONS]
    flips += [(f"G2/{case.code}/ledger/reasons", "ledger", code) for code in LEDGER_REASONS]
    for check, where, code in flips:
        changed = copy.deepcopy(honest)
        decision = decision_of(case, changed)
        toggled(decision["ledger"]["reasons"] if where == "ledger" else decision[where], code)
        assert failures(case, changed) == {check}, code
    for grade in {"ELIGIBLE_CONFIRMED", "ELIGIBLE_POINT", "BLOCKED"} - {decision_of(case, honest)["decision"]}:
        changed = copy.deepcopy(honest)
        decision_of(case, changed)["decision"] = grade
        assert f"G4/{case.code}/decision/grade" in failures(case, changed), grade


def test_the_cases_reach_everything_a_decision_can_say(ledger: Ledger) -> None:
    decisions = [decision_of(case, evidence_of(case, ledger)) for case in CASES.values()]
    assert {note for decision in decisions for note in decision["notes"]} == set(NOTES)
    assert {reason for decision in decisions for reason in decision["reasons"]} == set(REASONS)
    assert {reason for decision in decisions for reason in decision["ledger"]["reasons"]} >= set(LEDGER_REASONS)
    assert {decision["decision"] for decision in decisions} == {"ELIGIBLE_CONFIRMED", "ELIGIBLE_POINT", "BLOCKED"}
