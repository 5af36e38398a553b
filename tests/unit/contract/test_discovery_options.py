"""Contrasts are held to their cohort, and a discovery plan has exactly one name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import dp_accounting
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from synth_platform.contract.cohort_sections import Budget
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.discovery_options import (
    LARGEST_MU,
    Contrast,
    Discovery,
    DiscoveryPlan,
    Size,
    Terms,
    impossible,
    plan_of_key,
    plan_on,
)
from synth_platform.discovery.peeling import LARGEST_MU as LARGEST_SELECTION_MU
from synth_platform.privacy.accounting import epsilon_rdp

BASAL: dict[str, Any] = {"variable": "subtype", "case": ["A"], "sizes": [2, 4], "features": ["expression"]}
DEATH: dict[str, Any] = {
    "variable": "survival_days", "sizes": [6], "features": ["expression", "methylation"], "statistic": "log_rank",
}  # fmt: skip

BUDGET = Budget(epsilon=8.0, delta=1e-5)
millionths = st.integers(min_value=1)
sizes = st.one_of(st.just("adaptive"), st.integers(min_value=1))
names = st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True)
plans = st.builds(
    DiscoveryPlan,
    contrast=names,
    mu=millionths.filter(lambda n: n <= 60 * 10**6).map(lambda n: n / 10**6),
    alpha=st.integers(min_value=1, max_value=10**6 - 1).map(lambda n: n / 10**6),
    size=sizes,
    expected=st.integers(min_value=1),
)


@given(plans)
def test_a_plan_is_the_plan_of_its_name(plan: DiscoveryPlan) -> None:
    """Claim: a name says all of a plan, whatever terms a cohort registers: reading it needs none."""
    assert plan_of_key([plan.contrast, "another"], plan.key) == plan


@given(plans, plans)
def test_different_plans_have_different_names(one: DiscoveryPlan, other: DiscoveryPlan) -> None:
    assert (one.key == other.key) == (one == other)


@given(st.text(alphabet="basl-mutopfr.0123456789", min_size=1).map(lambda end: f"basal-mu1{end}") | st.text())
def test_whatever_is_read_as_a_plan_is_written_so(key: str) -> None:
    """Claim: a second spelling of a plan is an error, never the same plan under another name."""
    try:
        plan = plan_of_key(["basal"], key)
    except ValueError:
        return
    assert plan.key == key


@pytest.mark.parametrize(
    ("size", "expected", "key"),
    [
        ("adaptive", 20, "basal_or_her2-mu0.5-alpha0.05"),
        ("adaptive", 40, "basal_or_her2-mu0.5-alpha0.05-for40"),
        (40, 20, "basal_or_her2-mu0.5-alpha0.05-top40"),
        (40, 7, "basal_or_her2-mu0.5-alpha0.05-top40"),
    ],
)
def test_names_are_these(size: Size, expected: int, key: str) -> None:
    plan = DiscoveryPlan("basal_or_her2", 0.5, 0.05, size, expected)
    assert plan.key == key
    assert plan_of_key(["basal_or_her2"], key) == plan


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("basal-mu1.0-alpha0.05", "is called 'basal-mu1-alpha0.05'"),
        ("basal-mu01-alpha0.05", "is called 'basal-mu1-alpha0.05'"),
        ("basal-mu1-alpha0.050", "is called 'basal-mu1-alpha0.05'"),
        ("basal-mu1.0000001-alpha0.05", "at most six decimals"),
        ("basal-mu0-alpha0.05", "mu and alpha above 0"),
        ("basal-mu1-alpha0.0", "mu and alpha above 0"),
        ("basal-mu0.0000001-alpha0.05", "mu and alpha above 0"),
        ("basal-mu１-alpha0.05", "is called 'basal-mu1-alpha0.05'"),
        ("basal-mu1-alpha0.05-top0", "with -top<size> where the size is fixed"),
        ("basal-mu1-alpha0.05-top040", "with -top<size> where the size is fixed"),
        ("basal-mu1-alpha0.05-top", "with -top<size> where the size is fixed"),
        ("basal-mu1-alpha0.05-for20", "is called 'basal-mu1-alpha0.05'"),
        ("basal-mu1-alpha0.05-for0", "or -for<number> where"),
        ("basal-mu1-alpha0.05-for040", "or -for<number> where"),
        ("basal-mu1-alpha0.05-top5-for40", "or -for<number> where"),
        ("basal-mu61-alpha0.05", "mu at most 60"),
        ("basal-mu60.000001-alpha0.05", "mu at most 60"),
        ("basal-mu1-alpha1", "CONTRAST-mu<number>-alpha<number>"),
        ("basal-mu1-alpha.05", "CONTRAST-mu<number>-alpha<number>"),
        ("basal-mu1e0-alpha0.05", "CONTRAST-mu<number>-alpha<number>"),
        ("basal-muinf-alpha0.05", "CONTRAST-mu<number>-alpha<number>"),
        ("basal-mu-1-alpha0.05", "CONTRAST-mu<number>-alpha<number>"),
        ("basal-mu1-alpha0.05\n", "CONTRAST-mu<number>-alpha<number>"),
        ("luminal-mu1-alpha0.05", "contrasts are basal, death"),
        ("", "contrasts are basal, death"),
    ],
)
def test_other_spellings_are_refused(key: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_of_key(["basal", "death"], key)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mu", 0), ("mu", -1.0), ("mu", float("inf")), ("mu", float("nan")), ("mu", 1 / 3), ("mu", 1e-7), ("mu", 60.5),
        ("alpha", 0), ("alpha", 1), ("alpha", 0.1234567), ("size", 0), ("size", "all"), ("expected", 0), ("level", 1),
    ],
)  # fmt: skip
def test_terms_that_cannot_be_kept_or_named_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        Terms.model_validate({field: value})


def test_registered_terms_are_those_of_the_plan() -> None:
    """Claim: all of them are, but how many discoveries are expected where the size is fixed: that is the size."""
    assert plan_on(Terms(mu=0.25, alpha=0.1, expected=3), "basal") == DiscoveryPlan("basal", 0.25, 0.1, "adaptive", 3)
    fixed = plan_on(Terms(mu=0.25, alpha=0.1, size=7, expected=3), "basal")
    assert (fixed, fixed.expected) == (DiscoveryPlan("basal", 0.25, 0.1, 7), 7)
    assert replace(plan_on(Terms(), "basal"), size=5).expected == 5


def test_the_largest_mu_is_that_of_a_peeling() -> None:
    assert LARGEST_MU == LARGEST_SELECTION_MU


@pytest.mark.parametrize("mu", [0.000001, 0.1, 1.0, 1.3, 1.4, 3.0, 60.0])
@pytest.mark.parametrize("budget", [BUDGET, Budget(epsilon=0.05, delta=1e-12), Budget(epsilon=2100.0, delta=0.01)])
def test_what_the_cap_could_never_hold_is_impossible(mu: float, budget: Budget) -> None:
    """Claim: a plan is refused exactly where the ledger's figure of its mu alone is above the cap, and the message has
    the largest mu that the cap holds, to a millionth."""
    wrong = impossible(DiscoveryPlan("basal", mu, 0.05, "adaptive"), 9, budget)
    cost = epsilon_rdp([dp_accounting.GaussianDpEvent(1 / mu)], budget.delta)
    assert (wrong == {}) == (cost <= budget.epsilon)
    if wrong:
        largest = float(re.search(r"mu may be at most (\d+(?:\.\d+)?)$", wrong["mu"])[1])
        assert epsilon_rdp([dp_accounting.GaussianDpEvent(1 / largest)], budget.delta) <= budget.epsilon
        above = dp_accounting.GaussianDpEvent(1 / (largest + 1.1e-6))
        assert epsilon_rdp([above], budget.delta) > budget.epsilon
        assert f"{cost:.4g}" in wrong["mu"]


@pytest.mark.parametrize(
    ("size", "hypotheses", "terms"), [(9, 9, set()), (10, 9, {"size"}), (10, None, set()), ("adaptive", 1, set())]
)
def test_more_than_there_are_cannot_be_selected(size: Size, hypotheses: int | None, terms: set[str]) -> None:
    assert set(impossible(DiscoveryPlan("basal", 1.0, 0.05, size), hypotheses, BUDGET)) == terms


def test_terms_that_can_never_be_kept_are_refused_while_the_cohort_is_read(make_spec) -> None:
    """Claim: by field, with the cap, the cost and what would do, and all of them at once."""
    contrasts = {"contrasts": {"basal": BASAL, "death": DEATH}}
    assert make_spec(discovery=contrasts | {"size": 3}).plan_of("death").size == 3
    dear = r"discovery\n.*mu: a list at mu = 2 costs epsilon = 10\.58 at delta = 0\.0001.*epsilon = 8: .*at most 1\.57"
    with pytest.raises(ValidationError, match=dear):
        make_spec(discovery=contrasts | {"mu": 2.0})
    with pytest.raises(
        ValidationError, match=r"discovery\n.*size: 4 of the 3 hypotheses of 'basal' cannot be selected"
    ):
        make_spec(discovery=contrasts | {"size": 4})
    with pytest.raises(
        ValidationError, match=r"mu: a list at .*; size: 6 of the 3 .*; size: 6 of the 5 hypotheses of 'd"
    ):
        make_spec(discovery=contrasts | {"mu": 2.0, "size": 6})


def test_a_panel_that_is_still_a_file_has_no_size(make_spec) -> None:
    expression = {"unit": "tpm", "annotation": "GENCODE 36", "panel": "panel.txt"}
    spec = make_spec(expression=expression, discovery={"contrasts": {"basal": BASAL}, "size": 100})
    assert spec.hypotheses_of("basal") is None


def test_values_of_a_binary_variable_may_be_written_as_numbers() -> None:
    assert Contrast.model_validate(BASAL | {"case": [1], "control": [0]}).case == ("1",)


def test_contrasts_that_fit_are_registered(make_spec) -> None:
    smokers = BASAL | {"variable": "smoker", "case": [1], "control": [0]}
    late = BASAL | {"variable": "stage", "case": ["III"], "control": ["I"], "features": ["methylation"]}
    dead = BASAL | {"variable": "died", "case": [1]}
    spec = make_spec(discovery={"contrasts": {"b": BASAL, "d": DEATH, "s": smokers, "l": late, "x": dead}})
    assert spec.contrasts == ("b", "d", "s", "l", "x")
    assert spec.sizes_of("d") == (6,)
    assert spec.plan_of("b").key == "b-mu1-alpha0.05"
    assert spec.discovery_plan("d-mu1-alpha0.05-top3").size == 3


@pytest.mark.parametrize(
    ("contrast", "message"),
    [
        (BASAL | {"variable": "grade"}, r"bad\.variable: 'grade' must be a clinical variable of kind categorical or"),
        (BASAL | {"variable": "age"}, r"bad\.variable: 'age' must be"),
        (BASAL | {"variable": "survival_days"}, r"bad\.variable: 'survival_days' must be"),
        (BASAL | {"case": ["D"]}, r"bad: 'D' are not values of 'subtype'"),
        (BASAL | {"control": ["B", "E"]}, r"bad: 'E' are not values of 'subtype'"),
        (BASAL | {"variable": "smoker", "case": ["yes"]}, r"bad: 'yes' are not values of 'smoker'"),
        (BASAL | {"case": ["A", "B", "C"]}, r"bad\.case: every value of 'subtype' is a case"),
        (BASAL | {"variable": "died", "case": [0, 1]}, r"bad\.case: every value of 'died' is a case"),
        (BASAL | {"case": []}, r"bad\n.*case: needs at least one value"),
        (BASAL | {"case": "A"}, r"bad\.case\n"),
        (BASAL | {"control": ["A"]}, r"bad\n.*case, control: a value stands on both sides"),
        (BASAL | {"case": ["A", "A"]}, r"bad\n.*case, control: a value appears twice"),
        (BASAL | {"control": ["B", "C", "B"]}, r"bad\n.*case, control: a value appears twice"),
        (BASAL | {"variable": "smoker", "case": [1, "1"]}, r"bad\n.*case, control: a value appears twice"),
        (BASAL | {"sizes": [6]}, r"bad\n.*sizes: write \[cases, controls\]"),
        (BASAL | {"sizes": [6, 0]}, r"bad\.sizes\.1\n"),
        (BASAL | {"sizes": [1, 2, 3]}, r"bad\n.*sizes: write \[cases, controls\]"),
        (BASAL | {"features": []}, r"bad\.features\n"),
        (BASAL | {"features": ["proteome"]}, r"bad\.features\.0\n"),
        (BASAL | {"features": ["expression", "expression"]}, r"bad\n.*features: a matrix appears twice"),
        (BASAL | {"statistic": "t"}, r"bad\.statistic\n"),
        (BASAL | {"groups": 2}, r"bad\.groups\n"),
        (DEATH | {"case": ["1"]}, r"bad\n.*case, control: a log_rank contrast"),
        (DEATH | {"sizes": [3, 3]}, r"bad\n.*sizes: a log_rank contrast has one"),
        (DEATH | {"sizes": [1]}, r"bad\n.*sizes: a log_rank contrast has one, the number of private rows, at least 2"),
        (DEATH | {"variable": "died"}, r"bad\.variable: 'died' must be a clinical variable of kind survival_time"),
    ],
)
def test_contrasts_that_do_not_fit_name_their_field(contrast: dict[str, Any], message: str, make_spec) -> None:
    with pytest.raises(ValidationError, match=rf"discovery\.contrasts\.{message}"):
        make_spec(discovery={"contrasts": {"bad": contrast}})


def test_log_rank_looks_at_the_outcome_and_no_other_time(make_spec, spec) -> None:
    relapse = {"name": "relapse_days", "kind": "survival_time", "unit": "day", "minimum": 0, "maximum": 9}
    clinical = [*(variable.model_dump(exclude_defaults=True) for variable in spec.clinical), relapse]
    with pytest.raises(ValidationError, match=r"bad\.variable: log_rank needs the outcome's survival time"):
        make_spec(clinical=clinical, discovery={"contrasts": {"bad": DEATH | {"variable": "relapse_days"}}})


def test_a_matrix_that_the_cohort_has_not_is_refused(make_spec) -> None:
    with pytest.raises(ValidationError, match=r"bad\.features: the cohort has no methylation"):
        make_spec(methylation=None, discovery={"contrasts": {"bad": DEATH}})


@pytest.mark.parametrize("name", ["Basal", "basal-her2", "2nd", "", "basal her2"])
def test_contrast_names_are_plain(name: str) -> None:
    with pytest.raises(ValidationError, match=r"contrasts"):
        Discovery.model_validate({"contrasts": {name: BASAL}})


def test_a_discovery_section_without_contrasts_is_refused() -> None:
    with pytest.raises(ValidationError, match="contrasts"):
        Discovery.model_validate({"contrasts": {}})


def test_a_cohort_without_contrasts_says_where_they_are_written(spec) -> None:
    assert spec.contrasts == ()
    with pytest.raises(CohortSpecError, match=r"write discovery\.contrasts into its cohort\.yaml"):
        spec.plan_of("basal")
    with pytest.raises(CohortSpecError, match=r"write discovery\.contrasts"):
        spec.discovery_plan("basal-mu1-alpha0.05")


def test_an_unknown_contrast_says_which_there_are(make_spec) -> None:
    spec = make_spec(discovery={"contrasts": {"basal": BASAL, "death": DEATH}})
    for ask in (spec.contrast, spec.plan_of, spec.sizes_of):
        with pytest.raises(CohortSpecError, match="no contrast 'luminal'; it registers basal, death"):
            ask("luminal")
    with pytest.raises(CohortSpecError, match=r"cohort 'small': no discovery plan is called 'luminal-mu1-alpha0\.05'"):
        spec.discovery_plan("luminal-mu1-alpha0.05")


def test_the_registration_holds_what_a_list_depends_on_and_nothing_else(make_spec) -> None:
    """Claim: another comparison, other terms, another panel or domain are another registration; a description, the
    gates or another contrast are not."""

    def registration(discovery: dict[str, Any] | None = None, **changes: Any) -> str:
        spec = make_spec(discovery={"contrasts": {"basal": BASAL}} | (discovery or {}), **changes)
        return spec.registration_of(spec.plan_of("basal"))

    first = registration()
    same = [
        {"discovery": {"contrasts": {"basal": BASAL | {"description": "x"}}}},
        {"discovery": {"contrasts": {"basal": BASAL, "death": DEATH}}},
        {"gates": {"power_draws": 8}},
    ]
    other = [
        {"discovery": {"contrasts": {"basal": BASAL | {"case": ["B"]}}}},
        {"discovery": {"contrasts": {"basal": BASAL | {"sizes": [3, 3]}}}},
        {"discovery": {"expected": 3}},
        {"discovery": {"mu": 0.5}},
        {"methylation": None},
        {"privacy": {"domain": "other", "n_ref": 100, "budget": {"epsilon": 8.0, "delta": 1e-4}}},
    ]
    assert [registration(**changes) == first for changes in same] == [True] * len(same)
    assert [registration(**changes) == first for changes in other] == [False] * len(other)


def test_what_a_list_was_made_of_outlives_the_defaults_of_its_cohort(make_spec) -> None:
    """Claim: a stored list is named by its key, and its registration is the same whatever is registered since."""
    changes: list[dict[str, Any]] = [{}, {"mu": 0.5}, {"alpha": 0.1}, {"size": 2}, {"expected": 3}]
    specs = [make_spec(discovery={"contrasts": {"basal": BASAL}} | change) for change in changes]
    for key in ("basal-mu1-alpha0.05", "basal-mu1-alpha0.05-for3", "basal-mu0.5-alpha0.1-top2"):
        assert len({spec.registration_of(spec.discovery_plan(key)) for spec in specs}) == 1
    keys = [plan.key for plan in (spec.plan_of("basal") for spec in specs)]
    assert len({spec.registration_of(spec.plan_of("basal")) for spec in specs}) == len(set(keys)) == len(keys)
