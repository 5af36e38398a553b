"""study.yaml: what cannot be kept is refused before a genotype is read, and the message names the field."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.genotype_spec import GenotypeSpec, load_genotype_spec

COHORTS = Path(__file__).resolve().parents[3] / "cohorts"
DOCUMENT: dict[str, Any] = {
    "name": "arrays",
    "kind": "genotypes",
    "title": "Eight samples on an array",
    "dua_tag": "RELEASE_REVIEWED",
    "privacy": {"domain": "arrays", "budget": {"epsilon": 8.0, "delta": 1e-4}},
    "genotypes": {"file": "array.vcf.gz", "variants": 5, "list_sha256": "0f" * 32},
    "phenotypes": {
        "diabetes": {
            "file": "phenotypes.csv", "column": "diagnosis", "case": ["E11", 2], "control": [0], "sizes": [3, 5],
        },
        "asthma": {"file": "fam", "sizes": [4, 4]},
    },
}  # fmt: skip
Load = Callable[[dict[str, Any]], GenotypeSpec]


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy(DOCUMENT)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(document: dict[str, Any]) -> GenotypeSpec:
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return load_genotype_spec(tmp_path / "study.yaml")

    return load


def change(document: dict[str, Any], where: str, value: Any) -> None:
    *parents, last = where.split(".")
    for parent in parents:
        document = document.setdefault(parent, {})
    if value is None:
        del document[last]
    else:
        document[last] = value


def test_a_valid_study_loads_with_its_defaults(load: Load, document: dict[str, Any]) -> None:
    spec = load(document)
    assert spec.contrasts == ("diabetes", "asthma")
    assert spec.phenotypes["diabetes"].case == ("E11", "2")
    assert (spec.genotypes.field, spec.phenotypes["diabetes"].key) == ("GT", "sample")
    assert [spec.phenotypes[name].from_fam for name in spec.contrasts] == [False, True]
    assert spec.sizes_of("asthma") == (4, 4)
    assert spec.plan_of("diabetes") == DiscoveryPlan("diabetes", 1.0, 0.05, "adaptive", 20)
    assert spec.discovery_plan("asthma-mu0.5-alpha0.1-top2") == DiscoveryPlan("asthma", 0.5, 0.1, 2)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("name", "Arrays", r"  name: "),
        ("name", "a-b", r"  name: "),
        ("kind", "omics", r"  kind: .*'genotypes'"),
        ("title", None, r"  title: Field required"),
        ("dua_tag", None, r"  dua_tag: Field required"),
        ("publication", "aggregates", r"  publication: Extra inputs"),
        ("privacy.domain", "Two words", r"  privacy\.domain: "),
        ("privacy.n_ref", 100, r"  privacy\.n_ref: Extra inputs"),
        ("privacy.budget.epsilon", 0, r"  privacy\.budget\.epsilon: "),
        ("privacy.budget.delta", 0.125, r"privacy\.budget\.delta: must be below one in the number of samples, 0\.125"),
        ("genotypes.file", None, r"  genotypes\.file: Field required"),
        ("genotypes.field", "GP", r"  genotypes\.field: "),
        ("genotypes.variants", 0, r"  genotypes\.variants: "),
        ("genotypes.list_sha256", "0F" * 32, r"  genotypes\.list_sha256: "),
        ("genotypes.list_sha256", "0f" * 31, r"  genotypes\.list_sha256: "),
        ("genotypes.list_sha256", 12345, r"  genotypes\.list_sha256: "),
        ("genotypes.frequency", 0, r"  genotypes\.frequency: "),
        ("genotypes.frequency", 1.0, r"  genotypes\.frequency: "),
        ("phenotypes", {}, r"  phenotypes: "),
        ("phenotypes.Diabetes", {"file": "fam", "sizes": [4, 4]}, r"  phenotypes\.Diabetes\.\[key\]: "),
        ("phenotypes.asthma.sizes", [8], r"  phenotypes\.asthma\.sizes"),
        ("phenotypes.asthma.sizes", [8, 0], r"  phenotypes\.asthma\.sizes\.1: "),
        ("phenotypes.asthma.case", ["2"], r"  phenotypes\.asthma: case, control: a \.fam says 2 for case"),
        ("phenotypes.diabetes.case", [], r"  phenotypes\.diabetes: case, control: needs at least one value for each"),
        ("phenotypes.diabetes.control", None, r"  phenotypes\.diabetes: case, control: needs at least one value"),
        ("phenotypes.diabetes.control", [0, "E11"], r"  phenotypes\.diabetes: case, control: .*none for both"),
        ("phenotypes.diabetes.case", [2, "2"], r"  phenotypes\.diabetes: case, control: a value appears twice"),
        ("phenotypes.diabetes.control", [0, 1, 0], r"  phenotypes\.diabetes: case, control: a value appears twice"),
        ("phenotypes.diabetes.case", "E11", r"  phenotypes\.diabetes\.case: "),
        ("phenotypes.diabetes.covariates", ["age"], r"  phenotypes\.diabetes\.covariates: Extra inputs"),
        ("discovery.mu", 0, r"  discovery\.mu: "),
        ("discovery.mu", 1 / 3, r"  discovery\.mu: finite, and at most six decimals"),
        ("discovery.mu", float("inf"), r"  discovery\.mu: Input should be less than or equal to 60"),
        ("discovery.alpha", 1, r"  discovery\.alpha: "),
        ("discovery.size", "fixed", r"  discovery\.size"),
        ("discovery.expected", 0, r"  discovery\.expected: "),
        ("discovery.mu", 61, r"  discovery\.mu: "),
        ("discovery.mu", 2, r"  discovery: mu: a list at mu = 2 costs epsilon = 10\.58 .*budget\.epsilon = 8: "),
        ("privacy.budget.epsilon", 1.0, r"  discovery: mu: a list at mu = 1 costs epsilon = 4\.792 .* at most 0\.2"),
        ("discovery.size", 6, r"  discovery: size: 6 of the 5 hypotheses of 'diabetes' cannot be selected"),
        ("discovery.contrasts", {}, r"  discovery\.contrasts: Extra inputs"),
    ],
)  # fmt: skip
def test_refused_registrations_name_file_and_field(
    where: str, value: Any, message: str, load: Load, document: dict[str, Any]
) -> None:
    change(document, where, value)
    with pytest.raises(CohortSpecError, match=rf"study\.yaml: \d field\(s\) to correct\n.*{message}"):
        load(document)


def test_every_field_to_correct_is_told_at_once(load: Load, document: dict[str, Any]) -> None:
    change(document, "genotypes.variants", 0)
    change(document, "genotypes.field", "GP")
    change(document, "phenotypes.asthma.sizes", [8, 0])
    with pytest.raises(CohortSpecError, match=r"3 field\(s\) to correct"):
        load(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", r"expected a mapping of fields, found list"),
        ("", r"expected a mapping of fields, found NoneType"),
        ("name: [", r"not readable as YAML"),
        (b"name: \xff", r"not readable as YAML"),
    ],
)
def test_what_is_no_mapping_is_refused(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CohortSpecError, match=rf"study\.yaml: {message}"):
        load_genotype_spec(path)


def test_a_folder_without_one_is_told_what_a_study_is(tmp_path: Path) -> None:
    with pytest.raises(CohortSpecError, match=r"no such file; a genotype study is a folder with a study\.yaml in it"):
        load_genotype_spec(tmp_path / "study.yaml")


def test_unknown_phenotypes_and_plans_say_which_there_are(load: Load, document: dict[str, Any]) -> None:
    spec = load(document)
    with pytest.raises(CohortSpecError, match="study 'arrays' has no phenotype 'gout'; it has diabetes, asthma"):
        spec.plan_of("gout")
    with pytest.raises(CohortSpecError, match=r"study 'arrays': no discovery plan .*contrasts are diabetes, asthma"):
        spec.discovery_plan("gout-mu1-alpha0.05")
    with pytest.raises(CohortSpecError, match=r"is called 'asthma-mu1-alpha0\.05'"):
        spec.discovery_plan("asthma-mu1.0-alpha0.05")


def test_the_registration_holds_what_a_list_depends_on_and_nothing_else(load: Load, document: dict[str, Any]) -> None:
    """Claim: other genotypes, another phenotype, domain or terms are another registration; words are not."""

    def registration(**changes: Any) -> str:
        changed = copy.deepcopy(document)
        for where, value in changes.items():
            change(changed, where.replace("__", "."), value)
        spec = load(changed)
        return spec.registration_of(spec.plan_of("diabetes"))

    first = registration()
    for same in ({"title": "x"}, {"phenotypes__diabetes__description": "x"}, {"phenotypes__asthma": None}):
        assert registration(**same) == first, same
    for other in (
        {"genotypes__list_sha256": "0e" * 32},
        {"genotypes__frequency": 0.3},
        {"genotypes__field": "DS"},
        {"phenotypes__diabetes__sizes": [4, 4]},
        {"phenotypes__diabetes__case": ["E11"]},
        {"privacy__domain": "elsewhere"},
        {"discovery__mu": 0.5},
        {"discovery__alpha": 0.1},
        {"discovery__size": 3},
        {"discovery__expected": 3},
    ):
        assert registration(**other) != first, other


def test_the_bundled_study_loads() -> None:
    spec = load_genotype_spec(COHORTS / "virtual_gwas" / "study.yaml")
    assert (spec.name, spec.contrasts) == ("virtual_gwas", ("disease",))


def test_what_a_list_was_made_of_outlives_the_defaults_of_its_study(load: Load, document: dict[str, Any]) -> None:
    first = load(document)
    change(document, "discovery", {"mu": 0.5, "alpha": 0.1, "size": 3, "expected": 3})
    for key in ("diabetes-mu1-alpha0.05", "diabetes-mu1-alpha0.05-for3", "diabetes-mu1-alpha0.05-top2"):
        specs = (first, load(document))
        assert len({spec.registration_of(spec.discovery_plan(key)) for spec in specs}) == 1
