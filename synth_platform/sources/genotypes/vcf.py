"""VCF 4.x text, plain or bgzip: called genotypes (GT) or imputed dosages (DS), streamed.

- `alt` is the alternative allele, the dosage counts it. A site with several becomes one row per alternative, each
  counting that allele alone; its name is then ID:ALT. Alternatives that stand for no allele of this site (`*`, `<*>`,
  `<NON_REF>`) give no row, nor does a site without an alternative. A site without an ID is CHROM:POS:REF:ALT.
- FILTER is not looked at. Which variants are tested has to be public beforehand, and a filter that was computed from
  these samples is not: filter the file by a public list of sites instead.
- Every record has to have the field asked for; a record without it is an error, not a row of missing values.

A parser of our own, because htslib prints sample names and reads alleles that a site does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.sources.genotypes.block import (
    BLOCK_SIZE,
    Field,
    GenotypeBlock,
    GenotypeError,
    require_size,
)
from synth_platform.sources.genotypes.calls import CELL_BY_CELL, UNREADABLE, allele_count, allele_counts
from synth_platform.sources.genotypes.imputed import imputed_dosages
from synth_platform.sources.genotypes.text import (
    Lines,
    Positions,
    joined,
    line_blocks,
    open_text,
    read_line,
    sample_names,
    site_table,
    words,
)

FIXED = (b"#CHROM", b"POS", b"ID", b"REF", b"ALT", b"QUAL", b"FILTER", b"INFO", b"FORMAT")
FORMAT = FIXED.index(b"FORMAT")
COLUMNS = ("chromosome", "position", "variant_id", "ref", "alternatives")
NO_ALLELE = (".", "*", "<*>", "<NON_REF>")


class VcfReader:
    """A VCF file; raises GenotypeError if it has no header, no genotypes or no samples."""

    def __init__(self, path: Path, field: Field = "GT") -> None:
        self.path = path
        self.field = field
        with closing(open_text(path)) as file:
            self._header_lines, header = _read_header(file, path)
        if header[: len(FIXED)] != list(FIXED):
            raise GenotypeError(f"{path}, line {self._header_lines}: the file has no genotypes; export it with samples")
        self.samples = sample_names(header[len(FIXED) :], path, self._header_lines)

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself."""
        return (self.path,)

    def blocks(self, size: int = BLOCK_SIZE) -> Iterator[GenotypeBlock]:
        """Blocks as of `GenotypeReader`; a site with several alternatives adds several rows to its block."""
        require_size(size)
        found = False
        with closing(open_text(self.path)) as file:
            header_lines, _ = _read_header(file, self.path)
            for lines in line_blocks(file, self.path, size=size, first=header_lines + 1):
                block = self._block(lines)
                if block.variants.height:
                    found = True
                    yield block
        if not found:
            raise GenotypeError(f"{self.path}: the file has no variants; export it again")

    def _block(self, lines: Lines) -> GenotypeBlock:
        starts, ends = lines.cells(len(FIXED) + len(self.samples))
        record, allele, alleles, variants = _variants(lines, starts[:, :FORMAT], ends[:, :FORMAT])
        cells = starts[:, len(FIXED) :], ends[:, len(FIXED) :]
        places = _places(lines, starts[:, FORMAT], ends[:, FORMAT], self.field)
        if self.field == "GT":
            return GenotypeBlock(variants, _calls(lines, *cells, record, allele, alleles).T)
        return GenotypeBlock(variants, imputed_dosages(lines, *cells, places, record, allele, alleles).T)


def _read_header(file: BinaryIO, path: Path) -> tuple[int, list[bytes]]:
    """Number of header lines, and the cells of the last one."""
    line = read_line(file, path, 1)
    if not line.startswith(b"##fileformat=VCFv4"):
        raise GenotypeError(f"{path}, line 1: not ##fileformat=VCFv4; write the file as VCF 4 text")
    count = 1
    while line.startswith(b"##"):
        count += 1
        line = read_line(file, path, count)
    if not line.startswith(b"#CHROM\t"):
        raise GenotypeError(
            f"{path}, line {count}: the line of column names, #CHROM and on, is missing; export it again"
        )
    return count, line.split(b"\t")


def _places(lines: Lines, starts: Positions, ends: Positions, field: Field) -> Positions:
    """Position of `field` among the colon-separated fields of every record, from the records' FORMAT cells."""
    formats = pl.Series(joined(lines.text, starts, ends).split(b"\n")[:-1], dtype=pl.Binary)
    places = {}
    for text in formats.unique():
        names = text.split(b":")
        if field.encode() in names and (field == "DS" or names[0] == b"GT"):
            places[text] = names.index(field.encode())
    lacking = (~formats.is_in(list(places))).arg_true()
    if len(lacking):
        other = {"GT": "GT does not come first in FORMAT", "DS": "FORMAT has no DS"}[field]
        raise GenotypeError(f"{lines.place(lacking[0])}: {other}; export the file with {field} for every variant")
    return formats.replace_strict(places, return_dtype=pl.Int64).to_numpy()


def _variants(lines: Lines, starts: Positions, ends: Positions) -> tuple[Positions, Positions, Positions, pl.DataFrame]:
    """Per alternative: its line in the block, its number, the number of alleles of the site; and the variants."""
    sites = site_table(lines, starts, ends, COLUMNS).with_row_index("record")
    sites = sites.with_columns(alt=pl.col("alternatives").str.split(","))
    rows = (
        sites.with_columns(
            alleles=pl.when(pl.col("alternatives") == ".").then(1).otherwise(pl.col("alt").list.len() + 1),
            allele=pl.int_ranges(1, pl.col("alt").list.len() + 1),
        )
        .explode("alt", "allele")
        .filter(~pl.col("alt").is_in(NO_ALLELE))
    )
    place = pl.concat_str("chromosome", "position", "ref", "alt", separator=":")
    several = pl.concat_str("variant_id", "alt", separator=":")
    lacking, shared = pl.col("variant_id") == ".", pl.col("alleles") > 2
    name = pl.when(lacking).then(place).when(shared).then(several).otherwise("variant_id")
    variants = rows.select(variant_id=name, chromosome="chromosome", position="position", ref="ref", alt="alt")
    record, allele, alleles = (rows[name].cast(pl.Int64).to_numpy() for name in ("record", "allele", "alleles"))
    return record, allele, alleles, variants


def _calls(
    lines: Lines, starts: Positions, ends: Positions, record: Positions, allele: Positions, alleles: Positions
) -> NDArray[np.int8]:
    """Counts of each alternative, [rows, n]."""
    cells = words(lines.text, "<u4", starts)
    counts = np.empty((len(record), starts.shape[1]), dtype=np.int8)
    for number, total in np.unique(np.column_stack([allele, alleles]), axis=0).tolist():
        rows = np.flatnonzero((allele == number) & (alleles == total))
        counts[rows] = allele_counts(cells[record[rows]], number, total)
    for row, sample in np.argwhere(counts == CELL_BY_CELL).tolist():
        line = int(record[row])
        cell = lines.text[starts[line, sample] : ends[line, sample]].tobytes()
        counts[row, sample] = allele_count(cell, int(allele[row]), int(alleles[row]))
        if counts[row, sample] == UNREADABLE:
            raise GenotypeError(
                f"{lines.place(line)}: a genotype is not one or two alleles of its site, like 0/1 or 1|1; correct it"
            )
    return counts
