"""Bounded likelihood ratios: truncations that keep the null, Δ by enumeration, the unbounded form refused."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.discovery.statistics.likelihood_ratio import BoundedLikelihoodRatio, UnboundedSensitivityError

KEPT = st.floats(0.01, 0.9)
CAPS = st.floats(1.01, 50)


def every_table(entries: np.ndarray, size: int) -> np.ndarray:
    """[size, k^size]: every choice of `size` entries, one a column."""
    return np.array(list(itertools.product(entries, repeat=size))).T


def densities(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """p and q on four points, very unlike each other; q is 0 at the first."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(4, 0.5)) + 1e-3, rng.dirichlet(np.full(4, 0.5)) * [0, 1, 1, 1]
    return p / p.sum(), q / q.sum()


class TestNull:
    @settings(deadline=None, max_examples=60)
    @given(kept=KEPT, cap=CAPS, seed=st.integers(0, 999))
    def test_mean_at_most_one(self, kept: float, cap: float, seed: int) -> None:
        """Claim: over every data set of 3 records from p, E[E] ≤ 1, with equality where no ratio reaches the cap."""
        p, q = densities(seed)
        with np.errstate(divide="ignore"):
            log_ratio = np.log(q / p)
        log_e = BoundedLikelihoodRatio(3, kept, cap).log_e(every_table(log_ratio, 3))
        mean = every_table(p, 3).prod(axis=0) @ np.exp(log_e)
        assert mean <= 1 + 1e-12
        if (q / p).max() <= cap:
            assert mean == pytest.approx(1, rel=1e-12)

    def test_clipping_from_below_would_be_invalid(self) -> None:
        """Claim: max(R, a) in place of mixing has a null mean of 1 + E[(a − R)₊] per record: 1.04^20 > 2 after 20."""
        p, q, floor = np.array([0.2, 0.8]), np.array([0.0, 1.0]), 0.2
        per_record = float(p @ np.maximum(q / p, floor))
        assert per_record == pytest.approx(1 + 0.2 * floor)
        assert per_record**20 > 2


class TestSensitivity:
    @settings(deadline=None, max_examples=40)
    @given(kept=KEPT, cap=CAPS)
    def test_it_is_attained(self, kept: float, cap: float) -> None:
        """Claim: over every data set of ratios {0, 1/2, 1, B, ∞} the largest step of one record is Δ."""
        levels = np.array([-math.inf, -math.log(2), 0.0, math.log(cap), math.inf])
        log_e = BoundedLikelihoodRatio(3, kept, cap).log_e(every_table(levels, 3)).reshape(5, 5, 5)
        largest = max(float(np.ptp(log_e, axis=i).max()) for i in range(3))
        assert largest == pytest.approx(BoundedLikelihoodRatio(3, kept, cap).sensitivity, rel=1e-10)
        assert np.isfinite(log_e).all()

    def test_the_plain_likelihood_ratio_has_none(self) -> None:
        """Claim: for N(1, 1) over N(0, 1), log R = x − 1/2: ±x moves the plain log E by 2x, ours by at most Δ."""
        bounded = BoundedLikelihoodRatio(5, 0.1, 20.0)
        for x in (10.0, 1e3, 1e6):
            records = np.zeros((5, 2))
            records[0] = -x, x
            plain = (records - 0.5).sum(axis=0)
            assert plain[1] - plain[0] == pytest.approx(2 * x)
            low, high = bounded.log_e(records - 0.5)
            assert high - low <= bounded.sensitivity

    @pytest.mark.parametrize("half", [10, 100, 1000])
    def test_universal_inference_has_none_even_with_bounded_factors(self, half: int) -> None:
        """Claim: q fitted on one half turns with one record of it, and every factor of the other half with q:
        with a sign as the model and factors in [1/2, 3/2], log E moves by n/2 · log 3."""
        evaluated = np.ones(half)

        def log_e(training: np.ndarray) -> float:
            return float(np.log1p(0.5 * np.sign(training.sum()) * evaluated).sum())  # q puts 3/4 on the fitted sign

        balanced = np.resize([1.0, -1.0], half)
        one_replaced = np.concatenate([[1.0, 0.5], balanced[2:]]), np.concatenate([[1.0, -1.5], balanced[2:]])
        assert log_e(one_replaced[0]) - log_e(one_replaced[1]) == pytest.approx(half * math.log(3))


class TestRefusals:
    @pytest.mark.parametrize(
        ("kept", "cap", "named"), [(0.0, 5.0, "kept"), (0.1, math.inf, "cap"), (0.0, math.inf, "kept")]
    )
    def test_the_unbounded_form_says_why(self, kept: float, cap: float, named: str) -> None:
        """Claim: without floor or cap it is an error of its own kind that says what one record could do."""
        with pytest.raises(UnboundedSensitivityError, match=f"{named} is [^;]* one record"):
            BoundedLikelihoodRatio(10, kept, cap)

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"size": 0}, "size"),
            ({"kept": 1.0}, "kept"),
            ({"kept": -0.1}, "kept"),
            ({"kept": math.nan}, "kept"),
            ({"cap": 1.0}, "cap"),
            ({"cap": math.nan}, "cap"),
            ({"cap": -math.inf}, "cap"),
        ],
    )
    def test_constants_out_of_range(self, change: dict[str, float], named: str) -> None:
        with pytest.raises(ValueError, match=f"{named} is"):
            BoundedLikelihoodRatio(**{"size": 3, "kept": 0.1, "cap": 10.0, **change})

    def test_rows_and_numbers(self) -> None:
        statistic = BoundedLikelihoodRatio(3, 0.1, 10.0)
        with pytest.raises(ValueError, match=r"^values must be"):
            statistic.log_e(np.zeros((4, 2)))
        with pytest.raises(ValueError, match=r"^values holds a NaN"):
            statistic.log_e(np.array([[0.0], [math.nan], [1.0]]))

    def test_parameters_rebuild_the_statistic(self) -> None:
        """Claim: what the ledger writes down as JSON fixes the statistic."""
        statistic = BoundedLikelihoodRatio(3, 0.1, 10.0)
        assert BoundedLikelihoodRatio(**json.loads(json.dumps(statistic.parameters))) == statistic
