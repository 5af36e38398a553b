"""Fixtures that tests of several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from secrets import token_hex

import pytest
from sqlalchemy import create_engine, text


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
