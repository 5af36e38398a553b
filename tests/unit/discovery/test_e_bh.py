"""e-BH against its definition, and the boost of private e-values against integration, its closed form and bad luck."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from synth_platform.discovery.e_bh import boosted_e_bh, e_bh, log_boost
from synth_platform.discovery.threshold import calibration_constant

ALPHAS = st.sampled_from([0.01, 0.05, 0.3])


def by_definition(e: np.ndarray, alpha: float, m: int) -> set[int]:
    """The largest k with k e-values at or above m/(αk), by trying every k."""
    sizes = [k for k in range(1, e.size + 1) if (e * math.pi >= m / (alpha * k)).sum() >= k]
    return set(np.flatnonzero(e * math.pi >= m / (alpha * max(sizes))).tolist()) if sizes else set()


class TestEBH:
    @settings(deadline=None, max_examples=300)
    @given(
        st.lists(st.floats(0.01, 1e4) | st.sampled_from([0.0, 50.0, 100.0]), max_size=12), ALPHAS, st.integers(0, 50)
    )
    def test_it_is_the_definition(self, values: list[float], alpha: float, left_out: int) -> None:
        """Claim: with ties, zeros and hypotheses that are not stored; π keeps every value off the levels."""
        e = np.array(values)
        m = e.size + left_out
        with np.errstate(divide="ignore"):
            found = e_bh(np.log(e * math.pi), alpha, hypotheses=m)
        assert found.dtype == np.int64
        assert set(found.tolist()) == by_definition(e, alpha, m)

    def test_zeros_need_not_be_stored(self) -> None:
        rng = np.random.default_rng(0)
        full = np.full(5000, -np.inf)
        chosen = np.sort(rng.choice(5000, 60, replace=False))
        full[chosen] = rng.normal(10, 3, 60)
        np.testing.assert_array_equal(e_bh(full, 0.1), chosen[e_bh(full[chosen], 0.1, hypotheses=5000)])
        assert 0 < e_bh(full, 0.1).size < 60

    def test_ties_go_together(self) -> None:
        """Claim: three at 40/3·… reach the level of three, none that of one or two."""
        e = np.log([27.0, 1.0, 27.0, 27.0])
        assert e_bh(e, 0.05).tolist() == [0, 2, 3]
        assert e_bh(np.log([26.0, 1.0, 26.0, 26.0]), 0.05).size == 0

    def test_one_at_its_level_is_rejected(self) -> None:
        assert e_bh([math.log(20.0)], 0.05).tolist() == [0]
        assert e_bh([math.inf, -math.inf], 0.05).tolist() == [0]

    def test_nothing_gives_nothing(self) -> None:
        assert e_bh([], 0.05).size == 0
        assert e_bh([], 0.05, hypotheses=100).size == 0
        assert e_bh(np.full(7, -np.inf), 0.05).size == 0

    @pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 5.0, math.nan])
    def test_alpha_is_named(self, alpha: float) -> None:
        with pytest.raises(ValueError, match="alpha is"):
            e_bh([1.0], alpha)

    def test_what_else_is_refused(self) -> None:
        with pytest.raises(ValueError, match="NaN"):
            e_bh([1.0, math.nan], 0.05)
        with pytest.raises(ValueError, match="2 dimensions"):
            e_bh(np.zeros((2, 2)), 0.05)
        with pytest.raises(ValueError, match="hypotheses is 1"):
            e_bh([1.0, 2.0], 0.05, hypotheses=1)
        for many in (5.5, 5.0, True, "5"):
            with pytest.raises(ValueError, match=r"hypotheses is .*, expected a whole number"):
                e_bh([1.0], 0.05, hypotheses=many)  # type: ignore[arg-type]

    @pytest.mark.parametrize("log_e", [[1.0 + 0j], np.array([1j]), ["1.0"], [None], [True]])
    def test_e_values_that_are_no_real_numbers_are_named(self, log_e: Any) -> None:
        for refused in (lambda: e_bh(log_e, 0.05), lambda: boosted_e_bh(log_e, 0.05, scale=1.0, hypotheses=9)):
            with pytest.raises(ValueError, match="log_e holds"):
                refused()

    def test_a_genome_takes_no_time(self) -> None:
        """Claim: 6,200,000 stored e-values in under 2 CPU seconds (measured .02)."""
        log_e = np.random.default_rng(1).normal(-1, 2, 6_200_000)
        log_e[:50] = 30
        before = time.process_time()
        assert e_bh(log_e, 0.05).tolist() == list(range(50))
        assert time.process_time() - before < 2


def mean_on_levels(log_x: float, count: int, scale: float, log_b: float) -> float:
    """E[T(b·x·exp(−ξ))]/x by quadrature over the noise, level by level; levels count/r, lowest 1."""

    def integrand(xi: float) -> float:
        log_y = log_b + log_x - xi
        if log_y < 0:
            return 0.0
        r = max(1, math.ceil(count * math.exp(-log_y) * (1 - 1e-13)))
        return count / r * math.exp(-log_x) * norm.pdf(xi, scale**2 / 2, scale)

    edges = sorted(log_b + log_x - math.log(count / r) for r in range(1, count + 1))
    low, high = scale**2 / 2 - 12 * scale, scale**2 / 2 + 12 * scale
    cuts = [low, *(edge for edge in edges if low < edge < high), high]
    return math.fsum(quad(integrand, a, b)[0] for a, b in itertools.pairwise(cuts))


class TestBoost:
    @pytest.mark.parametrize("scale", [1e-3, 0.05, 0.5, 1.0, 2.0, 10.0, 100.0])
    def test_of_one_is_the_calibrated_threshold(self, scale: float) -> None:
        """Claim: b = 1/K(s) within its tolerance, from below."""
        exact = -math.log(calibration_constant(scale))
        assert exact - 2e-4 <= log_boost(1, scale) <= exact

    @pytest.mark.parametrize(("count", "scale"), [(1, 0.5), (2, 0.2), (3, 1.0), (10, 2.0)])
    def test_it_is_valid_for_every_e_value_and_not_small(self, count: int, scale: float) -> None:
        """Claim: by quadrature E[T(bxe^{−ξ})] ≤ x on a grid of x, with equality within 1e-3 at the worst."""
        log_b = log_boost(count, scale)
        reach = scale**2 / 2 + 4 * scale
        grid = np.linspace(-log_b - reach, math.log(count) + reach, 60)
        means = [mean_on_levels(x, count, scale, log_b) for x in grid]
        assert max(means) <= 1
        fine = grid[int(np.argmax(means))] + np.linspace(-1, 1, 21) * (grid[1] - grid[0])
        assert 0.999 <= max(mean_on_levels(x, count, scale, log_b) for x in fine) <= 1

    @pytest.mark.parametrize("count", [1, 7, 300])
    @pytest.mark.parametrize("scale", [5e-324, 1e-200, 9e-6])
    def test_hardly_any_noise_leaves_nothing_to_win(self, count: int, scale: float) -> None:
        """Claim: 0, without a warning, is within 2e-4 of the b of one e-value, which no count exceeds."""
        assert log_boost(count, scale) == 0.0
        assert -math.log(calibration_constant(9e-6)) < 5e-5

    def test_many_levels_are_never_boosted_more_than_few(self) -> None:
        """Claim: a finer grid leaves less to win; the continuum for lower levels costs little at its border."""
        for scale in (0.1, 1.0, 3.0):
            boosts = [log_boost(count, scale) for count in (1, 2, 5, 40, 256, 257, 1000, 10_000)]
            assert all(later <= earlier + 2e-4 for earlier, later in itertools.pairwise(boosts))
            assert log_boost(256, scale) - log_boost(257, scale) < 3e-3

    @pytest.mark.parametrize("count", [40, 300, 2000])
    def test_many_are_on_the_safe_side(self, count: int) -> None:
        """Claim: valid on the full grid of levels, summed at once, also where low ones are taken for a continuum."""
        scale = 2.0
        log_b = log_boost(count, scale)
        level = count / np.arange(1, count + 1)
        rise = -np.diff(level, append=0.0)
        for log_x in np.linspace(-10, math.log(count) + 10, 400):
            reached = norm.cdf((log_b + log_x - np.log(level) - scale**2 / 2) / scale)
            assert (rise * reached).sum() * math.exp(-log_x) <= 1
        assert log_b > 0.05

    @pytest.mark.parametrize("count", [1, 2, 7, 255, 257, 600])
    @pytest.mark.parametrize("scale", [1e-3, 0.05, 0.5, 2.0, 8.0])
    def test_it_keeps_its_promise_for_every_size_of_e_value(self, count: int, scale: float) -> None:
        """Claim: E[T(b·x·e^−ξ)] ≤ x for all x, with T written as a sum of its levels and every level kept."""
        levels = count / np.arange(1, count + 1)
        rise = levels - np.append(levels[1:], 0.0)
        wide = 6 * scale + scale**2 + 3
        log_x = np.linspace(-wide, math.log(count) + wide, 1501)
        z = log_x + log_boost(count, scale) - scale**2 / 2
        mean = ndtr((z[:, None] - np.log(levels)) / scale) @ rise
        assert (mean <= np.exp(log_x) * (1 + 1e-12)).all()

    def test_it_is_used(self) -> None:
        """Claim: one selected of m is rejected from K·m/α on, which e-BH as it is does not reach."""
        edge = math.log(calibration_constant(1.0) * 1000 / 0.05)
        for log_e, found in ((edge - 1e-3, 0), (edge + 1e-3, 1)):
            assert boosted_e_bh([log_e], 0.05, scale=1.0, hypotheses=1000).size == found
            assert e_bh([log_e], 0.05, hypotheses=1000).size == 0

    def test_errors(self) -> None:
        assert boosted_e_bh([], 0.05, scale=1.0, hypotheses=10).size == 0
        assert log_boost(3, 101.0) == 0.0
        for scale in (0.0, -1.0, math.nan):
            with pytest.raises(ValueError, match="scale is"):
                log_boost(1, scale)
        with pytest.raises(ValueError, match="count is"):
            log_boost(0, 1.0)
