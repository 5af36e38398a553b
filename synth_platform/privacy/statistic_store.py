"""Stored statistic releases: one safetensors file each, named by the SHA-256 of its bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from safetensors import numpy as safetensors
from upath import UPath

from synth_platform.privacy.fingerprint import sha256_hex
from synth_platform.privacy.ledger_records import LedgerEntry
from synth_platform.privacy.statistics import StatisticRelease
from synth_platform.privacy.whole_file import write_whole


class StoredReleaseError(RuntimeError):
    """A committed release cannot be given back: its file is missing or altered. Names the file and its ledger entry."""


class StatisticStore:
    """Releases under `root`, a local folder or an object store (`UPath`); a file appears whole or not at all."""

    def __init__(self, root: Path | UPath) -> None:
        self._root = root

    def save(self, release: StatisticRelease) -> str:
        """Durably store `release` (its own fingerprint field is ignored); returns the stored file's fingerprint."""
        document = {name: value for name, value in asdict(release).items() if name not in ("values", "fingerprint")}
        content: bytes = safetensors.save(
            {"values": np.ascontiguousarray(release.values)}, metadata={"release": json.dumps(document, sort_keys=True)}
        )
        fingerprint = sha256_hex(content)
        write_whole(self._file(fingerprint), content)
        return fingerprint

    def load(self, entry: LedgerEntry) -> StatisticRelease:
        """The release that `entry` was committed with. Raises StoredReleaseError where it is missing or altered."""
        if entry.artefact_fingerprint is None:
            raise StoredReleaseError(f"entry {entry.entry_id} was reserved but never committed: nothing was stored")
        file = self._file(entry.artefact_fingerprint)
        if not file.exists():
            raise StoredReleaseError(
                f"{file.name}: the release of ledger entry {entry.entry_id} is missing from the statistic store; "
                "restore it from a backup, or run another plan (synth run COHORT --epsilon E), which costs budget"
            )
        content = file.read_bytes()
        if sha256_hex(content) != entry.artefact_fingerprint:
            raise StoredReleaseError(
                f"{file.name}: the release of ledger entry {entry.entry_id} was altered after it was committed; "
                "restore it from a backup, or run another plan (synth run COHORT --epsilon E), which costs budget"
            )
        release = _parse(content, entry.artefact_fingerprint)
        if release.entry_id != entry.entry_id:
            raise StoredReleaseError(f"{file.name}: belongs to entry {release.entry_id}, not to {entry.entry_id}")
        return release

    def _file(self, fingerprint: str) -> Path:
        file: Path = self._root / f"{fingerprint}.safetensors"
        return file


def _parse(content: bytes, fingerprint: str) -> StatisticRelease:
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    document = json.loads(header["__metadata__"]["release"])
    return StatisticRelease(**document, values=safetensors.load(content)["values"], fingerprint=fingerprint)
