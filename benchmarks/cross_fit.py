"""The tables of docs/cross_fit.md: the bundled real cohort judged on its test split and by cross-fitting.

    python -m benchmarks.cross_fit [--folds 5]
    python -m benchmarks.cross_fit --error      the jackknife's error beside the spread over 24 draws of a virtual world

All trainings are seeded trials. TRTR is the real arm's own value with its lower bound; P = TSTR / TRTR with its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.generator_table import COHORTS, tcga_stage
from synth_platform.contract.cohort_spec import DP_GENERATORS, GeneratorCode, load_cohort_spec
from synth_platform.evaluation.statistics import t_quantile
from synth_platform.evaluation.utility import utility_gate
from synth_platform.generators.controls import fit_control
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.virtual import draw_cohort
from synth_platform.trials.cross_fit import cross_fit, cross_fit_utility, table_rows
from synth_platform.trials.preserved import ENDPOINTS
from synth_platform.trials.stage import Stage, fit_trial, make_stage, trial_table

CONTROLS: tuple[GeneratorCode, ...] = ("S_COPY", "S_PUBLIC", "S_MARGINAL")
Summary = Mapping[str, Any]


def control_tables(
    stage: Stage, code: GeneratorCode, _: int, train: EncodedRows, real: EncodedRows
) -> Sequence[EncodedRows]:
    """S_COPY and S_MARGINAL give every training row once, the largest table that they have."""
    spec, state = stage.spec, fit_control(code, reference=stage.reference, train=real)
    rows = table_rows(spec, train) if code == "S_PUBLIC" else len(real)
    return [trial_table(state, spec, stage.reference, seed=seed, rows=rows) for seed in spec.synthetic.seeds]


def cross_fitted(stage: Stage) -> Iterator[tuple[str, Summary]]:
    for key, plan in stage.spec.plans.items():
        for code in DP_GENERATORS:
            document = cross_fit_utility(code, stage.spec, stage.reference, plan, stage.rows)
            yield f"`{code}` {key}", document["summary"]
    for code in CONTROLS:
        tables = partial(control_tables, stage, code)
        yield f"`{code}`", cross_fit(stage.spec, stage.reference, stage.rows, tables)["summary"]


def held_out(stage: Stage) -> Iterator[tuple[str, Summary]]:
    """The utility gate on the registered test split, with trials in the place of releases."""
    spec, train = stage.spec, stage.rows.where_split("train")
    for key, plan in spec.plans.items():
        for code in DP_GENERATORS:
            state = fit_trial(code, spec, stage.reference, plan, train, seed=1)
            verdict = utility_gate(
                train=stage.real.where_split("train"),
                replicates=[trial_table(state, spec, stage.reference, seed=seed) for seed in spec.synthetic.seeds],
                test=stage.real.where_split("test"),
                endpoints=spec.endpoints,
                classes=len(spec.labels),
                groups=spec.gates.groups,
                public=stage.reference.rows,
            )
            yield f"`{code}` {key}", verdict.as_dict()


def lines(name: str, judged: Iterator[tuple[str, Summary]]) -> Iterator[str]:
    for number, (table, summary) in enumerate(judged):
        endpoints = summary["endpoints"]
        if number == 0:
            yield f"| {name} | verdict | {' | '.join(endpoints)} |"
            yield "|---|---|" + "---|" * len(endpoints)
            real = (f"{e['trtr']:.3f} (≥ {e['lcb_trtr']:.3f})" for e in endpoints.values())
            yield f"| TRTR (bound) | | {' | '.join(real)} |"
        cells = (f"{e['preservation']:.3f} (≥ {e['lcb_preservation']:.3f}) {e['status']}" for e in endpoints.values())
        yield f"| {table} | {summary['status']} | {' | '.join(cells)} |"


def error_lines(draws: int = 24) -> Iterator[str]:
    """TRTR of 540 fresh rows of 30 institutions each: its spread beside the mean error that the jackknife states."""
    spec = load_cohort_spec(COHORTS / "virtual" / "cohort.yaml")
    sizes = {"train": 380, "holdout": 80, "test": 80, "public": 200}
    found = []
    for draw in range(draws):
        options = spec.source.options | sizes | {"row_seed": draw}
        changed = {
            "batches": tuple(f"B-{b:02d}" for b in range(30)),
            "latent_batches": (),
            "source": spec.source.model_copy(update={"options": options}),
        }
        drawn = spec.model_copy(update=changed)
        stage = make_stage(drawn, draw_cohort(drawn))
        summary = cross_fit(drawn, stage.reference, stage.rows, lambda *arms: [arms[-1]] * 5)["summary"]
        quantile = t_quantile(spec.gates.groups)
        found.append([(e["trtr"], (e["trtr"] - e["lcb_trtr"]) / quantile) for e in summary["endpoints"].values()])
    value, error = np.array(found).transpose(2, 0, 1)
    yield f"| {draws} draws | {' | '.join(ENDPOINTS)} |"
    yield "|---|" + "---|" * len(ENDPOINTS)
    yield f"| spread of TRTR over draws | {' | '.join(f'{v:.4f}' for v in value.std(axis=0, ddof=1))} |"
    yield f"| mean jackknife error | {' | '.join(f'{e:.4f}' for e in error.mean(axis=0))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, help="instead of the registered number")
    parser.add_argument("--error", action="store_true", help="judge the jackknife instead")
    arguments = parser.parse_args()
    if arguments.error:
        print("\n".join(error_lines()))
        return
    folds, stage = arguments.folds, tcga_stage()
    if folds is not None:
        gates = stage.spec.gates.model_copy(update={"folds": folds})
        stage = Stage(**vars(stage) | {"spec": stage.spec.model_copy(update={"gates": gates})})
    print("\n".join(lines(f"test split, {len(stage.rows.where_split('test'))} rows", held_out(stage))))
    start = time.process_time()
    print("\n" + "\n".join(lines(f"{stage.spec.gates.folds} folds, {len(stage.rows)} rows", cross_fitted(stage))))
    print(f"\n{time.process_time() - start:.0f} CPU seconds for the cross-fits")


if __name__ == "__main__":
    main()
