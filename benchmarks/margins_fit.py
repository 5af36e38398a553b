"""Fits of margins beside ipfn, humanleague, mbi and plain NumPy, as Markdown tables.

    python -m benchmarks.margins_fit [CASE ...]
    python -m benchmarks.margins_fit --freeze FILE     the peers' answers that the unit tests hold ours against

small: 51,840 cells, 10 two-way margins. rounded: the same margins rounded to multiples of ten, which contradict each
other. middle: 864,000 cells, 21 margins. large: 50,803,200 cells, 55 margins. chain: 24 variables of ten categories,
22 margins of three that have a junction tree, 10^24 cells.

All are of 51,064 drawn rows. Residual: largest total variation between a margin's fitted and asked probabilities.
Difference: largest total variation from our fit in the tables asked for, the whole one where it is not large. What is
stopped for its time or memory says so; see `margins_tools`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.margins_tools import FROZEN, OURS, PEERS, Fitter, count, furthest, population, run
from benchmarks.peers.margins_measure import Axes, Task

ROWS = 51_064
TOLERANCE = 1e-5  # that of our dense fit
SMALL = (10, 8, 9, 6, 12)
MIDDLE = (10, 6, 8, 5, 9, 4, 10)
LARGE = (10, 2, 6, 8, 5, 7, 3, 4, 9, 2, 7)
CHAIN = (10,) * 24


@dataclass(frozen=True)
class Case:
    """A task and the peers that are tried on it."""

    title: str
    task: Task
    peers: tuple[Fitter, ...]


def counted(shape: tuple[int, ...], margins: list[Axes], queries: list[Axes]) -> Task:
    codes = population(shape, ROWS, seed=5)
    return Task(shape, tuple((axes, count(codes, shape, axes)) for axes in margins), tuple(queries))


def pairs(shape: tuple[int, ...]) -> list[Axes]:
    return list(combinations(range(len(shape)), 2))


def small() -> Case:
    return Case("51,840 cells, 10 margins", counted(SMALL, pairs(SMALL), [tuple(range(len(SMALL)))]), PEERS)


def rounded() -> Case:
    exact = small().task
    task = replace(exact, margins=tuple((axes, 10 * np.rint(counts / 10)) for axes, counts in exact.margins))
    return Case("51,840 cells, 10 margins rounded to tens", task, tuple(peer for peer in PEERS if not peer.by_residual))


def middle() -> Case:
    return Case("864,000 cells, 21 margins", counted(MIDDLE, pairs(MIDDLE), [tuple(range(len(MIDDLE)))]), PEERS)


def large() -> Case:
    return Case("50,803,200 cells, 55 margins", counted(LARGE, pairs(LARGE), [(0, 1, 2), (3, 6, 8), (4, 7, 10)]), PEERS)


def chain() -> Case:
    margins = [(axis, axis + 1, axis + 2) for axis in range(len(CHAIN) - 2)]
    queries = [(0, 3), (2, 7), (5, 6, 9), (0, 23)]
    peers = tuple(peer for peer in PEERS if peer.tool.name != "plain NumPy")
    return Case("10^24 cells, 22 margins of three", counted(CHAIN, margins, queries), peers)


CASES = {"small": small, "rounded": rounded, "middle": middle, "large": large, "chain": chain}
HEAD = (
    "| case | tool | says | cycles | wall s | CPU s | peak MiB | residual | difference | CPU of ours |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def compare(case: Case) -> None:
    ours = run(OURS, case.task, TOLERANCE)
    if ours.stopped:
        raise SystemExit(f"our fit of {case.title}: {ours.stopped}")
    for fitter in (OURS, *case.peers):
        found = ours if fitter is OURS else run(fitter, case.task, TOLERANCE)
        line = f"| {case.title} | {fitter.title} | "
        if found.stopped:
            print(f"{line}{found.stopped} | | | | | | | |", flush=True)
            continue
        of = found.figures
        line += f"{of['status']} | {of['cycles']} | {of['wall']:.2f} | {of['cpu']:.2f} | {of['peak_mib']:,.0f} "
        line += f"| {of['residual']:.1e} | "
        if fitter is not OURS:
            line += f"{furthest(ours.answers, found.answers):.1e}" if found.answers else "not told"
            line += f" | {of['cpu'] / ours.figures['cpu']:,.1f} ×"
        else:
            line += "|"
        print(f"{line} |", flush=True)


def freeze(path: Path) -> None:
    """Fits of 120 cells by every peer: all pairs, and two margins that have a junction tree."""
    shape, whole = (3, 4, 2, 5), [(0, 1, 2, 3)]
    frozen = []
    for title, engine, axes in (("pairs", "dense", pairs(shape)), ("tree", "junction_tree", [(0, 1, 2), (2, 3)])):
        task = counted(shape, list(axes), whole)
        for fitter in FROZEN:
            found = run(fitter, task, TOLERANCE)
            if found.stopped:
                raise SystemExit(f"{fitter.title}: {found.stopped}")
            frozen.append(
                {
                    "tool": fitter.title,
                    "case": title,
                    "engine": engine,
                    "shape": shape,
                    "axes": axes,
                    "counts": [counts.ravel().astype(int).tolist() for _, counts in task.margins],
                    "residual": found.figures["residual"],
                    "table": [float(f"{p:.9g}") for p in found.answers[0].ravel()],
                }
            )
    path.write_text("[\n" + ",\n".join(map(json.dumps, frozen)) + "\n]\n", encoding="utf-8")


def main() -> None:
    if sys.argv[1:2] == ["--freeze"]:
        freeze(Path(sys.argv[2]))
        return
    wanted = sys.argv[1:] or list(CASES)
    unknown = sorted(set(wanted) - set(CASES))
    if unknown:
        raise SystemExit(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    missing = {tool for tool in {peer.tool for peer in PEERS} if tool.packages and not tool.installed()}
    print(f"{ROWS:,} rows; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n\n{HEAD}", flush=True)
    for name in wanted:
        case = CASES[name]()
        compare(replace(case, peers=tuple(peer for peer in case.peers if peer.tool not in missing)))


if __name__ == "__main__":
    main()
