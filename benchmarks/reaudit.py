"""Looking again and again: how often a release that leaks nothing is recalled, and how soon one that leaks is.

    python -m benchmarks.reaudit [releases]

Members, non-members, public rows and an independent table are standard normal rows with 8 features; a leak replaces
table rows by copies of members with a little noise. Every look is the one a re-audit takes (attacks A1, A2, limit .55,
alpha .05). "p < alpha" is what repeated tests would do: recall at the first look in which an attack's p-value is below
alpha / 2.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from synth_platform.evaluation.e_values import e_bh, log_accumulated, log_mean, tilt
from synth_platform.evaluation.looks import look_log_e

ALPHA, LIMIT, FEATURES, NEIGHBOURS = 0.05, 0.55, 8, 3
ATTACKS = ("A1", "A2")


@dataclass(frozen=True)
class Watched:
    """One release: log E_t after each look, and the AUROC [looks, attacks] each look measured."""

    evidence: list[float]
    auroc: np.ndarray


def watch(seed: int, side: int, copied: float, looks: int) -> Watched:
    rng = np.random.default_rng(seed)
    members, others, public, table = (rng.normal(size=(side, FEATURES)) for _ in range(4))
    copies = round(copied * side)
    table[:copies] = members[:copies] + 0.01 * rng.normal(size=(copies, FEATURES))
    found = [
        look_log_e(members, others, table, public, attacks=ATTACKS, neighbours=NEIGHBOURS, limit=LIMIT, seed=int(s))
        for s in rng.integers(0, 2**62, looks)
    ]
    log_e = np.array([[look[attack] for attack in ATTACKS] for look in found])
    means = [log_mean(list(row)) for row in log_e]
    return Watched(
        [log_accumulated(means[: t + 1]) for t in range(looks)], LIMIT + log_e / (tilt(LIMIT, side, side) * side * side)
    )


def recalled(releases: list[Watched], looks: int) -> float:
    return float(np.mean([release.evidence[looks - 1] >= np.log(1 / ALPHA) for release in releases]))


def naive(releases: list[Watched], side: int) -> float:
    error = np.sqrt((2 * side + 1) / (12 * side * side))
    p = [norm.sf((release.auroc - 0.5) / error) for release in releases]
    return float(np.mean([(values < ALPHA / len(ATTACKS)).any() for values in p]))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    columns = ("rows a side", "members copied", "median AUROC (A1)", "looks", "recalled by look 1", "by look 3",
               "by the last", "p < α in any")  # fmt: skip
    print(f"| {' | '.join(columns)} |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    kept: dict[float, list[Watched]] = {}
    for side, copied, releases, looks in (
        (100, 0.0, count, 100),
        (100, 0.02, count // 4, 100),
        (100, 0.2, count // 4, 20),
        (100, 0.5, count // 4, 20),
        (700, 0.0, count // 8, 10),
        (700, 0.02, count // 8, 10),
        (700, 0.2, count // 8, 10),
    ):
        found = [watch(1_000 * side + 7 * k + round(100 * copied), side, copied, looks) for k in range(releases)]
        if side == 100:
            kept[copied] = found
        shares = (recalled(found, 1), recalled(found, 3), recalled(found, looks), naive(found, side))
        median = np.median([release.auroc[:, 0].mean() for release in found])
        print(
            f"| {side} | {copied:.0%} | {median:.3f} | {looks} | " + " | ".join(f"{s:.3f}" for s in shares) + " |",
            flush=True,
        )
    false_recalls(kept)


def false_recalls(kept: dict[float, list[Watched]]) -> None:
    """e-BH over registers of 16 releases that leak nothing and 4 that leak, drawn from those above, after 20 looks."""
    rng = np.random.default_rng(5)
    shares, found = [], []
    for _ in range(1_000):
        quiet, loud = (rng.integers(0, len(kept[copied]), k) for copied, k in ((0.0, 16), (0.5, 4)))
        log_e = {f"quiet{k}": kept[0.0][i].evidence[19] for k, i in enumerate(quiet)}
        log_e |= {f"loud{k}": kept[0.5][i].evidence[19] for k, i in enumerate(loud)}
        names = e_bh(log_e, ALPHA)
        shares.append(sum(name.startswith("quiet") for name in names) / max(1, len(names)))
        found.append(sum(name.startswith("loud") for name in names) / 4)
    means = f"false recalls among recalls {np.mean(shares):.4f}, found {np.mean(found):.3f}"
    print(f"\ne-BH over 20 releases, 4 leaking: {means}")


if __name__ == "__main__":
    main()
