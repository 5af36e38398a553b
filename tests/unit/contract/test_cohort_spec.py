"""A registration that the contract could not keep is refused, and the message names the field."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from synth_platform.contract.cohort_spec import CohortSpecError, load_cohort_spec
from synth_platform.normalize.clinical import column_names

COHORTS = Path(__file__).resolve().parents[3] / "cohorts"


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


def change(document: dict[str, Any], where: str, value: Any) -> None:
    *parents, last = where.split(".")
    for parent in parents:
        document = document.setdefault(parent, {})
    document[last] = value


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (
            "plans.big",
            {"epsilon": 8.001, "delta": 1e-5},
            r"plans: .*big\.epsilon is 8\.001, above privacy\.budget\.epsilon = 8",
        ),
        ("plans.loose", {"epsilon": 0.5, "delta": 0.01}, r"plans: .*loose\.delta must be below 1/n_ref = 0\.01"),
        ("plans.eps0.5", {"epsilon": 0.6, "delta": 1e-5}, None),
        ("g0.shares", [0.2, 0.4, 0.5], r"g0\.shares: .*add up to 1\.1; they must add up to 1"),
        ("g0a.shares", [0.5, 0.65, 0.2, 0.1], r"g0a\.shares: .*add up to 1\.45; they must add up to 1"),
        ("g0.eigenvalue_bounds", [4.0, 0.05], r"g0\.eigenvalue_bounds: .*lower bound is above"),
        # 3 genes, 2 probes, age, and three nullable variables with an indicator each.
        ("g0.latent", 13, r"g0: .*latent is 13, but the cohort has only 12 features"),
        ("gates.membership_limit", 0.5, r"gates\.membership_limit"),
    ],
)
def test_what_would_fail_after_spending_is_refused_before(where, value, message, tmp_path, document) -> None:
    """Claim: these registrations pass no reading, so nothing is spent on them; the message names the field."""
    if message is None:  # a key with a dot in it
        document["plans"] = {"eps0.5": value}
        message = r"plans: .*eps0\.5\.epsilon is 0\.6, but its name says 0\.5"
    else:
        change(document, where, value)
    with pytest.raises(CohortSpecError, match=message):
        load(tmp_path, document)


def test_the_limits_themselves_are_fine(tmp_path, document) -> None:
    """Claim (the others' control): a plan of the whole cap, as many directions as features, shares by thirds."""
    document["plans"] = {"eps8": {"epsilon": 8.0, "delta": 0.00999}, "eps8.0": {"epsilon": 8, "delta": 1e-5}}
    document["g0"] = {"latent": 12, "shares": [1 / 3, 1 / 3, 1 / 3]}
    assert load(tmp_path, document).g0.latent == 12


def test_a_default_counts_like_a_registered_value(tmp_path, document) -> None:
    """Claim: the default of six directions is refused for five features, but only where G0 is asked for."""
    document["clinical"] = document["clinical"][:4]
    document["expression"]["panel"] = document["expression"]["panel"][:2]
    with pytest.raises(CohortSpecError, match=r"g0: .*latent is 6, but the cohort has only 5 features"):
        load(tmp_path, document)
    document["generators"] = ["G0A"]
    assert load(tmp_path, document).g0.latent == 6


def test_every_wrong_field_is_named_at_once(tmp_path, document) -> None:
    document["plans"] = {"eps2": {"epsilon": 9.0, "delta": 0.5}}
    document["g0"] = {"shares": [0.1, 0.1, 0.1]}
    document["g0a"] = {"shares": [0.1, 0.1, 0.1, 0.1]}
    with pytest.raises(CohortSpecError, match=r"3 field\(s\) to correct") as caught:
        load(tmp_path, document)
    for words in ("g0.shares", "g0a.shares", "plans", "name says 2", "privacy.budget.epsilon", "1/n_ref"):
        assert words in str(caught.value)


def test_features_are_counted_as_the_encoder_makes_them() -> None:
    """The contract cannot ask the encoder; both must count the columns of the bundled cohorts alike."""
    for name in ("virtual", "tcga_brca"):
        registered = load_cohort_spec(COHORTS / name / "cohort.yaml")
        for variable in registered.clinical:
            assert variable.columns == len(column_names(variable))


def test_ids_must_match_their_pattern(tmp_path, document) -> None:
    document["methylation"]["id_pattern"] = r"cg\d{8}"
    load(tmp_path, document)
    document["methylation"]["panel"] = ["cg00000029", "patient_id"]
    with pytest.raises(CohortSpecError, match=r"methylation.*1 id\(s\) do not match id_pattern"):
        load(tmp_path, document)


@pytest.mark.parametrize("key", ["eps8.0", "eps08", "eps8.000000", "eps8.0000001", "eps\uff18", "eps0008.00"])
def test_an_unregistered_plan_has_one_name(make_spec, key: str) -> None:
    """Claim: the table of one promise cannot leave under a second name; the refusal names the one there is."""
    spec = make_spec()
    assert spec.plan("eps8").epsilon == 8
    with pytest.raises(CohortSpecError, match=rf"plan '{key}' is called 'eps8'; use that key"):
        spec.plan(key)


def test_a_registered_plan_is_the_name_of_its_promise(tmp_path, document) -> None:
    """Claim: where cohort.yaml names (epsilon, domain delta), eps<number> is no second name for it; keys of
    registered plans are free, and another delta is another promise."""
    delta = document["privacy"]["budget"]["delta"]
    document["plans"] = {"half": {"epsilon": 0.5, "delta": delta}, "tight": {"epsilon": 0.25, "delta": delta / 2}}
    spec = load(tmp_path, document)
    with pytest.raises(CohortSpecError, match=r"plan 'eps0\.5' is called 'half'"):
        spec.plan("eps0.5")
    assert [spec.plan(key).epsilon for key in ("half", "tight", "eps0.25")] == [0.5, 0.25, 0.25]
