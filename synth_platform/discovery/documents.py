"""Private discoveries as documents: what was asked and answered, and the list that follows from it.

Both are functions of noisy answers and public constants alone; JSON values throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.discovery.e_bh import boosted_e_bh, log_boost
from synth_platform.discovery.peeling import Peeled, peel_with
from synth_platform.discovery.scores import once
from synth_platform.discovery.statistics.protocol import FloatArray, LogEStatistic
from synth_platform.privacy.queries import BoundedScores
from synth_platform.privacy.statistics import Query, StatisticRelease

T = TypeVar("T")
Document = Mapping[str, Any]
Names = Callable[[Sequence[int]], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Study(Generic[T]):
    """What a plan asks: an e-value over hypotheses, computed of closed rows of type T.

    made_for: the statistic for so many discoveries. With an adaptive size the first one is made for `expected` and
    chooses the size, and the one that is made for that size goes on: it has to be an e-value although the data had a
    say in it. log_e: a statistic's log e-values of rows, [hypotheses]. names: hypotheses at given positions. compared:
    public constants that say who is compared and over which family; with those of the statistic they are part of every
    request.
    """

    plan: DiscoveryPlan
    hypotheses: int
    made_for: Callable[[int], LogEStatistic[Any]]
    expected: int
    log_e: Callable[[LogEStatistic[Any], T], FloatArray]
    names: Names
    compared: Document
    _asked: dict[LogEStatistic[Any], BoundedScores[T]] = field(default_factory=dict, init=False, repr=False)

    def peel(self, ask: Callable[[Query[T]], StatisticRelease]) -> Peeled:
        """Size, selection and values, asked by `ask`; errors are those of `Curator.ask`."""
        plan = self.plan
        scores, parameters = self.asked_for(self.expected)
        return peel_with(ask, scores, plan.mu, plan.size, plan.alpha, parameters=parameters, at_size=self.asked_for)

    def asked_for(self, size: int) -> tuple[BoundedScores[T], Mapping[str, object]]:
        """The scores of the statistic for `size` discoveries, and the constants that fix them."""
        statistic = self.made_for(size)
        if statistic not in self._asked:  # three queries look at the same scores, which may take a pass over a file
            self._asked[statistic] = BoundedScores[T](
                f"discovery.{statistic.name}",
                once(lambda rows: self.log_e(statistic, rows)),
                self.hypotheses,
                statistic.sensitivity,
            )
        return self._asked[statistic], {**self.compared, "statistic": dict(statistic.parameters)}


def e_values_document(
    study: Study[T], ask: Callable[[Query[T]], StatisticRelease], *, rows: str = "", outside: Sequence[str] = ()
) -> dict[str, Any]:
    """What a study asks, and what it is told.

    rows: keyed name of the rows that are asked; it never leaves the restricted zone. outside: purposes of accesses to
    them that no entry pays for.
    """
    peeled, plan = study.peel(ask), study.plan
    adaptive = plan.size == "adaptive"
    return {
        "contrast": plan.contrast,
        "plan": plan.key,
        "method": "adaptive" if adaptive else "fixed",
        "statistic": _described(study.made_for(peeled.size if adaptive else study.expected)),
        "chooser": _described(study.made_for(study.expected)) if adaptive else None,
        "compared": dict(study.compared),
        "rows": rows,
        "hypotheses": study.hypotheses,
        "mu": plan.mu,
        "mu_parts": dict(peeled.mu_parts),
        "size": peeled.size,
        "positions": [int(position) for position in peeled.positions],
        "selected": list(study.names(peeled.positions.tolist())),
        "log_e": peeled.log_e.tolist(),
        "scale": peeled.scale,
        "entries": [release.entry_id for release in peeled.releases],
        "unledgered": list(outside),
        "seeded": any(release.source == "seeded" for release in peeled.releases),
    }


def _described(statistic: LogEStatistic[Any]) -> dict[str, Any]:
    return {
        "name": statistic.name,
        "sensitivity": statistic.sensitivity,
        "parameters": dict(statistic.parameters),
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
