"""Discrete Gaussian draws per second: our sampler, OpenDP's, and NumPy's float Gaussian (which no release may use).

python benchmarks/noise.py [draws]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

from synth_platform.privacy.mechanisms import gaussian_sum
from synth_platform.privacy.noise import CryptographicNoise

SCALES = (0.5, 3.0, 2.0**30, 2.0**40)


def seconds(task: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds, best of `repeats`, so that other load on the machine counts little."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def opendp_draws(sigma: float, size: int) -> object:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=sigma)([0] * size)


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    dp.enable_features("contrib")
    noise = CryptographicNoise()
    print(f"CPU seconds for {draws:,} draws")
    print(f"{'sigma (grid steps)':>20} {'ours':>8} {'opendp':>8} {'numpy float':>12}")
    for sigma in SCALES:
        ours = seconds(lambda sigma=sigma: noise.discrete_gaussian(sigma, draws))
        part = max(1, draws // 20)
        theirs = seconds(lambda sigma=sigma, part=part: opendp_draws(sigma, part), repeats=1) * draws / part
        floating = seconds(lambda sigma=sigma: np.random.default_rng().normal(0, sigma, draws))
        print(f"{sigma:>20.6g} {ours:>8.3f} {theirs:>8.2f} {floating:>12.3f}")

    for n, d in ((1_000, 1_000), (50_000, 500)):
        rows = np.random.default_rng(0).standard_normal((n, d))
        took = seconds(lambda rows=rows: gaussian_sum(rows, sensitivity=20.0, sigma=40.0, noise=noise))
        print(f"gaussian_sum of {n:,} x {d:,}: {took:.3f} s")


if __name__ == "__main__":
    main()
