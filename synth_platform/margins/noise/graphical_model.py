"""The distribution of maximum entropy that comes near noisy margins: relaxed maximum entropy on a junction tree.

Noisy margins contradict each other and have counts below nought, so no table has them. The estimate minimises

    n KL(p ‖ even) + Σ_r ‖n M_r(p) − y_r‖² / (2 c_r),

M_r(p) the margin over r, y_r its noisy counts, n the number of people, c_r > 0 the leave to miss a margin. It is p ∝
exp(Σ_r θ_r) with the θ that minimise the dual, smooth and strictly convex (Dudík, Phillips & Schapire 2007, JMLR 8),

    n log Z(θ) − Σ_r θ_r·y_r + Σ_r c_r ‖θ_r‖² / 2,    whence n M_r(p) = y_r − c_r θ_r.

A cell of which the other margins tell as much (θ near nought) is believed as measured; noise that makes a cell likely
against all of them (θ of several nats) is taken back by as many c_r. Log Z and the margins come of one pass over the
tree of a triangulation, so the margins need not be decomposable. As p is log-linear in the margins, it is also the
distribution of maximum entropy that has the margins M_r(p) exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from synth_platform.margins.domain import Domain
from synth_platform.margins.fitting.cliques import JunctionTree
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.fitting.junction_tree import JunctionTreeFit
from synth_platform.margins.fitting.stopping import total_variation
from synth_platform.margins.fitting.triangulation import covering_tree
from synth_platform.margins.margin import Counts, ratio
from synth_platform.margins.noise.denoise import NoisyTable
from synth_platform.margins.structural_zeros import StructuralZero, possible

RELAXATION = 0.2  # c_r in standard deviations of the noise
TOLERANCE = 0.05  # largest |n M_r(p) − y_r + c_r θ_r| of a cell, in √(its count + c_r)
MOST_STEPS = 1000
_MEMORY = 20

Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Estimate:
    """The distribution, the number of people n, and θ by margin, to go on from. Residuals are against noisy counts."""

    fitted: JunctionTreeFit
    people: float
    potentials: Mapping[Names, Counts]

    def counts(self, names: Sequence[str]) -> Counts:
        """n M(p) over the named variables, [categories of the first, …]. Raises as `JunctionTreeFit` does."""
        return self.people * self.fitted.probabilities(names)


def estimate(
    domain: Domain,
    tables: Sequence[NoisyTable],
    zeros: Sequence[StructuralZero] = (),
    start: Mapping[Names, Counts] | None = None,
    tolerance: float = TOLERANCE,
) -> Estimate:
    """The distribution that comes near noisy tables, with nobody in structural zeros.

    tables: variables in the order of the domain; several of one margin are averaged. start: potentials of an earlier
    estimate. Deterministic. Raises ValueError for no table, or names in another order or unknown.
    """
    pooled = _pooled(domain, tables, zeros)
    people = _people(pooled)
    model = _Model(domain, covering_tree(domain, [*(t.names for t in pooled), *(z.names for z in zeros)]), zeros)
    homes = [model.home(table.names) for table in pooled]
    relaxed = [RELAXATION * table.sigma for table in pooled]
    scale = np.concatenate([np.sqrt(np.maximum(t.counts, 0) + c).ravel() for t, c in zip(pooled, relaxed, strict=True)])
    ends = np.cumsum([table.counts.size for table in pooled])[:-1]

    def potentials(point: Counts) -> list[Counts]:
        parts = np.split(point / scale, ends)
        return [part.reshape(table.counts.shape) for part, table in zip(parts, pooled, strict=True)]

    def dual(point: Counts) -> tuple[float, Counts]:
        held = potentials(point)
        cliques, log_z = model.tables(homes, held)
        value, slope = people * log_z, []
        for home, theta, c, table in zip(homes, held, relaxed, pooled, strict=True):
            value += float((c / 2 * theta**2 - theta * table.counts).sum())
            slope.append((people * home.margin(cliques) - table.counts + c * theta).ravel())
        return value, np.concatenate(slope) / scale

    known = start or {}
    first = np.concatenate([known.get(t.names, np.zeros(t.counts.shape)).ravel() for t in pooled])
    found = minimize(
        dual,
        first * scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "maxfun": 2 * MOST_STEPS, "maxcor": _MEMORY, "gtol": tolerance, "ftol": 0.0},
    )
    held = potentials(found.x)
    cliques, _ = model.tables(homes, held)
    titles = [" × ".join(table.names) for table in pooled]
    report = FitReport(
        engine="junction_tree",
        status="matched" if found.success else "iteration_limit",
        cycles=int(found.nit),
        tolerance=tolerance,
        residuals={
            title: total_variation(home.margin(cliques), table.counts / people)
            for title, home, table in zip(titles, homes, pooled, strict=True)
        },
        totals={title: float(table.counts.sum()) for title, table in zip(titles, pooled, strict=True)},
        total=people,
    )
    fitted = JunctionTreeFit(domain, model.tree, tuple(cliques), report)
    return Estimate(fitted, people, {table.names: theta for table, theta in zip(pooled, held, strict=True)})


def _pooled(domain: Domain, tables: Sequence[NoisyTable], zeros: Sequence[StructuralZero]) -> list[NoisyTable]:
    """One table a margin, the mean weighted by precision, with nobody in impossible cells."""
    if not tables:
        raise ValueError("tables: at least one noisy margin is due")
    by_names: dict[Names, list[NoisyTable]] = {}
    for table in tables:
        axes = domain.axes(table.names)
        if list(axes) != sorted(set(axes)):
            raise ValueError(f"margin {' × '.join(table.names)}: name its variables once, in the order of the domain")
        by_names.setdefault(table.names, []).append(table)
    pooled = []
    for names, several in by_names.items():
        precision = sum(1 / table.sigma**2 for table in several)
        mean = sum((table.counts / table.sigma**2 for table in several), np.zeros(())) / precision
        free = possible(domain.project(names), zeros)
        pooled.append(NoisyTable(names, np.where(free, mean, 0.0), precision**-0.5))
    return pooled


def _people(tables: Sequence[NoisyTable]) -> float:
    """Number of people, one at least: totals, each of variance cells · σ², weighted by precision."""
    weights = np.array([1 / (table.counts.size * table.sigma**2) for table in tables])
    return max(1.0, float(weights @ np.array([table.counts.sum() for table in tables]) / weights.sum()))


@dataclass(frozen=True)
class _Home:
    """The clique that holds a margin, and the axes of its table that the margin sums over."""

    clique: int
    rest: tuple[int, ...]

    def margin(self, tables: Sequence[Counts]) -> Counts:
        return np.asarray(tables[self.clique].sum(axis=self.rest))


class _Model:
    """Tables of the cliques, axes in the order of the domain, by the potentials of margins."""

    def __init__(self, domain: Domain, tree: JunctionTree, zeros: Sequence[StructuralZero]) -> None:
        self.tree = tree
        self.own = [domain.project(clique) for clique in tree.cliques]
        self.masks: dict[int, NDArray[np.bool_]] = {}
        for zero in zeros:
            clique = self.home(zero.names).clique
            self.masks[clique] = possible(self.own[clique], zeros)
        pairs = list(zip(tree.parents, tree.separators, strict=True))
        self.up = [_Home(at, self._rest(at, separator)) for at, (_, separator) in enumerate(pairs)]
        self.down = [_Home(parent, self._rest(parent, separator)) for parent, separator in pairs]

    def home(self, names: Sequence[str]) -> _Home:
        """The smallest clique that holds the names."""
        holders = [at for at, clique in enumerate(self.tree.cliques) if set(names) <= set(clique)]
        clique = min(holders, key=lambda at: self.own[at].cells)
        return _Home(clique, self._rest(clique, names))

    def _rest(self, clique: int, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(at for at, name in enumerate(self.tree.cliques[clique]) if name not in names)

    def tables(self, homes: Sequence[_Home], potentials: Sequence[Counts]) -> tuple[list[Counts], float]:
        """Probabilities of each clique, which agree on the separators, and log Z: messages to the root and back."""
        tables = [np.zeros(own.shape) for own in self.own]
        for home, theta in zip(homes, potentials, strict=True):
            tables[home.clique] += np.expand_dims(theta, home.rest)
        log_z = 0.0
        for at, table in enumerate(tables):
            largest = float(table.max())
            np.exp(table - largest, out=table)
            if at in self.masks:
                np.copyto(table, 0, where=~self.masks[at])
            log_z += largest
        for at in range(len(tables) - 1, 0, -1):
            told = self.up[at].margin(tables)
            log_z += float(np.log(told.sum()))
            tables[self.tree.parents[at]] *= np.expand_dims(told / told.sum(), self.down[at].rest)
        log_z += float(np.log(tables[0].sum()))
        tables[0] /= tables[0].sum()
        for at in range(1, len(tables)):
            now = ratio(self.down[at].margin(tables), self.up[at].margin(tables))
            tables[at] *= np.expand_dims(now, self.up[at].rest)
        return tables, log_z
