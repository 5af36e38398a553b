"""The statistic of a plan is made of public constants, and is designed for the values that the plan releases."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.discovery_options import Contrast, DiscoveryPlan, Size
from synth_platform.contract.genotype_spec import Genotypes, Phenotype
from synth_platform.discovery.peeling import value_mu
from synth_platform.discovery.planned import contrast_statistic, dosage_statistic, nelson_aalen, released_of
from synth_platform.discovery.statistics.chosen_tilt import ChosenTilt
from synth_platform.discovery.statistics.dosage import DosageStatistic
from synth_platform.discovery.statistics.log_rank import LogRank
from synth_platform.discovery.statistics.mann_whitney import MannWhitney
from synth_platform.normalize.rows import EncodedRows

PLAN = DiscoveryPlan("basal", 1.0, 0.05, "adaptive", 20)
GROUPS = Contrast(variable="subtype", case=("A",), sizes=(60, 90), features=("expression",))
SURVIVAL = Contrast(variable="days", sizes=(150,), features=("expression",), statistic="log_rank")
GENOTYPES = Genotypes(file="a.bed", variants=1000, list_sha256="0" * 64)
PHENOTYPE = Phenotype(file="fam", sizes=(60, 90))


def people(time: list[float], event: list[int], seed: int = 0) -> EncodedRows:
    n = len(time)
    return EncodedRows(
        features=("f",),
        x=np.random.default_rng(seed).normal(size=(n, 1)),
        label=np.zeros(n, dtype=np.int64),
        event=np.array(event),
        time=np.array(time, dtype=np.float64),
        batch=np.zeros(n, dtype=np.int64),
        split=np.array(["public"] * n),
        key=np.array([f"R-{at:06d}" for at in range(n)]),
    )


def exponential(n: int, mean: float, seed: int) -> EncodedRows:
    rng = np.random.default_rng(seed)
    return people(list(1 + rng.exponential(mean, n)), list(rng.integers(0, 2, n)), seed)


@given(
    st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1, max_size=12).filter(
        lambda p: any(e for _, e in p)
    )
)
def test_nelson_aalen_is_deaths_over_those_at_risk(patients: list[tuple[int, bool]]) -> None:
    """Claim: ties counted together, and whoever is censored at a time is still at risk then; exact fractions."""
    times, hazard = nelson_aalen(people([float(t) for t, _ in patients], [int(e) for _, e in patients]))
    deaths = sorted({t for t, e in patients if e})
    total, expected = Fraction(0), []
    for at in deaths:
        total += Fraction(sum(e for t, e in patients if t == at), sum(t >= at for t, _ in patients))
        expected.append(float(total))
    assert times == tuple(map(float, deaths))
    assert hazard == pytest.approx(expected, rel=1e-12)


def test_a_hazard_needs_a_public_event() -> None:
    with pytest.raises(CohortSpecError, match=r"no public row has an event.*log_rank cannot be used"):
        nelson_aalen(people([3.0, 5.0], [0, 0]))
    with pytest.raises(CohortSpecError, match="no public row has an event"):
        contrast_statistic(SURVIVAL, PLAN, 100, people([3.0, 5.0], [0, 0]))


@pytest.mark.parametrize(
    ("size", "hypotheses", "released"), [("adaptive", 1000, 20), ("adaptive", 7, 7), (3, 1000, 3), (1000, 1000, 1000)]
)
def test_e_values_are_made_for_as_many_as_the_plan_releases(size: Size, hypotheses: int, released: int) -> None:
    assert released_of(replace(PLAN, size=size), hypotheses) == released


@pytest.mark.parametrize("contrast", [GROUPS, SURVIVAL])
def test_a_fixed_size_above_the_hypotheses_is_refused(contrast: Contrast) -> None:
    with pytest.raises(CohortSpecError, match="has 100 hypotheses: 101 cannot be selected, use fewer"):
        contrast_statistic(contrast, replace(PLAN, size=101), 100, exponential(50, 30, 1))
    with pytest.raises(CohortSpecError, match="has 1000 hypotheses: 1001 cannot be selected, use fewer"):
        dosage_statistic(GENOTYPES, PHENOTYPE, replace(PLAN, size=1001))


def mann_whitney(plan: DiscoveryPlan, size: int, hypotheses: int = 500) -> MannWhitney:
    """The one that is designed for the release of so many values."""
    spent = value_mu(plan.mu, size, adaptive=plan.size == "adaptive")
    return MannWhitney.designed(60, 90, features=hypotheses, size=size, alpha=plan.alpha, value_mu=spent)


def test_a_fixed_size_has_the_statistic_that_is_made_for_it() -> None:
    plan = replace(PLAN, size=7)
    assert contrast_statistic(GROUPS, plan, 500, exponential(50, 30, 1))(7) == mann_whitney(plan, 7)


@pytest.mark.parametrize(("size", "made_for"), [(1, 5), (5, 5), (20, 20), (33, 33), (80, 80), (500, 80)])
def test_an_adaptive_size_has_the_tilt_that_is_made_for_it_and_pays_for_the_choice(size: int, made_for: int) -> None:
    """Claim: from a quarter of the expected size to four times as many, each has its own tilt, and the price is that of
    choosing among all of them, the same for all."""
    make = contrast_statistic(GROUPS, PLAN, 500, exponential(50, 30, 1))
    tilts = [mann_whitney(PLAN, at).tilt for at in range(5, 81)]
    assert make(size) == ChosenTilt(mann_whitney(PLAN, made_for), min(tilts), max(tilts))


@pytest.mark.parametrize(("expected", "hypotheses", "fewest", "most"), [(1, 500, 1, 4), (20, 30, 5, 30), (20, 7, 2, 7)])
def test_no_tilt_is_made_for_more_than_the_hypotheses_or_fewer_than_one(
    expected: int, hypotheses: int, fewest: int, most: int
) -> None:
    plan = replace(PLAN, expected=expected)
    make = contrast_statistic(GROUPS, plan, hypotheses, exponential(50, 30, 1))
    made = {make(size) for size in range(1, hypotheses + 1)}
    assert {one.statistic for one in made} == {mann_whitney(plan, at, hypotheses) for at in range(fewest, most + 1)}


def test_two_groups_need_the_registered_constants_alone() -> None:
    """Claim: whatever the public rows are, Mann-Whitney is made of sizes, hypotheses and terms."""
    one, other = (contrast_statistic(GROUPS, PLAN, 500, rows) for rows in (exponential(50, 30, 1), people([3.0], [0])))
    assert [one(size) for size in (1, 20, 40)] == [other(size) for size in (1, 20, 40)]


def test_log_rank_has_the_hazard_of_the_public_rows_whatever_the_size() -> None:
    public, other = exponential(50, 30, 1), exponential(50, 300, 2)
    make = contrast_statistic(SURVIVAL, PLAN, 500, public)
    made = make(20)
    assert isinstance(made, LogRank)
    assert make(3) == make(400) == made
    assert (made.size, (made.times, made.cumulative_hazard)) == (150, nelson_aalen(public))
    assert made != contrast_statistic(SURVIVAL, PLAN, 500, other)(20)
    unused = replace(public, x=public.x + 1, label=public.label + 1, key=public.key[::-1])
    assert made == contrast_statistic(SURVIVAL, PLAN, 500, unused)(20)


def test_genotypes_have_the_registered_frequency() -> None:
    spent = value_mu(1.0, 20, adaptive=True)
    for frequency in (0.25, 0.02):
        genotypes = GENOTYPES.model_copy(update={"frequency": frequency})
        assert dosage_statistic(genotypes, PHENOTYPE, PLAN) == DosageStatistic.designed(
            60, 90, frequency=frequency, features=1000, size=20, alpha=0.05, value_mu=spent
        )


MAKERS = (
    lambda plan: contrast_statistic(GROUPS, plan, 500, exponential(50, 30, 1))(20),
    lambda plan: contrast_statistic(SURVIVAL, plan, 500, exponential(50, 30, 1))(20),
    lambda plan: dosage_statistic(GENOTYPES, PHENOTYPE, plan),
)


@pytest.mark.parametrize("make", MAKERS, ids=("groups", "survival", "genotypes"))
@pytest.mark.parametrize("terms", [{"mu": 0.5}, {"alpha": 0.2}, {"size": 20}, {"size": 7}, {"expected": 7}])
def test_every_term_of_a_plan_is_designed_for(make: Any, terms: dict[str, Any]) -> None:
    """Claim: another budget, level or size is another statistic, and so another request. A fixed size of as many as
    are expected spends nothing on choosing it."""
    made, other = make(PLAN), make(replace(PLAN, **terms))
    assert dict(made.parameters) != dict(other.parameters)
    assert math.isfinite(other.sensitivity)


@pytest.mark.parametrize("make", MAKERS, ids=("groups", "survival", "genotypes"))
def test_the_contrast_s_name_is_no_constant_of_the_statistic(make: Any) -> None:
    assert make(PLAN) == make(replace(PLAN, contrast="another"))


@pytest.mark.parametrize("make", MAKERS, ids=("groups", "survival", "genotypes"))
def test_less_noise_lets_a_statistic_lean_more_on_one_record(make: Any) -> None:
    """Claim: the tilt grows with mu, up to the one for no noise at all."""
    sensitivities = [make(replace(PLAN, mu=mu)).sensitivity for mu in (0.1, 1.0, 10.0, math.inf)]
    assert sensitivities == sorted(set(sensitivities))
