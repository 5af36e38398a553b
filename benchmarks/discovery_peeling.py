"""Power and false discoveries of peeling, how the size is best chosen, what Gaussian selection costs, and scale.

    python -m benchmarks.discovery_peeling [repetitions]

m = 2,000 hypotheses, m1 of them true: z-scores of mean A, one-factor correlation rho, E = exp(λz − λ²/2). A z-score of
a balanced binary feature in n = 2,000 records moves by 2/√n when one is replaced, so Δ = 2λ/√n. mu = 1 in all, alpha =
.05.
Every private figure comes from `discovery.peeling.peel`, the code that answers queries on closed rows.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtri
from scipy.stats import false_discovery_control, norm

from synth_platform.discovery.e_bh import e_bh
from synth_platform.discovery.peeling import SIZE_SHARE, Peeled, Size, peel, size_choice
from synth_platform.discovery.selection import gumbel_scale, selection_mu
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource, SeededNoise

M, RECORDS, TILT, MU, ALPHA = 2_000, 2_000, 4.07, 1.0, 0.05
SENSITIVITY = 2 * TILT / math.sqrt(RECORDS)
SIGNALS = (10, 40, 120)
CELLS = tuple((m1, mean, rho) for m1 in SIGNALS for mean in (5.0, 6.0) for rho in (0.0, 0.7))
FIXED = (10, 20, 40, 80, 120, 160)
GENOME = 6_200_000

Found = tuple[np.ndarray, np.ndarray | None]
Method = Callable[[np.ndarray, np.ndarray, int], Found]
"""(z, log e, seed) -> positions discovered, and without the boost where there is one."""


def z_scores(signals: int, mean: float, rho: float, seed: int, m: int = M) -> np.ndarray:
    """[m] scores, the first `signals` of them with the mean; equicorrelated by one factor."""
    rng = np.random.default_rng(seed)
    z = math.sqrt(rho) * rng.standard_normal() + math.sqrt(1 - rho) * rng.standard_normal(m)
    z[:signals] += mean
    return z


def log_e_values(z: np.ndarray) -> np.ndarray:
    return TILT * z - TILT**2 / 2


def both(peeled: Peeled) -> Found:
    unboosted = e_bh(peeled.log_e, ALPHA, hypotheses=peeled.hypotheses)
    return peeled.discoveries, peeled.positions[unboosted]


def peeling(size: Size) -> Method:
    return lambda z, log_e, seed: both(peel(log_e, SENSITIVITY, MU, size, ALPHA, SeededNoise(seed)))


def by_distance(z: np.ndarray, log_e: np.ndarray, seed: int) -> Found:
    """The size whose last e-value is nearest to its level, −|log E_(k) − level_k|; same price, same grid."""
    noise: NoiseSource = SeededNoise(seed)
    choice = size_choice(M, ALPHA, SENSITIVITY, MU)
    utility = -np.abs(np.sort(log_e)[::-1][np.array(choice.sizes) - 1] - np.array(choice.levels))
    at = int(noise.gumbel_top(utility / gumbel_scale(MU * math.sqrt(SIZE_SHARE), SENSITIVITY), 1)[0])
    return both(peel(log_e, SENSITIVITY, MU * math.sqrt(1 - SIZE_SHARE), choice.sizes[at], ALPHA, noise))


METHODS: Mapping[str, Method] = {
    "e-BH, not private": lambda z, log_e, seed: (e_bh(log_e, ALPHA), None),
    "BH of p-values, not private": lambda z, log_e, seed: (
        np.flatnonzero(false_discovery_control(norm.sf(z)) <= ALPHA),
        None,
    ),
    "all noisy": peeling(M),
    **{f"fixed {size}": peeling(size) for size in FIXED},
    "adaptive": peeling("adaptive"),
    "adaptive by distance": by_distance,
}


def shares(found: np.ndarray, signals: int) -> tuple[float, float]:
    """(power, false discovery proportion)."""
    true = int((found < signals).sum())
    return true / signals, (found.size - true) / max(found.size, 1)


def simulate(cell: tuple[int, float, float], methods: Mapping[str, Method], repetitions: int) -> dict[str, np.ndarray]:
    """Method -> [repetitions, 3]: power, power without the boost (NaN: there is none), false discovery proportion."""
    signals, mean, rho = cell
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}
    for repetition in range(repetitions):
        z = z_scores(signals, mean, rho, seed=repetition)
        log_e = log_e_values(z)
        for name, method in methods.items():
            found, unboosted = method(z, log_e, repetition)
            power, false = shares(found, signals)
            rows[name].append((power, math.nan if unboosted is None else shares(unboosted, signals)[0], false))
    return {name: np.array(row) for name, row in rows.items()}


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def power_table(repetitions: int) -> None:
    """Power and FDR of every method in every cell, and the adaptive size against the best fixed one, pairwise."""
    print(f"power (without boost) and FDR, {repetitions} repetitions; ± one standard error of power")
    for cell in CELLS:
        signals, mean, rho = cell
        rows = simulate(cell, METHODS, repetitions)
        print(f"\nm1 = {signals}, A = {mean:g}, rho = {rho:g}")
        for name, row in rows.items():
            power, error = mean_and_error(row[:, 0])
            unboosted = "" if np.isnan(row[0, 1]) else f"({row[:, 1].mean():.3f})"
            false, false_error = mean_and_error(row[:, 2])
            print(f"  {name:<28} {power:.3f} ± {error:.3f} {unboosted:<8} FDR {false:.4f} ± {false_error:.4f}")
        best = max(FIXED, key=lambda size: rows[f"fixed {size}"][:, 0].mean())
        gap, error = mean_and_error(rows["adaptive"][:, 0] - rows[f"fixed {best}"][:, 0])
        print(f"  adaptive − best fixed ({best}): {gap:+.3f} ± {error:.3f}", flush=True)


def gaussian_argmax_mu(candidates: int, ratio: float) -> float:
    """A lower bound on the true μ of telling which of `candidates` scores is largest after Gaussian noise, Δ/σ = ratio.

    Half of the scores stand Δ below the other half; a record lifts them by Δ and lowers the others by Δ. Whether the
    winner is of the first half has probability 1 − p before and p after, p = P(max of half ≤ max of half + Δ/σ), and
    two Gaussians that close to each other are at least 2Φ⁻¹(p) apart.
    """
    half = candidates // 2

    def density(x: float) -> float:
        log_density = math.log(half) - x * x / 2 - math.log(2 * math.pi) / 2 + (half - 1) * log_ndtr(x)
        return float(np.exp(log_density + half * log_ndtr(x + ratio)))

    peak = -float(ndtri(1 / half)) if half > 2 else 0.0
    p = quad(density, -9.0, peak, epsabs=1e-13, limit=500)[0] + quad(density, peak, 12.0, epsabs=1e-13, limit=500)[0]
    return 2 * float(ndtri(p))


def gaussian_selection() -> None:
    ratio = 0.25
    print(f"\nTrue μ of one selection, at Δ/σ = {ratio} of Gaussian noise and Δ/b = {ratio} of Gumbel noise")
    print(f"{'candidates':>12} {'Gaussian, at least':>19} {'Gumbel, exactly':>16}")
    for candidates in (2, 100, 10_000, 1_000_000, GENOME):
        print(f"{candidates:>12,} {gaussian_argmax_mu(candidates, ratio):>19.3f} {selection_mu(1.0, 1 / ratio):>16.3f}")


def genome(size: Size) -> None:
    """One peeling of a genome's worth, in a process of its own: prints CPU seconds and memory."""
    log_e = log_e_values(z_scores(200, 9.0, 0.0, seed=1, m=GENOME))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    peeled = peel(log_e, SENSITIVITY, MU, size, ALPHA, CryptographicNoise())
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{size!s:>9}: {seconds:.2f} CPU s, peak {peak / 1024:.0f} MB ({before / 1024:.0f} MB before), "
        f"{peeled.size} selected, {peeled.discoveries.size} discovered",
        flush=True,
    )


def main() -> None:
    if sys.argv[1:2] == ["genome"]:
        genome("adaptive" if sys.argv[2] == "adaptive" else int(sys.argv[2]))
        return
    power_table(int(sys.argv[1]) if len(sys.argv) > 1 else 150)
    gaussian_selection()
    print(f"\nSelection, noise and e-BH of m = {GENOME:,}, 200 signals of mean 9", flush=True)
    for size in ("40", "adaptive"):
        subprocess.run([sys.executable, "-m", "benchmarks.discovery_peeling", "genome", size], check=True)


if __name__ == "__main__":
    main()
