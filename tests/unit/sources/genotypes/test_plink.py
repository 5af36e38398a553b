"""PLINK 1 binary files: the published example, every byte, files that do not belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synth_platform.sources.genotypes import plink
from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.plink import PlinkReader

SECRET = "MRN-556815"


def test_the_published_example(tmp_path: Path) -> None:
    """The six people and three SNPs of PLINK's page on the format, with the bytes that it prints."""
    (tmp_path / "test.bed").write_bytes(bytes.fromhex("6c1b01 dc0f e70f 6b01"))
    (tmp_path / "test.bim").write_text("1 snp1 0 1 G A\n1 snp2 0 2 1 2\n1 snp3 0 3 A C\n")
    (tmp_path / "test.fam").write_text("1 a 0 0 1 0\n1 b 0 0 1 0\n1 c 1 2 1 2\n2 d 0 0 1 0\n2 e 0 0 1 2\n2 f 1 2 1 2\n")
    reader = PlinkReader(tmp_path / "test.bed")
    (block,) = reader.blocks()
    people = ("GG 22 CC", "AA 00 AC", "00 12 AC", "AA 22 00", "AA 22 00", "AA 22 AA")  # the .ped of that page
    genotypes = zip(*(person.split() for person in people), strict=True)
    counted = zip(genotypes, ("G", "1", "A"), strict=True)
    expected = [[-1 if pair == "00" else pair.count(allele) for pair in snp] for snp, allele in counted]
    assert block.dosages.T.tolist() == expected
    assert reader.samples == ("a", "b", "c", "d", "e", "f")
    assert block.variants.rows() == [
        ("snp1", "1", 1, "A", "G"),
        ("snp2", "1", 2, "2", "1"),
        ("snp3", "1", 3, "C", "A"),
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.integers(1, 9), st.integers(1, 7), st.integers(1, 8), st.sampled_from([1, 3, 1 << 20]))
def test_round_trip(
    write_bed: Any, data: st.DataObject, samples: int, variants: int, size: int, block_bytes: int
) -> None:
    row = st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=samples, max_size=samples)
    dosages = data.draw(st.lists(row, min_size=variants, max_size=variants))
    path = write_bed(dosages, [f"s{at}" for at in range(samples)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plink, "BLOCK_BYTES", block_bytes)
        blocks = list(PlinkReader(path).blocks(size))
    read = np.hstack([block.dosages for block in blocks])
    assert read.dtype == np.int8
    assert read.T.tolist() == dosages
    assert [name for block in blocks for name in block.variants["variant_id"]] == [f"rs{at}" for at in range(variants)]
    assert max(block.variants.height for block in blocks) <= size


def failing(path: Path) -> str:
    with pytest.raises(GenotypeError) as caught:
        list(PlinkReader(path).blocks())
    assert SECRET not in str(caught.value)
    return str(caught.value)


DOSAGES = [[0, 1, 2, -1, 0], [2, 2, 1, 0, 0]]


@pytest.mark.parametrize(
    ("suffix", "change", "why"),
    [
        (".bed", lambda whole: whole[:-1], "its length"),
        (".bed", lambda whole: whole + b"\0", "its length"),
        (".bed", lambda whole: b"\x6c\x1c" + whole[2:], "two bytes are others"),
        (".bed", lambda whole: b"", "two bytes are others"),
        (".bed", lambda whole: b"\x6c\x1b\0" + whole[3:], "sorted by sample"),
        (".bim", lambda whole: whole[: whole.index(b"\n") + 1], "its length"),
        (".bim", lambda whole: whole.replace(b"\tC\tA", b"\tC", 1), "line 1: not 6 columns"),
        (".bim", lambda whole: whole.replace(b"rs1", b""), "line 2: not 6 columns"),
        (".bim", lambda whole: whole.replace(b"\t11\t", b"\tx\t"), "line 2: the position"),
        (".bim", lambda whole: whole[:-1], "cut"),
        (".bim", lambda whole: b"", "empty"),
        (".fam", lambda whole: b"", "empty"),
        (".fam", lambda whole: whole.replace(b"-9", b"", 1), "line 1: not 6 columns"),
        (".fam", lambda whole: whole.replace(b"other", SECRET.encode()), "distinct"),
        (".fam", lambda whole: whole + b"F s 0 0 1 1\n" * 4, "its length"),
    ],
)
def test_files_that_do_not_belong_together(write_bed: Any, suffix: str, change: Any, why: str) -> None:
    path = write_bed(DOSAGES, [SECRET, "other", "c", "d", "e"])
    broken = path.with_suffix(suffix)
    broken.write_bytes(change(broken.read_bytes()))
    message = failing(path)
    assert why in message or (why == "its length" and "distinct" in message)


@pytest.mark.parametrize("suffix", [".bim", ".fam"])
def test_a_bed_alone(write_bed: Any, suffix: str) -> None:
    path = write_bed(DOSAGES, [SECRET, "other", "c", "d", "e"])
    path.with_suffix(suffix).unlink()
    assert f"study{suffix} is not beside it" in failing(path)
