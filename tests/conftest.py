"""What every test shares: nothing here survives a power cut, so Dagster's databases need not wait for the disk."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Engine, event


@event.listens_for(Engine, "connect")
def _do_not_wait_for_the_disk(connection: Any, _: Any) -> None:
    """Every event of a run is a transaction. The ledger and the register set their own durability afterwards."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")
