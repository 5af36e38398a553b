"""The only way from private rows to a statistic: replay, or reserve, draw, store, commit."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypeVar

from synth_platform.privacy.events import event_to_json
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.ledger_records import LedgerEntry, ReserveRequest
from synth_platform.privacy.noise import NoiseSource
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.restricted import record_measurement, restricted_rows
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.privacy.statistics import Query, StatisticRelease

T = TypeVar("T")
log = logging.getLogger(__name__)


class Curator:
    """Answers queries of one cohort against the budget of its privacy domain.

    A request that was answered before gets the stored answer: no noise is drawn and nothing is spent. `notes` explains
    what a reader of the ledger would wonder about, in words that hold public facts only.
    """

    def __init__(
        self, ledger: Ledger, store: StatisticStore, noise: NoiseSource, *, domain: str, cohort: str, run_id: str
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._noise = noise
        self._domain = domain
        self._cohort = cohort
        self._run_id = run_id
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What happened besides the answers, oldest first."""
        return tuple(self._notes)

    def ask(self, table: PrivateTable[T], query: Query[T], draw: int = 0) -> StatisticRelease:
        """The noisy answer to `query`; `draw` 1, 2, … asks for further independent draws, each paid for.

        Raises BudgetExceeded or NoBudget before anything is drawn, StoredReleaseError where a paid release is missing
        or altered, PrivateComputationError where the computation fails, RowDependence where a contribution is not
        within-row.
        """
        fingerprint = self.request_fingerprint(table, query, draw)
        with self._ledger.exclusively(fingerprint):
            entry = self._ledger.find(fingerprint)
            release = self._draw(table, query, fingerprint) if entry is None else self._store.load(entry)
        record_measurement(table, query.code, release.entry_id)
        return release

    def request_fingerprint(self, table: PrivateTable[T], query: Query[T], draw: int = 0) -> str:
        """SHA-256 of everything that makes a request the same again; the private rows enter by their keyed name.

        The noise source is part of it: a release never replays what a seeded test source drew.
        """
        return request_of(
            query,
            domain=self._domain,
            cohort=self._cohort,
            input_fingerprint=table.fingerprint,
            noise_source=self._noise.source,
            draw=draw,
        )

    def _draw(self, table: PrivateTable[T], query: Query[T], fingerprint: str) -> StatisticRelease:
        for lost in self._ledger.pending(fingerprint):
            self._note(lost)
        # Before the reservation: a computation that fails must not cost budget, and nothing leaves this function.
        evaluated = query.evaluate(restricted_rows(table))
        entry = self._ledger.reserve(
            ReserveRequest(
                domain=self._domain,
                cohort=self._cohort,
                code=query.code,
                event=query.event,
                sensitivity=float(query.sensitivity),
                scale=float(query.scale),
                neighbouring=query.neighbouring,
                noise_source=self._noise.source,
                request_fingerprint=fingerprint,
                input_fingerprint=table.source,
                run_id=self._run_id,
            )
        )
        values, granularity = query.answer(evaluated, self._noise)
        release = StatisticRelease(
            code=query.code,
            values=values,
            sensitivity=float(query.sensitivity),
            sigma=float(query.scale),
            granularity=granularity,
            source=self._noise.source,
            entry_id=entry.entry_id,
            fingerprint="",
        )
        release = replace(release, fingerprint=self._store.save(release))
        self._ledger.commit(entry.entry_id, release.fingerprint)
        return release

    def _note(self, lost: LedgerEntry) -> None:
        note = (
            f"{lost.code}: run {lost.run_id} reserved entry {lost.entry_id} at {lost.reserved_at} and ended before "
            "committing it; whether its noise was drawn is unknown, so it stays spent and this run draws anew"
        )
        self._notes.append(note)
        log.warning(note)


def request_of(
    query: Query[T], *, domain: str, cohort: str, input_fingerprint: str, noise_source: str, draw: int = 0
) -> str:
    """SHA-256 of a request to rows of that keyed name; see `Curator.request_fingerprint`."""
    request = {
        "domain": domain,
        "cohort": cohort,
        "input": input_fingerprint,
        "code": query.code,
        "event": event_to_json(query.event),
        "sensitivity": float(query.sensitivity),
        **query.describe(),
        "draw": draw,
        "noise_source": noise_source,
    }
    return sha256_hex(canonical_json(request))
