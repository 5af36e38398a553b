"""Paid once: materialising again is free, another plan is not, and a plan past the cap is refused before any noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec, load_cohort_spec
from synth_platform.contract.tables import of_split
from synth_platform.contract.validate import select_registered, validate
from synth_platform.generators.build import make_generator
from synth_platform.normalize.reference import build_reference
from synth_platform.privacy.noise import CryptographicNoise
from synth_platform.privacy.statistics import StatisticRelease
from synth_platform.sources.read import read_cohort

BUNDLED = Path(__file__).resolve().parents[3] / "cohorts"
SHARED = (
    "cohort/rejections", "cohort/features", "cohort/manifest", "cohort/expression", "cohort/methylation",
    "cohort/clinical", "public/rows", "public/reference", "normalized/matrix", "normalized/batch_correction",
    "normalized/batch_corrected", "normalized/attacked",
)  # fmt: skip


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing noise is an error."""

    def drawn(*_: Any) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(CryptographicNoise, "discrete_gaussian", drawn)


def values(platform: Any, code: str) -> list[np.ndarray]:
    return [release.values for release in platform.read(f"statistics/{code}").releases]


@pytest.mark.usefixtures("no_noise")
def test_materialising_everything_again_is_free(platform: Any) -> None:
    """Claim: cohort, reference and matrix read anew, then all that is measured: the same statistics, the same package,
    not a ledger row more, and no noise at all."""
    rows, before = platform.rows(), {code: values(platform, code) for code in DP_GENERATORS}
    package = (platform.home.released / "tiny-G0A-eps8" / "SHA256SUMS").read_bytes()
    platform.run(*SHARED, plan=None)
    platform.run("statistics/G0", "statistics/G0A", "G0A/checkpoint", "G0A/release")
    assert platform.rows() == rows
    for code in DP_GENERATORS:
        for old, new in zip(before[code], values(platform, code), strict=True):
            assert np.array_equal(old, new)
    assert (platform.home.released / "tiny-G0A-eps8" / "SHA256SUMS").read_bytes() == package


def test_another_plan_spends(platform: Any) -> None:
    """Claim: a second plan of the same cohort is a partition of its own, paid for in the same domain; the first keeps
    its artefacts and its cost."""
    before, kept = platform.ledger.budget_summary("tiny"), values(platform, "G0A")
    platform.run("statistics/G0A", plan="eps1")
    after = platform.ledger.budget_summary("tiny")
    assert after["committed"] == before["committed"] + len(kept)
    assert after["spent_rdp"] > before["spent_rdp"]
    for old, new in zip(kept, values(platform, "G0A"), strict=True):
        assert np.array_equal(old, new)
    assert not np.array_equal(platform.read("statistics/G0A", plan="eps1").releases[0].values, kept[0])


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("code", DP_GENERATORS)
def test_a_plan_past_the_cap_is_refused_whole(platform: Any, code: str) -> None:
    """Claim: a plan that does not fit under the cap is refused before its first statistic - not after it has bought the
    cheap ones - and the ledger keeps its rows."""
    rows, budget = platform.rows(), platform.ledger.budget_summary("tiny")
    assert 0 < budget["remaining"] < 20
    result = platform.run(f"statistics/{code}", plan="eps20", check=False)
    assert not result.success
    assert "BUDGET_EXCEEDED: domain 'tiny'" in platform.failure(result)
    assert "Nothing was drawn" in platform.failure(result)
    assert platform.rows() == rows
    assert platform.latest(f"statistics/{code}", plan="eps20") is None


@pytest.mark.usefixtures("no_noise")
def test_a_full_domain_still_answers_what_it_sold(platform: Any) -> None:
    """Claim: the cap refuses new draws only; with it lowered to what is spent, paid statistics are still given back."""
    spent = platform.ledger.budget_summary("tiny")["spent_rdp"]
    platform.ledger.set_budget("tiny", spent + 1e-6, 1e-5, change=True)
    platform.edit(lambda document: document["privacy"].update(budget={"epsilon": spent + 1e-6, "delta": 1e-5}))
    platform.run("statistics/G0A")
    result = platform.run("statistics/G0A", plan="eps1", check=False)
    assert "BUDGET_EXCEEDED" in platform.failure(result)


def costs(spec: CohortSpec, plan: str) -> list[tuple[float, float]]:
    """(sensitivity, sigma) of every query of both generators at a plan, without any private row."""
    folder = BUNDLED / spec.name
    accepted = validate(select_registered(read_cohort(spec, folder), spec), spec).accepted
    reference = build_reference(of_split(accepted, spec.reference.split), spec)
    found = []

    def answer(query: Any) -> StatisticRelease:
        found.append((query.sensitivity, query.sigma))
        values = np.full(query.dimension, 1.0)
        return StatisticRelease(query.code, values, query.sensitivity, query.sigma, 1.0, "seeded", "", "")

    for code in DP_GENERATORS:
        make_generator(code, reference, spec, spec.plan(plan)).measure(answer)
    return found


def rdp_epsilon(multipliers: list[float], delta: float) -> float:
    """8-1 §2.5 for Gaussians: min over integer orders of alpha sum(1/m^2)/2 + log(1/delta)/(alpha - 1), written here
    a second time from its formula; the platform's own may be tighter, never looser."""
    total = sum(1 / m**2 for m in multipliers)
    return min(a * total / 2 + np.log(1 / delta) / (a - 1) for a in np.linspace(1.01, 200, 20_000))


@pytest.mark.parametrize("name", [path.parent.name for path in sorted(BUNDLED.glob("*/cohort.yaml"))])
def test_the_demo_fits_its_budget_and_not_one_plan_more(name: str) -> None:
    """Claim: all plans and contrasts of a bundled cohort together stay under its cap; with an eps8 plan on top of them
    they would not."""
    spec = load_cohort_spec(BUNDLED / name / "cohort.yaml")
    budget = spec.privacy.budget
    planned = [sigma / sensitivity for plan in spec.plans for sensitivity, sigma in costs(spec, plan)]
    planned += [1 / spec.plan_of(contrast).mu for contrast in spec.contrasts]
    assert rdp_epsilon(planned, budget.delta) <= budget.epsilon
    extra = [sigma / sensitivity for sensitivity, sigma in costs(spec, "eps8")]
    # From below: no accountant can show less than the exact Gaussian figure, and that alone is past the cap.
    mu = np.sqrt(sum(1 / m**2 for m in [*planned, *extra]))
    assert mu_delta(mu, budget.epsilon) > budget.delta


def mu_delta(mu: float, epsilon: float) -> float:
    """delta of a mu-GDP mechanism at epsilon (Dong, Roth, Su 2022, Corollary 1)."""
    return float(norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))
