"""Margins of private rows by this platform, chosen or declared, fitted as a plan fits them.

    python aim_platform.py TASK.npz ANSWER.npz adaptive|declared

The same task and figures as `aim_mbi`. All noise comes through the queries of a rehearsal, with a seed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import combinations

import numpy as np

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.fit import fit
from synth_platform.margins.noise.adaptive import choose_and_measure
from synth_platform.margins.noise.noisy import measure_declared
from synth_platform.margins.rows import Rows
from synth_platform.privacy.events import tally
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.rehearsal import Rehearsal


def main() -> None:
    with np.load(sys.argv[1]) as file:
        task = dict(file)
    names = [f"v{axis:02}" for axis in range(len(task["shape"]))]
    variables = zip(names, task["shape"].tolist(), strict=True)
    domain = Domain(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in variables))
    rows, pairs, mu = Rows(domain, task["codes"]), list(combinations(names, 2)), float(task["mu"])
    wall, cpu = time.perf_counter(), time.process_time()
    rehearsal = Rehearsal(rows, SeededNoise(int(task["seed"])))
    bought = choose_and_measure if sys.argv[3] == "adaptive" else measure_declared
    margins, releases = bought(rehearsal.ask, domain, pairs, (), mu)
    measured = time.process_time() - cpu
    fitted = fit(margins, np.random.default_rng(int(task["seed"])))
    figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "measured": measured}
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if np.sqrt(2 * tally(rehearsal.events).rho) > mu:
        raise SystemExit("more was spent than mu")
    queries = [[names[axis] for axis in query if axis >= 0] for query in task["queries"]]
    answers = {f"answer{at:04}": fitted.probabilities(query) for at, query in enumerate(queries)}
    np.savez(sys.argv[2], **answers)
    told = {"engine": fitted.report.engine, "status": fitted.report.status, "sigma": releases[-1].sigma}
    print(json.dumps({**figures, **told, "rounds": len(releases) // 2, "margins": len(margins.margins)}))


if __name__ == "__main__":
    main()
