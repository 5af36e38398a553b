"""The ledger: every private access is reserved before its noise is drawn and committed with what came of it.

A reservation counts as spent for good, committed or not: after a crash nobody can know whether noise was drawn. The
cap of a domain binds the RDP figure of all its entries, which stays valid when later requests are chosen from earlier
answers (8-1 §2.1, §2.5).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dp_accounting import DpEvent
from sqlalchemy import Connection, make_url, select
from sqlalchemy.exc import DatabaseError

from synth_platform.privacy.accounting import Composition, compose, epsilon_rdp
from synth_platform.privacy.database import serialised, sqlite_file
from synth_platform.privacy.figures import exceeds
from synth_platform.privacy.ledger_chain import ANCHOR_LOST, Head, Row, VerifyReport, head_of, row_hash, verify_chain
from synth_platform.privacy.ledger_files import advance_anchor, locked, read_anchor, server_locked
from synth_platform.privacy.ledger_records import (
    Budget,
    BudgetExceeded,
    LedgerBroken,
    LedgerEntry,
    NoBudget,
    ReserveRequest,
    RowsOfOtherDomain,
)
from synth_platform.privacy.ledger_schema import ROWS, LedgerError, open_engine

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Ledger",
    "LedgerBroken",
    "LedgerEntry",
    "LedgerError",
    "NoBudget",
    "ReserveRequest",
    "RowsOfOtherDomain",
]

_HIDDEN_COLUMNS = frozenset({"input_fingerprint", "request_fingerprint"})


class Ledger:
    """A ledger in the database at `url` (`sqlite:////path/ledger.db` or `postgresql+psycopg://…`).

    A ledger whose chain does not verify answers `verify`, `table` and `head_hash` only; all else raises LedgerBroken.

    anchor: file that remembers the head of the chain outside the database, so that a cut tail shows. Default: the
    SQLite file's name plus `.head`; none for a server, where each machine may name a file of its own.
    known_heads: reads which head hash each published release carries (None where it is unreadable).
    """

    def __init__(
        self,
        url: str,
        *,
        anchor: Path | None = None,
        known_heads: Callable[[], Mapping[str, str | None]] = dict,
    ) -> None:
        self._engine = open_engine(url)
        self._file = sqlite_file(make_url(url))
        if anchor is None and self._file is not None:
            anchor = self._file.with_name(self._file.name + ".head")
        self._anchor = anchor
        self._known_heads = known_heads
        if anchor is not None and not anchor.exists() and not self._rows():
            advance_anchor(anchor, head_of([]))  # before the first row, so that rows without an anchor have lost it

    def __repr__(self) -> str:
        return f"Ledger({self._engine.url.render_as_string(hide_password=True)})"

    def set_budget(self, domain: str, epsilon: float, delta: float, *, change: bool = False) -> Budget:
        """Give `domain` its cap. The same figures again do nothing; other figures need `change=True`.

        Every change is a row of the chain, shown by `table` and as a notice of `verify`. Raises LedgerError for other
        figures without `change`, so that an edited configuration never raises a cap in passing.
        """
        budget = Budget(domain, float(epsilon), float(delta))
        with self._writing() as (connection, rows):
            before = _budget(rows, domain)
            if before == budget:
                return budget
            if before is not None and not change:
                has, asked = (f"epsilon {_exact(b.epsilon)} at delta {_exact(b.delta)}" for b in (before, budget))
                raise LedgerError(
                    f"domain {domain!r} has the cap {has}, not {asked}; write the ledger's figures into "
                    "privacy.budget, or have the data steward change the cap, an explicit act that stays visible: "
                    f"synth ledger cap {domain} --epsilon {_exact(budget.epsilon)} --delta {_exact(budget.delta)}"
                )
            _append(connection, rows, {"state": "budget", **vars(budget)})
        return budget

    def budget(self, domain: str) -> Budget:
        """The cap of `domain`. Raises NoBudget where none was set."""
        return _require_budget(self._sound(), domain)

    def domains(self) -> tuple[str, ...]:
        """Every domain that has a cap or an entry, in order of appearance."""
        return tuple(dict.fromkeys(row["domain"] for row in self._sound()))

    def reserve(self, request: ReserveRequest) -> LedgerEntry:
        """Durably charge `request` to its domain; only after this may noise be drawn.

        One serialised transaction: of two processes that ask for the last budget, one is refused. Raises
        BudgetExceeded past the cap, NoBudget without one, RowsOfOtherDomain where another domain was charged for the
        same private rows, LedgerBroken if the chain no longer verifies.
        """
        with self._writing() as (connection, rows):
            budget = _require_budget(rows, request.domain)
            entries = _entries(rows)
            for entry in entries:
                if entry.input_fingerprint == request.input_fingerprint and entry.domain != request.domain:
                    raise RowsOfOtherDomain(asked=request.domain, domain=entry.domain, cohort=entry.cohort)
            spent = [entry.event for entry in entries if entry.domain == request.domain]
            _refuse_past_cap(budget, spent, [request.event])
            entry_id = f"{request.code}-{secrets.token_hex(6)}"
            row = _append(connection, rows, {"state": "reserved", "entry_id": entry_id, **request.columns()})
        return LedgerEntry.from_rows(row, None)

    def require_room(self, domain: str, events: Sequence[DpEvent]) -> None:
        """Raise what `reserve` would where `events` together take `domain` past its cap; nothing is charged."""
        rows = self._sound()
        spent = [entry.event for entry in _entries(rows) if entry.domain == domain]
        if events:
            _refuse_past_cap(_require_budget(rows, domain), spent, events)

    def commit(self, entry_id: str, artefact_fingerprint: str) -> LedgerEntry:
        """Record what came of a reservation; the same fingerprint again does nothing.

        Raises LedgerError for an entry that was never reserved or is committed with another artefact.
        """
        with self._writing() as (connection, rows):
            states = {row["state"]: row for row in rows if row["entry_id"] == entry_id}
            if "reserved" not in states:
                raise LedgerError(f"entry {entry_id!r} was never reserved in this ledger")
            if "committed" not in states:
                content = {**states["reserved"], "state": "committed", "artefact_fingerprint": artefact_fingerprint}
                states["committed"] = _append(connection, rows, content)
            elif states["committed"]["artefact_fingerprint"] != artefact_fingerprint:
                raise LedgerError(f"entry {entry_id!r} is already committed with another artefact")
        return LedgerEntry.from_rows(states["reserved"], states["committed"])

    def entries(self, domain: str | None = None, ids: Iterable[str] | None = None) -> tuple[LedgerEntry, ...]:
        """Entries in order of reservation, of one domain or with the given ids. Raises LedgerError for unknown ids."""
        found = _entries(self._sound())
        if ids is not None:
            wanted = dict.fromkeys(ids)
            unknown = set(wanted) - {entry.entry_id for entry in found}
            if unknown:
                raise LedgerError(f"no such ledger entries: {', '.join(sorted(unknown))}")
            found = [entry for entry in found if entry.entry_id in wanted]
        return tuple(entry for entry in found if domain in (None, entry.domain))

    def find(self, request_fingerprint: str) -> LedgerEntry | None:
        """The first committed entry of a request, None if it was never answered; `verify` names a second one."""
        return next((e for e in self._of_request(request_fingerprint) if e.state == "committed"), None)

    def pending(self, request_fingerprint: str) -> tuple[LedgerEntry, ...]:
        """Reservations of a request that were never committed: spent, and nothing to show for it."""
        return tuple(entry for entry in self._of_request(request_fingerprint) if entry.state == "reserved")

    def exclusively(self, request_fingerprint: str) -> AbstractContextManager[None]:
        """Hold a request while it is answered, so that two runs never both draw for it.

        Freed when the holder dies, so a pending reservation seen inside belongs to a run that is gone.
        """
        if self._file is None:
            return server_locked(self._engine, request_fingerprint)
        return locked(self._file.with_name(self._file.name + ".locks") / request_fingerprint[:32])

    def compose(self, selection: str | Sequence[str], delta: float) -> Composition:
        """Both figures of a whole domain (its name) or of chosen entries (a sequence of ids) at `delta`."""
        chosen = self.entries(domain=selection) if isinstance(selection, str) else self.entries(ids=selection)
        return compose([entry.event for entry in chosen], delta)

    def head_hash(self) -> str:
        """Hash of the last row; releases carry it, so a ledger that lost it since is caught by `verify`."""
        return head_of(self._rows()).hash

    def verify(self) -> VerifyReport:
        """Check the whole chain, the anchor and head hashes that releases carry."""
        return self._verified(self._rows)[1]

    def anchor_anew(self) -> Head:
        """Anchor the chain as it is after its anchor was lost: the explicit act of a person who knows it is whole.

        Does nothing where the anchor is there. Raises LedgerBroken for any other problem.
        """
        with serialised(self._engine) as connection:
            rows, report = self._verified(lambda: _read(connection))
            self._refuse_broken(replace(report, problems=tuple(p for p in report.problems if p.what != ANCHOR_LOST)))
            if self._anchor is not None:
                advance_anchor(self._anchor, head_of(rows))
        return head_of(rows)

    def table(self, domain: str | None = None) -> list[dict[str, Any]]:
        """Rows of the chain, JSON-ready, oldest first, without request and input fingerprints."""
        return [
            {name: value for name, value in row.items() if name not in _HIDDEN_COLUMNS}
            for row in self._rows()
            if domain in (None, row["domain"])
        ]

    def chain(self) -> list[dict[str, Any]]:
        """Every row of the chain with every column, so that its hashes can be recomputed: for the restricted zone."""
        return [dict(row) for row in self._rows()]

    def budget_summary(self, domain: str) -> dict[str, Any]:
        """Cap and spending of `domain`, JSON-ready.

        Keys: domain, cap, delta, spent_rdp, spent_pld, mu (None unless all entries are Gaussian), remaining (cap minus
        the RDP figure, at least 0), reserved and committed (entry counts), seeded (entries with a seeded source), caps
        (every cap the domain ever had, as {epsilon, delta, time}). Raises NoBudget without a cap.
        """
        rows = self._sound()
        budget = _require_budget(rows, domain)
        entries = [entry for entry in _entries(rows) if entry.domain == domain]
        spent = compose([entry.event for entry in entries], budget.delta)
        caps = [row for row in rows if row["state"] == "budget" and row["domain"] == domain]
        return {
            "domain": domain,
            "cap": budget.epsilon,
            "delta": budget.delta,
            "spent_rdp": spent.epsilon_rdp,
            "spent_pld": spent.epsilon_pld,
            "mu": spent.mu,
            "remaining": max(0.0, budget.epsilon - spent.epsilon_rdp),
            "reserved": sum(entry.state == "reserved" for entry in entries),
            "committed": sum(entry.state == "committed" for entry in entries),
            "seeded": sum(entry.noise_source == "seeded" for entry in entries),
            "caps": [{name: row[name] for name in ("epsilon", "delta", "time")} for row in caps],
        }

    def _of_request(self, fingerprint: str) -> list[LedgerEntry]:
        return [entry for entry in _entries(self._sound()) if entry.request_fingerprint == fingerprint]

    def _rows(self) -> list[Row]:
        with self._engine.connect() as connection:
            return _read(connection)

    def _sound(self) -> list[Row]:
        rows, report = self._verified(self._rows)
        self._refuse_broken(report)
        return rows

    def _verified(self, read: Callable[[], list[Row]]) -> tuple[list[Row], VerifyReport]:
        # Before the rows: the anchor and the releases only name rows that are already durable.
        heads = self._known_heads()
        anchor = None if self._anchor is None else read_anchor(self._anchor)
        rows = read()
        return rows, verify_chain(rows, anchor, heads, anchor_lost=self._anchor is not None and anchor is None)

    def _refuse_broken(self, report: VerifyReport) -> None:
        if report.problems:
            first = report.problems[0]
            raise LedgerBroken(
                f"{self!r} does not verify ({'end' if first.row is None else f'row {first.row}'}: {first.what}); "
                "nothing can be spent or counted until it is restored from a backup. `synth ledger verify` says more."
            )

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, list[Row]]]:
        """The chain under the writer's lock, verified; what is appended is anchored once it is durable."""
        with serialised(self._engine) as connection:
            rows, report = self._verified(lambda: _read(connection))
            self._refuse_broken(report)
            yield connection, rows
        if self._anchor is not None and rows:
            advance_anchor(self._anchor, head_of(rows))


def _read(connection: Connection) -> list[Row]:
    try:
        return [dict(row) for row in connection.execute(select(ROWS).order_by(ROWS.c.id)).mappings()]
    except DatabaseError as error:
        where = connection.engine.url.render_as_string(hide_password=True)
        raise LedgerError(f"the ledger at {where} cannot be read ({error.orig}); restore it from a backup") from error


def _append(connection: Connection, rows: list[Row], content: Row) -> Row:
    head = head_of(rows)
    row: dict[str, Any] = {column.name: None for column in ROWS.columns}
    row |= content
    row |= {"id": head.rows + 1, "time": datetime.now(UTC).isoformat(), "previous_hash": head.hash}
    row["hash"] = row_hash(row)
    connection.execute(ROWS.insert().values(**row))
    rows.append(row)
    return row


def _entries(rows: Iterable[Row]) -> list[LedgerEntry]:
    entries: dict[str, LedgerEntry] = {}
    for row in rows:
        if row["state"] == "reserved":
            entries[row["entry_id"]] = LedgerEntry.from_rows(row, None)
        elif row["state"] == "committed":
            entries[row["entry_id"]] = replace(
                entries[row["entry_id"]],
                state="committed",
                artefact_fingerprint=row["artefact_fingerprint"],
                committed_at=row["time"],
            )
    return list(entries.values())


def _budget(rows: Iterable[Row], domain: str) -> Budget | None:
    caps = [row for row in rows if row["state"] == "budget" and row["domain"] == domain]
    return Budget(domain, caps[-1]["epsilon"], caps[-1]["delta"]) if caps else None


def _refuse_past_cap(budget: Budget, spent: Sequence[DpEvent], asked: Sequence[DpEvent]) -> None:
    total = epsilon_rdp([*spent, *asked], budget.delta)
    if exceeds(total, budget.epsilon):
        raise BudgetExceeded(
            domain=budget.domain,
            cap=budget.epsilon,
            delta=budget.delta,
            spent=epsilon_rdp(spent, budget.delta),
            asked=epsilon_rdp(asked, budget.delta),
            total=total,
        )


def _require_budget(rows: Iterable[Row], domain: str) -> Budget:
    budget = _budget(rows, domain)
    if budget is None:
        raise NoBudget(
            f"privacy domain {domain!r} has no budget: it gets that of its cohort.yaml when one of its cohorts is "
            "first run (synth run COHORT)"
        )
    return budget


def _exact(figure: float) -> str:
    """A figure that reads back as it is, in few digits where they do."""
    short = f"{figure:g}"
    return short if float(short) == figure else repr(figure)
