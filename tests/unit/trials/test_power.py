"""Power counted by the gates themselves, on small cohorts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from assets.power import KEY
from checks.power import power_check
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.evaluation.closest_record import closest_record_gate
from synth_platform.evaluation.membership import required_rows
from synth_platform.evaluation.utility import utility_gate
from synth_platform.sources.virtual import draw_cohort
from synth_platform.trials.power import fresh_tables, gate_power
from synth_platform.trials.stage import Stage, make_stage

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
DRAWS = 8


def small(**gates: Any) -> CohortSpec:
    document = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["source"]["options"] |= {"train": 120, "holdout": 60, "test": 60, "public": 150, "world_seed": 16}
    document["privacy"]["n_ref"] = 120
    document["synthetic"]["rows"] = 80
    document["gates"] |= {"power_draws": DRAWS, "groups": 10} | gates
    return CohortSpec.model_validate(document)


@pytest.fixture(scope="module")
def virtual() -> Stage:
    spec = small()
    return make_stage(spec, draw_cohort(spec))


@pytest.fixture(scope="module")
def judged(virtual: Stage) -> Any:
    return gate_power(virtual)


def real(stage: Stage, **gates: Any) -> Stage:
    """The same rows as those of a cohort that has no world to draw from."""
    spec = stage.spec
    return replace(
        stage,
        spec=spec.model_copy(
            update={
                "source": spec.source.model_copy(update={"reader": "tables"}),
                "gates": spec.gates.model_copy(update=gates),
            }
        ),
    )


def test_power_is_the_share_of_fresh_draws_that_the_gates_pass(virtual: Stage, judged: Any) -> None:
    """Claim: draw by draw the statuses are those of the gates as assets call them, on R averaged tables; the power is
    their share, and what is below the floor is named."""
    spec, figures = virtual.spec, judged["summary"]
    train, test = virtual.real.where_split("train"), virtual.real.where_split("test")
    utility, closest = [], []
    for seed in judged["evidence"]["seeds"]:
        tables = fresh_tables(virtual, seed)
        utility.append(
            utility_gate(
                train=train, replicates=tables, test=test, endpoints=spec.endpoints, classes=3, groups=spec.gates.groups
            )
        )
        closest.append(
            closest_record_gate(train, virtual.real.where_split("holdout", "test"), tables[0], spec.gates).status
        )
    assert len(utility) == DRAWS
    for name, power in figures["utility"].items():
        statuses = [verdict.endpoints[name].judged.status for verdict in utility]
        assert judged["evidence"]["utility"][name]["status"] == statuses
        assert power["power"] == sum(s.startswith("PASS") for s in statuses) / DRAWS
        assert (power["rows"], power["draws"], power["method"]) == (60, DRAWS, "world")
    assert figures["utility_gate"]["power"] == sum(v.status.startswith("PASS") for v in utility) / DRAWS
    assert judged["evidence"]["closest_record"]["status"] == closest
    assert figures["closest_record"]["false_alarm"] == closest.count("FAIL") / DRAWS
    named = figures["utility"] | {name: figures[name] for name in ("utility_gate", "membership", "closest_record")}
    assert figures["low"] == [name for name, f in named.items() if f["power"] < 0.8]
    assert judged["status"] == ("LOW_POWER" if figures["low"] else "OK")


def test_fresh_tables_are_new_people_in_released_form(virtual: Stage) -> None:
    """Claim: R tables of the registered size, none of whose rows is a private one, others for another seed."""
    tables = fresh_tables(virtual, 7)
    assert [len(table) for table in tables] == [80] * 5
    assert all(set(table.split) == {"synthetic"} for table in tables)
    assert not np.isin(tables[0].x[:, 0], virtual.real.x[:, 0]).any()
    assert not np.isin(fresh_tables(virtual, 8)[0].x[:, 0], tables[0].x[:, 0]).any()


def test_membership_has_its_own_law(virtual: Stage, judged: Any) -> None:
    """Claim: 120 rows a side cannot confirm anything below .55: power 0 by the bound, and it is named as low."""
    figures = judged["summary"]["membership"]
    attacks = len(virtual.spec.gates.attacks)
    assert (figures["power"], figures["rows"]) == (0.0, 120)
    assert figures["required_rows"] == required_rows(0.55, attacks=attacks)
    assert "membership" in judged["summary"]["low"]


def test_the_document_is_json_and_the_same_every_time(virtual: Stage, judged: Any) -> None:
    assert json.dumps(gate_power(virtual), sort_keys=True, allow_nan=False) == json.dumps(judged, sort_keys=True)
    assert judged["registration"] == virtual.spec.registration


@pytest.mark.parametrize("design", ["holdout", "cross_fit"])
def test_a_real_cohort_splits_its_training_rows(virtual: Stage, design: str) -> None:
    """Claim: without a world the method is half_split, in either design, on all its held-out rows; two exchangeable
    halves preserve each other, so the median is near 1."""
    judged = gate_power(real(virtual, utility_design=design, folds=2))
    rows = 60 if design == "holdout" else len(virtual.rows)
    for name, figures in judged["summary"]["utility"].items():
        assert (figures["method"], figures["rows"]) == ("half_split", rows)
        preservation = judged["evidence"]["utility"][name]["preservation"]
        assert len(set(preservation)) > 1
        assert 0.8 < np.median(preservation) < 1.25
    assert judged["summary"]["closest_record"]["method"] == "public_gaussian"


def test_a_design_that_cannot_be_carried_out_has_no_power(virtual: Stage) -> None:
    """Claim: three batches cannot make five folds, so the gate always holds."""
    judged = gate_power(real(virtual, utility_design="cross_fit", folds=5))
    assert {figures["power"] for figures in judged["summary"]["utility"].values()} == {0.0}
    assert {figures["rows_for_90"] for figures in judged["summary"]["utility"].values()} == {None}


def test_halves_are_harder_than_fresh_draws(virtual: Stage, judged: Any) -> None:
    """Claim: preservation spreads wider over halves than over fresh tables of a world, so the method errs on the safe
    side."""
    halves = gate_power(real(virtual))["evidence"]["utility"]
    for name, figures in judged["evidence"]["utility"].items():
        assert np.std(halves[name]["preservation"]) > 1.2 * np.std(figures["preservation"])


def test_the_check_names_gates_and_no_figure(judged: Any) -> None:
    low = power_check(judged, KEY)
    assert not low.passed
    assert low.severity.value == "WARN"
    assert "membership" in str(low.description)
    assert not any(character.isdigit() for character in str(low.description))
    fine = power_check({"status": "OK", "summary": {"low": []}}, KEY)
    assert fine.passed
