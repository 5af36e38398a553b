"""Maximum entropy without the full table: candidate rows of a proposal, their weights raked to every margin.

Raking weights projects what they stand for at first on the margins, q ↦ argmin KL(p ‖ q). For a general proposal this
is not the distribution of maximum entropy: weights have to start at 1/q, whose variance has no bound. It is, with
weights that start equal, when q is log-linear in functions of single margins' variables: the projection multiplies q
by more such functions, stays log-linear and matches the margins, and the distribution that does both is unique
(Csiszár 1975, Ann. Probab. 3). Such a q comes of `proposal`. Rejecting rows in a cell where a target is nought keeps
this true: every distribution that matches is nought there.

Candidates of a tree alone would leave most of the weight on few rows where variables are many. So the factors that a
cycle of raking asks for are kept, as a log-linear distribution that is nearer to the margins; rows are drawn by
weight and moved by a Gibbs sweep of that distribution (`gibbs`), and it starts again. Its factors are functions of
single margins' variables too, so the weights may start equal after any round.

What no margin fixes has the sampling error of `effective_sample_size` independent rows. A cell of a margin that no
candidate hits cannot be matched: `unreached` and the residuals tell.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Codes, Domain
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.fitting.gibbs import LogLinear
from synth_platform.margins.fitting.junction_tree import MOST_CELLS, JunctionTreeFit
from synth_platform.margins.fitting.proposal import proposal
from synth_platform.margins.fitting.stopping import StoppingRule, total_variation
from synth_platform.margins.fitting.targets import Targets, normalise
from synth_platform.margins.margin import Counts, MarginSet, ratio

CANDIDATES = 200_000
BATCHES = 50
BLOCK_CELLS = 2**14
ROUNDS = 6
ENOUGH = 0.97  # share of the candidates that the effective sample size has to be for no more rounds
MOST_FACTOR = 4.0
DOUBT = 100.0  # candidates at which half of a cell's log-factor is believed

Candidates = NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class WeightedRowsFit:
    """Candidate rows, codes [candidates, variables], and their weights [candidates], which sum to one."""

    domain: Domain
    candidates: Candidates
    weights: Counts
    report: FitReport

    def probabilities(self, names: Sequence[str]) -> Counts:
        """Weight in each cell over the named variables, [categories of the first, …].

        Raises ValueError for an unknown variable, one named twice, or a table of more than MOST_CELLS cells.
        """
        if not names or len(set(names)) < len(names):
            raise ValueError("probabilities: name variables, each of them once")
        shape = self.domain.project(names).shape
        if math.prod(shape) > MOST_CELLS:
            raise ValueError(
                f"a table over {' × '.join(names)} has {math.prod(shape):,} cells, more than {MOST_CELLS:,}: "
                "name fewer variables"
            )
        return _weigh(self.domain.positions(self.candidates, names), self.weights, shape)

    def draw(self, rows: int, generator: np.random.Generator) -> Codes:
        """Independent rows, codes [rows, variables]: candidates by their weights, with replacement.

        No row is drawn that is not a candidate, so distinct rows are at most as many as candidates. Two rows are the
        same candidate with probability 1 / effective_sample_size, which the report tells: of n rows,
        n² / (2 effective_sample_size) pairs are expected to be. Candidates come from margins alone, so such a row
        repeats no person.
        """
        steps = np.cumsum(self.weights)
        chosen = np.searchsorted(steps, generator.random(rows) * steps[-1], side="right")
        return np.asarray(self.candidates[np.minimum(chosen, len(steps) - 1)], dtype=np.int64)


def fit_weighted_rows(
    margins: MarginSet,
    generator: np.random.Generator,
    candidates: int = CANDIDATES,
    tolerance: float = 1e-4,
    most_cycles: int = 100,
) -> WeightedRowsFit:
    """Rakes the weights of candidate rows to margins, each normalised to its own total.

    tolerance: largest residual, a total variation, at which the margins count as matched. Fewer candidates than asked
    for are used when nearly all rows of the proposal are impossible. Raises ValueError for less than one candidate,
    margins without a common cell, or when all rows drawn were impossible.
    """
    if candidates < 1:
        raise ValueError("candidates: at least one row is due")
    rule, targets, domain = StoppingRule(tolerance, most_cycles), normalise(margins), margins.domain
    rows = _moved(margins, targets, *_candidates(margins, targets, candidates, generator), generator)
    blocks = _blocks(domain, rows, targets)
    weights = np.full(len(rows), 1 / len(rows))
    status, cycles, missed = rule.run(_cycles(blocks, weights))
    weights /= weights.sum()
    unreached = {title: lost for block in blocks for title, lost in block.unreached(weights).items() if lost > 0}
    report = FitReport(
        "weighted_rows",
        status,
        cycles,
        tolerance,
        {target.title: missed[target.title] for target in targets},
        targets.totals,
        targets.total,
        effective_sample_size=float(1 / (weights @ weights)),
        unreached={target.title: unreached[target.title] for target in targets if target.title in unreached},
    )
    return WeightedRowsFit(domain, rows, weights, report)


def _cycles(blocks: Sequence[_Block], weights: Counts) -> Iterator[dict[str, float]]:
    """Rakes the weights in place, cycle after cycle: residuals by margin title."""
    while True:
        for block in blocks:
            block.rake(weights)
        yield {title: missed for block in blocks for title, missed in block.misses(weights).items()}


def _candidates(
    margins: MarginSet, targets: Targets, wanted: int, generator: np.random.Generator
) -> tuple[Candidates, JunctionTreeFit]:
    """Rows of a proposal that no target and no structural zero forbids, codes [at most wanted, variables], and it."""
    domain, tree = margins.domain, proposal(margins)
    allowed = [(target.names, target.probabilities > 0) for target in targets]
    allowed += [(zero.names, ~zero.cells(domain.project(zero.names))) for zero in margins.zeros]
    kept: list[Candidates] = []
    for _ in range(BATCHES):
        rows = tree.draw(wanted, generator).astype(np.int16)
        for names, cells in allowed:
            if not cells.all():
                rows = rows[cells.ravel()[domain.positions(rows, names)]]
        kept.append(rows)
        if sum(map(len, kept)) >= wanted:
            break
    if not sum(map(len, kept)):
        raise ValueError("every candidate row is in a cell where a margin is zero; keep fewer zeros or drop a margin")
    return np.concatenate(kept)[:wanted], tree


def _moved(
    margins: MarginSet, targets: Targets, rows: Candidates, tree: JunctionTreeFit, generator: np.random.Generator
) -> Candidates:
    """Rows that stand for the margins nearly as they are: raked once, drawn by weight and moved, a few times.

    A second cycle of raking before the rows are moved would teach the model what only these rows ask for: where margins
    contradict each other it then runs away.
    """
    model = LogLinear(margins.domain, tree, margins.zeros)
    for target in targets:
        model.multiply(margins.domain.axes(target.names), (target.probabilities > 0).astype(np.float64))
    for _ in range(ROUNDS):
        weights = np.full(len(rows), 1 / len(rows))
        blocks = _blocks(margins.domain, rows, targets)
        for block in blocks:
            block.learn(weights, model)
        if 1 / (weights @ weights) > ENOUGH * len(rows):
            break
        steps = np.cumsum(weights)
        places = (np.arange(len(rows)) + generator.random()) * (steps[-1] / len(rows))
        rows = rows[np.minimum(np.searchsorted(steps, places, side="right"), len(rows) - 1)]
        model.sweep(rows, generator)
    return np.asfortranarray(rows)


@dataclass(frozen=True, eq=False)
class _Block:
    """Margins over a few variables, raked in one small table: rows are read and written once for all of them.

    axes: of the variables, ascending. cells: position of each candidate in the flat table. targets: title and
    probabilities, broadcastable to `shape`.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    cells: NDArray[np.unsignedinteger[Any]]
    targets: tuple[tuple[str, Counts], ...]

    def rake(self, weights: Counts) -> None:
        """Multiplies weights in place, margin after margin."""
        before = _weigh(self.cells, weights, self.shape)
        table = before.copy()
        for _, target in self.targets:
            now = _summed(table, target.shape)
            table *= ratio(target, now) / target[now > 0].sum()
        weights *= ratio(table, before).ravel()[self.cells]

    def learn(self, weights: Counts, model: LogLinear) -> None:
        """Rakes weights and model alike, by less than asked for where few candidates are in a cell.

        A cell of n candidates is known to 1/√n of its probability, and a factor that only chance asks for would send
        later rows there. Weights are normalised.
        """
        before = _weigh(self.cells, weights, self.shape)
        table = before.copy()
        for _, target in self.targets:
            now = _summed(table, target.shape)
            hits = now * len(weights)
            wanted = np.clip(ratio(target, now) / target[now > 0].sum(), 1 / MOST_FACTOR, MOST_FACTOR)
            factor = wanted ** (hits / (hits + DOUBT))
            model.multiply(
                tuple(axis for axis, n in zip(self.axes, target.shape, strict=True) if n > 1), np.squeeze(factor)
            )
            table *= factor / (now * factor).sum()
        weights *= ratio(table, before).ravel()[self.cells]
        weights /= weights.sum()

    def misses(self, weights: Counts) -> dict[str, float]:
        """Residual of each margin, by title."""
        table = _weigh(self.cells, weights, self.shape)
        return {title: total_variation(_summed(table, target.shape), target) for title, target in self.targets}

    def unreached(self, weights: Counts) -> dict[str, float]:
        """Probability of each margin's target in cells without a candidate, by title."""
        table = _weigh(self.cells, weights, self.shape)
        return {title: float(target[_summed(table, target.shape) == 0].sum()) for title, target in self.targets}


def _blocks(domain: Domain, rows: Candidates, targets: Targets) -> list[_Block]:
    """Every margin in one block; a block grows by the variable that brings most margins, to BLOCK_CELLS cells."""
    size = dict(zip(domain.names, domain.shape, strict=True))
    left = {frozenset(target.names): target for target in targets}
    blocks = []
    while left:
        names = set(next(iter(left)))
        while True:
            room = BLOCK_CELLS // math.prod(size[name] for name in names)
            gains = Counter(
                name for others in left if len(new := others - names) == 1 for name in new if size[name] <= room
            )
            if not gains:
                break
            names.add(max(gains, key=lambda name: (gains[name] / math.log(size[name] + 1), name)))
        axes = sorted(domain.axes(tuple(names)))
        held = [left.pop(others) for others in list(left) if others <= names]
        shape = tuple(domain.shape[axis] for axis in axes)
        cells = domain.positions(rows, [domain.names[axis] for axis in axes])
        along = []
        for target in held:
            own = domain.axes(target.names)
            missing = tuple(at for at, axis in enumerate(axes) if axis not in own)
            ordered = np.transpose(target.probabilities, np.argsort(own))
            along.append((target.title, np.expand_dims(ordered, missing)))
        blocks.append(_Block(tuple(axes), shape, cells.astype(np.min_scalar_type(math.prod(shape) - 1)), tuple(along)))
    return blocks


def _summed(table: Counts, shape: tuple[int, ...]) -> Counts:
    """Sums along the axes on which the shape has length one."""
    axes = tuple(axis for axis, length in enumerate(shape) if length == 1)
    return np.asarray(table.sum(axis=axes, keepdims=True))


def _weigh(cells: NDArray[np.integer[Any]], weights: Counts, shape: tuple[int, ...]) -> Counts:
    return np.bincount(cells, weights, minlength=math.prod(shape)).reshape(shape).astype(np.float64, copy=False)
