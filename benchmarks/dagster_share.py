"""What Dagster costs: the same plan of the virtual cohort as plain library calls and as materialised assets.

    python -m benchmarks.dagster_share

Both run in one process each, on a fresh home with a real SQLite ledger and cryptographic noise: controls, G0 and G0A at
epsilon 1, all gates and trials, decisions. The difference is Dagster's events, the IO manager's files, the schema
checks and the independent audit, which stands in front of every release.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from resources.cohorts import CohortRegistry
from resources.home import HomeResource, SynthHome
from resources.ledger import LedgerResource, NoiseResource
from resources.private import close, fingerprint_key
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS, CohortSpec, GeneratorCode
from synth_platform.contract.tables import split_public
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE
from synth_platform.generators.build import fit_measured, fresh_rows, make_generator
from synth_platform.generators.controls import fit_control
from synth_platform.generators.protocol import GeneratorState, Measured
from synth_platform.generators.registry import sample
from synth_platform.normalize.closed import encode_closed
from synth_platform.normalize.real_arm import correct_real_arm
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.normalize.replicates import draw_replicates
from synth_platform.normalize.rows import EncodedRows
from synth_platform.normalize.select import select_split
from synth_platform.release.assess import assess
from synth_platform.release.verdicts import CROSS_FIT, HALF_SPLIT, MECHANISM
from synth_platform.sources.read import read_cohort
from synth_platform.trials.cross_fit import not_registered
from synth_platform.trials.half_split import dp_half_split
from synth_platform.trials.half_split_gate import half_split_document
from synth_platform.trials.mechanism_audit import mechanism_audit_document
from synth_platform.trials.power import gate_power
from synth_platform.trials.stage import Stage

COHORT = Path(__file__).resolve().parents[1] / "cohorts" / "virtual"
PLAN = "eps1"


def as_library(root: Path) -> int:
    home = HomeResource(root=str(SynthHome(root).prepare().root))
    registry = CohortRegistry(path=str(home.paths.cohorts))
    ledger = LedgerResource(url=home.paths.ledger_url, home=home, noise=NoiseResource())
    spec = registry.add(COHORT)
    tables = validate(select_registered(read_cohort(spec, COHORT), spec), spec).accepted
    public, private = split_public(tables, spec)
    reference = build_reference(public, spec)
    key = fingerprint_key(home)
    matrix = encode_closed({name: close(frame, key) for name, frame in private}, reference)
    rows = matrix.open_for_gate("benchmark")
    correction, real = correct_real_arm(rows, reference, spec)
    stage = Stage(spec, reference, rows, real, correction)
    power = gate_power(stage)
    states: dict[GeneratorCode, GeneratorState] = {}
    for code in CONTROLS:
        fresh = fresh_rows(spec, reference, correction)
        states[code] = fit_control(code, reference=reference, train=real.where_split("train"), fresh=fresh)
    for code in DP_GENERATORS:
        curator, training = ledger.curator(spec, run_id="benchmark"), matrix.transform(select_split("train"))
        generator = make_generator(code, reference, spec, spec.plan(PLAN))
        releases = generator.measure(lambda query, c=curator, t=training: t.measure(query, c))  # type: ignore[misc]
        states[code] = fit_measured(generator, Measured(releases))
    for code, state in states.items():
        replicates = draw_replicates(
            lambda seed, s=state: sample(s, rows=spec.synthetic.rows, seed=seed),  # type: ignore[misc]
            reference.encoder,
            spec.synthetic.seeds,
        )
        verdicts = {
            gate.name: gate.judge(spec, reference, real, stage.attacked, replicates)
            for gate in (*GATES, INFERENCE_GATE)
        }
        if code in DP_GENERATORS:
            verdicts |= trials(spec, code, reference, rows)
        assess(
            spec=spec,
            code=code,
            plan_key=PLAN if code in DP_GENERATORS else None,
            tables=replicates,
            state=state,
            verdicts=verdicts,
            power=power,
            ledger=ledger.ledger(),
            store=ledger.store(),
        )
    return len(states)


def trials(
    spec: CohortSpec, code: GeneratorCode, reference: PublicReference, rows: EncodedRows
) -> dict[str, Mapping[str, Any]]:
    """Half splits and the mechanism audit; `virtual` registers no cross-fitting."""
    plan = spec.plan(PLAN)
    halves = dp_half_split(code, spec, reference, plan, rows, fingerprint="")
    parts = [halves.scores(repetition) for repetition in range(halves.halves.repetitions)]
    scores = {attack: np.array([part[attack] for part in parts]) for attack in parts[0]}
    return {
        CROSS_FIT: not_registered(spec) or {},
        HALF_SPLIT: half_split_document(spec, code, plan, halves.halves, scores),
        MECHANISM: mechanism_audit_document(code, spec, reference, plan),
    }


def as_assets(root: Path) -> int:
    from synth_platform.cli.runner import Runner  # noqa: PLC0415

    runner = Runner(SynthHome(root), Console(quiet=True))
    spec: CohortSpec = runner.registry.add(COHORT)
    runner.add_cohort(spec)
    outcomes = runner.run(spec, [PLAN], spec.generators)
    if any(outcome.failure for outcome in outcomes):
        raise SystemExit(str(outcomes))
    return sum(outcome.assets for outcome in outcomes)


def measure(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        made = globals()[name](Path(folder) / "home")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:12}  {wall:7.1f} s wall  {cpu:7.1f} s CPU  {peak:7.0f} MiB peak  {made:4} made", flush=True)


def main() -> None:
    for name in ("as_library", "as_assets"):
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(name,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
