"""How each kind of value becomes files and back. Open formats only: Parquet, safetensors, JSON; nothing is pickled."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from safetensors import numpy as safetensors

from resources.private import close, stored_rows
from synth_platform.contract.tables import CohortTables
from synth_platform.generators.protocol import GeneratorState, Measured
from synth_platform.generators.store import state_files, state_from_files
from synth_platform.margins.fitting.dense import DenseFit
from synth_platform.margins.fitting.junction_tree import JunctionTreeFit
from synth_platform.margins.fitting.weighted_rows import WeightedRowsFit
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.margins.rows import Rows
from synth_platform.margins.store import (
    fitted_files,
    fitted_from_files,
    margin_set_files,
    margin_set_from_files,
    rows_files,
    rows_from_files,
)
from synth_platform.normalize.batch import BatchCorrection
from synth_platform.normalize.encoder import Encoder
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.private_table import PrivateTable, unledgered
from synth_platform.privacy.statistics import StatisticRelease

Files = Mapping[str, bytes]
OUTCOME = ("label", "event", "time", "batch", "split", "key")


@dataclass(frozen=True)
class Codec:
    """One kind of value: `dump` to named files, `load` from them under the home's fingerprint key."""

    name: str
    kind: type
    dump: Callable[[Any], Files]
    load: Callable[[Files, FingerprintKey], Any]


def codec_of(value: object) -> Codec:
    """The codec of a value. Raises TypeError for a kind nobody taught the store."""
    for codec in CODECS:
        if isinstance(value, codec.kind):
            return codec
    raise TypeError(f"no codec for {type(value).__name__}; add one to resources/codecs.py")


def codec_named(name: str) -> Codec:
    """The codec an artefact was written with."""
    return next(codec for codec in CODECS if codec.name == name)


def json_bytes(document: object) -> bytes:
    """Canonical JSON: sorted keys, no NaN."""
    return json.dumps(document, sort_keys=True, indent=1, allow_nan=False).encode()


def _frame_bytes(frame: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.write_parquet(stream, compression="zstd")
    return stream.getvalue()


def _frame(payload: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(payload))


def _rows_bytes(rows: EncodedRows) -> bytes:
    x = pl.from_numpy(rows.x, schema=[f"x{j}" for j in range(rows.x.shape[1])], orient="row")
    return _frame_bytes(x.with_columns(**{name: pl.Series(getattr(rows, name).tolist()) for name in OUTCOME}))


def _rows(payload: bytes, features: list[str]) -> EncodedRows:
    frame = _frame(payload)
    return EncodedRows(
        features=tuple(features),
        x=np.ascontiguousarray(frame.drop(OUTCOME).to_numpy(), dtype=np.float64),
        label=frame["label"].cast(pl.Int64).to_numpy(),
        event=frame["event"].cast(pl.Int64).to_numpy(),
        time=frame["time"].cast(pl.Float64).to_numpy(),
        batch=frame["batch"].cast(pl.Int64).to_numpy(),
        split=np.array(frame["split"].cast(pl.String).to_list(), dtype=np.str_),
        key=np.array(frame["key"].cast(pl.String).to_list(), dtype=np.str_),
    )


def _dump_rows(rows: EncodedRows) -> Files:
    return {"rows.parquet": _rows_bytes(rows), "features.json": json_bytes(list(rows.features))}


def _load_rows(files: Files, _: FingerprintKey) -> EncodedRows:
    return _rows(files["rows.parquet"], json.loads(files["features.json"]))


def _dump_closed(table: PrivateTable[Any]) -> Files:
    inside = stored_rows(table)
    codec = codec_of(inside)
    document = {"codec": codec.name, "unledgered": list(unledgered(table.accesses))}
    return {**codec.dump(inside), "closed.json": json_bytes(document)}


def _load_closed(files: Files, key: FingerprintKey) -> PrivateTable[Any]:
    document = json.loads(files["closed.json"])
    table = close(codec_named(document["codec"]).load(files, key), key)
    for purpose in document["unledgered"]:
        table.open_for_gate(purpose)  # what was opened before it was stored stays on record
    return table


def _dump_tables(tables: CohortTables) -> Files:
    return {f"{name}.parquet": _frame_bytes(frame) for name, frame in tables}


def _load_tables(files: Files, _: FingerprintKey) -> CohortTables:
    frames = {name.removesuffix(".parquet"): _frame(payload) for name, payload in files.items()}
    return CohortTables(**{"expression": None, "methylation": None, **frames})  # type: ignore[arg-type]


def _dump_reference(reference: PublicReference) -> Files:
    correction = reference.batch_correction
    document = {
        "encoder": reference.encoder.to_document(),
        "labels": list(reference.labels),
        "batches": list(reference.batches),
        "latent_batches": list(reference.latent_batches),
        "n_ref": reference.n_ref,
        "batch_correction": None if correction is None else correction.to_document(),
    }
    return {"reference.json": json_bytes(document), **_dump_rows(reference.rows)}


def _load_reference(files: Files, key: FingerprintKey) -> PublicReference:
    document = json.loads(files["reference.json"])
    correction = document["batch_correction"]
    return PublicReference(
        encoder=Encoder.from_document(document["encoder"]),
        rows=_load_rows(files, key),
        labels=tuple(document["labels"]),
        batches=tuple(document["batches"]),
        latent_batches=tuple(document["latent_batches"]),
        n_ref=document["n_ref"],
        batch_correction=None if correction is None else BatchCorrection.from_document(correction),
    )


def _dump_measured(measured: Measured) -> Files:
    document = [
        {
            name: getattr(r, name)
            for name in ("code", "sensitivity", "sigma", "granularity", "source", "entry_id", "fingerprint")
        }
        for r in measured.releases
    ]
    values = {str(i): np.ascontiguousarray(r.values) for i, r in enumerate(measured.releases)}
    return {
        "releases.json": json_bytes({"releases": document, "unledgered": list(measured.unledgered)}),
        "values.safetensors": safetensors.save(values),
    }


def _load_measured(files: Files, _: FingerprintKey) -> Measured:
    document, values = json.loads(files["releases.json"]), safetensors.load(files["values.safetensors"])
    return Measured(
        releases=tuple(StatisticRelease(values=values[str(i)], **r) for i, r in enumerate(document["releases"])),
        unledgered=tuple(document["unledgered"]),
    )


def _dump_noisy(noisy: NoisyMargins) -> Files:
    own = {name: getattr(noisy, name) for name in ("entries", "seeded", "unledgered", "rows")}
    return {**margin_set_files(noisy.margins), "bought.json": json_bytes(own)}


def _load_noisy(files: Files, _: FingerprintKey) -> NoisyMargins:
    own = json.loads(files["bought.json"])
    margins = margin_set_from_files({name: files[name] for name in files if name != "bought.json"})
    return NoisyMargins(margins, tuple(own["entries"]), own["seeded"], tuple(own["unledgered"]), own["rows"])


FITS: Mapping[str, type] = {"dense": DenseFit, "junction_tree": JunctionTreeFit, "weighted_rows": WeightedRowsFit}

CODECS: tuple[Codec, ...] = (
    Codec("closed", PrivateTable, _dump_closed, _load_closed),
    Codec(
        "frame",
        pl.DataFrame,
        lambda f: {"table.parquet": _frame_bytes(f)},
        lambda files, _: _frame(files["table.parquet"]),
    ),
    Codec("rows", EncodedRows, _dump_rows, _load_rows),
    Codec("tables", CohortTables, _dump_tables, _load_tables),
    Codec("reference", PublicReference, _dump_reference, _load_reference),
    Codec(
        "batch_correction",
        BatchCorrection,
        lambda c: {"correction.json": json_bytes(c.to_document())},
        lambda files, _: BatchCorrection.from_document(json.loads(files["correction.json"])),
    ),
    Codec("measured", Measured, _dump_measured, _load_measured),
    Codec("state", GeneratorState, state_files, lambda files, _: state_from_files(files)),
    Codec("margins", MarginSet, margin_set_files, lambda files, _: margin_set_from_files(files)),
    Codec("noisy_margins", NoisyMargins, _dump_noisy, _load_noisy),
    Codec("coded_rows", Rows, rows_files, lambda files, _: rows_from_files(files)),
    *(
        Codec(f"fitted_{name}", kind, fitted_files, lambda files, _: fitted_from_files(files))
        for name, kind in FITS.items()
    ),
    Codec(
        "document",
        dict,
        lambda d: {"document.json": json_bytes(d)},
        lambda files, _: json.loads(files["document.json"]),
    ),
)
