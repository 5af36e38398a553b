"""A plan is bought whole or not at all, unless another run spends meanwhile: half of its answers give nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from synth_platform.privacy.curator import Curator
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.statistics import Query, StatisticRelease

T = TypeVar("T")


def require_affordable(
    run: Callable[[Callable[[Query[T]], StatisticRelease]], object],
    table: PrivateTable[T],
    curator: Curator,
    ledger: Ledger,
    domain: str,
) -> None:
    """Raise BudgetExceeded where what `run` has not paid for yet does not fit under the domain's cap.

    run: asks all queries of the plan of the function it is given. What was paid for is answered from the store, the
    rest by placeholders and for free: costs are public constants, so a query that depends on an earlier answer has to
    cost the same whatever that answer is. Nothing is reserved: a run that spends from the domain meanwhile can leave a
    plan with a part of its answers, which stay paid for and are there when it is run again under a larger cap.
    """
    unpaid: list[Query[T]] = []

    def answer(query: Query[T]) -> StatisticRelease:
        if ledger.find(curator.request_fingerprint(table, query)) is not None:
            return table.measure(query, curator)
        unpaid.append(query)
        return StatisticRelease(query.code, query.placeholder(), query.sensitivity, query.scale, 1.0, "seeded", "", "")

    run(answer)
    ledger.require_room(domain, [query.event for query in unpaid])
