"""Choosing rows by a public column of the row itself."""

from __future__ import annotations

from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.within_row import WithinRow, within_row


def select_split(*splits: str) -> WithinRow[EncodedRows, EncodedRows]:
    """The registered map that keeps the rows whose split is one of `splits`; each row decides by itself."""
    return within_row("normalize.where_split", lambda rows: rows.where_split(*splits))
