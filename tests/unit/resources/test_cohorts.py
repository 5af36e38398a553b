"""The register of cohorts: one folder a name, written whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from resources.cohorts import CohortRegistry
from synth_platform.contract.cohort_spec import CohortSpecError

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual"


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
