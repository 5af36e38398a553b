"""The key to closed tables. Only the IO managers of the restricted zone and the curator may import this module.

`tests/unit/privacy/test_private_table.py` fails for any other import.
"""

from __future__ import annotations

from typing import TypeVar

from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.private_table import Access, Digest, PrivateTable, _close, _Contents, _contents_of

T = TypeVar("T")


def seal(rows: T, *, key: FingerprintKey, digest: Digest[T], source: Digest[T] | None = None) -> PrivateTable[T]:
    """Close `rows`. digest: hash of everything in them that a statistic may depend on, e.g. SHA-256 of the columns.

    source: hash of the people alone, where `rows` say besides what is asked of them; default: digest.
    """
    return _close(_Contents(rows, key, digest, source=source))


def restricted_rows(table: PrivateTable[T]) -> T:
    """The rows, without a record: for storing them in the restricted zone and for the ledgered mechanism."""
    return _contents_of(table).rows


def record_measurement(table: PrivateTable[T], code: str, entry_id: str) -> None:
    """Note in the table's journal which ledger entry a statistic came from."""
    _contents_of(table).journal.append(Access("measure", code, entry_id))
