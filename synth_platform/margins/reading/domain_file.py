"""domain.yaml or domain.json beside published tables: the variables and their categories, in order.

A document {variable: [categories]}, or {variable: {categories: […], kind: integer, missing: "?"}} where the kind does
not follow from the labels or one of them stands for a missing value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from synth_platform.margins.domain import Domain, Kind, Variable
from synth_platform.margins.reading.stated_files import read_stated, write_stated

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LEAST = "a list of categories, or categories with a kind and a missing category"


def natural_order(labels: Iterable[str]) -> list[str]:
    """Labels sorted as people count: 2 before 10, -1 before 0, 16-64 before 65+."""
    known = list(labels)
    if all(map(_INTEGER.fullmatch, known)):
        return sorted(known, key=int)
    return sorted(known, key=lambda label: ([_number(part) for part in re.split(r"([0-9]+)", label)], label))


def _number(part: str) -> tuple[int, str]:
    return (int(part), "") if part.isdecimal() and part.isascii() else (-1, part)


def variable(name: str, labels: Sequence[str]) -> Variable:
    """A variable of integers where every label is one as it is written back (7, -1; not 07, +1), of text otherwise."""
    return Variable(name, tuple(labels), "integer" if all(map(_INTEGER.fullmatch, labels)) else "text")


def read_domain(folder: Path) -> Domain | None:
    """The domain that a folder states, None where it states none.

    Raises ValueError that names the file and what is wrong: two of them, no document, a variable that `Variable` does
    not take.
    """
    stated = read_stated(folder, "domain")
    if stated is None:
        return None
    file, document = stated
    if not isinstance(document, dict) or not document:
        raise ValueError(f"{file}: variables are due, each with {_LEAST}")
    try:
        return Domain(tuple(_variable(str(name), stated) for name, stated in document.items()))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def write_domain(domain: Domain, folder: Path) -> None:
    """Write domain.json; `read_domain` returns an equal domain."""
    document = {}
    for each in domain.variables:
        full = {"categories": list(each.categories), "kind": each.kind}
        missing = {} if each.missing is None else {"missing": each.missing}
        inferred = variable(each.name, each.categories) == each
        document[each.name] = list(each.categories) if inferred else full | missing
    write_stated(folder, "domain", document)


def _variable(name: str, stated: Any) -> Variable:
    if isinstance(stated, list):
        return variable(name, _labels(name, stated))
    if not isinstance(stated, dict) or "categories" not in stated or set(stated) - {"categories", "kind", "missing"}:
        raise ValueError(f"variable {name}: it needs {_LEAST}")
    missing, labels = stated.get("missing"), _labels(name, stated["categories"])
    kind: Kind = stated.get("kind") or variable(name, [label for label in labels if label != missing]).kind
    if kind not in get_args(Kind):
        raise ValueError(f"variable {name}: kind {kind!r} is none of {', '.join(get_args(Kind))}")
    return Variable(name, labels, kind, missing)


def _labels(name: str, stated: Any) -> tuple[str, ...]:
    if not isinstance(stated, list) or not all(isinstance(label, str) for label in stated):
        raise ValueError(f"variable {name}: its categories are a list of labels, text or numbers")
    return tuple(stated)
