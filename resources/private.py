"""Closing private frames and rows under the home's key; the one place outside `privacy` that may open them again."""

from __future__ import annotations

import hashlib
import io
from typing import Any, TypeVar

import polars as pl

from resources.home import HomeResource
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.fingerprint import FingerprintKey, load_or_create_key
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.restricted import restricted_rows, seal

T = TypeVar("T")


def frame_digest(frame: pl.DataFrame) -> bytes:
    """SHA-256 of a frame's schema and cells (Arrow bytes), in row order."""
    stream = io.BytesIO()
    frame.write_ipc(stream)
    return hashlib.sha256(stream.getvalue()).digest()


def fingerprint_key(home: HomeResource) -> FingerprintKey:
    """The key under which this home names private content."""
    return load_or_create_key(home.paths.root / "restricted" / "fingerprint.key")


def close(value: pl.DataFrame | EncodedRows, key: FingerprintKey) -> PrivateTable[Any]:
    """A closed table of a frame or of encoded rows."""
    if isinstance(value, pl.DataFrame):
        return seal(value, key=key, digest=frame_digest)
    return seal(value, key=key, digest=content_digest)


def stored_rows(table: PrivateTable[T]) -> T:
    """What a closed table holds, for storing it in the restricted zone and for its schema check."""
    return restricted_rows(table)
