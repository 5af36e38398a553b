"""The chain itself: whatever one field of one row becomes, verification finds it and names the row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.privacy.ledger_chain import GENESIS, Head, head_of, row_hash, verify_chain
from synth_platform.privacy.ledger_schema import ROWS

COLUMNS = [column.name for column in ROWS.columns]
Rows = list[dict[str, Any]]


def chain(*contents: dict[str, Any]) -> Rows:
    rows: Rows = []
    for content in contents:
        row = dict.fromkeys(COLUMNS) | content
        row |= {"id": len(rows) + 1, "time": f"2031-01-0{len(rows) + 1}", "previous_hash": head_of(rows).hash}
        rows.append(row | {"hash": row_hash(row)})
    return rows


def entry(entry_id: str, state: str, **more: Any) -> dict[str, Any]:
    return {
        "state": state,
        "domain": "d",
        "entry_id": entry_id,
        "code": "SUM",
        "sensitivity": 1.0,
        "scale": 5.0,
        "request_fingerprint": entry_id,
        **more,
    }


def whole() -> Rows:
    return chain(
        {"state": "budget", "domain": "d", "epsilon": 2.0, "delta": 1e-5},
        entry("e1", "reserved"),
        entry("e2", "reserved"),
        entry("e1", "committed", artefact_fingerprint="ab"),
        entry("e2", "committed", artefact_fingerprint="cd"),
    )


def test_a_whole_chain_verifies() -> None:
    rows = whole()
    report = verify_chain(rows, head_of(rows[:3]), {"none": GENESIS, "one": rows[1]["hash"]})
    assert (report.ok, report.rows, report.head_hash) == (True, 5, rows[-1]["hash"])
    assert verify_chain([]).ok


values = st.one_of(
    st.none(), st.integers(), st.floats(allow_nan=True), st.text(max_size=70), st.binary(max_size=8), st.booleans()
)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), position=st.integers(0, 4), column=st.sampled_from(COLUMNS), value=values)
def test_any_altered_field_is_found(data: st.DataObject, position: int, column: str, value: object) -> None:
    """Types count: 1, 1.0, True and "1" are four values."""
    rows = whole()
    if column == "id":
        value = data.draw(st.integers(-9, 9))
    elif column == "hash":
        value = str(value)
    before = rows[position][column]
    rows[position][column] = value
    if repr(value) == repr(before):
        return
    rows.sort(key=lambda row: row["id"])
    report = verify_chain(rows)
    assert not report.ok
    if column != "id":
        assert position + 1 in {problem.row for problem in report.problems}


@settings(max_examples=60, deadline=None)
@given(kept=st.sets(st.integers(0, 4)))
def test_any_missing_rows_are_found_with_the_anchor(kept: set[int]) -> None:
    rows = whole()
    left = [rows[position] for position in sorted(kept)]
    assert verify_chain(left, head_of(rows)).ok == (len(left) == 5)


@settings(max_examples=60, deadline=None)
@given(order=st.permutations(range(5)))
def test_any_other_order_is_found(order: list[int]) -> None:
    rows = whole()
    shuffled = [{**rows[old], "id": new + 1} for new, old in enumerate(order)]
    assert verify_chain(shuffled).ok == (list(order) == [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    ("rows", "row", "what"),
    [
        (chain(entry("e", "committed")), 1, "committed without a reservation"),
        (chain(entry("e", "reserved"), entry("e", "committed"), entry("e", "committed")), 3, "committed twice"),
        (chain(entry("e", "reserved"), entry("e", "reserved")), 2, "reserved twice"),
        (
            chain(entry("e", "reserved"), entry("e", "committed", scale=50.0)),
            2,
            "differs from its reservation in scale",
        ),
        (chain(entry("e", "spent")), 1, "state is none of"),
    ],
)
def test_a_well_hashed_chain_must_also_make_sense(rows: Rows, row: int, what: str) -> None:
    """Whoever rewrites all hashes still has to tell a story that the ledger could have written."""
    (problem,) = verify_chain(rows).problems
    assert problem.row == row
    assert what in problem.what


def test_heads_remembered_elsewhere() -> None:
    rows = whole()
    (cut,) = verify_chain(rows[:4], head_of(rows)).problems
    assert (cut.row, "5 rows were anchored, 4 are left" in cut.what) == (None, True)
    (forged,) = verify_chain(rows, Head(2, "0" * 64)).problems
    assert forged.row == 2
    (unknown,) = verify_chain(rows, None, {"tcga-G0-eps1": "1" * 64}).problems
    assert "1" * 64 in unknown.what


def test_problems_read_in_row_order_and_as_json() -> None:
    rows = whole()
    rows[3]["scale"], rows[0]["epsilon"] = 1.0, 9.0
    report = verify_chain(rows, Head(9, "x"))
    assert [problem.row for problem in report.problems] == [1, 4, 4, None]
    assert report.as_dict()["problems"][0] == {"row": 1, "what": report.problems[0].what}


def test_rows_charged_to_two_domains_are_noted() -> None:
    """An older ledger may hold them: sound, but worth a look. The same domain again is no news."""
    rows = chain(
        entry("e1", "reserved", input_fingerprint="i"),
        entry("e2", "reserved", input_fingerprint="i"),
        entry("e3", "reserved", input_fingerprint="i", domain="copy"),
        entry("e4", "reserved", input_fingerprint="j", domain="copy"),
    )
    report = verify_chain(rows)
    assert report.ok
    (notice,) = report.notices
    assert (notice.row, "domain copy" in notice.what, "domain d " in notice.what) == (3, True, True)
