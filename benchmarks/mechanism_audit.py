"""Power and false alarms of the mechanism audit: the tables of docs/mechanism_audit.md.

    python -m benchmarks.mechanism_audit                        every planted bug x generator x epsilon
    python -m benchmarks.mechanism_audit --false-alarm 200      that many audits of each correct build

The virtual cohort's own reference and options; bugs are planted in the production functions (planted_bugs.py). CPU
seconds are those of one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.planted_bugs import HARMLESS, PLANTED
from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode, load_cohort_spec
from synth_platform.contract.tables import split_public
from synth_platform.generators.build import make_generator
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.sources.read import read_cohort
from synth_platform.trials.mechanism_audit import MechanismVerdict, mechanism_audit

COHORT = Path(__file__).resolve().parents[1] / "cohorts" / "virtual"
GENERATORS: tuple[GeneratorCode, ...] = ("G0", "G0A")
BUILDS: dict[str, Callable[[], Any]] = {"correct": nullcontext, **PLANTED, **HARMLESS}


def stage() -> tuple[CohortSpec, PublicReference]:
    spec = load_cohort_spec(COHORT / "cohort.yaml")
    public, _ = split_public(read_cohort(spec, COHORT), spec)
    return spec, build_reference(public, spec)


def audited(
    spec: CohortSpec, reference: PublicReference, code: GeneratorCode, epsilon: float, adaptive: bool = False
) -> tuple[MechanismVerdict, float]:
    """The verdict and the CPU seconds it took."""
    delta, start = spec.privacy.budget.delta, time.process_time()
    generator = make_generator(code, reference, spec, Plan(epsilon=epsilon, delta=delta))
    return mechanism_audit(generator, reference, delta, adaptive=adaptive), time.process_time() - start


def power(epsilons: list[float], repetitions: int) -> None:
    spec, reference = stage()
    print("| build | generator | ε | μ charged | μ proved, median | caught | CPU s, median |\n" + "|---" * 7 + "|")
    for name, build in BUILDS.items():
        for code in GENERATORS:
            for epsilon in epsilons:
                with build():
                    runs = [audited(spec, reference, code, epsilon) for _ in range(repetitions)]
                verdicts = [verdict for verdict, _ in runs]
                caught = sum(verdict.status == "CONTRADICTION" for verdict in verdicts)
                print(
                    f"| {name} | `{code}` | {epsilon:g} | {verdicts[0].mu_claimed:.3f} "
                    f"| {np.median([verdict.mu_lower_bound for verdict in verdicts]):.3f} | {caught} of {repetitions} "
                    f"| {np.median([seconds for _, seconds in runs]):.1f} |",
                    flush=True,
                )


def false_alarms(audits: int, epsilon: float) -> None:
    spec, reference = stage()
    for code in GENERATORS:
        verdicts = [audited(spec, reference, code, epsilon)[0] for _ in range(audits)]
        ratio = [verdict.mu_lower_bound / verdict.mu_claimed for verdict in verdicts]
        alarms = sum(verdict.status == "CONTRADICTION" for verdict in verdicts)
        print(
            f"`{code}` ε={epsilon:g}: {alarms} of {audits} correct builds contradicted; "
            f"μ proved / μ charged: median {np.median(ratio):.3f}, largest {max(ratio):.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--false-alarm", type=int, metavar="AUDITS")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 8.0])
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.false_alarm:
        false_alarms(arguments.false_alarm, arguments.epsilon[0])
    else:
        power(arguments.epsilon, arguments.repetitions)


if __name__ == "__main__":
    main()
