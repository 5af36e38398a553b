"""Rows drawn by weight against the weights. Seeds are fixed; each test states its false-alarm probability."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.weighted_rows import fit_weighted_rows
from synth_platform.margins.rows import Rows, two_way_margins

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
ROWS = 100_000


def test_rows_have_the_fitted_probabilities_and_repeat_as_the_effective_sample_size_says():
    """Pearson's statistic over tables of three variables, and repeats within 6 standard errors; false alarm 1e-5."""
    domain = Domain(tuple(Variable(name, tuple(map(str, range(3)))) for name in "abcd"))
    observed = np.random.default_rng(1).integers(0, 3, (300, 4)) * [[1, 1, 1, 0]]
    observed[:, 3] = (observed[:, 0] + (observed[:, 1] > 0)) // 2
    margins = two_way_margins(Rows(domain, observed))
    fit = fit_weighted_rows(margins, np.random.default_rng(2), 3_000)
    codes = fit.draw(ROWS, np.random.default_rng(3))
    for names in combinations("abcd", 3):
        expected = ROWS * fit.probabilities(names).ravel()
        counts = Rows(domain, codes).count(names).ravel()
        inhabited = expected > 0
        assert counts[~inhabited].sum() == 0
        assert expected[inhabited].min() > 5
        statistic = ((counts - expected)[inhabited] ** 2 / expected[inhabited]).sum()
        assert statistic < chi2.isf(FALSE_ALARM, inhabited.sum() - 1)
    labelled = np.column_stack([np.arange(len(fit.weights))])
    single = Domain((Variable("row", tuple(map(str, labelled[:, 0]))),))
    numbered = type(fit)(single, labelled.astype(np.int16), fit.weights, fit.report)
    one, other = (numbered.draw(ROWS, np.random.default_rng(seed))[:, 0] for seed in (4, 5))
    rate = 1 / fit.report.effective_sample_size
    assert abs((one == other).mean() - rate) < 6 * np.sqrt(rate / ROWS)
