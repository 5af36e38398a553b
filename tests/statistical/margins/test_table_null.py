"""What S_pMSE of a table is on average where nothing is wrong: of a perfect fit, and of another sample."""

from __future__ import annotations

import math

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures.tables import table_utility
from synth_platform.margins.rows import Rows

pytestmark = pytest.mark.statistical

DOMAIN = Domain((Variable("x", ("0", "1", "2")), Variable("y", ("0", "1", "2", "3"))))
CELLS = np.array([[x, y] for x in range(3) for y in range(4)])
POPULATION = np.arange(2, 14) / np.arange(2, 14).sum()
DRAWS = 1000


def drawn(counts: np.ndarray) -> Rows:
    return Rows(DOMAIN, np.repeat(CELLS, counts, axis=0))


@pytest.mark.parametrize(("real", "synthetic"), [(3000, 3000), (3000, 1000), (1500, 4500)])
def test_it_is_one_for_a_perfect_fit_and_more_for_an_independent_sample(real: int, synthetic: int) -> None:
    """Mean over 1,000 pairs: 1 when the synthetic rows are drawn from the real proportions, N / (N − 1) / (1 − c) when
    both are samples of one population (exact: Pearson's statistic has mean N df / (N − 1) over the permutations).

    Band: 4.5 standard errors and, for a perfect fit, half a percent for the asymptotic mean; 6 comparisons fail by
    chance with probability below 5e-5.
    """
    rng = np.random.default_rng(11)
    n, c = real + synthetic, synthetic / (real + synthetic)
    fit, sample = np.empty(DRAWS), np.empty(DRAWS)
    for draw in range(DRAWS):
        d = rng.multinomial(real, POPULATION)
        fit[draw] = table_utility(drawn(d), drawn(rng.multinomial(synthetic, d / real)))[0].s_pmse
        sample[draw] = table_utility(drawn(d), drawn(rng.multinomial(synthetic, POPULATION)))[0].s_pmse
    root = 4.5 / math.sqrt(DRAWS)
    assert abs(fit.mean() - 1) < root * fit.std() + 0.005
    assert abs(sample.mean() - n / (n - 1) / (1 - c)) < root * sample.std()
