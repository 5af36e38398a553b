"""mbi in float64 with the estimator that got furthest in trials, or the one named in $MBI_ESTIMATOR.

Every margin is a measurement without noise. Exact estimators need tables over the cliques of a junction tree; the
mixture of products needs none. mbi shows its margins every 50 steps: the fit ends where their residuals are small,
after $MBI_SECONDS of CPU time, or after 5000 steps. Making a model of them that answers more than the margins takes
longer than the fit: it is not counted in its time, and left out where a clique is larger than MODEL_CELLS.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import numpy as np  # noqa: E402
import optax  # noqa: E402
from margins_measure import Axes, Found, NoAnswer, Project, Task, main  # noqa: E402
from mbi import Domain, LinearMeasurement, estimation  # noqa: E402
from mbi.extensions.mixture_of_products import MixtureOfProductsEstimator  # noqa: E402
from mbi.junction_tree import make_junction_tree  # noqa: E402

STEPS = 5000
LOOK = 50
MODEL_CELLS = 10**5


class Enough(Exception):  # noqa: N818
    """Raised in mbi's callback, its only way to end early."""


class Watched:
    """Keeps the state that the callback is shown, for a model to be made of it."""

    held: list[Any] = []  # noqa: RUF012

    def _callback_value(self, state: Any, *args: Any, **named: Any) -> Any:
        self.held[:] = [state]
        return super()._callback_value(state, *args, **named)  # type: ignore[misc]


@dataclass(frozen=True)
class Accelerated(Watched, estimation.UniversalAcceleratedMethod):  # type: ignore[misc]
    """Nesterov's universal method on the cliques of a junction tree."""


@dataclass(frozen=True, kw_only=True)
class Mixture(Watched, MixtureOfProductsEstimator):  # type: ignore[misc]
    """200 products."""

    optimizer: Any = field(default_factory=lambda: optax.adam(0.1))
    num_components: int = 200


ESTIMATORS = {"accelerated": Accelerated, "mixture": Mixture}


def fitted(task: Task, tolerance: float | None) -> Found:
    start = time.process_time()
    limit = float(os.environ.get("MBI_SECONDS", "inf"))
    names = [f"v{axis:02}" for axis in range(len(task.shape))]
    domain, total = Domain(names, task.shape), float(task.margins[0][1].sum())
    cliques = [tuple(names[axis] for axis in axes) for axes, _ in task.margins]
    asked = [
        LinearMeasurement((target * total).ravel(), clique)
        for clique, (_, target) in zip(cliques, task.probabilities, strict=True)
    ]
    shown: list[Any] = []
    looks, status = 0, f"{STEPS} steps"

    def look(marginals: Any) -> None:
        nonlocal looks, status
        looks += 1
        shown[:] = [marginals]
        matched = tolerance is not None and task.residual(_project_of(marginals, names, total)) <= tolerance
        if matched or time.process_time() - start > limit:
            status = "matched" if matched else f"stopped at {limit:.0f} CPU s"
            raise Enough

    estimator = ESTIMATORS[os.environ.get("MBI_ESTIMATOR", "accelerated")]()
    with suppress(Enough):
        estimator.estimate(domain, asked, known_total=total, iters=STEPS, callback_fn=look)

    models: list[Any] = []

    def project(axes: Axes) -> np.ndarray:
        if shown[0].supports(tuple(names[axis] for axis in axes)):
            return _project_of(shown[0], names, total)(axes)
        tree, _ = make_junction_tree(domain, cliques)
        if max(domain.size(clique) for clique in tree.nodes) > MODEL_CELLS:
            raise NoAnswer
        if not models:
            models.append(estimator._finalize(estimator.held[0], total))
        return _project_of(models[0], names, total)(axes)

    return Found(project, status, looks * LOOK)


def _project_of(model: Any, names: list[str], total: float) -> Project:
    def project(axes: Axes) -> np.ndarray:
        counts = model.project(tuple(names[axis] for axis in axes)).datavector(flatten=False)
        return np.asarray(counts) / total

    return project


if __name__ == "__main__":
    main(fitted)
