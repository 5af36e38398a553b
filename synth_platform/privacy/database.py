"""Databases of records that only grow: SQLite (default) or PostgreSQL (by URL), with one writer at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    MetaData,
    NullPool,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    make_url,
)
from sqlalchemy.exc import DatabaseError, NoSuchModuleError

WAIT_SECONDS = 60
_WRITER_LOCK = "SELECT pg_advisory_xact_lock(1398361416, 1)"


class UnusableDatabaseError(RuntimeError):
    """The address is not that of a SQLite or PostgreSQL database that can be used; the message says why."""


def sqlite_file(url: URL) -> Path | None:
    """The database file behind a SQLite URL, None for a server."""
    if url.get_backend_name() != "sqlite":
        return None
    if not url.database or url.database == ":memory:":
        raise UnusableDatabaseError("records must outlive their process: give SQLite a file, e.g. sqlite:////srv/it.db")
    return Path(url.database)


def open_tables(address: str, tables: MetaData, triggers: Callable[[str], Sequence[str]]) -> Engine:
    """An engine on the database at `address`; creates `tables` once, with what `triggers` says for its dialect.

    Connections are not pooled: records are written seldom, from many processes, and a pool would survive a fork.
    Raises UnusableDatabaseError.
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
            raise UnusableDatabaseError(
                f"database {url.get_backend_name()!r} is not supported: use sqlite or postgresql"
            )
        if not _there(engine, tables):
            with serialised(engine) as connection:
                if not _there(connection, tables):
                    tables.create_all(connection)
                    for statement in triggers(engine.dialect.name):
                        connection.exec_driver_sql(statement)
    except (DatabaseError, NoSuchModuleError, ModuleNotFoundError) as error:
        where = url.render_as_string(hide_password=True)
        raise UnusableDatabaseError(f"{where} cannot be opened: {getattr(error, 'orig', None) or error}") from error
    return engine


def append_only(table: Table, dialect: str) -> tuple[str, ...]:
    """Triggers by which the database itself refuses to change or remove a row of `table`, or to put one in its place.

    SQLite's REPLACE removes the row with the same key without firing the trigger on DELETE, so inserting a key that is
    there already is refused as well. PostgreSQL has no REPLACE, and ON CONFLICT DO UPDATE is an UPDATE.
    """
    name = table.name
    if dialect == "sqlite":
        keys = [list(key.columns) for key in (table.primary_key, *_unique(table))]
        same = " OR ".join(
            "(" + " AND ".join(f"{column.name} = NEW.{column.name}" for column in key) + ")" for key in keys
        )
        refuse = f"BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END"
        return (
            *(
                f"CREATE TRIGGER {name}_no_{act.lower()} BEFORE {act} ON {name} {refuse}"
                for act in ("UPDATE", "DELETE")
            ),
            f"CREATE TRIGGER {name}_no_replace BEFORE INSERT ON {name} "
            f"WHEN EXISTS (SELECT 1 FROM {name} WHERE {same}) {refuse}",
        )
    return (
        f"CREATE FUNCTION {name}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{name} is append-only'; END $$",
        f"CREATE TRIGGER {name}_no_change BEFORE UPDATE OR DELETE ON {name} "
        f"FOR EACH ROW EXECUTE FUNCTION {name}_refuse()",
        f"CREATE TRIGGER {name}_no_truncate BEFORE TRUNCATE ON {name} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {name}_refuse()",
    )


def _unique(table: Table) -> list[UniqueConstraint]:
    return [constraint for constraint in table.constraints if isinstance(constraint, UniqueConstraint)]


@contextmanager
def serialised(engine: Engine) -> Iterator[Connection]:
    """A transaction that no other writer overlaps; it is durable when the block ends without error."""
    with engine.execution_options(serialised=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(_WRITER_LOCK)
        yield connection


def _there(bind: Engine | Connection, tables: MetaData) -> bool:
    return all(inspect(bind).has_table(name) for name in tables.tables)


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
