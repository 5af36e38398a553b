"""One way to write a file that is there whole and durably, or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

DRAFT = ".tmp"


def write_whole(file: Path, content: bytes) -> None:
    """Put `content` in the place of `file`, a local path or an object's. A killed writer leaves a file ending in DRAFT.

    Raises FileNotFoundError where somebody removed the draft before it took its place.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(file, Path):  # an object store: a put is atomic and durable by itself
        file.write_bytes(content)
        return
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}{DRAFT}")
    with draft.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
