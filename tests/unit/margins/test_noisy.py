"""Margins under differential privacy: what is asked, what it costs, what comes of it, what is refused unpaid."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from synth_platform.contract.recipe import Recipe
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.noise.declared import OtherCategoriesError, declared_domain
from synth_platform.margins.noise.noisy import count_query, measure_declared, noisy_tables
from synth_platform.margins.reading.curate import curate
from synth_platform.margins.rows import Rows, two_way
from synth_platform.margins.structural_zeros import StructuralZero
from synth_platform.privacy.accounting import compose, gaussian_mu
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.rehearsal import Rehearsal
from synth_platform.privacy.row_independence import assert_row_independent

DOMAIN = Domain(
    (
        Variable("age", ("0-15", "16-64", "65+")),
        Variable("married", ("no", "yes")),
        Variable("rooms", ("1", "2", "3", "?"), "integer", "?"),
    )
)
CHILD_MARRIED = StructuralZero.of({"age": ["0-15"], "married": ["yes"]})


def people(rows=20_000, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.choice(3, rows, p=[0.2, 0.6, 0.2])
    married = (rng.random(rows) < 0.5) & (age > 0)
    return Rows(DOMAIN, np.stack([age, married, rng.integers(0, 4, rows)], axis=1).astype(np.int64))


def test_all_margins_are_bought_at_the_price_of_the_plan():
    """Claim: one query, at epsilon as promised: the exact figure of what was charged is at most that, and near it."""
    rehearsal = Rehearsal(people(), SeededNoise(1))
    margins, releases = measure_declared(
        rehearsal.ask, DOMAIN, two_way(DOMAIN), (CHILD_MARRIED,), gaussian_mu(1.0, 1e-5)
    )
    assert len(rehearsal.events) == len(releases) == 1
    cost = compose(rehearsal.events, 1e-5)
    assert 1 - 1e-6 < cost.epsilon_pld <= 1.0
    assert [margin.names for margin in margins] == list(two_way(DOMAIN))
    assert margins.margins[0].counts[0, 1] == 0
    assert margins.domain is DOMAIN
    assert margins.zeros == (CHILD_MARRIED,)
    # 13 cells of noise 1.7/.27: the total is within 6 of its standard deviations of the people there are, and not them.
    total, sigma = margins.margins[0].total, releases[0].sigma
    assert 0 < abs(total - 20_000) < 6 * sigma * math.sqrt(6)
    assert releases[0].source == "seeded"


def test_little_noise_gives_the_counts_themselves():
    """Claim: cells stand where `Rows.count` has them, for margins of one to three variables in any order."""
    names = (("rooms", "age"), ("married",), ("age", "married", "rooms"))
    margins, _ = measure_declared(Rehearsal(people(), SeededNoise(2)).ask, DOMAIN, names, (), 1e4)
    for margin in margins:
        np.testing.assert_allclose(margin.counts, people().count(margin.names), atol=0.01)


def test_one_person_moves_the_counts_by_the_root_of_the_number_of_margins():
    query = count_query(DOMAIN, two_way(DOMAIN), 5.0)
    rows = people(50)
    before = query.evaluate(rows)
    for without in range(50):
        after = query.evaluate(rows.take(np.delete(np.arange(50), without)))
        assert np.linalg.norm(before - after) == pytest.approx(math.sqrt(3))


def test_the_map_is_within_row_and_works_on_nobody():
    query = count_query(DOMAIN, two_way(DOMAIN), 5.0)
    assert_row_independent(query.cells, people(300), np.random.default_rng(0))
    assert query.evaluate(people(0)).tolist() == [0.0] * (6 + 12 + 8)


def test_the_answer_is_cut_into_its_tables():
    names = (("rooms", "age"), ("married",))
    query = count_query(DOMAIN, names, 5.0)
    release = Rehearsal(people(), SeededNoise(1)).ask(query)
    first, second = noisy_tables(DOMAIN, names, release)
    assert (first.names, first.counts.shape, first.sigma) == (("rooms", "age"), (4, 3), 5.0)
    assert [*first.counts.ravel(), *second.counts] == release.values.tolist()
    assert abs(second.counts - people().count(["married"])).max() < 40


def test_another_domain_is_another_request():
    """Claim: the same codes under other labels, in another order or of another kind, are another question."""
    described = [count_query(DOMAIN, [("age",)], 5.0).describe()["parameters"]]
    for variable in (
        Variable("age", ("0-15", "16-64", "66+")),
        Variable("age", ("65+", "16-64", "0-15")),
        Variable("age", ("0-15", "16-64", "65+"), missing="65+"),
    ):
        described.append(count_query(Domain((variable,)), [("age",)], 5.0).describe()["parameters"])
    assert len({repr(parameters) for parameters in described}) == 4


def test_curated_rows_are_measured_as_the_recipe_declares_them():
    recipe = Recipe.model_validate(
        {"variables": {"married": {"categories": ["no", "yes"]}, "age": {"bands": [0, 16, 65], "top": 65}}}
    )
    frame = people().frame.select(
        "married", age=people().frame["age"].replace_strict({"0-15": 3.5, "16-64": 20, "65+": 70})
    )
    domain = declared_domain(recipe)
    rows = curate(frame.select("age", "married"), recipe).rows
    margins, _ = measure_declared(Rehearsal(rows, SeededNoise(3)).ask, domain, two_way(domain), (), 1e4)
    np.testing.assert_allclose(margins.margins[0].counts, people().count(["married", "age"]), atol=0.01)


def test_rows_of_another_domain_are_refused_by_the_name_of_the_variable():
    other = Domain((*DOMAIN.variables[:2], Variable("rooms", ("1", "2", "Kim"))))
    rehearsal = Rehearsal(Rows(other, np.zeros((5, 3), dtype=np.int64)), SeededNoise(1))
    with pytest.raises(OtherCategoriesError, match="variable rooms") as refused:
        measure_declared(rehearsal.ask, DOMAIN, two_way(DOMAIN), (), 0.3)
    assert "Kim" not in str(refused.value)
    assert rehearsal.events == ()


@pytest.mark.parametrize(
    ("names", "zeros", "message"),
    [
        ((), (), "no margins"),
        ((("age", "income"),), (), "unknown variable income"),
        ((("age", "married"),), (), "no margin counts variable rooms"),
        ((("age", "married"), ("married", "age"), ("rooms",)), (), "there twice"),
        (two_way(DOMAIN), (StructuralZero.of({"age": ["11"]}),), "no category '11'"),
        (two_way(DOMAIN), (StructuralZero.of({"age": ["0-15", "16-64", "65+"]}),), "counts nobody"),
    ],
)
def test_what_makes_no_margins_is_refused_before_it_is_paid(names, zeros, message):
    def ask(_):
        raise AssertionError("it was asked")

    with pytest.raises(ValueError, match=message):
        measure_declared(ask, DOMAIN, names, zeros, 0.3)


def test_too_many_cells_are_refused_before_they_are_counted():
    wide = Domain(tuple(Variable(name, tuple(map(str, range(5000)))) for name in "abc"))
    with pytest.raises(ValueError, match="cells together"):
        measure_declared(lambda _: pytest.fail("it was asked"), wide, [tuple("abc")], (), 0.3)


def test_a_budget_too_small_is_an_error_without_a_figure():
    """Claim: two of twenty seeds leave nobody at least, since the noise on the total is 100 times the people."""
    told = set()
    for seed in range(20):
        try:
            measure_declared(Rehearsal(people(5), SeededNoise(seed)).ask, DOMAIN, two_way(DOMAIN), (), 0.01)
        except ValueError as error:
            told.add(str(error))
    [message] = told
    assert "raise epsilon" in message
    assert not re.search("[0-9]", message)
