"""Rows of a junction tree against its own probabilities. Seeds are fixed."""

import numpy as np
import pytest
from scipy.stats import chi2

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.junction_tree import fit_junction_tree
from synth_platform.margins.margin import Margin, MarginSet

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
ROWS = 200_000


def test_ancestral_sampling_draws_the_dense_product():
    """Pearson's statistic over all 192 cells of p(a, b, c) p(c, b, d) / p(b, c) × p(e, f); false alarm 1e-6."""
    sizes = dict(zip("abcdef", (2, 3, 2, 4, 2, 2), strict=True))
    domain = Domain(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in sizes.items()))
    full = np.random.default_rng(1).gamma(1.0, size=domain.shape)
    full /= full.sum()
    left, right, apart = full.sum((3, 4, 5)), full.sum((0, 4, 5)), full.sum((0, 1, 2, 3))
    margins = (
        Margin(("a", "b", "c"), left, ()),
        Margin(("c", "b", "d"), right.transpose(1, 0, 2), ()),
        Margin(("f", "e"), apart.T, ()),
    )
    p = np.einsum("abc,bcd,bc,ef->abcdef", left, right, 1 / full.sum((0, 3, 4, 5)), apart)
    codes = fit_junction_tree(MarginSet(domain, margins)).draw(ROWS, np.random.default_rng(2))
    counts = np.bincount(np.ravel_multi_index(tuple(codes.T), domain.shape), minlength=domain.cells)
    expected = ROWS * p.ravel()
    assert expected.min() > 5
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, domain.cells - 1)
