"""VCF: calls and dosages against a plain reading cell by cell, the example of the specification, damaged files."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synth_platform.sources.genotypes import text
from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.text import BGZF_END
from synth_platform.sources.genotypes.vcf import VcfReader

SAMPLES = ["NA00001", "NA00002", "NA00003"]
SECRET = "MRN-556815"

# The records of the example in section 1.1 of the VCF 4.3 specification (samtools/hts-specs).
SPECIFICATION = """
20 14370 rs6054257 G A 29 PASS NS=3;DP=14;AF=0.5;DB;H2 GT:GQ:DP:HQ 0|0:48:1:51,51 1|0:48:8:51,51 1/1:43:5:.,.
20 17330 . T A 3 q10 NS=3;DP=11;AF=0.017 GT:GQ:DP:HQ 0|0:49:3:58,50 0|1:3:5:65,3 0/0:41:3
20 1110696 rs6040355 A G,T 67 PASS NS=2;DP=10;AF=0.333,0.667;AA=T;DB GT:GQ:DP:HQ 1|2:21:6:23,27 2|1:2:0:18,2 2/2:35:4
20 1230237 . T . 47 PASS NS=3;DP=13;AA=T GT:GQ:DP:HQ 0|0:54:7:56,60 0|0:48:4:51,51 0/0:61:2
20 1234567 microsat1 GTC G,GTCT 50 PASS NS=3;DP=9;AA=G GT:GQ:DP 0/1:35:4 0/2:17:2 1/1:40:3
"""


def read(path: Path, field: Any = "GT", size: int = 4096) -> tuple[pl.DataFrame, np.ndarray]:
    blocks = list(VcfReader(path, field).blocks(size))
    return pl.concat(block.variants for block in blocks), np.hstack([block.dosages for block in blocks])


def record(*cells: str, alt: str = "C", form: str = "GT", position: str = "10") -> list[str]:
    return ["1", position, "rs1", "A", alt, ".", "PASS", ".", form, *cells]


def test_example_of_the_specification(write_vcf: Any) -> None:
    """One row per alternative that counts it, names from the site where there is no ID, no row without alternative."""
    path = write_vcf([line.split() for line in SPECIFICATION.strip().splitlines()], SAMPLES)
    variants, dosages = read(path)
    assert VcfReader(path).samples == tuple(SAMPLES)
    assert variants.rows() == [
        ("rs6054257", "20", 14370, "G", "A"),
        ("20:17330:T:A", "20", 17330, "T", "A"),
        ("rs6040355:G", "20", 1110696, "A", "G"),
        ("rs6040355:T", "20", 1110696, "A", "T"),
        ("microsat1:G", "20", 1234567, "GTC", "G"),
        ("microsat1:GTCT", "20", 1234567, "GTC", "GTCT"),
    ]
    assert dosages.dtype == np.int8
    assert dosages.T.tolist() == [[0, 1, 2], [0, 1, 0], [1, 1, 0], [1, 1, 2], [1, 0, 2], [0, 1, 0]]


@pytest.mark.parametrize(
    ("cell", "dosage"),
    [
        ("0/0", 0),
        ("0|1", 1),
        ("1/0", 1),
        ("1|1:9", 2),
        ("./.", -1),
        (".", -1),
        (".|1", -1),
        ("1/.", -1),
        ("0", 0),
        ("1", 1),
        ("1:7", 1),
        ("/1/1", 2),
        ("|0", 0),
    ],
)
def test_call_by_call(write_vcf: Any, cell: str, dosage: int) -> None:
    """Phase is ignored, any missing part makes the call missing, a haploid call counts its one allele."""
    path = write_vcf([record(cell, "0/1:3", cell, form="GT:DP")], SAMPLES)
    assert read(path)[1].T.tolist() == [[dosage, 1, dosage]]


def test_placeholders_and_the_filter_column(write_vcf: Any) -> None:
    records = [
        record("0/2", alt="*,C"),
        record("0/1", alt="<*>"),
        [*record("1/1", alt="<DEL>")[:6], "LowQual", ".", "GT", "1/1"],
    ]
    variants, dosages = read(write_vcf(records, ["a"]))
    assert variants["alt"].to_list() == ["C", "<DEL>"]
    assert dosages.tolist() == [[1, 2]]


def plain_call(cell: str, allele: int) -> int:
    """The call as a person reads it."""
    parts = [part for part in cell.partition(":")[0].replace("|", "/").split("/") if part]
    return -1 if "." in parts else sum(part == str(allele) for part in parts)


@st.composite
def vcf_records(draw: st.DrawFn) -> list[list[str]]:
    samples = draw(st.integers(1, 5))
    records = []
    for at in range(draw(st.integers(1, 8))):
        alternatives = draw(st.sampled_from([1, 1, 1, 2, 3, 9, 11]))
        allele = st.one_of(st.just("."), st.integers(0, alternatives).map(str))
        call = st.one_of(
            st.tuples(allele, st.sampled_from("/|"), allele).map("".join),
            allele,
        )
        rest = st.sampled_from(["", ":5", ":12:0.1,0.9"])
        cells = draw(st.lists(st.tuples(call, rest).map("".join), min_size=samples, max_size=samples))
        alts = ",".join("ACGT"[number % 4] * (number // 4 + 2) for number in range(alternatives))
        records.append(["1", str(at + 1), f"v{at}", "A", alts, ".", "q10", "DP=1;AF=.,.", "GT:DP:GP", *cells])
    return records


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    vcf_records(),
    st.integers(1, 5),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([16, 100, 1 << 20]),
    st.booleans(),
)
def test_calls_are_those_of_a_plain_reading(
    write_vcf: Any, records: list[list[str]], size: int, line_end: str, block_bytes: int, packed: bool
) -> None:
    """Phased, unphased, missing, haploid, up to eleven alternatives, wherever blocks and reads happen to be cut."""
    path = write_vcf(records, [f"s{at}" for at in range(len(records[0]) - 9)], line_end=line_end)
    if packed:
        whole = path.read_bytes()
        path = path.with_name("study.vcf.gz")
        path.write_bytes(gzip.compress(whole[:150]) + gzip.compress(whole[150:]))  # members, as bgzip makes them
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", block_bytes)
        variants, dosages = read(path, size=size)
        blocks = [block.dosages for block in VcfReader(path).blocks(1)]
    expected = [
        [plain_call(cell, number + 1) for cell in cells[9:]]
        for cells in records
        for number in range(len(cells[4].split(",")))
    ]
    assert dosages.T.tolist() == expected
    assert variants["alt"].to_list() == [alt for cells in records for alt in cells[4].split(",")]
    assert len(blocks) == len(records)


def plain_dosage(cell: str, form: str, allele: int) -> float:
    fields = cell.split(":")
    at = form.split(":").index("DS")
    values = (fields[at] if at < len(fields) else ".").split(",")
    value = values[0] if values == ["."] else values[allele - 1]
    return math.nan if value == "." else float(value)


@st.composite
def dosage_records(draw: st.DrawFn) -> list[list[str]]:
    samples = draw(st.integers(1, 4))
    number = st.one_of(st.just("."), st.floats(0, 2).map("{:.3g}".format), st.sampled_from(["0", "2", "1.", "1e-05"]))
    records = []
    for at in range(draw(st.integers(1, 6))):
        alternatives = draw(st.sampled_from([1, 1, 2, 3]))
        dosages = st.lists(number, min_size=alternatives, max_size=alternatives).map(",".join)
        before, after = draw(st.sampled_from([("GT:", ""), ("GT:GQ:", ":GP"), ("", ""), ("", ":GT:GP")]))
        cell = dosages.map(lambda value, b=before, a=after: b.replace("GT", "0|1") + value + a)
        dropped = st.just("./." if before else ".")
        cells = draw(st.lists(st.one_of(cell, cell, dropped), min_size=samples, max_size=samples))
        alts = ",".join("CGT"[:alternatives])
        records.append(["X", str(at + 1), ".", "A", alts, ".", ".", ".", f"{before}DS{after}", *cells])
    return records


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dosage_records(), st.integers(1, 4))
def test_dosages_are_those_of_a_plain_reading(write_vcf: Any, records: list[list[str]], size: int) -> None:
    """DS wherever FORMAT puts it, one per alternative, dropped at the end of a cell or missing."""
    path = write_vcf(records, [f"s{at}" for at in range(len(records[0]) - 9)])
    _, dosages = read(path, "DS", size)
    expected = [
        [plain_dosage(cell, cells[8], number + 1) for cell in cells[9:]]
        for cells in records
        for number in range(len(cells[4].split(",")))
    ]
    assert dosages.dtype == np.float32
    np.testing.assert_array_equal(dosages.T, np.array(expected, dtype=np.float32))


def test_an_empty_field_before_the_dosage(write_vcf: Any) -> None:
    path = write_vcf([record(":0.5", "0|1:1.5", form="GT:DS"), record("0|1:0.25", ":2", form="GT:DS")], ["a", "b"])
    assert read(path, "DS")[1].T.tolist() == [[0.5, 1.5], [0.25, 2.0]]


def failing(path: Path, field: Any = "GT") -> str:
    with pytest.raises(GenotypeError) as caught:
        list(VcfReader(path, field).blocks(2))
    message = str(caught.value)
    assert path.name in message
    assert SECRET not in message
    assert caught.value.__cause__ is None
    return message


GOOD = record("0/0", "0/1")


@pytest.mark.parametrize(
    ("bad", "field", "why"),
    [
        (record("0/0", "0/1", "1/1"), "GT", "columns"),
        (record("0/0"), "GT", "columns"),
        (record("0/0", "0/2"), "GT", "alleles of its site"),
        (record("0/0", "0/12", alt=",".join(["C"] * 11)), "GT", "alleles of its site"),
        (record("0/0", "0/0/1"), "GT", "alleles of its site"),
        (record("0/0", "het"), "GT", "alleles of its site"),
        (record("0/0", ""), "GT", "alleles of its site"),
        (record("0/0", "-1/0"), "GT", "alleles of its site"),
        (record("0/0", "0/1 "), "GT", "alleles of its site"),
        (record("3", "4", form="DP"), "GT", "GT does not come first"),
        (record("3:0/1", "4:0/1", form="DP:GT"), "GT", "GT does not come first"),
        (record("0/0", "0/1", position="1e3"), "GT", "whole number"),
        (record("0/0", "0/1"), "DS", "no DS"),
        (record("0.5", "2.1", form="DS"), "DS", "0 to 2"),
        (record("0.5", "-0.1", form="DS"), "DS", "0 to 2"),
        (record("0.5", "nan", form="DS"), "DS", "0 to 2"),
        (record("0.5", "inf", form="DS"), "DS", "0 to 2"),
        (record("0.5", "", form="DS"), "DS", "0 to 2"),
        (record("0.5", "1,1", form="DS"), "DS", "0 to 2"),
        (record("0.5,1", "1", form="DS", alt="C,G"), "DS", "0 to 2"),
        (record("0.5,1", "1,x", form="DS", alt="C,G"), "DS", "0 to 2"),
    ],
)
def test_the_line_is_named_and_nothing_of_it_told(write_vcf: Any, bad: list[str], field: Any, why: str) -> None:
    """Three lines of header, three good records, then the bad one: line 7, the second of a block of two."""
    good = record("0/0:0.1", "0/1:1", form="GT:DS")
    message = failing(write_vcf([good, good, good, bad], ["a", SECRET]), field)
    assert "line 7" in message
    assert why in message
    assert not re.search(r"0/2|het|2\.1|-0\.1|-1/0", message)


def test_lines_are_counted_over_all_reads(write_vcf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK_BYTES", 50)
    assert "line 24:" in failing(write_vcf([*[record("0/0", "0/1")] * 20, record("0/0", "x")], ["a", SECRET]))


def damaged(path: Path) -> Iterator[tuple[str, bytes, str]]:
    whole = path.read_bytes()
    packed = gzip.compress(whole)
    yield "study.vcf", b"", "empty"
    yield "study.vcf", whole[:-1], "cut"
    yield "study.vcf", whole[:-9], "cut"
    yield "study.vcf", packed, "add .gz"
    yield "study.vcf.gz", whole, "the content is not"
    yield "study.vcf.gz", packed[:-9], "damaged or cut"
    yield "study.vcf.gz", packed[:-8] + b"\0\0\0\0" + packed[-4:], "damaged or cut"
    yield "study.vcf.gz", BGZF_END[:16] + packed[10:], "was cut"
    yield "study.vcf", whole.replace(b"VCFv4.3", b"VCFv3.3"), "fileformat"
    yield "study.vcf", whole.replace(b"#CHROM", b"CHROM"), "column names"
    yield "study.vcf", whole.replace(b"\tFORMAT", b""), "no genotypes"
    yield "study.vcf", whole.replace(b"\tother", b"\t" + SECRET.encode()), "distinct"
    yield "study.vcf", whole.replace(b"\tother", b"\t\xff"), "UTF-8"
    yield "study.vcf", whole.replace(b"rs1", b"\xff\xfe"), "UTF-8"
    yield "study.vcf", whole.replace(b"\t.\tPASS", b"\t.\tPASS\t"), "columns"
    yield "study.vcf", whole.replace(b"rs1", b""), "empty"
    yield "study.vcf", whole[: whole.rindex(b"#CHROM")], "column names"
    yield "study.vcf", whole[: whole.index(b"\n1\t") + 1], "no variants"
    yield "study.vcf", whole.replace(b"\n1\t", b"\n\n1\t", 1), "columns"


def test_damaged_files(write_vcf: Any) -> None:
    path = write_vcf([GOOD] * 20, [SECRET, "other"])
    for name, content, why in damaged(path):
        other = path.with_name(name)
        other.write_bytes(content)
        assert re.search(why, failing(other)), (name, why)


def test_no_samples(write_vcf: Any) -> None:
    assert "no samples" in failing(write_vcf([record()], []))


def test_bgzip_without_its_end(write_vcf: Any) -> None:
    """A bgzip file cut between two members unpacks without an error: what is missing is the empty last member."""
    path = write_vcf([GOOD], [SECRET, "other"])
    member = gzip.compress(path.read_bytes())
    # The extra field of bgzip, SAM specification 4.1: FLG.FEXTRA, XLEN 6, "BC", 2, size.
    member = member[:3] + b"\x04" + member[4:10] + b"\x06\0BC\x02\0" + b"\0\0" + member[10:]
    packed = path.with_name("study.vcf.gz")
    packed.write_bytes(member + BGZF_END)
    assert read(packed)[1].tolist() == [[0], [1]]
    packed.write_bytes(member)
    assert "bgzip" in failing(packed)


def test_size_of_a_block_is_positive(write_vcf: Any) -> None:
    with pytest.raises(ValueError, match="size is 0"):
        next(VcfReader(write_vcf([GOOD], ["a", "b"])).blocks(0))
