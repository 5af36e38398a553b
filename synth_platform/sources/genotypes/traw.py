"""PLINK's variant-major text, .traw (`plink --recode A-transpose`, `plink2 --export A-transpose`), plain or gzip.

Tab-separated: CHR, SNP, (C)M, POS, COUNTED, ALT, then one dosage per sample, NA for missing. `alt` is the COUNTED
allele and `ref` the one that PLINK's header calls ALT: what matters is which of them the dosage counts. Samples are
named as in the header, by default FID_IID.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synth_platform.sources.genotypes.block import (
    BLOCK_SIZE,
    VARIANT_SCHEMA,
    Field,
    GenotypeBlock,
    GenotypeError,
    require_size,
)
from synth_platform.sources.genotypes.text import (
    Lines,
    Positions,
    UnreadableRowError,
    line_blocks,
    numbers,
    open_text,
    read_line,
    sample_names,
    site_table,
    words,
)

FIXED = (b"CHR", b"SNP", b"(C)M", b"POS", b"COUNTED", b"ALT")
COLUMNS = ("chromosome", "variant_id", "centimorgan", "position", "alt", "ref")
MISSING = "NA"
UNREADABLE = -2
TERMINATORS = b"\t\n\r"


def _table() -> NDArray[np.int8]:
    """First two bytes of a cell (little-endian) -> dosage, -1 for NA, UNREADABLE."""
    table = np.full(1 << 16, UNREADABLE, dtype=np.int8)
    for dosage in range(3):
        for mark in TERMINATORS:
            table[ord(str(dosage)) | mark << 8] = dosage
    table[int.from_bytes(MISSING.encode(), "little")] = -1
    return table


DOSAGE = _table()


class TrawReader:
    """A .traw file; raises GenotypeError for another header or no samples."""

    def __init__(self, path: Path, field: Field = "GT") -> None:
        self.path = path
        self.field = field
        with closing(open_text(path)) as file:
            header = read_line(file, path, 1).split(b"\t")
        if header[: len(FIXED)] != list(FIXED):
            raise GenotypeError(
                f"{path}, line 1: not the header of a .traw, {', '.join(name.decode() for name in FIXED)} and samples; "
                "export it with plink2 --export A-transpose"
            )
        self.samples = sample_names(header[len(FIXED) :], path, 1)

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself."""
        return (self.path,)

    def blocks(self, size: int = BLOCK_SIZE) -> Iterator[GenotypeBlock]:
        """Blocks as of `GenotypeReader`."""
        require_size(size)
        found = False
        with closing(open_text(self.path)) as file:
            read_line(file, self.path, 1)
            for lines in line_blocks(file, self.path, size=size, first=2):
                found = True
                starts, ends = lines.cells(len(FIXED) + len(self.samples))
                read = _counts if self.field == "GT" else _dosages
                dosages = read(lines, starts[:, len(FIXED) :], ends[:, len(FIXED) :])
                yield GenotypeBlock(site_table(lines, starts, ends, COLUMNS).select(VARIANT_SCHEMA.keys()), dosages.T)
        if not found:
            raise GenotypeError(f"{self.path}: the file has no variants; export it again")


def _counts(lines: Lines, starts: Positions, ends: Positions) -> NDArray[np.int8]:
    counts: NDArray[np.int8] = DOSAGE[words(lines.text, "<u2", starts)]
    # NA is all of a cell, not its beginning.
    wrong = (counts == UNREADABLE) | ((counts == -1) & (ends - starts != len(MISSING)))
    if wrong.any():
        raise GenotypeError(
            f"{lines.place(int(wrong.any(axis=1).argmax()))}: a dosage is none of 0, 1, 2 and {MISSING}; correct it, "
            "or read the file as imputed dosages (DS) if it holds fractions"
        )
    return counts


def _dosages(lines: Lines, starts: Positions, ends: Positions) -> NDArray[np.float32]:
    try:
        dosages = numbers(lines.text, starts, ends, MISSING)
    except UnreadableRowError as unreadable:
        raise _bad_dosage(lines, unreadable.row) from None
    outside = ((dosages < 0) | (dosages > 2)).any(axis=1)
    if outside.any():
        raise _bad_dosage(lines, int(outside.argmax()))
    return dosages


def _bad_dosage(lines: Lines, line: int) -> GenotypeError:
    return GenotypeError(f"{lines.place(line)}: a dosage is neither a number of 0 to 2 nor {MISSING}; correct it")
