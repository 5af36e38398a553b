"""What every asset says about itself in the Dagster UI: zone, schema, ledger entries - and never a private figure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl

CODE_VERSION = "1"


def column_schema(frame: pl.DataFrame) -> dg.TableSchema:
    """Names and types of a frame's columns; the first 500 of a wide matrix, because the UI shows them one by one."""
    columns = [dg.TableColumn(name=name, type=str(dtype)) for name, dtype in list(frame.schema.items())[:500]]
    return dg.TableSchema(columns=columns)


def private_table_metadata(frame: pl.DataFrame) -> dict[str, Any]:
    """Schema only: how many private rows there are is itself a private figure."""
    return {"dagster/column_schema": column_schema(frame)}


def open_table_metadata(frame: pl.DataFrame) -> dict[str, Any]:
    """Schema and row count of a public or synthetic table."""
    return {"dagster/column_schema": column_schema(frame), "dagster/row_count": frame.height}


LEDGER_COLUMNS: Mapping[str, str] = {
    "entry_id": "string",
    "code": "string",
    "event": "string",
    "sensitivity": "float",
    "scale": "float",
    "neighbouring": "string",
    "noise_source": "string",
    "state": "string",
    "time": "string",
    "hash": "string",
}


def ledger_table(rows: Sequence[Mapping[str, Any]]) -> dg.MetadataValue:
    """Ledger entries as a table in the UI: code, mechanism, sensitivity, noise scale, state, time, hash."""
    schema = dg.TableSchema(columns=[dg.TableColumn(name, kind) for name, kind in LEDGER_COLUMNS.items()])
    records = [dg.TableRecord({name: row[name] for name in LEDGER_COLUMNS} | _mechanism(row)) for row in rows]
    return dg.MetadataValue.table(records, schema)


def _mechanism(row: Mapping[str, Any]) -> dict[str, str]:
    """The mechanism event as people write it, e.g. "Gaussian, noise multiplier 5.25"."""
    event = json.loads(row["event"])
    multiplier = event.get("noise_multiplier")
    return {"event": f"{event['type']}, noise multiplier {multiplier:.4g}" if multiplier else event["type"]}
