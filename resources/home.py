"""Where everything lives: one root with a restricted zone, a released zone, the ledger and Dagster's own storage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import dagster as dg
from upath import UPath

DEFAULT_HOME = Path.home() / ".synth-platform"


@dataclass(frozen=True)
class SynthHome:
    """The root folder: `restricted` may hold private figures, `released` only what may leave the building."""

    root: Path

    @classmethod
    def from_environment(cls) -> SynthHome:
        """`SYNTH_HOME`, or a folder in the user's home."""
        return cls(Path(os.environ.get("SYNTH_HOME", DEFAULT_HOME)).expanduser().resolve())

    @property
    def restricted(self) -> UPath:
        """Artefacts, evidence and validation results; `SYNTH_ARTEFACTS` moves it to any fsspec location."""
        return UPath(os.environ.get("SYNTH_ARTEFACTS", str(self.root / "restricted")))

    @property
    def released(self) -> Path:
        """Release packages."""
        return self.root / "released"

    @property
    def cohorts(self) -> Path:
        """The list of registered cohort folders."""
        return self.root / "cohorts.json"

    @property
    def ledger_url(self) -> str:
        """`SYNTH_LEDGER_URL` (SQLite or PostgreSQL), or a SQLite file in the root."""
        return os.environ.get("SYNTH_LEDGER_URL", f"sqlite:///{self.root / 'ledger.sqlite'}")

    @property
    def register_url(self) -> str:
        """`SYNTH_REGISTER_URL` (SQLite or PostgreSQL), or a SQLite file in the restricted zone: it holds figures."""
        return os.environ.get("SYNTH_REGISTER_URL", f"sqlite:///{self.root / 'restricted' / 'register.sqlite'}")

    @property
    def statuses(self) -> Path:
        """The status of every release, for people outside."""
        return self.released / "register.json"

    @property
    def dagster(self) -> Path:
        """DAGSTER_HOME."""
        return self.root / "dagster"

    def prepare(self) -> SynthHome:
        """Create the folders (owner-only) and the Dagster configuration where they do not exist yet."""
        for folder in (self.root, self.root / "restricted", self.released, self.dagster):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        configuration = files("resources").joinpath("dagster.yaml").read_text(encoding="utf-8")
        target = self.dagster / "dagster.yaml"
        if not target.exists():
            target.write_text(configuration, encoding="utf-8")
        os.environ["SYNTH_HOME"] = str(self.root)
        os.environ["DAGSTER_HOME"] = str(self.dagster)
        os.environ["SYNTH_DAGSTER_STORAGE"] = str(self.dagster / "storage")
        return self

    def instance(self) -> dg.DagsterInstance:
        """The Dagster instance of this home."""
        self.prepare()
        return dg.DagsterInstance.from_config(str(self.dagster))

    def artefact(self, key: dg.AssetKey, *partition: str) -> UPath:
        """Folder of a stored artefact; `partition` is the cohort, or the cohort and the plan."""
        return self.restricted.joinpath(*key.path, *partition)


class HomeResource(dg.ConfigurableResource[None]):
    """The platform's home, as assets see it."""

    root: str

    @property
    def paths(self) -> SynthHome:
        """Every folder of the home."""
        return SynthHome(Path(self.root))

    def validations(self, context: dg.AssetExecutionContext, asset: dg.AssetKey) -> UPath:
        """Where the stored validation result of an asset, or of its running partition, goes."""
        if not context.has_partition_key:
            return self.paths.restricted.joinpath("validations", *asset.path)
        key = context.partition_key
        parts = key.keys_by_dimension.values() if isinstance(key, dg.MultiPartitionKey) else (key,)
        return self.paths.restricted.joinpath("validations", *asset.path, *parts)
