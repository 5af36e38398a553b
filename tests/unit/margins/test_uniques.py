"""Replicated uniques against counting by hand, and their expectation against enumeration and drawn rows."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.fitting.fit import fit
from synth_platform.margins.measures.uniques import expected_replicated, replicated_uniques
from synth_platform.margins.rows import Rows, count_margins, two_way_margins

SIZES = (4, 3, 5, 2)
DOMAIN = Domain(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip("abcd", SIZES, strict=True)))


def people(count: int, seed: int) -> Rows:
    generator = np.random.default_rng(seed)
    latent = generator.normal(size=(count, 1))
    codes = np.clip(np.rint(latent + generator.normal(size=(count, 4)) + 1), 0, np.array(SIZES) - 1)
    return Rows(DOMAIN, codes.astype(np.int64))


def by_hand(real: Rows, synthetic: Rows) -> tuple[int, int, int, int, int]:
    ours, theirs = (Counter(map(tuple, rows.codes.tolist())) for rows in (real, synthetic))
    times = [theirs[row] for row, count in ours.items() if count == 1]
    return len(times), sum(t > 0 for t in times), sum(t == 1 for t in times), sum(times), len(synthetic)


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_a_count_by_hand(seed):
    real, synthetic = people(120, seed), people(300, seed + 50)
    found = replicated_uniques(real, synthetic)
    expected = by_hand(real, synthetic)
    assert (found.real, found.replicated, found.replicated_once, found.synthetic, found.of) == expected
    assert found.real > 0
    assert found.share == expected[1] / expected[0]


def test_a_copy_replicates_every_unique_once():
    real = people(200, 1)
    found = replicated_uniques(real, real)
    assert found.real == found.replicated == found.replicated_once == found.synthetic


def test_a_table_without_uniques_has_nothing_to_replicate():
    real = people(50, 1)
    twice = Rows(DOMAIN, np.repeat(real.codes, 2, axis=0))
    assert replicated_uniques(twice, real).real == 0
    assert replicated_uniques(twice, real).share == 0


def test_domains_beyond_64_bits_are_counted():
    wide = Domain(tuple(Variable(f"v{i}", tuple(map(str, range(1000)))) for i in range(30)))
    codes = np.random.default_rng(1).integers(0, 1000, (40, 30))
    codes[1], codes[3] = codes[0], codes[2]
    codes[3, 29] = (codes[3, 29] + 1) % 1000  # differs from its twin in the last variable alone
    real = Rows(wide, codes)
    assert by_hand(real, real)[0] == 38
    assert replicated_uniques(real, real).real == 38


def uniques(real: Rows) -> list[tuple[int, ...]]:
    return [row for row, count in Counter(map(tuple, real.codes.tolist())).items() if count == 1]


@pytest.mark.parametrize("engine", ["dense", "junction_tree", "weighted_rows"])
def test_the_expectation_is_the_sum_over_cells_of_the_fit(engine):
    """Against probabilities of the whole table, which all engines can be asked for in so small a domain."""
    real = people(150, 3)
    chain = [("b", "a"), ("b", "c"), ("d", "c")]
    fitted = fit(count_margins(real, chain, "microdata"), np.random.default_rng(1), engine)
    table = fitted.probabilities(DOMAIN.names)
    expected = sum(1 - (1 - table[row]) ** 400 for row in uniques(real))
    assert expected_replicated(real, fitted, 400) == pytest.approx(expected, rel=1e-9)


def test_the_expectation_is_the_mean_of_drawn_tables():
    """400 tables of a fit; 4.5 standard errors, a false alarm in 1e5."""
    real = people(150, 4)
    fitted = fit_dense(two_way_margins(real))
    generator = np.random.default_rng(2)
    drawn = [replicated_uniques(real, Rows(DOMAIN, fitted.draw(150, generator))).replicated for _ in range(400)]
    assert abs(np.mean(drawn) - expected_replicated(real, fitted, 150)) < 4.5 * np.std(drawn) / 20


def test_a_certain_cell_is_replicated():
    only = Domain((Variable("x", ("0",)), Variable("y", ("0",))))
    real = Rows(only, np.zeros((1, 2), np.int64))
    assert expected_replicated(real, fit_dense(two_way_margins(real)), 1) == pytest.approx(1)


def test_copies_are_more_than_the_fit_would_replicate():
    """Of 2,000 people in 5⁶ cells: half a table of copies exceeds the expectation, half a table of others does not."""
    wide = Domain(tuple(Variable(f"v{i}", tuple("01234")) for i in range(6)))
    generator = np.random.default_rng(3)

    def population(count: int) -> np.ndarray:
        latent = generator.normal(size=(count, 1))
        return np.clip(np.rint(latent + generator.normal(size=(count, 6)) + 2), 0, 4).astype(np.int64)

    real = Rows(wide, population(2000))
    fitted = fit_dense(two_way_margins(real), tolerance=1e-3)
    expected = expected_replicated(real, fitted, 2000)
    drawn = fitted.draw(1000, generator)
    for half, exceeds in ((real.codes[:1000], True), (population(1000), False)):
        found = replicated_uniques(real, Rows(wide, np.concatenate([drawn, half]))).replicated
        assert bool(found > expected + 4.5 * np.sqrt(expected)) is exceeds


def test_another_domain_is_refused():
    other = Domain(DOMAIN.variables[:3])
    fitted = fit_dense(two_way_margins(people(100, 1)))
    with pytest.raises(ValueError, match="another domain"):
        expected_replicated(Rows(other, np.array(list(product(range(4), range(3), range(5))))), fitted, 10)
    with pytest.raises(ValueError, match="different domains"):
        replicated_uniques(people(10, 1), Rows(other, np.zeros((1, 3), np.int64)))
