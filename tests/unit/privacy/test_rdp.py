"""The binomial form of 8-1 §2.5 against quadrature of the definition it expands."""

from __future__ import annotations

import itertools
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from synth_platform.privacy.rdp import ORDERS, sampled_gaussian_rdp


def divergence_by_quadrature(order: int, q: float, sigma: float) -> float:
    """1/(α−1) log E_{z~N(0,σ²)} r^α with r = (1−q) + q exp((2z−1)/2σ²), 8-1 §2.5.

    As E r = 1, E r^α − 1 = E[(r^α − 1) − α(r − 1)], whose integrand is never negative: nothing cancels.
    """

    def log_integrand(z: float) -> float:
        log_r = np.logaddexp(math.log1p(-q), math.log(q) + (2 * z - 1) / (2 * sigma**2))
        a = order * log_r
        log_excess = a if a > 200 else math.log(max(math.expm1(a) - order * math.expm1(log_r), 1e-300))
        return float(norm.logpdf(z, scale=sigma)) + log_excess

    edges = np.linspace(-12 * sigma, order + 12 * sigma, 80)
    peak = max(log_integrand(z) for z in np.linspace(edges[0], edges[-1], 2001))
    integral = sum(
        quad(lambda z: math.exp(log_integrand(z) - peak), a, b, epsabs=0, epsrel=1e-9)[0]
        for a, b in itertools.pairwise(edges)
    )
    return float(np.logaddexp(0, math.log(integral) + peak)) / (order - 1)


@pytest.mark.parametrize(
    ("order", "q", "sigma"),
    [
        (2, 62 / 372, 15.94),
        (20, 62 / 372, 5.62),
        (64, 62 / 372, 2.41),
        (3, 0.02, 0.92),
        (12, 0.02, 1.67),
        (40, 0.02, 20.94),
        (32, 0.01, 1.0),
        (128, 0.2, 78.0),
        (5, 0.9, 0.7),
        (4, 1e-4, 3.0),
    ],
)
def test_binomial_form_is_the_definition(order: int, q: float, sigma: float) -> None:
    assert sampled_gaussian_rdp(order, q, sigma) == pytest.approx(divergence_by_quadrature(order, q, sigma), rel=1e-6)


@pytest.mark.parametrize("order", [2, 7, 64, 512])
def test_the_ends_of_the_sampling_rate(order: int) -> None:
    """q = 0 reads nothing, q = 1 is the Gaussian mechanism, and a rate near 1 comes close to it."""
    assert sampled_gaussian_rdp(order, 0, 3.0) == 0
    assert sampled_gaussian_rdp(order, 1, 3.0) == order / 18
    assert sampled_gaussian_rdp(order, 1 - 1e-9, 3.0) == pytest.approx(order / 18, rel=1e-6)


def test_a_tiny_step_keeps_its_digits() -> None:
    """At order 2 the form is log(1 + q²(e^{1/σ²} − 1)); at q = 1e-6 a plain log-sum would return rounding noise."""
    exact = math.log1p(1e-12 * math.expm1(1 / 400))
    assert sampled_gaussian_rdp(2, 1e-6, 20.0) == pytest.approx(exact, rel=1e-12)


@settings(deadline=None, max_examples=50)
@given(
    q=st.floats(1e-5, 1, exclude_max=True),
    sigma=st.floats(0.3, 100),
    order=st.sampled_from([a for a in ORDERS if a <= 256]),
)
def test_agrees_with_dp_accounting(q: float, sigma: float, order: int) -> None:
    theirs = RdpAccountant([order])
    theirs.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)))
    assert sampled_gaussian_rdp(order, q, sigma) == pytest.approx(float(theirs._rdp[0]), rel=1e-6, abs=1e-12)
