"""Closest-record computations beside those of SDMetrics, mostlyai-qa and anonymeter, as two Markdown tables.

    python -m benchmarks.closest_record

Each peer runs in an environment of its own under $SYNTH_PEERS (default: synth-peers in the temporary folder), which is
made with pip on the first call; it is run there by a script of benchmarks/peers and never imported here. Ratios are of
CPU seconds, which other work on the machine changes little; a peer is stopped after 120 of them and not tried on more
rows. Every run is a process of its own; peak memory is that of the whole process, libraries and four tables included.

The second table draws training, holdout and synthetic rows from one law, so that the honest share of synthetic rows
nearer to training rows is 1/2: what each tool reports over 30 such worlds, and the standard deviation that chance alone
gives (benchmarks/peers/honest_null.py).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SCRIPTS = Path(__file__).parent / "peers"
LIMIT_SECONDS = 120
SIZES = ((1_000, 20), (1_000, 100), (5_000, 100))
SEARCH_SIZES = ((5_000, 100), (50_000, 200))
LAWS = {"normal": "normal", "log-normal": "log-normal", "outlier": "normal, one training row at 10"}
WORLD = (300, 20)
WORLDS = 30


@dataclass(frozen=True)
class Tool:
    """A script of benchmarks/peers and the packages of its environment; none = the environment of this process."""

    name: str
    script: str
    packages: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        root = Path(os.environ.get("SYNTH_PEERS", Path(tempfile.gettempdir()) / "synth-peers"))
        return root / self.packages[-1]

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python") if self.packages else sys.executable

    def installed(self) -> bool:
        """Make the environment where it is missing; says so where pip cannot."""
        if (self.folder / "ready").exists():
            return True
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)
        for package in self.packages:
            pip = [self.python, "-m", "pip", "install", "-qq", package]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{self.name} cannot be installed here: {done.stderr.strip().splitlines()[-1]}\n")
                return False
        (self.folder / "ready").touch()
        return True

    def run(self, *arguments: object) -> dict[str, Any] | None:
        """What the script printed; None if it was stopped for its CPU seconds."""
        command = [self.python, str(SCRIPTS / f"{self.script}.py"), *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS + 5))
            printed, _ = process.communicate()
        if process.returncode == -signal.SIGXCPU:
            return None
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed")
        figures: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return figures


OURS = Tool("closest-record gate", "platform_gate")
PEERS = (
    Tool("SDMetrics `DCROverfittingProtection`", "sdmetrics_dcr", ("sdmetrics==0.32.0",)),
    Tool("mostlyai-qa `calculate_distances`", "mostlyai_dcr", ("torch==2.13.0", "mostlyai-qa==1.10.11")),
    Tool("anonymeter `MixedTypeKNeighbors`", "anonymeter_neighbours", ("anonymeter==1.1.0",)),
)
OUR_SEARCH = Tool("`nearest_distances`, one search", "platform_search")
PEER_SEARCH = (Tool("scikit-learn `NearestNeighbors`, one search", "sklearn_search"),)
THEORY = Tool("", "honest_null")


def times(ours: Tool, peers: tuple[Tool, ...], sizes: tuple[tuple[int, int], ...]) -> None:
    slow: set[str] = set()
    for rows, columns in sizes:
        base = 0.0
        for tool in (ours, *(peer for peer in peers if peer.name not in slow)):
            figures = tool.run("time", rows, columns)
            if figures is None:
                slow.add(tool.name)
                line = f"| > {LIMIT_SECONDS} | | > {LIMIT_SECONDS / base:,.0f} ×"
            else:
                base = base or figures["cpu"]
                line = f"{figures['wall']:.2f} | {figures['cpu']:.2f} | {figures['peak_mib']:.0f} | "
                line += "" if tool is ours else f"{figures['cpu'] / base:,.1f} ×"
            print(f"| {rows:,} × {columns} | {tool.name} | {line} |", flush=True)


def reported(tool: Tool, law: str) -> np.ndarray:
    figures = tool.run("null", law, *WORLD, WORLDS)
    if figures is None:
        raise SystemExit(f"{tool.name} took more than {LIMIT_SECONDS} CPU seconds on the null worlds")
    return np.array(figures["shares"])


def nulls(tools: tuple[Tool, ...]) -> None:
    for law, title in LAWS.items():
        chance = float(np.sqrt(reported(THEORY, law).mean()))
        for tool in tools:
            shares = reported(tool, law)
            error = chance / np.sqrt(WORLDS)
            print(
                f"| {title} | {tool.name} | {shares.mean():.3f} ({(shares.mean() - 0.5) / error:+.1f}) "
                f"| {shares.std(ddof=1):.3f} | {chance:.3f} | {shares.min():.3f} to {shares.max():.3f} |",
                flush=True,
            )


def main() -> None:
    peers = tuple(tool for tool in PEERS if tool.installed())
    versions = ", ".join(package for tool in peers for package in tool.packages)
    print(f"Peers: {versions}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| rows a side × columns | tool | wall s | CPU s | peak MiB | CPU of ours |\n|---|---|---|---|---|---|")
    times(OURS, peers, SIZES)
    times(OUR_SEARCH, PEER_SEARCH, SEARCH_SIZES)
    print(f"\n{WORLDS} worlds of {WORLD[0]} rows a side × {WORLD[1]}; in brackets standard errors from 1/2\n")
    print("| law | tool | mean share nearer to training | sd | sd by chance | range |\n|---|---|---|---|---|---|")
    nulls((OURS, *peers))


if __name__ == "__main__":
    main()
