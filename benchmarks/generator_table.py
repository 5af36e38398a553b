"""The generator table of docs/generators.md: preservation by generator, privacy target and public shift.

    python -m benchmarks.generator_table            the virtual cohort (worlds the defaults were not tuned on)
    python -m benchmarks.generator_table --tcga     the bundled real cohort

Every private row is read through the real mechanism with seeded noise, and every table is restored to native units and
encoded again before it is judged (8-1 §3.1 rule 4). A figure is the mean of TSTR / TRTR over worlds, draws of the noise
and sampling seeds.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synth_platform.contract.cohort_spec import EndpointName, GeneratorCode, Plan, load_cohort_spec
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.utility import score_table
from synth_platform.generators.controls import fit_control
from synth_platform.generators.protocol import GeneratorState
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.read import read_cohort
from synth_platform.sources.virtual import draw_fresh
from synth_platform.trials.stage import Stage, fit_trial, make_stage, trial_table

COHORTS = Path(__file__).resolve().parents[1] / "cohorts"
ENDPOINTS: tuple[EndpointName, ...] = ("c_index", "macro_f1", "auroc", "spearman")
WORLDS = (31, 32, 33, 34, 35, 36)
SHIFTS = (0.0, 0.3, 0.7)
NOTHING_SPENT = 0.001  # G0A at this epsilon learns nothing: what its use of public rows alone is worth
EPSILONS = (0.2, 0.5, 1.0, 2.0, 8.0)
SAMPLING_SEEDS = (1, 2, 3)
PUBLIC_SEEDS = tuple(range(1, 13))  # without noise there is only the resampling to average over
Scores = dict[EndpointName, float]


@dataclass(frozen=True)
class Bench:
    """One cohort ready to be judged on."""

    stage: Stage

    @property
    def classes(self) -> int:
        return len(self.stage.reference.labels)

    def scores(self, rows: EncodedRows) -> Scores:
        values = score_table(rows, self.stage.real.where_split("test"), self.classes)
        return {name: float("nan") if values[name] is None else float(values[name] or 0.0) for name in ENDPOINTS}

    def judged(self, state: GeneratorState, seed: int) -> Scores:
        """TSTR of one synthetic table, in the form it would be released in."""
        return self.scores(trial_table(state, self.stage.spec, self.stage.reference, seed=seed))


def virtual_bench(world: int, shift: float) -> Bench:
    spec = load_cohort_spec(COHORTS / "virtual" / "cohort.yaml")
    options = spec.source.options | {"world_seed": world, "row_seed": 0, "public_shift": shift}
    spec = spec.model_copy(update={"source": spec.source.model_copy(update={"options": options})})
    return Bench(make_stage(spec, read_cohort(spec, COHORTS / "virtual")))


def tcga_bench() -> Bench:
    folder = COHORTS / "tcga_brca"
    spec = load_cohort_spec(folder / "cohort.yaml")
    return Bench(make_stage(spec, validate(select_registered(read_cohort(spec, folder), spec), spec).accepted))


def fitted(b: Bench, code: GeneratorCode, epsilon: float, noise_seed: int) -> GeneratorState:
    spec = b.stage.spec
    plan = Plan(epsilon=epsilon, delta=spec.privacy.budget.delta)
    return fit_trial(code, spec, b.stage.reference, plan, b.stage.rows.where_split("train"), seed=noise_seed)


def preservations(
    b: Bench, states: Iterable[GeneratorState], seeds: Iterable[int] = SAMPLING_SEEDS
) -> Iterator[Scores]:
    real = b.scores(b.stage.real.where_split("train"))
    for state, seed in itertools.product(states, seeds):
        table = b.judged(state, seed)
        yield {name: table[name] / real[name] for name in ENDPOINTS}


def oracle(b: Bench) -> GeneratorState:
    stage = b.stage
    drawn = draw_fresh(stage.spec, stage.spec.synthetic.rows * len(SAMPLING_SEEDS), 1)
    fresh = stage.correction.apply(stage.reference.encoder.encode(drawn))
    return fit_control("S_ORACLE", reference=stage.reference, fresh=fresh)


def rows_of(b: Bench, epsilons: Iterable[float], draws: range) -> Iterator[tuple[str, list[Scores]]]:
    """(generator and target, preservations of every draw and sampling seed) of one cohort."""
    plans: list[tuple[GeneratorCode, float]] = [("G0", epsilon) for epsilon in epsilons]
    plans += [("G0A", epsilon) for epsilon in (NOTHING_SPENT, *epsilons)]
    for code, epsilon in plans:
        states = [fitted(b, code, epsilon, draw) for draw in draws]
        yield f"`{code}` ε={epsilon:g}", list(preservations(b, states))
    yield "`S_PUBLIC`", list(preservations(b, [fit_control("S_PUBLIC", reference=b.stage.reference)], PUBLIC_SEEDS))
    if b.stage.spec.source.reader == "virtual":
        yield "`S_ORACLE`", list(preservations(b, [oracle(b)]))


def cell(scores: list[Scores]) -> str:
    return " / ".join(f"{np.mean([score[name] for score in scores]):.3f}" for name in ENDPOINTS)


def virtual_table(worlds: Iterable[int], epsilons: Iterable[float]) -> str:
    table: dict[str, dict[float, list[Scores]]] = {}
    for world, shift in itertools.product(worlds, SHIFTS):
        draws = range(world, world + 1)  # the noise is another one in every world
        for name, scores in rows_of(virtual_bench(world, shift), epsilons, draws):
            table.setdefault(name, {}).setdefault(shift, []).extend(scores)
    lines = ["| P: C-index / macro-F1 / AUROC / Spearman | " + " | ".join(f"shift {s:g}" for s in SHIFTS) + " |"]
    lines.append("|---|" + "---|" * len(SHIFTS))
    lines += [f"| {name} | " + " | ".join(cell(cells[s]) for s in SHIFTS) + " |" for name, cells in table.items()]
    return "\n".join(lines)


def tcga_table(epsilons: Iterable[float], draws: int) -> str:
    b = tcga_bench()
    real = b.scores(b.stage.real.where_split("train"))
    lines = ["| TCGA-BRCA, P: C-index / macro-F1 / AUROC / Spearman | mean |", "|---|---|"]
    lines.append("| TRTR itself | " + " / ".join(f"{real[name]:.3f}" for name in ENDPOINTS) + " |")
    lines += [f"| {name} | {cell(scores)} |" for name, scores in rows_of(b, epsilons, range(draws))]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcga", action="store_true", help="the real cohort instead of the virtual one")
    parser.add_argument("--worlds", type=int, nargs="+", default=list(WORLDS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--draws", type=int, default=10, help="draws of the noise on the real cohort")
    arguments = parser.parse_args()
    start = time.perf_counter()
    if arguments.tcga:
        print(tcga_table(arguments.epsilons, arguments.draws))
    else:
        print(virtual_table(arguments.worlds, arguments.epsilons))
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
