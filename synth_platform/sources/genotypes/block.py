"""Genotypes come in blocks of variants: one protocol for every file format, so that no caller holds a whole matrix.

A dosage is how many copies of the variant's `alt` allele a sample carries: 0, 1 or 2 for called genotypes, a number of
[0, 2] for imputed ones. Which allele is `alt` each reader says; the rule never looks at the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.sources.tables import SourceError

Field = Literal["GT", "DS"]
Dosages = NDArray[np.int8] | NDArray[np.float32]

VARIANT_SCHEMA: dict[str, type[pl.DataType]] = {
    "variant_id": pl.String,
    "chromosome": pl.String,
    "position": pl.Int64,
    "ref": pl.String,
    "alt": pl.String,
}
BLOCK_SIZE = 4096
BLOCK_BYTES = 1 << 21  # 2 MiB of file, or one variant where that is longer
LARGEST_ID = 1000  # characters; names of discoveries are shown and stored with it
OVERLONG_ID = f"the id of the variant is longer than {LARGEST_ID} characters; shorten it, or write . for none"


class GenotypeError(SourceError):
    """A genotype or phenotype file cannot be read; names file and line, never a value or a sample."""


@dataclass(frozen=True, eq=False)
class GenotypeBlock:
    """Consecutive variants of a file: `variants` has VARIANT_SCHEMA and b rows, `dosages` is [n, b].

    int8 with -1 for missing where the reader was opened for GT, float32 with NaN for missing where for DS. Columns of
    `dosages`, one variant each, are contiguous.
    """

    variants: pl.DataFrame
    dosages: Dosages = field(repr=False)


class GenotypeReader(Protocol):
    """A genotype file, opened: its samples are known, its variants are read when asked for."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that the dosages come from."""
        ...

    @property
    def samples(self) -> tuple[str, ...]:
        """The n sample names, distinct, in the order of the rows of `dosages`."""
        ...

    def blocks(self, size: int = BLOCK_SIZE) -> Iterator[GenotypeBlock]:
        """All variants in file order, from the first at every call.

        A block has at least one variant and comes from at most `size` lines or records of the file; from fewer where
        they are long, so that memory is bounded whatever n is. Raises GenotypeError where the file is broken, when the
        broken place is reached.
        """
        ...


def require_samples(samples: Sequence[str], path: Path) -> tuple[str, ...]:
    """The names as they are, if there are any and no two are equal; GenotypeError otherwise."""
    if not samples:
        raise GenotypeError(f"{path}: the file has no samples; export it again with genotypes")
    if "" in samples:
        raise GenotypeError(f"{path}: a sample has no name; name every sample")
    repeated = sum(count > 1 for count in Counter(samples).values())
    if repeated:
        raise GenotypeError(f"{path}: sample names stand for more than one sample; make the names distinct")
    return tuple(samples)


def overlong_id(ids: pl.Series) -> int | None:
    """Position of the first variant id of more than LARGEST_ID characters, if there is one."""
    overlong = (ids.str.len_chars() > LARGEST_ID).arg_true()
    return int(overlong[0]) if len(overlong) else None


def require_size(size: int) -> None:
    """Refuse a block of no variants."""
    if size < 1:
        raise ValueError(f"size is {size}; a block has at least one variant")
