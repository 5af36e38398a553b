"""What is written into the ledger and what comes back: requests, entries, budgets and refusals."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal

import dp_accounting

from synth_platform.privacy.events import BoundedRangeDpEvent, event_from_json, event_to_json
from synth_platform.privacy.fingerprint import canonical_json
from synth_platform.privacy.ledger_chain import Row
from synth_platform.privacy.ledger_schema import LedgerError
from synth_platform.privacy.statistics import Neighbouring, NoiseSource

EntryState = Literal["reserved", "committed"]


class BudgetExceeded(LedgerError):  # noqa: N818 - the code governance reads
    """A reservation would take the domain past its cap. All figures are public: they follow from public constants."""

    code = "BUDGET_EXCEEDED"

    def __init__(self, *, domain: str, cap: float, delta: float, spent: float, asked: float, total: float) -> None:
        super().__init__(
            f"{self.code}: domain {domain!r} has spent epsilon {spent:.6g} of {cap:.6g} at delta {delta:g}; "
            f"{asked:.6g} more would compose to {total:.6g}. Nothing was drawn. Ask for a smaller epsilon or mu, use a "
            "release that is already paid for, or have the data steward decide on the cap (synth ledger cap)."
        )
        self.domain, self.cap, self.delta = domain, cap, delta
        self.spent, self.asked, self.total = spent, asked, total


class NoBudget(LedgerError):  # noqa: N818
    """The domain has no cap yet, so nothing can be spent from it."""


class RowsOfOtherDomain(LedgerError):  # noqa: N818
    """The private rows are charged to another domain already: a second domain would give them a second cap."""

    code = "ROWS_OF_OTHER_DOMAIN"

    def __init__(self, *, asked: str, domain: str, cohort: str) -> None:
        super().__init__(
            f"{self.code}: the private rows are charged to privacy domain {domain!r} already (cohort {cohort!r}), "
            f"so they cannot be charged to {asked!r}: the same people have one budget. Nothing was drawn. Write "
            f"privacy.domain: {domain} into cohort.yaml, study.yaml or census.yaml."
        )
        self.asked, self.domain = asked, domain


class LedgerBroken(LedgerError):  # noqa: N818
    """The chain does not verify; nothing is added to it before a person has looked."""


@dataclass(frozen=True)
class Budget:
    """The cap of a privacy domain: the RDP figure of all its entries at `delta` stays at or below `epsilon`."""

    domain: str
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 < self.delta < 1):
            raise LedgerError(f"budget of {self.domain!r}: epsilon must be > 0 and finite, delta between 0 and 1")


@dataclass(frozen=True)
class ReserveRequest:
    """One private access about to happen, described by public constants and fingerprints.

    event:               what an accountant sees; the noise multiplier of a Gaussian is scale/sensitivity.
    sensitivity, scale:  L2 sensitivity under `neighbouring` and noise standard deviation, in the statistic's units; of
                         a selection, the sensitivity of each score and the scale of the Gumbel noise.
    noise_source:        "seeded" marks the entry for good: no release may rest on it.
    request_fingerprint: SHA-256 of everything that makes this request the same request again.
    input_fingerprint:   keyed name of the people that the private rows were taken from (`PrivateTable.source`).
    """

    domain: str
    cohort: str
    code: str
    event: dp_accounting.DpEvent
    sensitivity: float
    scale: float
    noise_source: NoiseSource
    request_fingerprint: str
    input_fingerprint: str
    run_id: str
    neighbouring: Neighbouring = "add_remove"

    def __post_init__(self) -> None:
        if not (0 < self.sensitivity < math.inf and 0 < self.scale < math.inf):
            raise ValueError(f"{self.code}: sensitivity and scale must be positive and finite")
        if isinstance(self.event, dp_accounting.GaussianDpEvent):
            multiplier = self.scale / self.sensitivity
            if not math.isclose(self.event.noise_multiplier, multiplier, rel_tol=1e-9):
                raise ValueError(
                    f"{self.code}: the event says noise multiplier {self.event.noise_multiplier:.9g}, "
                    f"scale/sensitivity is {multiplier:.9g}"
                )
        single = self.event.event if isinstance(self.event, dp_accounting.SelfComposedDpEvent) else self.event
        if isinstance(single, BoundedRangeDpEvent):
            eta = 2 * self.sensitivity / self.scale
            if not math.isclose(single.eta, eta, rel_tol=1e-9):
                raise ValueError(
                    f"{self.code}: the event says a range of {single.eta:.9g}, 2·sensitivity/scale is {eta:.9g}"
                )

    def columns(self) -> dict[str, Any]:
        """The request as ledger columns."""
        return {**vars(self), "event": canonical_json(event_to_json(self.event)).decode()}


@dataclass(frozen=True)
class LedgerEntry:
    """One private access as the ledger knows it. `artefact_fingerprint` and `committed_at` are None while reserved."""

    entry_id: str
    state: EntryState
    domain: str
    cohort: str
    code: str
    event: dp_accounting.DpEvent
    sensitivity: float
    scale: float
    neighbouring: Neighbouring
    noise_source: NoiseSource
    request_fingerprint: str
    input_fingerprint: str
    artefact_fingerprint: str | None
    run_id: str
    reserved_at: str
    committed_at: str | None

    @classmethod
    def from_rows(cls, reservation: Row, commit: Row | None) -> LedgerEntry:
        """An entry from its reservation row and, once there is one, its commit row."""
        same = ("entry_id", "domain", "cohort", "code", "sensitivity", "scale", "neighbouring", "noise_source",
                "request_fingerprint", "input_fingerprint", "run_id")  # fmt: skip
        return cls(
            **{name: reservation[name] for name in same},
            state="reserved" if commit is None else "committed",
            event=event_from_json(json.loads(reservation["event"])),
            artefact_fingerprint=None if commit is None else commit["artefact_fingerprint"],
            reserved_at=reservation["time"],
            committed_at=None if commit is None else commit["time"],
        )
