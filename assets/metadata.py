"""What every asset says about itself in the Dagster UI: zone, schema, ledger entries - and never a private figure."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
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


# What people compare first comes first: the page shows about five columns before it scrolls.
LEDGER_COLUMNS: Mapping[str, str] = {
    "code": "string",
    "mechanism": "string",
    "sensitivity": "float",
    "scale": "float",
    "state": "string",
    "time": "string",
    "noise_source": "string",
    "neighbouring": "string",
    "entry_id": "string",
    "hash": "string",
}


def ledger_table(rows: Sequence[Mapping[str, Any]]) -> dg.MetadataValue:
    """One line per ledger entry as the chain has it last: code, mechanism, sensitivity, noise scale, state, hash."""
    schema = dg.TableSchema(columns=[dg.TableColumn(name, kind) for name, kind in LEDGER_COLUMNS.items()])
    latest = {row["entry_id"]: row for row in rows}  # a committed row comes after its reservation
    records = []
    for row in latest.values():
        shown = dict(row) | {
            "mechanism": _mechanism(row["event"]),
            "sensitivity": significant(row["sensitivity"]),
            "scale": significant(row["scale"]),
            "time": row["time"][:19].replace("T", " "),
        }
        records.append(dg.TableRecord({name: shown[name] for name in LEDGER_COLUMNS}))
    return dg.MetadataValue.table(records, schema)


def release_metadata(
    decision: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], head: str, package: Path
) -> dict[str, Any]:
    """What every release says of itself: its decision, its costs and the whole ledger behind it, its package."""
    return {
        "decision": decision["decision"],
        "notes": decision["notes"],
        "epsilon_tight": significant(decision["ledger"]["epsilon_pld"]),
        "epsilon_rdp": significant(decision["ledger"]["epsilon_rdp"]),
        "delta": decision["delta"],
        "mu": significant(decision["mu"]),
        "ledger": ledger_table(entries),
        "ledger_entries": decision["ledger"]["entries"],
        "ledger_head": head,
        "package_name": package.name,
        "package": dg.MetadataValue.path(str(package)),
        "published_zone": "released",
    }


def table(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dg.MetadataValue:
    """A table of JSON records with these columns; lists are joined, what is missing is a dash."""
    rows = [dg.TableRecord({name: _cell(record[name]) for name in columns}) for record in records]
    return dg.MetadataValue.table(rows, dg.TableSchema(columns=[dg.TableColumn(name) for name in columns]))


def significant(figure: float | None) -> float | None:
    """A figure to six significant digits, which is what a reader compares."""
    return None if figure is None else float(f"{figure:.6g}")


def _cell(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, list) else "-" if value is None else value


def _mechanism(event: str) -> str:
    """The mechanism event as people write it, e.g. "Gaussian, σ/Δ 5.25", or "86 choices, range .11"."""
    document = json.loads(event)
    times, single = (
        (document["count"], document["event"]) if document["type"] == "SelfComposedDpEvent" else (1, document)
    )
    if single["type"] == "BoundedRangeDpEvent":
        return f"{times} choice{'s' if times > 1 else ''}, range {single['eta']:.4g}"
    name, multiplier = document["type"].removesuffix("DpEvent"), document.get("noise_multiplier")
    return f"{name}, σ/Δ {multiplier:.4g}" if multiplier else name
