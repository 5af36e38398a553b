"""Repeated attacks: AUROC against scikit-learn, its null law against enumeration, power against simulated t tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student_t
from sklearn.metrics import roc_auc_score

from synth_platform.trials.repeated import (
    audit_power,
    aurocs,
    confirming_power,
    null_deviation,
    repeated_attack,
    required_repetitions,
)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(4, 30), st.integers(1, 5))
def test_aurocs_are_those_of_scikit_learn(seed: int, rows: int, levels: int) -> None:
    """Claim: ties count one half, whatever the scores; a version that breaks ties by position is caught."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(levels, size=(3, rows)).astype(float)
    members = np.array([rng.permutation(rows) < rows // 2 for _ in range(3)])
    expected = [roc_auc_score(inside, row) for inside, row in zip(members, scores, strict=True)]
    np.testing.assert_allclose(aurocs(scores, members), expected, atol=1e-12)


@pytest.mark.parametrize("rows", [4, 7, 8])
def test_the_null_deviation_is_that_of_all_halves(rows: int) -> None:
    """Claim: over every half of fixed scores the AUROC has this standard deviation, exactly."""
    scores = np.random.default_rng(rows).permutation(rows).astype(float)
    halves = [np.isin(np.arange(rows), chosen) for chosen in combinations(range(rows), rows // 2)]
    found = aurocs(np.tile(scores, (len(halves), 1)), np.array(halves))
    assert found.mean() == pytest.approx(0.5)
    assert found.std() == pytest.approx(null_deviation(rows), rel=1e-12)


def test_the_bounds_are_the_t_interval() -> None:
    """Claim: mean -+ t(1 - .05 / A, P - 1) sd / sqrt P over the means of P pairs, and no further than 0 and 1."""
    rng = np.random.default_rng(3)
    scores, members = rng.normal(size=(18, 40)), np.array([rng.permutation(40) < 20 for _ in range(18)])
    attack = repeated_attack(scores, members)
    values = np.array([round(roc_auc_score(m, s), 6) for m, s in zip(members, scores, strict=True)])
    values = (values[::2] + values[1::2]) / 2
    margin = student_t.ppf(1 - 0.05 / 4, 8) * values.std(ddof=1) / 3
    assert attack.bounds(4) == pytest.approx((values.mean() - margin, values.mean() + margin))
    copied = repeated_attack(members.astype(float) + rng.normal(0, 1e-3, scores.shape), members)
    assert copied.bounds(4) == (1.0, 1.0)
    assert copied.tprs.mean() == 1.0


@pytest.mark.parametrize("rows", [30, 31])
def test_what_is_always_said_of_a_row_cancels_in_a_pair(rows: int) -> None:
    """Claim: scores that do not depend on the training give every pair 1/2 exactly, whatever its halves."""
    rng = np.random.default_rng(rows)
    first = np.array([rng.permutation(rows) < rows // 2 for _ in range(6)])
    members = np.stack([first, ~first], axis=1).reshape(12, rows)
    attack = repeated_attack(np.tile(rng.normal(size=rows), (12, 1)), members)
    np.testing.assert_allclose(attack.pairs, 0.5, atol=1e-6)
    assert np.ptp(attack.aurocs) > 0.05


def test_the_power_of_many_repetitions_is_the_normal_one() -> None:
    """Claim: with many degrees of freedom the power is that of the normal formula behind 8-1's 701 rows."""
    rows, pairs, limit, attacks = 60, 2000, 0.502, 3
    z = (limit - 0.5) / null_deviation(rows) * np.sqrt(2 * pairs) - norm.ppf(1 - 0.05 / attacks)
    assert confirming_power(rows, pairs, limit, attacks) == pytest.approx(norm.cdf(z), abs=2e-3)


def test_the_null_law_at_701_a_side_is_that_of_the_gate() -> None:
    """Claim: one AUROC of halves of 1,402 rows has 8-1's null deviation 1 / sqrt(6 N), to the order of 1 / N."""
    assert null_deviation(1402) == pytest.approx(np.sqrt(1 / (6 * 701)), rel=1e-3)


@settings(deadline=None, max_examples=15)
@given(st.integers(8, 2000), st.integers(2, 5), st.sampled_from([0.52, 0.55, 0.6]))
def test_required_repetitions_are_the_fewest_that_suffice(rows: int, attacks: int, limit: float) -> None:
    """Claim: 90 % power is reached there and not two repetitions earlier (four are the fewest there can be)."""
    needed = required_repetitions(rows, limit, attacks)
    assert needed % 2 == 0
    assert audit_power(rows, needed, limit, attacks) >= 0.9
    assert needed == 4 or audit_power(rows, needed - 2, limit, attacks) < 0.9


def test_too_few_repetitions_have_no_power() -> None:
    """Claim: one pair decides nothing, and misses of all attacks add up to at most everything."""
    assert confirming_power(500, 1, 0.55, 2) == 0.0
    assert audit_power(6, 8, 0.55, 4) == 0.0
