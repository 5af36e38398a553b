"""PLINK 1 binary genotypes: NAME.bed with NAME.bim (variants) and NAME.fam (samples) beside it.

A .bed is three bytes of magic and then, per variant, two bits per sample, four samples a byte from the low bits up:
00 = two copies of A1, 10 = one, 11 = none, 01 = missing. `alt` is A1 (column 5 of the .bim), `ref` is A2: what PLINK 2
makes of a .bed, and the inverse of what it writes for a VCF. https://www.cog-genomics.org/plink/1.9/formats
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from synth_platform.sources.genotypes.block import (
    BLOCK_BYTES,
    BLOCK_SIZE,
    GenotypeBlock,
    GenotypeError,
    require_samples,
    require_size,
)
from synth_platform.sources.genotypes.text import Lines, line_blocks, open_text, placed

MAGIC = b"\x6c\x1b"
VARIANT_MAJOR = b"\x01"
PER_BYTE = 4
COPIES_OF_A1 = np.array([2, -1, 1, 0], dtype=np.int8)
# Byte -> its four dosages, as one word so that a single look-up decodes a byte.
DECODED = COPIES_OF_A1[np.arange(256)[:, np.newaxis] >> np.arange(0, 8, 2) & 3].view("<u4").ravel()
BIM_COLUMNS = FAM_COLUMNS = 6


class PlinkReader:
    """A .bed with its .bim and .fam; raises GenotypeError if one is missing or their sizes disagree.

    Samples are named by the individual id, column 2 of the .fam.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bim, self.fam = path.with_suffix(".bim"), path.with_suffix(".fam")
        for beside in (self.bim, self.fam):
            if not beside.is_file():
                raise GenotypeError(f"{path}: {beside.name} is not beside it; a .bed is read with its .bim and .fam")
        self.samples = require_samples(read_fam(self.fam)["key"].to_list(), self.fam)
        self._row_bytes = -(-len(self.samples) // PER_BYTE)
        _require_bed(path, self._row_bytes * _count_lines(self.bim))

    @property
    def files(self) -> tuple[Path, ...]:
        """The .bed, the .bim and the .fam."""
        return (self.path, self.bim, self.fam)

    def blocks(self, size: int = BLOCK_SIZE) -> Iterator[GenotypeBlock]:
        """Blocks as of `GenotypeReader`."""
        require_size(size)
        size = min(size, max(1, BLOCK_BYTES // self._row_bytes))
        with self.path.open("rb") as bed, open_text(self.bim) as bim:
            bed.seek(len(MAGIC + VARIANT_MAJOR))
            for lines in line_blocks(bim, self.bim, size=size, first=1):
                yield GenotypeBlock(_variants(lines), self._dosages(bed, len(lines.starts)).T)

    def _dosages(self, bed: BinaryIO, variants: int) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
        packed = np.frombuffer(bed.read(variants * self._row_bytes), dtype=np.uint8)
        if packed.size != variants * self._row_bytes:
            raise GenotypeError(f"{self.path}: the file became shorter while it was read; run again")
        dosages = DECODED[packed].view(np.int8).reshape(variants, self._row_bytes * PER_BYTE)
        return np.ascontiguousarray(dosages[:, : len(self.samples)])


def read_fam(path: Path) -> pl.DataFrame:
    """`key` (individual id) and `phenotype` (column 6 as text), one row per sample. GenotypeError for a ragged line."""
    keys, phenotypes = [], []
    with open_text(path) as file:
        for lines in line_blocks(file, path, size=BLOCK_SIZE, first=1):
            cells = _words(lines, FAM_COLUMNS)
            keys.append(cells.list.get(1))
            phenotypes.append(cells.list.get(5))
    return pl.DataFrame({"key": pl.concat(keys), "phenotype": pl.concat(phenotypes)})


def _variants(lines: Lines) -> pl.DataFrame:
    cells = _words(lines, BIM_COLUMNS)
    columns = {"variant_id": 1, "chromosome": 0, "position": 3, "ref": 5, "alt": 4}
    variants = pl.DataFrame({name: cells.list.get(at) for name, at in columns.items()})
    return placed(lines, variants)


def _words(lines: Lines, columns: int) -> pl.Series:
    """Lines as lists of `columns` words, which stand between any blanks. Raises GenotypeError for another number."""
    try:
        text = lines.text[: lines.ends[-1]].tobytes().decode()
    except UnicodeDecodeError:
        raise GenotypeError(f"{lines.place(0)} or one after it: not UTF-8; write the file so") from None
    cells = pl.Series(text.split("\n"), dtype=pl.String).str.extract_all(r"\S+")
    ragged = (cells.list.len() != columns).arg_true()
    if len(ragged):
        raise GenotypeError(f"{lines.place(ragged[0])}: not {columns} columns; the file is damaged, export it again")
    return cells


def _count_lines(path: Path) -> int:
    with open_text(path) as file:
        return sum(len(lines.starts) for lines in line_blocks(file, path, size=1 << 20, first=1))


def _require_bed(path: Path, packed_bytes: int) -> None:
    head = MAGIC + VARIANT_MAJOR
    with path.open("rb") as file:
        begin = file.read(len(head))
    if begin[: len(MAGIC)] != MAGIC:
        raise GenotypeError(f"{path}: not a PLINK 1 .bed, its first two bytes are others; export with --make-bed")
    if begin != head:
        raise GenotypeError(f"{path}: a .bed sorted by sample; export it again with PLINK 1.9 or 2 and --make-bed")
    if path.stat().st_size != len(head) + packed_bytes:
        raise GenotypeError(
            f"{path}: its length is not what the variants of the .bim and the samples of the .fam make; it was cut, "
            "or the three files are not of one export"
        )
