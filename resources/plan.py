"""A plan is bought whole or not at all: half of its statistics would cost budget and give nothing."""

from __future__ import annotations

import dp_accounting
import numpy as np

from synth_platform.generators.protocol import DPGenerator
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.accounting import epsilon_rdp
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.figures import exceeds
from synth_platform.privacy.ledger import BudgetExceeded, Ledger
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease

Query = StatisticQuery[EncodedRows]


def unpaid_queries(
    generator: DPGenerator, table: PrivateTable[EncodedRows], curator: Curator, ledger: Ledger
) -> list[Query]:
    """What the generator would have to pay for now; what it has paid for is answered from the store, the rest by zeros.

    Costs are public constants, so a query that depends on an earlier answer costs the same whatever that answer is.
    """
    unpaid: list[Query] = []

    def answer(query: Query) -> StatisticRelease:
        if ledger.find(curator.request_fingerprint(table, query)) is not None:
            return table.measure(query, curator)
        unpaid.append(query)
        zeros = np.zeros(query.dimension)
        return StatisticRelease(query.code, zeros, query.sensitivity, query.sigma, 1.0, "seeded", "", "")

    generator.measure(answer)
    return unpaid


def require_room(ledger: Ledger, domain: str, queries: list[Query]) -> None:
    """Raise BudgetExceeded where the queries together would take the domain past its cap; nothing is spent here."""
    budget = ledger.budget(domain)
    spent = [entry.event for entry in ledger.entries(domain)]
    asked = [dp_accounting.GaussianDpEvent(float(query.sigma) / float(query.sensitivity)) for query in queries]
    total = epsilon_rdp([*spent, *asked], budget.delta)
    if asked and exceeds(total, budget.epsilon):
        raise BudgetExceeded(
            domain=domain,
            cap=budget.epsilon,
            delta=budget.delta,
            spent=epsilon_rdp(spent, budget.delta),
            asked=epsilon_rdp(asked, budget.delta),
            total=total,
        )
