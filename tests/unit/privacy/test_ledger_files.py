"""The anchor only grows, and a lock is held by one at a time and never by the dead."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from synth_platform.privacy.ledger_chain import Head
from synth_platform.privacy.ledger_files import advance_anchor, locked, read_anchor
from synth_platform.privacy.ledger_schema import LedgerError


def test_the_anchor_only_grows(tmp_path: Path) -> None:
    """A writer that was overtaken between its commit and its anchor must not take the anchor back."""
    path = tmp_path / "ledger.head"
    assert read_anchor(path) is None
    for head, expected in ((Head(5, "e"), 5), (Head(4, "d"), 5), (Head(5, "x"), 5), (Head(7, "g"), 7)):
        advance_anchor(path, head)
        anchored = read_anchor(path)
        assert anchored is not None
        assert anchored.rows == expected
    assert read_anchor(path) == Head(7, "g")
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.head"]


def test_racing_writers_leave_the_longest_head(tmp_path: Path) -> None:
    path = tmp_path / "ledger.head"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda rows: advance_anchor(path, Head(rows, str(rows))), range(1, 60)))
    assert read_anchor(path) == Head(59, "59")


@pytest.mark.parametrize("content", ["", "{}", '{"rows": "many", "hash": "a"}', "[1]"])
def test_what_is_no_anchor_is_an_error_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ledger.head"
    path.write_text(content)
    with pytest.raises(LedgerError, match=r"ledger\.head"):
        read_anchor(path)


def test_a_lock_is_held_by_one_at_a_time_and_leaves_no_file(tmp_path: Path) -> None:
    """Each adds one to a counter in a file, which loses counts unless the lock holds."""
    counter, lock = tmp_path / "counter.json", tmp_path / "locks" / "one"
    counter.write_text("0")

    def add(_: int) -> None:
        with locked(lock):
            counter.write_text(json.dumps(json.loads(counter.read_text()) + 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(200)))
    assert counter.read_text() == "200"
    assert list(lock.parent.iterdir()) == []
