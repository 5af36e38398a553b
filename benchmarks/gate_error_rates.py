"""False alarms of the closest-record gate, the table of docs/gates.md: how often it refuses a table that leaks nothing.

    python -m benchmarks.gate_error_rates            300 fresh null seeds a cohort
    python -m benchmarks.gate_error_rates --seeds 1000

Real against real, as `synth cohort tolerances` draws it, with seeds that no tolerance was made of: the published
tolerances, those of the published rule over independent probes, and the recommended ones, for independent rows and for
resampled ones. In brackets the two-sided 95 % Clopper-Pearson interval.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.confusion import interval
from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.tables import of_split
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.calibration import TABLE_KINDS, Calibration, excess_failure
from synth_platform.evaluation.closest_record import NEAR_SHARE, closest_record_gate
from synth_platform.evaluation.null import registered_null
from synth_platform.evaluation.statistics import six
from synth_platform.normalize.reference import build_reference
from synth_platform.sources.read import read_cohort

COHORTS = Path(__file__).resolve().parents[1] / "cohorts"
FIRST_SEED = 900_000
PUBLISHED = (0.115, 0.035)  # 8-1 §3.4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300)
    seeds = parser.parse_args().seeds
    print("| cohort | tolerances | table | nearer side refused | excess refused (exact) | either |")
    print("|---|---|---|---|---|---|")
    for name in ("virtual", "tcga_brca"):
        cohort(name, seeds)


def cohort(name: str, seeds: int) -> None:
    """Lines of one cohort."""
    folder = COHORTS / name
    spec = load_cohort_spec(folder / "cohort.yaml")
    tables = validate(select_registered(read_cohort(spec, folder), spec), spec).accepted
    null = registered_null(spec, build_reference(of_split(tables, "public"), spec))
    frozen = Calibration.from_dict(json.loads((folder / "calibration.json").read_text(encoding="utf-8")))
    rule = frozen.statistics["independent"]
    candidates = {
        "published": PUBLISHED,
        "published rule": (rule["train_closer"]["tolerance"], rule["excess"]["tolerance"]),
        "recommended": tuple(frozen.tolerances.values()),
        "registered": (spec.gates.train_closer_tolerance, spec.gates.excess_tolerance),
    }
    if candidates["registered"] == candidates["recommended"]:
        del candidates["registered"]
    uppers = {kind: np.empty((seeds, 2)) for kind in TABLE_KINDS}
    for i in range(seeds):
        rows = null.draw(FIRST_SEED + i)
        for kind, table in (("independent", rows.synthetic), ("resampled", rows.resampled)):
            verdict = closest_record_gate(rows.train, rows.holdout, table, spec.gates)
            uppers[kind][i] = verdict.train_closer_upper, verdict.excess_upper
    for label, (nearer, excess) in candidates.items():
        exact = excess_failure(null.sizes.synthetic, null.sizes.holdout, excess)
        for kind in TABLE_KINDS:
            refused = uppers[kind] > [float(six(0.5 + nearer)) + 5e-7, float(six(NEAR_SHARE + excess)) + 5e-7]
            shares = [_share(int(count), seeds) for count in (*refused.sum(axis=0), refused.any(axis=1).sum())]
            law = f" ({exact:.1%})" if kind == "independent" else ""
            print(
                f"| {name} | {label} {nearer:g}, {excess:g} | {kind} | {shares[0]} | {shares[1]}{law} | {shares[2]} |",
                flush=True,
            )


def _share(count: int, trials: int) -> str:
    lower, upper = interval(count, trials)
    return f"{count / trials:.1%} [{lower:.1%}, {upper:.1%}]"


if __name__ == "__main__":
    main()
