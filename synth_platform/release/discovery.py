"""The decision on a list of private discoveries, and the list once more from what the ledger paid for.

No gate compares a list with private rows: all of it is a function of noisy answers. It may leave if the contract of its
cohort lets anything leave, the ledger pays for it, its form is right, and the level of its false discoveries is stated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Literal

from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG
from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.registered import Contrasted
from synth_platform.discovery.documents import discoveries_document
from synth_platform.privacy.accounting import gaussian_epsilon
from synth_platform.privacy.formal import FORMAL_REASONS, formal_status
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.statistic_store import StatisticStore

Document = Mapping[str, Any]
Stage = Literal["discovery", "gwas"]
DISCOVERY_STAGE: Stage = "discovery"
GWAS_STAGE: Stage = "gwas"
STAGES = (DISCOVERY_STAGE, GWAS_STAGE)
ELIGIBLE = "ELIGIBLE_FORMAL"  # by the guarantee alone: no gate compares a list with private rows
PROCEDURE = "boosted e-BH on private e-values"


def decide_discoveries(
    *,
    spec: Contrasted,
    stage: Stage,
    plan: DiscoveryPlan,
    e_values: Document,
    discoveries: Document,
    ledger: Ledger,
    store: StatisticStore,
) -> dict[str, Any]:
    """The decision document of one list; every value is JSON.

    e_values, discoveries: the stored documents of the same plan. The promise is mu, told as epsilon at the domain's
    delta as well; ELIGIBLE_FORMAL or BLOCKED with every reason.
    """
    delta = spec.privacy.budget.delta
    epsilon = gaussian_epsilon(plan.mu, delta)
    formal = formal_status(
        entries=e_values["entries"],
        unledgered=e_values["unledgered"],
        seeded=e_values["seeded"],
        ledger=ledger,
        store=store,
        domain=spec.privacy.domain,
        epsilon=epsilon,
        delta=delta,
    )
    violations = list_violations(plan, e_values, discoveries)
    reasons = [] if spec.dua_tag == RELEASABLE_DUA_TAG else ["DUA_NOT_REVIEWED"]
    reasons += ["SEEDED_NOISE"] if e_values["seeded"] else []
    reasons += ["SCHEMA_VIOLATION"] if violations else []
    reasons += [] if formal.status == "OK" else [FORMAL_REASONS[formal.status]]
    reasons += [] if formal.entries else ["LEDGER_ABSENT"]
    return {
        "cohort": spec.name,
        "generator": stage,
        "plan": plan.key,
        "contrast": plan.contrast,
        "mu": plan.mu,
        "epsilon": epsilon,
        "delta": delta,
        "fdr": {"level": plan.alpha, "procedure": PROCEDURE, "dependence": "arbitrary"},
        "registration": spec.registration_of(plan),
        "ledger": formal.as_dict(),
        "schema": {"violations": violations},
        "decision": "BLOCKED" if reasons else ELIGIBLE,
        "reasons": reasons,
        "notes": [],
    }


def list_violations(plan: DiscoveryPlan, e_values: Document, discoveries: Document) -> int:
    """How many lines and figures of a list are not what the plan makes of its e-values; names each once."""
    try:
        own = discoveries_document(e_values, plan.alpha)
    except ValueError:  # e-values of which no list can be made
        return 1
    figures = [_text(own[name]) != _text(discoveries.get(name)) for name in own if name != "list"]
    lines = [_text(line) != _text(claimed) for line, claimed in zip_longest(own["list"], discoveries["list"])]
    return sum([*figures, *lines, len(set(e_values["selected"])) != len(e_values["selected"])])


def _text(value: object) -> str:
    """A value as it is told apart: true is not 1."""
    return json.dumps(value, sort_keys=True)
