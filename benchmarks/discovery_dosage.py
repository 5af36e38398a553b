"""Log e-values of genotypes per CPU second, streamed in blocks, against two plain NumPy loops over the variants.

    python -m benchmarks.discovery_dosage [variants]

All three compute the same two-sided exact tilted permutation e-value. *records*: the elementary symmetric polynomial
one record at a time in the log domain, as the definition reads. *counts*: what a careful user writes per variant, three
binomial vectors of the genotype counts convolved. The loops run on fewer variants; the results must agree.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom

from synth_platform.discovery.statistics.dosage import DosageStatistic

BLOCK = 20_000


def log_choices(n: int, chosen: int) -> float:
    return float(gammaln(n + 1) - gammaln(chosen + 1) - gammaln(n - chosen + 1))


def by_records(genotypes: np.ndarray, kappa: float, chosen: int) -> float:
    """log [e_chosen / C(n, chosen)] of one variant."""
    log_e = np.full(chosen + 1, -np.inf)
    log_e[0] = 0.0
    for x in genotypes:
        log_e[1:] = np.logaddexp(log_e[1:], kappa * x + log_e[:-1])
    return float(log_e[-1]) - log_choices(len(genotypes), chosen)


def by_counts(genotypes: np.ndarray, kappa: float, chosen: int) -> float:
    """The same from three convolved binomials at odds chosen / (n − chosen), moved to the mean weight."""
    n = len(genotypes)
    counts = np.bincount(genotypes, minlength=3)
    log_odds = np.log(chosen / (n - chosen)) + kappa * (np.arange(3) - genotypes.mean())
    mass = np.ones(1)
    for count, log_odd in zip(counts, log_odds, strict=True):
        mass = np.convolve(mass, binom.pmf(np.arange(count + 1), count, 1 / (1 + np.exp(-log_odd))))
    log_z = log_odds[0]
    return float(counts @ np.logaddexp(0, log_odds) - chosen * log_z + np.log(mass[chosen])) - log_choices(n, chosen)


def loop(
    normaliser: Callable[[np.ndarray, float, int], float], values: np.ndarray, case: np.ndarray, kappa: float
) -> np.ndarray:
    """Two-sided log e-values, one variant after the other."""
    chosen = int(case.sum())
    result = []
    for genotypes in values.T:
        up = kappa * genotypes[case].sum(dtype=np.int64) - normaliser(genotypes, kappa, chosen)
        mirror = 2 - genotypes
        down = kappa * mirror[case].sum(dtype=np.int64) - normaliser(mirror, kappa, chosen)
        result.append(np.logaddexp(up, down) - np.log(2))
    return np.array(result)


def timed(task: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    start = time.process_time()
    result = task()
    return result, time.process_time() - start


def main() -> None:
    variants = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{'n':>6} {'method':>8} {'variants':>10} {'CPU s':>8} {'per CPU s':>10} {'ours is':>9} {'peak MiB':>9}")
    for n in (500, 2000):
        rng = np.random.default_rng(n)
        case = rng.permutation(np.arange(n) < n // 2)
        values = rng.binomial(2, rng.beta(0.8, 2.5, BLOCK), (n, BLOCK)).astype(np.int8)
        statistic = DosageStatistic.designed(
            n // 2, n - n // 2, frequency=0.25, features=variants, size=40, alpha=0.05, value_mu=0.1
        )
        blocks = max(1, variants // BLOCK)
        _, ours = timed(lambda values=values, s=statistic, c=case, k=blocks: [s.log_e(values, c) for _ in range(k)][-1])
        rate = blocks * BLOCK / ours
        tracemalloc.start()
        log_e = statistic.log_e(values, case)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        print(f"{n:>6} {'ours':>8} {blocks * BLOCK:>10,} {ours:>8.2f} {rate:>10,.0f} {'':>9} {peak:>9.1f}")
        for name, normaliser, some in (("counts", by_counts, 400), ("records", by_records, 40_000 // n)):
            theirs, took = timed(
                lambda f=normaliser, k=some, v=values, c=case, s=statistic: loop(f, v[:, :k], c, s.kappa)
            )
            if not np.allclose(theirs, log_e[:some], rtol=1e-8, atol=1e-8):
                raise SystemExit(f"{name} disagrees with ours at n = {n}")
            print(f"{n:>6} {name:>8} {some:>10,} {took:>8.2f} {some / took:>10,.0f} {rate * took / some:>8,.0f}x")
    print(f"peak: allocated beside a block of {BLOCK:,} variants of int8 genotypes")


if __name__ == "__main__":
    main()
