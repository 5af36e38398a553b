"""What lists of discoveries spend: paid once, other terms anew, past the cap not at all, wrong sizes nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from synth_platform.cli.main import app
from synth_platform.privacy.noise import CryptographicNoise

SUBTYPE = "subtype-mu3-alpha0.05"
MADE = [f"discovery/{name}" for name in ("private_e_values", "discoveries", "decision", "audit", "release")]
SHARED = ("cohort/features", "cohort/manifest", "cohort/expression", "cohort/methylation", "cohort/clinical",
          "cohort/rejections", "public/rows", "public/reference", "normalized/matrix")  # fmt: skip


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing noise is an error."""

    def drawn(*_: Any) -> None:
        raise AssertionError("noise was drawn")

    for name in ("discrete_gaussian", "gumbel_top"):
        assert hasattr(CryptographicNoise, name)
        monkeypatch.setattr(CryptographicNoise, name, drawn)


def synth(platform: Any, *arguments: str) -> Any:
    environment = {"SYNTH_HOME": str(platform.home.root)}
    return CliRunner().invoke(app, arguments, env=environment, catch_exceptions=False)


@pytest.mark.usefixtures("no_noise")
def test_materialising_everything_again_is_free(lists: Any) -> None:
    """Claim: files read anew, every document made anew: the same e-values, the same package, not a ledger row more and
    no noise at all."""
    rows, e_values = lists.rows(), lists.read("discovery/private_e_values", plan=SUBTYPE)
    sums = {name: (lists.home.released / name / "SHA256SUMS").read_bytes() for name in lists.packages()}
    lists.run(*SHARED, plan=None)
    lists.discover(*MADE, plan=SUBTYPE)
    assert lists.read("discovery/private_e_values", plan=SUBTYPE) == e_values
    assert lists.metadata("discovery/private_e_values", plan=SUBTYPE)["ledger_entries"] == e_values["entries"]
    assert lists.rows() == rows
    assert {name: (lists.home.released / name / "SHA256SUMS").read_bytes() for name in lists.packages()} == sums


@pytest.mark.parametrize(
    ("plan", "mu"),
    [("subtype-mu1-alpha0.05", 1.0), ("subtype-mu3-alpha0.2", 3.0), ("subtype-mu0.5-alpha0.05-top3", 0.5)],
    ids=["mu", "alpha", "size"],
)
def test_other_terms_are_paid_for(lists: Any, plan: str, mu: float) -> None:
    """Claim: the same contrast on other terms is another plan with entries of its own, which compose with the three
    before them in the domain: mu of all is the root of the sum of squares, and epsilon that of Corollary 1 at it."""
    before = {row["entry_id"] for row in lists.rows()}
    kept = lists.read("discovery/private_e_values", plan=SUBTYPE)
    lists.discover("discovery/private_e_values", plan=plan)
    bought = lists.read("discovery/private_e_values", plan=plan)
    assert set(bought["entries"]).isdisjoint(before)
    assert {row["entry_id"] for row in lists.rows()} == before | set(bought["entries"])
    assert lists.read("discovery/private_e_values", plan=SUBTYPE) == kept
    spent = lists.ledger.budget_summary("tiny")
    total = float(np.sqrt(3 * 3.0**2 + mu**2))
    assert total * (1 - 1e-6) <= spent["mu"] <= total
    epsilon = spent["spent_pld"]
    assert norm.cdf(-epsilon / total + total / 2) - np.exp(epsilon) * norm.cdf(-epsilon / total - total / 2) == (
        pytest.approx(1e-5, rel=1e-3)
    )
    assert (bought["method"], bought["size"]) == ("fixed", 3) or not plan.endswith("top3")


def test_another_contrast_on_terms_of_a_shell(lists: Any) -> None:
    """Claim: a contrast that is registered later is asked for by name and terms, has its own price in the same domain
    and its own package; its sizes are those that `synth cohort check` finds."""
    spent = lists.ledger.budget_summary("tiny")
    deaths = lists.spec().discovery.contrasts["smoking"].model_dump(mode="json") | {"variable": "died"}
    lists.edit(lambda document: document["discovery"]["contrasts"].update(deaths=deaths))
    checked = json.loads(synth(lists, "cohort", "check", "tiny", "--json").stdout)
    assert not checked["accepted"]
    assert not checked["contrasts"]["deaths"]["fits"]
    sizes = checked["contrasts"]["deaths"]["found"]
    lists.edit(lambda document: document["discovery"]["contrasts"]["deaths"].update(sizes=sizes))
    terms = ["--mu", "1", "--alpha", "0.2", "--size", "2"]
    done = synth(lists, "discover", "tiny", "--contrast", "deaths", *terms, "--json")
    assert done.exit_code == 0, done.stderr
    [listed] = json.loads(done.stdout)
    assert (listed["plan"], listed["method"], listed["size"]) == ("deaths-mu1-alpha0.2-top2", "fixed", 2)
    assert "tiny-discovery-deaths-mu1-alpha0.2-top2" in lists.packages()
    after = lists.ledger.budget_summary("tiny")
    assert after["mu"] == pytest.approx(np.sqrt(spent["mu"] ** 2 + 1), rel=1e-6)
    assert after["remaining"] < spent["remaining"]


@pytest.mark.usefixtures("no_noise")
def test_a_plan_past_the_cap_is_refused_whole(lists: Any) -> None:
    """Claim: a plan that does not fit is refused before its first entry, not after it has bought its cheap size; the
    shell says so with exit code 1, and nothing is stored of it."""
    rows, budget = lists.rows(), lists.ledger.budget_summary("tiny")
    assert budget["remaining"] > 0
    done = synth(lists, "discover", "tiny", "--contrast", "subtype", "--mu", "7")
    assert done.exit_code == 1
    assert "BUDGET_EXCEEDED: domain 'tiny'" in done.stderr
    assert "Nothing was drawn" in done.stderr
    assert lists.rows() == rows
    assert lists.latest("discovery/private_e_values", plan="subtype-mu7-alpha0.05") is None


@pytest.mark.usefixtures("no_noise")
def test_half_a_plan_is_not_bought(lists: Any) -> None:
    """Claim: with room for the choice of a size, which is a twentieth of mu squared, but not for the rest, nothing is
    bought; with the cap lowered to what is spent, what was paid for is still given back."""
    spent = lists.ledger.budget_summary("tiny")["spent_rdp"]
    rows = None
    for room in (1.0, 1e-6):
        lists.ledger.set_budget("tiny", spent + room, 1e-5, change=True)
        budget = {"epsilon": spent + room, "delta": 1e-5}
        lists.edit(lambda document, budget=budget: document["privacy"].update(budget=budget))
        rows = lists.rows()
        result = lists.discover("discovery/private_e_values", plan="smoking-mu2-alpha0.05", check=False)
        assert "BUDGET_EXCEEDED" in lists.failure(result)
        assert lists.rows() == rows
    lists.discover("discovery/private_e_values", plan=SUBTYPE)
    assert lists.rows() == rows


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("contrast", "sizes"),
    [("subtype", [163, 132]), ("subtype", [133, 162]), ("smoking", [88, 206]), ("survival", [294])],
)
def test_wrong_sizes_are_refused_without_a_figure(lists: Any, contrast: str, sizes: list[int]) -> None:
    """Claim: where the private rows are not as many as registered, the plan is refused before anything is spent; the
    message and the event log say which contrast and what to do, and none of the true numbers."""
    rows, before = lists.rows(), len(lists.instance.get_runs())
    true = lists.spec().contrast(contrast).sizes
    lists.edit(lambda document: document["discovery"]["contrasts"][contrast].update(sizes=sizes))
    result = lists.discover("discovery/private_e_values", plan=f"{contrast}-mu1-alpha0.05", check=False)
    said = lists.failure(result)
    assert f"contrast '{contrast}': its private rows are not as many as sizes says" in said
    assert "`synth cohort check` counts them" in said
    assert lists.rows() == rows
    assert len(lists.instance.get_runs()) == before + 1
    written = "".join(entry.to_json() for entry in lists.instance.all_logs(result.run_id))
    for size in {*true, 295} - set(sizes):
        # Line numbers of the traceback are no figures of rows.
        assert not re.findall(rf"(?<![\w.-])(?<!line ){size}(?![\w.-])", said + _without_places(written)), size


def _without_places(events: str) -> str:
    return re.sub(r'"(timestamp|storage_id|pid|line)": "?[\d.e+-]+"?|line \d+', "", events)


def test_wrong_sizes_are_exit_code_2(lists: Any) -> None:
    lists.edit(lambda document: document["discovery"]["contrasts"]["survival"].update(sizes=[294]))
    done = synth(lists, "discover", "tiny", "--contrast", "survival", "--mu", "1")
    assert (done.exit_code, "correct sizes if these numbers may be known" in done.stderr) == (2, True)
    assert "295" not in done.output


def test_the_same_rows_have_one_domain(lists: Any) -> None:
    """Claim: contrasts of one cohort are charged to one name of its private rows, so that under another domain they
    are recognised and refused, whatever the contrast."""
    lists.edit(lambda document: document["privacy"].update(domain="fresh"))
    result = lists.discover("discovery/private_e_values", plan="survival-mu1-alpha0.05", check=False)
    assert "ROWS_OF_OTHER_DOMAIN" in lists.failure(result)


def test_a_seeded_source_is_blocked(copy_of: Any) -> None:
    """Claim: a list drawn with seeded noise is made, says so, and is never released; it does not replay for a list that
    could be."""
    seeded = copy_of(seeded=5)
    plan = "subtype-mu1-alpha0.05"
    seeded.discover(*MADE, plan=plan)
    decision = seeded.read("discovery/decision", plan=plan)
    assert decision["decision"] == "BLOCKED"
    assert "SEEDED_NOISE" in decision["reasons"]
    assert seeded.read("discovery/audit", plan=plan)["status"] == "PASS"
    assert seeded.latest("discovery/release", plan=plan) is None
    entries = seeded.read("discovery/private_e_values", plan=plan)["entries"]
    unseeded = type(seeded).at(seeded.home.root)
    unseeded.discover("discovery/private_e_values", plan=plan)
    assert set(unseeded.read("discovery/private_e_values", plan=plan)["entries"]).isdisjoint(entries)
