"""Which judge sees which leak, at what size: the tables of docs/attacks.md.

    python -m benchmarks.planted_leaks [--rows N ...] [--worlds N] [--processes N]

Each world is a virtual cohort of its own, with as many holdout as training rows. Its table is an independent draw of
the truth in which some rows are replaced by training rows, outcome and all, and it is judged in the form it would be
released in. A figure is the number of worlds in which a judge speaks up (where nothing is planted, false alarms); the
last line has the 95 % Clopper-Pearson interval of the rate behind each number.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import betabinom, binomtest

from benchmarks.generator_table import COHORTS
from synth_platform.contract.cohort_spec import CohortSpec, load_cohort_spec
from synth_platform.contract.tables import from_wide
from synth_platform.evaluation.attribute_inference import registered_secrets
from synth_platform.evaluation.audit_bound import epsilon_lower_bound
from synth_platform.evaluation.calibration import calibrate
from synth_platform.evaluation.closest_record import NEAR_SHARE, closest_record_gate
from synth_platform.evaluation.inference_risk import inference_risk
from synth_platform.evaluation.membership import FAMILY_ERROR, LOW_FALSE_POSITIVE_RATE, membership_gate
from synth_platform.evaluation.null import registered_null
from synth_platform.evaluation.statistics import six
from synth_platform.normalize.rows import EncodedRows, FloatArray
from synth_platform.sources.read import read_cohort
from synth_platform.sources.virtual import draw_fresh
from synth_platform.trials.stage import Stage, make_stage

SIZES = {266: 300, 720: 600, 2000: 1500}  # training rows: synthetic rows
PROBE_SEEDS = range(913_600, 913_616)
FIRST_WORLD = 5_000
LEDGER_EPSILON = 1.0  # what a table under attack is taken to have promised


@dataclass(frozen=True)
class Leak:
    """A share of the table that is training rows, blurred by `jitter` public standard deviations in every column.

    outlier: instead of a share, the one training row that lies farthest from the public mean.
    """

    name: str
    share: float = 0.0
    jitter: float = 0.0
    outlier: bool = False


LEAKS = (
    Leak("nothing"),
    Leak("15 % copied", 0.15),
    Leak("5 % copied", 0.05),
    Leak("2 % copied", 0.02),
    Leak("15 %, jitter .1", 0.15, 0.1),
    Leak("15 %, jitter .3", 0.15, 0.3),
    Leak("5 %, jitter .3", 0.05, 0.3),
    Leak("all, jitter .3", 1.0, 0.3),
    Leak("all, jitter 1", 1.0, 1.0),
    Leak("one outlier", outlier=True),
    Leak("one outlier, jitter .1", 0.0, 0.1, outlier=True),
)


def spec_of(world: int, rows: int) -> CohortSpec:
    """The virtual cohort with another world and other sizes; its tolerances are still those of the registered sizes."""
    spec = load_cohort_spec(COHORTS / "virtual" / "cohort.yaml")
    sizes = {"world_seed": world, "row_seed": 0, "train": rows, "holdout": rows - rows // 3, "test": rows // 3}
    return spec.model_copy(
        update={
            "source": spec.source.model_copy(update={"options": spec.source.options | sizes}),
            "privacy": spec.privacy.model_copy(update={"n_ref": rows}),
            "synthetic": spec.synthetic.model_copy(update={"rows": SIZES[rows]}),
        }
    )


def stage_of(spec: CohortSpec) -> Stage:
    return make_stage(spec, read_cohort(spec, COHORTS / "virtual"))


def tolerances_of(rows: int) -> dict[str, float]:
    """Closest-record tolerances at this size, from real-against-real probes of one world that is not judged."""
    spec = spec_of(FIRST_WORLD - 1, rows)
    null = registered_null(spec, stage_of(spec).reference)
    return calibrate(spec.name, null, spec.gates, PROBE_SEEDS).tolerances


def planted(leak: Leak, train: EncodedRows, fresh: EncodedRows, centre: FloatArray, seed: int) -> EncodedRows:
    """`fresh` with training rows in the place of its first rows."""
    rng = np.random.default_rng(seed)
    count = min(round(leak.share * len(fresh)), len(train))
    chosen = rng.permutation(len(train))[:count]
    if leak.outlier:
        chosen = np.array([np.linalg.norm(train.x - centre, axis=1).argmax()])
    source = train.take(chosen)
    source = replace(source, x=source.x + leak.jitter * rng.normal(size=source.x.shape))
    mixed = {
        name: np.concatenate([getattr(source, name), getattr(fresh, name)[len(chosen) :]])
        for name in ("x", "label", "event", "time")
    }
    return replace(fresh, **mixed)


def spoken(stage: Stage, table: EncodedRows) -> dict[str, bool]:
    """Whether each judge speaks up about a table."""
    gates = stage.spec.gates
    train, others = stage.real.where_split("train"), stage.real.where_split("holdout", "test")
    members, nonmembers = stage.attacked.where_split("train"), stage.attacked.where_split("holdout", "test")
    closest = closest_record_gate(train, others, table, gates)
    membership = membership_gate(members, nonmembers, table, stage.reference.rows, gates)
    inference = inference_risk(members, nonmembers, table, registered_secrets(stage.reference.encoder))
    attacks = membership.attacks
    limit = six(gates.membership_limit)
    scores = [
        (np.asarray(side["members"]), np.asarray(side["nonmembers"])) for side in membership.evidence["scores"].values()
    ]
    each = FAMILY_ERROR / len(scores)
    delta = stage.spec.privacy.budget.delta
    return {
        "duplicates": closest.duplicates > 0,
        "train_closer": six(closest.train_closer_upper) > six(0.5 + gates.train_closer_tolerance),
        "excess": six(closest.excess_upper) > six(NEAR_SHARE + gates.excess_tolerance),
        **{f"{name} > limit": six(attack.auroc) > limit for name, attack in attacks.items()},
        "membership gate FAIL": membership.status == "FAIL",
        **{f"{name} bound > limit": six(attack.upper) > limit for name, attack in attacks.items()},
        "TPR at 1 % FPR": any(low_rate_p_value(*sides) < each for sides in scores),
        "ε bound > 1": max(epsilon_lower_bound(*sides, delta, 1 - each) for sides in scores) > LEDGER_EPSILON,
        "attributes": "FAIL" in {inference.attribute_inference.status, *(s.status for s in inference.secrets.values())},
        "singling out": inference.singling_out.status == "FAIL",
        "inference gate FAIL": inference.status == "FAIL",
    }


def low_rate_p_value(members: FloatArray, nonmembers: FloatArray) -> float:
    """Probability that exchangeable rows put at least so many members above the threshold of 1 % false positives.

    Of n non-members x lie above it; the chance of a new row to do so is Beta(x + 1, n - x).
    """
    n = len(nonmembers)
    x = int(LOW_FALSE_POSITIVE_RATE * n)
    threshold = np.sort(nonmembers)[n - 1 - x]
    return float(betabinom.sf((members > threshold).sum() - 1, len(members), x + 1, n - x))


def judged_world(world: int, *, rows: int, tolerances: dict[str, float]) -> dict[str, dict[str, bool]]:
    spec = spec_of(world, rows)
    spec = spec.model_copy(update={"gates": spec.gates.model_copy(update=tolerances)})
    stage = stage_of(spec)
    encoder, centre = stage.reference.encoder, stage.reference.rows.x.mean(axis=0)
    fresh = stage.correction.apply(encoder.encode(draw_fresh(spec, spec.synthetic.rows, 1)))
    train = stage.real.where_split("train")
    tables = {leak.name: planted(leak, train, fresh, centre, world) for leak in LEAKS}
    return {
        name: spoken(stage, encoder.encode(from_wide(encoder.decode(table), spec))) for name, table in tables.items()
    }


def detection_table(worlds: Sequence[dict[str, dict[str, bool]]]) -> Iterator[str]:
    names = [leak.name for leak in LEAKS]
    yield f"| {len(worlds)} worlds | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    for judge in worlds[0][names[0]]:
        yield f"| {judge} | " + " | ".join(str(sum(world[name][judge] for world in worlds)) for name in names) + " |"


def rates(worlds: int) -> str:
    """What a number of worlds says of the rate behind it."""
    intervals = [binomtest(k, worlds).proportion_ci(0.95) for k in range(worlds + 1)]
    return ", ".join(f"{k}: {i.low:.2f}–{i.high:.2f}" for k, i in enumerate(intervals)).replace("0.", ".")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    start = time.perf_counter()
    with ProcessPoolExecutor(arguments.processes, multiprocessing.get_context("spawn")) as pool:
        for rows in arguments.rows:
            tolerances = tolerances_of(rows)
            print(
                f"\n{rows} training and {rows} holdout rows, {SIZES[rows]} synthetic, {arguments.worlds} worlds; "
                f"tolerances {', '.join(f'{name} {value}' for name, value in tolerances.items())}\n"
            )
            judge = partial(judged_world, rows=rows, tolerances=tolerances)
            worlds = list(pool.map(judge, range(FIRST_WORLD, FIRST_WORLD + arguments.worlds)))
            print("\n".join(detection_table(worlds)), flush=True)
    print(f"\nrates: {rates(arguments.worlds)}\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
