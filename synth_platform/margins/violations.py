"""Does a table keep to its domain? What a synthetic table must, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from synth_platform.margins.domain import Domain
from synth_platform.margins.replicates import codes
from synth_platform.margins.structural_zeros import StructuralZero


def violations(table: pl.DataFrame, domain: Domain, zeros: Sequence[StructuralZero] = ()) -> int:
    """Columns that are not the domain's in name, order and type, cells that are no category, rows in a declared zero.

    table: values as `Domain.frame` writes them. 0 is what a release asks for.
    """
    due = domain.frame(np.zeros((0, len(domain.variables)), dtype=np.int64)).schema
    if table.columns != list(due):
        return len(set(table.columns) ^ set(due)) or 1
    if wrong := sum(table.schema[name] != dtype for name, dtype in due.items()):
        return wrong
    columns = codes(table, domain)
    found = sum(column.null_count() for column in columns)
    for zero in zeros:
        inside = np.ones(len(table), dtype=bool)
        for (_, labels), axis in zip(zero.categories, domain.axes(zero.names), strict=True):
            known = domain.variables[axis].categories
            inside &= np.isin(columns[axis].fill_null(-1).to_numpy(), [known.index(label) for label in labels])
        found += int(inside.sum())
    return found
