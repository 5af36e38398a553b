"""Betting and Hoeffding: mean at most 1 under every null law on a grid, Δ by every pair of small neighbours."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.discovery.statistics.bounded_mean import Betting, Hoeffding

MEANS = st.floats(0.05, 0.95)
SHARES = st.floats(0.05, 0.95)


def betting(size: int, null_mean: float, share: float, two_sided: bool) -> Betting:
    most = 1 / max(null_mean, 1 - null_mean) if two_sided else 1 / null_mean
    return Betting(size, null_mean, share * most, two_sided)


def every_table(levels: np.ndarray, size: int) -> np.ndarray:
    """[size, levels^size]: every data set of `size` records, one a column, in the order of an index [level, ...]."""
    return np.array(list(itertools.product(levels, repeat=size))).T


def largest_step(statistic: Betting | Hoeffding, levels: np.ndarray) -> float:
    """max |log E(D) − log E(D')| over every data set D of the levels and every D' that differs in one record."""
    log_e = statistic.log_e(every_table(levels, statistic.size)).reshape((len(levels),) * statistic.size)
    return max(float(np.ptp(log_e, axis=i).max()) for i in range(statistic.size))


def null_mean_of_e(statistic: Betting | Hoeffding, levels: np.ndarray, law: np.ndarray) -> float:
    """E[E] for independent records of the given law: the sum over every data set."""
    chances = every_table(law, statistic.size).prod(axis=0)
    return float(chances @ np.exp(statistic.log_e(every_table(levels, statistic.size))))


def laws_of_mean(levels: np.ndarray, mean: float, rng: np.random.Generator) -> np.ndarray:
    """A random law on the levels with the mean: one below and one above it are mixed, over random pairs."""
    law = np.zeros(len(levels))
    low, high = np.flatnonzero(levels <= mean), np.flatnonzero(levels > mean)
    for share in rng.dirichlet(np.ones(4)):
        i, j = rng.choice(low), rng.choice(high)
        up = (mean - levels[i]) / (levels[j] - levels[i])
        law[i] += share * (1 - up)
        law[j] += share * up
    return law


class TestBetting:
    @pytest.mark.parametrize("size", [1, 2, 5])
    @settings(deadline=None, max_examples=30)
    @given(null_mean=MEANS, share=SHARES)
    def test_one_sided_sensitivity_is_attained(self, size: int, null_mean: float, share: float) -> None:
        """Claim: over every data set of {0, m0, 1} the largest step is Δ, neither less nor more."""
        statistic = betting(size, null_mean, share, two_sided=False)
        levels = np.array([0.0, null_mean, 1.0])
        assert largest_step(statistic, levels) == pytest.approx(statistic.sensitivity, rel=1e-10)

    @settings(deadline=None, max_examples=40)
    @given(null_mean=MEANS, share=SHARES)
    def test_two_sided_sensitivity_bounds_every_step(self, null_mean: float, share: float) -> None:
        """Claim: no data set of {0, .3, m0, 1} steps further than Δ."""
        statistic = betting(4, null_mean, share, two_sided=True)
        assert largest_step(statistic, np.array([0.0, 0.3, null_mean, 1.0])) <= statistic.sensitivity * (1 + 1e-12)

    @pytest.mark.parametrize("null_mean", [0.2, 0.5, 0.8])
    def test_two_sided_sensitivity_is_approached(self, null_mean: float) -> None:
        """Claim: with 199 like-minded others one record moves log E by Δ to four digits."""
        statistic = betting(200, null_mean, 0.9, two_sided=True)
        others = np.repeat([[0.0, 0.0, 1.0, 1.0]], 199, axis=0)
        low0, high0, low1, high1 = statistic.log_e(np.vstack([others, [[0.0, 1.0, 0.0, 1.0]]]))
        assert max(abs(high0 - low0), abs(high1 - low1)) == pytest.approx(statistic.sensitivity, rel=1e-4)

    @settings(deadline=None, max_examples=40)
    @given(null_mean=MEANS, share=SHARES, two_sided=st.booleans(), seed=st.integers(0, 99))
    def test_mean_one_under_every_law_of_the_null_mean(
        self, null_mean: float, share: float, two_sided: bool, seed: int
    ) -> None:
        """Claim: E[E] = 1 exactly for any law with mean m0, so no constant could be better."""
        levels = np.array([0.0, null_mean / 2, null_mean, (1 + null_mean) / 2, 1.0])
        law = laws_of_mean(levels, null_mean, np.random.default_rng(seed))
        statistic = betting(4, null_mean, share, two_sided)
        assert null_mean_of_e(statistic, levels, law) == pytest.approx(1, abs=1e-10)

    def test_a_smaller_mean_is_in_the_one_sided_null_only(self) -> None:
        """Claim: below m0 the one-sided mean of E is below 1, the two-sided one above 1."""
        levels, law = np.array([0.0, 1.0]), np.array([0.8, 0.2])
        assert null_mean_of_e(betting(4, 0.4, 0.5, two_sided=False), levels, law) < 1
        assert null_mean_of_e(betting(4, 0.4, 0.5, two_sided=True), levels, law) > 1

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"size": 0}, "size"),
            ({"null_mean": 0.0}, "null_mean"),
            ({"null_mean": math.nan}, "null_mean"),
            ({"stake": 0.0}, "stake"),
            ({"stake": math.nan}, "stake"),
            ({"stake": 1 / 0.3}, "stake"),
            ({"stake": 1 / 0.7, "two_sided": True}, "stake"),
        ],
    )
    def test_constants_out_of_range_are_refused_by_name(self, change: dict[str, float], named: str) -> None:
        """Claim: each bad constant is an error that begins with its name, λ = 1/m0 included."""
        with pytest.raises(ValueError, match=f"{named} is"):
            Betting(**{"size": 3, "null_mean": 0.3, "stake": 1.0, "two_sided": False, **change})

    @pytest.mark.parametrize("value", [-0.1234, 1.1234, math.nan, math.inf])
    def test_a_value_outside_is_refused_and_not_shown(self, value: float) -> None:
        """Claim: outside [0, 1] Δ is not proven, so it is an error; the value is private and not in the message."""
        with pytest.raises(ValueError, match=r"^values") as refused:
            Betting(2, 0.5, 0.5).log_e(np.array([[0.5], [value]]))
        assert "1234" not in str(refused.value)


class TestHoeffding:
    @settings(deadline=None, max_examples=30)
    @given(null_mean=st.floats(-5, 5), bound=st.floats(0.1, 4), tilt=st.floats(0.01, 2))
    def test_one_sided_sensitivity_is_attained(self, null_mean: float, bound: float, tilt: float) -> None:
        """Claim: over every data set of {m0 − C, m0, m0 + C} the largest step is 2λC."""
        statistic = Hoeffding(4, null_mean, bound, tilt, two_sided=False)
        levels = null_mean + bound * np.array([-1.0, 0.0, 1.0])
        assert largest_step(statistic, levels) == pytest.approx(2 * tilt * bound, rel=1e-9)
        assert statistic.sensitivity == pytest.approx(2 * tilt * bound)

    def test_two_sided_sensitivity_bounds_every_step_and_is_approached(self) -> None:
        """Claim: no small data set steps further than 2λC; with 100 like-minded others a step is that."""
        levels = np.array([-1.0, -0.2, 0.5, 1.0])
        assert largest_step(Hoeffding(5, 0.0, 1.0, 0.7), levels) <= 1.4
        many = Hoeffding(101, 0.0, 1.0, 0.7)
        low, high = many.log_e(np.vstack([np.ones((100, 2)), [[-1.0, 1.0]]]))
        assert high - low == pytest.approx(1.4, rel=1e-4)

    @settings(deadline=None, max_examples=40)
    @given(mean=st.floats(-0.9, 0.9), tilt=st.floats(0.05, 3), two_sided=st.booleans(), seed=st.integers(0, 99))
    def test_mean_at_most_one_under_every_law_of_the_null_mean(
        self, mean: float, tilt: float, two_sided: bool, seed: int
    ) -> None:
        """Claim: Hoeffding's lemma holds for any law in the interval, not only a symmetric one."""
        levels = mean + np.array([-1.0, -0.4, 0.0, 0.3, 1.0])
        law = laws_of_mean(levels, mean, np.random.default_rng(seed))
        statistic = Hoeffding(4, mean, 1.0, tilt, two_sided)
        assert null_mean_of_e(statistic, levels, law) <= 1 + 1e-10

    def test_the_moment_is_the_fair_coins_to_fourth_order(self) -> None:
        """Claim: for records m0 ± C, E[E] = [cosh(λC) e^{−λ²C²/2}]^n: a half less in ψ would be above 1."""
        statistic = Hoeffding(4, 2.0, 1.5, 0.1, two_sided=False)
        mean = null_mean_of_e(statistic, np.array([0.5, 3.5]), np.array([0.5, 0.5]))
        assert mean == pytest.approx((math.cosh(0.15) * math.exp(-(0.15**2) / 2)) ** 4, rel=1e-12)
        assert mean > 0.999

    def test_clipping_a_skewed_law_breaks_the_null(self) -> None:
        """Claim: mean 0 with a rare −9 and a common 1, clipped to [−1, 1], has mean .8, and E[E] is far above 1: which
        is why values outside are refused. A symmetric law keeps its mean when it is clipped, and E[E] ≤ 1."""
        statistic = Hoeffding(4, 0.0, 1.0, 0.5, two_sided=False)
        with pytest.raises(ValueError, match=r"^values leave"):
            statistic.log_e(np.array([[-9.0], [1.0], [1.0], [1.0]]))
        assert null_mean_of_e(statistic, np.clip([-9.0, 1.0], -1, 1), np.array([0.1, 0.9])) > 2
        symmetric = np.clip([-9.0, -0.5, 0.5, 9.0], -1, 1)
        assert null_mean_of_e(statistic, symmetric, np.array([0.1, 0.4, 0.4, 0.1])) <= 1

    @pytest.mark.parametrize("null_mean", [0.1, 1 / 3, 1e9 + 0.1])
    def test_values_clipped_by_the_same_constants_are_inside(self, null_mean: float) -> None:
        """Claim: rounding of m0 ± C does not refuse what was clipped to it."""
        values = np.clip(np.random.default_rng(0).normal(0, 9, (50, 3)), null_mean - 0.7, null_mean + 0.7)
        assert np.isfinite(Hoeffding(50, null_mean, 0.7, 0.3).log_e(values)).all()

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"size": 0}, "size"),
            ({"null_mean": math.inf}, "null_mean"),
            ({"bound": 0.0}, "bound"),
            ({"tilt": -1.0}, "tilt"),
        ],
    )
    def test_constants_out_of_range_are_refused_by_name(self, change: dict[str, float], named: str) -> None:
        with pytest.raises(ValueError, match=f"{named} is"):
            Hoeffding(**{"size": 3, "null_mean": 0.3, "bound": 1.0, "tilt": 1.0, **change})


@pytest.mark.parametrize("statistic", [Betting(3, 0.5, 0.5), Hoeffding(3, 0.5, 0.5, 1.0)])
class TestBoth:
    def test_columns_are_by_themselves(self, statistic: Betting | Hoeffding) -> None:
        """Claim: [n, m] gives each hypothesis what it gets alone."""
        values = np.random.default_rng(1).uniform(size=(3, 5))
        alone = [float(statistic.log_e(values[:, [j]])[0]) for j in range(5)]
        assert statistic.log_e(values) == pytest.approx(alone)

    @pytest.mark.parametrize("shape", [(2, 4), (3,), (3, 1, 1)])
    def test_another_number_of_rows_is_refused(self, statistic: Betting | Hoeffding, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"^values must be \[n, m\]"):
            statistic.log_e(np.full(shape, 0.5))

    def test_parameters_rebuild_the_statistic(self, statistic: Betting | Hoeffding) -> None:
        """Claim: what the ledger writes down as JSON fixes the statistic."""
        assert type(statistic)(**json.loads(json.dumps(statistic.parameters))) == statistic
