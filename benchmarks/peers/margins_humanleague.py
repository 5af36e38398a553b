"""humanleague's ipf, compiled, which only has its own rule."""

import humanleague
import numpy as np
from margins_measure import Found, Task, main, of_table


def fitted(task: Task, tolerance: float | None) -> Found:
    indices = [np.array(axes) for axes, _ in task.margins]
    counts = [counts for _, counts in task.margins]
    table, said = humanleague.ipf(np.ones(task.shape), indices, counts)
    return Found(of_table(table), f"conv={said['conv']}", int(said["iterations"]))


if __name__ == "__main__":
    main(fitted)
