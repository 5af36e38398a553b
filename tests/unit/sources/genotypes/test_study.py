"""One door to all formats, the study over it: who is kept, what names it, how little memory it needs."""

from __future__ import annotations

import hashlib
import tracemalloc
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from synth_platform.sources.genotypes import plink, table, text
from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.open import open_genotypes
from synth_platform.sources.genotypes.phenotype import read_fam_phenotypes, read_phenotypes
from synth_platform.sources.genotypes.study import GenotypeStudy, content_digest, list_variants, make_study

DOSAGES = [[0, 1, 2, -1, 0], [2, 2, 1, 0, 0], [1, 0, 0, 0, 2]]
SAMPLES = ["a", "b", "c", "d", "e"]
CALLS = {0: "0/0", 1: "0|1", 2: "1/1", -1: "./."}


@pytest.fixture
def paths(write_vcf: Any, write_bed: Any, write_traw: Any) -> dict[str, Path]:
    """The same genotypes in every format."""
    calls = [
        ["7", str(at + 10), f"rs{at}", "A", "C", ".", ".", ".", "GT", *(CALLS[dosage] for dosage in row)]
        for at, row in enumerate(DOSAGES)
    ]
    bed = write_bed(DOSAGES, SAMPLES, ["2", "1", "-9", "1", "2"])
    (block,) = open_genotypes(bed).blocks()
    parquet = bed.with_suffix(".parquet")
    block.variants.hstack(pl.DataFrame(block.dosages.T, schema=SAMPLES)).write_parquet(parquet)
    return {
        "bed": bed,
        "vcf": write_vcf(calls, SAMPLES),
        "traw": write_traw([["NA" if dosage < 0 else str(dosage) for dosage in row] for row in DOSAGES], SAMPLES),
        "parquet": parquet,
    }


def study(paths: dict[str, Path], kind: str = "bed") -> GenotypeStudy:
    return make_study(paths[kind], read_fam_phenotypes(paths["bed"].with_suffix(".fam")), n_case=2, n_control=2)


@pytest.mark.parametrize("kind", ["bed", "vcf", "traw", "parquet"])
def test_blocks_hold_the_kept_samples(paths: dict[str, Path], kind: str) -> None:
    made = study(paths, kind)
    blocks = list(made.blocks(2))
    assert made.case.tolist() == [True, False, False, True]
    assert np.hstack([dosages for _, dosages in blocks]).T.tolist() == [
        [row[i] for i in (0, 1, 3, 4)] for row in DOSAGES
    ]
    assert [dosages.shape for _, dosages in blocks] == [(4, 2), (4, 1)]
    assert all(dosages.flags.f_contiguous for _, dosages in blocks)
    assert pl.concat(variants for variants, _ in blocks)["variant_id"].to_list() == ["rs0", "rs1", "rs2"]


def test_one_list_of_variants_whatever_the_format(paths: dict[str, Path]) -> None:
    """SHA-256 of three lines written by hand; .traw differs, because its writer above gives other sites."""
    lines = "".join(f"rs{at}\t7\t{at + 10}\tA\tC\n" for at in range(3))
    digest = hashlib.sha256(lines.encode()).hexdigest()
    assert {list_variants(open_genotypes(paths[kind]))[1] for kind in ("bed", "vcf", "parquet")} == {digest}
    assert list_variants(open_genotypes(paths["traw"]))[1] != digest


def test_the_digest_names_all_that_matters(paths: dict[str, Path]) -> None:
    made = study(paths)
    digest = content_digest(made)
    assert content_digest(study(paths)) == digest
    case, kept = made.case.copy(), made.kept.copy()
    case[0], kept[2] = False, 2
    changed = {content_digest(replace(made, case=case)), content_digest(replace(made, kept=kept))}
    for beside in open_genotypes(made.path).files:
        whole = beside.read_bytes()
        other = whole.replace(b"rs1", b"rs9").replace(b"Fa a", b"Fx a")
        beside.write_bytes(other if other != whole else whole[:-1] + b"\xff")
        changed.add(content_digest(made))
        beside.write_bytes(whole)
    parquet = study(paths, "parquet")
    changed |= {content_digest(parquet), content_digest(replace(parquet, field="DS"))}
    assert len(changed - {digest}) == 7
    assert content_digest(made) == digest


def test_a_study_says_nothing_and_does_not_change(paths: dict[str, Path]) -> None:
    made = study(paths)
    assert "case" not in repr(made)
    assert "kept" not in repr(made)
    with pytest.raises(FrozenInstanceError):
        made.field = "DS"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("missing.vcf", None, "no such file"),
        ("empty.bed", b"", "the file is empty"),
        ("study.raw", b"FID IID", r"export it with plink2 --export A-transpose"),
        ("study.pgen", b"x", "--make-bed"),
        ("study.bgen", b"x", "plink2"),
        ("study.bcf", b"x", "bcftools view"),
        ("study.ped", b"x", "--make-bed"),
        ("study.csv", b"x", "give one of .vcf"),
        ("study.bed.gz", b"x", "give one of .vcf"),
        ("study.vcf.gz", b"x", "the content is not"),
        ("study.parquet", b"x", "not readable as Parquet"),
    ],
)
def test_files_that_are_not_opened(tmp_path: Path, name: str, content: bytes | None, why: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(GenotypeError, match=why):
        open_genotypes(tmp_path / name)


def test_a_bed_has_no_fractions(paths: dict[str, Path]) -> None:
    with pytest.raises(GenotypeError, match="called genotypes only"):
        open_genotypes(paths["bed"], "DS")


def test_group_sizes_are_those_registered(paths: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,x\na,1\nb,2\n")
    phenotypes = read_phenotypes(tmp_path / "p.csv", key_column="id", column="x", case=["1"], control=["2"])
    assert make_study(paths["vcf"], phenotypes, n_case=1, n_control=1).kept.tolist() == [0, 1]
    with pytest.raises(GenotypeError, match="registered"):
        make_study(paths["vcf"], phenotypes, n_case=1, n_control=2)


def peak_bytes(path: Path) -> int:
    tracemalloc.start()
    for block in open_genotypes(path).blocks():
        del block
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("kind", ["bed", "vcf", "traw"])
def test_memory_is_that_of_a_block(
    write_vcf: Any, write_bed: Any, write_traw: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Four times the variants, not even half more memory at the peak."""
    for module in (plink, text, table):
        monkeypatch.setattr(module, "BLOCK_BYTES", 1 << 14)
    samples = [f"s{at}" for at in range(100)]
    row = [at % 3 for at in range(100)]

    def written(variants: int) -> Path:
        match kind:
            case "bed":
                return write_bed([row] * variants, samples)
            case "vcf":
                calls = [CALLS[dosage] for dosage in row]
                return write_vcf([["1", "5", "rs", "A", "C", ".", ".", ".", "GT", *calls]] * variants, samples)
        return write_traw([[str(dosage) for dosage in row]] * variants, samples)

    small = peak_bytes(written(1500))
    assert peak_bytes(written(6000)) < 1.5 * small
