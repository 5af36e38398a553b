"""Microdata files: types that write back what was read, and errors without cells."""

import gzip

import polars as pl
import pytest

from synth_platform.margins.reading.microdata import read_microdata
from synth_platform.sources.tables import SourceError

TEXT = """age,code,weight,own,name,big,none,mixed
3,007,1.5,true,x,12345678901234567890,,1
,010,2,false,"y, z",1,NA,1e3
-4,,NA,true,,2,,01
"""
EXPECTED = pl.DataFrame(
    {
        "age": [3, None, -4],
        "code": ["007", "010", None],
        "weight": [1.5, 2.0, None],
        "own": [True, False, True],
        "name": ["x", "y, z", None],
        "big": ["12345678901234567890", "1", "2"],
        "none": pl.Series([None, None, None], dtype=pl.String),
        "mixed": ["1", "1e3", "01"],
    }
)


def test_csv_has_the_types_of_what_is_written(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    for name in ("t.csv", "t.csv.gz"):
        table = read_microdata(tmp_path / name)
        assert table.schema == EXPECTED.schema
        assert table.equals(EXPECTED)


def test_digits_of_other_scripts_are_text(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1٣.5,٣\n", encoding="utf-8")
    assert read_microdata(tmp_path / "t.csv").schema == {"a": pl.String, "b": pl.String}


def test_parquet_is_read_as_it_is(tmp_path):
    EXPECTED.write_parquet(tmp_path / "t.parquet")
    assert read_microdata(tmp_path / "t.parquet").equals(EXPECTED)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", b"", r"t\.xlsx is none of \.parquet, \.csv"),
        ("absent.csv", None, r"absent\.csv does not exist"),
        ("t.csv", b"", r"t\.csv is not readable as CSV"),
        ("t.csv", b"a,b\n1,2,secret\n", r"t\.csv is not readable as CSV"),
        ("t.csv.gz", gzip.compress(b"a\n1\n" * 1000, mtime=0)[:-20], r"t\.csv\.gz is not readable as CSV"),
        ("t.parquet", b"a\nsecret\n", r"t\.parquet is not readable as Parquet"),
        ("t.csv", b"a,b,a\n1,2,3\n", r"t\.csv has the column 'a' twice"),
    ],
)
def test_what_cannot_be_read_is_named_without_cells(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=message) as caught:
        read_microdata(tmp_path / name)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__cause__ is None
