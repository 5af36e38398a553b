"""The canonical e-value: what one record moves, exactly, and why grid and discrete noise keep it an e-value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from synth_platform.discovery.canonical import ROUNDING, Canonical, PrivateLogE, log_of, privatise
from synth_platform.privacy.noise import SeededNoise

constants = st.floats(-4, 2).map(lambda exponent: 10**exponent)


class Scripted:
    """Hands out given noise and remembers what it was asked for."""

    source: Literal["seeded"] = "seeded"

    def __init__(self, steps: int = 0) -> None:
        self.steps, self.asked = steps, []

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        self.asked.append((sigma, size))
        return np.full(size, self.steps, dtype=np.int64)


@settings(deadline=None, max_examples=300)
@given(
    sensitivity=constants,
    mu=constants,
    start=st.floats(-1e3, 1e3),
    share=st.floats(-1, 1) | st.sampled_from([-1.0, 1.0]),
)
def test_one_record_moves_the_quantised_value_by_at_most_the_sensitivity(
    sensitivity: float, mu: float, start: float, share: float
) -> None:
    """In exact integers, with float64's own error in both log e-values; and it is rounded down, never up."""
    canonical = Canonical(sensitivity, mu)
    start *= sensitivity
    moved = start + share * (sensitivity + 2 * ROUNDING)
    first, second = canonical.quantised([start, moved])
    assert abs(int(first) - int(second)) <= canonical.sensitivity_steps
    assert 0 <= Fraction(start) / Fraction(canonical.granularity) - int(first) < 1
    assert canonical.sigma * mu == pytest.approx(canonical.sensitivity_steps, rel=1e-15)


@settings(deadline=None, max_examples=300)
@given(sensitivity=constants, mu=constants)
def test_the_constants_err_on_the_safe_side_and_by_little(sensitivity: float, mu: float) -> None:
    """In rationals: Δ' ≥ Δ + 2·ROUNDING, and the shift is s²/2 and one step and ROUNDING at least, as drawn."""
    canonical = Canonical(sensitivity, mu)
    step, sigma = Fraction(canonical.granularity), Fraction(canonical.sigma)
    assert math.frexp(canonical.granularity)[0] == 0.5
    assert canonical.sensitivity_steps * step > Fraction(sensitivity) + 2 * Fraction(ROUNDING)
    assert sigma >= (Fraction(sensitivity) + 2 * Fraction(ROUNDING)) / step / Fraction(mu)
    assert canonical.shift_steps >= step * sigma**2 / 2 + 1 + Fraction(ROUNDING) / step
    assert canonical.scale == float(sigma * step)
    assert canonical.scale == pytest.approx((sensitivity + 2 * ROUNDING) / mu, rel=1e-7)
    assert canonical.shift == pytest.approx(canonical.scale**2 / 2, abs=ROUNDING + 4 * float(step), rel=1e-14)


@pytest.mark.parametrize("sigma", [1.0, 1.5, 2.0, 5.0, 40.0])
def test_discrete_noise_is_at_most_one_step_smaller_than_gaussian_noise(sigma: float) -> None:
    """The lemma behind the extra step, on exact masses: P(Z ≤ k) ≤ Φ((k + 1)/σ), and not P(Z ≤ k) ≤ Φ(k/σ)."""
    k = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    mass = np.exp(-(k**2) / (2 * sigma**2))
    below = np.cumsum(mass / mass.sum())
    assert (below <= norm.cdf((k + 1) / sigma) + 1e-14).all()
    assert (below > norm.cdf(k / sigma) + 1e-14).any()


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("step", [0.01, 0.3, 1.0])
def test_discrete_noise_with_the_shift_has_expectation_at_most_one(sigma: float, step: float) -> None:
    """Σ P(Z = k)·exp(−step·k) ≤ exp((step·σ)²/2): the moment bound, over all masses that matter."""
    k = np.arange(-200, 201)
    log_mass = -(k**2) / (2 * sigma**2)
    log_mass -= np.logaddexp.reduce(log_mass)
    assert np.logaddexp.reduce(log_mass - step * k) <= (step * sigma) ** 2 / 2 + 1e-12


@pytest.mark.parametrize(("sensitivity", "mu"), [(0.1, 1.0), (0.182, 0.5), (2.0, 1.0), (1.0, 10.0), (5.0, 0.05)])
def test_without_noise_the_release_is_log_e_minus_the_shift_rounded_down(sensitivity: float, mu: float) -> None:
    log_e = np.array([-3.7, 0.0, 1e-9, 12.3456789, -1e-9])
    canonical = Canonical(sensitivity, mu)
    lost = log_e - privatise(log_e, sensitivity, mu, Scripted(0))
    s = canonical.scale
    assert (lost >= s**2 / 2).all()
    assert (lost <= s**2 / 2 + ROUNDING + 4 * canonical.granularity + 1e-12 * s**2).all()


def test_noise_is_subtracted_once_for_each_entry_at_the_scale_of_the_release() -> None:
    noise, canonical = Scripted(1 << 20), Canonical(0.3, 0.7)
    shifted = privatise(np.zeros((2, 3)), 0.3, 0.7, noise)
    assert noise.asked == [(canonical.sigma, 6)]
    assert shifted == pytest.approx(privatise(np.zeros((2, 3)), 0.3, 0.7, Scripted(0)) - 2**20 * canonical.granularity)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0,)])
def test_any_shape_comes_back_in_that_shape(shape: tuple[int, ...]) -> None:
    private = privatise(np.ones(shape), 0.1, 1.0, SeededNoise(1))
    assert private.shape == shape
    assert np.isfinite(private).all()


def test_entries_get_noise_of_their_own() -> None:
    private = privatise(np.zeros(1000), 0.1, 1.0, SeededNoise(1))
    assert len(np.unique(private)) > 990


@pytest.mark.parametrize(
    ("log_e", "sensitivity", "mu", "message"),
    [
        (math.nan, 0.1, 1.0, "log_e has a NaN"),
        (-math.inf, 0.1, 1.0, "log_e has −infinity"),
        (math.inf, 0.1, 1.0, r"log_e has \+infinity"),
        (0.0, 0.0, 1.0, "sensitivity is 0"),
        (0.0, -0.1, 1.0, "sensitivity is -0.1"),
        (0.0, math.inf, 1.0, "sensitivity is inf"),
        (0.0, math.nan, 1.0, "sensitivity is nan"),
        (0.0, 0.1, 0.0, "mu is 0"),
        (0.0, 0.1, -1.0, "mu is -1"),
        (0.0, 0.1, math.inf, "mu is inf"),
        (0.0, 0.1, math.nan, "mu is nan"),
        (0.0, 1e3, 1e-6, "sensitivity 1e.03 at mu 1e-06"),
        (0.0, 1e-12, 1e-15, "sensitivity 1e-12 at mu 1e-15"),
    ],
)
def test_bad_input_is_named(log_e: float, sensitivity: float, mu: float, message: str) -> None:
    noise = Scripted()
    with pytest.raises(ValueError, match=message):
        privatise(np.array([0.0, log_e]), sensitivity, mu, noise)
    assert noise.asked == []


def test_a_log_e_no_statistic_of_that_sensitivity_reaches_is_refused_without_a_figure() -> None:
    with pytest.raises(ValueError, match="check the sensitivity") as refused:
        privatise(np.array([0.0, 1.2345e300]), 0.1, 1.0, Scripted())
    assert "1.23" not in str(refused.value)


def test_what_a_million_records_can_do_fits_on_the_grid() -> None:
    for sensitivity in (1e-9, 1e-3, 1.0, 100.0):
        log_e = 1e6 * sensitivity * np.array([-1.0, 1.0])
        lost = log_e - privatise(log_e, sensitivity, 1.0, Scripted(0))
        assert lost == pytest.approx(Canonical(sensitivity, 1.0).shift, abs=ROUNDING)


def test_log_of_positive_e_values() -> None:
    assert log_of([1.0, math.e, 1e-300]) == pytest.approx([0.0, 1.0, -300 * math.log(10)])
    assert log_of(2.0).shape == ()


@pytest.mark.parametrize(
    ("bad", "message"),
    [(-1.0, "negative"), (0.0, "zero"), (-0.0, "zero"), (math.nan, "NaN"), (math.inf, "infinity"), (-math.inf, "neg")],
)
def test_log_of_names_what_is_wrong(bad: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        log_of([1.0, bad])


def test_private_values_carry_the_scale_of_their_noise() -> None:
    canonical = Canonical(0.3, 0.7)
    private = PrivateLogE.of(canonical, np.zeros(3), selected=False)
    assert (private.scale, private.mu, private.selected) == (canonical.scale, 0.7, False)
    with pytest.raises(ValueError, match="mu is 0"):
        PrivateLogE(np.zeros(3), 0.3, 0.0, selected=False)
    with pytest.raises(ValueError, match="sensitivity is inf"):
        PrivateLogE(np.zeros(3), math.inf, 1.0, selected=False)
    with pytest.raises(ValueError, match="log_e has a NaN"):
        PrivateLogE(np.array([math.nan]), 0.3, 1.0, selected=False)
