"""The cohort registry: which folders hold a cohort.yaml, a genotype study's study.yaml or a census.yaml, by name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import dagster as dg

from synth_platform.contract.census_spec import CensusSpec, load_census_spec
from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError, load_cohort_spec
from synth_platform.contract.genotype_spec import GenotypeSpec, load_genotype_spec
from synth_platform.contract.registered import Contrasted, Registered

COHORT, STUDY, CENSUS = "cohort.yaml", "study.yaml", "census.yaml"
LOADERS: Mapping[str, Callable[[Path], Registered]] = {
    COHORT: load_cohort_spec,
    STUDY: load_genotype_spec,
    CENSUS: load_census_spec,
}


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
        if isinstance(spec, CensusSpec):
            raise CohortSpecError(f"{name!r} is a census, not a cohort of matrices; synth run {name} runs its plans")
        return spec

    def study(self, name: str) -> GenotypeSpec:
        """The specification of a genotype study as its file reads now."""
        spec = self.registered(name)
        if not isinstance(spec, GenotypeSpec):
            raise CohortSpecError(f"{name!r} is a cohort of tables, not a genotype study")
        return spec

    def census(self, name: str) -> CensusSpec:
        """The specification of a census as its file reads now."""
        spec = self.registered(name)
        if not isinstance(spec, CensusSpec):
            raise CohortSpecError(f"{name!r} is no census; its folder has no {CENSUS}")
        return spec

    def contrasted(self, name: str) -> Contrasted:
        """The specification of a cohort or study that has contrasts to discover in."""
        spec = self.registered(name)
        if isinstance(spec, CensusSpec):
            raise CohortSpecError(f"{name!r} is a census, which has no contrasts; synth run {name} runs its plans")
        return spec

    def registered(self, name: str) -> Registered:
        """The specification under a name, of whichever kind."""
        return load_registered(self.folder(name))

    def cohorts(self) -> list[str]:
        """Names of the omics cohorts, those with an unreadable file among them."""
        others = (STUDY, CENSUS)
        return sorted(
            name for name, folder in self.folders().items() if not any((folder / file).exists() for file in others)
        )

    def censuses(self) -> list[str]:
        """Names of the censuses, those with an unreadable file among them."""
        return sorted(name for name, folder in self.folders().items() if (folder / CENSUS).exists())

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
    """The specification in a folder. Raises CohortSpecError for none, or for more than one kind."""
    found = [file for file in LOADERS if (folder / file).exists()]
    if len(found) > 1:
        raise CohortSpecError(f"{folder} holds a {' and a '.join(found)}; give each a folder of its own")
    file = found[0] if found else COHORT
    return LOADERS[file](folder / file)
