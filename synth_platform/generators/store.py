"""A generator state on disk: arrays as safetensors, everything else as canonical JSON that pins both by hash.

The JSON file is written last and names the array file by its content hash, so a state is either whole or an error: a
write that stops in between leaves the previous state, or none. Nothing here is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as dump_arrays

from synth_platform.generators.protocol import GeneratorState

STATE_FILE = "state.json"
FORMAT = 1


class StateError(ValueError):
    """A stored state is missing, half-written or altered; the message names the file and what is wrong with it."""


def state_files(state: GeneratorState) -> dict[str, bytes]:
    """File name -> content; the JSON file comes last, so that writing them in order makes it the seal.

    Raises StateError when the state holds something that would not come back as it went in.
    """
    # Not ascontiguousarray, which turns a single number into a vector of one.
    arrays = {name: np.asarray(array, order="C") for name, array in state.arrays.items()}
    for name, array in arrays.items():
        if array.dtype not in (np.float64, np.int64):
            raise StateError(f"array {name!r} has type {array.dtype}; states hold float64 and int64 only")
    payload = dump_arrays(arrays)
    array_hash = _sha256(payload)
    body: dict[str, Any] = {
        "format": FORMAT,
        "generator": state.generator,
        "arrays": array_hash,
        "document": dict(state.document),
        "entries": list(state.entries),
        "unledgered": list(state.unledgered),
        "seeded": state.seeded,
    }
    sealed = body | {"sha256": _sha256(_canonical(body))}
    if json.loads(_canonical(body)) != body:
        raise StateError("the state's document holds values that JSON does not carry (tuples, numeric keys)")
    return {_array_name(array_hash): payload, STATE_FILE: _canonical(sealed)}


def state_from_files(files: Mapping[str, bytes]) -> GeneratorState:
    """The state in `files`. Raises StateError naming the file that is missing, half-written or altered."""
    if STATE_FILE not in files:
        raise StateError(f"{STATE_FILE}: no generator state here; materialise the checkpoint first")
    try:
        stored = json.loads(files[STATE_FILE])
    except ValueError as error:
        raise StateError(f"{STATE_FILE}: half-written or altered: not JSON") from error
    body = dict(stored) if isinstance(stored, dict) else {}
    expected = body.pop("sha256", None)
    if expected != _sha256(_canonical(body)):
        raise StateError(f"{STATE_FILE}: altered: its content does not match its SHA-256")
    if body.get("format") != FORMAT:
        raise StateError(f"{STATE_FILE}: format {body.get('format')!r} is not {FORMAT}: materialise it again")
    array_file = _array_name(body["arrays"])
    if array_file not in files:
        raise StateError(f"{array_file}: missing, but {STATE_FILE} refers to it: half-written or altered")
    if _sha256(files[array_file]) != body["arrays"]:
        raise StateError(f"{array_file}: half-written or altered: its content does not match its SHA-256")
    return GeneratorState(
        generator=body["generator"],
        arrays=load_arrays(files[array_file]),
        document=body["document"],
        entries=tuple(body["entries"]),
        unledgered=tuple(body["unledgered"]),
        seeded=body["seeded"],
    )


def save_state(state: GeneratorState, folder: Path) -> None:
    """Write `state` into `folder`, made if missing; an older state there is replaced as a whole or not at all."""
    files = state_files(state)
    folder.mkdir(parents=True, exist_ok=True)
    for name, payload in files.items():
        _write(folder / name, payload)
    for old in folder.glob(_array_name("*")):
        if old.name not in files:
            old.unlink()


def load_state(folder: Path) -> GeneratorState:
    """Read the state in `folder`. Raises StateError naming the folder and the file that is not as it was written."""
    found = [path for path in (folder / STATE_FILE, *folder.glob(_array_name("*"))) if path.is_file()]
    try:
        return state_from_files({path.name: path.read_bytes() for path in found})
    except StateError as error:
        raise StateError(f"{folder}: {error}") from error


def _array_name(array_hash: str) -> str:
    return f"arrays-{array_hash[:16]}.safetensors"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise StateError("the state's document is not JSON: a value has no JSON form") from error


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
