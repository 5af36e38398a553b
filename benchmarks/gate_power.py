"""Power of the gates on the bundled cohorts, the table of docs/gates.md: what `gates/power` holds of each.

    python -m benchmarks.gate_power                what `gates/power` holds of both
    python -m benchmarks.gate_power --scaling      rows for 90 % power, and what passes at fewer rows, in other worlds

Gate figures of a cohort are functions of its private rows and stay restricted; the rows of these two are public.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.confusion import VIRTUAL
from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.validate import select_registered, validate
from synth_platform.sources.read import read_cohort
from synth_platform.trials.power import PASSING, UtilityTrial, fresh_tables, gate_power
from synth_platform.trials.rows_needed import rows_needed
from synth_platform.trials.stage import Stage, make_stage

COHORTS = Path(__file__).resolve().parents[1] / "cohorts"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scaling", action="store_true")
    if parser.parse_args().scaling:
        scaling()
    else:
        bundled()


def bundled() -> None:
    """The power of every endpoint and gate on the bundled cohorts."""
    print("| cohort | endpoint or gate | power | rows | rows for 90 % | how |")
    print("|---|---|---|---|---|---|")
    for name in ("virtual", "tcga_brca"):
        folder = COHORTS / name
        spec = load_cohort_spec(folder / "cohort.yaml")
        stage = make_stage(spec, validate(select_registered(read_cohort(spec, folder), spec), spec).accepted)
        start = time.process_time()
        power = gate_power(stage)["summary"]
        seconds = time.process_time() - start
        for endpoint, figures in power["utility"].items():
            how = f"{power['design']}, {figures['method']}, {figures['draws']} draws"
            needed = "no number" if figures["rows_for_90"] is None else f"{figures['rows_for_90']:,}"
            print(f"| {name} | {endpoint} | {figures['power']:.2f} | {figures['rows']} | {needed} | {how} |")
        print(f"| {name} | utility gate | {power['utility_gate']['power']:.2f} | | | all endpoints at once |")
        membership, closest = power["membership"], power["closest_record"]
        print(
            f"| {name} | membership gate | at least {membership['power']:.2f} | {membership['rows']} | "
            f"{membership['required_rows']} for each attack | null law |"
        )
        print(
            f"| {name} | closest-record gate | {closest['power']:.2f} | | | {closest['method']}, {closest['draws']} "
            f"draws; excess share refused {closest['excess_false_alarm']:.1%} by its exact law |"
        )
        print(f"| {name} | low | {', '.join(power['low']) or 'none'} | | | {seconds:.1f} CPU s |", flush=True)


def scaling() -> None:
    """Rows that each of twelve worlds asks for at 240 test rows, and fresh draws that pass with fewer, one a world."""
    print("| endpoint | rows for 90 %: quartiles over 12 worlds | passed of 30, by test rows: 60 | 100 | 140 |")
    print("|---|---|---|---|---|")
    asked: dict[str, list[float]] = {}
    for world in range(301, 313):
        stage = resized(world, 240)
        trial = UtilityTrial.of(stage)
        assert trial is not None
        judged = [trial.judge(fresh_tables(stage, seed), seed) for seed in range(10)]
        for endpoint in stage.spec.endpoints:
            own = [verdicts[endpoint.name].judged for verdicts in judged]
            rows = rows_needed(own, chance=endpoint.chance, rows=240, groups=stage.spec.gates.groups)
            asked.setdefault(endpoint.name, []).append(float("inf") if rows is None else rows)
    passed: dict[tuple[str, int], int] = dict.fromkeys(((name, rows) for name in asked for rows in (60, 100, 140)), 0)
    for world in range(401, 431):
        for rows in (60, 100, 140):
            stage = resized(world, rows)
            trial = UtilityTrial.of(stage)
            assert trial is not None
            for name, verdict in trial.judge(fresh_tables(stage, 1), 1).items():
                passed[name, rows] += verdict.judged.status in PASSING
    for name, wanted in asked.items():
        quartiles = ", ".join(f"{q:.0f}" for q in np.quantile(wanted, [0.25, 0.5, 0.75]))
        print(f"| {name} | {quartiles} | {' | '.join(str(passed[name, rows]) for rows in (60, 100, 140))} |")


def resized(world: int, test: int) -> Stage:
    """The virtual cohort in another world with `test` test rows, 720 rows outside the training arm as ever."""
    spec = load_cohort_spec(VIRTUAL / "cohort.yaml")
    options = spec.source.options | {"world_seed": world, "test": test, "holdout": 720 - test}
    spec = spec.model_copy(update={"source": spec.source.model_copy(update={"options": options})})
    return make_stage(spec, read_cohort(spec, VIRTUAL))


if __name__ == "__main__":
    main()
