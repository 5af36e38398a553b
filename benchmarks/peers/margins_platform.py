"""The platform's fit, engine by size and shape, or the one named in $MARGINS_ENGINE."""

import os
import time

import numpy as np
from margins_measure import Axes, Found, Task, main

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.fit import fit
from synth_platform.margins.fitting.weighted_rows import WeightedRowsFit
from synth_platform.margins.margin import Margin, MarginSet

ROWS = 27_253


def fitted(task: Task, tolerance: float | None) -> Found:
    """Stops by its own rule, which is a residual, whatever the tolerance asked for."""
    names = [f"v{axis:02}" for axis in range(len(task.shape))]
    domain = Domain(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip(names, task.shape, strict=True)))
    margins = tuple(Margin(tuple(names[axis] for axis in axes), counts, ()) for axes, counts in task.margins)
    engine = os.environ.get("MARGINS_ENGINE")
    found = fit(MarginSet(domain, margins), np.random.default_rng(1), engine)  # type: ignore[arg-type]

    def after() -> dict[str, float]:
        start = time.perf_counter()
        found.draw(ROWS, np.random.default_rng(2))
        figures = {"draw": time.perf_counter() - start}
        if isinstance(found, WeightedRowsFit):
            figures["effective"] = found.report.effective_sample_size
            figures["unreached"] = max((found.report.unreached or {}).values(), default=0.0)
        return figures

    def project(axes: Axes) -> np.ndarray:
        return found.probabilities([names[axis] for axis in axes])

    return Found(project, f"{found.report.engine}: {found.report.status}", found.report.cycles, after)


if __name__ == "__main__":
    main(fitted)
