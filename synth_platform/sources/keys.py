"""Row keys: origin keys stay at the door, every row gets an opaque token (8-1 §1.1)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

OPAQUE_KEY = r"^[A-Z]{1,3}-[0-9]{6}$"


def opaque_keys(rows: int, prefix: str = "P") -> list[str]:
    """Tokens `P-000001` ... for `rows` rows, in order; at most 999,999."""
    if rows > 999_999:
        raise ValueError(f"{rows} rows do not fit six-digit row tokens; split the cohort")
    return [f"{prefix}-{number:06d}" for number in range(1, rows + 1)]


def shuffled_keys(rows: int) -> list[str]:
    """`opaque_keys` in an order drawn from the operating system's key stream, so that it says nothing about the origin."""
    keys = opaque_keys(rows)
    secrets.SystemRandom().shuffle(keys)
    return keys


def reissue(origin: Sequence[str]) -> dict[str, str]:
    """A token for every distinct origin key. The map is not stored: it ends with the call that reads the cohort."""
    distinct = list(dict.fromkeys(origin))
    return dict(zip(distinct, shuffled_keys(len(distinct)), strict=True))
