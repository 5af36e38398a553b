"""Every membership attack under one interface: what is asked for, copies, order, and inputs nobody wishes for."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.options import AttackCode
from synth_platform.evaluation.attacks import attack_scores
from synth_platform.evaluation.density import log_density_ratio

ALL: tuple[AttackCode, ...] = get_args(AttackCode)


def gaussian(n: int, seed: int, p: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def test_exactly_the_attacks_asked_for_in_their_order() -> None:
    rows, synthetic, public = gaussian(20, 1), gaussian(30, 2), gaussian(40, 3)
    every = attack_scores(rows, synthetic, public, neighbours=5, attacks=ALL)
    assert list(every) == list(ALL)
    for asked in (("A3", "A1"), ("A2",), ("A1",), ("A3",)):
        some = attack_scores(rows, synthetic, public, neighbours=5, attacks=asked)
        assert list(some) == list(asked)
        for code in asked:
            np.testing.assert_array_equal(some[code], every[code])
            np.testing.assert_array_equal(some[code], np.round(some[code], 6))
    np.testing.assert_allclose(every["A3"], log_density_ratio(rows, synthetic, public), atol=6e-7)


def test_an_unknown_attack_is_named() -> None:
    x = gaussian(20, 1)
    with pytest.raises(ValueError, match="no membership attack A9; there are A1, A2, A3"):
        attack_scores(x, x, x, neighbours=5, attacks=("A1", "A9"))  # type: ignore[arg-type]


def test_the_smaller_side_may_be_as_small_as_each_attack_needs() -> None:
    """A2 alone asks for k rows on each side; A1 and A3 do with fewer."""
    rows, few, many = gaussian(10, 1), gaussian(3, 2), gaussian(30, 3)
    for synthetic, public in ((few, many), (many, few)):
        with pytest.raises(ValueError, match="3 rows cannot give 5"):
            attack_scores(rows, synthetic, public, neighbours=5, attacks=ALL)
        scores = attack_scores(rows, synthetic, public, neighbours=5, attacks=("A1", "A3"))
        assert all(np.isfinite(score).all() for score in scores.values())


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 30), distance=st.floats(0, 1e3))
def test_a_row_scores_higher_where_the_table_holds_it(seed: int, p: int, distance: float) -> None:
    """Five fresh rows of the table become copies of one row, however far from all others: each attack must see it, and
    score this row above what it was."""
    rng = np.random.default_rng(seed)
    row, fresh, public = rng.normal(size=(1, p)), rng.normal(size=(60, p)), rng.normal(size=(80, p))
    row[0, 0] += distance
    copied = fresh.copy()
    copied[:5] = row
    before, after = (attack_scores(row, table, public, neighbours=5, attacks=ALL) for table in (fresh, copied))
    assert all(after[code][0] > before[code][0] for code in ALL)


def test_copies_are_scored_above_every_other_row() -> None:
    """A table of training rows: each attack ranks nearly all of them above rows of the same population. A2 looks at the
    fifth neighbour, of which only the first is the copy."""
    members, others, public = (gaussian(300, seed, 15) for seed in (1, 2, 3))
    scores = attack_scores(np.concatenate([members, others]), members, public, neighbours=5, attacks=ALL)
    above = {code: float((score[:300, None] > score[None, 300:]).mean()) for code, score in scores.items()}
    assert above["A1"] == 1.0
    assert above["A3"] > 0.95
    assert above["A2"] > 0.55


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, synthetic, public = (rng.normal(size=(n, 7)) for n in (12, 40, 50))
    order = rng.permutation(12)
    scores = attack_scores(rows, synthetic, public, neighbours=5, attacks=ALL)
    again = attack_scores(rows[order], rng.permutation(synthetic), rng.permutation(public), neighbours=5, attacks=ALL)
    for code in ALL:
        np.testing.assert_allclose(again[code], scores[code][order], atol=2e-6)


def test_constant_columns_and_repeated_public_rows_give_finite_scores() -> None:
    rows, synthetic, public = gaussian(30, 1), gaussian(40, 2), np.repeat(gaussian(8, 3), 10, axis=0)
    for x in (rows, synthetic, public):
        x[:, 2] = 0.0
    synthetic[:20] = synthetic[0]
    scores = attack_scores(np.concatenate([rows, public]), synthetic, public, neighbours=5, attacks=ALL)
    assert all(np.isfinite(score).all() for score in scores.values())


def test_a_score_depends_on_no_other_row_under_attack() -> None:
    """A space or a bandwidth fitted on the rows under attack would let private rows decide how they are attacked."""
    rows, synthetic, public = gaussian(60, 1, 20), gaussian(80, 2, 20), gaussian(150, 3, 20)
    rows[30:] *= 50
    every = attack_scores(rows, synthetic, public, neighbours=5, attacks=ALL)
    some = attack_scores(rows[7:12], synthetic, public, neighbours=5, attacks=ALL)
    for code in ALL:
        np.testing.assert_allclose(some[code], every[code][7:12], atol=2e-6)
