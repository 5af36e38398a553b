"""A registration that the contract could not keep is refused, and the message names the field."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from synth_platform.contract.cohort_spec import CohortSpecError, load_cohort_spec


@pytest.fixture
def document(make_spec) -> dict[str, Any]:
    return copy.deepcopy(make_spec().model_dump(mode="json", exclude_defaults=True))


def load(tmp_path: Path, document: dict[str, Any]):
    path = tmp_path / "cohort.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load_cohort_spec(path)


def test_the_valid_document_loads(tmp_path, document, spec) -> None:
    assert load(tmp_path, document) == spec


def test_panel_from_a_file(tmp_path, document) -> None:
    document["expression"]["panel"] = "genes.txt"
    (tmp_path / "genes.txt").write_text("G1\n\n  G2 \n", encoding="utf-8")
    assert load(tmp_path, document).expression.panel == ("G1", "G2")
    (tmp_path / "genes.txt").unlink()
    with pytest.raises(CohortSpecError, match=r"expression\.panel names 'genes\.txt'"):
        load(tmp_path, document)


def variable(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "kind": "continuous", "minimum": 0, "maximum": 1} | fields


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("clinical", variable("birth_weight"), r"clinical\.7.*'birth' cannot be registered"),
        ("clinical", variable("patient_id"), r"clinical\.7.*'patient_id' cannot be registered"),
        ("clinical", variable("x", minimum=2), r"clinical\.7.*minimum is above maximum"),
        (
            "clinical",
            variable("x", kind="categorical", categories=["a", "a"]),
            r"clinical\.7.*a category appears twice",
        ),
        ("clinical", variable("age"), "a variable name appears twice"),
        ("clinical", variable("row_key"), "a feature id stands for one column"),
        ("batches", "REFERENCE", "none called REFERENCE"),
        ("batches", "B-01", "batches: each once"),
        ("expression.panel", "HLA-DOB", r"expression.*each one once"),
        ("expression.panel", "cg00000029", "a feature id stands for one column"),
        ("expression.panel", "age", "a feature id stands for one column"),
    ],
)
def test_refused_registrations(where, value, message, tmp_path, document) -> None:
    section = document
    *parents, last = where.split(".")
    for parent in parents:
        section = section[parent]
    section[last] = [*section[last], value]
    with pytest.raises(CohortSpecError, match=message):
        load(tmp_path, document)


def test_ids_must_match_their_pattern(tmp_path, document) -> None:
    document["methylation"]["id_pattern"] = r"cg\d{8}"
    load(tmp_path, document)
    document["methylation"]["panel"] = ["cg00000029", "patient_id"]
    with pytest.raises(CohortSpecError, match=r"methylation.*1 id\(s\) do not match id_pattern"):
        load(tmp_path, document)
