"""G3, the list: order and ranks, how far its e-values may be boosted, and which of them e-BH discovers.

**Discoveries.** E-BH is the procedure of Benjamini and Hochberg on 1/e. With t what one discovery alone has to reach,
the adjusted figure of the r-th largest is min_{q ≥ r} (t − log q − log e_(q)); those at or below 0 are discovered.

**Boost.** k values of size x·exp(−ξ), ξ ~ N(s²/2, s²), may count b times if E[T(b·x·e^{−ξ})] ≤ x for every x > 0,
where T rounds down to the nearest of 1, k/(k−1), …, k and to 0 below 1 (in units of m/(αk)). Tilting the normal density
by e^y moves its mean by s², so with g(y) = T(e^y)/e^y the condition is

    b · sup_c E[g(Y)] ≤ 1,    Y ~ N(c, s²),

and g has the integral G(y) = H_k − H_r + 1 − (k/r)·e^{−y}, r = ⌈k·e^{−y}⌉ and H the harmonic numbers. Its exact
increments over small cells are weighed with the density in the middle of each: no level is left out, no jump is
smoothed over. The supremum is searched for, so what is found can only be too lenient, by the error of the search.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma

from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.reading import Document, FloatArray, array, item, mapping, number, sequence, whole

# Nats. What the quadrature of the boost may be wrong by; and how much of the boost a list may leave unused, which costs
# discoveries and not validity.
BOOST_ERROR = 2e-5
BOOST_UNUSED = 5e-3
# Nats: an e-value this near to its level may be on either side of it in other arithmetic.
LAST_DIGITS = 1e-9

LARGEST_SCALE = 100.0
_SMALLEST_SCALE = 1e-6
_REACH, _TAIL = 9.0, 40.0
_COARSE, _FINE = 400, 6000
_PEAKS = 8
_LINE = {"rank", "feature", "log_e", "discovered"}
_FIELDS = {"contrast", "plan", "alpha", "hypotheses", "log_threshold_of_one", "discoveries", "list"}


def audit_list(found: Findings, name: str, e_values: Document, discoveries: Document, plan: Document) -> bool:
    """The list follows from its private e-values. Returns whether every claim of its lines holds."""
    alpha, hypotheses = number(plan, "alpha"), whole(e_values, "hypotheses")
    found.same(f"{name}/fields", "structure", sorted(discoveries), sorted(_FIELDS))
    sound = [
        found.same(f"{name}/alpha", "alpha", item(discoveries, "alpha"), item(plan, "alpha")),
        found.same(f"{name}/hypotheses", "count", item(discoveries, "hypotheses"), hypotheses),
    ]
    log_e = array(e_values, "log_e")
    selected = [str(feature) for feature in sequence(e_values, "selected")]
    if len(selected) != len(log_e) or not len(log_e):
        raise MalformedError("selected")
    sound.append(found.same(f"{name}/features", "length", len(set(selected)), len(selected)))
    lines = [mapping({"line": line}, "line") for line in sequence(discoveries, "list")]
    sound.append(found.same(f"{name}/lines", "length", len(lines), len(log_e)))
    order = sorted(range(len(log_e)), key=lambda at: (-log_e[at], at))
    for rank, (line, at) in enumerate(zip(lines, order, strict=False), start=1):
        own = {"rank": rank, "feature": selected[at], "log_e": float(log_e[at])}
        same = set(line) == _LINE and all(line[key] == own[key] for key in own) and type(line["rank"]) is int
        sound.append(found.holds(f"{name}/line-{rank}", "line", same, "not the e-value of this rank"))

    threshold = number(discoveries, "log_threshold_of_one")
    _threshold(found, f"{name}/threshold", threshold, math.log(hypotheses) - math.log(alpha), len(log_e), e_values)
    marked = [item(line, "discovered") for line in lines]
    sound.append(found.holds(f"{name}/marks", "line", all(type(mark) is bool for mark in marked), "not true or false"))
    found.same(f"{name}/discoveries", "count", whole(discoveries, "discoveries"), sum(mark is True for mark in marked))
    adjusted = adjusted_log(np.sort(log_e)[::-1], threshold)
    for rank, (mark, figure) in enumerate(zip(marked, adjusted.tolist(), strict=False), start=1):
        lawful = abs(figure) <= LAST_DIGITS or mark is (figure < 0)
        found.holds(f"{name}/discovered-{rank}", "discovered", lawful, f"claimed {mark is True}")
    return all(sound)


def adjusted_log(ordered: FloatArray, threshold: float) -> FloatArray:
    """Adjusted log figures of Benjamini and Hochberg on 1/e, [n]; ordered: log e-values, largest first."""
    alone = threshold - np.log(np.arange(1, len(ordered) + 1)) - ordered
    return np.asarray(np.minimum.accumulate(alone[::-1])[::-1])


@cache
def valid_log_boost(count: int, scale: float) -> float:
    """log of the largest b for `count` values with noise of standard deviation `scale`, in nats; 0 beyond all use."""
    if not _SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        return 0.0
    ranks = np.unique(np.rint(np.geomspace(1, count, min(count, 100))))
    steps = np.linspace(0.0, 8.0, 33) * scale
    # The mean is largest a little above a level; below 0 and far above log k it only falls.
    highest = math.log(count) + 2.0
    centres = np.concatenate([(np.log(count / ranks)[:, np.newaxis] + steps).ravel(), np.linspace(0.0, highest, 400)])
    centres = np.unique(centres[centres <= highest])
    means = np.array([_mean(centre, count, scale, _COARSE) for centre in centres])
    padded = np.concatenate([[-1.0], means, [-1.0]])
    peaks = np.flatnonzero((means >= padded[:-2]) & (means >= padded[2:]))
    best = 0.0
    for at in peaks[np.argsort(-means[peaks])][:_PEAKS]:
        low, high = centres[max(at - 1, 0)], centres[min(at + 1, len(centres) - 1)]
        result = minimize_scalar(
            lambda c: -_mean(c, count, scale, _FINE), bounds=(low, high), method="bounded", options={"xatol": 1e-6}
        )
        best = max(best, -float(result.fun))
    return -math.log(min(best, 1.0))


def _mean(centre: float, count: int, scale: float, cells: int) -> float:
    """E[g(Y)], Y ~ N(centre, scale²)."""
    low = max(0.0, centre - _REACH * scale)
    high = min(centre + _REACH * scale, math.log(count) + _TAIL)
    edges = np.linspace(low, high, cells + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    density = np.exp(-(((middle - centre) / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))
    return float(np.diff(_integral(edges, count)) @ density)


def _integral(y: FloatArray, count: int) -> FloatArray:
    """G at y ≥ 0, up to a constant."""
    weight = count * np.exp(-y)
    level = np.maximum(np.ceil(weight), 1.0)
    return np.asarray(-digamma(level + 1) - weight / level)


def _threshold(found: Findings, name: str, claimed: float, without: float, count: int, e_values: Document) -> None:
    """What one discovery has to reach is not below what the boost allows, and not above what e-BH asks without it."""
    scale = number(e_values, "scale")
    if not 0 < scale < math.inf:
        raise MalformedError("scale")
    boost = valid_log_boost(count, scale)
    found.holds(f"{name}/valid", "threshold", claimed >= without - boost - BOOST_ERROR, "below what is valid")
    highest = without if scale > LARGEST_SCALE else without - boost + BOOST_UNUSED
    found.holds(f"{name}/used", "threshold", claimed <= highest + LAST_DIGITS, "above what the boost allows")
