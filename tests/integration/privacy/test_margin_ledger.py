"""Noisy margins through a real ledger: paid once, the same to the last bit ever after, and audited alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synth_platform.audit import accounting as audited
from synth_platform.audit.findings import Findings
from synth_platform.audit.ledger import audit_ledger
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.noisy import measure_declared
from synth_platform.margins.rows import Rows, two_way
from synth_platform.privacy.accounting import gaussian_mu
from synth_platform.privacy.affordable import require_affordable
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.formal import formal_status
from synth_platform.privacy.ledger import BudgetExceeded, Ledger
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource, SeededNoise
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.replay import NotPaidError, Replay
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore

DELTA, CAP = 1e-5, 3.0
MU = gaussian_mu(1.0, DELTA)
DOMAIN = Domain(
    (
        Variable("age", ("0-15", "16-64", "65+")),
        Variable("sex", ("f", "m")),
        Variable("rooms", ("1", "2", "3"), "integer"),
    )
)
KEY = FingerprintKey(bytes(range(32)))


def named(rows: Rows) -> bytes:
    return hashlib.sha256(rows.codes.tobytes()).digest()


@dataclass
class Zone:
    """A ledger, its store, and a census of 4,000 people."""

    home: Path

    def __post_init__(self) -> None:
        self.ledger = Ledger(f"sqlite:///{self.home}/ledger.db")
        self.ledger.set_budget("census", CAP, DELTA)
        self.store = StatisticStore(self.home / "statistics")
        self.rows = Rows(DOMAIN, np.random.default_rng(1).integers(0, DOMAIN.shape, size=(4_000, 3)))

    def table(self) -> PrivateTable[Rows]:
        return seal(self.rows, key=KEY, digest=named)

    def curator(self, noise: NoiseSource | None = None) -> Curator:
        noise = noise or CryptographicNoise()
        return Curator(self.ledger, self.store, noise, domain="census", cohort="town", run_id="run-1")

    def buy(self, mu: float = MU, noise: NoiseSource | None = None) -> tuple[MarginSet, Any]:
        table, curator = self.table(), self.curator(noise)
        margins, [release] = measured(lambda query: table.measure(query, curator), mu)
        return margins, release

    def replay(self) -> Replay:
        return Replay(self.ledger, self.store, "census", "town", KEY.name(named(self.rows)))

    def states(self) -> list[str]:
        return [row["state"] for row in self.ledger.chain()]


def measured(ask: Callable[[Any], Any], mu: float = MU) -> tuple[MarginSet, tuple[Any, ...]]:
    return measure_declared(ask, DOMAIN, two_way(DOMAIN), (), mu)


def same(one: MarginSet, other: MarginSet) -> bool:
    return [m.counts.tobytes() for m in one] == [m.counts.tobytes() for m in other]


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return Zone(tmp_path)


def test_margins_are_paid_for_once_and_come_back_to_the_last_bit(zone: Zone) -> None:
    """Claim: by another run of the same plan, and by replay without rows, with no noise drawn and nothing spent."""
    first, release = zone.buy()
    states = zone.states()
    again, stored = zone.buy()
    assert same(first, again)
    assert stored.entry_id == release.entry_id
    replayed, _ = measured(zone.replay().ask)
    assert same(first, replayed)
    assert [margin.provenance for margin in first] == [margin.provenance for margin in replayed]
    assert zone.states() == states
    assert states.count("reserved") == states.count("committed") == 1


def test_another_plan_or_people_were_not_paid_for(zone: Zone) -> None:
    zone.buy()
    with pytest.raises(NotPaidError):
        measured(zone.replay().ask, MU * 1.01)
    with pytest.raises(NotPaidError):
        measure_declared(zone.replay().ask, DOMAIN, [("age", "sex"), ("rooms",)], (), MU)
    labelled = Domain((Variable("age", ("0-17", "18-64", "65+")), *DOMAIN.variables[1:]))
    with pytest.raises(NotPaidError):
        measure_declared(zone.replay().ask, labelled, two_way(labelled), (), MU)
    zone.rows = zone.rows.take(np.arange(3_999))
    with pytest.raises(NotPaidError):
        measured(zone.replay().ask)


def test_a_plan_past_the_cap_is_refused_before_anything_is_drawn(zone: Zone) -> None:
    """Claim: the plan runs on placeholders to its end, and the ledger keeps its rows."""
    table, curator, states = zone.table(), zone.curator(), zone.states()
    require_affordable(measured, table, curator, zone.ledger, "census")
    dear = gaussian_mu(3.0, DELTA)
    with pytest.raises(BudgetExceeded):
        require_affordable(lambda ask: measured(ask, dear), table, curator, zone.ledger, "census")
    with pytest.raises(BudgetExceeded):
        zone.buy(dear)
    assert zone.states() == states


@pytest.mark.parametrize(("noise", "status"), [(None, "OK"), (SeededNoise(1), "ABSENT")], ids=["drawn", "seeded"])
def test_the_formal_status_is_that_of_the_plan(zone: Zone, noise: NoiseSource | None, status: str) -> None:
    """Claim: margins cost what the plan promises, exactly and below it; seeded ones have no status."""
    _, release = zone.buy(noise=noise)
    verdict = formal_status(
        entries=[release.entry_id],
        unledgered=(),
        seeded=release.source == "seeded",
        ledger=zone.ledger,
        store=zone.store,
        domain="census",
        epsilon=1.0,
        delta=DELTA,
    )
    assert verdict.status == status
    if status == "OK":
        assert verdict.mu == pytest.approx(MU, rel=1e-9)
        assert verdict.epsilon_pld is not None
        assert 1 - 1e-6 < verdict.epsilon_pld <= 1.0


def test_the_audit_finds_the_ledger_in_order_and_the_same_cost(zone: Zone) -> None:
    """Claim: rows of this query pass the audit's checks of chain, event, sensitivity and cap as they are, and its own
    accounting has the plan's epsilon."""
    _, release = zone.buy()
    rows = [dict(row) for row in zone.ledger.chain()]
    event = json.loads(next(row["event"] for row in rows if row["state"] == "committed"))
    assert audited.epsilon_gaussian(audited.compose([event]).mu or 0.0, DELTA) == pytest.approx(1.0, rel=1e-6)
    found = Findings()
    document = {
        "rows": rows,
        "verified": True,
        "head": rows[-1]["hash"],
        "statistics": {release.entry_id: release.fingerprint},
    }
    audit_ledger(found, document, {"domain": "census", "budget": {"epsilon": CAP, "delta": DELTA}})
    assert [check for check in found.checks if not check.passed] == []
    assert {check.name.rsplit("/", 1)[-1] for check in found.checks} >= {
        "hash",
        "neighbouring",
        "noise_multiplier",
        "spent",
    }
