"""Evidence of real noisy margins passes; whatever is changed in it, chain and seal made to fit, is named."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm

from synth_platform.audit.ledger import row_hash
from synth_platform.audit.margins import audit_margins
from synth_platform.audit.margins_answers import FALSE_ALARM, farthest
from synth_platform.audit.margins_noise import mu_of
from synth_platform.audit.reading import digest
from synth_platform.privacy.accounting import gaussian_mu
from synth_platform.privacy.noise import SeededNoise
from tests.unit.audit.margins_runs import DELTA, noisy_evidence

Document = dict[str, Any]
EXPECTED = {"cohort": "c", "stage": "dp_margins", "plan": "p"}
PAIRS = 6


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """An eligible plan with its package."""
    return noisy_evidence(tmp_path_factory.mktemp("eligible"), package=True)


def failures(evidence: Document) -> list[str]:
    report = audit_margins(evidence, expected=EXPECTED)
    return [f"{check.name} [{check.kind}] {check.detail}" for check in report.failures]


def test_an_eligible_plan_passes(evidence: Document) -> None:
    report = audit_margins(evidence, expected=EXPECTED)
    assert failures(evidence) == []
    assert report.ok
    assert evidence["documents"]["decision"]["decision"] == "ELIGIBLE_FORMAL"
    assert evidence["counted"] is None
    json.dumps(report.as_dict())


OTHERS: dict[str, Document] = {
    "seeded": {"noise": SeededNoise(3)},
    "not reviewed": {"dua_tag": "OPEN"},
    "much noise": {"epsilon": 0.2},
    "adaptive": {"margins_of": "adaptive"},
    "a margin of three": {"margins": ["two_way", ["marital status", "age", "sex"]]},
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_plans_pass_whether_blocked_or_not(other: str, tmp_path: Path) -> None:
    evidence = noisy_evidence(tmp_path, **OTHERS[other])
    assert failures(evidence) == []
    blocked = evidence["documents"]["decision"]["decision"] == "BLOCKED"
    assert blocked is (other in ("seeded", "not reviewed"))


def resealed(evidence: Document) -> Document:
    """The evidence with a chain and a seal as if it had been written so."""
    rows, before = evidence["ledger"]["rows"], "0" * 64
    for number, row in enumerate(rows, start=1):
        row |= {"id": number, "previous_hash": before}
        row["hash"] = before = row_hash(row)
    evidence["ledger"]["head"] = before
    evidence["package"]["ledger"]["head_hash"] = before
    evidence["body_sha256"] = digest({key: value for key, value in evidence.items() if key != "body_sha256"})
    return evidence


Change = Callable[[Document], object]


def row(**changes: object) -> Change:
    """Columns of the rows of the entry, reservation and commit alike."""

    def change(evidence: Document) -> None:
        for each in evidence["ledger"]["rows"]:
            each.update(changes if each["code"] == "M_COUNTS" else {})

    return change


def answer(**changes: object) -> Change:
    return lambda evidence: evidence["answers"][0].update(changes)


def half_the_noise(evidence: Document) -> None:
    """On every side: answer, entry, event and provenance."""
    scale = evidence["answers"][0]["scale"] / 2
    answer(scale=scale)(evidence)
    event = {"type": "GaussianDpEvent", "noise_multiplier": scale / math.sqrt(PAIRS)}
    row(scale=scale, event=json.dumps(event))(evidence)


def smaller_sensitivity(evidence: Document) -> None:
    """As if one margin had been asked: less noise for the same event."""
    answer(sensitivity=1.0)(evidence)
    multiplier = evidence["answers"][0]["scale"]
    row(sensitivity=1.0, event=json.dumps({"type": "GaussianDpEvent", "noise_multiplier": multiplier}))(evidence)


def another_answer(evidence: Document) -> None:
    evidence["answers"][0]["values"][0] += 1.0


def no_entry(evidence: Document) -> None:
    rows = evidence["ledger"]["rows"]
    rows[:] = [each for each in rows if each["code"] != "M_COUNTS"]
    evidence["ledger"]["statistics"] = {}


def uncommitted(evidence: Document) -> None:
    rows = evidence["ledger"]["rows"]
    rows[:] = [each for each in rows if (each["code"], each["state"]) != ("M_COUNTS", "committed")]


def true_total(evidence: Document) -> None:
    """One margin brought to the number of people."""
    counts = evidence["protected"][0]["counts"]
    evidence["protected"][0]["counts"] = [count * 3_000 / sum(counts) for count in counts]


def one_count_more(evidence: Document) -> None:
    """A cell that is farther from its answer than any noise."""
    scale = evidence["answers"][0]["scale"]
    for margin in evidence["protected"]:
        margin["counts"][0] += 40 * scale


def all_counts_more(evidence: Document) -> None:
    """Cells that are four noises off, as many up as down: none is farther than noise can be by itself."""
    scale = evidence["answers"][0]["scale"]
    for margin in evidence["protected"]:
        margin["counts"] = [max(0.0, c + (-1) ** at * 4 * scale) for at, c in enumerate(margin["counts"])]


def part(name: str, /, **changes: object) -> Change:
    return lambda evidence: evidence["documents"][name].update(changes)


TOUCHED: dict[str, tuple[str, Change]] = {
    "half the noise": ("G2/dp_margins/counts/scale", half_the_noise),
    "a smaller sensitivity": ("G2/dp_margins/counts/sensitivity", smaller_sensitivity),
    "another answer": ("G2/dp_margins/answer-0/stored", another_answer),
    "the noise of the answer alone": ("G2/dp_margins/answer-0/scale", answer(scale=0.1)),
    "the noise of the entry alone": ("/noise_multiplier", row(scale=0.1)),
    "the entry removed": ("G2/dp_margins/answer-0/entry", no_entry),
    "the entry removed is a status": ("G2/dp_margins/ledger/status", no_entry),
    "an entry not committed": ("G2/dp_margins/ledger/status", uncommitted),
    "an answer removed": ("G2/dp_margins/answers/entries", lambda e: e["answers"].clear()),
    "an entry that was not said": ("G2/dp_margins/ledger/entries", lambda e: e["measured"]["entries"].clear()),
    "an access outside the ledger": (
        "G2/dp_margins/ledger/status",
        lambda e: e["measured"]["unledgered"].append("counting margins"),
    ),
    "seeded noise": ("G2/dp_margins/seeded", lambda e: e["measured"].update(seeded=True)),
    "seeded noise in the ledger": ("G2/dp_margins/answer-0/noise_source", row(noise_source="seeded")),
    "another request": ("G2/dp_margins/counts/request", row(request_fingerprint="ef" * 32)),
    "other rows asked": ("G2/dp_margins/counts/request", lambda e: e["measured"].update(rows="ab" * 32)),
    "categories that were not asked": (
        "G2/dp_margins/counts/request",
        lambda e: e["variables"][0]["categories"].__setitem__(1, "16-25"),
    ),
    "another relation": ("G2/dp_margins/counts/relation", row(neighbouring="replace_one")),
    "another code": ("G2/dp_margins/answer-0/code", answer(code="G0_COUNTS")),
    "another cohort's entry": ("G2/dp_margins/answer-0/cohort", row(cohort="other")),
    "off the grid": ("G2/dp_margins/counts/grid", answer(granularity=1.0)),
    "a larger epsilon promised": ("G4/dp_margins/decision/epsilon", part("decision", epsilon=5.0)),
    "a smaller epsilon registered": ("ledger/status", lambda e: e["registered"]["plan"].update(epsilon=3.9)),
    "another mu": ("G2/dp_margins/mu", part("decision", mu=0.1)),
    "no promise": ("decision/mu/promised", part("decision", mu=None)),
    "a budget that is not the cap": ("G2/ledger/cap/epsilon", lambda e: e["registered"]["budget"].update(epsilon=9.0)),
    "the true total": ("G3/dp_margins/measured/01:age+region/total", true_total),
    "counts that were not answered": ("G3/dp_margins/measured/distance", all_counts_more),
    "a count that was not answered": ("G3/dp_margins/measured/00:age+sex/answer", one_count_more),
    "a structural zero filled": (
        "measured/02:age+marital?status/structural",
        lambda e: e["protected"][2]["counts"].__setitem__(1, 1.0),
    ),
    "another noise told": (
        "measured/00:age+sex/provenance",
        lambda e: e["protected"][0]["provenance"].__setitem__(0, "counts"),
    ),
    "a margin that was not asked": ("measured/declared", lambda e: e["protected"].pop()),
    "the word of the other policy": ("decision/assurance", part("decision", assurance="SDC")),
    "a disclosure gate": ("G1/documents", lambda e: e["documents"].update(disclosure_gate={})),
    "another entry in the package": (
        "package/ledger/",
        lambda e: e["package"]["ledger"]["entries"][0].update(scale=99.0),
    ),
    "another cost in the package": (
        "package/ledger/mu",
        lambda e: e["package"]["ledger"]["cost"].update(mu=0.1),
    ),
    "another word on the card": ("package/card/assurance", lambda e: e["package"]["card"].update(kind="SDC")),
    "another count in the package": (
        "package/age+sex/counts",
        lambda e: e["package"]["margins"][0][1].__setitem__(-1, "300"),
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


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_mu_is_that_of_the_accountant(epsilon: float) -> None:
    """The platform's own inverse of the trade-off curve."""
    assert mu_of(epsilon, DELTA) == pytest.approx(gaussian_mu(epsilon, DELTA), rel=1e-7)


def test_the_farthest_noise_is_that_of_the_normal_law() -> None:
    assert 2 * 500 * norm.sf(farthest(500) / 2) == pytest.approx(FALSE_ALARM, rel=1e-6)
