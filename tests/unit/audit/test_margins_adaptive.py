"""Evidence of margins chosen adaptively passes; what is changed in a round, chain and seal made to fit, is named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from synth_platform.audit.ledger import row_hash
from synth_platform.audit.margins import audit_margins
from synth_platform.audit.margins_adaptive import subsets
from synth_platform.audit.margins_tables import Space
from synth_platform.audit.reading import digest
from tests.unit.audit.margins_runs import noisy_evidence

Document = dict[str, Any]
EXPECTED = {"cohort": "c", "stage": "dp_margins", "plan": "p"}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Twelve rounds over three declared margins."""
    margins = [["sex", "age"], ["region"], ["age", "marital status"]]
    return noisy_evidence(tmp_path_factory.mktemp("adaptive"), margins_of="adaptive", margins=margins)


def failures(evidence: Document) -> list[str]:
    report = audit_margins(evidence, expected=EXPECTED)
    return [f"{check.name} [{check.kind}] {check.detail}" for check in report.failures]


def test_a_plan_of_twelve_rounds_passes(evidence: Document) -> None:
    report = audit_margins(evidence, expected=EXPECTED)
    assert failures(evidence) == []
    assert [answer["code"] for answer in evidence["answers"]] == ["M_COUNTS", *["M_CHOICE", "M_COUNTS"] * 12]
    assert sum(check.name.endswith("/request") and "round" in check.name for check in report.checks) == 12
    assert "G2/dp_margins/round-0/choice/scores" in report.uncovered


def test_subsets_are_of_declared_margins_in_the_order_of_the_variables() -> None:
    space = Space(dict.fromkeys("abc", ("0", "1")), (), ())
    assert list(subsets(space, [("c", "a"), ("b",)])) == [("a",), ("c",), ("a", "c"), ("b",)]


def resealed(evidence: Document) -> Document:
    rows, before = evidence["ledger"]["rows"], "0" * 64
    for number, row in enumerate(rows, start=1):
        row |= {"id": number, "previous_hash": before}
        row["hash"] = before = row_hash(row)
    evidence["ledger"]["head"] = before
    evidence["body_sha256"] = digest({key: value for key, value in evidence.items() if key != "body_sha256"})
    return evidence


def of_round(evidence: Document, turn: int, **changes: Any) -> None:
    """The counts of a round, answer and rows alike."""
    answer = evidence["answers"][2 + 2 * turn]
    answer.update({key: value for key, value in changes.items() if key in answer})
    for row in evidence["ledger"]["rows"]:
        if row["entry_id"] == answer["entry_id"]:
            row.update(changes)


def half_the_noise(evidence: Document) -> None:
    scale = evidence["answers"][4]["scale"] / 2
    of_round(evidence, 1, scale=scale, event=json.dumps({"type": "GaussianDpEvent", "noise_multiplier": scale}))


def cheaper_choice(evidence: Document) -> None:
    """A choice of a tenth of the noise that the plan lets it have."""
    answer = evidence["answers"][3]
    answer["scale"] /= 10
    for row in evidence["ledger"]["rows"]:
        if row["entry_id"] == answer["entry_id"]:
            eta = 2 * answer["sensitivity"] / answer["scale"]
            row |= {"scale": answer["scale"], "event": json.dumps({"type": "BoundedRangeDpEvent", "eta": eta})}


def a_margin_more(evidence: Document) -> None:
    """A margin that no round bought, with the counts of one that was."""
    first = copy.deepcopy(evidence["protected"][0])
    evidence["protected"].append(first | {"names": list(reversed(first["names"]))})


TOUCHED: dict[str, tuple[str, Callable[[Document], object]]] = {
    "half the noise of a round": ("G2/dp_margins/round-1", half_the_noise),
    "a choice with less noise": ("G2/dp_margins/round-1/choice/mu", cheaper_choice),
    "another request": ("G2/dp_margins/round-2/request", lambda e: of_round(e, 2, request_fingerprint="ef" * 32)),
    "rounds exchanged": (
        "G2/dp_margins/answers/entries",
        lambda e: e["answers"].insert(1, e["answers"].pop(3)),
    ),
    "a round less": ("G2/dp_margins/answers/codes", lambda e: [e["answers"].pop(), e["answers"].pop()]),
    "an answer altered": (
        "G2/dp_margins/answer-2/stored",
        lambda e: e["answers"][2]["values"].__setitem__(0, 1e6),
    ),
    "a margin that was not bought": ("G3/dp_margins/measured/bought", a_margin_more),
    "a margin left out": ("G3/dp_margins/measured/bought", lambda e: e["protected"].pop()),
    "counts of others": (
        "/answer",
        lambda e: e["protected"][0].update(counts=[count * 1.5 for count in e["protected"][0]["counts"]]),
    ),
    "another cost of the first": (
        "G2/dp_margins/first/request",
        lambda e: [
            row.update(request_fingerprint="ef" * 32)
            for row in e["ledger"]["rows"]
            if row["entry_id"] == e["answers"][0]["entry_id"]
        ],
    ),
}


@pytest.mark.parametrize("touched", TOUCHED)
def test_what_is_changed_is_named(touched: str, evidence: Document) -> None:
    name, change = TOUCHED[touched]
    wrong = copy.deepcopy(evidence)
    change(wrong)
    report = audit_margins(resealed(wrong), expected=EXPECTED)
    assert not report.ok
    assert any(name in check.name for check in report.failures), failures(wrong)


def test_nothing_is_left_of_a_ledger_that_is_lost(evidence: Document) -> None:
    wrong = {**copy.deepcopy(evidence), "answers": [], "ledger": {**evidence["ledger"], "rows": [], "statistics": {}}}
    names = {check.name for check in audit_margins(resealed(wrong), expected=EXPECTED).failures}
    assert {"G2/dp_margins/ledger/status", "G2/dp_margins/answers/entries", "G4/dp_margins/decision/paid"} <= names
