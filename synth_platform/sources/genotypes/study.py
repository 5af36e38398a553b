"""A case-control study as what a closed table holds: where the genotypes are, who is kept, who is a case.

The matrix itself is never held: `blocks` streams it. The list of variants must be public before the study (those of an
array, a reference panel, a registered list of sites): a site that is in the file because somebody here carries it tells
of that person. `list_variants` names the list, so that a registered one can be compared with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as record_field
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.sources.genotypes.block import BLOCK_SIZE, Dosages, Field, GenotypeReader
from synth_platform.sources.genotypes.open import open_genotypes
from synth_platform.sources.genotypes.phenotype import Phenotypes, join_phenotypes


@dataclass(frozen=True, eq=False)
class GenotypeStudy:
    """Row i of every block is sample `kept[i]` of the file, a case where `case[i]`; both [n_kept]."""

    path: Path
    field: Field
    kept: NDArray[np.int64] = record_field(repr=False)
    case: NDArray[np.bool_] = record_field(repr=False)

    def blocks(self, size: int = BLOCK_SIZE) -> Iterator[tuple[pl.DataFrame, Dosages]]:
        """Variants [b] and dosages [n_kept, b] of every block; memory and errors as of `GenotypeReader.blocks`."""
        for block in open_genotypes(self.path, self.field).blocks(size):
            # By variants: they are contiguous, and stay so.
            yield block.variants, cast(Dosages, np.take(block.dosages.T, self.kept, axis=1).T)


def make_study(
    path: Path, phenotypes: Phenotypes, *, n_case: int, n_control: int, field: Field = "GT"
) -> GenotypeStudy:
    """The study of a genotype file (see `open_genotypes`) and the phenotypes of its samples.

    Raises GenotypeError for a file that cannot be opened and for groups of other sizes than the registered ones.
    """
    samples = open_genotypes(path, field).samples
    groups = join_phenotypes(samples, phenotypes, n_case=n_case, n_control=n_control)
    return GenotypeStudy(path, field, groups.kept, groups.case)


def source_digest(study: GenotypeStudy) -> bytes:
    """SHA-256 of the genotyped people: their names and the bytes of genotype files, whoever is a case."""
    reader, whole = open_genotypes(study.path, study.field), hashlib.sha256()
    for path in reader.files:
        if path.suffix != ".fam":  # a phenotype stands in it
            whole.update(_file_digest(path))
    for sample in reader.samples:
        whole.update(hashlib.sha256(sample.encode()).digest())
    return whole.digest()


def content_digest(study: GenotypeStudy) -> bytes:
    """SHA-256 over all that a statistic of the study depends on: the files' bytes, the field, kept and case."""
    whole = hashlib.sha256()
    for path in open_genotypes(study.path, study.field).files:
        whole.update(_file_digest(path))
    for part in (study.field.encode(), study.kept.astype("<i8").tobytes(), study.case.astype("u1").tobytes()):
        whole.update(hashlib.sha256(part).digest())
    return whole.digest()


def list_variants(reader: GenotypeReader) -> tuple[int, str]:
    """How many variants a file has, and the SHA-256 of their list (hexadecimal), one tab-separated line each in file
    order; reads the file once."""
    number, whole = 0, hashlib.sha256()
    for block in reader.blocks():
        number += block.variants.height
        whole.update(variant_lines(block.variants))
    return number, whole.hexdigest()


def variant_lines(variants: pl.DataFrame) -> bytes:
    """Variants as the lines that the digest of `list_variants` is taken of."""
    return variants.write_csv(include_header=False, separator="\t", quote_style="necessary").encode()


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
