"""Costs by quadrature and bisection against closed forms, dp_accounting and the figures of 8-1 §2.5."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from synth_platform.audit import accounting
from synth_platform.audit.accounting import Composed, compose
from synth_platform.audit.findings import MalformedError

GAUSS = {"type": "GaussianDpEvent", "noise_multiplier": 2.0}


@pytest.mark.parametrize("order", [2, 3, 17, 64, 512])
@pytest.mark.parametrize(("q", "sigma"), [(62 / 372, 15.94), (0.02, 0.92), (0.5, 2.0), (0.001, 5.0)])
def test_sampled_gaussian_is_dp_accountings(order: int, q: float, sigma: float) -> None:
    accountant = RdpAccountant([order]).compose(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)))
    assert accounting.sampled_gaussian_rdp(order, q, sigma) == pytest.approx(float(accountant._rdp[0]), rel=1e-7)


@pytest.mark.parametrize("mu", [0.01, 0.25, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_gaussian_cost_meets_the_closed_form(mu: float, delta: float) -> None:
    """delta = Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2) (Balle and Wang 2018)."""
    epsilon = accounting.epsilon_gaussian(mu, delta)
    back = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    assert back == pytest.approx(delta, rel=1e-5)


def test_gaussian_cost_is_that_of_a_privacy_loss_distribution() -> None:
    expected = PLDAccountant().compose(GaussianDpEvent(1.0)).get_epsilon(1e-5)
    assert accounting.epsilon_gaussian(1.0, 1e-5) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rho", [1e-6, 0.01, 1.0, 50.0])
def test_renyi_cost_of_a_gaussian_plan_is_the_closed_form(rho: float) -> None:
    expected = rho + 2 * math.sqrt(rho * math.log(1e5))
    assert accounting.epsilon_rdp(Composed(2 * rho), 1e-5) == pytest.approx(expected, rel=1e-9)


def test_tight_bracket_of_a_sampled_plan_holds_dp_accountings_figure() -> None:
    plan = Composed(0.0, Counter({(0.1, 2.0): 50}))
    event = PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0))
    expected = PLDAccountant().compose(event, 50).get_epsilon(1e-5)
    low, high = accounting.epsilon_tight(plan, 1e-5)
    assert low <= expected <= high * (1 + 1e-3)
    assert high - low < 0.01 * high


@pytest.mark.parametrize("epsilon", [0.0, 0.2006, 1.0, 3.0, 8.0])
def test_auroc_bound_is_the_closed_form(epsilon: float) -> None:
    expected = 1 - (1 - 1e-5) ** 2 / (1 + math.exp(epsilon))
    assert accounting.auroc_bound(epsilon, 1e-5) == pytest.approx(expected, abs=1e-9)


def test_composition_counts_what_is_nested() -> None:
    inner = {"type": "ComposedDpEvent", "events": [GAUSS, {"type": "NoOpDpEvent"}]}
    sampled = {"type": "PoissonSampledDpEvent", "sampling_probability": 0.5, "event": GAUSS}
    total = compose([{"type": "SelfComposedDpEvent", "event": inner, "count": 4}, sampled])
    assert total.precision == pytest.approx(1.0)
    assert total.sampled == {(0.5, 2.0): 1}
    assert total.mu is None


@pytest.mark.parametrize("eta", [1e-3, 0.08, 1.0, 6.0, 60.0])
def test_a_selection_costs_what_randomised_response_of_half_its_range_costs(eta: float) -> None:
    """Phi(mu/2) = 1 / (1 + exp(-eta/2)), from the sum of squares over a self-composition."""
    event = {"type": "SelfComposedDpEvent", "event": {"type": "BoundedRangeDpEvent", "eta": eta}, "count": 9}
    mu = math.sqrt(compose([event]).precision) / 3
    assert norm.logsf(mu / 2) == pytest.approx(-math.log1p(math.exp(eta / 2)), rel=1e-9)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "BoundedRangeDpEvent", "eta": 0},
        {"type": "LaplaceDpEvent"},
        GAUSS | {"noise_multiplier": 0},
        GAUSS | {"noise_multiplier": "2"},
    ],
)
def test_an_event_that_cannot_be_accounted_is_malformed(event: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        compose([event])
