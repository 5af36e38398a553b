"""What S_pMSE of both propensity models is on average where nothing is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.pmse import Propensity, cart_propensity, logistic_propensity
from synth_platform.margins.rows import Rows

pytestmark = pytest.mark.statistical

DOMAIN = Domain(tuple(Variable(name, tuple("01234")) for name in "abcd"))


def population(count: int, rng: np.random.Generator) -> np.ndarray:
    """Four variables of five categories that depend on each other through a common value."""
    common = rng.standard_normal((count, 1))
    return np.clip(np.rint(2 + common + rng.standard_normal((count, 4))), 0, 4).astype(np.int64)


@pytest.mark.parametrize(("real", "synthetic"), [(1500, 1500), (1500, 500), (800, 2400)])
@pytest.mark.parametrize(("model", "draws"), [("logistic", 150), ("cart", 40)])
def test_it_is_one_for_a_perfect_fit_and_more_for_an_independent_sample(
    model: str, draws: int, real: int, synthetic: int
) -> None:
    """Mean: 1 when synthetic rows are drawn from the real ones, 1 / (1 − c) when both are samples of one population.

    Band: 4 standard errors over the draws and 4 percent for the asymptotic mean (a halved permutation mean is off by
    33 percent at 1,500 and 500 rows); 12 comparisons fail by chance with probability below 8e-4.
    """
    rng = np.random.default_rng(3)
    propensity: Callable[[Compared], Propensity] = (
        logistic_propensity if model == "logistic" else lambda compared: cart_propensity(compared, rng, 10)
    )
    fit, sample = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        codes = population(real, rng)
        own = Rows(DOMAIN, codes)
        again = Compared(own, Rows(DOMAIN, codes[rng.integers(0, real, synthetic)]))
        fit[draw] = propensity(again).s_pmse
        sample[draw] = propensity(Compared(own, Rows(DOMAIN, population(synthetic, rng)))).s_pmse
    root = 4 / math.sqrt(draws)
    assert abs(fit.mean() - 1) < root * fit.std() + 0.04
    assert abs(sample.mean() / again.independent_sample - 1) < root * sample.std() / again.independent_sample + 0.04
