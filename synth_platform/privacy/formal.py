"""The formal status of a generator: does the ledger pay for everything private that went into it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from synth_platform.privacy.accounting import Composition, compose, epsilon_rdp
from synth_platform.privacy.bounds import membership_auroc_bound
from synth_platform.privacy.figures import exceeds
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.ledger_records import LedgerEntry
from synth_platform.privacy.statistic_store import StatisticStore, StoredReleaseError

FormalStatus = Literal["OK", "ABSENT", "BUDGET_EXCEEDED", "CONTRADICTION"]
# The reason code of a decision that a formal status blocks.
FORMAL_REASONS: Mapping[FormalStatus, str] = MappingProxyType(
    {"ABSENT": "LEDGER_ABSENT", "BUDGET_EXCEEDED": "BUDGET_EXCEEDED", "CONTRADICTION": "DP_AUDIT_CONTRADICTION"}
)


@dataclass(frozen=True)
class FormalVerdict:
    """The formal status with what the entries cost (8-1 §2.6, §3.4).

    epsilon_rdp, epsilon_pld, mu: cost of `entries` at the plan's delta; mu is None for sampled plans. auroc_bound:
    8-1 §2.6 at epsilon_pld. All four are None where the status is ABSENT: no figure holds then. reasons: code tokens,
    with the entry, purpose or domain after a colon; empty if OK.
    """

    status: FormalStatus
    epsilon_rdp: float | None
    epsilon_pld: float | None
    mu: float | None
    auroc_bound: float | None
    entries: tuple[str, ...]
    reasons: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The ledger block of a decision document."""
        return {
            "status": self.status,
            "epsilon_rdp": self.epsilon_rdp,
            "epsilon_pld": self.epsilon_pld,
            "mu": self.mu,
            "auroc_bound": self.auroc_bound,
            "entries": list(self.entries),
            "reasons": list(self.reasons),
        }


def formal_status(
    *,
    entries: Sequence[str],
    unledgered: Sequence[str],
    seeded: bool,
    ledger: Ledger,
    store: StatisticStore,
    domain: str,
    epsilon: float,
    delta: float,
    epsilon_lower_bound: float | None = None,
    mechanism_contradicted: bool = False,
) -> FormalVerdict:
    """Judge a generator state that rests on `entries`, promised as (epsilon, delta) in `domain`.

    ABSENT: a private access outside the ledger, an entry that is missing, uncommitted, of another domain or whose
    stored release is not what was committed, seeded noise, or a ledger that does not verify.
    CONTRADICTION: an attack refutes the cost (epsilon_lower_bound, 8-1 §3.4), or canaries refute that of the mechanisms
    themselves, so the code or the accounting is wrong.
    BUDGET_EXCEEDED: the entries cost more than the plan promised, or the domain is past its cap. The plan is fixed
    beforehand, so its figure is the tight one; the cap is on the RDP figure of everything the domain ever spent.
    A generator without any private access is OK at epsilon 0.
    """
    ids = tuple(dict.fromkeys(entries))
    absent = [f"UNLEDGERED_ACCESS:{purpose}" for purpose in unledgered]
    if seeded:
        absent.append("SEEDED_NOISE")
    found: dict[str, LedgerEntry] = {}
    if ledger.verify().ok:
        everything = {entry.entry_id: entry for entry in ledger.entries()}
        found = {entry_id: everything[entry_id] for entry_id in ids if entry_id in everything}
        absent += [f"ENTRY_MISSING:{entry_id}" for entry_id in ids if entry_id not in found]
        absent += [reason for entry in found.values() for reason in _entry_faults(entry, domain, store)]
    else:
        absent.append("LEDGER_BROKEN")
    if absent:
        return FormalVerdict("ABSENT", None, None, None, None, ids, tuple(dict.fromkeys(absent)))

    cost = compose([entry.event for entry in found.values()], delta)
    contradictions = list(_contradictions(cost, epsilon_lower_bound, mechanism_contradicted))
    excesses = list(_excesses(cost, epsilon, ledger, domain)) if ids else []
    status: FormalStatus = "CONTRADICTION" if contradictions else "BUDGET_EXCEEDED" if excesses else "OK"
    auroc_bound = membership_auroc_bound(cost.epsilon_pld, delta if ids else 0.0)
    return FormalVerdict(
        status, cost.epsilon_rdp, cost.epsilon_pld, cost.mu, auroc_bound, ids, (*contradictions, *excesses)
    )


def _entry_faults(entry: LedgerEntry, domain: str, store: StatisticStore) -> Iterator[str]:
    if entry.domain != domain:
        yield f"ENTRY_OF_OTHER_DOMAIN:{entry.entry_id}"
    if entry.noise_source != "cryptographic":
        yield "SEEDED_NOISE"
    if entry.state != "committed":
        yield f"ENTRY_UNCOMMITTED:{entry.entry_id}"
        return
    try:
        store.load(entry)
    except StoredReleaseError:
        yield f"ARTEFACT_MISMATCH:{entry.entry_id}"


def _contradictions(cost: Composition, lower_bound: float | None, mechanism: bool) -> Iterator[str]:
    if lower_bound is not None and exceeds(lower_bound, cost.epsilon_pld):
        yield "DP_AUDIT_CONTRADICTION"
    if mechanism:
        yield "MECHANISM_AUDIT_CONTRADICTION"


def _excesses(cost: Composition, epsilon: float, ledger: Ledger, domain: str) -> Iterator[str]:
    if exceeds(cost.epsilon_pld, epsilon):
        yield "PLAN_EXCEEDED"
    budget = ledger.budget(domain)
    if exceeds(epsilon_rdp([entry.event for entry in ledger.entries(domain)], budget.delta), budget.epsilon):
        yield f"DOMAIN_OVER_CAP:{domain}"
