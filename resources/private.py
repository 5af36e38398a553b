"""Closing private frames and rows under the home's key; the one place outside `privacy` that may open them again."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from resources.home import HomeResource
from resources.ledger import home_ledger
from synth_platform.margins.reading.census import Microdata
from synth_platform.margins.rows import Rows
from synth_platform.margins.store import content_digest as coded_digest
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.fingerprint import FingerprintKey, FingerprintKeyError, load_or_create_key
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.restricted import restricted_rows, seal
from synth_platform.sources.genotypes.study import GenotypeStudy, source_digest
from synth_platform.sources.genotypes.study import content_digest as study_digest

T = TypeVar("T")


def frame_digest(frame: pl.DataFrame) -> bytes:
    """SHA-256 of a frame's schema and cells (Arrow bytes), in row order."""
    stream = io.BytesIO()
    frame.write_ipc(stream)
    return hashlib.sha256(stream.getvalue()).digest()


def fingerprint_key(home: HomeResource) -> FingerprintKey:
    """The key under which this home names private content, made on first use.

    Raises FingerprintKeyError where it is lost: under another key the ledger recognises none of the rows it has
    charged, so that paid requests would be paid again and rows would pass for those of another domain.
    """
    file = key_file(home)
    if not file.exists() and _charged(home) and not file.exists():  # again: it may have been made in between
        raise FingerprintKeyError(
            f"{file} is missing although the ledger has entries under it; restore it from a backup. If it is lost for "
            "good, `synth ledger new-key` makes another one; what was paid for is then charged again"
        )
    return load_or_create_key(file)


def key_file(home: HomeResource) -> Path:
    """Where the key lies."""
    return home.paths.root / "restricted" / "fingerprint.key"


def _charged(home: HomeResource) -> bool:
    return any(row["state"] != "budget" for row in home_ledger(home.paths).table())


def close(value: pl.DataFrame | EncodedRows | Rows, key: FingerprintKey) -> PrivateTable[Any]:
    """A closed table of a frame, of encoded rows or of rows in categories."""
    if isinstance(value, Rows):
        return seal(value, key=key, digest=coded_digest)
    if isinstance(value, pl.DataFrame):
        return seal(value, key=key, digest=frame_digest)
    return seal(value, key=key, digest=content_digest)


def close_study(study: GenotypeStudy, home: HomeResource) -> PrivateTable[GenotypeStudy]:
    """A closed genotype study: a handle on its file, named by the file's content and its groups."""
    return seal(study, key=fingerprint_key(home), digest=study_digest, source=source_digest)


def close_census(census: Microdata, key: FingerprintKey) -> PrivateTable[Rows]:
    """Closed rows of a census, whose people are those of its file, whatever the recipe made of them."""
    return seal(census.curated.rows, key=key, digest=coded_digest, source=lambda _: census.people)


def stored_rows(table: PrivateTable[T]) -> T:
    """What a closed table holds, for storing it in the restricted zone and for its schema check."""
    return restricted_rows(table)
