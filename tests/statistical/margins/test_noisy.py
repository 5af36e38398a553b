"""Noise of margins: its size on every table, totals and parts without bias, and what agreement takes off it.

Seeds are fixed; each test states its false-alarm probability.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.noise.noisy import count_query, measure_declared
from synth_platform.margins.rows import Rows, two_way
from synth_platform.privacy.accounting import gaussian_mu
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.rehearsal import Rehearsal

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
SHAPE = (2, 9, 3)
DOMAIN = Domain(tuple(Variable(n, tuple(map(str, range(size)))) for n, size in zip("abc", SHAPE, strict=True)))
MU = gaussian_mu(1.0, 1e-5)
SIGMA = math.sqrt(3) / MU
RUNS = 250


def people(rows: int = 30_000) -> Rows:
    """Nobody is so rare that noise could leave a count below nought."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, rows)
    return Rows(DOMAIN, np.stack([a, rng.integers(0, 9, rows), (a + rng.integers(0, 3, rows)) % 3], axis=1))


@pytest.fixture(scope="module")
def measured() -> list[list[np.ndarray]]:
    """Denoised counts of every pair less the true ones, for each of RUNS independent draws."""
    rehearsal = Rehearsal(people(), SeededNoise(21))
    true = [people().count(names) for names in two_way(DOMAIN)]
    runs = []
    for _ in range(RUNS):
        margins, _ = measure_declared(rehearsal.ask, DOMAIN, two_way(DOMAIN), (), MU)
        runs.append([margin.counts - counts for margin, counts in zip(margins, true, strict=True)])
    return runs


def within(values: np.ndarray, variance: float) -> bool:
    """Whether independent N(0, variance) values have that variance and mean nought; false alarm 2·FALSE_ALARM."""
    n = values.size
    spread = float(np.square(values).sum()) / variance
    lowest, highest = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n)
    centred = abs(values.mean()) * math.sqrt(n / variance) < norm.isf(FALSE_ALARM / 2)
    return bool(lowest < spread < highest and centred)


def test_every_table_has_the_noise_that_was_accounted() -> None:
    """24,000 to 108,000 cells a table, each against σ = √k/μ; false alarm 6e-6. Noise of one table that is
    3 % too small, or drawn once for two tables, is seen."""
    query = count_query(DOMAIN, two_way(DOMAIN), SIGMA)
    exact = query.evaluate(people())
    source = SeededNoise(22)
    noise = np.stack([query.answer(exact, source)[0] - exact for _ in range(4_000)])
    ends = np.cumsum(query.sizes)
    for first, last in zip((0, *ends[:-1]), ends, strict=True):
        assert within(noise[:, first:last], SIGMA**2)
    correlation = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    cells = noise.shape[1] * (noise.shape[1] - 1) / 2
    assert np.abs(correlation).max() * math.sqrt(len(noise)) < norm.isf(FALSE_ALARM / (2 * cells)) * 1.02


def test_totals_are_without_bias_and_weighted_by_the_inverse_of_their_variance(
    measured: list[list[np.ndarray]],
) -> None:
    """Claim: one total for all tables, of variance 1/Σ 1/(σ² cells) around the people there are: never the very number
    of them. 250 draws; false alarm 2e-6, and less than 1e-9 for the second assertion."""
    totals = np.array([[table.sum() for table in run] for run in measured])
    np.testing.assert_allclose(totals, totals[:, :1] @ np.ones((1, 3)), atol=1e-6)
    variance = 1 / sum(1 / (SIGMA**2 * cells) for cells in (18, 6, 27))
    assert within(totals[:, 0], variance)
    assert (np.abs(totals) > 1e-9).all()


def test_counts_of_one_variable_are_those_of_all_its_tables_together(measured: list[list[np.ndarray]]) -> None:
    """Claim: beyond the total, a variable of n categories has its counts from both of its tables: each contrast of them
    has variance 1/(1/σ²m + 1/σ²m'), where m and m' are the categories of the other two. 250 draws of n − 1 contrasts
    each; false alarm 2e-6 a variable."""
    for axis, tables in ((0, ((0, 1), (1, 1))), (1, ((0, 0), (2, 1))), (2, ((1, 0), (2, 0)))):
        others = [size for other, size in enumerate(SHAPE) if other != axis]
        variance = 1 / sum(1 / (SIGMA**2 * m) for m in others)
        contrasts = np.linalg.svd(np.ones((1, SHAPE[axis])))[2][1:]
        for table, over in tables:
            ones = np.array([run[table].sum(axis=over) for run in measured])
            assert within(ones @ contrasts.T, variance)


def test_agreement_takes_noise_off_every_cell(measured: list[list[np.ndarray]]) -> None:
    """Claim: the variance of a cell is σ² less what other tables know of it, part by part (the closed form of the
    decomposition); 250 draws, relative error below 6·√(2/(250·cells/3)): false alarm below 1e-6."""
    for at, axes in enumerate(((0, 1), (0, 2), (1, 2))):
        rows, columns = (SHAPE[axis] for axis in axes)
        other = next(size for axis, size in enumerate(SHAPE) if axis not in axes)
        cells = rows * columns
        interaction = SIGMA**2 * (rows - 1) * (columns - 1) / cells
        of_rows = (rows - 1) / rows / columns**2 / sum(1 / (SIGMA**2 * m) for m in (columns, other))
        of_columns = (columns - 1) / columns / rows**2 / sum(1 / (SIGMA**2 * m) for m in (rows, other))
        of_total = 1 / cells**2 / sum(1 / (SIGMA**2 * m) for m in (18, 6, 27))
        expected = interaction + of_rows + of_columns + of_total
        found = np.mean([np.square(run[at]).mean() for run in measured])
        assert expected < 0.97 * SIGMA**2
        assert found == pytest.approx(expected, rel=6 * math.sqrt(2 / (RUNS * cells / 3)))
