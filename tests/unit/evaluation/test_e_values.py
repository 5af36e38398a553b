"""E-values of membership attacks against enumeration, their sum over looks, and e-BH against its definition."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from synth_platform.discovery.statistics.mann_whitney import log_moment
from synth_platform.evaluation.e_values import (
    e_bh,
    log_accumulated,
    log_mean,
    mann_whitney_log_e,
    tilt,
)
from synth_platform.evaluation.looks import look_log_e

SIZES = st.integers(1, 5)
LIMITS = st.floats(0.505, 0.995)


def all_assignments(scores: np.ndarray, members: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every way in which `members` of the rows could have been the members: the null, in full."""
    rows = range(len(scores))
    return [(scores[list(chosen)], np.delete(scores, chosen)) for chosen in combinations(rows, members)]


class TestOneLook:
    @settings(deadline=None, max_examples=60)
    @given(n1=SIZES, scores=st.lists(st.integers(0, 3), min_size=6, max_size=9), limit=LIMITS)
    def test_it_is_an_e_value_with_any_ties(self, n1: int, scores: list[int], limit: float) -> None:
        """Claim: over every assignment of members the mean of E is at most 1, whatever rows are tied."""
        values = [
            math.exp(mann_whitney_log_e(inside, outside, limit))
            for inside, outside in all_assignments(np.array(scores, np.float64), n1)
        ]
        assert np.mean(values) <= 1 + 1e-9

    @settings(deadline=None, max_examples=60)
    @given(n1=st.integers(1, 400), n0=st.integers(1, 400), limit=st.floats(0.501, 0.999))
    def test_only_an_auroc_above_the_limit_counts_more_than_one(self, n1: int, n0: int, limit: float) -> None:
        """Claim: log E is 0 at the limit and falls below it: a leak within the limit adds up to nothing."""
        t = tilt(limit, n1, n0)
        assert t * limit * n1 * n0 == pytest.approx(log_moment(t, n1, n0), rel=1e-7)
        rng = np.random.default_rng(n1 * 1000 + n0)
        inside, outside = rng.normal(0.2, 1, n1), rng.normal(0, 1, n0)
        auroc = mannwhitneyu(inside, outside).statistic / (n1 * n0)
        log_e = mann_whitney_log_e(inside, outside, limit)
        assert log_e == pytest.approx(t * n1 * n0 * (auroc - limit), rel=1e-6, abs=1e-6)

    def test_a_large_cohort_does_not_overflow(self) -> None:
        """Claim: 200,000 rows are a finite number; t is near its normal approximation 24 (limit - 1/2) / (n + 1)."""
        t = tilt(0.55, 100_000, 100_000)
        assert t == pytest.approx(24 * 0.05 / 200_001, rel=0.02)
        assert math.isfinite(log_moment(t, 100_000, 100_000))

    def test_a_limit_that_forbids_nothing_never_counts(self) -> None:
        assert mann_whitney_log_e(np.array([2.0, 3.0]), np.array([0.0, 1.0]), 1.0) == 0.0

    def test_no_rows_and_no_numbers_are_refused(self) -> None:
        with pytest.raises(ValueError, match="at least one member"):
            mann_whitney_log_e(np.array([]), np.array([1.0]), 0.55)
        with pytest.raises(ValueError, match="not a number"):
            mann_whitney_log_e(np.array([math.nan]), np.array([1.0]), 0.55)


class TestManyLooks:
    def test_weights_are_the_fixed_series(self) -> None:
        """Claim: e = 1 in every look gives 1 - 1/(t + 1), which stays below 1: the weights sum to 1."""
        for t in (1, 2, 10, 1000):
            assert math.exp(log_accumulated([0.0] * t)) == pytest.approx(1 - 1 / (t + 1))

    @given(st.lists(st.none() | st.floats(-50, 50), max_size=20))
    def test_evidence_never_falls(self, looks: list[float | None]) -> None:
        sums = [log_accumulated(looks[:t]) for t in range(len(looks) + 1)]
        assert all(later >= earlier - 1e-12 for earlier, later in pairwise(sums))

    def test_a_look_without_evidence_keeps_its_place(self) -> None:
        """Claim: the weight of a look is that of its number, not of how many gave evidence before it."""
        assert log_accumulated([None, math.log(6.0)]) == pytest.approx(0.0)

    def test_the_mean_of_e_values(self) -> None:
        assert math.exp(log_mean([math.log(1.0), math.log(5.0)])) == pytest.approx(3.0)
        assert log_mean([800.0, -800.0]) == pytest.approx(800 - math.log(2))


class TestManyReleases:
    @settings(deadline=None)
    @given(
        st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0.01, 1e4), max_size=8),
        st.sampled_from([0.01, 0.05, 0.5]),
    )
    def test_it_is_the_definition(self, values: dict[str, float], alpha: float) -> None:
        """Claim: the largest set R of the k largest e-values in which each is at least K / (|R| alpha)."""
        values = {name: e * math.pi for name, e in values.items()}  # none is exactly at a threshold
        rejected = e_bh({name: math.log(e) for name, e in values.items()}, alpha)
        sizes = [k for k in range(len(values) + 1) if sum(e * k * alpha >= len(values) for e in values.values()) >= k]
        assert len(rejected) == max(sizes)
        assert all(values[name] >= other for name in rejected for n, other in values.items() if n not in rejected)

    def test_one_release_is_recalled_at_one_over_alpha(self) -> None:
        assert e_bh({"a": math.log(20.0)}, 0.05) == {"a"}
        assert e_bh({"a": math.log(19.9)}, 0.05) == frozenset()
        assert e_bh({}, 0.05) == frozenset()

    def test_two_together_need_less_than_one_alone(self) -> None:
        """Claim: of two releases one alone needs 40, both together 20 each."""
        assert e_bh({"a": math.log(25.0), "b": math.log(1.0)}, 0.05) == frozenset()
        assert e_bh({"a": math.log(25.0), "b": math.log(21.0)}, 0.05) == {"a", "b"}


class TestLooks:
    def test_the_seed_decides_everything(self) -> None:
        """Claim: the same seed gives the same e-values, so a killed look can be done again; others differ."""
        rng = np.random.default_rng(1)
        members, others, table, public = (rng.normal(size=(40, 6)) for _ in range(4))

        def look(seed: int) -> dict[str, float]:
            options = {"attacks": ("A1", "A2"), "neighbours": 3, "limit": 0.55}
            return dict(look_log_e(members, others, table, public, seed=seed, **options))

        assert look(2**127 + 1) == look(2**127 + 1)
        assert len({tuple(look(seed).values()) for seed in range(8)}) > 4

    def test_copies_of_the_members_are_seen_by_every_look(self) -> None:
        rng = np.random.default_rng(2)
        members, others, public = (rng.normal(size=(60, 6)) for _ in range(3))
        for seed in range(5):
            found = look_log_e(
                members, others, members, public, attacks=("A1", "A2"), neighbours=3, limit=0.55, seed=seed
            )
            assert found["A1"] > math.log(1000)
