"""Who is compared in a contrast and over which features, held against the clinical table read row by row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.discovery_options import Contrast
from synth_platform.contract.tables import CohortTables, split_public
from synth_platform.discovery.contrast import (
    ContrastRows,
    close_contrast,
    contrast_rows,
    contrast_study,
    family,
    group_sizes,
)
from synth_platform.discovery.documents import Study
from synth_platform.discovery.scores import SizesError
from synth_platform.discovery.statistics.log_rank import LogRank, Survival
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.queries import BoundedScores
from synth_platform.privacy.restricted import restricted_rows, seal
from synth_platform.sources.virtual import draw_cohort

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
S1: dict[str, Any] = {"variable": "subtype", "case": ["S1"], "sizes": [1, 1], "features": ["expression"]}
CONTRASTS: dict[str, dict[str, Any]] = {
    "s1": S1,
    "s1_s2": S1 | {"control": ["S2"]},
    "late": S1 | {"variable": "stage", "case": ["III", "IV"]},
    "latest": S1 | {"variable": "stage", "case": ["IV"], "control": ["I"]},
    "smoker": S1 | {"variable": "smoker", "case": [1], "features": ["methylation"]},
    "died": S1 | {"variable": "died", "case": [1], "control": [0], "features": ["methylation", "expression"]},
    "survival": {
        "variable": "survival_days", "sizes": [2], "features": ["methylation", "expression"], "statistic": "log_rank",
    },
}  # fmt: skip
TWO_GROUPS = [name for name in CONTRASTS if name != "survival"]


@dataclass(frozen=True)
class World:
    spec: CohortSpec
    private: CohortTables
    rows: EncodedRows
    reference: PublicReference

    def contrast_rows(self, name: str) -> ContrastRows:
        return contrast_rows(self.rows, self.private.clinical, self.spec.contrast(name), self.reference.encoder)

    def registered(self, **sizes: list[int]) -> CohortSpec:
        """The cohort with other group sizes."""
        document = self.spec.model_dump(mode="json")
        for name, registered in sizes.items():
            document["discovery"]["contrasts"][name]["sizes"] = registered
        return CohortSpec.model_validate(document)


def scores_of(study: Study[ContrastRows]) -> BoundedScores[ContrastRows]:
    """Those of the first query."""
    return study.asked_for(study.expected)[0]


@pytest.fixture(scope="module")
def world() -> World:
    """83 private patients of the virtual cohort, some without a stage; the clinical table in an order of its own."""
    document = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["source"]["options"] |= {"train": 41, "holdout": 23, "test": 19, "public": 200}
    document["discovery"] = {"contrasts": CONTRASTS}
    spec = CohortSpec.model_validate(document)
    public, private = split_public(draw_cohort(spec), spec)
    reference = build_reference(public, spec)
    rows = reference.encoder.encode(private)
    clinical = private.clinical.sample(fraction=1, shuffle=True, seed=3)
    stage = pl.when(pl.int_range(pl.len()) % 9 == 0).then(None).otherwise("stage").alias("stage")
    return World(spec, CohortTables(**(vars(private) | {"clinical": clinical.with_columns(stage)})), rows, reference)


@pytest.mark.parametrize("name", TWO_GROUPS)
def test_cases_and_controls_are_those_of_the_clinical_table(name: str, world: World) -> None:
    """Claim: a patient with a value of `case` is a case, with one of `control` (or any other) a control, without a
    value neither; each with the features of the family by name, in the encoder's order."""
    contrast, features = CONTRASTS[name], world.reference.encoder.features
    found = world.contrast_rows(name)
    values = {row["row_key"]: row[contrast["variable"]] for row in world.private.clinical.iter_rows(named=True)}
    case, control = ({str(v) for v in contrast.get(side, [])} for side in ("case", "control"))
    panels = [world.spec.expression.panel] if "expression" in contrast["features"] else []
    panels += [world.spec.methylation.panel] if "methylation" in contrast["features"] else []
    columns = [features.index(feature) for panel in panels for feature in panel]
    expected, outcome = [], []
    for x, key in zip(world.rows.x, world.rows.key, strict=True):
        value = values[key]
        if value is not None and (str(value) in case or not control or str(value) in control):
            expected.append(x[columns])
            outcome.append(str(value) in case)
    assert len(set(outcome)) == 2
    np.testing.assert_array_equal(found.values, np.array(expected))
    np.testing.assert_array_equal(found.outcome, np.array(outcome))
    assert group_sizes(found) == (sum(outcome), len(outcome) - sum(outcome))


def test_missing_values_leave_a_patient_out(world: World) -> None:
    assert world.private.clinical["stage"].null_count() >= 10
    assert sum(group_sizes(world.contrast_rows("late"))) == 83 - world.private.clinical["stage"].null_count()


def test_a_patient_without_a_clinical_row_is_neither(world: World) -> None:
    clinical = world.private.clinical.head(50)
    rows = contrast_rows(world.rows, clinical, world.spec.contrast("s1"), world.reference.encoder)
    assert sum(group_sizes(rows)) == 50


def test_log_rank_takes_every_private_row(world: World) -> None:
    rows = world.contrast_rows("survival")
    assert isinstance(rows.outcome, Survival)
    np.testing.assert_array_equal(rows.outcome.time, world.rows.time)
    np.testing.assert_array_equal(rows.outcome.event, world.rows.event == 1)
    assert rows.outcome.event.any()
    assert group_sizes(rows) == (83,)
    assert rows.values.shape == (83, 20)


def test_the_family_keeps_the_encoders_order(world: World) -> None:
    """Claim: in which order a contrast names its matrices changes no position."""
    both = (*world.spec.expression.panel, *world.spec.methylation.panel)
    assert family(world.spec.contrast("died"), world.reference.encoder) == both
    turned = Contrast.model_validate(CONTRASTS["died"] | {"features": ["expression", "methylation"]})
    assert family(turned, world.reference.encoder) == both
    assert family(world.spec.contrast("smoker"), world.reference.encoder) == world.spec.methylation.panel


def test_the_digest_is_that_of_all_private_rows_whatever_the_contrast(world: World) -> None:
    """Claim: the same patients under another contrast are recognised as the same, and other patients are not."""
    digests = {world.contrast_rows(name).source for name in CONTRASTS}
    assert digests == {content_digest(world.rows)}
    fewer = world.rows.take(slice(1, None))
    other = contrast_rows(fewer, world.private.clinical, world.spec.contrast("s1"), world.reference.encoder)
    assert other.source not in digests


def test_the_closed_contrast_holds_the_open_one(world: World) -> None:
    """Claim: joining costs nothing, opens nothing, and names the table alike for every contrast."""
    key = FingerprintKey(bytes(range(32)))
    fingerprints = set()
    for name in CONTRASTS:
        matrix = seal(world.rows, key=key, digest=content_digest)
        clinical = seal(world.private.clinical, key=key, digest=lambda _: b"clinical")
        closed = close_contrast(matrix, clinical, world.spec.contrast(name), world.reference.encoder)
        assert [access.kind for access in closed.accesses] == ["transform"]
        np.testing.assert_array_equal(restricted_rows(closed).values, world.contrast_rows(name).values)
        fingerprints.add(closed.fingerprint)
    assert fingerprints == {key.name(content_digest(world.rows))}


@pytest.mark.parametrize("name", list(CONTRASTS))
def test_rows_that_are_not_as_many_as_registered_are_refused_without_a_figure(name: str, world: World) -> None:
    rows = world.contrast_rows(name)
    sizes = group_sizes(rows)
    wrongs = {(sizes[0] + 1, *sizes[1:]), (*sizes[:-1], sizes[-1] - 1), (sizes[0] - 1, *(n + 1 for n in sizes[1:]))}
    for wrong in wrongs:
        spec = world.registered(**{name: list(wrong)})
        study = contrast_study(spec, spec.plan_of(name), world.reference)
        with pytest.raises(SizesError, match=f"contrast '{name}': .*`synth cohort check` counts them") as refusal:
            scores_of(study)(rows)
        assert not re.search(r"\d", str(refusal.value).replace(name, ""))


@pytest.mark.parametrize("name", list(CONTRASTS))
def test_scores_are_the_statistic_of_the_registered_groups(name: str, world: World) -> None:
    """Claim: one finite score a feature; sensitivity and parameters are those of the statistic, and the request tells
    the variable, both sides and the family."""
    rows = world.contrast_rows(name)
    spec = world.registered(**{name: list(group_sizes(rows))})
    study = contrast_study(spec, spec.plan_of(name), world.reference)
    features = family(spec.contrast(name), world.reference.encoder)
    scores, parameters = study.asked_for(study.expected)
    statistic = study.made_for(study.expected)
    assert scores.candidates == study.hypotheses == len(features)
    np.testing.assert_array_equal(scores(rows), statistic.log_e(rows.values, rows.outcome))
    assert (scores.name, scores.sensitivity) == (f"discovery.{statistic.name}", statistic.sensitivity)
    assert scores.neighbouring == "replace_one"
    assert parameters == {**study.compared, "statistic": dict(statistic.parameters)}
    assert study.names([2, 0]) == [features[2], features[0]]
    assert study.compared["variable"] == CONTRASTS[name]["variable"]
    assert study.compared["features"] == list(CONTRASTS[name]["features"])
    assert study.compared["case"] == sorted(map(str, CONTRASTS[name].get("case", [])))
    assert isinstance(statistic, LogRank) == (name == "survival")


def test_other_families_and_sides_are_other_requests(world: World) -> None:
    compared = [
        tuple(map(str, contrast_study(world.spec, world.spec.plan_of(name), world.reference).compared.values()))
        for name in CONTRASTS
    ]
    assert len(set(compared)) == len(CONTRASTS)
