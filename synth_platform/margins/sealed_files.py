"""A value as files: arrays as safetensors, everything else as canonical JSON that pins every other file by hash.

Whatever is missing, half-written or altered is an error that names the file. Nothing is pickled. Arrays are written and
read without a second copy of them, since a fitted table may fill half of the memory; those that come back are views of
the file's bytes and cannot be written to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.privacy.fingerprint import canonical_json, sha256_hex

FORMAT = 1
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I16": "<i2"}  # safetensors' names
_ALIGNMENT = 8

Array = NDArray[Any]


class SealedFilesError(ValueError):
    """Stored files are missing, half-written, altered or of another kind; the message names the file."""


def sealed(name: str, document: Mapping[str, object], others: Mapping[str, bytes]) -> dict[str, bytes]:
    """`others` and, last, the JSON file `name`.json, which holds the document and their hashes.

    Raises SealedFilesError for a document that JSON does not carry as it is (tuples, numeric keys, NaN).
    """
    pins = {file: sha256_hex(content) for file, content in others.items()}
    body = {"format": FORMAT, "kind": name, "files": pins, "document": dict(document)}
    try:
        written = canonical_json(body)
    except (TypeError, ValueError):
        raise SealedFilesError(f"{name}.json: a value has no JSON form") from None
    if json.loads(written) != body:
        raise SealedFilesError(f"{name}.json: a value would not come back from JSON as it went in")
    return {**others, f"{name}.json": canonical_json({**body, "sha256": sha256_hex(written)})}


def opened(name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    """The document of `name`.json, after the files that it pins were found as they were written.

    Raises SealedFilesError for a file that is missing, half-written or altered, or another format or kind.
    """
    seal = f"{name}.json"
    if seal not in files:
        raise SealedFilesError(f"{seal}: missing; make it again")
    try:
        body = json.loads(files[seal])
    except ValueError:
        raise SealedFilesError(f"{seal}: half-written or altered: not JSON") from None
    expected = body.pop("sha256", None) if isinstance(body, dict) else None
    if not isinstance(body, dict) or expected != sha256_hex(canonical_json(body)):
        raise SealedFilesError(f"{seal}: altered: its content does not match its SHA-256")
    if body.get("format") != FORMAT or body.get("kind") != name:
        raise SealedFilesError(f"{seal}: not {name} in format {FORMAT}; make it again")
    for file, pin in body["files"].items():
        if file not in files:
            raise SealedFilesError(f"{file}: missing, but {seal} refers to it")
        if sha256_hex(files[file]) != pin:
            raise SealedFilesError(f"{file}: half-written or altered: its content does not match its SHA-256")
    document: dict[str, Any] = body["document"]
    return document


def array_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as one safetensors file. Raises SealedFilesError for a type other than float64, float32, int64, int16."""
    names = {np.dtype(code): name for name, code in _DTYPES.items()}
    header, parts, end = dict[str, object](), list[memoryview](), 0
    # The widest numbers first, so that every array starts where its numbers may be read in place.
    for key, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        if array.dtype not in names:
            raise SealedFilesError(f"array {key!r} has type {array.dtype}, none of {', '.join(map(str, names))}")
        start, end = end, end + array.nbytes
        header[key] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
        parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    written = json.dumps(header, separators=(",", ":")).encode()
    written += b" " * (-len(written) % _ALIGNMENT)
    return b"".join([len(written).to_bytes(8, "little"), written, *parts])


def arrays_of(content: bytes) -> dict[str, Array]:
    """The arrays of a file that `array_bytes` wrote, as read-only views of its bytes."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    return {
        key: np.frombuffer(
            content, _DTYPES[of["dtype"]], count=int(np.prod(of["shape"])), offset=start + of["data_offsets"][0]
        ).reshape(of["shape"])
        for key, of in header.items()
    }
