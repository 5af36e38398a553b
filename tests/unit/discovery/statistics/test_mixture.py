"""Mixtures: the average of e-values, and the largest of their sensitivities."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from synth_platform.discovery.statistics.mann_whitney import MannWhitney
from synth_platform.discovery.statistics.mixture import Mixture
from synth_platform.discovery.statistics.protocol import LogEStatistic
from synth_platform.discovery.statistics.tilted_permutation import TiltedPermutation
from synth_platform.discovery.statistics.z_score import ZScore

CASE = np.arange(30) < 12
VALUES = np.random.default_rng(0).uniform(0, 2, (30, 25))
FIRST = MannWhitney(12, 18, 0.02)
SECOND = TiltedPermutation(12, 18, 0.4, 0.0, 2.0)


def test_it_is_the_weighted_average() -> None:
    mixture = Mixture((FIRST, SECOND), (0.25, 0.75))
    want = np.log(0.25 * np.exp(FIRST.log_e(VALUES, CASE)) + 0.75 * np.exp(SECOND.log_e(VALUES, CASE)))
    assert mixture.log_e(VALUES, CASE) == pytest.approx(want, rel=1e-12)
    assert mixture.sensitivity == max(FIRST.sensitivity, SECOND.sensitivity)


def test_the_largest_sensitivity_is_approached() -> None:
    """Claim: no smaller Δ would do: where the wilder component outweighs, the mixture moves as far as it alone."""
    mixture = Mixture(tuple(ZScore(50, 50, tilt, 0.0, 1.0, 0.5) for tilt in (0.1, 8.0)), (0.5, 0.5))
    case = np.arange(100) < 50
    apart = case.astype(np.float64)
    closer = apart.copy()
    closer[0] = 0.0
    move = np.diff(mixture.log_e(np.stack([closer, apart], axis=1), case))[0]
    assert mixture.sensitivity == pytest.approx(2 * 8.0 / math.sqrt(100))
    assert move == pytest.approx(mixture.sensitivity, rel=1e-9)


def test_a_mixture_is_a_statistic_with_parameters_for_the_ledger() -> None:
    """Claim: mixtures nest, and what they tell the ledger is JSON."""
    inner: LogEStatistic[np.ndarray] = Mixture((FIRST, SECOND), (0.5, 0.5))
    outer = Mixture((inner, FIRST), (0.5, 0.5))
    flat = Mixture((FIRST, SECOND), (0.75, 0.25))
    assert outer.log_e(VALUES, CASE) == pytest.approx(flat.log_e(VALUES, CASE), rel=1e-12)
    told = json.loads(json.dumps(outer.parameters))
    assert told["components"][1] == {
        "weight": 0.5,
        "name": "mann_whitney",
        "parameters": {"n_case": 12, "n_control": 18, "tilt": 0.02, "two_sided": True},
    }


def test_thirds_sum_to_one() -> None:
    mixture = Mixture((FIRST,) * 3, (1 / 3,) * 3)
    assert mixture.log_e(VALUES, CASE) == pytest.approx(FIRST.log_e(VALUES, CASE), rel=1e-12)
    assert math.isfinite(mixture.sensitivity)
