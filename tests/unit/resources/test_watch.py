"""What governance is told without asking: levels of a budget, changed agreements, each once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.watch import LEVELS, Seen, happened, level


@pytest.mark.parametrize(
    ("spent", "reached"),
    [(0.0, 0), (7.9, 0), (7.9999996, 80), (8.0, 80), (9.4, 80), (9.5, 95), (9.99, 95), (9.9999996, 100), (10.0, 100)],
)
def test_levels_are_compared_at_six_decimals(spent: float, reached: int) -> None:
    assert level({"cap": 10.0, "spent_rdp": spent}) == reached


def test_a_level_is_told_when_it_is_reached_and_once() -> None:
    """Claim: from nothing, from a lower level, and again after a raised cap took the domain back below it."""
    told, seen = happened(Seen(), {"brca": 80}, {})
    assert told == ["privacy domain brca has spent 80 % of its budget"]
    assert happened(seen, {"brca": 80}, {})[0] == []
    told, seen = happened(seen, {"brca": 95}, {})
    assert told == ["privacy domain brca has spent 95 % of its budget"]
    told, seen = happened(seen, {"brca": 0}, {})
    assert told == []
    assert happened(seen, {"brca": 80}, {})[0] == ["privacy domain brca has spent 80 % of its budget"]


def test_a_changed_agreement_is_told_and_a_new_cohort_is_not() -> None:
    told, seen = happened(Seen(), {}, {"brca": "RELEASE_REVIEWED"})
    assert told == []
    told, seen = happened(seen, {}, {"brca": "WITHDRAWN", "luad": "RESTRICTED"})
    assert told == ["the data use agreement of cohort brca is now: WITHDRAWN"]
    assert happened(seen, {}, {"brca": "WITHDRAWN"})[0] == []
    assert happened(seen, {}, {"luad": "RELEASE_REVIEWED"})[0] == [
        "the data use agreement of cohort luad is now: RELEASE_REVIEWED"
    ]


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("ab"), st.sampled_from((0, *LEVELS))),
            st.dictionaries(st.sampled_from("cd"), st.sampled_from(("X", "Y"))),
        ),
        max_size=12,
    )
)
def test_every_telling_has_a_turn_of_its_own(states: list[tuple[dict[str, int], dict[str, str]]]) -> None:
    """Claim: the turn names the run that a telling requests, so it grows with each and never otherwise; and the cursor
    survives its JSON form."""
    seen = Seen()
    for levels, tags in states:
        told, after = happened(Seen(**seen.as_dict()), levels, tags)
        assert after.turn == seen.turn + bool(told)
        assert happened(after, levels, tags)[0] == []
        seen = after
