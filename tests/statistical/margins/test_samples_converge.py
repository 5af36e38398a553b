"""Margins of any sampled table converge to the fit like 1/√n, whichever engine fitted it.

Of n independent rows in k cells, the total variation between shares and probabilities has mean at most ½ √(k/n), and
changes by at most 1/n when one row changes, so that it exceeds the mean by √(ln(1/δ) / 2n) with probability δ at most
(McDiarmid 1989). δ is 1e-9 for each of some 1,000 tables: false alarms 1e-6. Seeds are fixed.
"""

from itertools import combinations, pairwise

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.fitting.junction_tree import fit_junction_tree
from synth_platform.margins.fitting.weighted_rows import fit_weighted_rows
from synth_platform.margins.rows import Rows, count_margins
from synth_platform.margins.sample import sample

pytestmark = pytest.mark.statistical

DELTA = 1e-9
SIZES = (100, 2_000, 40_000)


def population(seed):
    """300 rows of four to six variables with two to six categories that follow one hidden cause."""
    generator = np.random.default_rng(seed)
    shape = generator.integers(2, 7, generator.integers(4, 7))
    names = "abcdef"[: len(shape)]
    domain = Domain(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip(names, shape, strict=True)))
    score = generator.normal(size=(300, 1)) + generator.normal(size=(300, len(shape)))
    return Rows(domain, np.clip(np.floor(score + shape / 2), 0, shape - 1).astype(np.int64))


ENGINES = {
    "dense": fit_dense,
    "junction_tree": fit_junction_tree,
    "weighted_rows": lambda margins: fit_weighted_rows(margins, np.random.default_rng(0), 5_000),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(4))
def test_margins_of_sampled_tables_converge_to_the_fit(engine, seed):
    rows = population(seed)
    names = rows.domain.names
    pairs = list(pairwise(names)) if engine == "junction_tree" else list(combinations(names, 2))
    fitted = ENGINES[engine](count_margins(rows, pairs, "rows"))
    assert fitted.report.engine == engine
    for size in SIZES:
        (drawn,) = sample(fitted, np.random.default_rng([seed, size]), size)
        for some in (*((name,) for name in names), *combinations(names, 2), *combinations(names, 3)):
            exact = fitted.probabilities(some)
            apart = np.abs(drawn.count(some) / size - exact).sum() / 2
            assert apart < np.sqrt(exact.size / size) / 2 + np.sqrt(np.log(1 / DELTA) / (2 * size))
