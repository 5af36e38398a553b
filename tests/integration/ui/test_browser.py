"""The governance view in a real browser: the graph, a release down to its ledger, a refused table with its reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.parish import CENSUS, KEPT, NOISY, SDC

SYNTH = Path(sys.executable).with_name("synth")
PROGRAMS = (Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver"))
MISSING = [str(program) for program in PROGRAMS if not os.access(program, os.X_OK)]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(MISSING), reason=f"no {' and no '.join(MISSING)}: install chromium and chromium-driver"),
]
BUTTONS = (  # one script, because the page may draw its buttons anew between two questions
    "return [...document.querySelectorAll('button')]"
    ".filter(b => b.innerText.startsWith(arguments[0])).map(b => b.disabled || b.ariaDisabled === 'true')"
)
STAGES = ("cohort", "public", "normalized", "statistics", "G0A", "S_COPY")


def test_a_governance_officer_follows_a_release_and_a_refusal(page: Any, finished_home: dict[str, str]) -> None:
    """From the graph to the release's ledger entries, then to the control that was refused and why."""
    shown = page.open("/asset-groups", "Global asset lineage", *STAGES)
    assert set(STAGES) <= set(shown.splitlines())

    ledger = json.loads(
        subprocess.run(
            [SYNTH, "ledger", "show", "--json"], env=finished_home, capture_output=True, check=True, timeout=60
        ).stdout
    )
    committed = [row for row in ledger if row["state"] == "committed"]
    rests_on = [row for row in committed if row["code"].startswith("G0A_")]
    assert {row["code"] for row in rests_on} >= {"G0A_COUNTS", "G0A_MEANS"}
    shown = page.open(
        "/assets/G0A/release?view=partitions&partition=virtual%7Cwide", "virtual-G0A-wide", "ELIGIBLE_", "ledger_head"
    )
    for row in rests_on:
        line = next(line for line in shown.splitlines() if line.startswith(f"{row['code']} "))
        assert "Gaussian, σ/Δ" in line
        assert row["entry_id"] in line
        assert row["hash"] in line
    assert rests_on[-1]["hash"] in shown, "the head when it was released"

    shown = page.open(
        "/assets/S_COPY/closest_record_gate?view=checks&checkDetail=verdict",
        "Failed",
        "FAIL: it holds copies of training rows",
        "A release needs PASS.",
        "S_COPY is a control",
    )
    assert "Latest execution" in shown

    page.open("/assets/S_COPY/decision?view=checks&checkDetail=known_verdict", "Passed", "Judged as it must be.")


def test_a_list_of_discoveries_leads_to_its_ledger_entries(page: Any, finished_home: dict[str, str]) -> None:
    """From the list in words to the release and the three answers it rests on."""
    shown = page.open(
        "/assets/discovery/discoveries?view=partitions&partition=virtual%7Cs1-mu1-alpha0.05", "private log e-value"
    )
    assert "discovered" in shown
    shown = page.open(
        "/assets/discovery/release?view=partitions&partition=virtual%7Cs1-mu1-alpha0.05", "ELIGIBLE_FORMAL", "E_VALUES"
    )
    told = subprocess.run(
        [SYNTH, "discover", "virtual", "--contrast", "s1", "--json"],
        env=finished_home,
        capture_output=True,
        check=True,
        timeout=120,
    )
    for entry in json.loads(told.stdout)[0]["entries"]:
        assert entry in shown


def test_a_census_shows_its_chain_and_its_policy(page: Any, finished_home: dict[str, str]) -> None:
    """The chain of both policies as a graph; what each release promises; why a plan that keeps zeros was refused."""
    chain = ("curated", "coarsened", "disclosure_gate", "model", "synthetic", "utility_gate", "decision", "release")
    shown = page.open("/locations/synth_platform.definitions/asset-groups/margins", *chain)
    assert set(chain) <= set(shown.split())
    page.open("/locations/synth_platform.definitions/asset-groups/dp_margins", "measured", "release")
    page.open(
        f"/assets/margins/release?view=partitions&partition={CENSUS}%7C{SDC}",
        "ELIGIBLE_SDC",
        "it is not differential privacy",
    )
    shown = page.open(
        f"/assets/dp_margins/release?view=partitions&partition={CENSUS}%7C{NOISY}", "ELIGIBLE_FORMAL", "M_COUNTS"
    )
    told = subprocess.run(
        [SYNTH, "decisions", "--json"], env=finished_home, capture_output=True, check=True, timeout=120
    )
    [noisy] = [one for one in json.loads(told.stdout) if one["plan"] == NOISY]
    assert all(entry in shown for entry in noisy["ledger"]["entries"])
    page.open(
        f"/assets/margins/disclosure_gate?view=partitions&partition={CENSUS}%7C{KEPT}", "FAIL", "attribute_disclosed"
    )


def test_the_governance_view_changes_nothing(page: Any) -> None:
    """The button that would start a run is there and cannot be pressed."""
    page.open("/assets/G0A/release", "Materialize", "The release package")
    disabled = page.driver.execute_script(BUTTONS, "Materialize")
    assert disabled
    assert all(disabled)
