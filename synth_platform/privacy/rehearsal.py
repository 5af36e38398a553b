"""The curator in rehearsal: the code that answers queries on private rows, run on rows that belong to nobody.

Everything between a query and its release is what production runs: the declared contribution, the clip, the grid, the
noise, the event that is reserved. Only where entries and releases are kept is replaced, by nothing. An answer names no
ledger entry, so nothing that is made from it can be released.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

import dp_accounting

from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import KEY_BYTES, FingerprintKey
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.ledger_records import ReserveRequest
from synth_platform.privacy.noise import NoiseSource
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.privacy.statistics import Query, StatisticRelease

T = TypeVar("T")
REHEARSAL = "rehearsal"  # in the place of a ledger entry: no ledger holds it
_KEY = FingerprintKey(bytes(KEY_BYTES))  # hides nothing: the rows are public or made up


class Rehearsal(Generic[T]):
    """Answers queries over open `rows`; `events` are what a ledger would have been charged, oldest first."""

    def __init__(self, rows: T, noise: NoiseSource) -> None:
        self._table = seal(rows, key=_KEY, digest=lambda _: b"")
        self._ledger = _NoLedger()
        self._curator = Curator(
            cast(Ledger, self._ledger),
            cast(StatisticStore, _NoStore()),
            noise,
            domain=REHEARSAL,
            cohort=REHEARSAL,
            run_id=REHEARSAL,
        )

    def ask(self, query: Query[T]) -> StatisticRelease:
        """A new answer to `query`, whatever was asked before; errors are those of `Curator.ask`."""
        return self._curator.ask(self._table, query)

    @property
    def events(self) -> tuple[dp_accounting.DpEvent, ...]:
        """The mechanism event of every answer so far."""
        return tuple(self._ledger.events)


@dataclass(frozen=True)
class _Entry:
    entry_id: str = REHEARSAL


@dataclass
class _NoLedger:
    """What the curator asks of a ledger, remembering events and nothing else."""

    events: list[dp_accounting.DpEvent] = field(default_factory=list)

    @contextmanager
    def exclusively(self, request_fingerprint: str) -> Iterator[None]:
        yield

    def find(self, request_fingerprint: str) -> None:
        return None

    def pending(self, request_fingerprint: str) -> tuple[()]:
        return ()

    def reserve(self, request: ReserveRequest) -> _Entry:
        self.events.append(request.event)
        return _Entry()

    def commit(self, entry_id: str, artefact_fingerprint: str) -> None:
        return None


class _NoStore:
    def save(self, release: StatisticRelease) -> str:
        return ""
