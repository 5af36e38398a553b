"""Margins under differential privacy: noisy counts of private rows, bought at once and made margins.

Every row is in one cell of each margin, so k margins of noise `scale` are one Gaussian mechanism of μ = √k/scale under
one person more or less (`privacy.count_query`). All margins have the same noise: more of it on small tables and less
on large ones was no better where it was measured (docs/privacy.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise

import numpy as np

from synth_platform.margins.domain import Codes, Domain
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.noise.declared import in_declared
from synth_platform.margins.noise.denoise import NoisyTable, denoise
from synth_platform.margins.rows import Rows, refuse_many_cells
from synth_platform.margins.structural_zeros import StructuralZero, possible
from synth_platform.privacy.accounting import sigma_from_mu
from synth_platform.privacy.count_query import CountQuery
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex
from synth_platform.privacy.statistics import Query, StatisticRelease
from synth_platform.privacy.within_row import within_row

CODE = "M_COUNTS"

Ask = Callable[[Query[Rows]], StatisticRelease]
Names = Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class NoisyMargins:
    """Margins that were bought, and what a formal status needs to know of them.

    entries: ledger entries that paid. seeded: whether a seeded source drew any noise; such margins are never released.
    unledgered: purposes of accesses to the rows that no entry pays for. rows: keyed name of the rows, for the
    restricted zone alone.
    """

    margins: MarginSet
    entries: tuple[str, ...]
    seeded: bool
    unledgered: tuple[str, ...]
    rows: str


def measure_declared(
    ask: Ask, domain: Domain, names: Names, zeros: Sequence[StructuralZero], mu: float
) -> tuple[MarginSet, tuple[StatisticRelease, ...]]:
    """All named margins at a cost of `mu` together, and the release they were made of.

    domain: declared, as by `declared_domain`; it must not depend on the rows. mu: `privacy.accounting.gaussian_mu` of a
    plan's epsilon and the domain's delta. Raises ValueError, before anything is asked, for margins that are none of the
    domain, leave a variable uncounted or have too many cells; TooNoisyError where the noise leaves nobody; and as `ask`
    does.
    """
    require_usable(domain, names, zeros)
    query = count_query(domain, names, sigma_from_mu(mu, len(names) ** 0.5))
    release = ask(query)
    return denoise(domain, noisy_tables(domain, names, release), zeros), (release,)


def require_usable(domain: Domain, names: Names, zeros: Sequence[StructuralZero]) -> None:
    """Raise ValueError unless the margins, once bought, are a `MarginSet`: a fault must not cost budget."""
    refuse_many_cells(domain, names)
    counted = [possible(domain.project(margin), zeros).astype(np.float64) for margin in names]
    MarginSet(domain, tuple(Margin(tuple(m), c, ()) for m, c in zip(names, counted, strict=True)), tuple(zeros))


def count_query(domain: Domain, names: Names, scale: float) -> CountQuery[Rows]:
    """The query for the counts of the named margins, with noise of standard deviation `scale` on each cell."""
    wanted = tuple(tuple(margin) for margin in names)

    def cells(rows: Rows) -> Codes:
        own = in_declared(rows, domain)
        return np.stack([domain.positions(own.codes, margin) for margin in wanted], axis=1)

    return CountQuery(
        CODE,
        within_row("margins.cells", cells),
        tuple(domain.project(margin).cells for margin in wanted),
        scale,
        {
            "margins": [list(margin) for margin in wanted],
            "domain": _digest(domain),
        },
    )


def noisy_tables(domain: Domain, names: Names, release: StatisticRelease) -> list[NoisyTable]:
    """The answer to `count_query` of the same margins, a table each."""
    shapes = [domain.project(margin).shape for margin in names]
    ends = accumulate((int(np.prod(shape)) for shape in shapes), initial=0)
    return [
        NoisyTable(tuple(margin), release.values[first:last].reshape(shape), release.sigma)
        for margin, shape, (first, last) in zip(names, shapes, pairwise(ends), strict=True)
    ]


def _digest(domain: Domain) -> str:
    return sha256_hex(canonical_json([asdict(variable) for variable in domain.variables]))
