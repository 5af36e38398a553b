"""The platform's own answers pass, and a changed answer fails under the name of its case."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from synth_platform.audit.conformance import audit_conformance
from synth_platform.audit.findings import Findings
from synth_platform.audit.reading import digest, leaves
from synth_platform.release.conformance import conformance

Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Document:
    return conformance()


def failures(document: Document) -> list[str]:
    """Failed checks of a document that was sealed again after it was changed."""
    body = {key: value for key, value in document.items() if key != "body_sha256"}
    found = Findings()
    audit_conformance(found, body | {"body_sha256": digest(body)})
    return [check.name for check in found.checks if not check.passed]


def test_this_platform_conforms(document: Document) -> None:
    found = Findings()
    audit_conformance(found, document)
    assert [check for check in found.checks if not check.passed] == []
    counts = found.counts()["G2"]
    assert counts["release_rule"] == 192 + 2
    assert counts["schema_case"] == 2 * 15 + 1


def test_it_says_the_same_every_time(document: Document) -> None:
    assert conformance() == document


def put(*path: str | int, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        inner: Any = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


CHANGES = {
    "G2/schema/SC07/findings": put("schema_cases", "SC07", "findings", value=[]),
    "G2/schema/SC13/accepted": put("schema_cases", "SC13", "accepted", value=18),
    "G2/preservation/RC08/status": put("preservation_cases", "RC08", "judged", "status", value="FAIL_RATIO"),
    "G2/preservation/RC11/lcb_trtr": put("preservation_cases", "RC11", "judged", "lcb_trtr", value=0.8),
    "G2/release_rule/17": put("release_rule", 17, "decision", value="ELIGIBLE_POINT"),
    "G2/dpsgd/TCGA_BRCA_LATENT/3/sigma": put("dpsgd_plans", 1, "sigma", value=5.0),
    "G2/dpsgd/TCGA_BRCA_LATENT/3/epsilon": put("dpsgd_plans", 1, "epsilon_rdp", value=2.9),
    "G2/gaussian/0/epsilon_pld": put("gaussian_costs", 0, "epsilon_pld", value=0.01),
    "G2/gaussian/3/auroc_bound": put("auroc_bounds", 3, "bound", value=0.5),
    "G2/required_rows/2": put("required_rows", 1, "rows", value=70),
    "G2/batch_effect/after": put("batch_effect", "eta_squared_after", value=0.0),
    "G2/empty_data/G0_SUMS/everywhere": put("empty_data", 1, "values", 5, value=0.0),
    "G2/empty_data/G0_SUMS/G0_SUMS.values": put("empty_data", 1, "values", value=[]),
    "G2/empty_data/G0_COUNTS/size": put("empty_data", 0, "values", value=[0.001] * 18),
    "G2/dpsgd/dpsgd_plans": put("dpsgd_plans", value="none"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_answer_is_named(name: str, document: Document) -> None:
    changed = copy.deepcopy(document)
    CHANGES[name](changed)
    assert name in failures(changed)


def test_a_dropped_row_of_the_release_rule_is_missed(document: Document) -> None:
    changed = copy.deepcopy(document)
    changed["release_rule"].pop(5)
    assert "G2/release_rule/every_combination" in failures(changed)


# Inputs of which another value is another, equally right case; what they lead to is checked.
FREE = ("asked", "batch_effect", "empty_data", "auroc_bounds", "gaussian_costs")


def figures(document: Document) -> list[tuple[str, ...]]:
    """Paths of all claims, sampled evenly."""
    paths = [
        path
        for path, value in leaves(document)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not set(path) & set(FREE)
    ]
    return paths[:: len(paths) // 50]


def test_any_changed_figure_is_found(document: Document) -> None:
    paths = figures(document)
    assert {path[0] for path in paths} >= {"schema_cases", "preservation_cases", "release_rule", "dpsgd_plans"}
    unnoticed = []
    for path in paths:
        changed = copy.deepcopy(document)
        inner: Any = changed
        for key in path[:-1]:
            inner = inner[int(key)] if isinstance(inner, list) else inner[key]
        last = int(path[-1]) if isinstance(inner, list) else path[-1]
        inner[last] = 3 - inner[last] if path[0] == "release_rule" else inner[last] * 1.001 + 1
        if not failures(changed):
            unnoticed.append(path)
    assert unnoticed == []
