"""Answers that were paid for before, and no others: what a release is derived from once more.

No rows are needed: a stored answer is found by the request alone, in which rows stand by their keyed name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from synth_platform.privacy.curator import request_of
from synth_platform.privacy.events import event_to_json
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.ledger_records import LedgerEntry
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.privacy.statistics import Query, StatisticRelease

T = TypeVar("T")


class NotPaidError(LookupError):
    """Nobody paid for a query: it is one of another plan, of other rows or with other constants."""

    def __init__(self, code: str) -> None:
        super().__init__(f"{code}: the ledger holds no committed answer to this query of these rows")


@dataclass(frozen=True)
class Replay:
    """Stored answers of one cohort to queries of the rows called `input_fingerprint`."""

    ledger: Ledger
    store: StatisticStore
    domain: str
    cohort: str
    input_fingerprint: str

    def ask(self, query: Query[T]) -> StatisticRelease:
        """The stored answer. Raises NotPaidError, or StoredReleaseError where it is missing or altered."""
        request = request_of(
            query,
            domain=self.domain,
            cohort=self.cohort,
            input_fingerprint=self.input_fingerprint,
            noise_source="cryptographic",
        )
        entry = self.ledger.find(request)
        if entry is None or not _is_of(entry, query):
            raise NotPaidError(query.code)
        return self.store.load(entry)


def _is_of(entry: LedgerEntry, query: Query[T]) -> bool:
    """Whether an entry says what the query costs: its request could be written beside another mechanism."""
    told = (entry.code, event_to_json(entry.event), entry.sensitivity, entry.scale, entry.neighbouring)
    return told == (query.code, event_to_json(query.event), query.sensitivity, query.scale, query.neighbouring)
