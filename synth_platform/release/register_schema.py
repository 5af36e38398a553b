"""The tables of the release register: rows are added, never changed or removed."""

from __future__ import annotations

from sqlalchemy import Column, Double, Engine, Integer, MetaData, Table, Text, UniqueConstraint

from synth_platform.privacy.database import UnusableDatabaseError, append_only, open_tables

_SCHEMA = MetaData()

RELEASES = Table(
    "releases",
    _SCHEMA,
    Column("name", Text, primary_key=True),
    Column("cohort", Text, nullable=False),
    Column("generator", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("attacks", Text, nullable=False),  # JSON list of codes; with the next two, what every look attacks with
    Column("neighbours", Integer, nullable=False),
    Column("membership_limit", Double, nullable=False),
)

EVENTS = Table(
    "release_events",
    _SCHEMA,
    Column("id", Integer, primary_key=True),
    Column("release", Text, nullable=False),
    Column("event", Text, nullable=False),  # PUBLISHED | RECALLED
    Column("checksum", Text),  # of a published package's SHA256SUMS
    Column("table_sha256", Text),  # of its table.parquet
    Column("reasons", Text, nullable=False),  # JSON list of codes
    Column("time", Text, nullable=False),
)

LOOKS = Table(
    "release_looks",
    _SCHEMA,
    Column("id", Integer, primary_key=True),
    Column("release", Text, nullable=False),
    Column("look", Integer, nullable=False),
    Column("state", Text, nullable=False),  # started | finished
    Column("seed", Text, nullable=False),
    Column("log_e", Text),  # JSON {attack: log e-value}: a function of private rows
    Column("findings", Text),  # JSON list of codes
    Column("time", Text, nullable=False),
    UniqueConstraint("release", "look", "state"),
)


class RegisterError(RuntimeError):
    """The release register cannot do what was asked; the message says why and what to do."""


def open_register(address: str) -> Engine:
    """An engine on an existing or new register at `address`. Raises RegisterError where it cannot be used."""
    try:
        return open_tables(address, _SCHEMA, _triggers)
    except UnusableDatabaseError as error:
        raise RegisterError(f"cannot open the release register: {error}") from error


def _triggers(dialect: str) -> list[str]:
    return [statement for table in _SCHEMA.sorted_tables for statement in append_only(table, dialect)]
