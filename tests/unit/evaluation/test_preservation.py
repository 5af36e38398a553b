"""The ordered preservation table: one fixed case per branch and boundary, and its invariants."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.evaluation.preservation import judge, utility_status
from synth_platform.evaluation.statistics import t_quantile

G = 20
T19 = 1.729133


def groups(value: float, spread: float = 0.0) -> list[float]:
    """Twenty leave-one-group-out values around `value`; their jackknife error is spread * sqrt(19)."""
    return [value + (spread if g % 2 else -spread) for g in range(G)]


# tstr, spread of tstr, trtr, spread of trtr, chance, status
CASES = {
    "RC01 synthetic arm undefined": (None, 0.0, 0.8, 0.0, 0.5, "HOLD_UNDEFINED"),
    "RC02 real arm undefined": (0.8, 0.0, None, 0.0, 0.5, "HOLD_UNDEFINED"),
    "RC03 both arms at chance, P = .96": (0.50, 0.0, 0.52, 0.0, 0.5, "HOLD_UNINFORMATIVE"),
    "RC04 bound exactly chance + .05": (0.55, 0.0, 0.55, 0.0, 0.5, "HOLD_UNINFORMATIVE"),
    "RC05 bound one millionth above": (0.550001, 0.0, 0.550001, 0.0, 0.5, "PASS_CONFIRMED"),
    "RC06 uncertain real arm comes before a bad ratio": (0.40, 0.0, 0.70, 0.03, 0.5, "HOLD_UNINFORMATIVE"),
    "RC07 P one millionth below .95": (0.759999, 0.0, 0.8, 0.0, 0.0, "FAIL_RATIO"),
    "RC08 P exactly .95 where floats say less": (0.5035, 0.0, 0.53, 0.0, 0.0, "PASS_CONFIRMED"),
    "RC09 ratio holds, skill does not": (0.67, 0.0, 0.70, 0.0, 0.5, "FAIL_SKILL"),
    "RC10 S exactly .90 where floats say less": (0.725, 0.0, 0.75, 0.0, 0.5, "PASS_CONFIRMED"),
    "RC11 point pass, bound of P below .95": (0.88, 0.004, 0.90, 0.0, 0.5, "PASS_POINT"),
    "RC12 better than the real arm": (0.95, 0.001, 0.90, 0.001, 0.5, "PASS_CONFIRMED"),
}


@pytest.mark.parametrize("name", CASES)
def test_fixed_case(name: str) -> None:
    tstr, tstr_spread, trtr, trtr_spread, chance, status = CASES[name]
    verdict = judge(
        tstr=tstr,
        trtr=trtr,
        tstr_groups=groups(tstr or 0.8, tstr_spread),
        trtr_groups=groups(trtr or 0.8, trtr_spread),
        chance=chance,
    )
    assert verdict.status == status


def test_the_boundary_cases_are_ones_floats_get_wrong() -> None:
    assert 0.5035 / 0.53 < 0.95
    assert (0.725 - 0.5) / (0.75 - 0.5) < 0.9


def test_figures_follow_the_formulas() -> None:
    verdict = judge(
        tstr=0.88, trtr=0.90, tstr_groups=groups(0.88, 0.004), trtr_groups=groups(0.90, 0.001), chance=1 / 3
    )
    ratios = [(0.88 + 0.004 * s) / (0.90 + 0.001 * s) for s in (-1, 1)] * 10
    mean = sum(ratios) / G
    error = math.sqrt(19 / 20 * sum((r - mean) ** 2 for r in ratios))
    assert verdict.preservation == pytest.approx(0.88 / 0.90, abs=1e-6)
    assert verdict.skill == pytest.approx((0.88 - 0.333333) / (0.90 - 0.333333), abs=1e-6)
    assert verdict.lcb_trtr == pytest.approx(0.90 - T19 * 0.001 * math.sqrt(19), abs=1e-6)
    assert verdict.lcb_preservation == pytest.approx(0.88 / 0.90 - T19 * error, abs=1e-6)


def test_student_quantile_is_the_published_one() -> None:
    assert t_quantile(20) == T19


def test_pairing_removes_what_both_arms_share() -> None:
    swing = [0.015 if g % 2 else -0.015 for g in range(G)]
    real = [0.80 + s for s in swing]
    paired = judge(tstr=0.8, trtr=0.8, tstr_groups=real, trtr_groups=real, chance=0.5)
    crossed = judge(tstr=0.8, trtr=0.8, tstr_groups=real[::-1], trtr_groups=real, chance=0.5)
    assert (paired.status, crossed.status) == ("PASS_CONFIRMED", "PASS_POINT")


@pytest.mark.parametrize("arm", ["tstr_groups", "trtr_groups"])
def test_a_group_without_a_value_leaves_no_bound(arm: str) -> None:
    values: dict[str, list[float | None]] = {"tstr_groups": [*groups(0.9)], "trtr_groups": [*groups(0.9)]}
    values[arm][3] = None
    assert judge(tstr=0.9, trtr=0.9, chance=0.5, **values).status == "HOLD_UNDEFINED"


def test_zero_and_negative_real_arms_are_uninformative_not_errors() -> None:
    for trtr in (0.0, -0.2):
        verdict = judge(tstr=0.3, trtr=trtr, tstr_groups=groups(0.3), trtr_groups=groups(trtr), chance=0.0)
        assert verdict.status == "HOLD_UNINFORMATIVE"


def test_arms_must_delete_the_same_groups() -> None:
    with pytest.raises(ValueError, match="20 and 19"):
        judge(tstr=0.9, trtr=0.9, tstr_groups=groups(0.9), trtr_groups=groups(0.9)[:-1], chance=0.5)


score = st.integers(-1_000_000, 1_000_000).map(lambda i: i / 1e6)


@given(score, score, st.integers(0, 30_000), st.sampled_from([0.0, 0.25, 1 / 3, 0.5]))
@settings(deadline=None, max_examples=200)
def test_a_pass_always_means_ratio_and_skill(tstr: float, trtr: float, spread: int, chance: float) -> None:
    verdict = judge(
        tstr=tstr,
        trtr=trtr,
        tstr_groups=groups(tstr, spread / 1e6),
        trtr_groups=groups(trtr, spread / 2e6),
        chance=chance,
    )
    if verdict.status.startswith("PASS"):
        assert trtr > chance + 0.05
        assert tstr * 100 >= trtr * 95 - 1e-4
        assert tstr > chance
    if verdict.status == "PASS_CONFIRMED":
        assert verdict.lcb_preservation is not None
        assert verdict.lcb_preservation >= 0.95 - 1e-12


def test_overall_utility_by_an_independent_reading() -> None:
    statuses = ("HOLD_UNDEFINED", "HOLD_UNINFORMATIVE", "FAIL_RATIO", "FAIL_SKILL", "PASS_CONFIRMED", "PASS_POINT")
    severity = {"FAIL": 3, "HOLD": 2, "PASS_POINT": 1, "PASS_CONFIRMED": 0}
    for combination in product(statuses, repeat=4):
        worst = max((s if s in severity else s.split("_")[0] for s in combination), key=severity.__getitem__)
        assert utility_status(combination) == worst
    with pytest.raises(ValueError, match="no endpoint"):
        utility_status([])
