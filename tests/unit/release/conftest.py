"""A small cohort with a list of private discoveries that its ledger paid for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.discovery.documents import discoveries_document
from synth_platform.discovery.peeling import peel_with
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource
from synth_platform.privacy.queries import BoundedScores
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.discovery import decide_discoveries

Document = dict[str, Any]
FEATURES = tuple(f"G{number}" for number in range(1, 9))
LOG_E = np.array([30.0, 28.0, 26.0, 0.0, -1.0, -2.0, 0.5, -0.5])
SENSITIVITY = 0.5


def toy_spec(**changes: Any) -> CohortSpec:
    document: Document = {
        "name": "toy",
        "kind": "omics",
        "title": "Toy cohort",
        "source_code": "LOCAL",
        "privacy": {"domain": "toy", "n_ref": 100, "budget": {"epsilon": 2.0, "delta": 1e-5}},
        "dua_tag": "RELEASE_REVIEWED",
        "source": {"reader": "tables"},
        "expression": {"unit": "tpm", "panel": list(FEATURES), "annotation": "none"},
        "clinical": [
            {"name": "subtype", "kind": "categorical", "categories": ["A", "B"]},
            {"name": "days", "kind": "survival_time", "unit": "day", "minimum": 1, "maximum": 99},
            {"name": "died", "kind": "event"},
        ],
        "outcome": {"label": "subtype", "time": "days", "event": "died"},
        "batches": ["B1"],
        "endpoints": [
            {"name": "c_index", "chance": 0.5},
            {"name": "macro_f1", "chance": 0.5},
            {"name": "auroc", "chance": 0.5},
            {"name": "spearman", "chance": 0.0},
        ],
        "plans": {"eps1": {"epsilon": 1.0, "delta": 1e-5}},
        "generators": ["G0A"],
        "synthetic": {"rows": 3, "seeds": [1, 2, 3, 4, 5]},
    }
    return CohortSpec.model_validate({**document, **changes})


def discovering_spec(**changes: Any) -> CohortSpec:
    discovering: Document = {
        "privacy": {"domain": "toy", "n_ref": 100, "budget": {"epsilon": 40.0, "delta": 1e-5}},
        "discovery": {
            "contrasts": {
                "basal": {"variable": "subtype", "case": ["A"], "sizes": [61, 43], "features": ["expression"]},
                "survival": {
                    "variable": "days",
                    "statistic": "log_rank",
                    "sizes": [104],
                    "features": ["expression"],
                },
            }
        },
    }
    return toy_spec(**{**discovering, **changes})


@dataclass(frozen=True)
class Paid:
    """A list with everything it rests on. plan: mu 2, alpha 0.05, four of eight hypotheses."""

    spec: CohortSpec
    plan: DiscoveryPlan
    e_values: Document
    discoveries: Document
    ledger: Ledger
    store: StatisticStore

    def decide(self, **changes: Any) -> Document:
        arguments = {"stage": "discovery", **vars(self), **changes}
        return decide_discoveries(**arguments)


@pytest.fixture
def pay(tmp_path: Path) -> Callable[..., Paid]:
    """Buy a list: open log e-values as the scores of closed rows, the real ledger, store and noise."""

    def buy(noise: NoiseSource | None = None, size: int = 4, contrast: str = "basal") -> Paid:
        ledger, store = Ledger(f"sqlite:///{tmp_path}/ledger.db"), StatisticStore(tmp_path / "statistics")
        ledger.set_budget("toy", 40.0, 1e-5)
        curator = Curator(ledger, store, noise or CryptographicNoise(), domain="toy", cohort="toy", run_id="run-17")
        table = seal(LOG_E, key=FingerprintKey(bytes(range(32))), digest=lambda x: hashlib.sha256(x).digest())
        scores: BoundedScores[Any] = BoundedScores("discovery.given", lambda rows: rows, len(LOG_E), SENSITIVITY)
        peeled = peel_with(lambda query: table.measure(query, curator), scores, 2.0, size, 0.05)
        plan = DiscoveryPlan(contrast, 2.0, 0.05, size, 20)
        e_values = {
            "contrast": contrast,
            "plan": plan.key,
            "method": "fixed",
            "statistic": {"name": "given", "sensitivity": SENSITIVITY, "parameters": {}},
            "compared": {
                "variable": "subtype",
                "case": ["A"],
                "control": [],
                "features": ["expression"],
                "family": "f" * 64,
            },
            "hypotheses": len(LOG_E),
            "mu": 2.0,
            "size": size,
            "selected": [FEATURES[position] for position in peeled.positions],
            "log_e": peeled.log_e.tolist(),
            "scale": peeled.releases[-1].sigma,
            "entries": [release.entry_id for release in peeled.releases],
            "unledgered": [],
            "seeded": noise is not None,
        }
        return Paid(discovering_spec(), plan, e_values, discoveries_document(e_values, 0.05), ledger, store)

    return buy


@pytest.fixture
def paid(pay: Callable[..., Paid]) -> Paid:
    return pay()
