"""The tables of docs/half_split.md: the audit of TCGA-BRCA, and what it makes of generators whose leak is known.

    python -m benchmarks.half_split                every DP generator and plan of the bundled real cohort
    python -m benchmarks.half_split --known        planted leaks on the same rows, against one table's gate
    python -m benchmarks.half_split --spaces       the same attacks in other spaces
    python -m benchmarks.half_split --shadows      the likelihood-ratio attack by how many shadows taught it

Figures are AUROCs, mean ± standard error over the repetitions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.generator_table import tcga_stage
from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import DP_GENERATORS
from synth_platform.evaluation.attacks import attack_scores
from synth_platform.normalize.batch import fit_batch
from synth_platform.normalize.rows import EncodedRows, FloatArray, concatenate
from synth_platform.trials.blocks import BlockStore
from synth_platform.trials.half_split import HalfSplit, Training, block_count, dp_half_split, dp_training
from synth_platform.trials.half_split_gate import LIRA, half_split_document
from synth_platform.trials.lira import fit_row_test
from synth_platform.trials.repeated import aurocs
from synth_platform.trials.stage import Stage

LEAKY = Plan(epsilon=200.0, delta=1e-5)  # hardly any noise: what the generators' structure leaks


def document(stage: Stage, audit: HalfSplit, code: Any, plan: Plan) -> Mapping[str, Any]:
    """The audit as the asset runs it, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        store = BlockStore(Path(folder))
        for block in range(block_count(stage.spec.gates.repetitions)):
            audit.run_block(store, block)
        return half_split_document(stage.spec, code, plan, audit.halves, audit.collect(store))


def line(name: str, judged: Mapping[str, Any], seconds: float) -> str:
    figures = judged["summary"]["attacks"]
    cells = [f"{f['auroc']:.3f} ± {f['standard_error']:.3f} (≤ {f['upper']:.3f})" for f in figures.values()]
    tpr = max(f["tpr_at_1pct_fpr"] for f in figures.values())
    return f"| {name} | {' | '.join(cells)} | {tpr:.3f} | `{judged['status']}` | {seconds:.0f} |"


def header(attacks: Iterable[str]) -> str:
    return heading("generator", *attacks, LIRA, "largest TPR at 1 % FPR", "status", "s")


def heading(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n|{'---|' * len(cells)}"


def audits(stage: Stage) -> None:
    print(header(sorted(stage.spec.gates.attacks)))
    for code in DP_GENERATORS:
        for key, plan in stage.spec.plans.items():
            start = time.process_time()
            audit = dp_half_split(code, stage.spec, stage.reference, plan, stage.rows, "benchmark")
            judged = document(stage, audit, code, plan)
            print(line(f"`{code}` {key}", judged, time.process_time() - start), flush=True)
    summary = judged["summary"]
    print("\n" + ", ".join(f"{k} {summary[k]}" for k in ("rows", "repetitions", "required_repetitions", "power")))


def mixing(stage: Stage, share: float, jitter: float = 0.0, *, same: bool = False) -> Training:
    """Public rows with `share` of the table copied from members, moved by `jitter` sd.

    same: never other members than the first of the pool, instead of any: a leak of certain people.
    """
    public = stage.reference.rows

    def train(rows: EncodedRows, noise: int, table: int) -> EncodedRows:
        rng = np.random.default_rng([noise, table])
        total = stage.spec.synthetic.rows
        copied = round(share * total)
        order = np.arange(len(rows)) if same else rng.permutation(len(rows))
        members = rows.take(order[:copied])
        members = replace(members, x=members.x + jitter * rng.normal(size=members.x.shape))
        return concatenate([members, public.take(rng.integers(len(public), size=total - len(members)))])

    return train


def planted(stage: Stage) -> dict[str, Training]:
    return {
        "public rows (no leak)": mixing(stage, 0.0),
        "2 % copies": mixing(stage, 0.02),
        "5 % copies": mixing(stage, 0.05),
        "15 % copies (`S_MIX`)": mixing(stage, 0.15),
        "15 % copies, jitter .3 sd": mixing(stage, 0.15, 0.3),
        "15 % copies, always of the same people": mixing(stage, 0.15, same=True),
        "copies (`S_COPY`)": lambda rows, _, __: rows,
    }


def known(stage: Stage) -> None:
    print(header(sorted(stage.spec.gates.attacks)))
    for name, train in planted(stage).items():
        start = time.process_time()
        audit = HalfSplit(stage.spec, stage.reference, stage.rows, train, {"generator": name})
        print(line(name, document(stage, audit, "G0", LEAKY), time.process_time() - start), flush=True)


def figure(values: FloatArray) -> str:
    values = values.reshape(-1, 2).mean(axis=1)  # pairs are what is independent
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def learned(scores: FloatArray, members: FloatArray, shadows: int, attacked: slice) -> FloatArray:
    test = fit_row_test(scores[:, :shadows], members[:shadows])
    return aurocs(test(scores[:, attacked]), members[attacked])


def trainings(stage: Stage) -> dict[str, Training]:
    return {
        **{f"`{code}` ε=200": dp_training(code, stage.spec, stage.reference, LEAKY) for code in DP_GENERATORS},
        "15 % copies": mixing(stage, 0.15),
    }


def spaces(stage: Stage) -> None:
    audit = HalfSplit(stage.spec, stage.reference, stage.rows, lambda rows, _, __: rows, {})
    pool, halves, gates = audit.pool, audit.halves, stage.spec.gates
    columns = stage.reference.encoder.omics_columns
    whole = fit_batch(pool, columns=columns, minimum_batch=stage.spec.reference.minimum_batch)
    others = {
        "L1, as trained on": pool.x,
        "corrected by the training split": stage.correction.apply(pool).x,
        "corrected by the pool": whole.apply(pool).x,
    }
    members = halves.all_members()
    print(heading("generator", "space", *sorted(gates.attacks), LIRA))
    for name, train in trainings(stage).items():
        found: dict[str, list[list[FloatArray]]] = {space: [] for space in others}
        for r in range(halves.repetitions):
            synthetic = train(pool.take(members[r]), *halves.seeds(r)[1:])
            for space, x in others.items():
                scores = attack_scores(
                    x, synthetic.x, stage.reference.rows.x, neighbours=gates.neighbours, attacks=gates.attacks
                )
                found[space].append([scores[code] for code in sorted(scores)])
        for space in others:
            stacked = np.array(found[space]).transpose(1, 0, 2)
            cells = [figure(aurocs(attack, members)) for attack in stacked]
            cells.append(figure(learned(stacked, members, halves.shadows, slice(halves.shadows, None))))
            print(f"| {name} | {space} | {' | '.join(cells)} |", flush=True)


def shadows(stage: Stage) -> None:
    numbers = (4, 8, 16, 32, 64)
    gates = stage.spec.gates.model_copy(update={"repetitions": 96})
    spec = stage.spec.model_copy(update={"gates": gates})
    print(heading("generator", *(f"{n} shadows" for n in numbers)))
    for name, train in trainings(stage).items():
        audit = HalfSplit(spec, stage.reference, stage.rows, train, {})
        every = [audit.scores(r) for r in range(96)]
        stacked = np.array([[scores[code] for scores in every] for code in every[0]])
        members = audit.halves.all_members()
        cells = [figure(learned(stacked, members, n, slice(64, None))) for n in numbers]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables: dict[str, Callable[[Stage], None]] = {"known": known, "spaces": spaces, "shadows": shadows}
    for name in tables:
        parser.add_argument(f"--{name}", action="store_true")
    arguments = parser.parse_args()
    chosen = [table for name, table in tables.items() if getattr(arguments, name)] or [audits]
    for table in chosen:
        table(tcga_stage())


if __name__ == "__main__":
    main()
