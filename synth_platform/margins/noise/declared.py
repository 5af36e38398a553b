"""A domain that no row decides: variables and categories as a recipe declares them, for a release under a promise.

A set of categories that was read from rows says who is among them, and no noise on counts takes that back. So under
differential privacy every column stands in the recipe, with all the categories there can be.
"""

from __future__ import annotations

import re

import polars as pl

from synth_platform.contract.categories import MOST_CATEGORIES
from synth_platform.contract.recipe import Recipe, VariableRecipe
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.reading.curate import recode
from synth_platform.margins.reading.domain_file import variable as inferred
from synth_platform.margins.reading.recode import band_labels
from synth_platform.margins.rows import Rows
from synth_platform.privacy.private_errors import PrivateComputationError

_HALF_OPEN = re.compile(r"\[(-?[0-9]+), (-?[0-9]+)\)")
_EVERY = "every column of the table has to be under `variables` with its categories, or in `drop`"


class UndeclaredError(ValueError):
    """A recipe does not say which categories there can be; the message names the variable and what to write."""


class OtherCategoriesError(PrivateComputationError, ValueError):
    """Rows have other variables or categories than were declared. Names the variable, no category and no row."""


def declared_domain(recipe: Recipe) -> Domain:
    """Variables in the order of the recipe, with the categories that `curate` gives them, whoever is in the table.

    Declared are `categories`, `groups`, `bands` (with `bottom` and `top` for what is outside), and `bottom` with `top`
    for all whole numbers between. Bands with whole edges are labelled as of whole numbers. A variable is one of
    integers where all its labels are, of text otherwise. Raises UndeclaredError for anything else, and for
    `combine_below`, whose outcome depends on counts.
    """
    if recipe.combine_below is not None:
        raise UndeclaredError(f"combine_below: {_COUNTS}")
    if not recipe.variables:
        raise UndeclaredError(f"the recipe declares no variable; {_EVERY}")
    return Domain(tuple(declared_variable(name, own) for name, own in recipe.variables.items()))


_COUNTS = "which categories are combined depends on counts of the rows; write them as `groups` instead"


def declared_variable(name: str, recipe: VariableRecipe) -> Variable:
    """A variable with the categories that its recipe declares. Raises UndeclaredError as `declared_domain` does."""
    where = f"variable {name}"
    if recipe.combine_below is not None:
        raise UndeclaredError(f"{where}: combine_below: {_COUNTS}")
    if recipe.categories is None and recipe.groups is None and not recipe.codes_numbers:
        raise UndeclaredError(f"{where} has no declared categories; write `categories`, `groups` or `bands`. {_EVERY}")
    if recipe.codes_numbers and recipe.bands is None:
        if recipe.bottom is None or recipe.top is None:
            raise UndeclaredError(
                f"{where}: which numbers there are depends on the rows; write `bands`, or `bottom` and `top` both"
            )
        if recipe.top - recipe.bottom > MOST_CATEGORIES:
            raise UndeclaredError(f"{where}: there are too many numbers from bottom to top; write `bands`")
    nobody = pl.DataFrame(schema={"value": pl.String, "label": pl.String, "rows": pl.UInt32})
    recoded = recode(nobody, recipe, "text", where)
    if recipe.missing in recoded.categories:
        raise UndeclaredError(f"{where}: a category is written as its missing category is; name `missing` otherwise")
    kind = "text" if recoded.steps else inferred(name, recoded.categories).kind
    missing = () if recipe.missing is None else (recipe.missing,)
    try:
        return Variable(name, (*recoded.categories, *missing), kind, recipe.missing)
    except ValueError as error:
        raise UndeclaredError(str(error)) from None


def in_declared(rows: Rows, domain: Domain) -> Rows:
    """Curated rows as rows of a declared domain: variables by name, in its order and with its kinds and labels.

    What a kind is read from, and whether `curate` writes bands as of whole numbers, depends on the rows; the codes do
    not. Raises OtherCategoriesError for a variable of one domain that is not in the other, or has other categories.
    """
    there = set(rows.domain.names) ^ set(domain.names)
    if there:
        raise OtherCategoriesError(
            f"variable {min(there)} is in the rows or the declared domain, not in both: {_EVERY}"
        )
    own = rows.domain.axes(domain.names)
    for axis, declared in zip(own, domain.variables, strict=True):
        found = rows.domain.variables[axis]
        same = len(found) == len(declared) and all(map(_same, found.categories, declared.categories))
        if not same or found.missing != declared.missing:
            raise OtherCategoriesError(
                f"variable {declared.name}: the rows do not have the categories that the recipe declares; curate them "
                "by the same recipe, and write `bands` where numbers are not whole"
            )
    return Rows(domain, rows.codes[:, list(own)])


def _same(found: str, declared: str) -> bool:
    half_open = _HALF_OPEN.fullmatch(found)
    return found == declared or (
        half_open is not None and band_labels((float(half_open[1]), float(half_open[2])), whole=True) == (declared,)
    )
