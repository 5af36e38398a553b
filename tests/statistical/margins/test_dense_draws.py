"""Margins of drawn rows converge to those of the dense fit."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting import slabs
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.rows import Rows, two_way_margins

pytestmark = pytest.mark.statistical
SHAPE = (4, 3, 5, 2, 6)
FALSE_ALARM = 1e-4


@pytest.mark.parametrize("slab", [30, 2**18])
def test_every_three_way_margin_of_drawn_rows_is_the_fits(monkeypatch, slab):
    """Chi-square of each of the 10 three-way tables, Bonferroni: false alarms 1e-4 a slab size."""
    monkeypatch.setattr(slabs, "MOST_SLAB_CELLS", slab)
    generator = np.random.default_rng(20)
    domain = Domain(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip("abcde", SHAPE, strict=True)))
    latent = generator.normal(size=(3000, 1))
    codes = np.clip(
        np.floor(1.2 * latent + generator.normal(size=(3000, 5)) + np.array(SHAPE) / 2), 0, np.array(SHAPE) - 1
    )
    fit = fit_dense(two_way_margins(Rows(domain, codes.astype(np.int64))))
    drawn = Rows(domain, fit.draw(200_000, generator))
    tables = list(combinations(domain.names, 3))
    for names in tables:
        expected = fit.probabilities(names).ravel() * len(drawn)
        rare = expected < 5
        observed = drawn.count(names).ravel()
        assert not observed[expected == 0].any()
        f_obs = np.append(observed[~rare], observed[rare].sum())
        f_exp = np.append(expected[~rare], expected[rare].sum())
        keep = f_exp > 0
        f_exp = f_exp[keep] * f_obs[keep].sum() / f_exp[keep].sum()
        assert chisquare(f_obs[keep], f_exp).pvalue > FALSE_ALARM / len(tables)
