"""A genotype study asked in blocks, held against its whole matrix; files are written here cell by cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.discovery.documents import Study
from synth_platform.discovery.genotypes import genotype_study, phenotype_sizes, read_study, variant_names
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.queries import BoundedScores, ScoreError
from synth_platform.privacy.rehearsal import Rehearsal
from synth_platform.sources.genotypes import study as study_module
from synth_platform.sources.genotypes.block import BLOCK_SIZE, GenotypeError
from synth_platform.sources.genotypes.open import open_genotypes
from synth_platform.sources.genotypes.study import GenotypeStudy, list_variants

SAMPLES, VARIANTS = 37, 2 * BLOCK_SIZE + 501
CASES, CONTROLS = 13, 21  # three samples have no phenotype
LATE = BLOCK_SIZE + 17


@dataclass(frozen=True)
class Made:
    """A study on disk; dosages [n, m] as they were written, case [n] with None for neither."""

    folder: Path
    spec: GenotypeSpec
    dosages: NDArray[np.int8]
    case: Sequence[bool | None]

    def with_genotypes(self, **changes: Any) -> GenotypeSpec:
        return self.spec.model_copy(update={"genotypes": self.spec.genotypes.model_copy(update=changes)})


def scores_of(study: Study[GenotypeStudy]) -> BoundedScores[GenotypeStudy]:
    """Those of the first query."""
    return study.asked_for(study.expected)[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Parquet of three blocks and a CSV of phenotypes, in another order and with a person who was not genotyped."""
    folder, rng = tmp_path_factory.mktemp("study"), np.random.default_rng(11)
    dosages = rng.integers(-1, 3, (SAMPLES, VARIANTS)).astype(np.int8)
    case: list[bool | None] = [True] * CASES + [False] * CONTROLS + [None] * (SAMPLES - CASES - CONTROLS)
    rng.shuffle(case)
    dosages[:, LATE] = [2 if c else 0 for c in case]
    samples = [f"s{at}" for at in range(SAMPLES)]
    variants = {
        "variant_id": ["" if at == 3 else "." if at == 4 else f"7:{at + 1}:A:C" if at == 5 else f"rs{at}"
                       for at in range(VARIANTS)],
        "chromosome": ["7"] * VARIANTS,
        "position": range(1, VARIANTS + 1),
        "ref": ["A"] * VARIANTS,
        "alt": ["C"] * VARIANTS,
    }  # fmt: skip
    genotypes = {name: dosages[at] for at, name in enumerate(samples)}
    pl.DataFrame(variants | genotypes).write_parquet(folder / "study.parquet")
    text = {True: "ill", False: "well", None: ""}
    lines = [f"{name},{text[c]}\n" for name, c in zip(samples, case, strict=True)]
    (folder / "phenotypes.csv").write_text("sample,status\nabsent,ill\n" + "".join(reversed(lines)), encoding="utf-8")
    number, digest = list_variants(open_genotypes(folder / "study.parquet"))
    assert number == VARIANTS
    phenotype = {"file": "phenotypes.csv", "column": "status", "case": ["ill"], "control": ["well"]}
    spec = GenotypeSpec.model_validate(
        {
            "name": "made",
            "kind": "genotypes",
            "title": "Made",
            "dua_tag": "RELEASE_REVIEWED",
            "privacy": {"domain": "made", "budget": {"epsilon": 20.0, "delta": 1e-4}},
            "genotypes": {"file": "study.parquet", "variants": VARIANTS, "list_sha256": digest},
            "phenotypes": {"ill": phenotype | {"sizes": [CASES, CONTROLS]}},
            "discovery": {"mu": 3.0, "expected": 5},
        }
    )
    return Made(folder, spec, dosages, case)


def test_the_streamed_scores_are_those_of_the_whole_matrix(made: Made) -> None:
    """Claim: cutting the file into blocks changes no bit, and only samples of either group count."""
    kept = [at for at, case in enumerate(made.case) if case is not None]
    case = np.array([made.case[at] for at in kept], dtype=bool)
    study = genotype_study(made.spec, made.folder, made.spec.plan_of("ill"))
    scores = scores_of(study)(read_study(made.spec, made.folder, "ill"))
    np.testing.assert_array_equal(scores, study.made_for(study.expected).log_e(made.dosages[kept], case))
    assert int(np.argmax(scores)) == LATE


def test_the_file_is_read_once_for_all_queries_of_a_plan(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: size, selection and values ask for the same scores; other rows are other scores."""
    opened = []

    def counted(*arguments: Any) -> Any:
        opened.append(arguments)
        return open_genotypes(*arguments)

    rows, others = (read_study(made.spec, made.folder, "ill") for _ in range(2))
    study = genotype_study(made.spec, made.folder, made.spec.plan_of("ill"))
    monkeypatch.setattr(study_module, "open_genotypes", counted)
    peeled = study.peel(Rehearsal(rows, SeededNoise(1)).ask)
    assert len(peeled.releases) == 3
    assert len(opened) == 1
    scores_of(study)(others)
    assert len(opened) == 2


def test_the_planted_variant_is_first_and_is_named(made: Made) -> None:
    study = genotype_study(made.spec, made.folder, made.spec.plan_of("ill"))
    peeled = study.peel(Rehearsal(read_study(made.spec, made.folder, "ill"), SeededNoise(2)).ask)
    assert f"rs{LATE} 7:{LATE + 1}:A:C" in study.names(peeled.positions.tolist())


def test_names_stand_at_their_positions_in_the_order_asked_for(made: Made) -> None:
    """Claim: an id before the place where there is one that says more than the place, in whichever block."""
    positions = [VARIANTS - 1, 3, BLOCK_SIZE, 4, 0, BLOCK_SIZE - 1, 5]
    assert variant_names(made.spec, made.folder, positions) == [
        f"rs{VARIANTS - 1} 7:{VARIANTS}:A:C", "7:4:A:C", f"rs{BLOCK_SIZE} 7:{BLOCK_SIZE + 1}:A:C", "7:5:A:C",
        "rs0 7:1:A:C", f"rs{BLOCK_SIZE - 1} 7:{BLOCK_SIZE}:A:C", "7:6:A:C",
    ]  # fmt: skip


def test_a_variant_that_is_listed_twice_is_two_hypotheses(tmp_path: Path, made: Made) -> None:
    """Claim: both are named, each by its place in the list as well; the others keep their names."""
    frame = pl.read_parquet(made.folder / "study.parquet").head(3)
    pl.concat([frame, frame.slice(1, 1)]).write_parquet(tmp_path / "study.parquet")
    names = variant_names(made.spec, tmp_path, [3, 0, 1])
    assert names == ["rs1 7:2:A:C #4", "rs0 7:1:A:C", "rs1 7:2:A:C #2"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"variants": VARIANTS + 1}, id="one more registered"),
        pytest.param({"variants": VARIANTS - 1}, id="one less registered"),
        pytest.param({"variants": 3}, id="hardly any registered"),
        pytest.param({"list_sha256": "0" * 64}, id="another list of that length"),
    ],
)
def test_another_list_than_the_registered_one_is_refused_without_a_figure(change: dict[str, Any], made: Made) -> None:
    spec = made.with_genotypes(**change)
    study = genotype_study(spec, made.folder, spec.plan_of("ill"))
    with pytest.raises(ScoreError, match=r"study 'made': .*`synth cohort check` tells which it holds") as refusal:
        scores_of(study)(read_study(spec, made.folder, "ill"))
    assert re.findall(r"\d+", str(refusal.value).replace("list_sha256", "")) == [str(spec.genotypes.variants)]


@pytest.mark.parametrize("edit", ["swap", "position", "allele"])
def test_a_list_of_the_same_length_that_differs_in_one_variant_is_refused(
    edit: str, made: Made, tmp_path: Path
) -> None:
    frame = pl.read_parquet(made.folder / "study.parquet")
    order = pl.int_range(pl.len())
    changes: dict[str, Callable[[], pl.DataFrame]] = {
        "swap": lambda: frame.with_columns(
            order.replace({LATE: LATE + 1, LATE + 1: LATE}).alias("at")).sort("at").drop("at"),
        "position": lambda: frame.with_columns(pl.when(order == LATE).then(9).otherwise("position").alias("position")),
        "allele": lambda: frame.with_columns(
            pl.when(order == LATE).then(pl.lit("G")).otherwise("alt").alias("alt")),
    }  # fmt: skip
    changes[edit]().write_parquet(tmp_path / "study.parquet")
    (tmp_path / "phenotypes.csv").write_bytes((made.folder / "phenotypes.csv").read_bytes())
    study = genotype_study(made.spec, tmp_path, made.spec.plan_of("ill"))
    with pytest.raises(ScoreError, match="does not hold"):
        scores_of(study)(read_study(made.spec, tmp_path, "ill"))


def test_group_sizes_count_genotyped_samples(made: Made) -> None:
    """Claim: who is not genotyped is in no group, as when the study is read."""
    assert phenotype_sizes(made.spec, made.folder, "ill") == (CASES, CONTROLS)


def test_other_sizes_than_the_registered_ones_are_refused_without_a_figure(made: Made) -> None:
    phenotype = made.spec.phenotypes["ill"].model_copy(update={"sizes": (CASES + 1, CONTROLS)})
    spec = made.spec.model_copy(update={"phenotypes": {"ill": phenotype}})
    with pytest.raises(GenotypeError, match="not as many as registered") as refusal:
        read_study(spec, made.folder, "ill")
    assert not re.search(rf"\b({CASES}|{CONTROLS}|{CASES + CONTROLS}|{SAMPLES})\b", str(refusal.value))


def test_the_fam_itself_may_say_who_is_a_case(tmp_path: Path, made: Made) -> None:
    """Claim: `file: fam` reads column 6 of the .fam beside the .bed; 0 is neither."""
    (tmp_path / "a.bed").write_bytes(b"\x6c\x1b\x01" + bytes([0b11_10_00_11, 0b11]))
    (tmp_path / "a.bim").write_text("1\trs1\t0\t5\tA\tG\n")
    (tmp_path / "a.fam").write_text("".join(f"F{n} I{n} 0 0 0 {p}\n" for n, p in enumerate([2, 0, 1, 1, 2])))
    document = made.spec.model_dump(mode="json")
    document["genotypes"] |= {"file": "a.bed", "variants": 1}
    document["phenotypes"] = {"ill": {"file": "fam", "sizes": [2, 2]}}
    spec = GenotypeSpec.model_validate(document)
    rows = read_study(spec, tmp_path, "ill")
    assert (rows.kept.tolist(), rows.case.tolist()) == ([0, 2, 3, 4], [True, False, False, True])
    assert phenotype_sizes(spec, tmp_path, "ill") == (2, 2)
    assert variant_names(spec, tmp_path, [0]) == ["rs1 1:5:G:A"]


def test_the_request_tells_phenotype_field_and_list(made: Made) -> None:
    study = genotype_study(made.spec, made.folder, made.spec.plan_of("ill"))
    assert study.compared == {
        "case": ["ill"],
        "control": ["well"],
        "column": "status",
        "field": "GT",
        "family": made.spec.genotypes.list_sha256,
    }
    scores, parameters = study.asked_for(study.expected)
    statistic = study.made_for(study.expected)
    assert (scores.candidates, scores.sensitivity) == (VARIANTS, statistic.sensitivity)
    assert parameters == {**study.compared, "statistic": dict(statistic.parameters)}
