"""Mann-Whitney e-values against SciPy's count and the enumerated moment."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from synth_platform.discovery.statistics.mann_whitney import MannWhitney, log_moment

TILTS = st.floats(-3.0, 3.0).filter(lambda t: abs(t) > 1e-3)


@cache
def counts_without_ties(n1: int, n0: int) -> np.ndarray:
    """U of every choice of n1 among n1 + n0 distinct records, by SciPy."""
    ranks = np.arange(n1 + n0)
    return np.array([mannwhitneyu(ranks[list(c)], np.delete(ranks, c)).statistic for c in combinations(ranks, n1)])


class TestMoment:
    @settings(deadline=None, max_examples=60)
    @given(n1=st.integers(1, 5), n0=st.integers(1, 5), t=TILTS)
    def test_it_is_the_enumerated_moment_for_either_sign(self, n1: int, n0: int, t: float) -> None:
        """Claim: log M(t) = log E[exp(tU)] over all orders; a wrong factor of the product or a lost sign shows."""
        enumerated = math.log(np.mean(np.exp(t * counts_without_ties(n1, n0))))
        assert log_moment(t, n1, n0) == pytest.approx(enumerated, abs=1e-9)

    def test_no_tilt_is_no_evidence(self) -> None:
        assert log_moment(0.0, 7, 5) == 0.0

    def test_a_large_cohort_neither_overflows_nor_loses_its_curvature(self) -> None:
        """Claim: 200,000 records; the second cumulant is n1 n0 (n + 1) / 12, as for every rank sum."""
        n1, n0, t = 80_000, 120_000, 1e-8
        curvature = (log_moment(t, n1, n0) + log_moment(-t, n1, n0)) / t**2
        assert curvature == pytest.approx(n1 * n0 * (n1 + n0 + 1) / 12, rel=1e-3)
        assert math.isfinite(log_moment(5.0, n1, n0))


class TestLogE:
    @settings(deadline=None, max_examples=60)
    @given(
        values=st.lists(st.integers(-2, 2) | st.floats(-1e300, 1e300), min_size=4, max_size=12),
        n1=st.integers(1, 3),
        t=TILTS,
    )
    def test_it_is_linear_in_the_count_of_scipy(self, values: list[float], n1: int, t: float) -> None:
        """Claim: log E = tU − log M(t) with midranks for ties, whatever the values are."""
        column = np.array(values, dtype=np.float64)
        n0 = len(column) - n1
        count = mannwhitneyu(column[:n1], column[n1:]).statistic
        log_e = MannWhitney(n1, n0, t, two_sided=False).log_e(column[:, np.newaxis], np.arange(len(column)) < n1)
        assert log_e[0] == pytest.approx(t * count - log_moment(t, n1, n0), rel=1e-12, abs=1e-9)

    def test_two_sided_is_the_average_of_both_sides(self) -> None:
        rng = np.random.default_rng(3)
        values, case = rng.integers(0, 6, (30, 50)).astype(np.float64), np.arange(30) % 3 == 0
        sides = [MannWhitney(10, 20, t, two_sided=False).log_e(values, case) for t in (0.02, -0.02)]
        assert MannWhitney(10, 20, 0.02).log_e(values, case) == pytest.approx(np.log(np.exp(sides).mean(axis=0)))

    def test_each_column_by_itself_under_any_growing_map(self) -> None:
        """Claim: only ranks enter; 3,000 columns cross a block."""
        rng = np.random.default_rng(4)
        values, case = rng.normal(size=(400, 3000)), np.arange(400) < 150
        statistic = MannWhitney(150, 250, 1e-3)
        assert np.array_equal(statistic.log_e(values, case), statistic.log_e(np.exp(values), case))
        some = [0, 1311, 2999]
        assert np.array_equal(statistic.log_e(values, case)[some], statistic.log_e(values[:, some], case))

    def test_a_constant_column_is_never_evidence(self) -> None:
        for statistic in (MannWhitney(40, 60, 0.01), MannWhitney(40, 60, -0.01, two_sided=False)):
            assert statistic.log_e(np.zeros((100, 1)), np.arange(100) < 40)[0] < 0

    def test_no_numbers_are_refused(self) -> None:
        with pytest.raises(ValueError, match="values holds a NaN"):
            MannWhitney(1, 2, 0.1).log_e(np.array([[1.0], [np.nan], [0.0]]), np.array([True, False, False]))

    def test_the_largest_tilt_stays_finite(self) -> None:
        log_e = MannWhitney(3, 4, 1e4).log_e(np.arange(7.0)[:, np.newaxis], np.arange(7) >= 4)
        # all mass of M at U = 12: log E -> log C(7, 3) − log 2
        assert log_e[0] == pytest.approx(math.log(35 / 2), rel=1e-9)
