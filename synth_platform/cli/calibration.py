"""calibration.json beside a cohort.yaml: the evidence that its closest-record tolerances follow from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.evaluation.calibration import Calibration, calibrate, contradictions
from synth_platform.evaluation.null import registered_null
from synth_platform.normalize.reference import PublicReference
from synth_platform.privacy.fingerprint import canonical_json

CALIBRATION = "calibration.json"


def probe(spec: CohortSpec, reference: PublicReference) -> Calibration:
    """The calibration of a cohort, from its registered sizes and public rows."""
    return calibrate(spec.name, registered_null(spec, reference), spec.gates)


def write_calibration(folder: Path, calibration: Calibration) -> Path:
    """Freeze a calibration in the cohort's folder, as canonical JSON."""
    path = folder / CALIBRATION
    path.write_bytes(canonical_json(calibration.as_dict()) + b"\n")
    return path


def calibration_standing(spec: CohortSpec, reference: PublicReference, folder: Path) -> dict[str, Any]:
    """{"status": "absent" | "holds" | "contradicted", "faults": in words}: is there evidence for the tolerances?"""
    path = folder / CALIBRATION
    if not path.exists():
        return {"status": "absent", "faults": []}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        faults: tuple[str, ...] = (f"it is not JSON: {error}",)
    else:
        faults = contradictions(document, spec.name, registered_null(spec, reference), spec.gates)
    return {"status": "contradicted" if faults else "holds", "faults": list(faults)}


def calibration_line(standing: dict[str, Any], folder: Path) -> str:
    """The standing in one sentence, with what to do about it."""
    remedy = f"synth cohort tolerances {folder} --write"
    match standing["status"]:
        case "absent":
            return f"no {CALIBRATION}: nothing shows where the closest-record tolerances come from; make it: {remedy}"
        case "holds":
            return f"{CALIBRATION} backs the registered closest-record tolerances"
        case _:
            return (
                f"{folder / CALIBRATION} contradicts cohort.yaml: {'; '.join(standing['faults'])}; "
                f"register tolerances it gives, or calibrate again before any table is judged: {remedy}"
            )
