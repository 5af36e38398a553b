"""Names of variants as they are shown and stored: one for each hypothesis, and nothing that a screen obeys."""

from __future__ import annotations

from pathlib import Path

import pytest

from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.discovery.genotypes import variant_names

HEADER = "##fileformat=VCFv4.3\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts1\n"


def names(folder: Path, *variants: tuple[str, str]) -> list[str]:
    """Of sites at position 7 with these ids and alternatives."""
    lines = [f"1\t7\t{name}\tA\t{alt}\t.\t.\t.\tGT\t0/1\n" for name, alt in variants]
    (folder / "g.vcf").write_text(HEADER + "".join(lines), encoding="utf-8")
    spec = GenotypeSpec.model_validate(
        {
            "name": "named",
            "kind": "genotypes",
            "title": "Named",
            "dua_tag": "RELEASE_REVIEWED",
            "privacy": {"domain": "named", "budget": {"epsilon": 9.0, "delta": 1e-4}},
            "genotypes": {"file": "g.vcf", "variants": len(variants), "list_sha256": "0" * 64},
            "phenotypes": {"ill": {"file": "fam", "sizes": [2, 2]}},
            "discovery": {"size": 1},
        }
    )
    return variant_names(spec, folder, range(len(variants)))


@pytest.mark.parametrize("letter", ["\x1b", "\x07", "\x7f", "\u0085", "\u202e", "\u2028", "\u200b"])
def test_what_cannot_be_printed_is_a_question_mark(letter: str, tmp_path: Path) -> None:
    """Claim: in the id and in an allele alike; letters of other alphabets stay."""
    assert names(tmp_path, (f"r{letter}s", "C"), ("rß변", f"C{letter}T")) == ["r?s 1:7:A:C", "rß변 1:7:A:C?T"]


def test_names_that_only_what_cannot_be_printed_told_apart_stay_distinct(tmp_path: Path) -> None:
    found = names(tmp_path, ("r\x1bs", "C"), ("r\x07s", "C"), ("r?s", "C"), ("rs", "C"))
    assert found == ["r?s 1:7:A:C #1", "r?s 1:7:A:C #2", "r?s 1:7:A:C #3", "rs 1:7:A:C"]


def test_a_name_that_reads_like_one_with_its_place_is_no_other_variant(tmp_path: Path) -> None:
    """Claim: `C #2` as an allele is not the second of two that are called the same."""
    found = names(tmp_path, ("rs", "C #3"), ("rs", "C"), ("rs", "C"))
    assert len(set(found)) == 3
