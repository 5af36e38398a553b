"""The cohort registry: which folders hold a cohort.yaml, by cohort name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import dagster as dg

from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError, load_cohort_spec


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
        """The cohort's specification as its file reads now."""
        return load_cohort_spec(self.folder(name) / "cohort.yaml")

    def add(self, folder: Path) -> CohortSpec:
        """Register a cohort folder; a name that points elsewhere already is refused."""
        folder = folder.resolve()
        spec = load_cohort_spec(folder / "cohort.yaml")
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
