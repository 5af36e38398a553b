"""The decision on a list of discoveries: it may leave exactly if nothing stands against it, and says all that does."""

from __future__ import annotations

import copy
import json
import math
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from synth_platform.privacy.formal import FormalVerdict
from synth_platform.privacy.noise import SeededNoise
from synth_platform.release import discovery
from synth_platform.release.discovery import list_violations

Document = dict[str, Any]


def test_a_paid_list_is_eligible(paid: Any) -> None:
    """Claim: mu, told as epsilon at the domain's delta by Corollary 1 (Dong, Roth and Su 2022); the level, procedure
    and dependence of false discoveries; what the entries cost, which is mu and no more; JSON throughout."""
    found = paid.decide()
    assert (found["decision"], found["reasons"], found["notes"]) == ("ELIGIBLE_FORMAL", [], [])
    epsilon = found["epsilon"]
    delta = norm.cdf(-epsilon / 2 + 1) - math.exp(epsilon) * norm.cdf(-epsilon / 2 - 1)
    assert (found["mu"], found["delta"], delta) == (2.0, 1e-5, pytest.approx(1e-5, rel=1e-6))
    assert found["fdr"] == {
        "level": 0.05,
        "procedure": "boosted e-BH on private e-values",
        "dependence": "arbitrary",
    }
    assert found["ledger"]["status"] == "OK"
    assert found["ledger"]["entries"] == paid.e_values["entries"]
    assert 2 * (1 - 1e-6) <= found["ledger"]["mu"] <= 2
    assert found["ledger"]["epsilon_pld"] <= epsilon <= found["ledger"]["epsilon_rdp"]
    assert found["schema"] == {"violations": 0}
    assert (found["cohort"], found["generator"], found["plan"], found["contrast"]) == (
        "toy", "discovery", "basal-mu2-alpha0.05-top4", "basal",
    )  # fmt: skip
    assert found["registration"] == paid.spec.registration_of(paid.plan)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def without(paid: Any, **changes: Any) -> Document:
    return {"e_values": paid.e_values | changes}


def other_tag(paid: Any) -> Document:
    return {"spec": paid.spec.model_copy(update={"dua_tag": "OPEN"})}


def other_domain(paid: Any) -> Document:
    paid.ledger.set_budget("elsewhere", 40.0, 1e-5)
    return {
        "spec": paid.spec.model_copy(update={"privacy": paid.spec.privacy.model_copy(update={"domain": "elsewhere"})})
    }


def broken_answer(paid: Any) -> Document:
    entry = next(e for e in paid.ledger.entries("toy") if e.entry_id == paid.e_values["entries"][-1])
    file = paid.store._file(entry.artefact_fingerprint)
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    return {}


def past_the_cap(paid: Any) -> Document:
    paid.ledger.set_budget("toy", 1.0, 1e-5, change=True)
    return {}


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (other_tag, ["DUA_NOT_REVIEWED"]),
        (lambda p: without(p, seeded=True), ["SEEDED_NOISE", "LEDGER_ABSENT"]),
        (lambda p: {"discoveries": p.discoveries | {"alpha": 0.1}}, ["SCHEMA_VIOLATION"]),
        (lambda p: without(p, entries=[*p.e_values["entries"], "E-of-nobody"]), ["LEDGER_ABSENT"]),
        (lambda p: without(p, unledgered=["a look at the rows"]), ["LEDGER_ABSENT"]),
        (other_domain, ["LEDGER_ABSENT"]),
        (broken_answer, ["LEDGER_ABSENT"]),
        (lambda p: {"plan": replace(p.plan, mu=1.999)}, ["BUDGET_EXCEEDED"]),
        (past_the_cap, ["BUDGET_EXCEEDED"]),
    ],
    ids=[
        "agreement", "seeded", "form", "entry", "access", "domain", "answer", "promise", "cap",
    ],
)  # fmt: skip
def test_what_stands_against_it_blocks_it(paid: Any, change: Callable[[Any], Document], reasons: list[str]) -> None:
    found = paid.decide(**change(paid))
    assert (found["decision"], found["reasons"]) == ("BLOCKED", reasons)
    if "LEDGER_ABSENT" in reasons:
        assert (found["ledger"]["status"], found["ledger"]["epsilon_pld"], found["ledger"]["mu"]) == (
            "ABSENT", None, None,
        )  # fmt: skip
        assert found["ledger"]["reasons"]


def test_a_list_that_nobody_paid_for_is_blocked(paid: Any) -> None:
    """Claim: without an entry the ledger has nothing against it, and nothing for it either."""
    assert paid.decide(**without(paid, entries=[]))["reasons"] == ["LEDGER_ABSENT"]


def test_a_broken_ledger_blocks_it(paid: Any, tmp_path: Path) -> None:
    """Claim: with one row altered, whichever, no figure of the ledger holds."""
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE ledger SET scale = scale * 2 WHERE id = 2")
    connection.close()
    found = paid.decide()
    assert (found["reasons"], found["ledger"]["reasons"]) == (["LEDGER_ABSENT"], ["LEDGER_BROKEN"])


def test_a_refuted_cost_blocks_it(paid: Any, monkeypatch: Any) -> None:
    """Claim: no attack is run on a list; were its cost refuted elsewhere, the code would be that of tables."""
    refuted = FormalVerdict("CONTRADICTION", 9.0, 9.0, 2.0, 0.9, ("e",), ("MECHANISM_AUDIT_CONTRADICTION",))
    monkeypatch.setattr(discovery, "formal_status", lambda **_: refuted)
    assert paid.decide()["reasons"] == ["DP_AUDIT_CONTRADICTION"]


def test_every_reason_is_told(pay: Any) -> None:
    """Claim: reasons do not hide one another; what a seeded source drew is ABSENT from the ledger's point of view."""
    seeded = pay(noise=SeededNoise(3))
    found = seeded.decide(
        spec=seeded.spec.model_copy(update={"dua_tag": ""}), discoveries=seeded.discoveries | {"hypotheses": 9}
    )
    assert found["reasons"] == ["DUA_NOT_REVIEWED", "SEEDED_NOISE", "SCHEMA_VIOLATION", "LEDGER_ABSENT"]
    assert found["ledger"]["reasons"] == ["SEEDED_NOISE"]


def line(document: Document, at: int = 0, **fields: Any) -> None:
    document["list"][at] |= fields


def swap(document: Document) -> None:
    """The two largest e-values change names."""
    first, second = document["list"][:2]
    first["log_e"], second["log_e"] = second["log_e"], first["log_e"]


@pytest.mark.parametrize(
    ("change", "violations"),
    [
        (lambda d: None, 0),
        (lambda d: d["list"].reverse(), 4),
        (lambda d: d.update(alpha=0.0500001), 1),
        (lambda d: d.update(hypotheses=7), 1),
        (lambda d: d.update(discoveries=99), 1),
        (lambda d: line(d, feature="TP53"), 1),
        (lambda d: line(d, log_e=np.nextafter(d["list"][0]["log_e"], 99)), 1),
        (swap, 2),
        (lambda d: d["list"].pop(), 1),
        (lambda d: d["list"].append(dict(d["list"][0])), 1),
        (lambda d: line(d, discovered=not d["list"][0]["discovered"]), 1),
        (lambda d: line(d, discovered=1), 1),
        (lambda d: line(d, discovered="yes"), 1),
        (lambda d: line(d, log_e=math.inf), 1),
        (lambda d: line(d, log_e=math.nan), 1),
        (lambda d: (d.update(alpha=0.1, hypotheses=7), line(d, discovered=None), line(d, 1, discovered=None)), 4),
    ],
    ids=[
        "none", "other order", "level", "family", "count", "name", "value", "names of values", "line lost",
        "line twice", "other verdict", "one", "word", "infinite", "not a number", "several",
    ],
)  # fmt: skip
def test_violations_are_counted(paid: Any, change: Callable[[Document], object], violations: int) -> None:
    """Claim: every figure and every line that is not what the plan makes of its e-values counts one."""
    document = copy.deepcopy(paid.discoveries)
    change(document)
    assert list_violations(paid.plan, paid.e_values, document) == violations
