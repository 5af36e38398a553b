"""Accounting against the figures of 8-1 §2.1–2.6, an independent accountant and the definition of μ-GDP."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from synth_platform.privacy.accounting import (
    calibrate_dpsgd,
    compose,
    epsilon_from_rho,
    epsilon_rdp,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    rho_from_epsilon,
    sigma_from_mu,
    sigma_from_rho,
    split_mu,
)
from synth_platform.privacy.bounds import epsilon_for_auroc
from synth_platform.privacy.rdp import ORDERS

TCGA = {"delta": 1e-5, "sampling_rate": 62 / 372, "steps": 360}
MIMIC = {"delta": 1e-6, "sampling_rate": 1000 / 50000, "steps": 1500}

epsilons = st.floats(1e-4, 100)
deltas = st.floats(-12, -1.5).map(lambda exponent: 10**exponent)


def dpsgd(plan: dict[str, float], sigma: float) -> SelfComposedDpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(plan["sampling_rate"], GaussianDpEvent(sigma)), plan["steps"])


@pytest.mark.parametrize(
    ("plan", "epsilon", "sigma", "rounding"),
    [
        (TCGA, 1, 15.94, 0.005),
        (TCGA, 3, 5.62, 0.005),
        (TCGA, 8, 2.41, 0.005),
        (TCGA, epsilon_for_auroc(0.55, 1e-5), 78.00, 0.005),
        (MIMIC, 1, 4.35, 0.005),
        (MIMIC, 3, 1.67, 0.005),
        (MIMIC, 8, 0.92, 0.005),
        (MIMIC, epsilon_for_auroc(0.55, 1e-6), 20.94, 0.005),
    ],
)
def test_noise_multipliers_of_8_1_by_rdp(plan: dict[str, float], epsilon: float, sigma: float, rounding: float) -> None:
    """8-1 §2.5: a fifth of ε goes to B1. The table's digits, so another order grid or a fifth of ρ would fail."""
    prior_rho = rho_from_epsilon(0.2 * epsilon, plan["delta"])
    found = calibrate_dpsgd(epsilon=epsilon, prior_rho=prior_rho, accountant="rdp", **plan)
    assert found == pytest.approx(sigma, abs=rounding)


@pytest.mark.parametrize(
    ("plan", "epsilon", "sigma"),
    [(TCGA, 1, 12.04), (TCGA, 3, 4.58), (TCGA, 8, 2.10), (MIMIC, 1, 3.44), (MIMIC, 3, 1.44), (MIMIC, 8, 0.844)],
)
def test_noise_multipliers_by_pld(plan: dict[str, float], epsilon: float, sigma: float) -> None:
    prior_rho = rho_from_epsilon(0.2 * epsilon, plan["delta"])
    found = calibrate_dpsgd(epsilon=epsilon, prior_rho=prior_rho, accountant="pld", **plan)
    assert found == pytest.approx(sigma, rel=0.005)


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_calibrated_plan_composes_back_to_its_promise(accountant: str, epsilon: float) -> None:
    prior_rho = rho_from_epsilon(0.2 * epsilon, TCGA["delta"])
    sigma = calibrate_dpsgd(epsilon=epsilon, prior_rho=prior_rho, accountant=accountant, **TCGA)
    cost = compose([GaussianDpEvent(sigma_from_rho(prior_rho, 1)), dpsgd(TCGA, sigma)], TCGA["delta"])
    figure = cost.epsilon_rdp if accountant == "rdp" else cost.epsilon_pld
    assert epsilon * (1 - 1e-3) < figure <= epsilon
    assert cost.epsilon_pld < cost.epsilon_rdp
    assert cost.mu is None


def test_full_batches_are_the_gaussian_mechanism() -> None:
    """At q = 1 the plan is Gaussian, so σ = √(T/2ρ) by zCDP and √T/μ exactly."""
    plan = {"epsilon": 2.0, "delta": 1e-5, "sampling_rate": 1.0, "steps": 10}
    assert calibrate_dpsgd(**plan) == pytest.approx(math.sqrt(10 / (2 * rho_from_epsilon(2, 1e-5))), rel=1e-8)
    by_mu = math.sqrt(10) / gaussian_mu(2, 1e-5)
    assert calibrate_dpsgd(**plan, accountant="pld") == pytest.approx(by_mu, rel=2e-4)


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.0}, {"delta": 0.0}, {"sampling_rate": 1.5}, {"steps": 0}, {"prior_rho": 9.0}, {"accountant": "gdp"}],
)
def test_calibration_refuses_bad_arguments_by_name(change: dict[str, object]) -> None:
    (name,) = change
    with pytest.raises(ValueError, match=name):
        calibrate_dpsgd(**({"epsilon": 1.0, **TCGA} | change))


def test_sampled_plans_are_never_under_reported() -> None:
    """σ=1, q=.01, T=1000, δ=1e-5: PRV brackets ε by [1.818, 1.838]; the central-limit μ gives 1.618, which is wrong."""
    cost = compose([SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 1000)], 1e-5)
    assert 1.818 <= cost.epsilon_pld <= 1.838
    assert cost.epsilon_rdp >= 1.838
    assert cost.mu is None
    clt_mu = 0.01 * math.sqrt(1000 * math.expm1(1))
    assert gaussian_epsilon(clt_mu, 1e-5) == pytest.approx(1.618, abs=5e-4)


@pytest.mark.parametrize(
    ("cell", "epsilon", "sum_noise", "count_noise"),
    [
        (42, 1, 0.830, 26.1),
        (42, 3, 0.288, 9.0),
        (42, 8, 0.117, 3.7),
        (330, 1, 0.106, 3.3),
        (330, 3, 0.037, 1.2),
        (330, 8, 0.015, 0.5),
    ],
)
def test_noise_table_of_8_1(cell: int, epsilon: float, sum_noise: float, count_noise: float) -> None:
    """8-1 §2.2: R = 4.5, shares 20 % for counts and 40 % for sums, δ = 1e-5."""
    rho = rho_from_epsilon(epsilon, 1e-5)
    assert sigma_from_rho(0.4 * rho, 4.5) / cell == pytest.approx(sum_noise, abs=5e-4)
    assert 100 * sigma_from_rho(0.2 * rho, 1.0) / cell == pytest.approx(count_noise, abs=0.05)


@settings(deadline=None, max_examples=200)
@example(epsilon=1e-4, delta=10**-4.125, shares=[1.0])
@example(epsilon=1e-4, delta=1e-12, shares=[1.0])
@given(epsilon=epsilons, delta=deltas, shares=st.lists(st.floats(0.01, 1), min_size=1, max_size=6))
def test_shares_of_a_budget_compose_back_to_it(epsilon: float, delta: float, shares: list[float]) -> None:
    """Never above the target, not by one rounding: a cap compares exactly."""
    shares = [share / math.fsum(shares) for share in shares]
    rho = rho_from_epsilon(epsilon, delta)
    by_rho = compose([GaussianDpEvent(sigma_from_rho(share * rho, 1.0)) for share in shares], delta)
    assert epsilon * (1 - 1e-9) <= by_rho.epsilon_rdp <= epsilon
    mu = gaussian_mu(epsilon, delta)
    by_mu = compose([GaussianDpEvent(sigma_from_mu(part, 1.0)) for part in split_mu(mu, shares)], delta)
    assert by_mu.epsilon_pld <= epsilon
    assert by_mu.mu == pytest.approx(mu, rel=1e-11)
    assert by_rho.epsilon_pld <= by_rho.epsilon_rdp


def hockey_stick(mu: float, epsilon: float) -> float:
    """δ(ε) by its definition, ∫ (φ(x−μ) − e^ε φ(x))₊ dx; nothing cancels in φ(x−μ)(1 − e^(ε−μx+μ²/2))."""
    threshold = epsilon / mu + mu / 2
    peak = max(threshold, mu)
    scale = norm.logpdf(peak - mu)

    def integrand(x: float) -> float:
        return math.exp(norm.logpdf(x - mu) - scale) * -math.expm1(epsilon - mu * x + mu * mu / 2)

    edges = sorted({threshold, *(threshold + np.arange(0.5, 12, 0.5)), *(peak + np.arange(-11, 12, 0.5))})
    edges = [edge for edge in edges if edge >= threshold]
    parts = [quad(integrand, a, b, epsabs=0, epsrel=1e-10)[0] for a, b in itertools.pairwise(edges)]
    return math.fsum(parts) * math.exp(scale)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.2, 1.0, 8.0, 100.0])
def test_mu_is_exact(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert delta * (1 - 1e-6) <= hockey_stick(mu, epsilon) <= delta
    assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    assert epsilon * (1 - 1e-6) <= gaussian_epsilon(mu, delta) <= epsilon
    assert mu > math.sqrt(2 * rho_from_epsilon(epsilon, delta))


@pytest.mark.parametrize("mu", [1e-3, 0.3, 12.0, 100.0])
def test_epsilon_of_any_mu(mu: float) -> None:
    """A ledger may hold a far too cheap mechanism; its figure must still be right."""
    epsilon = gaussian_epsilon(mu, 1e-5)
    assert 1e-5 * (1 - 1e-5) <= hockey_stick(mu, epsilon) <= 1e-5


def test_exact_mu_buys_a_quarter_over_zcdp() -> None:
    """notes: ε=2, δ=1e-5 allows μ ≈ .50 where zCDP allows .40."""
    assert gaussian_mu(2, 1e-5) == pytest.approx(0.50, abs=0.005)
    assert math.sqrt(2 * rho_from_epsilon(2, 1e-5)) == pytest.approx(0.40, abs=0.005)


def test_delta_at_epsilon_zero_is_total_variation() -> None:
    for mu in (1e-3, 0.5, 3.0, 20.0, 90.0, 200.0):
        assert gaussian_delta(mu, 0) == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-12)
    assert gaussian_epsilon(1e-3, 1e-2) == 0


@settings(deadline=None, max_examples=100)
@given(epsilon=epsilons, delta=deltas)
def test_rho_and_epsilon_are_inverse(epsilon: float, delta: float) -> None:
    assert epsilon_from_rho(rho_from_epsilon(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-12)


def test_the_closed_form_is_the_minimum_over_all_orders() -> None:
    """8-1 §2.1: ρ + 2√(ρ ln 1/δ) = min over real α > 1 of αρ + ln(1/δ)/(α−1)."""
    orders = 1 + np.geomspace(1e-2, 1e4, 2_000_001)
    for rho in (1e-4, 0.04, 1.0, 9.0):
        assert epsilon_from_rho(rho, 1e-5) == pytest.approx(np.min(orders * rho + math.log(1e5) / (orders - 1)))


def test_an_empty_plan_costs_nothing() -> None:
    for events in ([], [NoOpDpEvent()], [PoissonSampledDpEvent(0.0, GaussianDpEvent(1.0))]):
        cost = compose(events, 1e-5)
        assert (cost.epsilon_rdp, cost.epsilon_pld, cost.mu) == (0, 0, 0)


def test_gaussian_plans_carry_their_exact_mu() -> None:
    """Σ μ² over nested events: 1/2² + 3·1/4² + 1/5² (a sampling rate of 1 samples nothing)."""
    events = [
        GaussianDpEvent(2.0),
        ComposedDpEvent([SelfComposedDpEvent(GaussianDpEvent(4.0), 3), NoOpDpEvent()]),
        PoissonSampledDpEvent(1.0, GaussianDpEvent(5.0)),
    ]
    cost = compose(events, 1e-5)
    assert cost.mu == pytest.approx(math.sqrt(1 / 4 + 3 / 16 + 1 / 25), rel=1e-12)
    assert cost.epsilon_rdp == pytest.approx(epsilon_from_rho(cost.mu**2 / 2, 1e-5))
    theirs = PLDAccountant()
    for event in events:
        theirs.compose(event)
    assert cost.epsilon_pld == pytest.approx(theirs.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_few_steps_are_counted_one_by_one(steps: int) -> None:
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.3, GaussianDpEvent(1.0)), steps)
    theirs = PLDAccountant(), RdpAccountant(ORDERS)
    for accountant in theirs:
        accountant.compose(event)
    tight, renyi = (accountant.get_epsilon(1e-5) for accountant in theirs)
    cost = compose([event], 1e-5)
    assert cost.epsilon_pld == pytest.approx(tight, rel=2e-3)
    assert renyi <= cost.epsilon_rdp <= 1.3 * renyi  # theirs converts Rényi divergence to ε more tightly than 8-1


def test_mixed_plans_agree_with_dp_accounting() -> None:
    events = [GaussianDpEvent(8.0), dpsgd(MIMIC, 2.0), SelfComposedDpEvent(dpsgd(TCGA, 12.0), 2), GaussianDpEvent(6.0)]
    theirs = PLDAccountant()
    for event in events:
        theirs.compose(event)
    assert compose(events, 1e-6).epsilon_pld == pytest.approx(theirs.get_epsilon(1e-6), rel=2e-3)


@settings(deadline=None, max_examples=30)
@given(sigmas=st.lists(st.floats(0.5, 50), min_size=1, max_size=8), q=st.floats(0, 1))
def test_another_mechanism_never_lowers_the_cost(sigmas: list[float], q: float) -> None:
    plan = [PoissonSampledDpEvent(q, GaussianDpEvent(sigma)) for sigma in sigmas]
    assert epsilon_rdp(plan[1:], 1e-5) <= epsilon_rdp(plan, 1e-5) * (1 + 1e-12)


def test_an_event_that_cannot_be_accounted_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="LaplaceDpEvent"):
        compose([GaussianDpEvent(1.0), LaplaceDpEvent(1.0)], 1e-5)
