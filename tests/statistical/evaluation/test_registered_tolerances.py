"""The tolerances in the bundled cohorts are those that their sizes and public rows give, not ones that suit a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.tables import of_split
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.calibration import excess_failure, excess_tolerance, train_closer_tolerance
from synth_platform.normalize.reference import build_reference
from synth_platform.sources.read import read_cohort

COHORTS = Path(__file__).resolve().parents[3] / "cohorts"


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["virtual", "tcga_brca"])
def test_tolerances_follow_from_sizes_and_public_rows(name: str) -> None:
    """The excess tolerance is the smallest with at most 2.5 % false alarms; the other one leaves room for the null."""
    spec = load_cohort_spec(COHORTS / name / "cohort.yaml")
    synthetic, arm = spec.synthetic.rows, spec.privacy.n_ref
    assert spec.gates.excess_tolerance == excess_tolerance(synthetic, arm)
    assert excess_failure(synthetic, arm, spec.gates.excess_tolerance) <= 0.025

    tables = validate(select_registered(read_cohort(spec, COHORTS / name), spec), spec).accepted
    public = build_reference(of_split(tables, "public"), spec).rows
    calibrated = train_closer_tolerance(public, train_rows=arm, synthetic_rows=synthetic)
    assert calibrated <= spec.gates.train_closer_tolerance <= calibrated + 0.03


def test_the_published_tolerance_is_tight_at_its_own_sizes() -> None:
    """8-1 §3.4 froze .035 for 600 synthetic and 720 holdout rows: the exact null refuses 12 % there."""
    assert excess_failure(600, 720, 0.035) == pytest.approx(0.12, abs=0.005)
