"""Recoding the distinct values of one column: group, then code numbers, then combine small categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl

from synth_platform.contract.categories import MOST_CATEGORIES
from synth_platform.margins.reading.curation_report import CurationStep, StepName

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Recoded:
    """Distinct values of a column, each with its present label.

    table: value, label (text) and rows, one line a distinct value. categories: every label there can be, in order,
    whether or not a row has it. grouped: labels that a group made. Steps raise ValueError that begins with `where`,
    the file and column, and tells how many distinct values are wrong, never which.
    """

    where: str
    table: pl.DataFrame
    categories: tuple[str, ...]
    grouped: tuple[str, ...] = ()
    steps: tuple[CurationStep, ...] = ()

    def only(self, categories: tuple[str, ...]) -> Recoded:
        """Declared categories. Raises ValueError for a value that is none of them."""
        unseen = self.table.filter(~pl.col("label").is_in(categories))
        if len(unseen):
            raise ValueError(
                f"{self.where}: values are none of its categories in the recipe; add them there or correct the table"
            )
        return replace(self, categories=categories)

    def group(self, groups: Mapping[str, tuple[str, ...]], partly: bool) -> Recoded:
        """Values to the labels of their groups; `partly` leaves values without one for numbers to be coded.

        Raises ValueError for a value without a group otherwise.
        """
        label_of = {category: label for label, categories in groups.items() for category in categories}
        value = self.table["label"]
        label = value.replace_strict(label_of, default=None, return_dtype=pl.String)
        if label.null_count() and not partly:
            raise ValueError(
                f"{self.where}: values are in no group of the recipe; add them to one or correct the table"
            )
        told = CurationStep("grouped", tuple(groups), self._rows(label.is_not_null()), _merged(value, label))
        labels = tuple(groups)
        return replace(self._with(label.fill_null(value)), categories=labels, grouped=labels, steps=(*self.steps, told))

    def code(self, bottom: float | None, top: float | None, bands: tuple[float, ...] | None) -> Recoded:
        """Bottom coding, top coding and bands of numbers; labels of groups that are no numbers pass unchanged.

        Without bands the numbers between stay categories: all whole numbers from bottom to top where both are
        declared, those of the table otherwise. Raises ValueError for a value that is no number, or outside of the
        bands and not coded.
        """
        text = self.table["label"]
        number = text.set(~text.str.contains(NUMBER), None).cast(pl.Float64)
        if (number.is_null() & ~text.is_in(self.grouped)).any():
            raise ValueError(
                f"{self.where}: values are no numbers, which top, bottom and bands are for; "
                "name them in null_values or groups"
            )
        x = number.fill_null(np.nan).to_numpy()
        numeric = ~np.isnan(x)
        whole = bool((np.abs(x[numeric]) < _EXACT).all() and (x[numeric] % 1 == 0).all())
        label = pl.select(pl.when(pl.Series(numeric)).then(written(number)).otherwise(text).alias("label")).to_series()
        low = numeric & (x <= (-np.inf if bottom is None else bottom))
        high = numeric & (x >= (np.inf if top is None else top))
        between = numeric & ~low & ~high
        steps: list[CurationStep] = []

        def become(name: StepName, rows: np.ndarray, labels: tuple[str, ...], made: pl.Series) -> None:
            nonlocal label
            label = pl.select(pl.when(pl.Series(rows)).then(made).otherwise(label).alias("label")).to_series()
            steps.append(CurationStep(name, labels, self._rows(pl.Series(rows))))

        first, last = () if bottom is None else (f"{_plain(bottom)}-",), () if top is None else (f"{_plain(top)}+",)
        if first:
            become("bottom_coded", low, first, pl.Series(first * len(x), dtype=pl.String))
        if bands is None:
            middle = _numbers_between(bottom, top, whole, number.filter(pl.Series(between)))
        else:
            band = np.searchsorted(bands, x, side="right") - 1
            outside = between & ((band < 0) | (band >= len(bands) - 1))
            if outside.any():
                raise ValueError(
                    f"{self.where}: values are outside of the bands; add edges, or code them by bottom or top"
                )
            middle = band_labels(bands, whole)
            made = pl.Series(middle, dtype=pl.String).gather(np.where(between, band, 0))
            become("banded", between, middle, made)
        if last:
            become("top_coded", high, last, pl.Series(last * len(x), dtype=pl.String))
        passed = tuple(name for name in self.grouped if not pl.Series([name]).str.contains(NUMBER).item())
        categories = tuple(dict.fromkeys((*first, *middle, *last, *passed)))
        return replace(self._with(label), categories=categories, steps=(*self.steps, *steps))

    def combine(self, below: int, into: str) -> Recoded:
        """Categories of fewer than `below` rows become `into`, which comes last unless it was a category already.

        Which ones they are depends on the data: it is a statement about their counts, and the domain of the result is
        no longer what the recipe alone says. Empty categories go with small ones, but are left where nobody is in
        any. `into` may itself stay below the limit (`small` in the report): coarsening is what protects its count.
        """
        counted = dict(self.table.group_by("label").agg(pl.col("rows").sum()).iter_rows())
        small = [name for name in self.categories if counted.get(name, 0) < below and name != into]
        if not any(counted.get(name, 0) for name in small):
            return self
        value = self.table["label"]
        gone = value.is_in(small)
        label = value.set(gone, into)
        dropped = set(small)
        kept = tuple(name for name in self.categories if name not in dropped)
        total = int(sum(counted.get(name, 0) for name in (*small, into)))
        told = CurationStep("combined", (into,), self._rows(gone), {into: tuple(small)}, total < below)
        categories = tuple(dict.fromkeys((*kept, into)))
        return replace(self._with(label), categories=categories, steps=(*self.steps, told))

    def _with(self, label: pl.Series) -> Recoded:
        return replace(self, table=self.table.with_columns(label.alias("label")))

    def _rows(self, chosen: pl.Series) -> int:
        return int(self.table["rows"].filter(chosen).sum())


def written(numbers: pl.Series) -> pl.Series:
    """Decimal numbers as text, whole ones without a point: 2.0 is "2", so that 2 in a recipe is the same category."""
    x = pl.col("x")
    whole = (x % 1 == 0) & (x.abs() < _EXACT)
    text = pl.when(whole).then(pl.when(whole).then(x).cast(pl.Int64).cast(pl.String)).otherwise(x.cast(pl.String))
    return pl.DataFrame({"x": numbers}).select(text.alias(numbers.name)).to_series()


def _plain(number: float) -> str:
    return str(written(pl.Series([number])).item())


def _numbers_between(bottom: float | None, top: float | None, whole: bool, numbers: pl.Series) -> tuple[str, ...]:
    if bottom is not None and top is not None and whole:
        lowest, highest = int(np.floor(bottom)) + 1, int(np.ceil(top)) - 1
        if highest - lowest < MOST_CATEGORIES:
            return tuple(map(str, range(lowest, highest + 1)))
    return tuple(written(numbers.unique().sort()).to_list())


def band_labels(bands: tuple[float, ...], whole: bool) -> tuple[str, ...]:
    """Labels of half-open bands; `whole`: of whole numbers, where the edges are whole as well."""
    pairs = list(pairwise(bands))
    if not whole or any(edge % 1 for edge in bands):
        return tuple(f"[{_plain(low)}, {_plain(high)})" for low, high in pairs)
    return tuple(str(int(low)) if high - low == 1 else f"{int(low)}-{int(high) - 1}" for low, high in pairs)


def _merged(values: pl.Series, labels: pl.Series) -> dict[str, tuple[str, ...]]:
    merged: dict[str, list[str]] = {}
    for value, label in zip(values.to_list(), labels.to_list(), strict=True):
        if label is not None:
            merged.setdefault(label, []).append(value)
    return {label: tuple(members) for label, members in merged.items()}
