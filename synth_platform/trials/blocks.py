"""Finished blocks of a long trial, each durable by itself, so that a killed trial goes on where it stood."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from safetensors import numpy as safetensors
from upath import UPath

from synth_platform.normalize.rows import FloatArray
from synth_platform.privacy.fingerprint import sha256_hex
from synth_platform.privacy.whole_file import DRAFT, write_whole

SUFFIX = ".safetensors"


class BlockError(RuntimeError):
    """A stored block is missing or altered; the message names its file."""


class BlockStore:
    """Blocks under `root`, a local folder or an object store, in the restricted zone.

    A block is named by the digest of everything it depends on, so whoever finds the name finds the right numbers.
    """

    def __init__(self, root: Path | UPath) -> None:
        self._root = root

    def holds(self, name: str) -> bool:
        """Whether the block is there."""
        return self._file(name).exists()

    def save(self, name: str, arrays: Mapping[str, FloatArray]) -> None:
        """Store a block: whole and on disk, or not at all."""
        contents = {code: np.ascontiguousarray(array, np.float64) for code, array in arrays.items()}
        checks = {code: sha256_hex(array.tobytes()) for code, array in contents.items()}
        payload: bytes = safetensors.save(contents, metadata={"sha256": json.dumps(checks, sort_keys=True)})
        file = self._file(name)
        try:
            write_whole(file, payload)
        except FileNotFoundError:  # another run of the same audit was first, and cleared up
            if not file.exists():
                raise

    def load(self, name: str) -> dict[str, FloatArray]:
        """The arrays of a block. Raises BlockError where it is missing or not what was stored."""
        file = self._file(name)
        if not file.exists():
            raise BlockError(f"{file.name}: the block is missing; run the audit again, it computes what is missing")
        payload = file.read_bytes()
        try:
            header = json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")])
            checks = json.loads(header["__metadata__"]["sha256"])
            arrays: dict[str, FloatArray] = safetensors.load(payload)
            whole = {code: sha256_hex(array.tobytes()) for code, array in arrays.items()} == checks
        except Exception:  # whatever a broken file makes the readers say
            whole = False
        if not whole:
            raise BlockError(f"{file.name}: the block was altered; delete the file and run the audit again")
        return {code: arrays[code] for code in sorted(arrays)}

    def keep_only(self, names: Collection[str]) -> None:
        """Remove every other block, and what a killed process left half-written."""
        kept = {self._file(name).name for name in names}
        for file in list(self._root.iterdir()):
            if file.name not in kept and (file.name.endswith((SUFFIX, DRAFT))):
                file.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        file: Path = self._root / f"{name}{SUFFIX}"
        return file
