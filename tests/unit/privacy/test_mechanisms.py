"""The Gaussian mechanism on a grid: what one row can move, exactly, and what the noise depends on."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from synth_platform.privacy.mechanisms import gaussian_sum, granularity, quantised_sum
from synth_platform.privacy.noise import SeededNoise

constants = st.floats(-6, 6).map(lambda exponent: 10**exponent)
cells = st.one_of(
    st.floats(-10, 10),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1.0, 1e308, -1.7e308, 5e-324, math.nan, math.inf, -math.inf]),
)
shapes = st.tuples(st.integers(1, 5), st.integers(1, 6))


def steps_of(contributions: np.ndarray, sensitivity: float, step: float) -> list[int]:
    return [int(value) for value in quantised_sum(contributions, sensitivity=sensitivity, granularity=step)]


@settings(deadline=None, max_examples=300)
@given(rows=arrays(np.float64, shapes, elements=cells), sensitivity=constants, sigma=constants)
def test_removing_any_row_moves_the_sum_by_at_most_the_sensitivity(
    rows: np.ndarray, sensitivity: float, sigma: float
) -> None:
    """In exact integers, whatever the row holds: a float tolerance here would be a hole in the guarantee."""
    step = granularity(sensitivity, sigma)
    limit = (Fraction(sensitivity) / Fraction(step)) ** 2
    whole = steps_of(rows, sensitivity, step)
    for i in range(len(rows)):
        rest = steps_of(np.delete(rows, i, axis=0), sensitivity, step)
        assert sum((a - b) ** 2 for a, b in zip(whole, rest, strict=True)) <= limit


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32), d=st.integers(1, 400), sensitivity=constants)
def test_rows_on_the_clipping_sphere_stay_inside_it(seed: int, d: int, sensitivity: float) -> None:
    """Float rounding puts many of these rows a hair outside before they are quantised."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((20, d)) * (rng.random((20, d)) < 3 / d)
    rows *= sensitivity / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    step = granularity(sensitivity, sensitivity)
    limit = (Fraction(sensitivity) / Fraction(step)) ** 2
    for row in rows:
        steps = steps_of(row[None], sensitivity, step)
        assert sum(value**2 for value in steps) <= limit
        assert np.allclose(np.array(steps) * step, row, rtol=0, atol=2 * step)


def test_a_float_clip_alone_would_exceed_the_sensitivity() -> None:
    """Rows (a, b) on the grid with sensitivity fl(√(a²+b²)): float64 sees no excess, and a third of them exceed it."""
    rng = np.random.default_rng(3)
    needed = 0
    for a, b in rng.integers(2**28, 2**30, (300, 2)).tolist():
        sensitivity = math.sqrt(a * a + b * b)
        step = granularity(sensitivity, 1.0)
        assert step <= 1
        limit = (Fraction(sensitivity) / Fraction(step)) ** 2
        needed += (a * a + b * b) / Fraction(step) ** 2 > limit
        steps = steps_of(np.array([[float(a), float(b)]]), sensitivity, step)
        assert sum(value**2 for value in steps) <= limit
        np.testing.assert_allclose(np.array(steps) * step, [a, b], rtol=0, atol=step)
    assert needed > 50


@settings(deadline=None, max_examples=100)
@given(sensitivity=st.floats(1e-90, 1e90), sigma=st.floats(1e-90, 1e90))
def test_the_grid_is_a_power_of_two_that_cannot_overflow(sensitivity: float, sigma: float) -> None:
    step = granularity(sensitivity, sigma)
    assert math.frexp(step)[0] == 0.5
    assert sensitivity / step < 2**31
    assert sigma / step < 2**40
    assert sensitivity / step >= 2**30 or sigma / step >= 2**39


def test_counts_are_exact() -> None:
    """One-hot rows with sensitivity 1 lie on the grid: a count comes through unchanged before noise."""
    rows = np.eye(4)[[0, 0, 1, 3, 3, 3]]
    step = granularity(1.0, 2.5)
    assert steps_of(rows, 1.0, step) == [round(count / step) for count in (2, 1, 0, 3)]


def test_quantisation_is_toward_zero_and_below_a_step_per_row() -> None:
    rows = np.random.default_rng(1).uniform(-1, 1, (500, 7))
    step = granularity(3.0, 10.0)
    total = quantised_sum(rows, sensitivity=3.0, granularity=step) * step
    one_sided = np.abs(quantised_sum(np.abs(rows), sensitivity=3.0, granularity=step) * step)
    assert np.all(np.abs(total - rows.sum(axis=0)) < 500 * step)
    assert np.all(one_sided <= np.abs(rows).sum(axis=0))


def test_clipping_keeps_directions() -> None:
    rows = np.array([[3.0, 4.0], [3e200, 4e200], [0.3, 0.4]])
    step = granularity(1.0, 1.0)
    for row, expected in zip(rows, [[0.6, 0.8], [0.6, 0.8], [0.3, 0.4]], strict=True):
        found = quantised_sum(row[None], sensitivity=1.0, granularity=step) * step
        np.testing.assert_allclose(found, expected, atol=2 * step)


def test_rows_that_are_not_finite_contribute_nothing() -> None:
    """And raise nothing: whether one row is finite is a private fact."""
    rows = np.array([[0.5, 0.5], [math.nan, 0.1], [math.inf, 0.0], [-math.inf, math.nan]])
    step = granularity(1.0, 1.0)
    assert steps_of(rows, 1.0, step) == steps_of(rows[:1], 1.0, step)


def test_noise_does_not_depend_on_the_rows() -> None:
    """Same source, any rows, any number of them: the same draw is added, of the public dimension."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 1000):
        rows = rng.standard_normal((n, 5))
        values, step = gaussian_sum(rows, sensitivity=2.0, sigma=3.0, noise=SeededNoise(7))
        before = quantised_sum(rows, sensitivity=2.0, granularity=step)
        drawn = SeededNoise(7).discrete_gaussian(3.0 / step, 5)
        np.testing.assert_array_equal(values, (before + drawn) * step)


def test_blocks_do_not_change_the_sum() -> None:
    """More cells than one block holds."""
    rows = np.random.default_rng(2).standard_normal((3000, 700))
    step = granularity(5.0, 1.0)
    parts = [quantised_sum(part, sensitivity=5.0, granularity=step) for part in np.array_split(rows, 7)]
    np.testing.assert_array_equal(quantised_sum(rows, sensitivity=5.0, granularity=step), np.sum(parts, axis=0))


def test_bad_public_constants_are_refused_by_name() -> None:
    rows = np.zeros((1, 1))
    for name, value in (("sensitivity", 0.0), ("sensitivity", math.nan), ("sigma", -1.0), ("sigma", math.inf)):
        constants = {"sensitivity": 1.0, "sigma": 1.0} | {name: value}
        with pytest.raises(ValueError, match=name):
            gaussian_sum(rows, **constants, noise=SeededNoise(0))
    with pytest.raises(ValueError, match="dimensions"):
        gaussian_sum(np.zeros(3), sensitivity=1.0, sigma=1.0, noise=SeededNoise(0))
    with pytest.raises(ValueError, match="grid steps"):
        gaussian_sum(rows, sensitivity=1.0, sigma=1e-15, noise=SeededNoise(0))
