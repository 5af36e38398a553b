"""A phenotype of a genotype study: e-values of millions of variants, streamed in blocks from the file."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.contract.printable import printable
from synth_platform.discovery.documents import Study
from synth_platform.discovery.planned import dosage_statistic, released_of
from synth_platform.discovery.statistics.protocol import FloatArray, LogEStatistic
from synth_platform.privacy.queries import ScoreError
from synth_platform.sources.genotypes.open import open_genotypes
from synth_platform.sources.genotypes.phenotype import Phenotypes, read_fam_phenotypes, read_phenotypes
from synth_platform.sources.genotypes.study import GenotypeStudy, make_study, variant_lines

_PLACE = re.compile(r" #\d+$")  # a name that ends like a place could be that of a name with its place


def read_study(spec: GenotypeSpec, folder: Path, phenotype: str) -> GenotypeStudy:
    """Who is compared in a phenotype, and where the genotypes lie; nothing of the matrix is read yet.

    Raises GenotypeError naming the file and what to do.
    """
    cases, controls = spec.sizes_of(phenotype)
    path, table = folder / spec.genotypes.file, _phenotypes(spec, folder, phenotype)
    return make_study(path, table, n_case=cases, n_control=controls, field=spec.genotypes.field)


def phenotype_sizes(spec: GenotypeSpec, folder: Path, phenotype: str) -> tuple[int, int]:
    """Cases and controls among the genotyped samples: a private figure until it is registered."""
    samples = open_genotypes(folder / spec.genotypes.file, spec.genotypes.field).samples
    genotyped = _phenotypes(spec, folder, phenotype).frame.filter(pl.col("key").is_in(samples))
    cases = int(genotyped["case"].sum())
    return (cases, genotyped.height - cases)


def _phenotypes(spec: GenotypeSpec, folder: Path, phenotype: str) -> Phenotypes:
    registered = spec.phenotypes[phenotype]
    if registered.from_fam:
        return read_fam_phenotypes((folder / spec.genotypes.file).with_suffix(".fam"))
    return read_phenotypes(
        folder / registered.file,
        key_column=registered.key,
        column=registered.column,
        case=registered.case,
        control=registered.control,
    )


def genotype_study(spec: GenotypeSpec, folder: Path, plan: DiscoveryPlan) -> Study[GenotypeStudy]:
    """What a plan asks of a study. Memory is a number a variant beside one block of genotypes."""
    registered = spec.phenotypes[plan.contrast]
    statistic: LogEStatistic[Any] = dosage_statistic(spec.genotypes, registered, plan)

    def log_e(statistic: LogEStatistic[Any], rows: GenotypeStudy) -> FloatArray:
        scores = np.empty(spec.genotypes.variants)
        at, listed = 0, hashlib.sha256()
        for variants, dosages in rows.blocks():
            listed.update(variant_lines(variants))
            if at + variants.height <= scores.size:
                scores[at : at + variants.height] = statistic.log_e(cast(FloatArray, dosages), rows.case)
            at += variants.height
        if at != scores.size or listed.hexdigest() != spec.genotypes.list_sha256:
            raise _other_list(spec)
        return scores

    return Study(
        plan=plan,
        hypotheses=spec.genotypes.variants,
        made_for=lambda _: statistic,
        expected=released_of(plan, spec.genotypes.variants),
        log_e=log_e,
        names=lambda positions: variant_names(spec, folder, positions),
        compared={
            "case": sorted(registered.case),
            "control": sorted(registered.control),
            "column": registered.column,
            "field": spec.genotypes.field,
            "family": spec.genotypes.list_sha256,
        },
    )


def variant_names(spec: GenotypeSpec, folder: Path, positions: Sequence[int]) -> list[str]:
    """chromosome:position:ref:alt of the variants at `positions`, with the id before it where there is one.

    What cannot be printed is "?". Where two would be called the same, as a variant that a list has twice, the place in
    the list tells them apart: a name stands for one hypothesis.
    """
    names: dict[int, str] = {}
    at = 0
    for block in open_genotypes(folder / spec.genotypes.file, spec.genotypes.field).blocks():
        end = at + block.variants.height
        for position in (int(place) for place in positions if at <= place < end):
            names[position] = _name(block.variants.row(position - at, named=True))
        at = end
    shared = Counter(names.values())
    return [
        f"{names[at]} #{at + 1}" if shared[names[at]] > 1 or _PLACE.search(names[at]) else names[at]
        for at in map(int, positions)
    ]


def _name(variant: dict[str, Any]) -> str:
    variant = {column: printable(value) if isinstance(value, str) else value for column, value in variant.items()}
    place = f"{variant['chromosome']}:{variant['position']}:{variant['ref']}:{variant['alt']}"
    return place if variant["variant_id"] in ("", ".", place) else f"{variant['variant_id']} {place}"


def _other_list(spec: GenotypeSpec) -> ScoreError:
    return ScoreError(
        f"study {spec.name!r}: the file does not hold the {spec.genotypes.variants} variants that genotypes.variants "
        "and genotypes.list_sha256 register; `synth cohort check` tells which it holds"
    )
