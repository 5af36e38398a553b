"""Margins that would count many who do not exist: where they are refused, which variables are told, and what recipe."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from synth_platform.contract.census_spec import SdcPlan, Zeros
from synth_platform.contract.recipe import load_recipe
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.invented import InventedPeopleError
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.planned import protect
from synth_platform.margins.rows import Rows, two_way_margins
from synth_platform.margins.structural_zeros import StructuralZero


def plan(zeros: Zeros = "lifted", limit: int = 10) -> SdcPlan:
    return SdcPlan(policy="sdc", zeros=zeros, limit=limit)


def domain(**widths: int) -> Domain:
    return Domain(tuple(Variable(name, tuple(map(str, range(width)))) for name, width in widths.items()))


def alone(width: int, people: float, zeros: tuple[StructuralZero, ...] = ()) -> MarginSet:
    """One margin of width² cells with everybody in the first."""
    counts = np.zeros((width, width))
    counts[0, 0] = people
    return MarginSet(domain(a=width, b=width), (Margin(("a", "b"), counts, ("test",)),), zeros)


def test_three_counted_for_two_people_are_the_most() -> None:
    """Closed form: n people and 399 empty cells at 10 count as n + 3,990, which is 1.5 n for n = 7,980."""
    protect(alone(20, 7980), plan())
    with pytest.raises(InventedPeopleError):
        protect(alone(20, 7979), plan())
    protect(alone(20, 7979), plan(limit=9))


def test_cells_that_stay_empty_invent_nobody() -> None:
    protect(alone(20, 50), plan("kept"))
    impossible = StructuralZero.of({"a": [str(code) for code in range(1, 20)]})
    protect(alone(20, 400, (impossible,)), plan())
    with pytest.raises(InventedPeopleError):
        protect(alone(20, 379, (impossible,)), plan())


def test_a_handful_of_people_may_be_tried() -> None:
    protect(alone(10, 1), plan())
    with pytest.raises(InventedPeopleError):
        protect(alone(11, 1), plan())


def told(tmp_path: Path, **widths: int) -> tuple[str, dict[str, object]]:
    """The message for 5,000 people, and the recipe of its first two lines of YAML."""
    own = domain(**widths)
    rows = Rows(own, np.random.default_rng(1).integers(0, own.shape, (5000, len(own.shape))))
    with pytest.raises(InventedPeopleError) as refused:
        protect(two_way_margins(rows), plan())
    lines = [line for line in str(refused.value).splitlines() if line.startswith("    ")]
    file = tmp_path / "recipe.yaml"
    file.write_text("\n".join(line.removeprefix("    ") for line in lines[:2]), "utf-8")
    recipe = load_recipe(file)
    file.write_text(lines[2].removeprefix("    "), "utf-8")
    assert load_recipe(file).variables.keys() == {recipe.drop[0]}
    return str(refused.value), recipe.model_dump(include={"drop", "combine_below"})


def test_few_variables_are_named_such_that_the_others_pass(tmp_path: Path) -> None:
    message, recipe = told(tmp_path, **{"sex": 2, "income>50K, in $": 300, "weight: of": 150, "town": 12})
    assert recipe == {"drop": ("income>50K, in $", "weight: of"), "combine_below": 300}
    assert message.startswith("income>50K, in $, weight: of: too many categories")
    protect(two_way_margins(Rows(domain(sex=2, town=12), np.zeros((5000, 2), dtype=np.int64))), plan())


def test_of_two_variables_it_is_the_wider(tmp_path: Path) -> None:
    message, recipe = told(tmp_path, a=70, b=180, c=2)
    assert recipe["drop"] == ("b",)
    assert "so that a × b would count" in message


def test_no_figure_of_the_people_is_told(tmp_path: Path) -> None:
    message, _ = told(tmp_path, a=70, b=180, c=2)
    assert set(re.findall(r"\d+", message)) == {"10", "300", "0", "100", "200"}
