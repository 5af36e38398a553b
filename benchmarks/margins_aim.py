"""Margins under differential privacy on Adult: chosen adaptively, all two-way ones, and AIM on mbi, in one table.

    python -m benchmarks.margins_aim [FOLDER] [--few] [--epsilon E ...] [--seeds N] [--without-peer]

FOLDER holds adult.csv.gz (48,842 × 14, integer-coded, of the private-pgm repository); DATA if not given. Bands make it
14 variables of 2 to 42 categories, 5.9 · 10^11 cells. δ is 10⁻⁶ and every tool spends the same μ, that of a Gaussian
mechanism at (ε, δ); AIM as it was published spends less of it, as it converts zCDP. Errors: mean total variation from
the table of the rows, of all pairs and of 120 triples drawn once, mean over seeds (largest distance from it). Ours are
those of the distribution that is fitted to the margins, mbi's those of its model; no table is drawn. mbi runs in an
environment of its own (see `closest_record`), with room for a model of the same 2^18 cells, and is stopped after
SECONDS: it compiles every model anew. --few: seven of the variables (443,520 cells), where it is done sooner.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.closest_record import SCRIPTS, Tool
from synth_platform.contract.recipe import Recipe
from synth_platform.margins.noise.adaptive import MODEL_CELLS
from synth_platform.margins.reading.curate import curate
from synth_platform.margins.rows import Rows
from synth_platform.privacy.accounting import gaussian_mu

SECONDS = 3600
DELTA = 1e-6
TRIPLES = 120
FEW = ("age", "education-num", "marital-status", "occupation", "relationship", "sex", "income>50K")
PLAIN = ("rounds", "sigma", "cpu", "peak_mib")
BANDS = {
    "age": {"bands": [0, 8, 13, 18, 23, 28, 33, 38, 43, 48, 58], "top": 58},
    "fnlwgt": {"bands": [0, 5, 10, 15, 20], "top": 20},
    "capital-gain": {"bands": [0, 1, 5, 10, 20], "top": 20},
    "capital-loss": {"bands": [0, 1, 30, 40], "top": 40},
    "hours-per-week": {"bands": [0, 19, 34, 39, 40, 49, 59], "top": 59},
}
PLATFORM = Tool("", "aim_platform")
MBI = Tool("AIM on mbi", "aim_mbi", ("mbi==2.0.0",))
TOOLS = {
    "ours, adaptive": (PLATFORM, ("adaptive",)),
    "ours, all two-way": (PLATFORM, ("declared",)),
    "AIM on mbi 2.0.0": (MBI, ()),
}


def adult(folder: Path, few: bool) -> Rows:
    frame, bands = pl.read_csv(folder / "adult.csv.gz"), BANDS
    if few:
        frame, bands = frame.select(FEW), {name: own for name, own in BANDS.items() if name in FEW}
    return curate(frame, Recipe.model_validate({"variables": bands}), "adult.csv.gz").rows


def queries(rows: Rows) -> list[tuple[int, ...]]:
    variables = range(len(rows.domain.names))
    triples = list(combinations(variables, 3))
    drawn = np.random.default_rng(99).choice(len(triples), min(TRIPLES, len(triples)), replace=False)
    return [*combinations(variables, 2), *(triples[at] for at in drawn.tolist())]


def run(tool: Tool, arguments: tuple[str, ...], task: Path, truth: list[np.ndarray]) -> dict[str, Any] | None:
    """Figures of one run with its errors; None where it was stopped."""
    answer = task.with_name("answer.npz")
    command = [tool.python, str(SCRIPTS / f"{tool.script}.py"), str(task), str(answer), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip().splitlines()[-1]}")
    with np.load(answer) as file:
        found = [file[name] for name in sorted(file)]
    errors = [np.abs(one - other).sum() / 2 for one, other in zip(found, truth, strict=True)]
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for ways, name in ((2, "two_way"), (3, "three_way")):
        figures[name] = np.mean([error for error, table in zip(errors, truth, strict=True) if table.ndim == ways])
    return figures


DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "census"


def spread(runs: list[dict[str, Any]], figure: str, form: str) -> str:
    values = np.array([one[figure] for one in runs])
    return f"{values.mean():{form}} ({np.abs(values - values.mean()).max():{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without-peer", action="store_true")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        print(f"{arguments.folder} is not there: Adult is left out")
        return
    rows = adult(arguments.folder, arguments.few)
    asked = queries(rows)
    truth = [rows.count([rows.domain.names[axis] for axis in query]) / len(rows) for query in asked]
    padded = np.array([(*query, -1)[:3] for query in asked])
    tools = {
        title: tool
        for title, tool in TOOLS.items()
        if tool[0] is PLATFORM or (not arguments.without_peer and tool[0].installed())
    }
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(
        "| ε | margins | two-way | three-way | rounds | last σ | CPU s | peak MiB |\n|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.npz"
        for epsilon in arguments.epsilon:
            for title, (tool, options) in tools.items():
                runs: list[dict[str, Any] | None] = []
                for seed in range(1, arguments.seeds + 1):
                    np.savez(
                        task,
                        codes=rows.codes,
                        shape=np.array(rows.domain.shape),
                        mu=gaussian_mu(epsilon, DELTA),
                        seed=seed,
                        cells=MODEL_CELLS,
                        queries=padded,
                    )
                    runs.append(run(tool, options, task, truth))
                done = [one for one in runs if one is not None]
                if len(done) < len(runs):
                    print(f"{title}: {len(runs) - len(done)} of {len(runs)} not done in {SECONDS} s")
                if done:
                    cells = [spread(done, "two_way", ".4f"), spread(done, "three_way", ".4f")]
                    cells += [f"{np.mean([one[name] for one in done]):.0f}" for name in PLAIN]
                    print(f"| {epsilon:g} | {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
