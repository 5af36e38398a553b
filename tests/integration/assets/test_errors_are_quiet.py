"""Code that fails on private rows says where and how, and never what it held: messages of libraries quote values."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import pytest

SECRET = "94.8461537"
COHORT = (
    "cohort/rejections cohort/features public/rows cohort/manifest cohort/expression cohort/methylation cohort/clinical"
)
REAL_ARM = "normalized/batch_correction normalized/batch_corrected normalized/attacked"


def fails(*_: Any, **__: Any) -> NoReturn:
    """What a library does with a cell it does not like."""
    raise ValueError(f"could not convert {SECRET} to an integer")


def logged(platform: Any) -> str:
    """Every event of every run as stored."""
    runs = platform.instance.get_runs()
    return "\n".join(json.dumps(e.to_json()) for run in runs for e in platform.instance.all_logs(run.run_id))


@pytest.mark.parametrize(
    ("place", "assets", "plan"),
    [
        ("assets.cohort.read_cohort", COHORT, None),
        ("assets.cohort.validate", COHORT, None),
        ("assets.normalized.describe_rows", "normalized/matrix", None),
        ("assets.normalized.correct_real_arm", REAL_ARM, None),
        ("assets.generators.fit_control", "S_MIX/checkpoint", None),
        ("synth_platform.evaluation.gates.utility_gate", "G0A/utility_gate", "eps8"),
        ("synth_platform.evaluation.gates.closest_record_gate", "G0A/closest_record_gate", "eps8"),
        ("synth_platform.evaluation.gates.membership_gate", "G0A/membership_gate", "eps8"),
        ("synth_platform.evaluation.gates.membership_gate", "G0A/release", "eps8"),
        ("synth_platform.release.rederive.validate", "G0A/release", "eps8"),
        ("checks.schema._validate", "normalized/matrix", None),
    ],
)
def test_a_planted_message_does_not_reach_the_event_log(
    platform: Any, monkeypatch: pytest.MonkeyPatch, place: str, assets: str, plan: str | None
) -> None:
    """Claim: a value in the message of whatever fails on private rows is in no event; the kind of error is."""
    monkeypatch.setattr(place, fails)
    result = platform.run(*assets.split(), plan=plan, check=False)
    assert not result.success
    failure = platform.failure(result)
    assert "failed on private rows with ValueError" in failure
    assert SECRET not in failure
    assert SECRET not in logged(platform)


def test_a_missing_file_is_still_named(platform: Any) -> None:
    """Claim: errors made of public names only keep their message, or nobody could repair a cohort."""
    tables = ("manifest", "expression", "methylation", "clinical")
    source = {"reader": "tables", "files": {name: f"{name}.parquet" for name in tables}}
    platform.edit(lambda document: document.update(source=source, generators=["G0A"]))
    result = platform.run(*COHORT.split(), plan=None, check=False)
    assert not result.success
    assert ".parquet does not exist; put it there" in platform.failure(result)
