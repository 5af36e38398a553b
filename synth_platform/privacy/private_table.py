"""Private rows travel closed: a table that says nothing about itself and opens in three recorded ways only.

Not a lock against malice (Python has none) but against accidents: no length, no shape, no iteration, no printing, no
copying, no pickling, no attribute that leads to the rows. Errors raised by code that runs on the rows are replaced by
ones without their message, because messages quote values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar, cast, final
from weakref import WeakKeyDictionary

from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.statistics import Query, StatisticRelease
from synth_platform.privacy.within_row import WithinRow, require_declared

T = TypeVar("T")
U = TypeVar("U")
Digest = Callable[[T], bytes]
AccessKind = Literal["transform", "measure", "gate"]


class Asks(Protocol):
    """What answers queries over closed tables: `curator.Curator`."""

    def ask(self, table: PrivateTable[T], query: Query[T], draw: int = 0) -> StatisticRelease:
        """Answer through the ledger."""
        ...


@dataclass(frozen=True)
class Access:
    """One opening of a table. purpose: map name, ledger code or gate purpose; entry_id: what paid for a measurement."""

    kind: AccessKind
    purpose: str
    entry_id: str | None = None


@dataclass(repr=False)
class _Contents(Generic[T]):
    rows: T
    key: FingerprintKey
    digest: Digest[T]
    journal: list[Access] = field(default_factory=list)
    fingerprint: str | None = None
    origin: _Contents[Any] | None = None
    source: Digest[T] | None = None
    people: str | None = None


@final
class PrivateTable(Generic[T]):
    """Rows of type T, closed. Made by `restricted.seal`; tables made from one another share one access journal."""

    __slots__ = ("__weakref__",)

    def transform(self, row_map: WithinRow[T, U], *, digest: Digest[U] | None = None) -> PrivateTable[U]:
        """A closed table of mapped rows; costs nothing, because each output row sees one input row.

        digest: names the content of the new rows; default: the function that named the old ones.
        Raises TypeError for anything but a map declared by `within_row`, PrivateComputationError if the map fails.
        """
        require_declared(row_map)
        contents = _contents_of(self)
        with quiet_errors(row_map.name):
            rows = row_map(contents.rows)
        contents.journal.append(Access("transform", row_map.name))
        digest = digest or cast(Digest[U], contents.digest)
        return _close(_Contents(rows, contents.key, digest, contents.journal, origin=contents))

    def measure(self, query: Query[T], curator: Asks, draw: int = 0) -> StatisticRelease:
        """A noisy statistic, paid for in the ledger or returned from it; errors are those of `Curator.ask`."""
        return curator.ask(self, query, draw)

    def open_for_gate(self, purpose: str) -> T:
        """The rows, for a gate or a control in the restricted zone. Recorded: no formal promise covers what follows."""
        if not purpose.strip():
            raise ValueError("opening private rows needs a purpose that says which gate or control reads them")
        contents = _contents_of(self)
        contents.journal.append(Access("gate", purpose))
        return contents.rows

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Every opening of this table and of the tables it was made from or into, in order."""
        return tuple(_contents_of(self).journal)

    @property
    def fingerprint(self) -> str:
        """Keyed name of the content; see `fingerprint` for why it tells nothing without the key."""
        contents = _contents_of(self)
        if contents.fingerprint is None:
            with quiet_errors("digest"):
                contents.fingerprint = contents.key.name(contents.digest(contents.rows))
        return contents.fingerprint

    @property
    def source(self) -> str:
        """Keyed name of the people this table was taken from, whatever part of them or of their data is in it.

        The ledger knows a table by it, so that a part, or another view of the same people, has no second budget.
        """
        contents: _Contents[Any] = _contents_of(self)
        while contents.origin is not None:
            contents = contents.origin
        if contents.people is None:  # of a genotype study, a pass over its files
            with quiet_errors("digest"):
                contents.people = contents.key.name((contents.source or contents.digest)(contents.rows))
        return contents.people

    def __repr__(self) -> str:
        return "PrivateTable(closed)"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise TypeError("private tables do not compare; compare statistic releases")

    __hash__ = object.__hash__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a private table is not pickled or copied; the restricted store seals and opens it")


# Not an attribute of the table, so that nothing which walks, prints or serialises objects meets the rows.
_CONTENTS: WeakKeyDictionary[PrivateTable[Any], _Contents[Any]] = WeakKeyDictionary()


def _contents_of(table: PrivateTable[T]) -> _Contents[T]:
    return _CONTENTS[table]


def _close(contents: _Contents[T]) -> PrivateTable[T]:
    table: PrivateTable[T] = PrivateTable()
    _CONTENTS[table] = contents
    return table


def combine(
    tables: Mapping[str, PrivateTable[T]], join: WithinRow[Mapping[str, T], U], *, digest: Digest[U]
) -> PrivateTable[U]:
    """One closed table from several tables of the same patients; free: `join` brings together one patient's rows.

    digest: names the content of the joined rows. The journal of the result starts with those of all its parts.
    Raises TypeError for no tables or an undeclared map, PrivateComputationError if the map fails.
    """
    require_declared(join)
    parts = {name: _CONTENTS[table] for name, table in tables.items()}
    if not parts:
        raise TypeError("no private tables to combine")
    with quiet_errors(join.name):
        rows = join({name: cast(T, part.rows) for name, part in parts.items()})
    journal = [access for part in parts.values() for access in part.journal]
    return _close(_Contents(rows, next(iter(parts.values())).key, digest, [*journal, Access("transform", join.name)]))


def unledgered(accesses: tuple[Access, ...]) -> tuple[str, ...]:
    """Purposes of the accesses that no ledger entry pays for: what makes the formal status ABSENT."""
    return tuple(dict.fromkeys(access.purpose for access in accesses if access.kind == "gate"))
