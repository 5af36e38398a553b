"""A generator state on disk: arrays as safetensors, everything else as canonical JSON that pins both by hash.

The JSON file is written last and names the array file by its content hash, so a state is either whole or an error: a
write that stops in between leaves the previous state, or none. Nothing here is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as dump_arrays

from synth_platform.generators.protocol import GeneratorState

STATE_FILE = "state.json"
FORMAT = 1


class StateError(ValueError):
    """A stored state is missing, half-written or altered; the message names the file and what is wrong with it."""


def save_state(state: GeneratorState, folder: Path) -> str:
    """Write `state` into `folder` (made if missing, an older state replaced) and return its content hash.

    Raises StateError when the state holds something that would not come back as it went in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.asarray(array, order="C") for name, array in state.arrays.items()}
    for name, array in arrays.items():
        if array.dtype not in (np.float64, np.int64):
            raise StateError(f"{folder}: array {name!r} has type {array.dtype}; states hold float64 and int64 only")
    payload = dump_arrays(arrays)
    array_hash = hashlib.sha256(payload).hexdigest()
    body: dict[str, Any] = {
        "format": FORMAT,
        "generator": state.generator,
        "arrays": array_hash,
        "document": dict(state.document),
        "entries": list(state.entries),
        "unledgered": list(state.unledgered),
        "seeded": state.seeded,
    }
    text = _canonical(body, folder)
    if json.loads(text) != body:
        raise StateError(f"{folder}: the state's document holds values that JSON does not carry (tuples, numeric keys)")
    content_hash = hashlib.sha256(text.encode()).hexdigest()
    array_file = folder / _array_name(array_hash)
    _write(array_file, payload)
    _write(folder / STATE_FILE, _canonical(body | {"sha256": content_hash}, folder).encode())
    for old in folder.glob("arrays-*.safetensors"):
        if old != array_file:
            old.unlink()
    return content_hash


def load_state(folder: Path) -> GeneratorState:
    """Read the state in `folder`. Raises StateError naming the file when it is missing, half-written or altered."""
    path = folder / STATE_FILE
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise StateError(f"{path}: no generator state here; materialise the checkpoint first") from error
    except ValueError as error:
        raise StateError(f"{path}: half-written or altered: not JSON") from error
    body = dict(stored) if isinstance(stored, dict) else {}
    expected = body.pop("sha256", None)
    if expected != hashlib.sha256(_canonical(body, folder).encode()).hexdigest():
        raise StateError(f"{path}: altered: its content does not match its SHA-256")
    if body.get("format") != FORMAT:
        raise StateError(f"{path}: format {body.get('format')!r}, this version reads {FORMAT}: materialise it again")
    return GeneratorState(
        generator=body["generator"],
        arrays=_read_arrays(folder / _array_name(body["arrays"]), body["arrays"]),
        document=body["document"],
        entries=tuple(body["entries"]),
        unledgered=tuple(body["unledgered"]),
        seeded=body["seeded"],
    )


def _read_arrays(path: Path, expected: str) -> dict[str, NDArray[Any]]:
    try:
        payload = path.read_bytes()
    except FileNotFoundError as error:
        raise StateError(f"{path}: missing, but {STATE_FILE} refers to it: half-written or altered") from error
    if hashlib.sha256(payload).hexdigest() != expected:
        raise StateError(f"{path}: half-written or altered: its content does not match its SHA-256")
    try:
        return dict(load_arrays(payload))
    except SafetensorError as error:
        raise StateError(f"{path}: not a safetensors file") from error


def _array_name(array_hash: str) -> str:
    return f"arrays-{array_hash[:16]}.safetensors"


def _canonical(body: dict[str, Any], folder: Path) -> str:
    try:
        return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StateError(f"{folder}: the state's document is not JSON: {error}") from error


def _write(path: Path, payload: bytes) -> None:
    """Write beside the target, flush to disk, then rename over it: readers see the old file or the whole new one."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
