"""Where ledger rows live: one append-only table in SQLite (default) or PostgreSQL (by URL).

Both databases refuse UPDATE and DELETE by trigger. That stops accidents, not an administrator: an administrator is
caught by the hash chain (`ledger_chain`) and by the head hashes that are kept elsewhere (`ledger_files`, releases).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Double,
    Engine,
    Integer,
    MetaData,
    NullPool,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    make_url,
)
from sqlalchemy.exc import DatabaseError, NoSuchModuleError

WAIT_SECONDS = 60
_SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(1398361416, 1)"

ROWS = Table(
    "ledger",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("entry_id", Text),
    Column("cohort", Text),
    Column("code", Text),
    Column("event", Text),
    Column("sensitivity", Double),
    Column("scale", Double),
    Column("neighbouring", Text),
    Column("noise_source", Text),
    Column("request_fingerprint", Text),
    Column("input_fingerprint", Text),
    Column("artefact_fingerprint", Text),
    Column("epsilon", Double),
    Column("delta", Double),
    Column("run_id", Text),
    Column("time", Text, nullable=False),
    Column("previous_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
    UniqueConstraint("entry_id", "state"),
)

# The insert trigger also stops `INSERT OR REPLACE`, which deletes without firing the delete trigger.
_SQLITE_TRIGGERS = (
    "CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END",
    "CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END",
    "CREATE TRIGGER ledger_next_row BEFORE INSERT ON ledger "
    "WHEN NEW.id IS NOT (SELECT COALESCE(MAX(id), 0) + 1 FROM ledger) "
    "BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END",
)
_POSTGRES_TRIGGERS = (
    "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'ledger is append-only'; END $$",
    "CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION ledger_refuse()",
    "CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()",
)


class LedgerError(RuntimeError):
    """The ledger cannot do what was asked; the message says why and what to do."""


def sqlite_file(url: URL) -> Path | None:
    """The database file behind a SQLite URL, None for a server."""
    if url.get_backend_name() != "sqlite":
        return None
    if not url.database or url.database == ":memory:":
        raise LedgerError("a ledger must outlive its process: give SQLite a file, e.g. sqlite:////srv/synth/ledger.db")
    return Path(url.database)


def open_engine(address: str) -> Engine:
    """An engine on an existing or new ledger at `address`; creates the table and its triggers once.

    Connections are not pooled: a ledger is used seldom, from many processes, and a pool would survive a fork.
    Raises LedgerError where the address is not a usable SQLite or PostgreSQL database.
    """
    url = make_url(address)
    file = sqlite_file(url)
    try:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": WAIT_SECONDS})
            event.listen(engine, "connect", _configure_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        elif url.get_backend_name() == "postgresql":
            # Each statement must see what the previous holder of the lock committed.
            engine = create_engine(url, poolclass=NullPool, isolation_level="READ COMMITTED")
        else:
            raise LedgerError(f"ledger database {url.get_backend_name()!r} is not supported: use sqlite or postgresql")
        if not inspect(engine).has_table(ROWS.name):
            _create(engine)
    except (DatabaseError, NoSuchModuleError, ModuleNotFoundError) as error:
        where = url.render_as_string(hide_password=True)
        raise LedgerError(f"cannot open a ledger at {where}: {getattr(error, 'orig', None) or error}") from error
    return engine


@contextmanager
def serialised(engine: Engine) -> Iterator[Connection]:
    """A transaction that no other writer of this ledger overlaps; it is durable when the block ends without error."""
    with engine.execution_options(serialised=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(_SCHEMA_LOCK)
        yield connection


def _create(engine: Engine) -> None:
    triggers = _SQLITE_TRIGGERS if engine.dialect.name == "sqlite" else _POSTGRES_TRIGGERS
    with serialised(engine) as connection:
        if inspect(connection).has_table(ROWS.name):
            return
        ROWS.create(connection)
        for statement in triggers:
            connection.exec_driver_sql(statement)


def _configure_sqlite(connection: Any, _record: object) -> None:
    # The driver must not open transactions of its own: `_begin_sqlite` decides which kind each one is.
    connection.isolation_level = None
    # Verification has to read whatever somebody wrote into a text cell.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("serialised", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
