"""AIM with mbi for its model: the published mechanism, driven from here because the package holds no mechanism.

    python aim_mbi.py TASK.npz ANSWER.npz

TASK: codes [rows, variables], shape, mu, seed, cells (limit of the model), queries. All pairs are the workload; one-way
margins first, at most 16 rounds a variable, a tenth of each round for the choice, σ halved where a margin changed the
model by no more than noise would, what is left for the last round: the constants of the paper (PVLDB 15, 2022). ρ is
mu²/2. ANSWER: probabilities of the asked tables. Only NumPy, JAX and mbi are imported.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import time
import warnings

import jax

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from mbi import Dataset, Domain, LinearMeasurement, estimation, junction_tree  # noqa: E402

ITERATIONS = 1000
CLEARED = 8  # rounds: every model is compiled anew, and the kernel's limit of memory maps ends a process that keeps all
TOLERANCE = 1e-4  # relative fall of the loss over a block of steps, at which mbi's own rule ends a fit


def run(task: dict[str, np.ndarray]) -> tuple[object, list[tuple[str, ...]], float, int]:
    """The last model, what was measured, the number of rounds."""
    rng = np.random.default_rng(int(task["seed"]))
    names = [f"v{axis:02}" for axis in range(len(task["shape"]))]
    domain = Domain(names, tuple(map(int, task["shape"])))
    data = Dataset(dict(zip(names, task["codes"].T, strict=True)), domain)
    singles = [(name,) for name in names]
    pairs = list(itertools.combinations(names, 2))
    weights = {c: float(sum(len(set(c) & set(pair)) for pair in pairs)) for c in singles + pairs}
    counts = {c: np.asarray(data.project(c).datavector()) for c in weights}
    total = float(task["mu"]) ** 2 / 2
    sigma = np.sqrt(16 * len(names) / (2 * 0.9 * total))
    choice = np.sqrt(8 * 0.1 * total / (16 * len(names)))
    spent = len(names) / (2 * sigma**2)
    estimator = estimation.MirrorDescent()
    measured: list[LinearMeasurement] = []

    def measure(c: tuple[str, ...]) -> None:
        measured.append(LinearMeasurement(counts[c] + rng.normal(0, sigma, counts[c].size), c, stddev=sigma))

    def fit(start: object) -> object:
        return estimator.estimate(domain, measured, iters=ITERATIONS, warm_start=start, tol=TOLERANCE)

    def modelled(c: tuple[str, ...]) -> np.ndarray:
        return np.asarray(model.project(c).datavector())  # type: ignore[attr-defined]

    for single in singles:
        measure(single)
    model, rounds, last = fit(None), 0, False
    while not last:
        if total - spent < 2 * (1 / (2 * sigma**2) + choice**2 / 8):
            sigma, choice, last = np.sqrt(1 / (1.8 * (total - spent))), np.sqrt(0.8 * (total - spent)), True
        spent += 1 / (2 * sigma**2) + choice**2 / 8
        limit = float(task["cells"]) * 8 / 2**20 * spent / total
        held = [m.clique for m in measured]
        cliques = [set(c) for c in junction_tree.maximal_cliques(junction_tree.make_junction_tree(domain, held)[0])]
        small = [
            c
            for c in weights
            if any(set(c) <= clique for clique in cliques)
            or junction_tree.hypothetical_model_size(domain, [*held, c]) <= limit
        ]
        scores = np.array(
            [
                weights[c] * (np.abs(counts[c] - modelled(c)).sum() - np.sqrt(2 / np.pi) * sigma * counts[c].size)
                for c in small
            ]
        )
        keys = choice * scores / (2 * max(weights[c] for c in small)) + rng.gumbel(size=len(small))
        chosen = small[int(keys.argmax())]
        before = modelled(chosen)
        measure(chosen)
        model, rounds = fit(model), rounds + 1
        if rounds % CLEARED == 0:
            jax.clear_caches()
        if np.abs(modelled(chosen) - before).sum() <= sigma * np.sqrt(2 / np.pi) * before.size:
            sigma, choice = sigma / 2, choice * 2
        print(rounds, chosen, round(spent / total, 3), round(time.process_time()), file=sys.stderr, flush=True)
    return model, [m.clique for m in measured], float(sigma), rounds


def main() -> None:
    with np.load(sys.argv[1]) as file:
        task = dict(file)
    wall, cpu = time.perf_counter(), time.process_time()
    model, measured, sigma, rounds = run(task)
    figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers = {}
    for at, query in enumerate(task["queries"]):
        asked = tuple(f"v{axis:02}" for axis in query if axis >= 0)
        table = np.asarray(model.project(asked).datavector(flatten=False))  # type: ignore[attr-defined]
        answers[f"answer{at:04}"] = table / table.sum()
    np.savez(sys.argv[2], **answers)
    print(json.dumps({**figures, "rounds": rounds, "margins": len(set(measured)), "sigma": sigma}))


if __name__ == "__main__":
    main()
