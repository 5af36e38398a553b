"""The public survival model agrees with lifelines, and its cumulative hazards invert."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import CoxPHFitter, NelsonAalenFitter

from synth_platform.generators.g0a.survival import KNOTS, CumulativeHazard, fit_cox, fit_cumulative_hazard


def survival_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(n, 3))
    failure = rng.exponential(1 / np.exp(h @ [0.8, -0.4, 0.0]))
    lost = rng.exponential(2.0, size=n)
    return h, np.minimum(failure, lost), (failure <= lost).astype(np.int64)


@pytest.mark.parametrize("ridge", [1.0, 16.0])
def test_ridge_cox_is_that_of_lifelines(ridge):
    """lifelines maximises the mean log likelihood - penalizer / 2 |beta|^2 on columns of unit standard deviation.

    Without ties Efron's likelihood (theirs) is Breslow's (ours).
    """
    h, time, event = survival_data(150, 3)
    h = (h - h.mean(axis=0)) / h.std(axis=0, ddof=1)
    frame = pd.DataFrame(h, columns=["a", "b", "c"]).assign(time=time, event=event)
    peer = CoxPHFitter(penalizer=ridge / len(h), l1_ratio=0.0).fit(frame, "time", "event")
    ours = fit_cox(h, time, event, (ridge,))
    np.testing.assert_allclose(ours.beta, peer.params_.to_numpy(), atol=1e-5)
    np.testing.assert_allclose(ours.covariance, peer.variance_matrix_.to_numpy(), rtol=5e-3, atol=1e-5)


def test_the_evidence_prefers_a_weak_prior_for_strong_effects_and_a_strong_one_for_none():
    rng = np.random.default_rng(5)
    ridges = (1.0, 1000.0)
    h, time, event = survival_data(400, 4)
    assert fit_cox(h, time, event, ridges).ridge == 1.0
    assert fit_cox(rng.normal(size=h.shape), time, event, ridges).ridge == 1000.0


def test_without_covariates_it_is_nelson_aalen():
    rng = np.random.default_rng(6)
    time, event = rng.exponential(1.0, 20), np.ones(20, dtype=np.int64)  # fewer events than knots: nothing is thinned
    hazard = fit_cumulative_hazard(time, event, np.ones(20))
    peer = NelsonAalenFitter(nelson_aalen_smoothing=False).fit(time, event)
    np.testing.assert_allclose(hazard.at(np.sort(time)), peer.cumulative_hazard_at_times(np.sort(time)), rtol=1e-9)


def test_tied_times_leave_the_risk_set_together():
    hazard = fit_cumulative_hazard(np.array([1.0, 1.0, 2.0]), np.array([1, 1, 1]), np.ones(3))
    np.testing.assert_allclose(hazard.at(np.array([1.0, 2.0])), [2 / 3, 2 / 3 + 1])


@given(seed=st.integers(0, 500), n=st.integers(2, 80))
@settings(max_examples=25, deadline=None)
def test_time_and_cumulative_hazard_invert_each_other(seed, n):
    rng = np.random.default_rng(seed)
    time = np.ceil(rng.exponential(50, n))
    hazard = fit_cumulative_hazard(time, rng.integers(0, 2, n), np.exp(rng.normal(size=n)))
    asked = rng.uniform(0, 2 * time.max(), 20)
    assert len(hazard.times) <= KNOTS + 1
    np.testing.assert_allclose(hazard.inverse(hazard.at(asked)), asked, rtol=1e-6, atol=1e-6)


def test_beyond_the_last_knot_the_mean_hazard_goes_on():
    hazard = CumulativeHazard(np.array([0.0, 10.0]), np.array([0.0, 0.5]))
    np.testing.assert_allclose(hazard.at(np.array([20.0])), [1.0])
    np.testing.assert_allclose(hazard.inverse(np.array([1.0])), [20.0])
