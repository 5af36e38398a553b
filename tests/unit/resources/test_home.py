"""The home: owner-only folders, and every path from the environment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from resources.home import SynthHome


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SYNTH_HOME", "DAGSTER_HOME", "SYNTH_DAGSTER_STORAGE", "SYNTH_ARTEFACTS", "SYNTH_LEDGER_URL"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    """Claim: whoever else is on the machine can enter none of the folders a home is made of."""
    home = SynthHome(tmp_path / "home").prepare()
    for folder in (home.root, Path(str(home.restricted)), home.released, home.dagster):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_dagster_keeps_everything_in_the_home(tmp_path: Path) -> None:
    """Claim: Dagster's own storage lies in the home, nothing in a temporary folder that is deleted, and telemetry is
    off."""
    home = SynthHome(tmp_path / "home")
    with home.instance() as instance:
        instance.add_dynamic_partitions("plan", ["eps1"])
        assert not instance.telemetry_enabled
        assert Path(instance.storage_directory()).is_relative_to(home.dagster)
    assert any(home.dagster.rglob("*.db"))


def test_a_configuration_that_is_there_is_kept(tmp_path: Path) -> None:
    """Claim: `prepare` never overwrites a dagster.yaml that an administrator changed."""
    home = SynthHome(tmp_path / "home").prepare()
    (home.dagster / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    home.prepare()
    assert (home.dagster / "dagster.yaml").read_text(encoding="utf-8") == "telemetry: {enabled: false}\n"


def test_places_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: SYNTH_HOME, SYNTH_ARTEFACTS and SYNTH_LEDGER_URL move the home, the restricted zone and the ledger."""
    monkeypatch.setenv("SYNTH_HOME", str(tmp_path / "elsewhere"))
    home = SynthHome.from_environment()
    assert home.root == tmp_path / "elsewhere"
    assert home.ledger_url == f"sqlite:///{home.root / 'ledger.sqlite'}"
    monkeypatch.setenv("SYNTH_ARTEFACTS", "memory://bucket")
    monkeypatch.setenv("SYNTH_LEDGER_URL", "postgresql+psycopg://server/ledger")
    assert str(home.restricted).startswith("memory://bucket")
    assert home.ledger_url == "postgresql+psycopg://server/ledger"
    home.prepare()
    assert os.environ["DAGSTER_HOME"] == str(home.dagster)
