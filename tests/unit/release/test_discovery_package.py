"""The package of a list: written whole or not at all, readable by somebody who knows nothing of the platform."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.release.discovery_package import list_frame, list_sha256, write_list
from synth_platform.release.folder import PackageError, verify_package

FILES = {"README.md", "SHA256SUMS", "decision.json", "discoveries.png", "ledger.json", "table.csv", "table.parquet"}
NAME = "toy-discovery-basal-mu2-alpha0.05-top4"


def write(paid: Any, root: Path, **changes: Any) -> Path:
    decision = changes.pop("decision", None) or paid.decide()
    arguments = {
        "name": NAME,
        "spec": paid.spec,
        "e_values": paid.e_values,
        "discoveries": paid.discoveries,
        "decision": decision,
        "ledger_table": paid.ledger.table(),
    }
    return write_list(root, **{**arguments, **changes})


def readme(folder: Path) -> str:
    return " ".join((folder / "README.md").read_text("utf-8").split())


def test_a_package_is_written_whole(paid: Any, tmp_path: Path) -> None:
    """Claim: seven files, in a folder that `sha256sum` accepts; both tables hold the list, the decision is the one that
    was made; nothing else lies in the released zone."""
    folder = write(paid, tmp_path / "released")
    assert {file.name for file in folder.iterdir()} == FILES
    assert [path.name for path in folder.parent.iterdir()] == [NAME]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    verify_package(folder)
    table = pl.read_parquet(folder / "table.parquet")
    assert table.to_dicts() == paid.discoveries["list"]
    assert table.schema == {"rank": pl.Int64, "feature": pl.String, "log_e": pl.Float64, "discovered": pl.Boolean}
    assert pl.read_csv(folder / "table.csv").equals(table)
    assert json.loads((folder / "decision.json").read_text("utf-8")) == paid.decide()
    assert (folder / "discoveries.png").read_bytes().startswith(b"\x89PNG")


def test_the_ledger_goes_with_it(paid: Any, tmp_path: Path) -> None:
    """Claim: domain, unit, delta, cost, every entry in order with its mechanism, and the head they rest on; no name of
    private rows and no run."""
    document = json.loads((write(paid, tmp_path) / "ledger.json").read_text("utf-8"))
    assert set(document) == {"domain", "unit", "delta", "cost", "entries", "head_hash"}
    assert [entry["entry_id"] for entry in document["entries"]] == paid.e_values["entries"]
    assert document["cost"]["mu"] == paid.decide()["ledger"]["mu"]
    assert document["head_hash"] == paid.ledger.table()[-1]["hash"]
    content = "".join(p.read_text("utf-8") for p in (tmp_path / NAME).iterdir() if p.suffix in (".json", ".md", ".csv"))
    for row in paid.ledger.chain():
        assert row["entry_id"] is None or row["input_fingerprint"] not in content
    assert "run-17" not in content


def test_the_readme_says_what_was_found_and_what_it_cost(paid: Any, tmp_path: Path) -> None:
    """Claim: in words: how many of how many at which rate, who was compared, what a discovery is not, mu as the README
    of anything private has to tell it, and every entry."""
    text = readme(write(paid, tmp_path))
    found = paid.discoveries["discoveries"]
    for words in (
        "# Toy cohort: private discoveries",
        f"{found} discoveries among 8 hypotheses, at a false discovery rate of 0.05.",
        "the 4 selected hypotheses",
        "contrast `basal`, groups of 61 and 43 records.",
        "variable: subtype; case: A; control: every other value; features: expression; the family of hypotheses has "
        f"digest `{'f' * 64}`.",
        "4 of 8 hypotheses were selected (fixed size)",
        "(2-GDP)",
        "Spent by the entries in `ledger.json`: mu 2,",
        "| E_SELECTION | choice by Gumbel noise, 4 times |",
        "| E_VALUES | Gaussian noise |",
        "that is no evidence against it",
        "A discovery is two-sided: it does not tell whether values are higher in cases or lower.",
        "The rate is that of this one list.",
        paid.spec.registration_of(paid.plan),
    ):
        assert words in text, words
    assert "{{" not in text
    assert "None" not in text


def test_a_survival_list_speaks_of_one_group(pay: Any, tmp_path: Path) -> None:
    paid = pay(contrast="survival")
    text = readme(write(paid, tmp_path))
    assert "contrast `survival`, one group of 104 records." in text
    assert "whether higher or lower values live longer." in text


def test_a_study_of_genotypes_has_the_same_package(paid: Any, tmp_path: Path) -> None:
    """Claim: the package is one of a contrast, whatever was compared; sizes are those of the phenotype."""
    study = GenotypeSpec.model_validate(
        {
            "name": "toy",
            "kind": "genotypes",
            "title": "Toy study",
            "dua_tag": "RELEASE_REVIEWED",
            "privacy": {"domain": "toy", "budget": {"epsilon": 40.0, "delta": 1e-5}},
            "genotypes": {"file": "g.vcf", "variants": 8, "list_sha256": "0" * 64},
            "phenotypes": {
                "basal": {"file": "p.csv", "column": "asthma", "case": ["1"], "control": ["0"], "sizes": [70, 90]}
            },
        }
    )
    decision = paid.decide(spec=study, stage="gwas")
    assert (decision["generator"], decision["decision"]) == ("gwas", "ELIGIBLE_FORMAL")
    folder = write(paid, tmp_path, spec=study, decision=decision, name="toy-gwas-basal")
    assert "# Toy study: private discoveries" in readme(folder)
    assert "groups of 70 and 90 records" in readme(folder)


@pytest.mark.parametrize(
    ("fields", "spec", "said"),
    [
        ({"decision": "BLOCKED", "reasons": ["SEEDED_NOISE"]}, {}, "is BLOCKED (SEEDED_NOISE)"),
        ({"decision": "BLOCKED"}, {}, "is BLOCKED"),
        ({"reasons": ["DUA_NOT_REVIEWED"]}, {}, "(DUA_NOT_REVIEWED)"),
        ({"decision": "ELIGIBLE_POINT"}, {}, "is ELIGIBLE_POINT"),
        ({}, {"dua_tag": "OPEN"}, "(not reviewed)"),
    ],
    ids=["blocked", "blocked without reason", "reasons", "grade of tables", "agreement"],
)
def test_what_may_not_leave_is_not_written(paid: Any, tmp_path: Path, fields: Any, spec: Any, said: str) -> None:
    root = tmp_path / "released"
    with pytest.raises(PackageError, match="NOT_ELIGIBLE") as refused:
        write(paid, root, decision=paid.decide() | fields, spec=paid.spec.model_copy(update=spec))
    assert said in str(refused.value)
    assert not root.exists()


def test_an_entry_that_was_not_paid_stops_it(paid: Any, tmp_path: Path) -> None:
    rows = [row for row in paid.ledger.table() if row["state"] != "committed"]
    with pytest.raises(ValueError, match="is not reserved and committed"):
        write(paid, tmp_path / "released", ledger_table=rows)
    assert not (tmp_path / "released").exists()


def test_the_same_list_twice_is_one_package(paid: Any, tmp_path: Path) -> None:
    """Claim: written again, the same list gives the same folder, byte for byte; another list under its name is
    refused, and the first stays."""
    folder = write(paid, tmp_path)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert write(paid, tmp_path) == folder
    other = paid.discoveries | {"list": paid.discoveries["list"][:-1]}
    with pytest.raises(PackageError, match="EXISTS"):
        write(paid, tmp_path, discoveries=other)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_list_is_known_by_its_table(paid: Any, tmp_path: Path) -> None:
    """Claim: the register's name of a list is the SHA-256 of the table in its package; one flag makes another list."""
    folder = write(paid, tmp_path)
    assert list_sha256(paid.discoveries) == hashlib.sha256((folder / "table.parquet").read_bytes()).hexdigest()
    lines = [dict(line) for line in paid.discoveries["list"]]
    assert list_sha256({"list": lines}) == list_sha256(paid.discoveries)
    lines[0]["discovered"] = not lines[0]["discovered"]
    assert list_sha256({"list": lines}) != list_sha256(paid.discoveries)


def test_a_list_without_discoveries_is_a_list(paid: Any, tmp_path: Path) -> None:
    """Claim: nothing found is a result: its package says so."""
    nothing = paid.discoveries | {
        "discoveries": 0, "list": [dict(line) | {"discovered": False} for line in paid.discoveries["list"]],
    }  # fmt: skip
    folder = write(paid, tmp_path, discoveries=nothing)
    assert readme(folder).startswith("# Toy cohort: private discoveries 0 discoveries among 8 hypotheses")
    assert list_frame(nothing)["discovered"].sum() == 0
    one = write(paid, tmp_path / "one", discoveries=nothing | {"discoveries": 1})
    assert "discoveries 1 discovery among 8 hypotheses" in readme(one)


@pytest.mark.parametrize("harm", ["altered", "missing", "added"])
def test_an_alteration_is_found(paid: Any, tmp_path: Path, harm: str) -> None:
    folder = write(paid, tmp_path)
    file = folder / "discoveries.png"
    if harm == "altered":
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    elif harm == "missing":
        file.unlink()
    else:
        (folder / "before_noise.png").write_bytes(b"x")
    with pytest.raises(PackageError, match=r"discoveries\.png|before_noise\.png"):
        verify_package(folder)
