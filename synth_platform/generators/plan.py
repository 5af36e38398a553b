"""A plan is bought whole or not at all: half of its statistics would cost budget and give nothing."""

from __future__ import annotations

import numpy as np

from synth_platform.generators.protocol import DPGenerator
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease

Query = StatisticQuery[EncodedRows]


def require_affordable(
    generator: DPGenerator, table: PrivateTable[EncodedRows], curator: Curator, ledger: Ledger, domain: str
) -> None:
    """Raise BudgetExceeded where what the generator has not paid for yet does not fit under the domain's cap.

    What it has paid for is answered from the store, the rest by zeros and for free: costs are public constants, so a
    query that depends on an earlier answer costs the same whatever that answer is.
    """
    unpaid: list[Query] = []

    def answer(query: Query) -> StatisticRelease:
        if ledger.find(curator.request_fingerprint(table, query)) is not None:
            return table.measure(query, curator)
        unpaid.append(query)
        zeros = np.zeros(query.dimension)
        return StatisticRelease(query.code, zeros, query.sensitivity, query.sigma, 1.0, "seeded", "", "")

    generator.measure(answer)
    ledger.require_room(domain, [query.event for query in unpaid])
