"""What a ledger keeps beside its database: the head anchor, and locks that one request holds while it is answered."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from synth_platform.privacy.ledger_chain import Head
from synth_platform.privacy.ledger_schema import LedgerError


def read_anchor(path: Path) -> Head | None:
    """The anchored head, None where nothing was anchored yet. Raises LedgerError for a file that is no anchor."""
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text(encoding="ascii"))
        return Head(rows=int(document["rows"]), hash=str(document["hash"]))
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError(f"{path}: not a head anchor (JSON with rows and hash); restore it from a backup") from error


def advance_anchor(path: Path, head: Head) -> None:
    """Write `head` unless a longer chain is anchored already: writers finish in any order, the anchor only grows."""
    with locked(path.with_name(path.name + ".lock")):
        anchored = read_anchor(path)
        if anchored is not None and anchored.rows >= head.rows:
            return
        temporary = path.with_name(path.name + ".tmp")
        with temporary.open("w", encoding="ascii") as file:
            json.dump({"rows": head.rows, "hash": head.hash}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a lock file of this machine; the kernel frees it when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The former holder may have removed the file while we waited on it; then the lock guards nothing.
        if _is_at(descriptor, path):
            break
        os.close(descriptor)
    try:
        yield
    finally:
        path.unlink()
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def server_locked(engine: Engine, key: str) -> Iterator[None]:
    """Hold a PostgreSQL session lock on a hexadecimal `key`; the server frees it when the session dies."""
    number = int(key[:16], 16) - 2**63
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({number})")
        yield
