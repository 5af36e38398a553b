"""Plain IPF of the full table, margin after margin in float64, as R's mipfp does it for synthpop's syn.ipf.

Its own rule is mipfp's with synthpop's tolerance: no cell of the table changed by 1e-3 in a cycle. The table counts
people, but probabilities where totals of margins disagree, and then nearly every change is that small.
"""

import numpy as np
from margins_measure import Found, Task, main, of_table, summed

TOLERANCE = 1e-3
CYCLES = 1000


def fitted(task: Task, tolerance: float | None) -> Found:
    totals = [counts.sum() for _, counts in task.margins]
    agree = max(totals) - min(totals) <= 1e-10
    margins = [(axes, counts if agree else counts / counts.sum()) for axes, counts in task.margins]
    table = np.ones(task.shape)
    for cycle in range(1, CYCLES + 1):
        before = table.copy() if tolerance is None else None
        for axes, target in margins:
            now = summed(table, axes)
            factor = np.divide(target, now, out=np.zeros_like(now), where=now > 0)
            table *= np.expand_dims(factor, tuple(axis for axis in range(table.ndim) if axis not in axes))
        if before is not None:
            before -= table
            if max(before.max(), -before.min()) < TOLERANCE:
                return Found(of_table(table), "converged", cycle)
        elif task.residual(of_table(table)) <= tolerance:
            return Found(of_table(table), "matched", cycle)
    return Found(of_table(table), "not converged", CYCLES)


if __name__ == "__main__":
    main(fitted)
