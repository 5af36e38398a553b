"""Private discoveries among many hypotheses: select a few, measure them with fresh noise, and control false ones.

Noise on all of m log e-values for a total of μ has standard deviation Δ√m/μ, and nothing survives it. Peeling spends

    μ² = μ_size² + μ_selection² + μ_values²

on (1) how many to select, where that is not fixed beforehand (`adaptive`), (2) which: the ordered k largest of log E +
b·Gumbel noise, in one draw for the price of k selections (`selection`), and (3) their log e-values with Gaussian noise
of standard deviation s = Δ√k/μ_values. Less the shift s²/2 a noisy value is the log of an e-value (`canonical`), and
all others count as e-values of zero, so e-BH over all m hypotheses controls the false discovery rate under any
dependence, boosted because the noise is known (`e_bh`). The noise of (3) must be new: the noise that got a hypothesis
selected is large where it was selected.

Shares of μ² were chosen by simulation of the cases in `benchmarks/discovery_peeling.py`: 5% for the size; of the rest
45% for the selection, and between 40% and 50% power changes by .01 at most. What the queries cost together depends on
mu alone, never on an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from synth_platform.discovery.adaptive import SizeChoice
from synth_platform.discovery.canonical import FloatArray, IntArray, PrivateLogE, checked_log_e
from synth_platform.discovery.e_bh import boosted_e_bh
from synth_platform.discovery.selection import gumbel_scale
from synth_platform.privacy.events import tally
from synth_platform.privacy.noise import NoiseSource
from synth_platform.privacy.queries import ROUNDING, BoundedScores, SelectionQuery, ValueQuery
from synth_platform.privacy.rehearsal import Rehearsal
from synth_platform.privacy.statistics import Query, StatisticRelease

T = TypeVar("T")
Q = TypeVar("Q", SelectionQuery[Any], ValueQuery[Any])
Size = int | Literal["adaptive"]
Ask = Callable[[Query[T]], StatisticRelease]
AtSize = Callable[[int], tuple[BoundedScores[T], Mapping[str, object]]]

SIZE_SHARE = 0.05
SELECTION_SHARE = 0.45
SMALLEST_MU, LARGEST_MU = 1e-6, 60.0

_SELECTION, _VALUES = math.sqrt(SELECTION_SHARE), math.sqrt(1 - SELECTION_SHARE)
_SPARE = 1 + 2.0**-30  # of every scale, so that no rounding of the ledger's own figures exceeds mu


@dataclass(frozen=True, eq=False)
class Peeled:
    """What peeling found out, all of it private: any function of it may be published.

    hypotheses: m. positions: [size] of the selected hypotheses, in the order of selection. private: their log
    e-values, [size]. shift: nats that were taken off each noisy value. mu_parts: what "size", "selection" and "values"
    cost, 0.0 where one was not asked. discoveries: positions that boosted e-BH rejects at level alpha, ascending.
    releases: the answers, oldest first, with the ledger entries that paid for them.
    """

    hypotheses: int
    alpha: float
    positions: IntArray
    private: PrivateLogE
    shift: float
    mu_parts: Mapping[str, float]
    discoveries: IntArray
    releases: tuple[StatisticRelease, ...]

    @property
    def size(self) -> int:
        """How many were selected."""
        return self.positions.size

    @property
    def log_e(self) -> FloatArray:
        """[size] private log e-values, in nats, as they came: without the boost."""
        return self.private.log_e

    @property
    def scale(self) -> float:
        """s, the standard deviation of the noise of each value in nats: to the last bit that of the ledger."""
        return self.releases[-1].sigma

    @property
    def mu(self) -> float:
        """All parts together."""
        return math.hypot(*self.mu_parts.values())


def peel(log_e: ArrayLike, sensitivity: float, mu: float, size: Size, alpha: float, noise: NoiseSource) -> Peeled:
    """Discoveries among hypotheses with open log e-values [m], at a total cost of mu; false discovery rate ≤ alpha.

    The code that answers queries on closed rows, without a ledger: for simulations and open data. sensitivity is Δ of
    each log e-value. size: how many to select, at most m, or "adaptive".

    Raises ValueError that names what is out of range: an empty log_e, a NaN or an infinity in it (no sensitivity holds
    for an e-value of zero), sensitivity that is not finite and > 0, mu outside 1e-6..60, alpha outside (0, 1), size.
    """
    log_e = checked_log_e(log_e)
    if log_e.ndim != 1 or not log_e.size:
        raise ValueError(f"log_e has shape {log_e.shape}, expected [m]: one log e-value per hypothesis, at least one")
    scores = BoundedScores[FloatArray]("discovery.log_e", lambda rows: rows, log_e.size, sensitivity)
    return peel_with(Rehearsal(log_e, noise).ask, scores, mu, size, alpha)


def peel_with(
    ask: Ask[T],
    scores: BoundedScores[T],
    mu: float,
    size: Size,
    alpha: float,
    *,
    parameters: Mapping[str, object] | None = None,
    at_size: AtSize[T] | None = None,
) -> Peeled:
    """`peel` by queries: `ask` answers each, such as a curator's for a closed table.

    scores: log e-values of rows, with their sensitivity. parameters: public constants that fix the scores, JSON values;
    part of every request. at_size: the scores and constants to go on with once the size is chosen; they have to be
    log e-values although the data had a say in them (`statistics/chosen_tilt`). Raises as `peel` does, before anything
    is asked, and whatever `ask` raises.
    """
    _check(mu, alpha)
    m, public = scores.candidates, parameters or {}
    releases: list[StatisticRelease] = []
    parts = {"size": 0.0, "selection": 0.0, "values": 0.0}

    def bought(part: str, query: Query[T]) -> StatisticRelease:
        releases.append(ask(query))
        parts[part] = math.sqrt(2 * tally([query.event]).rho)
        return releases[-1]

    rest, by_data = mu, False
    if size != "adaptive":
        size = _checked_size(size, m)
    elif m == 1:
        size = 1
    else:
        choice = size_choice(m, alpha, scores.sensitivity, mu)
        answer = bought("size", _size_query(scores, choice, mu * math.sqrt(SIZE_SHARE), public))
        size, rest, by_data = choice.sizes[int(answer.values[0])], mu * math.sqrt(1 - SIZE_SHARE), True
        if at_size is not None:
            scores, public = at_size(size)

    positions = np.arange(m)  # where all are selected there is nothing to choose
    if size < m:
        answer = bought("selection", _selection_query("E_SELECTION", scores, size, rest * _SELECTION, public))
        positions, rest, by_data = answer.values.astype(np.int64), rest * _VALUES, True

    query = _value_query(scores, positions, rest, public)
    values = bought("values", query).values
    shift = query.sigma**2 / 2 * (1 + 2.0**-50) + query.step + ROUNDING
    each = query.sensitivity / math.sqrt(size)
    private = PrivateLogE(values - shift, each, each / query.sigma, selected=by_data)
    rejected = boosted_e_bh(private.log_e, alpha, scale=query.sigma, hypotheses=m)
    return Peeled(m, alpha, positions, private, shift, parts, np.sort(positions[rejected]), tuple(releases))


def value_mu(mu: float, size: int, *, adaptive: bool) -> float:
    """The μ of each of `size` released values, fewer than all, when peeling costs mu in all."""
    return mu * math.sqrt(_rest(adaptive) * (1 - SELECTION_SHARE) / size)


def size_choice(hypotheses: int, alpha: float, sensitivity: float, mu: float) -> SizeChoice:
    """Sizes and levels among which an adaptive peeling that costs mu in all chooses."""
    return SizeChoice.of(
        hypotheses,
        alpha,
        sensitivity,
        lambda size: mu * math.sqrt(_rest(True) * SELECTION_SHARE / size),
        lambda size: value_mu(mu, size, adaptive=True),
    )


def _rest(adaptive: bool) -> float:
    return 1 - SIZE_SHARE if adaptive else 1.0


def _size_query(
    scores: BoundedScores[T], choice: SizeChoice, mu: float, public: Mapping[str, object]
) -> SelectionQuery[T]:
    utilities = BoundedScores[T](
        f"{scores.name}.size",
        lambda rows: choice.utility(scores(rows)),
        len(choice.sizes),
        scores.sensitivity,
        scores.neighbouring,
    )
    return _selection_query("E_SIZE", utilities, 1, mu, {**public, **choice.parameters})


def _selection_query(
    code: str, scores: BoundedScores[T], size: int, mu: float, public: Mapping[str, object]
) -> SelectionQuery[T]:
    """The query of `size` selections that cost mu together."""

    def at(scale: float) -> SelectionQuery[T]:
        return SelectionQuery(code, scores, size, scale, public)

    return _kept(at, lambda sensitivity: gumbel_scale(mu / math.sqrt(size), sensitivity), scores.sensitivity)


def _value_query(
    scores: BoundedScores[T], positions: IntArray, mu: float, public: Mapping[str, object]
) -> ValueQuery[T]:
    """The query of values that cost mu together."""
    chosen = tuple(positions.tolist())

    def at(scale: float) -> ValueQuery[T]:
        return ValueQuery("E_VALUES", scores, chosen, scale, public)

    return _kept(at, lambda sensitivity: sensitivity / mu, math.sqrt(len(chosen)) * scores.sensitivity)


def _kept(at: Callable[[float], Q], scale_for: Callable[[float], float], sensitivity: float) -> Q:
    """The query with the noise that its sensitivity asks for, which is that of its grid, and so of the noise."""
    query = at(scale_for(sensitivity) * _SPARE)
    while (wanted := scale_for(query.sensitivity) * _SPARE) > query.scale:
        query = at(wanted)
    return query


def _checked_size(size: int, hypotheses: int) -> int:
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise ValueError(f'size is {size!r}, expected a whole number of hypotheses to select, or "adaptive"')
    if not 1 <= size <= hypotheses:
        raise ValueError(f"size is {size}, expected between 1 and the {hypotheses} hypotheses")
    return int(size)


def _check(mu: float, alpha: float) -> None:
    if not SMALLEST_MU <= mu <= LARGEST_MU:
        raise ValueError(f"mu is {mu}, expected the privacy cost of the whole peeling, between 1e-6 and 60")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}, expected a false discovery rate between 0 and 1, both excluded")
