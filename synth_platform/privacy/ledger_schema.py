"""Where ledger rows live: one append-only table in SQLite (default) or PostgreSQL (by URL).

The database refuses UPDATE and DELETE by trigger. That stops accidents, not an administrator: an administrator is
caught by the hash chain (`ledger_chain`) and by the head hashes that are kept elsewhere (`ledger_files`, releases).
"""

from __future__ import annotations

from sqlalchemy import Column, Double, Engine, Integer, MetaData, Table, Text, UniqueConstraint

from synth_platform.privacy.database import UnusableDatabaseError, append_only, open_tables

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

# A row that is not the next one would stand outside the chain.
_NEXT_ROW = (
    "CREATE TRIGGER ledger_next_row BEFORE INSERT ON ledger "
    "WHEN NEW.id IS NOT (SELECT COALESCE(MAX(id), 0) + 1 FROM ledger) "
    "BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END"
)


class LedgerError(RuntimeError):
    """The ledger cannot do what was asked; the message says why and what to do."""


def open_engine(address: str) -> Engine:
    """An engine on an existing or new ledger at `address`; creates the table and its triggers once.

    Raises LedgerError where the address is not a usable SQLite or PostgreSQL database.
    """
    try:
        return open_tables(address, ROWS.metadata, _triggers)
    except UnusableDatabaseError as error:
        raise LedgerError(f"cannot open the ledger: {error}") from error


def _triggers(dialect: str) -> tuple[str, ...]:
    refusing = append_only(ROWS, dialect)
    return (*refusing, _NEXT_ROW) if dialect == "sqlite" else refusing
