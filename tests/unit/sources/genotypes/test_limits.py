"""What no genotype file has: lines without an end, ids that are no names. Memory is bounded whatever a file holds."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from synth_platform.sources.genotypes import block, text
from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.open import open_genotypes

VCF = (
    "##fileformat=VCFv4.3\n"
    "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\n"
    "1\t7\tID1\tA\tC\t.\t.\t.\tGT\t0/1\t1/1\n"
    "1\t8\tID2\tA\tC\t.\t.\t.\tGT\t0/1\t1/1\n"
)
TRAW = "CHR\tSNP\t(C)M\tPOS\tCOUNTED\tALT\ta\tb\n1\tID1\t0\t7\tA\tC\t0\t1\n1\tID2\t0\t8\tA\tC\t0\t1\n"
BIM = "1 ID1 0 7 A C\n1 ID2 0 8 A C\n"
CONTENT = {"g.vcf": VCF, "g.vcf.gz": VCF, "g.traw": TRAW, "g.bim": BIM}
LINE = 80

Stored = Callable[[str, str], Path]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    def store(name: str, content: str) -> Path:
        """The file that is opened to read `content` from `name`."""
        packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
        (tmp_path / name).write_bytes(packed)
        if name != "g.bim":
            return tmp_path / name
        (tmp_path / "g.bed").write_bytes(b"\x6c\x1b\x01\x00\x00")
        (tmp_path / "g.fam").write_text("F a 0 0 1 1\nF b 0 0 1 2\n")
        return tmp_path / "g.bed"

    return store


def read(path: Path) -> int:
    return sum(block.variants.height for block in open_genotypes(path).blocks())


def padded(name: str, number: int, length: int) -> str:
    """The content with line `number` made `length` long, its end included, by a longer id or comment."""
    lines = CONTENT[name].splitlines(keepends=True)
    line = lines[number - 1]
    mark = next(mark for mark in ("fileformat=VCFv4.3", "\tb\n", "ID1", "ID2") if mark in line)
    kept = mark.removesuffix("\n")
    lines[number - 1] = line.replace(kept, kept + "x" * (length - len(line)))
    return "".join(lines)


@pytest.mark.parametrize("block_bytes", [7, 64, 1 << 20])
@pytest.mark.parametrize(
    ("name", "number"),
    [("g.vcf", 1), ("g.vcf", 2), ("g.vcf", 3), ("g.vcf.gz", 3), ("g.traw", 1), ("g.traw", 2), ("g.bim", 1)],
)
def test_a_line_has_a_largest_length(
    name: str, number: int, block_bytes: int, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim: a line that long is read, one character more is refused; by what is unpacked, wherever reads end."""
    monkeypatch.setattr(text, "LARGEST_LINE", LINE)
    monkeypatch.setattr(text, "BLOCK_BYTES", block_bytes)
    assert read(stored(name, padded(name, number, LINE))) == 2
    path = stored(name, padded(name, number, LINE + 1))
    with pytest.raises(GenotypeError, match=rf"{name}, line {number}: the line is longer than .*export the file again"):
        read(path)


def test_later_lines_are_counted(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LARGEST_LINE", LINE)
    monkeypatch.setattr(text, "BLOCK_BYTES", 16)
    with pytest.raises(GenotypeError, match=r"g\.vcf, line 4: the line is longer"):
        read(stored("g.vcf", padded("g.vcf", 4, LINE + 1)))


def test_a_file_without_a_line_end_is_not_read_to_its_end(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: what is held of a line grows to its largest length, not to that of the file."""
    held = []

    def read_part(take: Callable[[int], bytes], path: Path, size: int) -> bytes:
        part = original(take, path, size)
        held.append(len(part))
        return part

    original = text._read
    monkeypatch.setattr(text, "_read", read_part)
    monkeypatch.setattr(text, "LARGEST_LINE", 100)
    monkeypatch.setattr(text, "BLOCK_BYTES", 10)
    for name in CONTENT:
        held.clear()
        with pytest.raises(GenotypeError, match="line 1: the line is longer"):
            read(stored(name, "##fileformat=VCFv4.3" + "x" * 100_000))
        assert sum(held) <= 200, name  # the .fam of a .bed included


@pytest.mark.parametrize("name", CONTENT)
def test_an_id_has_a_largest_length(name: str, stored: Stored) -> None:
    """Claim: a thousand characters are an id, one more is none; the message has no letter of it."""
    known = "ß" * block.LARGEST_ID
    assert read(stored(name, CONTENT[name].replace("ID2", known))) == 2
    path = stored(name, CONTENT[name].replace("ID2", known + "ß"))
    line = CONTENT[name][: CONTENT[name].index("ID2")].count("\n") + 1
    with pytest.raises(GenotypeError, match=rf"line {line}: the id of the variant is longer than 1000") as refusal:
        read(path)
    assert "ß" not in str(refusal.value)
