"""The formal status: every way to lose the guarantee is named."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from synth_platform.privacy.accounting import gaussian_epsilon, gaussian_mu, rho_from_epsilon
from synth_platform.privacy.formal import FormalVerdict, formal_status
from synth_platform.privacy.noise import SeededNoise

DELTA = 1e-5


def verdict(zone: Any, entries: list[str], **changes: Any) -> FormalVerdict:
    fields: dict[str, Any] = {
        "entries": entries,
        "unledgered": (),
        "seeded": False,
        "ledger": zone.ledger,
        "store": zone.store,
        "domain": "brca",
        "epsilon": 1.0,
        "delta": DELTA,
    }
    return formal_status(**(fields | changes))


@pytest.fixture
def plan(zone: Any) -> list[str]:
    """A plan of three Gaussian statistics calibrated by exact mu to epsilon 1 (shares 20/40/40 of rho)."""
    mu = gaussian_mu(1.0, DELTA)
    ids = []
    for code, share in (("COUNTS", 0.2), ("SUMS", 0.4), ("MOMENTS", 0.4)):
        query = zone.query(code=code, sensitivity=2.0, sigma=2.0 / (mu * math.sqrt(share)))
        ids.append(zone.table().measure(query, zone.curator()).entry_id)
    return ids


def test_a_paid_plan_is_ok(zone: Any, plan: list[str]) -> None:
    """All four figures: exact mu, its epsilon, 8-1's RDP form of the same rho, and the bound .731 of 8-1 §2.6."""
    found = verdict(zone, plan)
    mu = gaussian_mu(1.0, DELTA)
    assert (found.status, found.reasons, found.entries) == ("OK", (), tuple(plan))
    assert found.mu == pytest.approx(mu, rel=1e-9)
    assert found.epsilon_pld is not None
    assert 1.0 - 1e-8 < found.epsilon_pld <= 1.0  # the calibration rounds down: never above the promise
    rho = mu**2 / 2
    assert found.epsilon_rdp == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)), rel=1e-9)
    assert found.epsilon_rdp > 1.2
    assert found.auroc_bound == pytest.approx(0.731, abs=5e-4)


def test_a_plan_calibrated_by_rdp_is_ok_as_well(zone: Any) -> None:
    rho = rho_from_epsilon(1.0, DELTA)
    entry = zone.table().measure(zone.query(sigma=2.0 / math.sqrt(2 * rho)), zone.curator()).entry_id
    found = verdict(zone, [entry])
    assert found.status == "OK"
    assert found.epsilon_rdp == pytest.approx(1.0, abs=1e-9)
    assert found.epsilon_pld == pytest.approx(gaussian_epsilon(math.sqrt(2 * rho), DELTA))
    assert found.epsilon_pld < 0.85


def test_no_private_access_at_all_is_ok_at_zero(zone: Any) -> None:
    for domain in ("brca", "never heard of"):
        found = verdict(zone, [], epsilon=0.0, domain=domain, epsilon_lower_bound=0.0)
        assert (found.status, found.epsilon_rdp, found.epsilon_pld, found.mu, found.auroc_bound) == ("OK", 0, 0, 0, 0.5)


def absent(found: FormalVerdict) -> tuple[str, ...]:
    assert found.status == "ABSENT"
    assert (found.epsilon_rdp, found.epsilon_pld, found.mu, found.auroc_bound) == (None, None, None, None)
    return found.reasons


def test_an_unledgered_access_is_no_guarantee(zone: Any, plan: list[str]) -> None:
    assert absent(verdict(zone, plan, unledgered=("S_MIX: copies rows",))) == ("UNLEDGERED_ACCESS:S_MIX: copies rows",)
    assert absent(verdict(zone, [], unledgered=("a", "b"))) == ("UNLEDGERED_ACCESS:a", "UNLEDGERED_ACCESS:b")


def test_seeded_noise_is_no_guarantee_whoever_says_so(zone: Any, plan: list[str]) -> None:
    """The state says it, or the ledger does: either is enough."""
    assert absent(verdict(zone, plan, seeded=True)) == ("SEEDED_NOISE",)
    entry = zone.table().measure(zone.query(sigma=30.0), zone.curator(SeededNoise(1))).entry_id
    assert absent(verdict(zone, [entry], seeded=False)) == ("SEEDED_NOISE",)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_entry_the_ledger_does_not_hold(zone: Any, plan: list[str], position: int) -> None:
    claimed = [*plan]
    claimed[position] = "SUMS-ffffffffffff"
    assert absent(verdict(zone, claimed)) == ("ENTRY_MISSING:SUMS-ffffffffffff",)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_removing_an_entry_from_the_ledger(zone: Any, plan: list[str], position: int) -> None:
    engine = create_engine(f"sqlite:///{zone.home}/ledger.db")
    with engine.begin() as connection:
        connection.execute(text("DROP TRIGGER ledger_no_delete"))
        connection.execute(text("DELETE FROM ledger WHERE entry_id = :id"), {"id": plan[position]})
    engine.dispose()
    assert absent(verdict(zone, plan)) == ("LEDGER_BROKEN",)


def test_an_entry_that_was_never_committed(zone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone.ledger, "commit", lambda *_: None)
    entry = zone.table().measure(zone.query(sigma=30.0), zone.curator()).entry_id
    assert absent(verdict(zone, [entry])) == (f"ENTRY_UNCOMMITTED:{entry}",)


def test_an_entry_of_another_domain(zone: Any) -> None:
    zone.ledger.set_budget("virtual", 2.0, DELTA)
    entry = zone.table().measure(zone.query(sigma=30.0), zone.curator(domain="virtual")).entry_id
    assert absent(verdict(zone, [entry])) == (f"ENTRY_OF_OTHER_DOMAIN:{entry}",)


def test_a_release_that_is_not_what_was_committed(zone: Any, plan: list[str]) -> None:
    fingerprint = zone.ledger.entries(ids=[plan[1]])[0].artefact_fingerprint
    file = zone.home / "statistics" / f"{fingerprint}.safetensors"
    file.write_bytes(file.read_bytes() + b" ")
    assert absent(verdict(zone, plan)) == (f"ARTEFACT_MISMATCH:{plan[1]}",)


def test_more_than_the_plan_promised(zone: Any, plan: list[str]) -> None:
    """The same entries under a smaller promise, and with one entry too many under the same promise."""
    assert verdict(zone, plan, epsilon=1 - 4e-7).status == "OK"
    found = verdict(zone, plan, epsilon=1 - 2e-6)
    assert (found.status, found.reasons) == ("BUDGET_EXCEEDED", ("PLAN_EXCEEDED",))
    assert found.epsilon_pld is not None
    extra = zone.table().measure(zone.query(sigma=30.0), zone.curator()).entry_id
    assert verdict(zone, [*plan, extra]).reasons == ("PLAN_EXCEEDED",)
    assert verdict(zone, [*plan, *plan]).status == "OK", "naming an entry twice is using it once"


def test_a_domain_past_its_cap(zone: Any, plan: list[str]) -> None:
    """The steward lowers the cap below what is spent: nothing of the domain is released any more."""
    zone.ledger.set_budget("brca", 1.1, DELTA, change=True)
    assert verdict(zone, plan).reasons == ("DOMAIN_OVER_CAP:brca",)
    assert verdict(zone, plan, epsilon=0.5).reasons == ("PLAN_EXCEEDED", "DOMAIN_OVER_CAP:brca")
    assert verdict(zone, []).status == "OK"


def test_an_attack_that_refutes_the_cost(zone: Any, plan: list[str]) -> None:
    assert verdict(zone, plan, epsilon_lower_bound=0.999).status == "OK"
    assert verdict(zone, plan, epsilon_lower_bound=1.0).status == "OK"
    found = verdict(zone, plan, epsilon_lower_bound=1.01, epsilon=0.5)
    assert (found.status, found.reasons) == ("CONTRADICTION", ("DP_AUDIT_CONTRADICTION", "PLAN_EXCEEDED"))
    assert verdict(zone, plan, epsilon_lower_bound=9.0, seeded=True).status == "ABSENT"


def test_a_verdict_is_a_plain_record(zone: Any, plan: list[str]) -> None:
    assert dataclasses.asdict(verdict(zone, plan))["entries"] == tuple(plan)
