"""The register of cohorts: one folder a name, written whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from resources.cohorts import CohortRegistry, load_registered
from synth_platform.contract.census_spec import CensusSpec
from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError
from synth_platform.contract.genotype_spec import GenotypeSpec

COHORTS = Path(__file__).resolve().parents[3] / "cohorts"
VIRTUAL, GWAS, CENSUS_DEMO = COHORTS / "virtual", COHORTS / "virtual_gwas", COHORTS / "census_demo"


@pytest.fixture
def registry(tmp_path: Path) -> CohortRegistry:
    return CohortRegistry(path=str(tmp_path / "home" / "cohorts.json"))


def test_a_cohort_is_found_by_its_name(registry: CohortRegistry) -> None:
    """Claim: what was added is there for whoever opens the same file later; adding it again changes nothing."""
    registry.add(VIRTUAL)
    registry.add(VIRTUAL)
    later = CohortRegistry(path=registry.path)
    assert later.folders() == {"virtual": VIRTUAL}
    assert later.spec("virtual").name == "virtual"
    assert [file.name for file in Path(registry.path).parent.iterdir()] == ["cohorts.json"]


def test_two_folders_cannot_have_one_name(registry: CohortRegistry, tmp_path: Path) -> None:
    """Claim: a second folder under a known name is refused, naming the first, which the register keeps."""
    shutil.copytree(VIRTUAL, tmp_path / "copy")
    registry.add(VIRTUAL)
    with pytest.raises(CohortSpecError, match=f"registered already, from {VIRTUAL}"):
        registry.add(tmp_path / "copy")
    assert registry.folder("virtual") == VIRTUAL


def test_an_unknown_name_says_what_is_known(registry: CohortRegistry) -> None:
    """Claim: the error names the cohort, the known ones, and the command that adds one."""
    with pytest.raises(CohortSpecError, match=r"'nobody' is not registered \(registered: none\); add it with `synth"):
        registry.folder("nobody")
    registry.add(VIRTUAL)
    with pytest.raises(CohortSpecError, match=r"registered: \['virtual'\]"):
        registry.spec("nobody")


def test_a_folder_without_a_usable_cohort_is_not_registered(registry: CohortRegistry, tmp_path: Path) -> None:
    """Claim: a folder that cannot be read leaves no trace in the register."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(CohortSpecError, match=r"cohort\.yaml: no such file"):
        registry.add(tmp_path / "empty")
    assert registry.folders() == {}


def test_a_genotype_study_is_registered_beside_cohorts(registry: CohortRegistry) -> None:
    """Claim: a folder with a study.yaml is found by its name, as a study alone; cohorts() leaves it out."""
    assert isinstance(registry.add(GWAS), GenotypeSpec)
    registry.add(VIRTUAL)
    assert registry.folders() == {"virtual": VIRTUAL, "virtual_gwas": GWAS}
    assert registry.study("virtual_gwas") == registry.registered("virtual_gwas") == load_registered(GWAS)
    assert isinstance(registry.registered("virtual"), CohortSpec)
    assert registry.cohorts() == ["virtual"]


def test_either_kind_asked_for_as_the_other_is_refused(registry: CohortRegistry) -> None:
    """Claim: the message says what the name stands for, and what runs a study."""
    registry.add(GWAS)
    registry.add(VIRTUAL)
    with pytest.raises(CohortSpecError, match=r"'virtual_gwas' is a genotype study.*synth discover virtual_gwas runs"):
        registry.spec("virtual_gwas")
    with pytest.raises(CohortSpecError, match="'virtual' is a cohort of tables, not a genotype study"):
        registry.study("virtual")


def test_a_census_is_registered_beside_them(registry: CohortRegistry) -> None:
    """Claim: a folder with a census.yaml is found by its name, as a census; it has neither matrices nor contrasts."""
    assert isinstance(registry.add(CENSUS_DEMO), CensusSpec)
    registry.add(GWAS)
    registry.add(VIRTUAL)
    assert (registry.cohorts(), registry.censuses()) == (["virtual"], ["census_demo"])
    assert registry.census("census_demo") == load_registered(CENSUS_DEMO)
    for use in (registry.spec, registry.contrasted):
        with pytest.raises(CohortSpecError, match=r"'census_demo' is a census.*synth run census_demo runs its plans"):
            use("census_demo")
    for other in ("virtual", "virtual_gwas"):
        with pytest.raises(CohortSpecError, match=f"'{other}' is no census"):
            registry.census(other)


def test_a_folder_of_both_kinds_is_refused(registry: CohortRegistry, tmp_path: Path) -> None:
    """Claim: which of two files is meant is never guessed, neither when adding nor when one appears later."""
    folder = tmp_path / "both"
    folder.mkdir()
    shutil.copy(GWAS / "study.yaml", folder)
    registry.add(folder)
    shutil.copy(VIRTUAL / "cohort.yaml", folder)
    for use in (lambda: registry.add(folder), lambda: registry.registered("virtual_gwas")):
        with pytest.raises(CohortSpecError, match=r"holds a cohort\.yaml and a study\.yaml; give each a folder"):
            use()


def test_a_file_under_the_other_ones_name_names_its_kind(registry: CohortRegistry, tmp_path: Path) -> None:
    """Claim: a cohort.yaml saved as study.yaml, or the other way round, is refused at `kind`, and not registered."""
    mixed = ((VIRTUAL / "cohort.yaml", "study.yaml", "genotypes"), (GWAS / "study.yaml", "cohort.yaml", "omics"))
    for source, name, kind in mixed:
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(source, folder / name)
        with pytest.raises(CohortSpecError, match=rf"kind: Input should be '{kind}'"):
            registry.add(folder)
    assert registry.folders() == {}


def test_a_study_and_a_cohort_cannot_have_one_name(registry: CohortRegistry, tmp_path: Path) -> None:
    """Claim: names are of both kinds together, because partitions and packages are called by them."""
    folder = tmp_path / "study"
    folder.mkdir()
    text = (GWAS / "study.yaml").read_text(encoding="utf-8")
    (folder / "study.yaml").write_text(text.replace("name: virtual_gwas", "name: virtual"), encoding="utf-8")
    registry.add(VIRTUAL)
    with pytest.raises(CohortSpecError, match=f"'virtual' is registered already, from {VIRTUAL}"):
        registry.add(folder)
