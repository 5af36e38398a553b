"""Private discoveries as documents: what was asked and answered, and the list that follows from it.

Both are functions of noisy answers and public constants alone; JSON values throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.discovery.e_bh import boosted_e_bh, log_boost
from synth_platform.discovery.peeling import Peeled, peel_with
from synth_platform.discovery.statistics.protocol import LogEStatistic
from synth_platform.privacy.queries import BoundedScores
from synth_platform.privacy.statistics import Query, StatisticRelease

T = TypeVar("T")
Document = Mapping[str, Any]
Names = Callable[[Sequence[int]], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Study(Generic[T]):
    """What a plan asks: a statistic over hypotheses, as scores of closed rows of type T.

    names: hypotheses at given positions. compared: public constants that say who is compared and over which family;
    with those of the statistic they are part of every request.
    """

    plan: DiscoveryPlan
    statistic: LogEStatistic[Any]
    scores: BoundedScores[T]
    names: Names
    compared: Document

    def peel(self, ask: Callable[[Query[T]], StatisticRelease]) -> Peeled:
        """Size, selection and values, asked by `ask`; errors are those of `Curator.ask`."""
        parameters = {**self.compared, "statistic": dict(self.statistic.parameters)}
        plan = self.plan
        return peel_with(ask, self.scores, plan.mu, plan.size, plan.alpha, parameters=parameters)


def e_values_document(
    study: Study[T], ask: Callable[[Query[T]], StatisticRelease], outside: Sequence[str] = ()
) -> dict[str, Any]:
    """What a study asks, and what it is told. outside: purposes of accesses to the rows that no entry pays for."""
    peeled, plan, statistic = study.peel(ask), study.plan, study.statistic
    return {
        "contrast": plan.contrast,
        "plan": plan.key,
        "method": "adaptive" if plan.size == "adaptive" else "fixed",
        "statistic": {
            "name": statistic.name,
            "sensitivity": statistic.sensitivity,
            "parameters": dict(statistic.parameters),
        },
        "compared": dict(study.compared),
        "hypotheses": study.scores.candidates,
        "mu": plan.mu,
        "mu_parts": dict(peeled.mu_parts),
        "size": peeled.size,
        "positions": [int(position) for position in peeled.positions],
        "selected": list(study.names(peeled.positions.tolist())),
        "log_e": peeled.log_e.tolist(),
        "scale": peeled.releases[-1].sigma,
        "entries": [release.entry_id for release in peeled.releases],
        "unledgered": list(outside),
        "seeded": any(release.source == "seeded" for release in peeled.releases),
    }


def discoveries_document(e_values: Document, alpha: float) -> dict[str, Any]:
    """The list in order of private e-values, with what boosted e-BH at `alpha` discovers of it.

    log_threshold_of_one: what the largest has to reach if it is discovered alone; with k discovered, log k less.
    """
    log_e = np.asarray(e_values["log_e"], dtype=np.float64)
    hypotheses, scale = int(e_values["hypotheses"]), float(e_values["scale"])
    found = set(boosted_e_bh(log_e, alpha, scale=scale, hypotheses=hypotheses).tolist())
    order = np.argsort(-log_e, kind="stable")
    return {
        "contrast": e_values["contrast"],
        "plan": e_values["plan"],
        "alpha": alpha,
        "hypotheses": hypotheses,
        "log_threshold_of_one": math.log(hypotheses / alpha) - log_boost(len(log_e), scale),
        "discoveries": len(found),
        "list": [
            {
                "rank": rank,
                "feature": e_values["selected"][at],
                "log_e": float(log_e[at]),
                "discovered": at in found,
            }
            for rank, at in enumerate(order.tolist(), start=1)
        ],
    }
