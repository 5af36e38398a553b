"""What intervals of a perfect fit overlap by on average, and those of another sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures.models import LogisticModel, ModelUtility, model_utility
from synth_platform.margins.rows import Rows

pytestmark = pytest.mark.statistical

DOMAIN = Domain((Variable("x", ("0", "1", "2")), Variable("w", ("0", "1")), Variable("y", ("no", "yes"))))
MODEL = LogisticModel("y", "yes", ("x", "w"))
DRAWS = 200


def population(count: int, rng: np.random.Generator) -> np.ndarray:
    x, w = rng.integers(0, (3, 2), (count, 2)).T
    return np.column_stack([x, w, rng.random(count) < expit(-0.5 + 0.4 * x - 0.6 * w)]).astype(np.int64)


def test_a_perfect_fit_overlaps_by_eight_tenths() -> None:
    """Means over 200 pairs of 2,000 rows: overlap .796 and |z| .798 for rows drawn from the real ones, overlap .712 for
    another sample of the population. The model holds there, so its standard errors do too.

    Band: 4.5 standard errors of the means over pairs; 3 comparisons fail by chance with probability below 3e-5.
    """
    rng = np.random.default_rng(9)
    fit: list[ModelUtility] = []
    sample: list[ModelUtility] = []
    for _ in range(DRAWS):
        codes = population(2000, rng)
        again = Rows(DOMAIN, codes[rng.integers(0, 2000, 2000)])
        fit.append(model_utility(Rows(DOMAIN, codes), again, MODEL))
        sample.append(model_utility(Rows(DOMAIN, codes), Rows(DOMAIN, population(2000, rng)), MODEL))
    for values, expected in (
        ([one.mean_overlap for one in fit], 1 - math.sqrt(2 / math.pi) / (2 * 1.959964)),
        ([one.mean_absolute_z for one in fit], math.sqrt(2 / math.pi)),
        ([one.mean_overlap for one in sample], 1 - math.sqrt(4 / math.pi) / (2 * 1.959964)),
    ):
        assert abs(np.mean(values) - expected) < 4.5 * np.std(values) / math.sqrt(DRAWS)
