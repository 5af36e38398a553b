"""What is stated beside published tables: domain, structural_zeros and provenance, each as .yaml or as .json.

Every label is the text that stands in the tables: `yes` is "yes" and 01 is "01", quoted or not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import yaml

from synth_platform.contract.as_written import AsWritten

Stated = Literal["domain", "structural_zeros", "provenance"]
STATED_FILES = tuple(
    f"{stem}{form}" for stem in ("domain", "structural_zeros", "provenance") for form in (".yaml", ".json")
)
_TEXT: dict[str, Any] = {"parse_int": str, "parse_float": str, "parse_constant": str}


def read_stated(folder: Path, stem: Stated) -> tuple[str, Any] | None:
    """Name and document of the file that states this, None where none does.

    Raises ValueError that names the file: both of them, or one that is no YAML or JSON.
    """
    paths = [path for form in (".yaml", ".json") if (path := folder / f"{stem}{form}").exists()]
    if len(paths) > 1:
        raise ValueError(f"{folder}: both {stem}.yaml and {stem}.json; keep one of them")
    if not paths:
        return None
    path = paths[0]
    try:
        text = path.read_text(encoding="utf-8")
        return path.name, yaml.load(text, AsWritten) if path.suffix == ".yaml" else json.loads(text, **_TEXT)
    except (yaml.YAMLError, ValueError) as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        where = "" if mark is None else f", line {mark.line + 1}"
        raise ValueError(f"{path.name}{where}: not readable as {path.suffix[1:].upper()} in UTF-8") from None


def write_stated(folder: Path, stem: Stated, document: object) -> None:
    """Write the document as JSON; `read_stated` returns it."""
    (folder / f"{stem}.json").write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")
