"""Published tables of counts as margins: a folder of files, no microdata at all.

Each file is one margin as a long table, CSV (or .csv.gz) with a header line or Parquet: a column for each variable, and
one named `count` in any case (or `n` where there is none) with the people in that combination. A combination that has
no line counts nobody. The files are public, so errors name labels, lines and totals.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import polars as pl

from synth_platform.contract.categories import MOST_CATEGORIES
from synth_platform.margins.domain import Codes, Domain, Variable
from synth_platform.margins.margin import MOST_CELLS, Counts, Margin, MarginSet
from synth_platform.margins.reading.domain_file import natural_order, read_domain, variable, write_domain
from synth_platform.margins.reading.stated_files import STATED_FILES, read_stated, write_stated
from synth_platform.margins.reading.zeros_file import read_zeros, write_zeros
from synth_platform.margins.structural_zeros import StructuralZero

Totals = Literal["equal", "differ"]
FORMATS = (".csv", ".csv.gz", ".parquet")
MOST_PEOPLE = 10**12  # in a cell
_SAME = 1e-9  # of a total: sums of decimal counts differ in their last digits


@dataclass(frozen=True, eq=False)
class _Table:
    """A file: labels of its variables and counts [lines], with the line each stands on."""

    file: str
    labels: pl.DataFrame
    counts: Counts
    lines: pl.Series

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.labels.columns)

    def fail(self, what: str) -> ValueError:
        return ValueError(f"{self.file}: {what}")


def read_tables(folder: Path, zeros: Sequence[StructuralZero] = (), totals: Totals = "equal") -> MarginSet:
    """The tables of a folder as margins, in natural order of the file names, over one domain.

    The domain is that of domain.yaml or domain.json in the folder (see `domain_file`), whose categories are then all
    there are. Without it, variables come in the order of their first appearance and categories are those of all files
    together in natural order; a variable whose labels are all integers is one of integers, every other of text. Hidden
    files and .md files are passed over.

    zeros: structural zeros besides those of structural_zeros.yaml or .json in the folder (see `zeros_file`). What
    provenance.json tells of a file stands before the file in the margin's provenance.

    totals: "equal" asks every table for the same total; "differ" takes the counts as they are, which rounded tables
    need. Each counts the people by itself then: a fit normalises it by its own total and reports it, and an audit
    finds its counts as its rounding made them.

    Raises ValueError that names the file, and the line, column or label: no tables; a file of another format; one that
    cannot be read; no count column or no other; no lines; an empty label; a count that is missing, no number, negative
    or not finite; a combination or a margin twice; a variable or a category that the stated domain does not have; more
    than MOST_CELLS combinations; a table that counts nobody; totals that disagree. And as `MarginSet` does.
    """
    if totals not in get_args(Totals):
        raise ValueError(f"totals {totals!r} is none of {', '.join(get_args(Totals))}")
    stated, told, declared = read_domain(folder), _read_provenance(folder), read_zeros(folder)
    tables = [_read(path) for path in _files(folder)]
    _no_margin_twice(tables)
    if stated is None:
        domain = _union(tables)
        _refuse_missing_labels(tables)
    else:
        domain = stated
    margins = tuple(_margin(table, domain, told.get(table.file, ())) for table in tables)
    if totals == "equal":
        _refuse_other_totals(margins, tables)
    return MarginSet(domain, margins, (*declared, *(zero for zero in zeros if zero not in declared)))


def write_tables(margins: MarginSet, folder: Path) -> None:
    """Write each margin as 01_age_sex.csv, combinations of nobody left out, and what they share; `folder` is made.

    That is domain.json, provenance.json (by file, what was done to its counts), and structural_zeros.json where there
    are any. `read_tables(folder, totals="differ")` returns the same domain, margins, counts, zeros and provenance, with
    the file at its end. Raises ValueError if the folder is not empty or a variable is named like a count column.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: tables of two sets would mix; name a new folder")
    reserved = next((name for name in margins.domain.names if name.casefold() == "count"), None)
    if reserved is not None:
        raise ValueError(f"variable {reserved} has the name of the column of counts; rename it")
    folder.mkdir(parents=True, exist_ok=True)
    width, provenance = max(2, len(str(len(margins.margins)))), dict[str, list[str]]()
    for number, margin in enumerate(margins, start=1):
        cells = np.nonzero(margin.counts)
        domain = margins.domain.project(margin.names)
        labels = [
            pl.Series(of.name, of.categories, pl.String).gather(codes)
            for of, codes in zip(domain.variables, cells, strict=True)
        ]
        people = margin.counts[cells]
        whole = bool((people == np.rint(people)).all() and people.max() < 2**53)
        counts = pl.Series("count", people, pl.Float64)
        name = re.sub(r"[^\w-]+", "-", "_".join(margin.names))[:60]
        file = f"{number:0{width}d}_{name}.csv"
        pl.DataFrame([*labels, counts.cast(pl.Int64) if whole else counts]).write_csv(folder / file)
        provenance[file] = list(margin.provenance)
    write_domain(margins.domain, folder)
    write_zeros(margins.zeros, folder)
    write_stated(folder, "provenance", provenance)


def _read_provenance(folder: Path) -> dict[str, tuple[str, ...]]:
    stated = read_stated(folder, "provenance")
    if stated is None:
        return {}
    file, document = stated
    if not isinstance(document, dict) or not all(
        isinstance(steps, list) and all(isinstance(step, str) for step in steps) for steps in document.values()
    ):
        raise ValueError(f"{file}: a list of steps by the name of a table's file is due, such as a.csv: [step]")
    return {str(name): tuple(steps) for name, steps in document.items()}


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; name the one that holds the tables")
    paths = {path.name: path for path in folder.iterdir()}
    names = [name for name in paths if not name.startswith(".") and not name.endswith(".md")]
    found = [name for name in names if name not in STATED_FILES]
    other = next((name for name in natural_order(found) if not name.endswith(FORMATS) or paths[name].is_dir()), None)
    if other is not None:
        raise ValueError(f"{folder}: {other} is none of {', '.join(FORMATS)}; convert it or move it elsewhere")
    if not found:
        raise ValueError(f"{folder}: there are no tables; put one file for each margin there ({', '.join(FORMATS)})")
    return [paths[name] for name in natural_order(found)]


def _read(path: Path) -> _Table:
    parquet = path.name.endswith(".parquet")
    try:
        with path.open("rb") as file:
            # Without a header, so that a name that stands there twice is seen.
            frame = pl.read_parquet(file) if parquet else pl.read_csv(file, has_header=False, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, EOFError):
        form = "Parquet" if parquet else "CSV with one header line, commas, UTF-8 and as many fields in every line"
        raise ValueError(f"{path.name} is empty or not readable as {form}; write it again in that format") from None
    names = frame.columns if parquet else list(frame.row(0))
    count = _count_column(path.name, names)
    lines = pl.Series("line", np.arange(len(frame)) + 1)
    if not parquet:
        frame.columns = [str(position) for position in range(len(names))]
        blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        kept = ~blank & (lines > 1)
        frame, lines = frame.filter(kept), lines.filter(kept)
    if frame.is_empty():
        raise ValueError(f"{path.name}: there is no line below the header; leave the file out or fill it")
    columns = frame.get_columns()
    labels = [_labels(path.name, column.alias(names[k]), lines) for k, column in enumerate(columns) if k != count]
    return _Table(path.name, pl.DataFrame(labels), _counts(path.name, columns[count], lines), lines)


def _count_column(file: str, names: Sequence[str | None]) -> int:
    unnamed = next((k for k, name in enumerate(names, start=1) if not name), None)
    if unnamed is not None:
        raise ValueError(f"{file}: column {unnamed} has no name")
    repeated = next((name for name, times in Counter(names).items() if times > 1), None)
    if repeated is not None:
        raise ValueError(f"{file}: column {repeated} is there twice")
    folded = [str(name).casefold() for name in names]
    wanted = "count" if "count" in folded else "n"
    if folded.count(wanted) != 1:
        raise ValueError(
            f"{file}: one column named count is due, among {', '.join(map(str, names))}; CSV is split at commas"
        )
    if len(names) == 1:
        raise ValueError(f"{file}: there is nothing but counts; a column for each variable is due")
    return folded.index(wanted)


def _labels(file: str, column: pl.Series, lines: pl.Series) -> pl.Series:
    if column.dtype.is_float() or column.dtype.is_nested() or column.dtype == pl.Binary:
        raise ValueError(f"{file}: column {column.name} holds {column.dtype}; categories are text or whole numbers")
    if column.null_count():
        line = lines.filter(column.is_null())[0]
        raise ValueError(f"{file}, line {line}: column {column.name} is empty; write which category is meant")
    return column.cast(pl.String)


def _counts(file: str, column: pl.Series, lines: pl.Series) -> Counts:
    text = column.dtype == pl.String
    if not text and not column.dtype.is_numeric() and column.null_count() < len(column):
        raise ValueError(f"{file}: the column of counts holds {column.dtype}; plain numbers are due")
    numbers = (column.str.strip_chars() if text else column).cast(pl.Float64, strict=False)
    wrong = numbers.is_null() | ~numbers.is_finite().fill_null(False)
    wrong |= ((numbers < 0) | (numbers > MOST_PEOPLE)).fill_null(False)
    if wrong.any():
        line, value = lines.filter(wrong)[0], column.filter(wrong)[0]
        what = "missing" if value is None else f"{value!r}"
        raise ValueError(
            f"{file}, line {line}: the count is {what}; a plain number from 0 on is due, for a suppressed cell too, "
            f"and at most {MOST_PEOPLE:,} ({int(wrong.sum()):,} such lines)"
        )
    return numbers.to_numpy()


def _no_margin_twice(tables: Sequence[_Table]) -> None:
    first: dict[frozenset[str], str] = {}
    for table in tables:
        other = first.setdefault(frozenset(table.names), table.file)
        if other != table.file:
            raise table.fail(f"it counts {' × '.join(table.names)}, as {other} does; keep one of them")


def _refuse_missing_labels(tables: Sequence[_Table]) -> None:
    """Raise ValueError for a category with people in one table and no line in another of the same variable.

    A category that nobody is in has lines of 0, or a stated domain: one that is spelled otherwise has none.
    """
    first: dict[str, tuple[str, set[str]]] = {}
    for table in tables:
        for column in table.labels:
            there = set(column.unique())
            other, before = first.setdefault(column.name, (table.file, there))
            for label, has, lacks in (
                *((label, other, table.file) for label in natural_order(before - there)),
                *((label, table.file, other) for label in natural_order(there - before)),
            ):
                raise ValueError(
                    f"variable {column.name}: category {label!r} is in {has} and not in {lacks}; write it alike in "
                    "every table, give lines of 0 where nobody is, or state all categories in domain.json"
                )


def _union(tables: Sequence[_Table]) -> Domain:
    labels: dict[str, set[str]] = {}
    for table in tables:
        for column in table.labels:
            labels.setdefault(column.name, set()).update(column.unique())
            if (found := len(labels[column.name])) > MOST_CATEGORIES:
                raise table.fail(
                    f"variable {column.name} has {found:,} categories, more than {MOST_CATEGORIES:,}: publish it in "
                    "groups, or leave the table out if it names people"
                )
    return Domain(tuple(_inferred(name, known) for name, known in labels.items()))


def _inferred(name: str, labels: set[str]) -> Variable:
    ordered, bare = natural_order(labels), dict[str, str]()
    for label in ordered:
        other = bare.setdefault(label.strip(), label)
        if other != label:
            raise ValueError(f"variable {name}: {other!r} and {label!r} differ in white space alone; write them alike")
    return variable(name, ordered)


def _margin(table: _Table, domain: Domain, told: tuple[str, ...]) -> Margin:
    unknown = next((name for name in table.names if name not in domain.names), None)
    if unknown is not None:
        raise table.fail(f"variable {unknown} is not in the stated domain; there are {', '.join(domain.names)}")
    of = domain.project(table.names)
    if of.cells > MOST_CELLS:
        raise table.fail(f"{of.cells:,} combinations, more than {MOST_CELLS:,}; publish it over fewer variables")
    codes = [_codes(table, column, each) for column, each in zip(table.labels, of.variables, strict=True)]
    cells = np.ravel_multi_index(tuple(codes), of.shape)
    order = np.argsort(cells, kind="stable")
    again = np.flatnonzero(np.diff(cells[order]) == 0)
    if again.size:
        first, second = (int(table.lines[int(order[again[0] + k])]) for k in (0, 1))
        what = ", ".join(map(str, table.labels.row(int(order[again[0]]))))
        raise table.fail(f"lines {first} and {second} both count {what}; add them up or drop one")
    counts = np.zeros(of.shape)
    counts.ravel()[cells] = table.counts
    if not counts.any():
        raise table.fail("it counts nobody; leave it out")
    return Margin(table.names, counts, (*told, f"published table {table.file}"))


def _codes(table: _Table, column: pl.Series, of: Variable) -> Codes:
    codes = column.replace_strict(list(of.categories), list(range(len(of))), default=None, return_dtype=pl.Int64)
    unseen = column.filter(codes.is_null())
    if len(unseen):
        raise table.fail(
            f"column {column.name}: {unseen[0]!r} is no category of the stated domain ({len(unseen):,} such lines, the "
            f"first is {table.lines.filter(codes.is_null())[0]}); add it there or correct the table"
        )
    return codes.to_numpy()


def _refuse_other_totals(margins: tuple[Margin, ...], tables: Sequence[_Table]) -> None:
    found = np.array([margin.total for margin in margins])
    if np.ptp(found) > _SAME * found.max():
        said = "; ".join(f"{table.file}: {total:,.12g}" for table, total in zip(tables, found, strict=True))
        raise ValueError(
            f"the tables have different totals ({said}). Tables that were rounded disagree by nature: say totals: "
            "differ in census.yaml, --totals differ at the command; otherwise one of them counts other people"
        )
