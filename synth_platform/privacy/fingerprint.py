"""Fingerprints: public ones of requests and files, keyed ones of private rows.

A plain hash of private rows in metadata is a membership oracle: whoever holds all records but one hashes the table with
and without a candidate and compares. So the content of private rows is only ever named by BLAKE2b under a 32-byte
key that is made once and stays in the restricted zone. Without the key the name is a random-looking constant: it
says *the same rows as before* and nothing else. Losing the key costs budget, not privacy: old requests are no longer
recognised and would be drawn anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

KEY_BYTES = 32


def canonical_json(value: object) -> bytes:
    """One byte string per JSON value: sorted keys, no spaces, shortest floats. Raises ValueError for NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True).encode()


def sha256_hex(content: bytes) -> str:
    """Name of public or already noisy content."""
    return hashlib.sha256(content).hexdigest()


class FingerprintKeyError(RuntimeError):
    """The fingerprint key is unusable; the message names its file and what to do."""


@dataclass(frozen=True)
class FingerprintKey:
    """The secret of the restricted zone under which private content is named."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise FingerprintKeyError(f"a fingerprint key has {KEY_BYTES} bytes, got {len(self.secret)}")

    def name(self, content: bytes) -> str:
        """Keyed BLAKE2b-256 of `content` (a digest of rows, or the rows' bytes), in hexadecimal."""
        return hashlib.blake2b(content, key=self.secret, digest_size=32).hexdigest()


def load_or_create_key(path: Path) -> FingerprintKey:
    """The key at `path`; made on first use with mode 0600. Of processes that race to make it, all get the same one.

    Raises FingerprintKeyError where the file has another length or is readable by others than its owner.
    """
    if not path.exists():
        _create(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise FingerprintKeyError(f"{path}: mode {mode:04o} lets others read the fingerprint key; run chmod 600 on it")
    secret = path.read_bytes()
    if len(secret) != KEY_BYTES:
        raise FingerprintKeyError(f"{path}: a fingerprint key has {KEY_BYTES} bytes; restore it from a backup")
    return FingerprintKey(secret)


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link, unlike a rename, fails if another process came first: nobody's key is ever replaced.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
