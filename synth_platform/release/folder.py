"""A release package as a folder: written whole or not at all, listed with checksums, never overwritten."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

CHECKSUMS = "SHA256SUMS"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*)")

Document = Mapping[str, Any]


class PackageError(RuntimeError):
    """A package cannot be written or is not what was written; the message begins with a code."""


def write_folder(root: Path, name: str, fill: Callable[[Path], None]) -> Path:
    """root/name with the files that `fill` writes and their checksums.

    Releases are immutable: writing the same package again returns the existing one. Raises PackageError NAME, or EXISTS
    where root/name holds something else.
    """
    if not _NAME.fullmatch(name):
        raise PackageError(f"NAME: {name!r} is not a package name; use letters, digits, '.', '_' and '-'")
    root.mkdir(parents=True, exist_ok=True)
    target = root / name
    with TemporaryDirectory(dir=root, prefix=f".{name}.") as scratch:
        draft = Path(scratch) / name
        draft.mkdir()
        fill(draft)
        lines = [f"{_digest(file)}  {file.name}\n" for file in sorted(draft.iterdir())]
        (draft / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
        verify_package(draft)
        if not target.exists():
            draft.rename(target)
        elif _content(target) != _content(draft):
            raise PackageError(
                f"EXISTS: {target} holds another package; a release is never overwritten, use a new name"
            )
    verify_package(target)
    return target


def verify_package(path: Path) -> None:
    """Compare every file of a package with its checksum.

    Raises PackageError naming each fault: CHECKSUMS_MISSING, CHECKSUMS_UNREADABLE, FILE_MISSING, FILE_ALTERED,
    FILE_UNLISTED.
    """
    listed = _checksums(path)
    present = {file.name for file in path.iterdir()} - {CHECKSUMS}
    faults = [f"FILE_MISSING: {file}" for file in sorted(listed.keys() - present)]
    faults += [f"FILE_UNLISTED: {file}" for file in sorted(present - listed.keys())]
    faults += [
        f"FILE_ALTERED: {file}"
        for file in sorted(present & listed.keys())
        if not (path / file).is_file() or _digest(path / file) != listed[file]
    ]
    if faults:
        raise PackageError(f"{'; '.join(faults)} (in {path})")


def _content(path: Path) -> dict[str, str]:
    """Checksums of what is released; the words and pictures about it change with the platform's versions."""
    return {name: digest for name, digest in _checksums(path).items() if not name.endswith((".png", ".md"))}


def parquet_bytes(table: pl.DataFrame) -> bytes:
    """A table as the Parquet file of a package."""
    stream = io.BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()


def write_json(path: Path, document: Document) -> None:
    """A document as a JSON file of a package."""
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _checksums(path: Path) -> dict[str, str]:
    file = path / CHECKSUMS
    if not file.is_file():
        raise PackageError(f"CHECKSUMS_MISSING: {path} has no {CHECKSUMS}; it is not a whole release package")
    matches = [_CHECKSUM_LINE.fullmatch(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if not matches or None in matches:
        raise PackageError(f"CHECKSUMS_UNREADABLE: {file} is not a list of SHA-256 sums and file names")
    return {match[2]: match[1] for match in matches if match}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
