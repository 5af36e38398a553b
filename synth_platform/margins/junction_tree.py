"""Maximum entropy in closed form where the margins are decomposable: p = Π p(clique) / Π p(separator).

The largest margins are the cliques. They are decomposable when a tree of them has running intersection: whatever two
of them share stands in every clique between them. Over any tree Σ|separator| ≤ Σ|clique| − variables, with equality
only under running intersection (the cliques of one variable span a forest of at most one edge fewer than there are of
them), so a spanning tree of the heaviest separators tells (Bernstein & Goodman 1981, SIAM J. Comput. 10).

Iterative proportional fitting runs on the cliques, calibrated by messages over separators along a walk of the tree
(Jiroušek & Přeučil 1995, CSDA 19). Consistent margins are matched in the first cycle, the closed form; margins that
rounding made contradictory end in a limit cycle, whose residuals are reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Codes, Domain
from synth_platform.margins.fitted import FitReport
from synth_platform.margins.margin import Counts, MarginSet, ratio
from synth_platform.margins.stopping import StoppingRule, total_variation
from synth_platform.margins.targets import Target, normalise

MOST_CELLS = 10_000_000

Names = tuple[str, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each after its parent; the first is the root, its parent is itself.

    separators: what a clique shares with its parent, () for the root and between components that share nothing.
    """

    cliques: tuple[Names, ...]
    parents: tuple[int, ...]
    separators: tuple[Names, ...]

    def walk(self) -> Iterator[tuple[int, int]]:
        """Steps (from, to) along edges: from the root down every branch and back."""
        children = self.children()
        path, unseen = [0], [iter(children[0])]
        while path:
            down = next(unseen[-1], None)
            if down is not None:
                yield path[-1], down
                path.append(down)
                unseen.append(iter(children[down]))
            else:
                unseen.pop()
                here = path.pop()
                if path:
                    yield here, path[-1]

    def children(self) -> list[list[int]]:
        """Positions of the children of each clique."""
        children: list[list[int]] = [[] for _ in self.cliques]
        for clique, parent in enumerate(self.parents[1:], start=1):
            children[parent].append(clique)
        return children


def decomposable(margins: Iterable[Sequence[str]]) -> JunctionTree | None:
    """A junction tree of the largest margins' variables, or None where they have none.

    Margins that share nothing are joined by empty separators: they are independent.
    """
    cliques = _largest(margins)
    names = sorted({name for clique in cliques for name in clique})
    if not cliques or len(cliques) > len(names):  # in a junction tree each clique brings a variable of its own
        return None
    position = {name: axis for axis, name in enumerate(names)}
    holds = np.zeros((len(cliques), len(names)), dtype=np.float32)
    for row, clique in enumerate(cliques):
        holds[row, [position[name] for name in clique]] = 1

    order, parents = [0], {0: 0}
    shared, nearest = holds @ holds[0], np.zeros(len(cliques), dtype=np.int64)
    weight, shared[0] = 0.0, -1
    while len(order) < len(cliques):
        new = int(shared.argmax())
        weight += float(shared[new])
        parents[new] = int(nearest[new])
        order.append(new)
        shared[new] = -1
        overlap = holds @ holds[new]
        closer = (overlap > shared) & (shared >= 0)
        shared[closer], nearest[closer] = overlap[closer], new
    if weight != sum(map(len, cliques)) - len(names):
        return None
    place = {clique: at for at, clique in enumerate(order)}
    return JunctionTree(
        tuple(cliques[clique] for clique in order),
        tuple(place[parents[clique]] for clique in order),
        ((), *(tuple(n for n in cliques[c] if n in cliques[parents[c]]) for c in order[1:])),
    )


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
    """The maximum-entropy distribution of decomposable margins, each normalised to its own total.

    tolerance: largest residual, a total variation, at which they count as matched. Raises
    ValueError where the margins have no junction tree, a structural zero is of variables that no margin holds
    together, or margins leave no possible cell between them.
    """
    tree = decomposable(margin.names for margin in margins)
    if tree is None:
        raise ValueError("these margins are not decomposable, a junction tree has no place for them: fit another way")
    for zero in margins.zeros:
        if not any(set(zero.names) <= set(clique) for clique in tree.cliques):
            raise ValueError(
                f"structural zero over {' × '.join(zero.names)}: no margin holds these variables together; "
                "add one, or fit another way"
            )
    rule, targets = StoppingRule(tolerance, most_cycles), normalise(margins)
    by_clique: list[list[Target]] = [[] for _ in tree.cliques]
    for target in sorted(targets, key=lambda target: len(target.names)):  # the most detailed has the last word
        by_clique[next(c for c, clique in enumerate(tree.cliques) if set(target.names) <= set(clique))].append(target)
    calibration = _Calibration(margins.domain, tree)
    status, cycles, residuals = rule.run(calibration.cycles(by_clique))
    ordered = {target.title: residuals[target.title] for target in targets}
    report = FitReport("junction_tree", status, cycles, rule.tolerance, ordered, targets.totals, targets.total)
    return JunctionTreeFit(margins.domain, tree, tuple(calibration.tables), report)


class _Calibration:
    """Tables of the cliques and of the separators to their parents; uniform, the largest entropy, at first."""

    def __init__(self, domain: Domain, tree: JunctionTree) -> None:
        self.tree = tree
        shapes = [domain.project(clique).shape for clique in tree.cliques]
        self.tables = [np.full(shape, 1 / math.prod(shape)) for shape in shapes]
        self.separators = [self.of(clique, separator) for clique, separator in enumerate(tree.separators)]

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


def _largest(margins: Iterable[Sequence[str]]) -> list[Names]:
    """Margins that no other contains, of equal ones the first."""
    distinct = list({frozenset(names): tuple(names) for names in margins}.values())
    holders: dict[str, set[int]] = {}
    for at, names in enumerate(distinct):
        for name in names:
            holders.setdefault(name, set()).add(at)
    return [names for names in distinct if len(set.intersection(*(holders[name] for name in names))) == 1]


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
