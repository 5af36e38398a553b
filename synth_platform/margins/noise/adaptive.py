"""Margins under differential privacy, chosen one by one where the model of the earlier ones is worst.

The scheme of AIM (McKenna, Mullins, Sheldon & Miklau 2022, PVLDB 15): all one-way margins first, then in every round
(1) the candidate r with the largest noisy score

    w_r (‖M_r(D) − n M_r(p)‖₁ − √(2/π) σ cells_r)

is chosen by Gumbel noise, p the model of all answers so far, w_r how many variables r shares with the margins of the
workload, and the last term what noise alone would miss it by; (2) its counts are bought with noise σ; (3) the model is
estimated anew (`graphical_model`). Candidates are the subsets of the workload that leave the model small enough.

**Sensitivity.** p, n, σ and the candidates are functions of earlier answers and public constants, so they are the same
for neighbours. A person more or less moves one count of M_r(D) by one, hence ‖M_r(D) − n M_r(p)‖₁ by at most one
(triangle inequality) and a score by at most w_r ≤ 1: weights are divided by the largest. Model and penalty are rounded
to multiples of 2⁻¹⁰, so that every sum is exact in float64; clipping scores moves none further apart.

**Cost.** The number of rounds and all noise scales are fixed before the first answer, by mu and the domain alone, so
what is composed is the same whatever the answers are: Σ μ_i² = mu², counts as the Gaussian mechanisms they are, choices
as η-bounded range (`privacy.events`). AIM lets the answers decide when σ is halved and how many rounds there are, which
needs a filter; rounds of one σ came as near at ε = 1 and within 7 % at ε = 4 (docs/benchmarks.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations

import numpy as np

from synth_platform.discovery.selection import gumbel_scale
from synth_platform.margins.domain import Domain
from synth_platform.margins.fitting.triangulation import covering_cells
from synth_platform.margins.margin import Counts, Margin, MarginSet
from synth_platform.margins.noise.declared import in_declared
from synth_platform.margins.noise.denoise import NoisyTable
from synth_platform.margins.noise.graphical_model import Estimate, estimate
from synth_platform.margins.noise.noisy import Ask, Names, count_query, noisy_tables, require_usable
from synth_platform.margins.rows import Rows
from synth_platform.margins.structural_zeros import StructuralZero
from synth_platform.privacy.accounting import sigma_from_mu, split_mu
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex
from synth_platform.privacy.mechanisms import granularity
from synth_platform.privacy.queries import BoundedScores, SelectionQuery, grid_sensitivity
from synth_platform.privacy.statistics import FloatArray, StatisticRelease

CODE = "M_CHOICE"
ROUNDS_A_VARIABLE = 3
ONE_WAY_SHARE, SELECTION_SHARE = 0.1, 0.1  # of mu² for all one-way margins, and of each round for the choice
MODEL_CELLS = 2**18
MOST_SUBSETS = 2**15
ROUGH = 0.5  # tolerance of the models in between

_GRAIN = 2.0**-10
_LARGEST_SCORE = 2.0**20
_SPARE = 1 + 2.0**-30  # of every scale, so that no rounding of the ledger's own figures exceeds mu

Margins = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plan:
    """How much noise there is on what: public constants, in people."""

    rounds: int
    one_way_sigma: float
    sigma: float
    choice_scale: float

    @classmethod
    def of(cls, domain: Domain, mu: float, rounds: int | None = None) -> Plan:
        """rounds: three a variable if None. Raises ValueError for mu out of range or less than one round."""
        rounds = ROUNDS_A_VARIABLE * len(domain.names) if rounds is None else rounds
        if rounds < 1:
            raise ValueError("rounds: at least one is due")
        one_way, later = split_mu(mu, (ONE_WAY_SHARE, 1 - ONE_WAY_SHARE))
        choice, counts = split_mu(later / math.sqrt(rounds), (SELECTION_SHARE, 1 - SELECTION_SHARE))
        first = sigma_from_mu(one_way, math.sqrt(len(domain.names)))
        scale = gumbel_scale(choice, 1.0) * _SPARE
        while (wanted := gumbel_scale(choice, grid_sensitivity(1.0, granularity(1.0, scale))) * _SPARE) > scale:
            scale = wanted
        return cls(rounds, first * _SPARE, sigma_from_mu(counts, 1.0) * _SPARE, scale)


def choose_and_measure(
    ask: Ask,
    domain: Domain,
    workload: Names,
    zeros: Sequence[StructuralZero],
    mu: float,
    rounds: int | None = None,
) -> tuple[MarginSet, tuple[StatisticRelease, ...]]:
    """Margins that the model of a workload needs most, at a cost of `mu` together, and the answers, oldest first.

    domain: declared, as by `declared_domain`. workload: margins whose errors count, such as all pairs. mu:
    `privacy.accounting.gaussian_mu` of a plan's epsilon and the domain's delta. The margins bought are told as they are
    in the last model: they agree, none is below nought, their one total is noisy. One that another holds is left out.

    A deterministic function of the answers. Raises ValueError, before anything is asked, for margins that are none of
    the domain, leave a variable uncounted or have too many subsets, zeros that no model has room for, and mu or rounds
    out of range; and as `ask` does.
    """
    require_usable(domain, workload, zeros)
    if sum(2 ** len(names) for names in workload) > MOST_SUBSETS:
        raise ValueError(
            f"the margins have more than {MOST_SUBSETS:,} subsets to choose from: name fewer margins, of fewer "
            "variables"
        )
    weights = _candidates(domain, workload)
    if covering_cells(domain, [zero.names for zero in zeros]) > MODEL_CELLS:
        raise ValueError(
            f"structural zeros join variables of more than {MODEL_CELLS:,} cells: declare them of fewer variables, or "
            "use declared margins"
        )
    plan = Plan.of(domain, mu, rounds)
    singles: Margins = tuple((name,) for name in domain.names)
    releases = [ask(count_query(domain, singles, plan.one_way_sigma))]
    tables = noisy_tables(domain, singles, releases[0])
    model = estimate(domain, tables, zeros, tolerance=ROUGH)
    for turn in range(plan.rounds):
        share = ONE_WAY_SHARE + (1 - ONE_WAY_SHARE) * (turn + 1) / plan.rounds
        measured = list(model.potentials)
        small = _small(domain, weights, [*measured, *(zero.names for zero in zeros)], MODEL_CELLS * share)
        candidates = _modelled(model, small)
        choice = ask(_choice(domain, candidates, weights, plan, releases))
        chosen = list(candidates)[int(choice.values[0])]
        counts = count_query(domain, (chosen,), plan.sigma)
        answer = ask(replace(counts, parameters={**counts.parameters, "round": turn}))  # a margin may be bought again
        releases += [choice, answer]
        tables += noisy_tables(domain, (chosen,), answer)
        model = estimate(domain, tables, zeros, model.potentials, ROUGH)
    model = estimate(domain, tables, zeros, model.potentials)
    return _margin_set(domain, model, tables, zeros), tuple(releases)


def _candidates(domain: Domain, workload: Names) -> dict[tuple[str, ...], float]:
    """Subsets of the workload, variables in the order of the domain, with their weights, the largest of them one."""
    wanted = [tuple(sorted(domain.axes(names))) for names in workload]
    subsets = set(chain.from_iterable(combinations(w, size) for w in wanted for size in range(1, len(w) + 1)))
    ordered = sorted(subsets, key=lambda subset: (len(subset), subset))
    weights = {subset: sum(len({*subset} & {*margin}) for margin in wanted) for subset in ordered}
    largest = max(weights.values())
    return {tuple(domain.names[axis] for axis in subset): weight / largest for subset, weight in weights.items()}


def _small(
    domain: Domain, weights: Mapping[tuple[str, ...], float], held: Sequence[tuple[str, ...]], most: float
) -> Margins:
    """Candidates that leave the model as it is, or below `most` cells."""
    now = covering_cells(domain, held)
    return tuple(
        names for names in weights if (cells := covering_cells(domain, [*held, names])) <= now or cells <= most
    )


def _modelled(model: Estimate, candidates: Margins) -> dict[tuple[str, ...], Counts]:
    """Counts of the candidates in the model, in grains; without those whose cells the model cannot be asked for."""
    found = {}
    for names in candidates:
        try:
            found[names] = np.round(model.counts(names) / _GRAIN) * _GRAIN
        except ValueError:  # a table on the way to the margin would be too large, which the tree alone decides
            continue
    return found


def _choice(
    domain: Domain,
    candidates: Mapping[tuple[str, ...], Counts],
    weights: Mapping[tuple[str, ...], float],
    plan: Plan,
    answers: Sequence[StatisticRelease],
) -> SelectionQuery[Rows]:
    """The query for the candidate that the model misses most."""
    penalties = {
        names: round(math.sqrt(2 / math.pi) * plan.sigma * counts.size / _GRAIN) * _GRAIN
        for names, counts in candidates.items()
    }

    def misses(rows: Rows) -> FloatArray:
        own = in_declared(rows, domain)
        scores = [
            weights[names] * (np.abs(own.count(names) - counts).sum() - penalties[names])
            for names, counts in candidates.items()
        ]
        return np.asarray(np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE))

    scores = BoundedScores[Rows]("margins.misses", misses, len(candidates), 1.0, "add_remove")
    # The answers stand for the model that they fix: floating errors of another machine must not make another request.
    public = {
        "candidates": [list(names) for names in candidates],
        "weights": [weights[names] for names in candidates],
        "penalties": list(penalties.values()),
        "answers": sha256_hex(canonical_json([answer.values.tolist() for answer in answers])),
        "domain": sha256_hex(canonical_json([asdict(variable) for variable in domain.variables])),
    }
    return SelectionQuery(CODE, scores, 1, plan.choice_scale, public)


def _margin_set(
    domain: Domain, model: Estimate, tables: Sequence[NoisyTable], zeros: Sequence[StructuralZero]
) -> MarginSet:
    measured = list(model.potentials)
    largest = [names for names in measured if not any(set(names) < set(other) for other in measured)]
    return MarginSet(
        domain, tuple(Margin(names, model.counts(names), _provenance(names, tables)) for names in largest), tuple(zeros)
    )


def _provenance(names: tuple[str, ...], tables: Sequence[NoisyTable]) -> tuple[str, ...]:
    sigma = sum(1 / table.sigma**2 for table in tables if table.names == names) ** -0.5
    return (
        f"chosen adaptively; noisy counts: discrete Gaussian of standard deviation {sigma:.6g} on each cell",
        "as in the distribution of maximum entropy near all noisy margins",
    )
