"""Tools that fit margins, each in a process of its own with a limit of time and memory: what `margins_fit` compares.

Peers run in environments of their own under $SYNTH_PEERS (see `closest_record`) and are never imported here. A peer
that needs more than LIMIT_SECONDS of CPU time or MEMORY_MIB is stopped, and that is its figure.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.closest_record import LIMIT_SECONDS, SCRIPTS, Tool
from benchmarks.peers.margins_measure import Axes, Task

MEMORY_MIB = 8 * 1024


@dataclass(frozen=True)
class Fitter:
    """A tool with its settings; by_residual: whether it is told to stop where residuals are small."""

    title: str
    tool: Tool
    by_residual: bool = False
    settings: dict[str, str] = field(default_factory=dict)


OURS = Fitter("synth_platform", Tool("synth_platform", "margins_platform"))
NUMPY = Tool("plain NumPy", "margins_numpy")
IPFN = Tool("ipfn", "margins_ipfn", ("ipfn==1.4.4",))
HUMANLEAGUE = Tool("humanleague", "margins_humanleague", ("humanleague==2.4.3",))
MBI = Tool("mbi", "margins_mbi", ("mbi==2.0.0",))
PEERS = (
    Fitter("plain NumPy, rule of mipfp", NUMPY),
    Fitter("plain NumPy, to our residual", NUMPY, by_residual=True),
    Fitter("ipfn 1.4.4, own rule", IPFN),
    Fitter("ipfn 1.4.4, to our residual", IPFN, by_residual=True),
    Fitter("humanleague 2.4.3, own rule", HUMANLEAGUE),
    Fitter("mbi 2.0.0, accelerated, to our residual", MBI, by_residual=True),
)
FROZEN = tuple(peer for peer in PEERS if peer.tool is MBI or (peer.tool.packages and not peer.by_residual))


@dataclass(frozen=True)
class Fitted:
    """Figures and the asked tables of one fit; `stopped` says why there are none."""

    figures: dict[str, Any]
    answers: list[np.ndarray]
    stopped: str = ""


def run(fitter: Fitter, task: Task, tolerance: float) -> Fitted:
    """One fit, in a process of its own; stopped at LIMIT_SECONDS of CPU time or MEMORY_MIB of resident memory."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "task.npz", Path(folder) / "answer.npz"
        printed, failed = Path(folder) / "printed", Path(folder) / "failed"
        task.write(asked)
        command = [fitter.tool.python, str(SCRIPTS / f"{fitter.tool.script}.py"), str(asked), str(answer)]
        if fitter.by_residual:
            command.append(str(tolerance))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **fitter.settings}
        with (
            printed.open("w") as out,
            failed.open("w") as error,
            subprocess.Popen(command, stdout=out, stderr=error, env=environment) as process,
        ):
            stopped = _watch(process)
        if stopped:
            return Fitted({}, [], stopped)
        if process.returncode:
            lines = failed.read_text().strip().splitlines() or [f"exit {process.returncode}"]
            return Fitted({}, [], lines[-1][:120])
        with np.load(answer) as file:
            answers = [file[name] for name in sorted(file)]
        return Fitted(json.loads(printed.read_text().splitlines()[-1]), answers)


def _watch(process: subprocess.Popen[bytes]) -> str:
    while process.poll() is None:
        seconds, resident = _spent(process.pid)
        reason = f"over {MEMORY_MIB / 1024:.0f} GiB after {seconds:.0f} CPU s" if resident > MEMORY_MIB else ""
        if seconds > LIMIT_SECONDS:
            reason = f"not done in {LIMIT_SECONDS} CPU s"
        if reason:
            process.kill()
            process.wait()
            return reason
        time.sleep(0.05)
    return ""


def _spent(pid: int) -> tuple[float, float]:
    """CPU seconds and resident MiB of a process, nought when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def population(shape: Sequence[int], rows: int, seed: int) -> np.ndarray:
    """Codes [rows, variables] that depend on each other through three hidden normal causes; uneven categories."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 3))
    columns = []
    for size in shape:
        score = hidden @ rng.normal(size=3) + rng.normal(size=rows)
        columns.append(np.searchsorted(np.quantile(score, np.sort(rng.uniform(0.02, 0.98, size - 1))), score))
    return np.stack(columns, axis=1)


def count(codes: np.ndarray, shape: Sequence[int], axes: Axes) -> np.ndarray:
    """Rows in each cell over ascending axes."""
    sizes = [shape[axis] for axis in axes]
    cells = np.ravel_multi_index(tuple(codes[:, axis] for axis in axes), sizes)
    return np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes).astype(np.float64)


def furthest(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Largest total variation between tables that two tools were asked for."""
    return max(float(np.abs(a - b).sum() / 2) for a, b in zip(one, other, strict=True))
