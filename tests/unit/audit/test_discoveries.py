"""Evidence of real lists passes; whatever is changed in it, and covered up by new seals and chains, is named."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from synth_platform.audit.discoveries import audit_discoveries
from synth_platform.audit.discovery_answers import size_grid, stored_sha256
from synth_platform.audit.discovery_list import adjusted_log, valid_log_boost
from synth_platform.audit.discovery_statistics import dosage_sensitivity, log_rank_sensitivity
from synth_platform.audit.ledger import row_hash
from synth_platform.audit.reading import digest
from synth_platform.audit.report import Report
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.discovery_options import DiscoveryPlan, Size
from synth_platform.discovery.documents import Study, discoveries_document, e_values_document
from synth_platform.discovery.statistics.chosen_tilt import ChosenTilt
from synth_platform.discovery.statistics.dosage import DosageStatistic
from synth_platform.discovery.statistics.log_rank import LogRank, Survival
from synth_platform.discovery.statistics.mann_whitney import MannWhitney
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource, SeededNoise
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.privacy.statistics import StatisticQuery
from synth_platform.privacy.within_row import within_row
from synth_platform.release.discovery import Stage, decide_discoveries
from synth_platform.release.discovery_evidence import write_list_evidence
from synth_platform.release.discovery_package import write_list

Document = dict[str, Any]
CASES, CONTROLS, FEATURES = 30, 40, 25
DELTA = 1e-5
EXPECTED = {"cohort": "c", "stage": "discovery", "domain": "d"}


@dataclass(frozen=True)
class Rows:
    """Forty controls and thirty cases; the first five features are larger in cases."""

    x: FloatArray
    outcome: BoolArray | Survival

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: np.ndarray) -> Rows:
        outcome = self.outcome
        chosen = (
            Survival(outcome.time[index], outcome.event[index]) if isinstance(outcome, Survival) else outcome[index]
        )
        return Rows(self.x[index], chosen)


class SameNoise(SeededNoise):
    """The noise of every run the same, and told as cryptographic: for a list that tests can rely on."""

    source = "cryptographic"


def rows_of(stage: Stage, *, survival: bool = False) -> Rows:
    generator = np.random.default_rng(8)
    case = np.arange(CASES + CONTROLS) < CASES
    x = generator.normal(size=(len(case), FEATURES))
    x[:, :5] += 3.0 * case[:, np.newaxis]
    if stage == "gwas":
        x = np.clip(np.rint(x), 0, 2)
    time = generator.exponential(np.where(case, 1.0, 8.0))
    return Rows(x, Survival(time, np.ones(len(case), dtype=bool)) if survival else case)


def made_for(stage: Stage, size: Size, *, survival: bool) -> Callable[[int], Any]:
    """As production does: a tilt by the size where that is chosen among Mann-Whitney e-values, one for all else."""
    if survival:
        return lambda _: LogRank(CASES + CONTROLS, (1.0, 2.0, 4.0), (0.3, 0.6, 1.2), 0.5, 0.0, 0.4)
    if stage == "gwas":
        return lambda _: DosageStatistic(CASES, CONTROLS, 0.3)
    if size != "adaptive":
        return lambda _: MannWhitney(CASES, CONTROLS, 0.02)
    return lambda k: ChosenTilt(MannWhitney(CASES, CONTROLS, max(0.02, 0.03 - 0.001 * k)), 0.01, 0.08)


def evidence_of(
    home: Path,
    *,
    size: Size = "adaptive",
    stage: Stage = "discovery",
    survival: bool = False,
    mu: float = 12.0,
    features: int = FEATURES,
    dua_tag: str = "RELEASE_REVIEWED",
    noise: NoiseSource | None = None,
    outside: tuple[str, ...] = (),
    package: bool = False,
) -> Document:
    """What production stores of one run on open rows, whose domain paid for another release before."""
    plan = DiscoveryPlan("basal", mu, 0.05, size, 5)
    spec = cast(
        CohortSpec,
        SimpleNamespace(
            name="c",
            title="Test",
            dua_tag=dua_tag,
            privacy=SimpleNamespace(
                domain="d", budget=SimpleNamespace(delta=DELTA, model_dump=lambda: {"epsilon": 400.0, "delta": DELTA})
            ),
            sizes_of=lambda contrast: (CASES + CONTROLS,) if survival else (CASES, CONTROLS),
            registration_of=lambda plan: "ab" * 32,
        ),
    )
    ledger, store = Ledger(f"sqlite:///{home}/ledger.db"), StatisticStore(home / "statistics")
    ledger.set_budget("d", 400.0, DELTA)
    rows = rows_of(stage, survival=survival)
    table = seal(rows, key=FingerprintKey(bytes(32)), digest=lambda r: hashlib.sha256(r.x.tobytes()).digest())
    curator = Curator(ledger, store, noise or SameNoise(11), domain="d", cohort="c", run_id="run-1")
    sums = within_row("tests.discovery_sums", lambda r: r.x[:, :2])
    curator.ask(table, StatisticQuery("G0_SUMS", sums, 2, 4.5, 45.0))

    names = [f"HLA-{at} (β)" for at in range(features)]
    study = Study[Rows](
        plan=plan,
        hypotheses=features,
        made_for=made_for(stage, size, survival=survival),
        expected=min(plan.expected, features),
        log_e=lambda statistic, r: statistic.log_e(r.x[:, :features], r.outcome),
        names=lambda at: [names[i] for i in at],
        compared={"variable": "a b", "case": ["Stage II"], "family": "0" * 64},
    )
    e_values = e_values_document(
        study, lambda query: curator.ask(table, query), rows=table.fingerprint, outside=outside
    )
    discoveries = discoveries_document(e_values, plan.alpha)
    decision = decide_discoveries(
        spec=spec, stage=stage, plan=plan, e_values=e_values, discoveries=discoveries, ledger=ledger, store=store
    )
    documents = {"private_e_values": e_values, "discoveries": discoveries, "decision": decision}
    folder = None
    if package:
        folder = write_list(
            home / "released",
            name="c-discovery",
            spec=spec,
            e_values=e_values,
            discoveries=discoveries,
            decision=decision,
            ledger_table=ledger.table(),
        )
    return write_list_evidence(
        spec=spec, stage=stage, plan=plan, documents=documents, ledger=ledger, store=store, package=folder
    )


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """An eligible list with its package."""
    return evidence_of(tmp_path_factory.mktemp("eligible"), package=True)


def failures(report: Report) -> list[str]:
    return [f"{check.name} [{check.kind}] {check.detail}" for check in report.failures]


def test_an_eligible_list_passes(evidence: Document) -> None:
    report = audit_discoveries(evidence, expected={**EXPECTED, "plan": "basal-mu12-alpha0.05-for5"})
    assert failures(report) == []
    assert report.ok
    assert evidence["documents"]["decision"]["decision"] == "ELIGIBLE_FORMAL"
    assert 0 < evidence["documents"]["discoveries"]["discoveries"] < len(lines(evidence))
    assert report.documents == {f"discovery/{name}": digest(d) for name, d in evidence["documents"].items()}
    assert report.conformance_sha256 == ""
    json.dumps(report.as_dict())


OTHERS: dict[str, Document] = {
    "fixed size": {"size": 4},
    "one selected": {"size": 1},
    "all released": {"size": FEATURES},
    "more noise than any boost is for": {"size": 3, "mu": 0.01},
    "one hypothesis": {"features": 1},
    "few hypotheses": {"features": 3},
    "genotypes": {"stage": "gwas"},
    "survival": {"survival": True},
    "not reviewed": {"dua_tag": "OPEN"},
    "cryptographic": {"noise": CryptographicNoise()},
    "seeded": {"noise": SeededNoise(3)},
    "looked at outside the ledger": {"outside": ("distance gate",)},
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_lists_pass_whether_blocked_or_not(other: str, tmp_path: Path) -> None:
    evidence = evidence_of(tmp_path, **OTHERS[other])
    assert failures(audit_discoveries(evidence)) == []
    blocked = other in ("not reviewed", "seeded", "looked at outside the ledger")
    assert (evidence["documents"]["decision"]["decision"] == "BLOCKED") is blocked


def resealed(evidence: Document) -> Document:
    """The evidence with a chain and a seal as if it had been written so."""
    rows, before = evidence["ledger"]["rows"], "0" * 64
    for number, row in enumerate(rows, start=1):
        row |= {"id": number, "previous_hash": before}
        row["hash"] = before = row_hash(row)
    evidence["ledger"]["head"] = before
    if evidence["package"]:
        evidence["package"]["ledger"]["head_hash"] = before
    evidence["body_sha256"] = digest({key: value for key, value in evidence.items() if key != "body_sha256"})
    return evidence


Change = Callable[[Document], object]


def part(name: str, /, **changes: object) -> Change:
    """Fields of a stored document."""
    return lambda evidence: evidence["documents"][name].update(changes)


def answer(code: str, /, **changes: object) -> Change:
    """Fields of the answer of a code."""
    return lambda evidence: next(a for a in evidence["answers"] if a["code"] == code).update(changes)


def row(code: str, /, **changes: object) -> Change:
    """Columns of the ledger rows of a code, reservation and commit alike."""

    def change(evidence: Document) -> None:
        for each in evidence["ledger"]["rows"]:
            each.update(changes if each["code"] == code else {})

    return change


def all_of(*changes: Change) -> Change:
    return lambda evidence: [change(evidence) for change in changes]


def e_values(evidence: Document) -> Document:
    return cast(Document, evidence["documents"]["private_e_values"])


def lines(evidence: Document) -> list[Document]:
    return cast(list[Document], evidence["documents"]["discoveries"]["list"])


def decision(evidence: Document) -> Document:
    return cast(Document, evidence["documents"]["decision"])


def one_value_more(evidence: Document) -> None:
    """An answer, its e-value and its line, a grid step of sixteen nats higher."""
    values, own = evidence["answers"][-1]["values"], e_values(evidence)["log_e"]
    values[0], before = values[0] + 16.0, own[0]
    own[0] += 16.0
    line = next(line for line in lines(evidence) if line["log_e"] == before)
    line["log_e"] = own[0]


def one_discovery_more(evidence: Document) -> None:
    line = next(line for line in lines(evidence) if not line["discovered"])
    line["discovered"] = True
    evidence["documents"]["discoveries"]["discoveries"] += 1


def half_the_noise(evidence: Document) -> None:
    """Less noise than was paid for, on every side of the ledger but the sensitivity's."""
    values = evidence["answers"][-1]
    scale, moved = values["scale"] / 2, values["sensitivity"] / 2
    answer("E_VALUES", scale=scale, sensitivity=moved)(evidence)
    row("E_VALUES", scale=scale, sensitivity=moved)(evidence)
    e_values(evidence)["scale"] = scale


def weaker_statistic(evidence: Document) -> None:
    """A tilt twice as large: the ledger's sensitivity is that of another statistic."""
    statistic = e_values(evidence)["statistic"]
    statistic["parameters"]["tilt"] *= 2
    statistic["sensitivity"] *= 2


def swapped(key: str) -> Change:
    def change(evidence: Document) -> None:
        first, last = lines(evidence)[0], lines(evidence)[-1]
        first[key], last[key] = last[key], first[key]

    return change


def no_size_entry(evidence: Document) -> None:
    del evidence["answers"][0]
    del e_values(evidence)["entries"][0]
    e_values(evidence)["mu_parts"]["size"] = 0.0


def nudged(name: str, key: str, by: float) -> Change:
    return lambda evidence: evidence["documents"][name].update({key: evidence["documents"][name][key] + by})


def less_shift(evidence: Document) -> None:
    """Log e-values that are larger than their noise allows, by a hundred thousandth."""
    for held in (e_values(evidence)["log_e"],):
        held[:] = [value + 1e-5 for value in held]
    for line in lines(evidence):
        line["log_e"] += 1e-5


def altered_file(name: str) -> Change:
    return lambda evidence: evidence["package"]["files"].update({name: "0" * 64})


def altered_file_and_sum(name: str) -> Change:
    return all_of(altered_file(name), lambda evidence: evidence["package"]["checksums"].update({name: "0" * 64}))


def uncommitted(evidence: Document) -> None:
    rows = evidence["ledger"]["rows"]
    rows[:] = [each for each in rows if (each["code"], each["state"]) != ("E_VALUES", "committed")]


def moved_choice(evidence: Document) -> None:
    evidence["answers"][0]["values"] = [evidence["answers"][0]["values"][0] + 1.0]


def lower_level(evidence: Document) -> None:
    """The level of another plan, told everywhere but in the plan's name."""
    evidence["registered"]["plan"]["alpha"] = 0.01
    part("discoveries", alpha=0.01)(evidence)
    decision(evidence)["fdr"]["level"] = 0.01


TOUCHED: dict[str, tuple[str, Change]] = {
    "another format": ("G1/format", lambda e: e.update(format="synth-evidence-1")),
    "a section more": ("G1/sections", lambda e: e.update(remarks={})),
    "free text": ("G1/ledger/codes", row("E_SIZE", run_id="patient Anna, ward 3")),
    "free text in a key": ("G1/registered/codes", lambda e: e["registered"].update({"ward 3": 1})),
    "another cohort registered": ("G1/registered/cohort", lambda e: e["registered"].update(cohort="other")),
    "another plan's name": ("G1/registered/plan", lambda e: e["scope"].update(plan="basal-mu9-alpha0.05")),
    "another plan's e-values": ("G1/private_e_values/plan", part("private_e_values", plan="basal-mu9-alpha0.05")),
    "another contrast": ("G1/discoveries/contrast", part("discoveries", contrast="her2")),
    "another registration": ("G1/decision/registration", part("decision", registration="cd" * 32)),
    "a registration that is no digest": ("G1/registration", lambda e: e["registered"].update(registration="x")),
    "a missing document": ("G1/documents", lambda e: e["documents"].pop("discoveries")),
    "a lower level": ("G1/registered/plan", lower_level),
    "another alpha": ("G3/discovery/discoveries/alpha", part("discoveries", alpha=0.2)),
    "an unknown stage": ("G1/scope/known", lambda e: e["scope"].update(stage="other")),
    "another stage's statistic": ("private_e_values/statistic/name", lambda e: e["scope"].update(stage="gwas")),
    "a larger mu promised": ("G2/discovery/mu/promised", part("private_e_values", mu=99.0)),
    "less mu promised": ("G2/discovery/mu/total", lambda e: e["registered"]["plan"].update(mu=11.9)),
    "a smaller part": (
        "G2/discovery/mu/values",
        lambda e: e_values(e)["mu_parts"].update(values=e_values(e)["mu_parts"]["values"] * 0.999),
    ),
    "no size entry": ("G2/discovery/answers/codes", no_size_entry),
    "an answer missing": ("G2/discovery/answers/codes", lambda e: e["answers"].pop()),
    "answers in another order": ("G2/discovery/answers/codes", lambda e: e["answers"].reverse()),
    "an entry twice": (
        "G2/discovery/answers/entries",
        lambda e: e_values(e)["entries"].append(e["answers"][0]["entry_id"]),
    ),
    "a value higher": ("G2/discovery/E_VALUES/stored", one_value_more),
    "another selection": (
        "G2/discovery/E_SELECTION/stored",
        lambda e: [held.reverse() for held in (e["answers"][1]["values"], e_values(e)["positions"])],
    ),
    "another choice of size": ("G3/discovery/private_e_values/size", moved_choice),
    "a size outside the grid": ("private_e_values/size/values", answer("E_SIZE", values=[99.0])),
    "a granularity": ("G2/discovery/E_VALUES/granularity", answer("E_VALUES", granularity=2.0**-60)),
    "the scale of the answer": ("G2/discovery/E_VALUES/scale", answer("E_VALUES", scale=0.5)),
    "the scale of the e-values": ("private_e_values/log_e/scale", part("private_e_values", scale=0.5)),
    "the scale of the entry": ("noise_multiplier", row("E_VALUES", scale=0.5)),
    "the scale of the selection": ("/eta", row("E_SELECTION", scale=1e-3)),
    "half the noise": ("G2/discovery/E_VALUES/sensitivity/enough", half_the_noise),
    "a sensitivity too small": (
        "private_e_values/statistic/sensitivity",
        lambda e: e_values(e)["statistic"].update(sensitivity=0.7),
    ),
    "a larger tilt": ("G2/discovery/E_SELECTION/sensitivity/enough", weaker_statistic),
    "other group sizes": (
        "private_e_values/statistic/sizes",
        lambda e: e_values(e)["statistic"]["parameters"].update(n_case=29),
    ),
    "another family": ("G2/discovery/E_VALUES/request", lambda e: e_values(e)["compared"].update(case="Stage III")),
    "more hypotheses": ("G2/discovery/E_VALUES/request", part("private_e_values", hypotheses=FEATURES + 1)),
    "another request": ("G2/discovery/E_SELECTION/request", row("E_SELECTION", request_fingerprint="ef" * 32)),
    "another neighbouring of the selection": (
        "G2/discovery/E_SELECTION/relation",
        row("E_SELECTION", neighbouring="add_remove"),
    ),
    "an entry nobody reserved": ("G2/discovery/E_SIZE/entry", answer("E_SIZE", entry_id="E_SIZE-0")),
    "an answer under another code": ("G2/discovery/answers/codes", answer("E_VALUES", code="E_MORE")),
    "an answer under another code of ours": ("G2/discovery/E_SELECTION/code", answer("E_VALUES", code="E_SELECTION")),
    "a selection that tells no positions": (
        "G2/discovery/E_SELECTION/granularity",
        answer("E_SELECTION", granularity=0.5),
    ),
    "the sensitivity of the answer": ("G2/discovery/E_VALUES/sensitivity", answer("E_VALUES", sensitivity=0.1)),
    "two sizes chosen": (
        "G2/discovery/E_SIZE/eta",
        row("E_SIZE", event='{"type":"SelfComposedDpEvent","count":2,"event":{"type":"BoundedRangeDpEvent","eta":1}}'),
    ),
    "values by another mechanism": ("G2/discovery/E_VALUES/", row("E_VALUES", event='{"type":"NoOpDpEvent"}')),
    "a smaller part of the size": ("G2/discovery/mu/size", lambda e: e_values(e)["mu_parts"].update(size=0.1)),
    "a part more": ("G2/discovery/mu/parts", lambda e: e_values(e)["mu_parts"].update(more=0.0)),
    "another method": ("private_e_values/method", part("private_e_values", method="fixed")),
    "a field more": ("private_e_values/fields", part("private_e_values", means=[0.1])),
    "a field of the list more": ("discoveries/fields", part("discoveries", means=[0.1])),
    "a field of the decision more": ("decision/fields", part("decision", means=[0.1])),
    "a value off its grid": (
        "private_e_values/log_e/grid",
        lambda e: e["answers"][-1]["values"].__setitem__(0, e["answers"][-1]["values"][0] * (1 + 2.0**-50)),
    ),
    "a value more": ("private_e_values/log_e/length", lambda e: e["answers"][-1]["values"].append(1.0)),
    "a name twice": (
        "discoveries/features",
        lambda e: e_values(e)["selected"].__setitem__(0, e_values(e)["selected"][1]),
    ),
    "a name more": ("private_e_values/positions/names", lambda e: e_values(e)["selected"].append("x")),
    "a discovery that is neither": ("discoveries/marks", lambda e: lines(e)[0].update(discovered=1)),
    "a tilt outside its range": (
        "private_e_values/statistic/tilt",
        lambda e: e_values(e)["statistic"]["parameters"].update(lowest=0.079),
    ),
    "a range that was wider": (
        "private_e_values/choice",
        lambda e: e_values(e)["statistic"]["parameters"].update(highest=0.081),
    ),
    "a choice that is not paid for": (
        "private_e_values/choice",
        lambda e: e_values(e)["statistic"].update(name="mann_whitney"),
    ),
    "a chooser's sensitivity": (
        "private_e_values/chooser/sensitivity",
        lambda e: e_values(e)["chooser"].update(sensitivity=0.1),
    ),
    "a chooser with a larger tilt": (
        "G2/discovery/E_SIZE/sensitivity/enough",
        lambda e: e_values(e)["chooser"]["parameters"].update(tilt=0.04),
    ),
    "values without their own entry": (
        "E_VALUES/code",
        lambda e: e["answers"][2].update(entry_id=e["answers"][1]["entry_id"]),
    ),
    "another chooser": ("private_e_values/chooser/name", lambda e: e_values(e)["chooser"].update(name="dosage")),
    "a chooser of other groups": (
        "private_e_values/chooser/sizes",
        lambda e: e_values(e)["chooser"]["parameters"].update(n_control=39),
    ),
    "a position more": ("private_e_values/positions/length", lambda e: e_values(e)["positions"].append(0)),
    "a size that is no index": ("G2/discovery/E_SIZE/granularity", answer("E_SIZE", granularity=0.5)),
    "the scale of the size": ("G2/discovery/E_SIZE/scale", answer("E_SIZE", scale=9.0)),
    "another RDP figure": ("G2/discovery/ledger/epsilon_rdp", lambda e: decision(e)["ledger"].update(epsilon_rdp=1.0)),
    "another plan decided": ("G1/decision/plan", part("decision", plan="basal-mu1-alpha0.05")),
    "an unknown statistic": ("statistic/name", lambda e: e_values(e)["statistic"].update(name="t_test")),
    "a decision of another stage": ("decision/generator", part("decision", generator="gwas")),
    "a note": ("decision/notes", part("decision", notes=["FINE"])),
    "another contrast decided": ("decision/contrast", part("decision", contrast="her2")),
    "another domain registered": ("G1/registered/domain", lambda e: e["registered"].update(domain="other")),
    "a cap that is spent": (
        "cap/spent",
        row("G0_SUMS", scale=0.045, event='{"type":"GaussianDpEvent","noise_multiplier":0.01}'),
    ),
    "free text in a decision": ("G1/documents/codes", lambda e: decision(e).update(reasons=["Anna, ward 3"])),
    "a cost unpublished": ("package/costs", lambda e: e["package"]["ledger"]["cost"].pop("mu")),
    "a published event": (
        "/event",
        lambda e: e["package"]["ledger"]["entries"][1].update(event={"type": "NoOpDpEvent"}),
    ),
    "another unit published": ("package/ledger/unit", lambda e: e["package"]["ledger"].update(unit="visit")),
    "an entry unpublished": ("package/ledger/entries", lambda e: e["package"]["ledger"]["entries"].pop()),
    "another neighbouring": ("/neighbouring", row("E_VALUES", neighbouring="add_remove")),
    "fewer selections paid": (
        "G2/discovery/E_SELECTION/event",
        row(
            "E_SELECTION",
            event='{"type":"SelfComposedDpEvent","count":1,"event":{"type":"BoundedRangeDpEvent","eta":1}}',
        ),
    ),
    "an entry of another domain": ("G2/discovery/E_SIZE/domain", row("E_SIZE", domain="other")),
    "seeded noise unsaid": ("G2/discovery/E_VALUES/noise_source", row("E_VALUES", noise_source="seeded")),
    "an entry that was never committed": ("ledger/reasons", uncommitted),
    "a stored answer altered": (
        "/statistic",
        lambda e: e["ledger"]["statistics"].update({e["answers"][-1]["entry_id"]: "0" * 64}),
    ),
    "a ledger that did not verify": ("G2/ledger/verified", lambda e: e["ledger"].update(verified=False)),
    "a raised cap": ("cap/epsilon", lambda e: e["registered"]["budget"].update(epsilon=500.0)),
    "less taken off": ("private_e_values/log_e/valid", less_shift),
    "a position moved": ("private_e_values/positions/selected", lambda e: e_values(e)["positions"].reverse()),
    "a position outside": (
        "private_e_values/positions/lawful",
        lambda e: e_values(e)["positions"].__setitem__(0, FEATURES),
    ),
    "a discovery added": ("G3/discovery/discoveries/discovered-", one_discovery_more),
    "a discovery taken away": ("discoveries/discovered-1", lambda e: lines(e)[0].update(discovered=False)),
    "a count of discoveries": ("discoveries/discoveries", nudged("discoveries", "discoveries", 1)),
    "a threshold lowered": ("discoveries/threshold/valid", nudged("discoveries", "log_threshold_of_one", -3e-4)),
    "a threshold raised": ("discoveries/threshold/used", nudged("discoveries", "log_threshold_of_one", 0.1)),
    "features swapped": ("G3/discovery/discoveries/line-1", swapped("feature")),
    "values swapped": ("G3/discovery/discoveries/line-1", swapped("log_e")),
    "a rank": ("G3/discovery/discoveries/line-2", lambda e: lines(e)[1].update(rank=1)),
    "a line missing": ("G3/discovery/discoveries/lines", lambda e: lines(e).pop()),
    "fewer hypotheses": ("G3/discovery/discoveries/hypotheses", part("discoveries", hypotheses=10)),
    "a column more": ("G3/discovery/discoveries/line-1", lambda e: lines(e)[0].update(mean=0.3)),
    "an epsilon": ("G4/discovery/decision/epsilon", nudged("decision", "epsilon", -0.1)),
    "a delta": ("G4/discovery/decision/delta", part("decision", delta=1e-3)),
    "a false discovery rate": (
        "G4/discovery/decision/fdr",
        lambda e: decision(e)["fdr"].update(level=0.01),
    ),
    "eligible with a reason": ("G4/discovery/decision/reasons", part("decision", reasons=["SEEDED_NOISE"])),
    "eligible though not reviewed": ("G4/discovery/decision/grade", lambda e: e["registered"].update(dua_tag="OPEN")),
    "violations unsaid": ("G4/discovery/decision/schema", lambda e: lines(e)[0].update(rank=7)),
    "blocked without a reason": ("G4/discovery/decision/grade", part("decision", decision="BLOCKED")),
    "a cost": ("G2/discovery/ledger/epsilon_pld", lambda e: decision(e)["ledger"].update(epsilon_pld=1.0)),
    "a package of a blocked list": ("G4/discovery/package/eligible", part("decision", decision="BLOCKED")),
    "a package file altered": ("G4/discovery/package/README.md/sha256", altered_file("README.md")),
    "another table": ("G4/discovery/package/table", altered_file_and_sum("table.csv")),
    "a package file more": ("G4/discovery/package/files", altered_file_and_sum("notes.txt")),
    "another decision published": (
        "G4/discovery/package/decision",
        lambda e: e["package"]["decision"].update(mu=1.0),
    ),
    "a published cost": ("G4/discovery/package/ledger/mu", lambda e: e["package"]["ledger"]["cost"].update(mu=1.0)),
    "a published entry": (
        "not as the ledger has it",
        lambda e: e["package"]["ledger"]["entries"][0].update(scale=1.0),
    ),
}


@pytest.mark.parametrize("touched", TOUCHED)
def test_what_was_changed_and_covered_up_is_named(touched: str, evidence: Document) -> None:
    name, change = TOUCHED[touched]
    changed = copy.deepcopy(evidence)
    change(changed)
    found = failures(audit_discoveries(resealed(changed)))
    assert any(name in failure for failure in found), found


def test_an_honest_evidence_that_is_resealed_still_passes(evidence: Document) -> None:
    """So that what the tampered ones fail by is the change."""
    assert failures(audit_discoveries(resealed(copy.deepcopy(evidence)))) == []


def test_a_broken_seal_and_a_broken_chain_are_named(evidence: Document) -> None:
    changed = copy.deepcopy(evidence)
    changed["ledger"]["rows"][3]["scale"] = 1.0
    names = [check.name for check in audit_discoveries(changed).failures]
    assert {"G1/body", "G2/ledger/row-4/hash"} <= set(names)


@pytest.mark.parametrize("key", ["cohort", "plan", "stage"])
def test_evidence_of_another_scope_is_named(key: str, evidence: Document) -> None:
    names = [check.name for check in audit_discoveries(evidence, expected={key: "other"}).failures]
    assert names == [f"G1/scope/{key}"]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_number_that_is_none_is_named(bad: float, evidence: Document) -> None:
    changed = copy.deepcopy(evidence)
    e_values(changed)["log_e"][0] = bad
    report = audit_discoveries(changed)
    names = [check.name for check in report.failures]
    assert {"G1/finite", "G3/discovery/private_e_values/log_e/log_e"} <= set(names)
    assert report.evidence_sha256 == "unreadable"


DEEP: list[Any] = []
for _ in range(3000):
    DEEP = [DEEP]
NOTHING = (
    None,
    3,
    "x",
    [],
    {},
    {"scope": []},
    {"documents": {"decision": 1}},
    {"scope": {"stage": DEEP}},
    {"ledger": DEEP},
)


@pytest.mark.parametrize("evidence", NOTHING, ids=range(len(NOTHING)))
def test_nothing_at_all_fails_and_does_not_raise(evidence: object) -> None:
    report = audit_discoveries(evidence)
    assert not report.ok
    json.dumps(report.as_dict())


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of every field of the evidence but those inside the ledger's rows, lists by their first item."""
    if path[:2] == ("ledger", "rows") and len(path) > 2:
        return []
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value[:1]))
    return [p for key, inner in items for p in [(*path, key), *places(inner, (*path, key))]]


def test_no_field_of_another_kind_or_missing_passes_or_raises(evidence: Document) -> None:
    """Each field once deleted or of another kind, resealed: never an exception, never a pass."""
    # Names of the study, and a constant of the plan that no arithmetic of the list depends on.
    free = {"compared", "expected", "body_sha256"}
    others = (None, [], {}, "Ω free text", -1)
    for at, path in enumerate(path for path in places(evidence) if not free & set(path)):
        changed = copy.deepcopy(evidence)
        inner: Any = changed
        for key in path[:-1]:
            inner = inner[key]
        if at % 2 or path == ("package",):
            del inner[path[-1]]
        else:
            inner[path[-1]] = next(other for other in (*others[at % 5 :], *others) if inner[path[-1]] != other)
        changed["body_sha256"] = digest({key: value for key, value in changed.items() if key != "body_sha256"})
        assert not audit_discoveries(changed).ok, path


def test_the_stored_file_is_written_as_the_store_writes_it(evidence: Document) -> None:
    held = {each["entry_id"]: each for each in evidence["ledger"]["rows"] if each["state"] == "committed"}
    for each in evidence["answers"]:
        assert stored_sha256(each) == held[each["entry_id"]]["artefact_fingerprint"]


@pytest.mark.parametrize("scale", [0.05, 0.7, 3.0])
def test_the_boost_of_one_value_is_the_calibrated_threshold(scale: float) -> None:
    """k = 1: 1/b = sup_x E[min(x·e^{−ξ} ≥ 1)]/x, on a grid of x by the normal distribution of the standard library."""
    x = np.linspace(-3 * scale, 3 * scale + 8, 40_001)
    worst = max(NormalDist().cdf((z - scale**2 / 2) / scale) / math.exp(z) for z in x)
    assert valid_log_boost(1, scale) == pytest.approx(-math.log(worst), abs=2e-6)


def test_the_boost_of_three_values_keeps_every_mean_below_one() -> None:
    """By simulation of E[T(b·x·e^{−ξ})]/x at the worst x of a grid: 1 within four standard errors, 1% more is not."""
    scale, boost = 0.8, math.exp(valid_log_boost(3, 0.8))
    noise = np.exp(-(scale**2) / 2 - scale * np.random.default_rng(4).normal(size=200_000))
    means, errors = [], []
    for x in np.exp(np.linspace(-3, 3, 121)):
        y = boost * x * noise
        rounded = np.where(y >= 3, 3.0, np.where(y >= 1.5, 1.5, np.where(y >= 1, 1.0, 0.0))) / x
        means.append(rounded.mean())
        errors.append(rounded.std() / math.sqrt(len(noise)))
    worst = int(np.argmax(means))
    assert abs(means[worst] - 1) < 4 * errors[worst] + 1e-3


def test_adjusted_figures_find_the_largest_lawful_number() -> None:
    """Every set of three log e-values around their levels, against the definition of e-BH."""
    threshold = 5.0
    for log_e in np.stack(np.meshgrid(*[np.linspace(3.5, 5.2, 9)] * 3), axis=-1).reshape(-1, 3):
        ordered = np.sort(log_e)[::-1]
        lawful = [k for k in (1, 2, 3) if ordered[k - 1] >= threshold - math.log(k)]
        assert (adjusted_log(ordered, threshold) <= 0).sum() == max(lawful, default=0)


def test_sizes_grow_by_a_fifth() -> None:
    assert size_grid(1) == [1]
    assert size_grid(20) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20]


def test_sensitivities_are_attained_by_brute_force() -> None:
    """Every replacement in a study of five, by the definition of the e-value."""
    kappa, cases = 0.7, 2
    case = np.arange(5) < cases
    statistic = DosageStatistic(cases, 3, kappa, two_sided=False)
    tables = np.array(list(product((0.0, 1.0, 2.0), repeat=5))).T
    log_e = statistic.log_e(tables, case).reshape((3,) * 5)
    moved = max(float(np.ptp(log_e, axis=record).max()) for record in range(5))
    parameters = {"n_case": cases, "n_control": 3, "kappa": kappa, "two_sided": False}
    assert dosage_sensitivity(parameters)[1] == pytest.approx(moved, rel=1e-12)

    tilt, residual = 0.9, np.array([-0.5, 0.1, 0.5])
    # Residuals are what times make them under a hazard that reaches 1/2: an event at once, a late one, none until late.
    rank = LogRank(4, (1.0, 2.0), (0.4, 0.9), 0.5, 0.0, tilt, two_sided=False)
    kinds = [(0.5, True), (1.5, True), (2.5, False)]
    assert rank.residuals(Survival(np.array([k[0] for k in kinds]), np.array([k[1] for k in kinds]))) == pytest.approx(
        np.array([0.5, 0.5, -0.5])
    )
    assert len(residual) == len(kinds)
    ends = [(0.5, True), (2.5, False)]
    records = [(end, side) for end in ends for side in (-1.0, 1.0)]
    found = np.empty((4,) * 4)
    for chosen in product(range(4), repeat=4):
        seen = [records[at] for at in chosen]
        outcome = Survival(np.array([r[0][0] for r in seen]), np.array([r[0][1] for r in seen]))
        found[chosen] = rank.log_e(np.array([[r[1]] for r in seen]), outcome)[0]
    moved = max(float(np.ptp(found, axis=record).max()) for record in range(4))
    assert log_rank_sensitivity(dict(rank.parameters))[1] == pytest.approx(moved, rel=1e-9)
