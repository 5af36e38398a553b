"""Private discoveries of TCGA breast cancer: what comes back of those without noise, and what where there is nothing.

    python -m benchmarks.discovery_tcga [DRAWS]

Contrasts of the bundled cohort at mu = 1 and FDR .05, over DRAWS draws of the noise (200): how many of the discoveries
that e-BH makes without noise are found, by size. Then Basal against the rest with labels shuffled anew for every draw.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from synth_platform.contract.cohort_spec import CohortSpec, load_cohort_spec
from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.tables import split_public
from synth_platform.contract.validate import select_registered, validate
from synth_platform.discovery.contrast import ContrastRows, contrast_rows, contrast_study
from synth_platform.discovery.documents import discoveries_document, e_values_document
from synth_platform.discovery.without_noise import discovered_without_noise
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.rehearsal import Rehearsal
from synth_platform.sources.read import read_cohort

FOLDER = Path(__file__).resolve().parents[1] / "cohorts" / "tcga_brca"
SIZES = ("adaptive", 10, 20, 40)
MUS = (0.5, 1.0, 2.0)


def cohort() -> tuple[CohortSpec, PublicReference, dict[str, ContrastRows]]:
    """The bundled cohort with the open rows of its contrasts."""
    spec = load_cohort_spec(FOLDER / "cohort.yaml")
    tables = validate(select_registered(read_cohort(spec, FOLDER), spec), spec).accepted
    public, private = split_public(tables, spec)
    reference = build_reference(public, spec)
    rows = reference.encoder.encode(private)
    contrasts = {
        name: contrast_rows(rows, private.clinical, spec.contrast(name), reference.encoder) for name in spec.contrasts
    }
    return spec, reference, contrasts


def found(
    spec: CohortSpec, plan: DiscoveryPlan, reference: PublicReference, rows: ContrastRows, seed: int
) -> tuple[int, set[str]]:
    """Size and discoveries of one draw of the noise."""
    study = contrast_study(spec, plan, reference)
    e_values = e_values_document(study, Rehearsal(rows, SeededNoise(seed)).ask)
    listed = discoveries_document(e_values, plan.alpha)["list"]
    return e_values["size"], {line["feature"] for line in listed if line["discovered"]}


def shuffled(rows: ContrastRows, rng: np.random.Generator) -> ContrastRows:
    """The same patients with the labels of others."""
    return ContrastRows(rows.values, rng.permutation(rows.outcome), rows.source)  # type: ignore[arg-type]


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    spec, reference, contrasts = cohort()
    print(f"{draws} draws; mean (standard error); 'else': discoveries that are none without noise")
    for name, rows in contrasts.items():
        for mu in MUS:
            for size in SIZES:
                plan = replace(spec.plan_of(name), mu=mu, size=size)
                truth = discovered_without_noise(spec, plan, reference, rows)
                results = [found(spec, plan, reference, rows, seed) for seed in range(draws)]
                back = np.array([len(names & truth) for _, names in results])
                new = np.array([len(names - truth) for _, names in results])
                chosen = np.mean([chosen for chosen, _ in results])
                print(
                    f"{name:9} mu {mu:<4g} size {size!s:9} selected {chosen:6.1f}   without noise {len(truth):3}   "
                    f"come back {back.mean():6.1f} ({back.std() / math.sqrt(draws):.1f})   else {new.mean():.3f}",
                    flush=True,
                )
    rng = np.random.default_rng(1)
    plan = spec.plan_of("basal")
    trials = [found(spec, plan, reference, shuffled(contrasts["basal"], rng), seed)[1] for seed in range(draws)]
    hits = sum(bool(names) for names in trials)
    print(f"basal, labels shuffled: {sum(map(len, trials))} discoveries in {draws} shuffles, {hits} of them with any")


if __name__ == "__main__":
    main()
