"""Codes move by chance, keep their levels and meet the mean that was asked for."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.generators.g0a.codes import ClinicalLayout, Coded, fit_codes, transition

SHARES = st.lists(st.floats(0.01, 1), min_size=2, max_size=5)


def ordered(levels: np.ndarray) -> Coded:
    return Coded((0,), levels[:, None], ordered=True, indicator=None)


@given(share=SHARES, target=st.floats(-3, 8), step=st.floats(0.2, 3))
@settings(max_examples=60, deadline=None)
def test_an_ordered_transition_is_stochastic_and_meets_the_mean_as_far_as_levels_allow(share, target, step):
    share = np.array(share) / np.sum(share)
    levels = step * np.arange(len(share)) - 1
    matrix = transition(ordered(levels), share, np.array([target]))
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    np.testing.assert_allclose(share @ matrix @ levels, np.clip(target, levels[0], levels[-1]), atol=1e-6)


@given(share=SHARES)
@settings(max_examples=30, deadline=None)
def test_no_shift_moves_no_code(share):
    share = np.array(share) / np.sum(share)
    levels = np.arange(len(share), dtype=np.float64)
    np.testing.assert_allclose(
        transition(ordered(levels), share, np.array([share @ levels])), np.eye(len(share)), atol=1e-6
    )


@given(share=SHARES, wanted=SHARES)
@settings(max_examples=60, deadline=None)
def test_categories_reach_the_wanted_shares_with_the_fewest_moves(share, wanted):
    m = min(len(share), len(wanted))
    share, wanted = (np.array(v[:m]) / np.sum(v[:m]) for v in (share, wanted))
    levels = (np.eye(m) - 0.3) / 0.4  # standardised one-hot columns
    matrix = transition(Coded(tuple(range(m)), levels, ordered=False, indicator=None), share, wanted @ levels)
    np.testing.assert_allclose(share @ matrix, wanted, atol=1e-9)
    # The total variation distance is the least that any coupling moves.
    moved = float(share @ (1 - np.diag(matrix)))
    np.testing.assert_allclose(moved, np.abs(share - wanted).sum() / 2, atol=1e-9)


def test_a_measurement_that_can_be_missing_is_shifted_where_it_is_observed():
    """Mean with zeros .5 -> .8 while a quarter, then half of the cells is missing: observed mean 2/3 -> 1.6."""
    x = np.array([[2 / 3, 0.0], [2 / 3, 0.0], [2 / 3, 0.0], [0.0, 1.0]])
    layout = ClinicalLayout(
        coded=(Coded((1,), np.array([[0.0], [1.0]]), ordered=True, indicator=None, is_indicator=True),),
        nullable=((0, 1),),
    )
    arrays, offset = fit_codes(
        layout,
        x,
        np.zeros(4, dtype=np.int64),
        means=np.array([[0.5, 0.25]]),
        shift=np.array([[0.3, 0.25]]),
    )
    np.testing.assert_allclose(arrays["code.0.share"], [[0.5, 0.5]], atol=1e-9)
    np.testing.assert_allclose(offset, [[1.6 - 2 / 3, 0.0]], atol=1e-9)
