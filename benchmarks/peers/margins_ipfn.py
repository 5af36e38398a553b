"""ipfn on a NumPy table: by its own rule (default options), or cycle by cycle until residuals are small."""

import numpy as np
from ipfn.ipfn import ipfn
from margins_measure import Found, Task, main, of_table

CYCLES = 500


def fitted(task: Task, tolerance: float | None) -> Found:
    counts = [counts for _, counts in task.margins]
    axes = [list(axes) for axes, _ in task.margins]
    if tolerance is None:
        table, converged, cycles = ipfn(np.ones(task.shape), counts, axes, verbose=2).iteration()
        return Found(of_table(table), "converged" if converged else "not converged", len(cycles))
    table = np.ones(task.shape)
    solver = ipfn(table, counts, axes)
    for cycle in range(1, CYCLES + 1):
        table, _ = solver.ipfn_np(table, counts, axes)
        if task.residual(of_table(table)) <= tolerance:
            return Found(of_table(table), "matched", cycle)
    return Found(of_table(table), "not matched", CYCLES)


if __name__ == "__main__":
    main(fitted)
