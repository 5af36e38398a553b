"""Fit one file of margins with one tool and print its figures as a line of JSON.

    python SCRIPT TASK.npz ANSWER.npz [TOLERANCE]

With TOLERANCE the tool stops where the largest residual (total variation of a margin's probabilities) is at most that,
or after its time; without, by its own rule. Wall and CPU seconds are of the fit alone; a compilation that it needs is
part of it. Peak memory is of the process up to the end of the fit. Residuals and the asked tables, which go to ANSWER,
are computed afterwards from what the tool returned. Only NumPy is imported: tools run in environments of their own.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Axes = tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """Sizes of the variables, margins as (axes ascending, counts), and the axes of the tables asked for."""

    shape: tuple[int, ...]
    margins: tuple[tuple[Axes, Array], ...]
    queries: tuple[Axes, ...]

    @staticmethod
    def read(path: Path) -> Task:
        with np.load(path) as file:
            axes = [tuple(map(int, file[name])) for name in sorted(file) if name.startswith("axes")]
            counts = [file[name] for name in sorted(file) if name.startswith("counts")]
            queries = [tuple(map(int, file[name])) for name in sorted(file) if name.startswith("query")]
            shape = tuple(map(int, file["shape"]))
        return Task(shape, tuple(zip(axes, counts, strict=True)), tuple(queries))

    def write(self, path: Path) -> None:
        numbered = {f"axes{at:04}": np.array(axes) for at, (axes, _) in enumerate(self.margins)}
        numbered |= {f"counts{at:04}": counts for at, (_, counts) in enumerate(self.margins)}
        numbered |= {f"query{at:04}": np.array(axes) for at, axes in enumerate(self.queries)}
        np.savez(path, shape=np.array(self.shape), **numbered)

    @property
    def probabilities(self) -> list[tuple[Axes, Array]]:
        return [(axes, counts / counts.sum()) for axes, counts in self.margins]

    def residual(self, project: Project) -> float:
        return max(float(np.abs(project(axes) - target).sum() / 2) for axes, target in self.probabilities)


# Axes, ascending -> probabilities of the cells over them.
Project = Callable[[Axes], Array]


class NoAnswer(Exception):  # noqa: N818
    """The tool has no table over these axes within reason."""


@dataclass(frozen=True)
class Found:
    """A fitted distribution, what the tool says of it, its cycles, and figures that are taken after the fit."""

    project: Project
    status: str
    cycles: int
    after: Callable[[], dict[str, float]] = dict


Fit = Callable[[Task, float | None], Found]


def of_table(table: Array) -> Project:
    """Margins of a full table of weights."""
    return lambda axes: summed(table, axes) / table.sum(dtype=np.float64)


def summed(table: Array, axes: Sequence[int]) -> Array:
    found: Array = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes), dtype=np.float64)
    return found


def main(fit: Fit) -> None:
    warnings.simplefilter("ignore")
    task = Task.read(Path(sys.argv[1]))
    tolerance = float(sys.argv[3]) if len(sys.argv) > 3 else None
    wall, cpu = time.perf_counter(), time.process_time()
    found = fit(task, tolerance)
    figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["residual"] = task.residual(found.project)
    answers = {}
    with suppress(NoAnswer):
        answers = {f"answer{at:04}": found.project(axes) for at, axes in enumerate(task.queries)}
    np.savez(sys.argv[2], **answers)
    print(json.dumps({**figures, **found.after(), "status": found.status, "cycles": found.cycles}))
