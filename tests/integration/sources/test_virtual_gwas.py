"""The bundled genotype study is what its script makes, what its study.yaml says, and what its module promises."""

from __future__ import annotations

import math
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from synth_platform.contract.genotype_spec import GenotypeSpec, load_genotype_spec
from synth_platform.discovery.documents import discoveries_document, e_values_document
from synth_platform.discovery.e_bh import e_bh
from synth_platform.discovery.genotypes import genotype_study, phenotype_sizes, read_study
from synth_platform.privacy.accounting import compose
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.rehearsal import Rehearsal
from synth_platform.sources.genotypes.open import open_genotypes
from synth_platform.sources.genotypes.study import GenotypeStudy, list_variants

COHORTS = Path(__file__).resolve().parents[3] / "cohorts"
FOLDER = COHORTS / "virtual_gwas"
MADE = ("genotypes.bed", "genotypes.bim", "genotypes.fam", "truth.csv")
MISSING = -1


@pytest.fixture(scope="module")
def spec() -> GenotypeSpec:
    return load_genotype_spec(FOLDER / "study.yaml")


@pytest.fixture(scope="module")
def study(spec: GenotypeSpec) -> GenotypeStudy:
    return read_study(spec, FOLDER, "disease")


@pytest.fixture(scope="module")
def genotypes(study: GenotypeStudy) -> NDArray[np.int8]:
    """[n, m] copies of the effect allele."""
    return np.concatenate([dosages for _, dosages in study.blocks()], axis=1)


@pytest.fixture(scope="module")
def script() -> dict[str, object]:
    return runpy.run_path(str(FOLDER / "build.py"))


def test_the_script_rebuilds_the_study_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FOLDER / "build.py", tmp_path], check=True)
    rebuilt = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(rebuilt) == set(MADE)
    assert rebuilt == {name: (FOLDER / name).read_bytes() for name in MADE}


def test_the_study_is_small() -> None:
    assert sum((FOLDER / name).stat().st_size for name in MADE) < 700_000


def test_the_files_are_those_that_study_yaml_registers(spec: GenotypeSpec) -> None:
    registered = (spec.genotypes.variants, spec.genotypes.list_sha256)
    assert list_variants(open_genotypes(FOLDER / spec.genotypes.file, spec.genotypes.field)) == registered
    assert phenotype_sizes(spec, FOLDER, "disease") == spec.sizes_of("disease") == (600, 600)


def test_genotypes_of_controls_stand_in_hardy_weinberg_proportions(
    study: GenotypeStudy, genotypes: NDArray[np.int8]
) -> None:
    """Chi-square of 1 degree of freedom per variant: 2,000 of them have mean 1, and linkage leaves about 570
    independent ones, so the mean of all lies within 0.3 of it except once in 10^6."""
    controls = genotypes[~study.case].astype(np.float64)
    counts = np.stack([(controls == copies).sum(axis=0) for copies in range(3)])
    n = counts.sum(axis=0)
    p = (counts[1] + 2 * counts[2]) / (2 * n)
    expected = n * np.stack([(1 - p) ** 2, 2 * p * (1 - p), p**2])
    assert ((counts - expected) ** 2 / expected).sum(axis=0).mean() == pytest.approx(1, abs=0.3)


def test_linkage_stays_within_blocks_and_falls_with_distance(
    study: GenotypeStudy, genotypes: NDArray[np.int8], script: dict[str, object]
) -> None:
    """With equal frequencies the correlation at distance d would be (1 - r)^d; unequal ones bound it from above."""
    block, kept = int(script["BLOCK"]), 1 - float(script["RECOMBINATION"])
    controls = np.maximum(genotypes[~study.case].astype(np.float64), 0)
    correlation = np.corrcoef(controls, rowvar=False)
    at = np.arange(len(correlation))
    same = at[:, np.newaxis] // block == at // block
    distance = np.abs(at[:, np.newaxis] - at)
    means = [correlation[same & (distance == d)].mean() for d in range(1, block)]
    assert means == sorted(means, reverse=True)
    assert all(0.5 * kept**d < mean < kept**d for d, mean in enumerate(means, 1))
    assert abs(correlation[~same].mean()) < 0.005


def test_cases_carry_each_causal_allele_with_its_odds_ratio(study: GenotypeStudy, genotypes: NDArray[np.int8]) -> None:
    """Within 4.5 standard errors of the log odds ratio of 1,200 haplotypes a side: twelve of them, once in 10,000."""
    truth = pl.read_csv(FOLDER / "truth.csv")
    names = pl.concat([variants for variants, _ in study.blocks()])["variant_id"].to_list()
    for name, ratio in truth.iter_rows():
        copies = genotypes[:, names.index(name)]
        groups = [_called(copies[group]) for group in (~study.case, study.case)]
        carried = [((2 - group).sum(), group.sum()) for group in groups]
        (absent, present), (absent_case, present_case) = carried
        log_ratio = math.log(present_case / absent_case) - math.log(present / absent)
        error = math.sqrt(sum(1 / count for group in carried for count in group))
        assert abs(log_ratio - math.log(ratio)) < 4.5 * error, name


def test_lists_without_noise_and_with_it_hold_the_causal_blocks(
    spec: GenotypeSpec, study: GenotypeStudy, script: dict[str, object]
) -> None:
    """Claim: without noise every causal block is found and no other; at mu = 1 two thirds of them and, for these seeds
    of the noise, no other. What is found beside a causal variant is linked to it."""
    plan, causal = spec.plan_of("disease"), set(script["CAUSAL"])
    free = genotype_study(spec, FOLDER, replace(plan, mu=math.inf))
    without = e_bh(free.asked_for(free.expected)[0](study), plan.alpha)
    assert _blocks(without.tolist(), script) == causal
    asked = genotype_study(spec, FOLDER, plan)
    for seed in range(5):
        e_values = e_values_document(asked, Rehearsal(study, SeededNoise(seed)).ask)
        lines = discoveries_document(e_values, plan.alpha)["list"]
        at = dict(zip(e_values["selected"], e_values["positions"], strict=True))
        found = _blocks([at[line["feature"]] for line in lines if line["discovered"]], script)
        assert found <= causal
        assert len(found) >= 8


def test_two_lists_on_the_registered_terms_fit_the_budget_and_three_do_not(
    spec: GenotypeSpec, study: GenotypeStudy
) -> None:
    plan, budget = spec.plan_of("disease"), spec.privacy.budget
    rehearsal = Rehearsal(study, SeededNoise(0))
    genotype_study(spec, FOLDER, plan).peel(rehearsal.ask)
    assert compose([*rehearsal.events] * 2, budget.delta).epsilon_rdp <= budget.epsilon
    assert compose([*rehearsal.events] * 3, budget.delta).epsilon_rdp > budget.epsilon


def test_some_genotypes_are_missing(genotypes: NDArray[np.int8]) -> None:
    assert (genotypes == MISSING).mean() == pytest.approx(0.004, abs=0.0002)


def test_the_template_in_the_readme_loads(tmp_path: Path) -> None:
    """What a steward copies first."""
    _, example, _ = re.findall(r"```yaml\n(.*?)```", (COHORTS / "README.md").read_text(), re.DOTALL)
    (tmp_path / "study.yaml").write_text(example)
    spec = load_genotype_spec(tmp_path / "study.yaml")
    assert spec.plan_of(spec.contrasts[0]).key.startswith(spec.contrasts[0])


def _blocks(positions: list[int], script: dict[str, object]) -> set[int]:
    return {position // int(script["BLOCK"]) for position in positions}


def _called(copies: NDArray[np.int8]) -> NDArray[np.int64]:
    return copies[copies != MISSING].astype(np.int64)
