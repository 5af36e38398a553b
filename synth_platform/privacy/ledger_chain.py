"""The hash chain over ledger rows, and what is wrong with one that was touched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

Row = Mapping[str, Any]
GENESIS = "0" * 64
ANCHOR_LOST = (
    "the head anchor is missing: restore it from a backup, or, if the ledger is known to be whole, make a new one with "
    "`synth ledger anchor`"
)
_CHANGES_ON_COMMIT = frozenset({"id", "state", "artefact_fingerprint", "time", "previous_hash", "hash"})


@dataclass(frozen=True)
class Head:
    """The chain as somebody saw it: its length and the hash of its last row."""

    rows: int
    hash: str


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the chain; `row` is None where no row is left to name."""

    row: int | None
    what: str


@dataclass(frozen=True)
class VerifyReport:
    """Whether the ledger still says what was written. `notices` are lawful but worth a look, such as a raised cap."""

    ok: bool
    rows: int
    head_hash: str
    problems: tuple[Problem, ...]
    notices: tuple[Problem, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready form: ok, rows, head_hash, problems and notices as {row, what}."""
        return asdict(self)


def row_hash(row: Row) -> str:
    """SHA-256 of the row's canonical JSON, every column but `hash` itself; the previous hash is one of them."""
    content = {name: value for name, value in row.items() if name != "hash"}
    # A tampered cell may hold any database type; its repr is as good as any other value that does not match.
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()


def head_of(rows: Sequence[Row]) -> Head:
    """The head of a chain in row order."""
    return Head(len(rows), rows[-1]["hash"] if rows else GENESIS)


def verify_chain(
    rows: Sequence[Row],
    anchor: Head | None = None,
    known_heads: Mapping[str, str | None] = MappingProxyType({}),
    *,
    anchor_lost: bool = False,
) -> VerifyReport:
    """Check rows in id order against themselves, the anchored head and head hashes that releases carry.

    A cut tail leaves a chain that is whole in itself: only the anchor or a known head can show it, so where one of them
    is lost that is a problem of its own. known_heads: name of a release -> its head hash, None where it is unreadable.
    """
    problems = [*_content(rows), *_links(rows), *_states(rows), *_anchor(rows, anchor), *_heads(rows, known_heads)]
    if anchor_lost and rows:
        problems.append(Problem(None, ANCHOR_LOST))
    problems.sort(key=lambda problem: (problem.row is None, problem.row or 0))
    head = head_of(rows)
    return VerifyReport(not problems, head.rows, head.hash, tuple(problems), (*_cap_changes(rows), *_shared_rows(rows)))


def _content(rows: Sequence[Row]) -> Iterable[Problem]:
    for row in rows:
        if row_hash(row) != row["hash"]:
            yield Problem(row["id"], "content does not match its hash: the row was altered")


def _links(rows: Sequence[Row]) -> Iterable[Problem]:
    start = {"id": 0, "hash": GENESIS}
    for previous, row in pairwise([start, *rows]):
        if row["id"] != previous["id"] + 1:
            yield Problem(previous["id"] + 1, f"missing: the next row present is {row['id']}")
        elif row["previous_hash"] != previous["hash"]:
            yield Problem(row["id"], "broken link: its previous hash is not the hash of the row before it")


def _states(rows: Sequence[Row]) -> Iterable[Problem]:
    reserved: dict[str, Row] = {}
    committed: set[str] = set()
    answered: dict[str, str] = {}
    for row in rows:
        entry = row["entry_id"]
        match row["state"]:
            case "budget":
                pass
            case "reserved":
                if entry in reserved:
                    yield Problem(row["id"], f"entry {entry} is reserved twice")
                reserved.setdefault(entry, row)
            case "committed":
                if entry not in reserved:
                    yield Problem(row["id"], f"entry {entry} is committed without a reservation before it")
                elif entry in committed:
                    yield Problem(row["id"], f"entry {entry} is committed twice")
                elif changed := _changed(reserved[entry], row):
                    yield Problem(row["id"], f"entry {entry} differs from its reservation in {', '.join(changed)}")
                first = answered.setdefault(row["request_fingerprint"], entry)
                if first != entry:
                    yield Problem(row["id"], f"entry {entry} answers a request that entry {first} has answered")
                committed.add(entry)
            case _:
                yield Problem(row["id"], "state is none of budget, reserved, committed")


def _changed(reservation: Row, commit: Row) -> list[str]:
    return [name for name in reservation if name not in _CHANGES_ON_COMMIT and reservation[name] != commit[name]]


def _anchor(rows: Sequence[Row], anchor: Head | None) -> Iterable[Problem]:
    if anchor is not None and anchor.rows > len(rows):
        yield Problem(None, f"head mismatch: {anchor.rows} rows were anchored, {len(rows)} are left")
    elif anchor is not None and anchor != head_of(rows[: anchor.rows]):
        yield Problem(anchor.rows, "head mismatch: the row does not have the hash that was anchored")


def _heads(rows: Sequence[Row], known_heads: Mapping[str, str | None]) -> Iterable[Problem]:
    hashes = {GENESIS, *(row["hash"] for row in rows)}
    for release, head in known_heads.items():
        if head is None:
            yield Problem(None, f"release {release} has no readable head hash: restore the package from a backup")
        elif head not in hashes:
            yield Problem(None, f"head mismatch: no row has the hash {head} that a release carries ({release})")


def _cap_changes(rows: Sequence[Row]) -> Iterable[Problem]:
    caps: dict[str, Row] = {}
    for row in rows:
        if row["state"] != "budget":
            continue
        before = caps.get(row["domain"])
        if before is not None:
            yield Problem(
                row["id"],
                f"cap of domain {row['domain']} changed from epsilon {before['epsilon']:g} at delta {before['delta']:g}"
                f" to epsilon {row['epsilon']:g} at delta {row['delta']:g}",
            )
        caps[row["domain"]] = row


def _shared_rows(rows: Sequence[Row]) -> Iterable[Problem]:
    """Refused since `reserve` compares domains; an older ledger may hold such entries."""
    domains: dict[str, str] = {}
    for row in rows:
        if row["state"] != "reserved":
            continue
        first = domains.setdefault(row["input_fingerprint"], row["domain"])
        if first != row["domain"]:
            yield Problem(
                row["id"],
                f"domain {row['domain']} was charged for private rows that were charged to domain {first} before",
            )
