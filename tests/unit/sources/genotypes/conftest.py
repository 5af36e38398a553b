"""Small genotype files written by hand, cell by cell, by code that shares nothing with the readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

VCF_COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]

Write = Callable[..., Path]


@pytest.fixture
def write_vcf(tmp_path: Path) -> Write:
    def write(
        records: Sequence[Sequence[str]],
        samples: Sequence[str],
        *,
        line_end: str = "\n",
        name: str = "study.vcf",
    ) -> Path:
        """records: the cells of every line."""
        lines = ["##fileformat=VCFv4.3", '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">']
        lines += ["\t".join(cells) for cells in ([*VCF_COLUMNS, *samples], *records)]
        path = tmp_path / name
        path.write_bytes("".join(line + line_end for line in lines).encode())
        return path

    return write


@pytest.fixture
def write_bed(tmp_path: Path) -> Write:
    def write(dosages: Sequence[Sequence[int]], samples: Sequence[str], phenotypes: Sequence[str] = ()) -> Path:
        """dosages: per variant, copies of A1 in every sample, -1 for missing."""
        code = {2: 0b00, -1: 0b01, 1: 0b10, 0: 0b11}
        packed = bytearray(b"\x6c\x1b\x01")
        for row in dosages:
            for four in range(0, len(row), 4):
                packed.append(sum(code[dosage] << 2 * at for at, dosage in enumerate(row[four : four + 4])))
        phenotypes = phenotypes or ["-9"] * len(samples)
        (tmp_path / "study.bed").write_bytes(bytes(packed))
        (tmp_path / "study.bim").write_text("".join(f"7\trs{at}\t0\t{at + 10}\tC\tA\n" for at in range(len(dosages))))
        (tmp_path / "study.fam").write_text(
            "".join(f"F{name} {name} 0 0 1 {value}\n" for name, value in zip(samples, phenotypes, strict=True))
        )
        return tmp_path / "study.bed"

    return write


@pytest.fixture
def write_traw(tmp_path: Path) -> Write:
    def write(cells: Sequence[Sequence[str]], samples: Sequence[str], *, line_end: str = "\n") -> Path:
        """cells: per variant, the dosage of every sample as text."""
        lines = ["\t".join(["CHR", "SNP", "(C)M", "POS", "COUNTED", "ALT", *samples])]
        lines += ["\t".join(["3", f"rs{at}", "0", str(at + 5), "G", "T", *row]) for at, row in enumerate(cells)]
        path = tmp_path / "study.traw"
        path.write_bytes("".join(line + line_end for line in lines).encode())
        return path

    return write
