"""The cohort registry: which folders hold a cohort.yaml, or the study.yaml of a genotype study, by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import dagster as dg

from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError, load_cohort_spec
from synth_platform.contract.genotype_spec import GenotypeSpec, load_genotype_spec
from synth_platform.contract.genotype_spec import Registered as Registered  # noqa: PLC0414  # the shell reads it here

COHORT, STUDY = "cohort.yaml", "study.yaml"


class CohortRegistry(dg.ConfigurableResource[None]):
    """Registered cohort folders, kept as one JSON file {name: folder}."""

    path: str

    def folders(self) -> dict[str, Path]:
        """Cohort name -> its folder; CohortSpecError where the register cannot be read."""
        register = Path(self.path)
        if not register.exists():
            return {}
        try:
            listed = json.loads(register.read_text(encoding="utf-8"))
            return {str(name): Path(folder) for name, folder in listed.items()}
        except (ValueError, AttributeError, TypeError) as error:
            raise CohortSpecError(
                f"{register}: not a register of cohorts (JSON, name: folder); restore it from a backup, or remove it "
                "and register every cohort again with `synth cohort add FOLDER`"
            ) from error

    def folder(self, name: str) -> Path:
        """Folder of one cohort; CohortSpecError if it is not registered."""
        folders = self.folders()
        if name not in folders:
            raise CohortSpecError(
                f"cohort {name!r} is not registered (registered: {sorted(folders) or 'none'}); "
                "add it with `synth cohort add FOLDER`"
            )
        return folders[name]

    def spec(self, name: str) -> CohortSpec:
        """The specification of an omics cohort as its file reads now."""
        spec = self.registered(name)
        if isinstance(spec, GenotypeSpec):
            raise CohortSpecError(
                f"{name!r} is a genotype study, not a cohort of tables; synth discover {name} runs it"
            )
        return spec

    def study(self, name: str) -> GenotypeSpec:
        """The specification of a genotype study as its file reads now."""
        spec = self.registered(name)
        if isinstance(spec, CohortSpec):
            raise CohortSpecError(f"{name!r} is a cohort of tables, not a genotype study")
        return spec

    def registered(self, name: str) -> Registered:
        """The specification under a name, of whichever kind."""
        return load_registered(self.folder(name))

    def cohorts(self) -> list[str]:
        """Names of the omics cohorts, those with an unreadable file among them."""
        return sorted(name for name, folder in self.folders().items() if not (folder / STUDY).exists())

    def add(self, folder: Path) -> Registered:
        """Register a folder; a name that points elsewhere already is refused."""
        folder = folder.resolve()
        spec = load_registered(folder)
        folders = self.folders()
        if folders.get(spec.name, folder) != folder:
            raise CohortSpecError(f"cohort {spec.name!r} is registered already, from {folders[spec.name]}")
        folders[spec.name] = folder
        register = Path(self.path)
        register.parent.mkdir(parents=True, exist_ok=True)
        draft = register.with_suffix(".tmp")
        draft.write_text(json.dumps({name: str(path) for name, path in sorted(folders.items())}, indent=1), "utf-8")
        os.replace(draft, register)
        return spec


def load_registered(folder: Path) -> Registered:
    """The specification in a folder. Raises CohortSpecError for none, or for both kinds."""
    if not (folder / STUDY).exists():
        return load_cohort_spec(folder / COHORT)
    if (folder / COHORT).exists():
        raise CohortSpecError(f"{folder} holds a {COHORT} and a {STUDY}; give each a folder of its own")
    return load_genotype_spec(folder / STUDY)
