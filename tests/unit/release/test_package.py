"""Release packages: only eligible ones, written whole, nothing private in them, every alteration found by name."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting
import polars as pl
import pytest

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.privacy.accounting import compose
from synth_platform.privacy.events import event_from_json
from synth_platform.release import package
from synth_platform.release.folder import PackageError, verify_package
from synth_platform.release.package import write_package
from tests.unit.release.conftest import toy_spec

PRIVATE_FIGURE = 0.123457  # stands for every gate figure: a function of private rows
INPUT_FINGERPRINT = "f" * 64


def spec(**changes: Any) -> CohortSpec:
    return toy_spec(**{"expression": {"unit": "tpm", "panel": ["G1", "G2"], "annotation": "none"}, **changes})


def table(**columns: Any) -> pl.DataFrame:
    rows = {
        "row_key": ["S-000001", "S-000002", "S-000003"],
        "subtype": ["A", "B", "A"],
        "days": [1.5, 20.0, 99.0],
        "died": [1, 0, 1],
        "G1": [0.1, None, 3.0],
        "G2": [1 / 3, 2.0, 5.0],
    }
    return pl.DataFrame({**rows, **columns})


def decision(**changes: Any) -> dict[str, Any]:
    f = PRIVATE_FIGURE
    endpoint = {"tstr": f, "trtr": f, "preservation": f, "skill": f, "lift": f, "minimum": f, "status": "PASS_POINT"}
    attack = {"auroc": f, "upper": f, "standard_error": f, "tpr_at_1pct_fpr": f}
    document = {
        "cohort": "toy",
        "generator": "G0",
        "plan": "eps1",
        "epsilon": 1.0,
        "delta": 1e-5,
        "mu": 0.25,
        "utility": {"status": "PASS_POINT", "design": "cross_fit"},
        "endpoints": {name: dict(endpoint) for name in ("c_index", "macro_f1", "auroc", "spearman")},
        "closest_record": {
            "duplicates": 0, "train_closer": f, "train_closer_upper": f, "excess": f, "excess_upper": f,
            "ratio_5": f, "ratio_50": f, "status": "PASS",
        },
        "membership": {"attacks": {"A1": attack, "A2": attack}, "rows": 37201, "required_rows": 701,
                       "status": "PASS_CONFIRMED", "design": "half_split", "power": f},
        "inference": {"status": "UNDECIDED", "attribute_inference": {"status": "UNDECIDED", "training": f}},
        "power": {"utility": {"auroc": {"power": f, "rows": 37201}}},
        "limits": {"membership_limit": 0.55, "train_closer_tolerance": 0.115, "excess_tolerance": 0.047},
        "registration": "e5" * 32,
        "ledger": {"status": "OK", "epsilon_rdp": 0.99, "epsilon_pld": 0.98, "mu": 0.25, "auroc_bound": 0.73,
                   "entries": ["e1", "e2"], "reasons": []},
        "schema": {"violations": 0},
        "decision": "ELIGIBLE_POINT",
        "reasons": [],
        "notes": ["NO_PRIVATE_LIFT"],
    }  # fmt: skip
    return {**document, **changes}


def test_the_limits_a_table_passed_under_go_out_with_it(tmp_path: Path) -> None:
    """Claim: a limit that was loosened is read in the package, not taken for the default."""
    limits = {"membership_limit": 0.72, "train_closer_tolerance": 0.4, "excess_tolerance": 0.2}
    loosened = decision(limits=limits, notes=["LOOSENED_MEMBERSHIP_LIMIT"])
    path = write(tmp_path, decision=loosened)
    published, text = json.loads((path / "decision.json").read_text()), (path / "README.md").read_text()
    assert (published["limits"], published["registration"]) == (limits, "e5" * 32)
    assert "AUROC at most 0.72" in text
    assert "held to an AUROC of 0.72" in text
    assert "nearer to training rows at most 0.9, near share at most 0.25" in text
    assert "LOOSENED_MEMBERSHIP_LIMIT" in text
    assert "default of 0.55" in text
    assert "e5" * 32 in text


def test_the_designs_and_weak_gates_are_told(tmp_path: Path) -> None:
    """Claim: a reader learns how a verdict was reached and where a gate could hardly have said otherwise."""
    text = (write(tmp_path, decision=decision(notes=["LOW_POWER_UTILITY"])) / "README.md").read_text()
    assert "Judged by cross-fitting" in text
    assert "| membership, by repeated half splits | PASS_CONFIRMED |" in text
    assert "| attribute inference, singling out | UNDECIDED | success at most 5 points above" in text
    assert "LOW_POWER_UTILITY: on so few rows" in text


def test_the_readme_promises_only_what_is_proved(tmp_path: Path) -> None:
    """Claim: the guarantee is worded for the table's content; publication and statuses are said to be outside it."""
    text = " ".join((write(tmp_path) / "README.md").read_text().split())
    assert "changes the probability of any content of the table by" in text
    assert "any outcome" not in text
    assert "Whether a table was published at all, and the statuses, grade and notes beside it," in text
    assert "they carry no such guarantee" in text
    assert "LOOSENED" not in text


def ledger_rows() -> list[dict[str, Any]]:
    rows = []
    for entry_id, multiplier in (("e1", 5.0), ("other", 1.0), ("e2", 8.0)):
        for state in ("reserved", "committed"):
            rows.append(
                {
                    "id": len(rows) + 1,
                    "state": state,
                    "domain": "toy",
                    "entry_id": entry_id,
                    "cohort": "toy",
                    "code": f"G0_{entry_id.upper()}",
                    "event": json.dumps({"type": "GaussianDpEvent", "noise_multiplier": multiplier}),
                    "sensitivity": 1.0,
                    "scale": multiplier,
                    "neighbouring": "add_remove",
                    "noise_source": "cryptographic",
                    "input_fingerprint": INPUT_FINGERPRINT,
                    "request_fingerprint": INPUT_FINGERPRINT,
                    "run_id": "run-17",
                    "hash": f"{len(rows):064x}",
                }
            )
    rows.append({**dict.fromkeys(rows[0]), "id": 7, "state": "budget", "domain": "toy", "hash": "0" * 64})
    return rows


def write(root: Path, **changes: Any) -> Path:
    arguments = {
        "name": "toy-G0-eps1",
        "spec": spec(),
        "table": table(),
        "decision": decision(),
        "ledger_table": ledger_rows(),
    }
    return write_package(root, **{**arguments, **changes})


def test_the_package_is_whole_and_the_table_survives_it(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert {file.name for file in path.iterdir()} == {
        "table.parquet", "table.csv", "data_dictionary.csv", "ledger.json", "decision.json", "README.md", "SHA256SUMS",
    }  # fmt: skip
    assert pl.read_parquet(path / "table.parquet").equals(table())
    assert pl.read_csv(path / "table.csv").equals(table())
    dictionary = pl.read_csv(path / "data_dictionary.csv")
    assert dictionary["column"].to_list() == table().columns
    assert dictionary.row(by_predicate=pl.col("column") == "days", named=True)["maximum"] == 99
    assert dictionary.row(by_predicate=pl.col("column") == "G1", named=True)["unit"] == "tpm"
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left beside it


def test_checksums_are_the_ones_coreutils_computes(tmp_path: Path) -> None:
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=write(tmp_path), check=False)
    assert checked.returncode == 0


def test_a_table_is_known_before_it_is_written(tmp_path: Path) -> None:
    """Claim: by the checksum that SHA256SUMS lists for table.parquet, so that a recalled table is refused in time."""
    listed = dict(reversed(line.split("  ")) for line in (write(tmp_path) / "SHA256SUMS").read_text().splitlines())
    assert package.table_sha256(table()) == listed["table.parquet"]
    assert package.table_sha256(table(days=[1.5, 20.0, 98.0])) != listed["table.parquet"]


def test_the_cost_can_be_recomposed_from_the_package_alone(tmp_path: Path) -> None:
    ledger = json.loads((write(tmp_path) / "ledger.json").read_text())
    assert [entry["entry_id"] for entry in ledger["entries"]] == ["e1", "e2"]
    events = [event_from_json(entry["event"]) for entry in ledger["entries"]]
    assert events == [dp_accounting.GaussianDpEvent(5.0), dp_accounting.GaussianDpEvent(8.0)]
    assert compose(events, ledger["delta"]).mu == pytest.approx((1 / 25 + 1 / 64) ** 0.5, rel=1e-12)
    assert ledger["head_hash"] == f"{5:064x}"  # the commit of e2, not the last row of the domain


def test_nothing_private_leaves_under_statuses_only(tmp_path: Path) -> None:
    path = write(tmp_path)
    for file in set(path.iterdir()) - {path / "SHA256SUMS"}:
        text = file.read_bytes().decode("utf-8", errors="replace")
        for private in (str(PRIVATE_FIGURE), INPUT_FINGERPRINT, "run-17", "37201", "other"):
            assert private not in text or (file.name == "README.md" and private == "other"), (file.name, private)
    published = json.loads((path / "decision.json").read_text())
    assert published["endpoints"]["auroc"] == {"status": "PASS_POINT"}
    assert published["notes"] == ["NO_PRIVATE_LIFT"]


def test_aggregates_go_out_only_where_the_policy_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, spec=spec(publication="aggregates"))
    published = json.loads((path / "decision.json").read_text())
    assert published["endpoints"]["auroc"]["preservation"] == PRIVATE_FIGURE
    assert set(published["membership"]["attacks"]["A1"]) == {"auroc", "upper", "tpr_at_1pct_fpr"}
    assert "rows" not in published["membership"]  # the size of the private cohort is not an aggregate of the gates
    assert str(PRIVATE_FIGURE) in (path / "README.md").read_text()


def test_the_readme_says_what_it_is_what_it_cost_and_how_to_verify(tmp_path: Path) -> None:
    text = (write(tmp_path) / "README.md").read_text()
    for phrase in ("ELIGIBLE_POINT", "3 synthetic rows", "e^1,", "1e-05", "G0_E1", "sha256sum --check", "0.73"):
        assert phrase in text
    assert "NO_PRIVATE_LIFT" in text
    assert "{{" not in text


@pytest.mark.parametrize(
    "changes",
    [
        {"decision": decision(decision="BLOCKED", reasons=["UTILITY_FAIL"], utility={"status": "FAIL"})},
        {"decision": decision(utility={"status": "FAIL"})},  # says eligible, its statuses do not
        {"decision": decision(decision="ELIGIBLE_CONFIRMED")},  # a better grade than its statuses give
        {"decision": decision(reasons=["CONTROL_GENERATOR"])},
        {"decision": decision(generator="S_PUBLIC")},
        {"decision": decision(schema={"violations": 1})},
        {"decision": decision(cohort="another")},
        {"spec": spec(dua_tag="OPEN")},
    ],
)
def test_what_is_not_eligible_is_not_written(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="NOT_ELIGIBLE"):
        write(tmp_path, **changes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keys", [["P-000001", "S-000002", "S-000003"], ["S-000001"] * 3, [None, "S-1", "S-000003"]])
def test_rows_with_keys_of_origin_never_leave(keys: list[str | None], tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="ORIGIN_KEY") as error:
        write(tmp_path, table=table(row_key=keys))
    assert "P-000001" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_unregistered_columns_and_unpaid_entries_never_leave(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 column"):
        write(tmp_path, table=table(hospital=["x", "y", "z"]))
    with pytest.raises(ValueError, match="entry e2"):
        write(tmp_path, ledger_table=ledger_rows()[:5])  # reserved, never committed
    assert list(tmp_path.iterdir()) == []


def test_the_same_package_again_is_the_same_package(tmp_path: Path) -> None:
    first = write(tmp_path)
    before = first.stat().st_mtime_ns
    grown = [*ledger_rows(), {**ledger_rows()[0], "id": 8, "entry_id": "later"}]
    assert write(tmp_path, ledger_table=grown) == first
    assert first.stat().st_mtime_ns == before


def test_another_package_under_the_same_name_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(PackageError, match="EXISTS"):
        write(tmp_path, table=table(died=[0, 0, 0]))
    verify_package(path)


@pytest.mark.parametrize("name", ["../up", "", ".hidden", "a/b"])
def test_a_name_is_a_plain_folder_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="NAME"):
        write(tmp_path, name=name)


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda p: _append(p / "table.csv"), "FILE_ALTERED: table.csv"),
        (lambda p: (p / "ledger.json").unlink(), "FILE_MISSING: ledger.json"),
        (lambda p: (p / "extra.txt").write_text("x"), "FILE_UNLISTED: extra.txt"),
        (lambda p: (p / "SHA256SUMS").unlink(), "CHECKSUMS_MISSING"),
        (lambda p: (p / "SHA256SUMS").write_text("nonsense\n"), "CHECKSUMS_UNREADABLE"),
        (lambda p: (p / "SHA256SUMS").write_text(f"{'0' * 64}  ../table.csv\n"), "CHECKSUMS_UNREADABLE"),
    ],
)
def test_every_alteration_is_found_by_name(change: Callable[[Path], object], fault: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    change(path)
    with pytest.raises(PackageError, match=fault):
        verify_package(path)
    with pytest.raises(PackageError):
        write(tmp_path)  # an altered package is not taken for the same one


def test_a_crash_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(**_: Any) -> str:
        raise OSError("disk full")

    monkeypatch.setattr(package, "render_readme", crash)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []
