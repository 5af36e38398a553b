"""G2, the ledger: the hash chain, the life of every entry, its noise, and what domains have spent."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synth_platform.audit.accounting import compose, epsilon_rdp
from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.reading import Document, mapping, number, sequence, six, text, whole

FIRST = "0" * 64
_OWN_TO_COMMIT = {"id", "state", "artefact_fingerprint", "time", "previous_hash", "hash"}
# What an entry of a known code may change by, as a function of the registered clip (8-1 §2.2).
SENSITIVITIES: Mapping[str, Callable[[float], float]] = {
    "G0_COUNTS": lambda clip: 1.0,
    "G0_SUMS": lambda clip: clip,
    "G0_MOMENT": lambda clip: clip * clip,
    "G0A_COUNTS": lambda clip: 1.0,
}
# Mechanisms on e-values: one record replaced within its group.
REPLACE_ONE = frozenset({"E_SIZE", "E_SELECTION", "E_VALUES"})


@dataclass(frozen=True)
class Entry:
    """One ledger entry: its reservation row, and its commit row once there is one."""

    reserved: Document
    committed: Document | None

    @property
    def event(self) -> Document:
        """The mechanism as an accountant sees it."""
        try:
            event = json.loads(text(self.reserved, "event"))
        except ValueError:
            raise MalformedError("event") from None
        return mapping({"event": event}, "event")


@dataclass(frozen=True)
class Book:
    """What the audit made of the ledger: entries by id, whether the chain is whole, stored statistics by entry."""

    entries: Mapping[str, Entry]
    whole: bool
    statistics: Mapping[str, Any]
    rows: Sequence[Document]

    def of_domain(self, domain: str) -> list[Entry]:
        """Entries charged to a domain, committed or not: a reservation is spent."""
        return [entry for entry in self.entries.values() if entry.reserved.get("domain") == domain]

    def cap(self, domain: str) -> tuple[float, float] | None:
        """(epsilon, delta) of the domain's latest budget row."""
        rows = [row for row in self.rows if row.get("state") == "budget" and row.get("domain") == domain]
        return (number(rows[-1], "epsilon"), number(rows[-1], "delta")) if rows else None


def audit_ledger(found: Findings, document: Document, registered: Document) -> Book:
    """Check the whole chain and every entry; never raises for what the rows say."""
    rows = [row for row in sequence(document, "rows") if isinstance(row, Mapping)]
    found.same("G2/ledger/rows", "ledger_chain", len(rows), len(sequence(document, "rows")))
    # The anchor and the heads of published packages lie outside the chain: the evidence says whether they held.
    anchored = found.same("G2/ledger/verified", "ledger_chain", document.get("verified"), True)
    answered = [row.get("request_fingerprint") for row in rows if row.get("state") == "committed"]
    once = found.same("G2/ledger/requests", "ledger_state", len(set(answered)), len(answered))
    sound = [_chain(found, rows), _states(found, rows), once, anchored]
    book = Book(_entries(rows), all(sound), mapping(document, "statistics"), rows)
    found.same("G2/ledger/head", "ledger_chain", text(document, "head"), rows[-1].get("hash") if rows else FIRST)
    for entry_id, entry in book.entries.items():
        with found.section(f"G2/ledger/{entry_id}"):
            _entry(found, f"G2/ledger/{entry_id}", entry, registered)
            committed = entry.committed
            if committed is not None and entry.reserved.get("domain") == registered.get("domain"):
                found.same(
                    f"G2/ledger/{entry_id}/statistic",
                    "statistic",
                    book.statistics.get(entry_id),
                    text(committed, "artefact_fingerprint"),
                )
    _domain(found, book, registered)
    return book


def row_hash(row: Document) -> str:
    """SHA-256 over a row's columns but its own hash, as the ledger writes them: JSON, sorted keys, default spacing."""
    return hashlib.sha256(
        json.dumps({k: v for k, v in row.items() if k != "hash"}, sort_keys=True).encode()
    ).hexdigest()


def _chain(found: Findings, rows: Sequence[Document]) -> bool:
    sound, before = True, FIRST
    for position, row in enumerate(rows, start=1):
        name = f"G2/ledger/row-{position}"
        sound &= found.same(f"{name}/id", "ledger_chain", row.get("id"), position)
        sound &= found.same(f"{name}/link", "ledger_chain", row.get("previous_hash"), before)
        sound &= found.holds(f"{name}/hash", "ledger_chain", row.get("hash") == row_hash(row), "the row was altered")
        before = str(row.get("hash"))
    return sound


def _states(found: Findings, rows: Sequence[Document]) -> bool:
    """Budgets stand alone; an entry is reserved once and committed at most once, after that and as it was reserved."""
    sound = True
    reserved: dict[str, Document] = {}
    committed: set[str] = set()
    for position, row in enumerate(rows, start=1):
        state, entry = row.get("state"), str(row.get("entry_id"))
        if state == "budget":
            continue
        if state == "reserved":
            lawful = entry not in reserved
            reserved[entry] = row
        else:
            first = reserved.get(entry, {})
            same = all(row.get(key) == first.get(key) for key in {*row, *first} - _OWN_TO_COMMIT)
            lawful = state == "committed" and entry in reserved and entry not in committed and same
            committed.add(entry)
        sound &= found.holds(f"G2/ledger/row-{position}/state", "ledger_state", lawful, f"state {state}")
    return sound


def _entries(rows: Sequence[Document]) -> dict[str, Entry]:
    of_state = {
        state: {str(row.get("entry_id")): row for row in rows if row.get("state") == state}
        for state in ("reserved", "committed")
    }
    return {entry_id: Entry(row, of_state["committed"].get(entry_id)) for entry_id, row in of_state["reserved"].items()}


def _entry(found: Findings, name: str, entry: Entry, registered: Document) -> None:
    row, event = entry.reserved, entry.event
    sensitivity, scale = number(row, "sensitivity"), number(row, "scale")
    found.holds(f"{name}/positive", "sensitivity", sensitivity > 0 and scale > 0)
    single = event.get("event", event) if event.get("type") == "SelfComposedDpEvent" else event
    relation = "replace_one" if row.get("code") in REPLACE_ONE else "add_remove"
    found.same(f"{name}/neighbouring", "sensitivity", row.get("neighbouring"), relation)
    if single.get("type") == "BoundedRangeDpEvent":
        claimed, own = number(single, "eta"), 2 * sensitivity / scale
        same = math.isclose(claimed, own, rel_tol=1e-9)
        found.holds(f"{name}/eta", "noise_multiplier", same, f"claimed {claimed:.9g}, found {own:.9g}")
    if event.get("type") == "GaussianDpEvent":
        claimed, own = number(event, "noise_multiplier"), scale / sensitivity
        same = math.isclose(claimed, own, rel_tol=1e-9)
        found.holds(f"{name}/noise_multiplier", "noise_multiplier", same, f"claimed {claimed:.9g}, found {own:.9g}")
    known = SENSITIVITIES.get(str(row.get("code")))
    if known is not None and row.get("cohort") == registered.get("cohort"):
        own = known(number(registered, "g0", "clip"))
        found.close(f"{name}/sensitivity", "sensitivity", sensitivity, own, tolerance=1e-12, public=True)


def _domain(found: Findings, book: Book, registered: Document) -> None:
    """The cap holds: the Rényi figure of everything the domain ever reserved stays at or below it."""
    with found.section("G2/ledger/cap"):
        domain, cap = text(registered, "domain"), book.cap(text(registered, "domain"))
        spent = book.of_domain(domain)
        if cap is None:
            found.same("G2/ledger/cap/set", "budget", len(spent), 0)
            return
        total = epsilon_rdp(compose(entry.event for entry in spent), cap[1])
        found.holds("G2/ledger/cap/spent", "budget", six(total) <= six(cap[0]), f"spent {total:.9g} of {cap[0]:.9g}")
        found.same("G2/ledger/cap/epsilon", "budget", number(registered, "budget", "epsilon"), cap[0])
        found.same("G2/ledger/cap/delta", "budget", number(registered, "budget", "delta"), cap[1])


def highest_row(book: Book, entry_ids: Sequence[str]) -> Document:
    """The last row that any of the entries has in the chain."""
    rows = [row for row in book.rows if row.get("entry_id") in entry_ids]
    return max(rows, key=lambda row: whole(row, "id"))
