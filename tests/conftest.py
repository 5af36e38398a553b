"""What tests of several rooms share."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text


@event.listens_for(Engine, "connect")
def _do_not_wait_for_the_disk(connection: Any, _: Any) -> None:
    """No test survives a power cut, and every event of a Dagster run is a transaction of its own.

    The ledger and the release register set their own durability afterwards.
    """
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty schema on the PostgreSQL server that SYNTH_TEST_POSTGRES names, dropped afterwards."""
    server = os.environ.get("SYNTH_TEST_POSTGRES")
    if not server:
        pytest.skip("SYNTH_TEST_POSTGRES names no PostgreSQL server; .ci/with-postgres starts one")
    schema, engine = f"synth_{token_hex(6)}", create_engine(server)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    yield f"{server}?options=-csearch_path%3D{schema}"
    with engine.begin() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
    engine.dispose()
