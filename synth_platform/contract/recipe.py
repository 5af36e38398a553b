"""recipe.yaml: how the columns of a table become categories, declared by a person before the table is counted.

Every scalar of the file is read as it is written: the category `no` is not a boolean and `007` not seven.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
import yaml
from pydantic import BeforeValidator, Field, FiniteFloat, ValidationError, field_validator, model_validator

from synth_platform.contract.as_written import AsWritten
from synth_platform.contract.categories import MOST_CATEGORIES, first_repeated
from synth_platform.contract.cohort_spec import faults
from synth_platform.contract.options import Strict

HIERARCHY_COLUMNS = ["category", "group"]


class RecipeError(ValueError):
    """A recipe is not usable; the message names the file, every offending field and what to do."""


def _written(label: object) -> object:
    """A label that was given as a number or a boolean, as a table of text would hold it."""
    if isinstance(label, bool):
        return str(label).lower()
    return str(label) if isinstance(label, int) else label


Label = Annotated[str, BeforeValidator(_written), Field(min_length=1)]
RowLimit = Annotated[int, Field(ge=1)]


class VariableRecipe(Strict):
    """One column, by the steps that `curate` takes in this order.

    null_values:   values that stand for a missing one.
    categories:    the values there can be; any other one is an error. Whole numbers stand without a point: 2, not 2.0.
    groups:        label -> the values it stands for. Every value needs a group, but where numbers are coded
                   afterwards: then those without one have to be numbers.
    bottom, top:   numbers <= bottom become "<bottom>-", numbers >= top become "<top>+".
    bands:         edges of half-open bands, [first, second), and so on: 0, 16, 25 are "0-15" and "16-24" for whole
                   numbers and "[0, 16)" and "[16, 25)" for others. What is outside needs bottom or top.
    combine_below: categories of fewer rows become `into`. Which ones they are depends on the data.
    missing:       category of missing values, never combined; without it a missing value is an error.
    """

    null_values: tuple[Label, ...] = ()
    categories: Annotated[tuple[Label, ...], Field(min_length=1, max_length=MOST_CATEGORIES)] | None = None
    groups: Annotated[dict[Label, tuple[Label, ...]], Field(min_length=1)] | None = None
    bottom: FiniteFloat | None = None
    top: FiniteFloat | None = None
    bands: Annotated[tuple[FiniteFloat, ...], Field(min_length=2, max_length=MOST_CATEGORIES)] | None = None
    combine_below: RowLimit | None = None
    into: Label = "other"
    missing: Label | None = None

    @field_validator("categories")
    @classmethod
    def _each_once(cls, categories: tuple[str, ...] | None) -> tuple[str, ...] | None:
        repeated = first_repeated(categories or ())
        if repeated is not None:
            raise ValueError(f"{repeated!r} is there twice; take one out")
        return categories

    @field_validator("groups")
    @classmethod
    def _in_one_group(cls, groups: dict[str, tuple[str, ...]] | None) -> dict[str, tuple[str, ...]] | None:
        repeated = first_repeated(category for members in (groups or {}).values() for category in members)
        if repeated is not None:
            raise ValueError(f"{repeated!r} is grouped twice; leave it in one group")
        return groups

    @field_validator("bands")
    @classmethod
    def _ascending(cls, bands: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if bands is not None and any(low >= high for low, high in pairwise(bands)):
            raise ValueError("edges have to ascend, as in [0, 16, 25]")
        return bands

    @model_validator(mode="after")
    def _agree(self) -> VariableRecipe:
        low = self.bands[0] if self.bands else None
        high = self.bands[-1] if self.bands else None
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError("bottom has to be below top")
        if self.bottom is not None and low is not None and self.bottom >= low:
            raise ValueError("bottom has to be below the first edge of bands; what is at the edge is in the band")
        if self.top is not None and high is not None and self.top < high:
            raise ValueError("top has to be the last edge of bands, or above it")
        combined = () if self.combine_below is None else (self.into,)
        if self.missing in {*combined, *(self.categories or ()), *(self.groups or {})}:
            raise ValueError(f"missing: {self.missing!r} is also a category; name missing values otherwise")
        both = next((label for label in self.null_values if label in (self.categories or ())), None)
        if both is not None:
            raise ValueError(f"null_values: {both!r} is also a category; leave it in one of them")
        if self.categories and self.groups and not self.codes_numbers:
            grouped = {category for members in self.groups.values() for category in members}
            ungrouped = next((category for category in self.categories if category not in grouped), None)
            if ungrouped is not None:
                raise ValueError(f"groups: category {ungrouped!r} is in none; put it into a group")
        return self

    @property
    def declares(self) -> bool:
        """Whether it says which categories there can be, by `categories`, `groups` or `bands`."""
        return self.categories is not None or self.groups is not None or self.bands is not None

    @property
    def codes_numbers(self) -> bool:
        """Whether values are numbers that are top-coded, bottom-coded or banded."""
        return self.bottom is not None or self.top is not None or self.bands is not None


class Recipe(Strict):
    """A table's recipe; columns that `variables` does not name become categories as they are.

    combine_below: for every column that has none of its own and declares no categories. structural_zeros: impossible
    combinations, by the labels that the columns have after curation. margins: two_way, every pair of columns; or a list
    of named ones, such as [[age, sex], [region]]; or both, [two_way, [age, sex, region]].
    """

    variables: dict[str, VariableRecipe] = Field(default_factory=dict)
    drop: tuple[str, ...] = ()
    combine_below: RowLimit | None = None
    structural_zeros: tuple[Annotated[dict[str, tuple[Label, ...]], Field(min_length=1)], ...] = ()
    margins: Literal["two_way"] | tuple[Literal["two_way"] | tuple[str, ...], ...] = "two_way"

    @field_validator("margins", mode="before")
    @classmethod
    def _are_margins(cls, margins: object) -> object:
        listed = margins if isinstance(margins, list | tuple) else ()
        named = listed[1:] if listed and listed[0] == "two_way" else listed
        lists = all(isinstance(names, list | tuple) and all(isinstance(n, str) for n in names) for names in named)
        if margins != "two_way" and not (listed and lists):
            raise ValueError(
                "two_way, or a list of lists of columns such as [[age, sex], [region]], with two_way as its first "
                "entry where every pair of columns is meant as well"
            )
        return margins if named else "two_way"

    @property
    def every_pair(self) -> bool:
        """Whether every pair of columns is a margin."""
        return self.margins == "two_way" or self.margins[0] == "two_way"

    @property
    def named_margins(self) -> tuple[tuple[str, ...], ...]:
        """Margins by the columns they are named by, besides the pairs."""
        return tuple(names for names in self.margins if not isinstance(names, str))

    @property
    def of_rows(self) -> bool:
        """Whether it says how rows are made categories and counted, which tables of counts have behind them."""
        return bool(self.variables or self.drop or self.combine_below) or self.margins != "two_way"

    @model_validator(mode="after")
    def _agree(self) -> Recipe:
        dropped = set(self.drop)
        used = {
            "variables": set(self.variables),
            "structural_zeros": {name for zero in self.structural_zeros for name in zero},
            "margins": {name for names in self.named_margins for name in names},
        }
        for field, columns in used.items():
            if columns & dropped:
                raise ValueError(f"{field}: {min(columns & dropped)} is also in drop; take it out of one of them")
        for names in self.named_margins:
            if not names or len(set(names)) < len(names):
                raise ValueError(f"margins: [{', '.join(names)}] needs columns, and each of them once")
            if self.every_pair and len(names) < 3:
                raise ValueError(f"margins: two_way counts [{', '.join(names)}] already; take it out")
        repeated = first_repeated(" × ".join(sorted(names)) for names in self.named_margins)
        if repeated is not None:
            raise ValueError(f"margins: {repeated} is there twice")
        for zero in self.structural_zeros:
            empty = next((name for name, labels in zero.items() if not labels), None)
            if empty is not None:
                raise ValueError(f"structural_zeros: {empty} has no categories; name some or take it out")
        return self

    def variable(self, name: str) -> VariableRecipe:
        """A column's recipe, with the table's own `combine_below` where it has none."""
        own = self.variables.get(name, VariableRecipe())
        if own.combine_below is not None or own.declares:
            return own
        return own.model_copy(update={"combine_below": self.combine_below})


def load_recipe(path: Path) -> Recipe:
    """Read and check one recipe; `hierarchy: FILE.csv` is read from beside it and becomes `groups`.

    A hierarchy is a CSV file of two columns, category and group. Raises RecipeError naming the file and every
    offending field.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=AsWritten)
    except FileNotFoundError:
        raise RecipeError(f"{path}: no such file; correct the name or leave the recipe out") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not readable as YAML: {error}") from error
    if not isinstance(document, dict):
        raise RecipeError(f"{path}: expected a mapping of fields, such as `variables:`")
    try:
        return Recipe.model_validate(with_hierarchies(document, path))
    except ValidationError as error:
        raise RecipeError(f"{path}: {faults(error)}") from error


def with_hierarchies(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """A recipe's document, read from `path`, with the hierarchies it names as groups. Raises RecipeError."""
    variables = document.get("variables")
    for name, section in variables.items() if isinstance(variables, dict) else ():
        if isinstance(section, dict) and "hierarchy" in section:
            where = f"{path}: variables.{name}.hierarchy"
            if "groups" in section:
                raise RecipeError(f"{where}: there are groups as well; keep one of them")
            section["groups"] = _read_hierarchy(where, path.parent / str(section.pop("hierarchy")))
    return document


def _read_hierarchy(where: str, path: Path) -> dict[str, list[str]]:
    if not path.is_file():
        raise RecipeError(f"{where}: {path} does not exist; put it there or correct the name")
    try:
        table = pl.read_csv(path, infer_schema=False)
    except pl.exceptions.PolarsError:
        raise RecipeError(f"{where}: {path} is not readable as CSV with one header line, commas and UTF-8") from None
    if table.columns != HIERARCHY_COLUMNS:
        raise RecipeError(f"{where}: {path} needs the two columns category and group, in this order")
    if table.is_empty() or sum(table.null_count().row(0)):
        raise RecipeError(f"{where}: {path} has to name a group for a category in every line, and at least one")
    members = table.group_by("group", maintain_order=True).agg("category")
    return dict(members.iter_rows())
