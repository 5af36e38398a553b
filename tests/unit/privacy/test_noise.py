"""Where noise comes from, and that no float decides a draw."""

from __future__ import annotations

import itertools
import math
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.privacy import discrete_gaussian as sampler
from synth_platform.privacy.noise import CryptographicNoise, SeededNoise


def test_sources_say_what_they_are() -> None:
    assert CryptographicNoise().source == "cryptographic"
    assert SeededNoise(0).source == "seeded"
    for noise in (CryptographicNoise(), SeededNoise(0)):
        with pytest.raises(AttributeError):
            noise.source = "cryptographic"


def test_a_seed_fixes_the_whole_sequence_of_calls() -> None:
    first, again, other = SeededNoise(3), SeededNoise(3), SeededNoise(4)
    calls = [(5.0, 10), (2.0**30, 70_000), (0.5, 0), (5.0, 10)]
    drawn = [first.discrete_gaussian(*call) for call in calls]
    for values, call in zip(drawn, calls, strict=True):
        np.testing.assert_array_equal(values, again.discrete_gaussian(*call))
        assert values.shape == (call[1],)
        assert values.dtype == np.int64
    assert not np.array_equal(drawn[0], drawn[3])
    assert not np.array_equal(drawn[0], other.discrete_gaussian(5.0, 10))


def test_cryptographic_draws_never_repeat() -> None:
    """Two sources, two calls: equal only by a collision of 100 draws at σ = 2^30."""
    noise = CryptographicNoise()
    draws = [source.discrete_gaussian(2.0**30, 100) for source in (noise, noise, CryptographicNoise())]
    for a, b in itertools.combinations(draws, 2):
        assert not np.array_equal(a, b)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_draws_other_noise() -> None:
    """A stream copied by fork would give parent and child the same noise, and their difference would be noiseless."""
    noise = CryptographicNoise()
    noise.discrete_gaussian(2.0**30, 10)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, noise.discrete_gaussian(2.0**30, 10).tobytes())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        theirs = np.frombuffer(pipe.read(), dtype=np.int64)
    assert os.waitpid(child, 0)[1] == 0
    assert theirs.shape == (10,)
    assert not np.array_equal(theirs, noise.discrete_gaussian(2.0**30, 10))


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, 2.0**-11, 2.0**41])
def test_sigma_out_of_range_is_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match="sigma"):
        SeededNoise(0).discrete_gaussian(sigma, 1)


@settings(deadline=None, max_examples=300)
@given(st.floats(-10, 40).map(lambda exponent: 2.0**exponent))
def test_the_acceptance_probability_is_a_probability_and_not_small(sigma: float) -> None:
    """p ≤ 1 at the start of every block, where p is greatest; Σ over k of its mass stays near one half."""
    shift = max(0, math.frexp(sigma)[1] - 1)
    bound = sampler._log_bound(sigma, shift)
    starts = np.arange(64)
    log_p = (starts + 1) * math.log(2) - (starts * 2.0**shift / sigma) ** 2 / 2 - bound
    assert log_p.max() < -1e-7
    assert log_p.max() > -1e-5
    ratio = 2.0**shift / sigma
    assert 0.5 < ratio <= 1 or shift == 0
    if sigma > 100:
        assert math.sqrt(math.pi / 2) / ratio * math.exp(-bound) > 0.45


def digits_of_exp(exponent: Fraction, bits: int) -> int:
    """floor(2^bits · exp(−exponent)) from the alternating series, in integers with 64 guard bits, 0 < exponent ≤ 1."""
    total, term = 0, 1 << (bits + 64)
    for i in itertools.count(1):
        total += term
        term = -term * exponent.numerator // (exponent.denominator * i)
        if abs(term) <= 1:
            return total >> 64


@settings(deadline=None, max_examples=60)
@given(
    exponent=st.fractions(Fraction(1, 1000), 1, max_denominator=10**6),
    words=st.integers(2, 6),
    below=st.booleans(),
)
def test_ties_are_settled_by_as_many_bits_as_it_takes(exponent: Fraction, words: int, below: bool) -> None:
    """A uniform that shares its first 64·words bits with p but one unit of the last word: float64 cannot tell."""
    target = digits_of_exp(exponent, 64 * words) + (-2 if below else 2)
    first, *rest = [(target >> 64 * (words - 1 - i)) & (2**64 - 1) for i in range(words)]
    stream = iter([*rest, *range(100)])
    used = []

    def next_words(n: int) -> np.ndarray:
        used.append(n)
        return np.array([next(stream) for _ in range(n)], dtype=np.uint64)

    assert sampler._accept_exactly(exponent, 0, first, next_words) is below
    assert len(used) >= words - 1


def test_the_error_margin_covers_float64() -> None:
    """The float64 p is within 2^-46 of itself of the exact p, where the sampler allows for 2^-40."""
    rng = np.random.default_rng(5)
    for sigma in (0.7, 3.0, 1e6, 1.3 * 2.0**39):
        shift = max(0, math.frexp(sigma)[1] - 1)
        bound = sampler._log_bound(sigma, shift)
        for j in range(6):
            k = (j << shift) + int(rng.integers(1 << shift))
            exponent = Fraction(k * k, 2) / Fraction(sigma) ** 2 + Fraction(bound)
            pieces = math.ceil(exponent)
            root = Fraction(digits_of_exp(exponent / pieces, 200), 2**200)
            exact = root**pieces * 2 ** (j + 1)
            floating = float(sampler._acceptance(np.array([k]), np.array([j]), sigma, bound)[0])
            assert abs(Fraction(floating) - exact) <= exact * Fraction(1, 2**46)
