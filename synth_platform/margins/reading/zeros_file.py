"""structural_zeros.yaml or structural_zeros.json beside published tables: combinations that cannot occur.

A list of combinations, each {variable: [categories]} as in a recipe: `- {age: [0-15], marital: [married]}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from synth_platform.margins.reading.stated_files import read_stated, write_stated
from synth_platform.margins.structural_zeros import StructuralZero


def read_zeros(folder: Path) -> tuple[StructuralZero, ...]:
    """The structural zeros that a folder states; none where it states none.

    Raises ValueError that names the file and what is due. Whether a domain has them is for `MarginSet` to say.
    """
    stated = read_stated(folder, "structural_zeros")
    if stated is None:
        return ()
    file, document = stated
    fits = isinstance(document, list) and all(
        isinstance(zero, dict) and zero and all(_are_labels(labels) for labels in zero.values()) for zero in document
    )
    if not fits:
        raise ValueError(
            f"{file}: a list of impossible combinations is due, each of them categories by variable, such as "
            "- {age: [0-15], marital: [married]}"
        )
    return tuple(StructuralZero.of(zero) for zero in document)


def write_zeros(zeros: Sequence[StructuralZero], folder: Path) -> None:
    """Write structural_zeros.json; `read_zeros` returns equal ones. No zeros, no file."""
    if zeros:
        document = [{name: list(labels) for name, labels in zero.categories} for zero in zeros]
        write_stated(folder, "structural_zeros", document)


def _are_labels(labels: object) -> bool:
    return isinstance(labels, list) and bool(labels) and all(isinstance(label, str) for label in labels)
