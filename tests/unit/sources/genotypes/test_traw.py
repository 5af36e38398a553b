"""PLINK's variant-major text: cells against themselves as numbers, the counted allele, damaged files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synth_platform.sources.genotypes import text
from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.traw import TrawReader

SECRET = "MRN-556815"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from(["0", "1", "2", "NA"]), min_size=n, max_size=n), min_size=1)
    ),
    st.integers(1, 4),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([8, 1 << 20]),
)
def test_counts(write_traw: Any, cells: list[list[str]], size: int, line_end: str, block_bytes: int) -> None:
    path = write_traw(cells, [f"F_{at}" for at in range(len(cells[0]))], line_end=line_end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", block_bytes)
        blocks = list(TrawReader(path).blocks(size))
    read = np.hstack([block.dosages for block in blocks])
    assert read.dtype == np.int8
    assert read.T.tolist() == [[-1 if cell == "NA" else int(cell) for cell in row] for row in cells]
    assert TrawReader(path).samples[-1] == f"F_{len(cells[0]) - 1}"
    rows = [row for block in blocks for row in block.variants.rows()]
    assert rows == [(f"rs{at}", "3", at + 5, "T", "G") for at in range(len(cells))]  # the counted allele is alt


def test_fractions(write_traw: Any) -> None:
    path = write_traw([["0", "NA", "1.98"], ["2", "0.125", "1e-3"]], ["a", "b", "c"])
    packed = path.with_name("study.traw.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    (block,) = TrawReader(packed, "DS").blocks()
    assert block.dosages.dtype == np.float32
    expected = np.array([[0, np.nan, 1.98], [2, 0.125, 1e-3]], dtype=np.float32)
    np.testing.assert_array_equal(block.dosages.T, expected)


def failing(path: Path, field: Any) -> str:
    with pytest.raises(GenotypeError) as caught:
        list(TrawReader(path, field).blocks(2))
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("cell", ["3", "-1", "0.5", "NAN", "N", "", "00", "1 ", "na"])
def test_what_is_no_count(write_traw: Any, cell: str) -> None:
    path = write_traw([["0", "1"], ["0", "2"], ["NA", "1"], ["1", cell]], ["a", SECRET])
    assert "line 5" in failing(path, "GT")


@pytest.mark.parametrize("cell", ["3", "-1", "2.01", "NAN", "nan", "inf", "x", "", "1e999"])
def test_what_is_no_dosage(write_traw: Any, cell: str) -> None:
    path = write_traw([["0", "1"], ["0", "2"], ["NA", "1"], ["1", cell]], ["a", SECRET])
    assert "line 5" in failing(path, "DS")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda whole: whole[:-1], "cut"),
        (lambda whole: b"", "empty"),
        (lambda whole: whole.replace(b"COUNTED", b"A1"), "line 1: not the header"),
        (lambda whole: whole.replace(b"\tother", b"\t" + SECRET.encode()), "distinct"),
        (lambda whole: whole.replace(b"\t1\n", b"\n", 1), "line 2: not the 8"),
        (lambda whole: whole.replace(b"\t6\t", b"\t?\t", 1), "line 3: the position"),
        (lambda whole: whole[: whole.index(b"\n") + 1], "no variants"),
        (lambda whole: b"CHR\tSNP\t(C)M\tPOS\tCOUNTED\tALT\n3\trs\t0\t5\tG\tT\n", "no samples"),
    ],
)
def test_damaged_files(write_traw: Any, change: Any, why: str) -> None:
    path = write_traw([["0", "1"], ["0", "2"]], [SECRET, "other"])
    path.write_bytes(change(path.read_bytes()))
    assert why in failing(path, "GT")
