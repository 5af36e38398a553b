"""`synth cohort check | tolerances`: what is wrong, by which rule, before anything is spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from synth_platform.cli.main import app
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.sources.virtual import draw_cohort

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
Change = Callable[[pl.DataFrame], pl.DataFrame]


def synth(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def document() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    del document["discovery"]  # its sizes are those of the whole cohort
    document["source"]["options"] |= {"train": 30, "holdout": 10, "test": 10, "public": 40}
    document["privacy"]["n_ref"] = 60
    return document


@pytest.fixture
def make(document: dict[str, Any], tmp_path: Path) -> Callable[..., Path]:
    """A folder of Parquet tables with its cohort.yaml; `changes` harm single tables."""

    def folder(**changes: Change) -> Path:
        tables = draw_cohort(CohortSpec.model_validate(document))
        for name, frame in tables:
            changes.get(name, lambda frame: frame)(frame).write_parquet(tmp_path / f"{name}.parquet")
        document["generators"] = ["G0", "G0A", "S_COPY"]
        document["source"] = {"reader": "tables", "files": {name: f"{name}.parquet" for name, _ in tables}}
        (tmp_path / "cohort.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        return tmp_path

    return folder


def test_every_finding_comes_with_its_rule(make: Callable[..., Path]) -> None:
    """Claim: in the table and in JSON, bounds, types and remedies; the cells and keys nowhere."""
    folder = make(
        clinical=lambda frame: frame.with_columns(
            pl.Series("age", [777, *frame["age"][1:]]), pl.col("marker").cast(pl.String), pl.lit("Jane").alias("ward")
        )
    )
    result, plain = synth("cohort", "check", folder, "--json"), synth("cohort", "check", folder)
    assert (result.exit_code, plain.exit_code) == (2, 2)
    rules = {r["code"]: r["rule"] for r in json.loads(result.stdout)["rejections"]}
    assert rules == {
        "RANGE": "[18, 95] whole",
        "DTYPE": "a number, but the column holds String: at least one cell is no number",
        "UNKNOWN_FIELD": "not registered: remove the column, or add it to clinical in cohort.yaml",
    }
    assert "[18, 95] whole" in plain.stdout
    for word in ("777", "Jane", "ward", "P-0"):
        assert word not in result.output + plain.output


def of_splits(**renamed: str) -> Change:
    return lambda frame: frame.with_columns(pl.col("split").replace(renamed))


@pytest.mark.parametrize(
    ("renamed", "empty"),
    [({"public": "train"}, "public"), ({"train": "holdout"}, "train"), ({"test": "holdout"}, "test")],
)
def test_an_empty_split_is_found_before_a_run(make: Callable[..., Path], renamed: dict[str, str], empty: str) -> None:
    """Claim: `check` and `tolerances` refuse it with exit code 2, in words."""
    folder = make(manifest=of_splits(**renamed))
    result = synth("cohort", "check", folder, "--json")
    assert result.exit_code == 2
    [finding] = json.loads(result.stdout)["rejections"]
    assert (finding["code"], finding["column"], finding["count"]) == ("SPLIT_EMPTY", f"split ({empty})", 1)
    refused = synth("cohort", "tolerances", folder)
    assert refused.exit_code == 2
    assert "the contract refuses cohort 'virtual'" in refused.stderr
    assert f"synth cohort check {folder}" in refused.stderr


def only_public(rows: int) -> Change:
    """All public rows but the first few become holdout rows."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        late = (pl.col("split") == "public") & (pl.col("split").cum_count().over("split") > rows)
        return frame.with_columns(pl.when(late).then(pl.lit("holdout")).otherwise("split").alias("split"))

    return change


def test_public_rows_that_span_too_little_are_found_before_a_run(
    make: Callable[..., Path], document: dict[str, Any]
) -> None:
    """Claim: five public rows span four directions; G0 asks for six, and `check` says so. With forty it is content."""
    whole = synth("cohort", "check", make(), "--json")
    assert (whole.exit_code, json.loads(whole.stdout)["public_rows"]) == (0, None)
    document["source"] = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))["source"]
    document["source"]["options"] |= {"train": 30, "holdout": 10, "test": 10, "public": 40}
    folder = make(manifest=only_public(5))
    result = synth("cohort", "check", folder, "--json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert (found["accepted"], found["rejections"]) == (False, [])
    assert "G0: latent = 6, but the 5 public rows span only 4" in found["public_rows"]
    assert found["public_rows"] in synth("cohort", "check", folder).stderr


def test_one_public_row_is_said_in_words(make: Callable[..., Path]) -> None:
    """Claim: nothing can be standardised by one row; `check` and `tolerances` end with 2 and no traceback."""
    folder = make(manifest=only_public(1))
    for command in ("check", "tolerances"):
        result = synth("cohort", command, folder)
        assert result.exit_code == 2
        assert "cohort 'virtual': public rows: " in result.stderr
        assert "fewer than two observed public values" in result.stderr


def test_the_size_that_membership_needs_is_told(make: Callable[..., Path]) -> None:
    """Claim: (z(1 - .05/3) + z(.9))^2 / (6 .05^2) = (2.128045 + 1.281552)^2 / .015 = 775.02 rows a side (8-1 §3.4)."""
    folder = make()
    for command in ("check", "tolerances"):
        assert "about 776 rows a side at limit 0.55 (n_ref here: 60)" in synth("cohort", command, folder).stdout
        document = json.loads(synth("cohort", command, folder, "--json").stdout)
        assert document["membership_rows"] == {"required": 776, "n_ref": 60}


def test_the_evidence_behind_the_tolerances_is_frozen_and_held_against_them(
    make: Callable[..., Path], document: dict[str, Any]
) -> None:
    """Claim: without calibration.json a note, with one that backs the registration a line, with tolerances looser than
    it or another number of synthetic rows a refusal that names the file and the remedy."""
    folder = make()
    absent = synth("cohort", "check", folder)
    assert (absent.exit_code, "no calibration.json" in absent.stdout) == (0, True)
    assert not (folder / "calibration.json").exists()

    suggested = json.loads(synth("cohort", "tolerances", folder, "--write", "--json").stdout)["suggested"]
    frozen = (folder / "calibration.json").read_bytes()
    assert frozen == json.dumps(json.loads(frozen), sort_keys=True, separators=(",", ":")).encode() + b"\n"

    def registered(gates: dict[str, Any], rows: int = 600) -> Result:
        changed = document | {"gates": gates, "synthetic": document["synthetic"] | {"rows": rows}}
        (folder / "cohort.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
        return synth("cohort", "check", folder, "--json")

    held = registered(suggested)
    assert (held.exit_code, json.loads(held.stdout)["calibration"]["status"]) == (0, "holds")
    other = json.loads(registered(suggested, rows=599).stdout)
    assert (other["accepted"], other["calibration"]["status"]) == (False, "contradicted")
    assert "599 synthetic" in other["calibration"]["faults"][0]

    registered(suggested | {"excess_tolerance": suggested["excess_tolerance"] + 0.01})
    looser = synth("cohort", "check", folder)
    assert looser.exit_code == 2
    for word in ("calibration.json contradicts", "excess_tolerance", "looser", "tolerances", "--write"):
        assert word in looser.stderr
    (folder / "calibration.json").write_text("{", encoding="utf-8")
    assert "not JSON" in synth("cohort", "check", folder).stderr


def test_a_registered_cohort_is_checked_by_its_name(
    make: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim: a name of the register stands for its folder; any other word is a path that is not there."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SYNTH_HOME", str(home))
    (home / "cohorts.json").write_text(json.dumps({"known": str(make())}), encoding="utf-8")
    assert json.loads(synth("cohort", "check", "known", "--json").stdout)["cohort"] == "virtual"
    assert synth("cohort", "check", "unknown").exit_code == 2


def test_contrasts_are_counted_for_the_steward(make: Callable[..., Path], document: dict[str, Any]) -> None:
    """Claim: sizes that are not those of the private rows reject the folder and come with those that are; corrected,
    it is accepted."""
    contrast = {"variable": "subtype", "case": ["S1"], "sizes": [3, 4], "features": ["expression"]}
    document["discovery"] = {"contrasts": {"s1": contrast}}
    folder = make()
    result = synth("cohort", "check", folder, "--json")
    found = json.loads(result.stdout)["contrasts"]["s1"]
    assert (result.exit_code, found["fits"], found["registered"]) == (2, False, [3, 4])
    assert "but sizes: [3, 4] is registered" in synth("cohort", "check", folder).stdout
    contrast["sizes"] = found["found"]
    (folder / "cohort.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    again = synth("cohort", "check", folder, "--json")
    assert (again.exit_code, json.loads(again.stdout)["contrasts"]["s1"]["fits"]) == (0, True)
