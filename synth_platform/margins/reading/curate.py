"""Curation: the columns of a table become variables with categories, by a recipe, and every row is kept.

In the order of the steps: null values, declared categories, groups, bottom and top coding and bands, combining small
categories, the category of missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from synth_platform.contract.categories import MOST_CATEGORIES
from synth_platform.contract.recipe import Recipe, VariableRecipe
from synth_platform.margins.domain import DTYPES, Codes, Domain, Kind, Variable
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.reading.curation_report import ColumnCuration, CurationReport, CurationStep
from synth_platform.margins.reading.recode import Recoded, written
from synth_platform.margins.rows import Rows, count_margins, refuse_many_cells, two_way
from synth_platform.margins.structural_zeros import StructuralZero

# What a column without a recipe may hold before a person has to decide about it.
IDENTIFIER_DISTINCT = 100
IDENTIFIER_SHARE = 0.5
DECIMAL_DISTINCT = 1_000


class CurationError(ValueError):
    """A table does not go with its recipe; the message names the file, the column and what to do, never a cell."""


@dataclass(frozen=True, eq=False)
class Curated:
    """A curated table, and which margins and structural zeros its recipe declares. Restricted, as its report is."""

    rows: Rows
    report: CurationReport
    margins: tuple[tuple[str, ...], ...]
    zeros: tuple[StructuralZero, ...]

    def margin_set(self) -> MarginSet:
        """The declared margins, counted. Raises ValueError as `MarginSet` does, such as for an uncounted variable."""
        return count_margins(self.rows, self.margins, self.report.source, self.zeros)


def curate(frame: pl.DataFrame, recipe: Recipe, source: str = "microdata") -> Curated:
    """Rows in categories, in the order of `frame`, and a report of what was merged.

    A column that the recipe does not name becomes categories as it is, unless it looks like an identifier (distinct
    values in more than half of the rows, and more than 100) or is a decimal of more than 1,000 values.
    `combine_below` is decided by the counts of `frame`: such a domain depends on the data. `source` names the table in
    messages and opens the provenance of its margins. Raises CurationError.
    """
    named = set(recipe.variables) | set(recipe.drop)
    absent = sorted(named.difference(frame.columns))
    if absent:
        raise CurationError(
            f"{source} has no column {absent[0]!r}, which the recipe names; it has {', '.join(frame.columns)}"
        )
    kept = [name for name in frame.columns if name not in set(recipe.drop)]
    if not kept:
        raise CurationError(f"{source}: no column is left; drop fewer in the recipe")
    if frame.is_empty():
        raise CurationError(f"{source} has no rows; give a table with people in it")
    variables, codes, told = [], np.empty((len(frame), len(kept)), np.int64), []
    for axis, name in enumerate(kept):
        variable, codes[:, axis], steps = _column(
            frame[name], recipe.variable(name), name in recipe.variables, f"{source}: column {name!r}"
        )
        variables.append(variable)
        told.append(ColumnCuration(name, variable.kind, len(variable), steps))
    rows = Rows(Domain(tuple(variables)), codes)
    report = CurationReport(source, len(rows), recipe.drop, tuple(told))
    margins = margin_names(recipe, rows.domain)
    zeros = tuple(StructuralZero.of(zero) for zero in recipe.structural_zeros)
    _refuse_unknown(rows.domain, margins, zeros, source)
    for zero in zeros:
        _refuse_impossible(rows, zero, source)
    return Curated(rows, report, margins, zeros)


def margin_names(recipe: Recipe, domain: Domain) -> tuple[tuple[str, ...], ...]:
    """The margins that a recipe declares for variables of `domain`: pairs first, named ones after them."""
    return (*(two_way(domain) if recipe.every_pair else ()), *recipe.named_margins)


def _column(
    column: pl.Series, recipe: VariableRecipe, named: bool, where: str
) -> tuple[Variable, Codes, tuple[CurationStep, ...]]:
    values, kind = _text(column, where)
    values = values.set(values.is_in(recipe.null_values), None)
    nulls = values.null_count()
    if nulls and recipe.missing is None:
        raise CurationError(f"{where} has missing values; give them a category by `missing: LABEL` in the recipe")
    table = (
        pl.DataFrame({"value": values, "label": values})
        .drop_nulls()
        .group_by("value", "label")
        .agg(pl.len().alias("rows"))
        .sort(pl.col("value").cast(DTYPES[kind]) if kind != "boolean" else pl.col("value"))
    )
    if not named:
        _refuse_undecided(len(table), len(column), kind, where)
    try:
        recoded = recode(table, recipe, kind, where)
    except ValueError as error:
        raise CurationError(str(error)) from None
    categories = recoded.categories
    if recipe.missing is not None:
        if recipe.missing in categories:
            raise CurationError(f"{where}: a value is written as its missing category is; name `missing` otherwise")
        categories = (*categories, recipe.missing)
    if len(categories) > MOST_CATEGORIES:
        raise CurationError(
            f"{where} has more than {MOST_CATEGORIES:,} categories: drop it if it names people, or band, group or "
            "combine it in the recipe"
        )
    steps = recoded.steps
    try:
        variable = Variable(column.name, categories, "text" if steps else kind, recipe.missing)
    except ValueError:  # a declared category is no number, and the column is of numbers because nobody is in it
        variable = Variable(column.name, categories, "text", recipe.missing)
    if nulls and recipe.missing is not None:
        steps = (*steps, CurationStep("missing", (recipe.missing,), nulls))
    position = {label: code for code, label in enumerate(categories)}
    code = recoded.table["label"].replace_strict(position, return_dtype=pl.Int64)
    codes = values.replace_strict(recoded.table["value"], code, default=len(categories) - 1, return_dtype=pl.Int64)
    return variable, codes.to_numpy(), steps


def recode(table: pl.DataFrame, recipe: VariableRecipe, kind: Kind, where: str) -> Recoded:
    """The steps of a recipe on the distinct values of a column (`Recoded.table`); ValueErrors begin with `where`."""
    as_is = ("false", "true") if kind == "boolean" else tuple(table["label"].to_list())
    recoded = Recoded(where, table, as_is)
    if recipe.categories is not None:
        recoded = recoded.only(recipe.categories)
    if recipe.groups is not None:
        recoded = recoded.group(recipe.groups, partly=recipe.codes_numbers)
    if recipe.codes_numbers:
        recoded = recoded.code(recipe.bottom, recipe.top, recipe.bands)
    if recipe.combine_below is not None:
        recoded = recoded.combine(recipe.combine_below, recipe.into)
    return recoded


def _text(column: pl.Series, where: str) -> tuple[pl.Series, Kind]:
    """Values as labels, and the type they are written back to; not-a-number is a missing value."""
    dtype = column.dtype
    if dtype.is_nested() or isinstance(dtype, (pl.Binary, pl.Object, pl.Duration)):
        raise CurationError(f"{where} holds {dtype}, which has no categories; drop it in the recipe")
    if dtype == pl.Boolean:
        return column.cast(pl.String), "boolean"
    if dtype.is_integer():
        if column.cast(pl.Int64, strict=False).null_count() > column.null_count():
            raise CurationError(f"{where} holds whole numbers beyond 64 bits; write them as text or drop it")
        return column.cast(pl.String), "integer"
    if dtype.is_float() or dtype.is_decimal():
        return written(column.cast(pl.Float64).fill_nan(None)), "decimal"
    return column.cast(pl.String), "text"


def _refuse_undecided(distinct: int, rows: int, kind: Kind, where: str) -> None:
    if distinct > IDENTIFIER_DISTINCT and distinct > IDENTIFIER_SHARE * rows:
        raise CurationError(
            f"{where} looks like an identifier, with distinct values in more than half of its rows; drop it in the "
            "recipe, or band, group or combine it there"
        )
    if kind == "decimal" and distinct > DECIMAL_DISTINCT:
        raise CurationError(
            f"{where} holds more than {DECIMAL_DISTINCT:,} distinct decimal numbers; band it in the recipe or drop it"
        )


def _refuse_unknown(
    domain: Domain, margins: tuple[tuple[str, ...], ...], zeros: tuple[StructuralZero, ...], source: str
) -> None:
    try:
        refuse_many_cells(domain, margins)
        for zero in zeros:
            zero.cells(domain.project(zero.names))
    except ValueError as error:
        raise CurationError(f"{source}: margins and structural_zeros of the recipe: {error}") from None


def _refuse_impossible(rows: Rows, zero: StructuralZero, source: str) -> None:
    impossible = zero.cells(rows.domain.project(zero.names)).ravel()
    if impossible[rows.domain.positions(rows.codes, zero.names)].any():
        raise CurationError(
            f"{source}: somebody is in the structural zero of {' × '.join(zero.names)}; take it out of the recipe, or "
            "correct the table"
        )
