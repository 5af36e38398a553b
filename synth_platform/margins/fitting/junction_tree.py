"""Maximum entropy on a junction tree: p = Π p(clique) / Π p(separator), exact and without the full table.

Where the margins are decomposable, the largest of them are the cliques, and consistent margins are matched in the first
cycle, the closed form. Otherwise the cliques are those of a triangulation that holds every margin and every structural
zero (`triangulation`), and cells that a zero covers start at nought. Iterative proportional fitting runs on the
cliques, calibrated by messages over separators along a walk of the tree (Jiroušek & Přeučil 1995, CSDA 19). Margins
that rounding made contradictory end in a limit cycle, whose residuals are reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Codes, Domain
from synth_platform.margins.fitting.cliques import JunctionTree, Names, decomposable
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.fitting.stopping import StoppingRule, total_variation
from synth_platform.margins.fitting.targets import Target, normalise
from synth_platform.margins.fitting.triangulation import covering_tree
from synth_platform.margins.margin import Counts, MarginSet, ratio
from synth_platform.margins.structural_zeros import possible

MOST_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class JunctionTreeFit:
    """A fitted distribution: probabilities of each clique of the tree, which agree on the separators."""

    domain: Domain
    tree: JunctionTree
    tables: tuple[Counts, ...]
    report: FitReport

    def probabilities(self, names: Sequence[str]) -> Counts:
        """Probabilities over the named variables, [categories of the first, …], by variable elimination.

        Only cliques between the named variables are visited. Raises ValueError for an unknown variable, one named
        twice, or a table (asked for, or met on the way) of more than MOST_CELLS cells.
        """
        if not names or len(set(names)) < len(names):
            raise ValueError("probabilities: name variables, each of them once")
        self._check_size(names)
        needed = self._between(set(names))
        messages: dict[int, list[tuple[Counts, Names]]] = {clique: [] for clique in needed}
        for clique in reversed(needed):
            top = clique == needed[0]
            table, over = self.tables[clique], self.tree.cliques[clique]
            above = () if top else self.tree.separators[clique]
            if not top:
                given = ratio(np.ones(()), _contract(above, (table, over)))
                table = _contract(over, (table, over), (given, above))
            waiting = messages[clique]
            while waiting:
                message, below = waiting.pop()
                later = {*names, *above, *(name for _, others in waiting for name in others)}
                kept = tuple(name for name in dict.fromkeys((*over, *below)) if name in later)
                self._check_size(kept)
                table, over = _contract(kept, (table, over), (message, below)), kept
            kept = tuple(names) if top else tuple(name for name in over if name in names or name in above)
            messages[clique if top else self.tree.parents[clique]].append((_contract(kept, (table, over)), kept))
        return messages[needed[0]][0][0]

    def draw(self, rows: int, generator: np.random.Generator) -> Codes:
        """Independent rows, codes [rows, variables]: each clique's new variables given its separator."""
        codes = np.zeros((rows, len(self.domain.variables)), dtype=np.int64)
        for table, clique, given in zip(self.tables, self.tree.cliques, self.tree.separators, strict=True):
            new = tuple(name for name in clique if name not in given)
            new_shape = self._shape(new)
            joint = _contract((*given, *new), (table, clique)).reshape(-1, math.prod(new_shape))
            condition = self.domain.positions(codes, given)
            cells = np.unravel_index(_draw_given(joint, condition, generator), new_shape)
            for axis, values in zip(self.domain.axes(new), cells, strict=True):
                codes[:, axis] = values
        return codes

    def _shape(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.domain.shape[axis] for axis in self.domain.axes(names))

    def _check_size(self, names: Sequence[str]) -> None:
        cells = math.prod(self._shape(names))
        if cells > MOST_CELLS:
            raise ValueError(
                f"a table over {' × '.join(names)} has {cells:,} cells, more than {MOST_CELLS:,}: name fewer variables"
            )

    def _between(self, names: set[str]) -> list[int]:
        """Cliques of the smallest subtree that holds the names, its top first and parents before children."""
        cliques = self.tree.cliques
        whole = next((at for at, clique in enumerate(cliques) if names <= set(clique)), None)
        if whole is not None:
            return [whole]
        homes = {next(at for at, clique in enumerate(cliques) if name in clique) for name in names}
        needed = set(homes)
        for clique in reversed(range(len(cliques))):
            if clique in needed:
                needed.add(self.tree.parents[clique])
        children = self.tree.children()
        top = 0
        while top not in homes and len(below := needed.intersection(children[top])) == 1:
            needed.remove(top)
            top = below.pop()
        return sorted(needed)


def fit_junction_tree(margins: MarginSet, tolerance: float = 1e-6, most_cycles: int = 1000) -> JunctionTreeFit:
    """The maximum-entropy distribution of margins, each normalised to its own total.

    tolerance: largest residual, a total variation, at which they count as matched. Raises ValueError where the cliques
    have more than MOST_CELLS cells, or margins and structural zeros leave no possible cell between them.
    """
    tree = tree_of(margins)
    cells = sum(margins.domain.project(clique).cells for clique in tree.cliques)
    if cells > MOST_CELLS:
        raise ValueError(
            f"a junction tree of these margins has {cells:,} cells, more than {MOST_CELLS:,}: fit another way"
        )
    rule, targets = StoppingRule(tolerance, most_cycles), normalise(margins)
    by_clique: list[list[Target]] = [[] for _ in tree.cliques]
    for target in sorted(targets, key=lambda target: len(target.names)):  # the most detailed has the last word
        by_clique[next(c for c, clique in enumerate(tree.cliques) if set(target.names) <= set(clique))].append(target)
    calibration = _Calibration(margins, tree)
    status, cycles, residuals = rule.run(calibration.cycles(by_clique))
    ordered = {target.title: residuals[target.title] for target in targets}
    report = FitReport("junction_tree", status, cycles, rule.tolerance, ordered, targets.totals, targets.total)
    return JunctionTreeFit(margins.domain, tree, tuple(calibration.tables), report)


def tree_of(margins: MarginSet) -> JunctionTree:
    """The junction tree that margins are fitted on: their own, or that of a triangulation which holds all zeros too."""
    names = [margin.names for margin in margins]
    tree = decomposable(names)
    if tree is not None and all(any(set(zero.names) <= set(c) for c in tree.cliques) for zero in margins.zeros):
        return tree
    return covering_tree(margins.domain, [*names, *(zero.names for zero in margins.zeros)])


class _Calibration:
    """Tables of the cliques and of the separators to their parents; even over the possible cells at first."""

    def __init__(self, margins: MarginSet, tree: JunctionTree) -> None:
        self.tree = tree
        domains = [margins.domain.project(clique) for clique in tree.cliques]
        self.tables = [np.full(domain.shape, 1 / domain.cells) for domain in domains]
        self.separators = [self.of(clique, separator) for clique, separator in enumerate(tree.separators)]
        if margins.zeros:
            for table, domain in zip(self.tables, domains, strict=True):
                table[~possible(domain, margins.zeros)] = 0
            self.cycle([()] * len(domains))
            people = self.tables[0].sum()
            if not people > 0:
                raise ValueError("the structural zeros leave no possible cell; take one of them out")
            self.tables = [table / people for table in self.tables]
            self.separators = [separator / people for separator in self.separators]

    def of(self, clique: int, names: Names) -> Counts:
        """The clique's table summed to some of its variables."""
        return _contract(names, (self.tables[clique], self.tree.cliques[clique]))

    def cycles(self, by_clique: Sequence[Sequence[Target]]) -> Iterator[dict[str, float]]:
        """Cycle after cycle: residuals by margin title."""
        while True:
            self.cycle(by_clique)
            yield {
                target.title: total_variation(self.of(clique, target.names), target.probabilities)
                for clique, contained in enumerate(by_clique)
                for target in contained
            }

    def cycle(self, by_clique: Sequence[Sequence[Target]]) -> None:
        """Fits every target once, where the walk first meets its clique; all tables agree at the end."""
        self._fit(0, by_clique[0])
        for here, there in self.tree.walk():
            self._tell(here, there)
            if self.tree.parents[there] == here:
                self._fit(there, by_clique[there])
        for clique in range(1, len(self.tables)):
            self._tell(self.tree.parents[clique], clique)

    def _fit(self, clique: int, targets: Sequence[Target]) -> None:
        names = self.tree.cliques[clique]
        for target in targets:
            factor = ratio(target.probabilities, self.of(clique, target.names))
            table = _contract(names, (self.tables[clique], names), (factor, target.names))
            if not table.any():
                raise ValueError(
                    f"margin {target.title}: other margins are zero wherever it is positive; leave one out"
                )
            self.tables[clique] = table / table.sum()

    def _tell(self, here: int, there: int) -> None:
        edge = there if self.tree.parents[there] == here else here
        names, separator = self.tree.cliques[there], self.tree.separators[edge]
        now = self.of(here, separator)
        factor = ratio(now, self.separators[edge])
        self.tables[there] = _contract(names, (self.tables[there], names), (factor, separator))
        self.separators[edge] = now


def _contract(names: Names, *factors: tuple[Counts, Names]) -> Counts:
    """Product of tables over named variables, summed to the named ones."""
    number = {name: at for at, name in enumerate(dict.fromkeys(name for _, over in factors for name in over))}
    operands: list[Any] = [part for table, over in factors for part in (table, [number[name] for name in over])]
    return np.asarray(np.einsum(*operands, [number[name] for name in names]))


def _draw_given(joint: Counts, condition: Codes, generator: np.random.Generator) -> NDArray[np.int64]:
    """One column for each of the given rows of joint probabilities [conditions, cells], by inversion."""
    steps = np.cumsum(joint, axis=1)
    steps = ratio(steps, np.broadcast_to(steps[:, -1:], steps.shape).copy()) + np.arange(len(joint))[:, None]
    level = np.minimum(condition + generator.random(len(condition)), np.nextafter(condition + 1.0, 0.0))
    cells: NDArray[np.int64] = np.searchsorted(steps.ravel(), level, side="right") - condition * joint.shape[1]
    return cells
