"""Tables of the evidence of margins as arrays over their variables, and which of their cells can hold anybody."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from synth_platform.audit.findings import MalformedError
from synth_platform.audit.reading import Document, FloatArray, array, mapping, sequence, text

Names = tuple[str, ...]
Cells = NDArray[np.bool_]


@dataclass(frozen=True)
class Space:
    """Variables with their categories, declared zeros, and the variables of every table of the evidence."""

    categories: Mapping[str, Sequence[str]]
    zeros: Sequence[Mapping[str, Sequence[str]]]
    tables: Sequence[Names]

    @property
    def names(self) -> Names:
        """Variables in their order."""
        return tuple(self.categories)

    def shape(self, names: Sequence[str]) -> tuple[int, ...]:
        """Numbers of categories. Raises MalformedError for an unknown variable."""
        if not names or len(set(names)) < len(names) or not set(names) <= set(self.categories):
            raise MalformedError("names")
        return tuple(len(self.categories[name]) for name in names)

    def possible(self, names: Sequence[str]) -> Cells:
        """Cells that no declared zero forbids, cell by cell of each zero."""
        cells = np.ones(self.shape(names), dtype=bool)
        for zero in self.zeros:
            if set(zero) <= set(names):
                inside = [
                    [list(self.categories[name]).index(label) for label in zero[name]]
                    if name in zero
                    else range(len(self.categories[name]))
                    for name in names
                ]
                for cell in product(*inside):
                    cells[cell] = False
        return cells

    def table(self, document: object, names: Sequence[str], *path: str) -> FloatArray:
        """A flat list of the evidence as an array over the named variables; at least nought everywhere."""
        shape = self.shape(names)
        values = array(document, *path, shape=(math.prod(shape),))
        if (values < 0).any():
            raise MalformedError(".".join(path))
        return values.reshape(shape)

    def tables_at(self, document: object, *path: str) -> list[FloatArray | None]:
        """All tables of a section that has one for each of the evidence's, or null."""
        held = sequence(document, *path)
        if len(held) != len(self.tables):
            raise MalformedError(".".join(path))
        return [
            None if values is None else self.table({path[-1]: values}, names, path[-1])
            for values, names in zip(held, self.tables, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Counted:
    """One margin of the evidence: variables, counts over them, provenance."""

    names: Names
    counts: FloatArray
    provenance: Sequence[str]


def space_of(evidence: Document) -> Space:
    """Variables, zeros and tables that the evidence declares."""
    variables = sequence(evidence, "variables")
    categories = {text(variable, "name"): _strings(variable, "categories") for variable in variables}
    if len(categories) < len(variables) or any(len(set(c)) < len(c) or not c for c in categories.values()):
        raise MalformedError("variables")
    zeros = []
    for zero in sequence(evidence, "zeros"):
        declared = {name: _strings(mapping({"zeros": zero}, "zeros"), name) for name in zero}
        if not declared or any(not set(labels) <= set(categories.get(n, ())) for n, labels in declared.items()):
            raise MalformedError("zeros")
        zeros.append(declared)
    space = Space(categories, zeros, ())
    tables = [tuple(_strings({"tables": names}, "tables")) for names in sequence(evidence, "tables")]
    for names in tables:
        space.shape(names)
    return Space(categories, zeros, tables)


def counted_of(evidence: Document, section: str, space: Space) -> list[Counted]:
    """The margins of a section."""
    margins = []
    for margin in sequence(evidence, section):
        names = tuple(_strings(margin, "names"))
        margins.append(Counted(names, space.table(margin, names, "counts"), _strings(margin, "provenance")))
    if not margins:
        raise MalformedError(section)
    return margins


def title(names: Sequence[str]) -> str:
    """A table's name in checks; variables are public."""
    return "+".join(names)


def _strings(document: object, key: str) -> list[str]:
    values = sequence(document, key)
    if not all(isinstance(value, str) for value in values):
        raise MalformedError(key)
    return values
