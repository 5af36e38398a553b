"""Variant-major Parquet: whole numbers, floats, missing, and columns that are not as they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.study import list_variants
from synth_platform.sources.genotypes.table import ParquetReader

SECRET = "MRN-556815"


def frame(dosages: list[list[Any]], dtype: Any = pl.Int8, samples: tuple[str, ...] = (SECRET, "b")) -> pl.DataFrame:
    rows = len(dosages)
    variants = {"variant_id": [f"rs{at}" for at in range(rows)], "chromosome": ["1"] * rows}
    variants |= {"position": list(range(rows)), "ref": ["A"] * rows, "alt": ["C"] * rows}
    columns = {name: pl.Series([row[at] for row in dosages], dtype=dtype) for at, name in enumerate(samples)}
    return pl.DataFrame({**variants, **columns})


def write(tmp_path: Path, table: pl.DataFrame) -> Path:
    table.write_parquet(tmp_path / "study.parquet")
    return tmp_path / "study.parquet"


def read(path: Path, field: Any = "GT", size: int = 2) -> np.ndarray:
    blocks = list(ParquetReader(path, field).blocks(size))
    assert max(block.variants.height for block in blocks) <= size
    return np.hstack([block.dosages for block in blocks])


def test_counts(tmp_path: Path) -> None:
    dosages = [[0, 1], [2, None], [-1, 0], [1, 1], [2, 2]]
    path = write(tmp_path, frame(dosages).select("b", pl.exclude("b")))  # where the columns stand does not matter
    assert ParquetReader(path).samples == ("b", SECRET)
    values = read(path)
    assert values.dtype == np.int8
    assert values.tolist() == [[1, -1, 0, 1, 2], [0, 2, -1, 1, 2]]
    np.testing.assert_array_equal(read(path, "DS")[0], np.array([1, np.nan, 0, 1, 2], dtype=np.float32))


def test_dosages(tmp_path: Path) -> None:
    path = write(tmp_path, frame([[0.25, None], [2.0, float("nan")], [0.0, 1.5]], pl.Float64))
    values = read(path, "DS")
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values.T, np.array([[0.25, np.nan], [2, np.nan], [0, 1.5]], dtype=np.float32))


@pytest.mark.parametrize(
    ("table", "field", "why"),
    [
        (frame([[0, 1], [0, 1], [0, 3]]), "GT", "row 3"),
        (frame([[0, 1], [0, 1], [0, -2]]), "GT", "row 3"),
        (frame([[0, 1], [0, 1], [0, 2.5]], pl.Float32), "DS", "row 3"),
        (frame([[0, 1], [0, 1], [0, -1]], pl.Float32), "DS", "row 3"),
        (frame([[0, 1], [0, 1], [0, float("inf")]], pl.Float32), "DS", "row 3"),
        (frame([[0.5, 1]], pl.Float32), "GT", "not all whole numbers"),
        (frame([["x", "y"]], pl.String), "DS", "not all whole numbers"),
        (frame([[0, 1]]).drop("alt"), "GT", "no column alt"),
        (frame([[0, 1]], samples=()), "GT", "no samples"),
        (frame([]), "GT", "no variants"),
        (frame([[0, 1]] * 3).with_columns(ref=pl.Series(["A", "A", None])), "GT", "row 3: a variant column is empty"),
        (frame([[0, 1]]).with_columns(position=pl.lit("x")), "GT", "another type"),
        (frame([[0, 1]] * 3).with_columns(ref=pl.Series(["A", "A", "A\tC"])), "GT", "row 3: .*take it out"),
        (frame([[0, 1]]).with_columns(variant_id=pl.lit("rs\n")), "GT", "row 1: .*a tab, a line end"),
        (frame([[0, 1]]).with_columns(chromosome=pl.lit("1\r")), "GT", "row 1: .*control character"),
        (frame([[0, 1]]).with_columns(alt=pl.lit("C\x85")), "GT", "row 1: .*control character"),
        (frame([[0, 1]] * 3).with_columns(variant_id=pl.Series(["x", "x" * 1000, "ä" * 1001])), "GT", "row 3: the id"),
    ],
)
def test_tables_that_are_not_dosages(tmp_path: Path, table: pl.DataFrame, field: Any, why: str) -> None:
    with pytest.raises(GenotypeError, match=why) as caught:
        read(write(tmp_path, table), field)
    assert SECRET not in str(caught.value)


def test_two_lists_are_not_written_as_the_same_lines(tmp_path: Path) -> None:
    """Claim: cells with tabs, which would make two lists of variants one, are refused where a list is named too."""
    for ref, alt in (("A\tC", "G"), ("A", "C\tG")):
        path = write(tmp_path, frame([[0, 1]]).with_columns(ref=pl.lit(ref), alt=pl.lit(alt)))
        with pytest.raises(GenotypeError, match=r"study\.parquet, row 1"):
            list_variants(ParquetReader(path))


def test_damaged_files(tmp_path: Path) -> None:
    path = write(tmp_path, frame([[at % 3, 1] for at in range(1000)]))
    whole = path.read_bytes()
    for broken in (whole[:-5], b"PAR1", whole[:40] + b"\xff" * 20 + whole[60:]):
        path.write_bytes(broken)
        with pytest.raises(GenotypeError, match=r"not readable as Parquet|damaged"):
            read(path)
