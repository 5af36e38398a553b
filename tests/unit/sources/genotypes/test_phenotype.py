"""Phenotypes: registered values, the join by key, group sizes that are registered and never told otherwise."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.phenotype import join_phenotypes, read_fam_phenotypes, read_phenotypes

SECRET = "MRN-556815"
TABLE = f"mrn,asthma,age\n{SECRET},yes,50\nb,no,51\nc,unknown,52\nd,,53\ne,no,54\nf,yes,55\n"
WORDS: dict[str, Any] = {"key_column": "mrn", "column": "asthma", "case": ["yes"], "control": ["no"]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "phenotypes.csv"
    path.write_text(TABLE)
    return path


def test_join_by_key(table: Path) -> None:
    """c and d belong to no group, x has no phenotype, f has no sample and is counted."""
    groups = join_phenotypes(["x", "e", "c", SECRET, "b", "d"], read_phenotypes(table, **WORDS), n_case=1, n_control=2)
    assert groups.kept.tolist() == [1, 3, 4]
    assert groups.case.tolist() == [False, True, False]
    assert groups.without_sample == 1
    assert "1" not in repr(groups)


def test_every_format_reads_the_same(table: Path) -> None:
    frame = read_phenotypes(table, **WORDS).frame
    others = {
        "p.tsv": TABLE.replace(",", "\t").encode(),
        "p.csv.gz": gzip.compress(TABLE.encode()),
        "p.tsv.gz": gzip.compress(TABLE.replace(",", "\t").encode()),
    }
    for name, content in others.items():
        path = table.with_name(name)
        path.write_bytes(content)
        assert read_phenotypes(path, **WORDS).frame.equals(frame)
    pl.read_csv(table).write_parquet(table.with_name("p.parquet"))
    assert read_phenotypes(table.with_name("p.parquet"), **WORDS).frame.equals(frame)


def test_whole_numbers_are_named_as_text(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pl.DataFrame({"id": [7, 8, 9], "sick": [1, 0, None]}).write_parquet(path)
    phenotypes = read_phenotypes(path, key_column="id", column="sick", case=["1"], control=["0"])
    groups = join_phenotypes(["9", "8", "7"], phenotypes, n_case=1, n_control=1)
    assert (groups.kept.tolist(), groups.case.tolist()) == ([1, 2], [False, True])


@pytest.mark.parametrize(("n_case", "n_control"), [(2, 2), (1, 1), (0, 2), (2, 1)])
def test_other_group_sizes(table: Path, n_case: int, n_control: int) -> None:
    """The file has 1 and 2 of them; the message names file and column and says neither number."""
    with pytest.raises(GenotypeError, match=r"phenotypes\.csv, column 'asthma'") as caught:
        join_phenotypes(["e", SECRET, "b"], read_phenotypes(table, **WORDS), n_case=n_case, n_control=n_control)
    assert not any(letter.isdigit() for letter in str(caught.value).replace(str(table), ""))


@pytest.mark.parametrize(
    ("change", "options", "why"),
    [
        ("", {"column": "asthm"}, "no column 'asthm'; correct column"),
        ("", {"key_column": "id"}, "no column 'id'; correct key_column"),
        ("b,no,99\n", {}, "more than one row"),
        (f"{SECRET},no,99\n", {}, "more than one row"),
        (",no,99\n", {}, "has no key"),
        ("b,no,99,7,7\n", {}, "not readable"),
    ],
)
def test_tables_that_are_refused(table: Path, change: str, options: dict[str, Any], why: str) -> None:
    table.write_text(TABLE + change)
    with pytest.raises(GenotypeError, match=why) as caught:
        read_phenotypes(table, **WORDS | options)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("groups", [{"case": []}, {"control": []}, {"case": ["yes", "no"]}])
def test_values_that_are_no_two_groups(table: Path, groups: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one value for each"):
        read_phenotypes(table, **WORDS | groups)


def test_fractions_are_no_groups(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pl.DataFrame({"mrn": ["a"], "asthma": [1.0]}).write_parquet(path)
    with pytest.raises(GenotypeError, match="whole numbers"):
        read_phenotypes(path, **WORDS)


@pytest.mark.parametrize("name", ["p.xlsx", "cut.parquet", "cut.csv.gz"])
def test_files_that_are_no_tables(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(TABLE.encode())[:40])
    with pytest.raises(GenotypeError, match=name):
        read_phenotypes(tmp_path / name, **WORDS)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(GenotypeError, match=r"who\.csv: no such file; correct the path"):
        read_phenotypes(tmp_path / "who.csv", **WORDS)
    with pytest.raises(
        GenotypeError, match=r"study\.fam: no such file; put the \.fam beside its \.bed, or name a table"
    ):
        read_fam_phenotypes(tmp_path / "study.fam")


def test_a_fam(tmp_path: Path) -> None:
    path = tmp_path / "study.fam"
    path.write_text("F a 0 0 1 2\nF\tb\t0 0 2 1\nF c 0 0 0 -9\nF d 0 0 1 0\n")
    groups = join_phenotypes(["a", "b", "c", "d"], read_fam_phenotypes(path), n_case=1, n_control=1)
    assert (groups.kept.tolist(), groups.case.tolist()) == ([0, 1], [True, False])
    path.write_text("F a 0 0 1 1.73\n")
    with pytest.raises(GenotypeError, match=r"study\.fam: column 6") as caught:
        read_fam_phenotypes(path)
    assert "1.73" not in str(caught.value)
