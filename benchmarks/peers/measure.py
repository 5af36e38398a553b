"""Run one closest-record computation on drawn tables and print its figures as a line of JSON.

    python SCRIPT time ROWS COLUMNS
    python SCRIPT null LAW ROWS COLUMNS REPETITIONS

`time`: wall and CPU seconds of one call after a small one (imports and compilation are not counted), the best of three
where a call takes less than ten seconds, and the peak memory of the whole process. `null`: the share that the tool
reports on tables whose rows are independent draws of one law. Only NumPy is imported, because every tool runs in an
environment of its own.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

Table = np.ndarray
# Training, holdout, synthetic and public rows -> the share of synthetic rows nearer to training rows.
Compute = Callable[[Table, Table, Table, Table], float]


def draw(law: str, rows: int, columns: int, seed: int) -> tuple[Table, Table, Table, Table]:
    """Training, holdout, synthetic and public rows, all from one law; `outlier` throws one training row far out."""
    rng = np.random.default_rng(seed)
    train, holdout, synthetic, public = (rng.normal(size=(rows, columns)) for _ in range(4))
    if law == "log-normal":
        return np.exp(train), np.exp(holdout), np.exp(synthetic), np.exp(public)
    if law == "outlier":
        train[0] = 10.0
    return train, holdout, synthetic, public


def timed(compute: Compute, rows: int, columns: int) -> dict[str, float]:
    compute(*draw("normal", 50, columns, seed=1))
    tables = draw("normal", rows, columns, seed=0)
    taken: list[tuple[float, float]] = []
    while not taken or (len(taken) < 3 and taken[0][0] < 10):
        wall, cpu = time.perf_counter(), time.process_time()
        compute(*tables)
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = (min(seconds) for seconds in zip(*taken, strict=True))
    return {"wall": wall, "cpu": cpu, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main(compute: Compute, package: str) -> None:
    warnings.simplefilter("ignore")
    figures: dict[str, object] = {"version": version(package)}
    if sys.argv[1] == "time":
        figures |= timed(compute, *map(int, sys.argv[2:4]))
    else:
        law, (rows, columns, repetitions) = sys.argv[2], map(int, sys.argv[3:6])
        figures["shares"] = [float(compute(*draw(law, rows, columns, seed))) for seed in range(repetitions)]
    print(json.dumps(figures))
