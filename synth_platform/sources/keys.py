"""Row keys: origin keys stay at the door, every row gets an opaque token (8-1 §1.1)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

MAXIMUM_ROWS = 999_999
PUBLIC_PREFIX, PRIVATE_PREFIX = "R", "P"  # R: public reference rows


def opaque_keys(rows: int, prefix: str = PRIVATE_PREFIX) -> list[str]:
    """Tokens `P-000001`, ... in order. Raises ValueError past the 999,999 that six digits can name."""
    if rows > MAXIMUM_ROWS:
        raise ValueError(f"{rows} rows do not fit row tokens of six digits, at most {MAXIMUM_ROWS}; split the cohort")
    return [f"{prefix}-{number:06d}" for number in range(1, rows + 1)]


def reissue(tables: Sequence[pl.DataFrame], key: str, public: Collection[str] = ()) -> dict[str, str]:
    """A token for every distinct value of column `key` in `tables`: R-... for those in `public`, P-... for the others.

    Each kind is numbered by itself: public tokens say nothing of private rows, not even how many there are. The order
    is that of one hash over all cells of the patient: no single table's cells, a split or a site, bring rows together.

    Neither origin keys nor their order enter the hash, and nothing stores the map: without the rows themselves a token
    says nothing. The same rows get the same tokens at every read, in whatever order they stand in the files, so reading
    a cohort again changes no fingerprint.
    """
    digests: defaultdict[str, list[bytes]] = defaultdict(list)
    for number, table in enumerate(tables):
        for owner, digest in zip(table[key], _row_digests(table.drop(key), number), strict=True):
            if owner is not None:
                digests[owner].append(digest)
    order = sorted(digests, key=lambda owner: hashlib.sha256(b"".join(sorted(digests[owner]))).digest())
    kinds = {
        PUBLIC_PREFIX: [owner for owner in order if owner in public],
        PRIVATE_PREFIX: [owner for owner in order if owner not in public],
    }
    return {
        owner: token
        for prefix, owners in kinds.items()
        for owner, token in zip(owners, opaque_keys(len(owners), prefix), strict=True)
    }


def _row_digests(table: pl.DataFrame, salt: int) -> list[bytes]:
    """SHA-256 of every row's cells; `salt` keeps equal cells of two tables apart."""
    numbers = table.select(pl.col(n).cast(pl.Float64) for n, dtype in table.schema.items() if dtype.is_numeric())
    rest = table.drop(numbers.columns)
    # Column-less frames forget their height.
    blocks = numbers.to_numpy(order="c") if numbers.width else np.empty((table.height, 0))
    others = rest.rows() if rest.width else [()] * table.height
    return [
        hashlib.sha256(repr((salt, other)).encode() + block.tobytes()).digest()
        for block, other in zip(blocks, others, strict=True)
    ]
