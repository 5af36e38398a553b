"""Categories that were read from rows: under the policy `sdc` their labels alone tell that somebody is there.

A bound on counts takes labels for public. Those that a recipe declares are; one that stands in a table because a person
has it is a released fact about that person, whatever is done to the count beside it. So a category that no recipe
declares needs as many people as any count, and a variable that has one category at all has to be declared.
"""

from __future__ import annotations

from synth_platform.contract.recipe import Recipe
from synth_platform.margins.margin import Counts, MarginSet
from synth_platform.margins.noise.declared import UndeclaredError, declared_variable


class SeenCategoriesError(ValueError):
    """Labels would tell what counts hide; the message names variables and what to write, no label and no figure."""


def refuse_seen(counted: MarginSet, recipe: Recipe, limit: int) -> None:
    """Raise SeenCategoriesError for categories of fewer than `limit` people that `recipe` does not declare.

    counted: margins of rows that were curated by the recipe, before anything is done to them.
    """
    small, alone = [], []
    for variable in counted.domain.variables:
        if _declared(variable.name, recipe):
            continue
        people = _one_way(counted, variable.name)
        own = [label != variable.missing for label in variable.categories]
        if (people[own] < limit).any():
            small.append(variable.name)
        elif sum(own) == 1:
            alone.append(variable.name)
    if small:
        raise SeenCategoriesError(
            f"{', '.join(small)}: no recipe declares the categories of {_them(small)}, and some are of fewer than "
            f"{limit} people, whom the label alone would tell of. Write `combine_below: {limit}` (or more) into a "
            "recipe for all such columns, or declare their categories or groups, band numbers, or drop them"
        )
    if alone:
        raise SeenCategoriesError(
            f"{', '.join(alone)}: everybody has the one value there is, which would say so of each of them. Declare "
            "the categories there can be in a recipe, or drop the column"
        )


def _declared(name: str, recipe: Recipe) -> bool:
    try:
        declared_variable(name, recipe.variable(name))
    except UndeclaredError:
        return False
    return True


def _one_way(counted: MarginSet, name: str) -> Counts:
    margin = next(margin for margin in counted if name in margin.names)
    others = tuple(axis for axis, other in enumerate(margin.names) if other != name)
    people: Counts = margin.counts.sum(axis=others)
    return people


def _them(names: list[str]) -> str:
    return "this column" if len(names) == 1 else "these columns"
