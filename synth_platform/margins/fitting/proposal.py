"""A tree of triples that candidate rows are drawn from: close to the margins, and log-linear in their pairs.

Each variable in turn joins the pair of placed ones that tells most of it, by mutual information in the triple's
distribution of maximum entropy; where the margins hold no such triple, one variable; where they hold no pair, none
(a greedy cherry tree: Kovács & Szántai 2010; with single variables only, Chow & Liu 1968). A triple is fitted to its
three pairs by multiplying functions of pairs, and separators are pairs at most, so that log q = Σ log p(triple) −
Σ log p(separator) is a sum of functions of pairs that some margin holds, however pairs were smoothed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import rel_entr

from synth_platform.margins.fitting.junction_tree import JunctionTreeFit, fit_junction_tree
from synth_platform.margins.fitting.targets import normalise
from synth_platform.margins.margin import Counts, Margin, MarginSet

UNIFORM = 0.02  # share of a pair's probability that is spread evenly over its cells with people
TRIPLE_CELLS = 2**17
TRIPLE_CYCLES = 10

Axes = tuple[int, ...]


def proposal(margins: MarginSet) -> JunctionTreeFit:
    """The tree, with tables smoothed: rare cells get more candidates than people, a cell without people gets none."""
    domain, pairs = margins.domain, _pairs(margins)
    neighbours: dict[int, set[int]] = {axis: set() for axis in range(len(domain.names))}
    for first, second in pairs:
        neighbours[first].add(second)
        neighbours[second].add(first)
    waiting, tables = dict.fromkeys(neighbours), dict[Axes, Counts]()
    offers: dict[int, tuple[float, Axes, Counts]] = {}
    while waiting:
        if offers:
            axis = max(offers, key=lambda axis: offers[axis][0])
            _, given, table = offers.pop(axis)
        else:
            axis, given = next(iter(waiting)), ()
            table = _single(margins, axis)
        del waiting[axis]
        tables[*given, axis] = table
        told = [(axis,), *((other, axis) for other in given)]
        for new in neighbours[axis].intersection(waiting):
            for by in told:
                if all(new in neighbours[other] for other in by):
                    offer = _offer(pairs, by, new)
                    if offer is not None and (new not in offers or offer[0] > offers[new][0]):
                        offers[new] = offer
    cliques = tuple(Margin(tuple(domain.names[axis] for axis in axes), table, ()) for axes, table in tables.items())
    return fit_junction_tree(replace(margins, margins=cliques, zeros=()), most_cycles=1)


def _offer(pairs: dict[tuple[int, int], Counts], by: Axes, new: int) -> tuple[float, Axes, Counts] | None:
    """What variables tell of a new one, and the table [by…, new]; None where it would be too large or empty."""
    if len(by) == 1:
        table = _pair(pairs, by[0], new)
    else:
        one, other = _pair(pairs, by[0], new), _pair(pairs, by[1], new)
        if one.size * len(other) > TRIPLE_CELLS:
            return None
        targets = ((_pair(pairs, *by)[:, :, None], 2), (one[:, None, :], 1), (other[None], 0))
        table = np.ones((len(one), len(other), one.shape[1]))
        for _ in range(TRIPLE_CYCLES):
            for target, axis in targets:
                now = table.sum(axis=axis, keepdims=True)
                table *= np.divide(target, now, out=np.zeros_like(now), where=now > 0)
        if not table.any():
            return None
    joint = table.reshape(-1, table.shape[-1]) / table.sum()
    return float(rel_entr(joint, np.outer(joint.sum(1), joint.sum(0))).sum()), by, table


def _pair(pairs: dict[tuple[int, int], Counts], first: int, second: int) -> Counts:
    return pairs[first, second] if first < second else pairs[second, first].T


def _pairs(margins: MarginSet) -> dict[tuple[int, int], Counts]:
    """Smoothed probabilities of each pair of variables that a margin holds, by their axes in order."""
    pairs: dict[tuple[int, int], Counts] = {}
    for target in sorted(normalise(margins), key=lambda target: target.probabilities.size):
        axes = margins.domain.axes(target.names)
        for one, other in combinations(range(len(axes)), 2):
            low, high = min(axes[one], axes[other]), max(axes[one], axes[other])
            if (low, high) not in pairs:
                pair = target.probabilities.sum(axis=tuple(at for at in range(len(axes)) if at not in (one, other)))
                inhabited = pair > 0
                smooth = (1 - UNIFORM) * pair + UNIFORM * inhabited / inhabited.sum()
                pairs[low, high] = smooth if low == axes[one] else smooth.T
    return pairs


def _single(margins: MarginSet, axis: int) -> Counts:
    name = margins.domain.names[axis]
    holder = next(margin for margin in margins if name in margin.names)
    own = holder.names.index(name)
    return np.asarray(holder.counts.sum(axis=tuple(at for at in range(len(holder.names)) if at != own)))
