"""Tokens say nothing of the origin and are the same at every read."""

from __future__ import annotations

import re
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.tables import OPAQUE_KEY
from synth_platform.sources.keys import MAXIMUM_ROWS, opaque_keys, reissue

ROWS = st.lists(
    st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=3)),
    min_size=1,
    max_size=12,
    unique=True,
)


def table(keys: list[str], rows: list[tuple[float, str]]) -> pl.DataFrame:
    return pl.DataFrame(
        {"id": keys, "value": [row[0] for row in rows], "letter": [row[1] for row in rows]},
        schema={"id": pl.String, "value": pl.Float64, "letter": pl.String},
    )


@settings(deadline=None, max_examples=60)
@given(ROWS, st.randoms(use_true_random=False))
def test_tokens_follow_the_rows_whatever_the_keys_and_the_order(rows, random) -> None:
    """Catches tokens in file order, in key order, or drawn anew at every read: all fingerprints would change."""
    first = reissue([table([f"a{n}" for n in range(len(rows))], rows)], "id")
    shuffled = random.sample(rows, len(rows))
    other_keys = random.sample([f"b{n}" for n in range(len(rows))], len(rows))
    second = reissue([table(other_keys, shuffled)], "id")
    by_row = {row: first[f"a{n}"] for n, row in enumerate(rows)}
    assert {row: second[key] for key, row in zip(other_keys, shuffled, strict=True)} == by_row


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_every_key_gets_an_opaque_token_of_its_own(rows) -> None:
    tokens = reissue([table([f"a{n}" for n in range(len(rows))], rows)], "id")
    assert len(set(tokens.values())) == len(rows)
    assert all(re.match(OPAQUE_KEY, token) for token in tokens.values())


def test_one_patient_has_one_token_in_all_tables_and_rows() -> None:
    rows = [(1.0, "x"), (2.0, "y"), (3.0, "z")]
    tokens = reissue([table(["p", "q", "p"], rows), table(["q", "r", "s"], rows)], "id")
    assert set(tokens) == {"p", "q", "r", "s"}


def test_equal_cells_in_two_tables_are_told_apart() -> None:
    """Cells are hashed with the table they stand in: exchanging two tables gives another order (else once in 20!)."""
    keys = [f"a{n}" for n in range(20)]
    first, second = ([(float(n + shift), "x") for n in range(20)] for shift in (0, 100))
    straight = reissue([table(keys, first), table(keys, second)], "id")
    assert straight != reissue([table(keys, second), table(keys, first)], "id")


@settings(deadline=None, max_examples=40)
@given(ROWS, st.data())
def test_public_and_private_rows_are_numbered_apart(rows, data) -> None:
    """Catches one sequence for all, whose gaps between public tokens count the private rows in between."""
    keys = [f"a{n}" for n in range(len(rows))]
    public = set(data.draw(st.lists(st.sampled_from(keys), unique=True)))
    tokens = reissue([table(keys, rows)], "id", public)
    assert sorted(tokens[key] for key in public) == opaque_keys(len(public), "R")
    assert sorted(tokens[key] for key in keys if key not in public) == opaque_keys(len(keys) - len(public), "P")
    alone = [(key, row) for key, row in zip(keys, rows, strict=True) if key in public]
    without = reissue([table([key for key, _ in alone], [row for _, row in alone])], "id", public)
    assert without == {key: tokens[key] for key in public}


def test_a_split_or_site_does_not_bring_rows_together() -> None:
    """Of 200 patients at two sites, neighbours in token order share a site about half of the time.

    Independent order: changes of site among 199 neighbours are Binomial(199, 0.5025) to a good approximation; outside
    100 +- 35 once in a million. A sort by table digest has one change.
    """
    keys = [f"a{n}" for n in range(200)]
    sites = [(float(n % 2), "site") for n in range(200)]
    tokens = reissue([table(keys, sites), table(keys, [(float(n), "x") for n in range(200)])], "id")
    order = [int(key[1:]) % 2 for key in sorted(tokens, key=tokens.__getitem__)]
    assert 65 < sum(one != two for one, two in pairwise(order)) < 135


def test_a_row_without_key_gets_no_token() -> None:
    keyless = table(["p"], [(1.0, "x")]).vstack(pl.DataFrame({"id": [None], "value": [2.0], "letter": ["y"]}))
    assert set(reissue([keyless], "id")) == {"p"}


def test_more_rows_than_six_digits_are_refused() -> None:
    assert opaque_keys(2) == ["P-000001", "P-000002"]
    with pytest.raises(ValueError, match="six digits"):
        opaque_keys(MAXIMUM_ROWS + 1)
