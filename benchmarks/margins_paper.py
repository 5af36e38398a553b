"""The experiment of Raab (2026, arXiv 2606.02101) on generated populations: which variant keeps most, by which solver?

    python -m benchmarks.margins_paper              20 populations, two solvers
    python -m benchmarks.margins_paper --full       one population, the full table of 52 million cells

Every variant releases all two-way margins, and a table of as many rows as people is drawn from the fit to them. Each
population is another seed of `census_1901`; the draws of one population use one sampling seed, so that variants are
compared in pairs. The tables of 20 populations have nine of the eleven variables and age in eight bands; propensity and
regression models are fitted in the first few of them. `subtract_multiple` is left out: its multiple mostly is nought,
which is the coarsened variant.

The second solver is the rule of R's mipfp as synthpop calls it (Ipfp, tolerance 1e-3, 5,000 cycles at most): it stops
when no cell changes by the tolerance in a cycle. Where totals of margins differ, mipfp divides all of them, and then
the tolerance is one of *probabilities*; where they agree, it is one of people. Structural zeros are no part of its
start, but of its margins. Margins are raked in the order of our blocks.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from synth_platform.contract.census_spec import Zeros
from synth_platform.contract.recipe import Recipe
from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.disclosure.audit import disclosure_bounds
from synth_platform.margins.disclosure.intervals import ReleaseRule
from synth_platform.margins.fitting.block_raking import AxesTarget, Raking
from synth_platform.margins.fitting.dense import DenseFit, fit_dense
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.fitting.stopping import total_variation
from synth_platform.margins.fitting.targets import normalise
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.models import LogisticModel, model_utility
from synth_platform.margins.measures.pmse import cart_propensity, logistic_propensity
from synth_platform.margins.measures.tables import table_utility
from synth_platform.margins.measures.uniques import expected_replicated, replicated_uniques
from synth_platform.margins.reading.curate import Curated, curate
from synth_platform.margins.rows import Rows
from synth_platform.sources import census_1901_shares as given
from synth_platform.sources.census_1901 import PEOPLE, census_1901

LIMIT = 10
MIPFP_TOLERANCE = 1e-3  # synthpop's, for Ipfp's largest change of a cell
MIPFP_CYCLES = 5000
ADJUSTMENTS = ("apportion", "subtract", "subtract_below_limit")
MODELLED = 4  # populations in which propensity and regression models are fitted
MEASURES = {
    "two_way": "two-way S_pMSE", "worst_pair": "worst pair", "logistic": "logistic S_pMSE", "cart": "CART S_pMSE",
    "signs": "signs kept", "overlap": "overlap", "z": "mean abs. z", "cycles": "cycles", "residual": "largest residual",
}  # fmt: skip
Floats = NDArray[np.float64]

WORKING = [occupation for occupation in given.OCCUPATIONS if occupation != "none"]
FULL_ZEROS: list[dict[str, list[str]]] = [
    {"age": ["0-4", "5-9", "10-14"], "marital_status": ["married", "widowed"]},
    {"age": ["0-4", "5-9", "10-14"], "relationship": ["head", "wife"]},
    {"age": ["0-4", "5-9"], "relationship": ["servant"]},
    {"age": ["0-4", "5-9"], "occupation": WORKING},
    {"age": ["0-4", "5-9"], "employment_status": ["employer", "own account", "employee"]},
    {"sex": ["male"], "relationship": ["wife"]},
    {"marital_status": ["single", "widowed"], "relationship": ["wife"]},
    {"occupation": ["none"], "employment_status": ["employer", "own account", "employee"]},
    {"occupation": WORKING, "employment_status": ["none"]},
    {
        "occupation": [one for one in given.OCCUPATIONS if one not in ("domestic service", "agriculture")],
        "relationship": ["servant"],
    },
    {"relationship": ["servant"], "employment_status": ["employer", "own account", "none"]},
    {"relationship": ["servant"], "servants": ["no"]},
]
ZEROS = [
    {"age": ["0-4", "5-14"], "marital_status": ["married", "widowed"]},
    {"age": ["0-4"], "occupation": WORKING},
]


def recipe(ages: list[int], drop: tuple[str, ...], zeros: list[dict[str, list[str]]]) -> Recipe:
    variables: dict[str, dict[str, Any]] = {
        "district": {"categories": given.DISTRICTS},
        "sex": {"categories": given.SEXES},
        "age": {"bands": ages, "top": ages[-1]},
        "marital_status": {"categories": given.MARITAL},
        "relationship": {"categories": given.RELATIONSHIPS},
        "occupation": {"categories": given.OCCUPATIONS},
        "employment_status": {"categories": given.EMPLOYMENT},
        "birthplace": {"categories": given.BIRTHPLACES},
        "language": {"categories": given.LANGUAGES},
        "rooms": {"bands": [1, 2, 3, 4, 5, 7], "top": 7},
        "servants": {"categories": ["no", "yes"]},
    }
    kept = {name: own for name, own in variables.items() if name not in drop}
    return Recipe.model_validate({"variables": kept, "drop": drop, "structural_zeros": zeros})


FULL = recipe(list(range(0, 75, 5)), (), FULL_ZEROS)
NINE = recipe([0, 5, 15, 25, 35, 45, 55, 65], ("relationship", "employment_status"), ZEROS)


@dataclass(frozen=True)
class Variant:
    """Options of `coarsen`; unaltered margins are those as counted."""

    title: str
    options: dict[str, str] | None

    def of(self, margins: MarginSet) -> MarginSet:
        return margins if self.options is None else coarsen(margins, LIMIT, **self.options)


def variants(adjustments: Iterable[str] = ADJUSTMENTS, zeros: Iterable[str] = ("kept", "lifted")) -> list[Variant]:
    found = [Variant("unaltered", None)]
    for zero in zeros:
        found += [
            Variant(f"{one}, zeros {zero}", {"variant": one, "zeros": zero}) for one in ("controlled", "coarsened")
        ]
        found += [
            Variant(f"adjusted: {one}, zeros {zero}", {"variant": "adjusted", "zeros": zero, "adjustment": one})
            for one in adjustments
        ]
    return found


def mipfp(margins: MarginSet) -> DenseFit:
    """The table at which mipfp would stop, with our residuals; status `matched` is its "converged"."""
    domain, targets = margins.domain, normalise(margins)
    totals = [margin.total for margin in margins]
    people = targets.total if max(totals) - min(totals) <= 1e-10 else 1.0
    raking = Raking(domain.shape, [AxesTarget(domain.axes(t.names), t.probabilities * domain.cells) for t in targets])
    table = np.ones(
        [domain.shape[axis] for axis in raking.order], dtype=np.float32 if domain.cells > 1e7 else np.float64
    )
    sums, cycles, converged = raking.start(table), 0, False
    while not converged and cycles < MIPFP_CYCLES:
        before = table.copy()
        sums = raking.cycle(table, sums)
        cycles += 1
        np.abs(np.subtract(table, before, out=before), out=before)
        converged = float(before.max()) * people / domain.cells < MIPFP_TOLERANCE
    residuals = {
        title: total_variation(found / found.sum(), target.sums / table.size)
        for title, found, target in zip(targets.totals, raking.fitted(table, sums), raking.targets, strict=True)
    }
    status = "matched" if converged else "iteration_limit"
    report = FitReport("dense", status, cycles, MIPFP_TOLERANCE, residuals, targets.totals, targets.total)
    return DenseFit(domain, report, raking.order, table)


SOLVERS: dict[str, Callable[[MarginSet], DenseFit]] = {"residuals": fit_dense, "mipfp": mipfp}


def model(rows: Rows) -> LogisticModel:
    """Who lives in a household with servants, by everything else that is no part of the answer."""
    own = ("relationship", "servants")
    return LogisticModel("servants", "yes", tuple(name for name in rows.domain.names if name not in own))


@dataclass(frozen=True)
class Outcome:
    """What one table of one variant keeps. two_way, worst_pair: S_pMSE; models: what is said of models, if anything."""

    population: int
    solver: str
    variant: str
    two_way: float
    worst_pair: float
    status: str
    cycles: int
    residual: float
    logistic: float | None = None
    cart_pmse: float | None = None
    cart_null: float | None = None
    signs: float | None = None
    overlap: float | None = None
    z: float | None = None


def judge(population: int, solver: str, variant: str, real: Rows, synthetic: Rows, report: FitReport | None) -> Outcome:
    pairs = [table.s_pmse for table in table_utility(real, synthetic, 2)]
    ended = (report.status, report.cycles, report.largest_residual) if report else ("-", 0, 0.0)
    outcome = Outcome(population, solver, variant, float(np.mean(pairs)), max(pairs), *ended)
    if population > MODELLED:
        return outcome
    compared = Compared(real, synthetic)
    tree = cart_propensity(compared, np.random.default_rng([population, 2]), permutations=1)
    said = model_utility(real, synthetic, model(real))
    return replace(
        outcome, logistic=logistic_propensity(compared).s_pmse, cart_pmse=tree.pmse, cart_null=tree.expected,
        signs=said.signs_kept, overlap=said.mean_overlap, z=said.mean_absolute_z,
    )  # fmt: skip


def gates(populations: Iterable[int], own: Recipe) -> str:
    """How many populations fail the disclosure gate, and why; an adjusted release says no less than a coarsened one."""
    failed: Counter[str] = Counter()
    for population in populations:
        margins = people_of(population, own).margin_set()
        for zeros in get_args(Zeros):
            for variant in ("controlled", "coarsened"):
                released = coarsen(margins, LIMIT, variant, zeros=zeros)
                report = disclosure_bounds(released, ReleaseRule(variant, LIMIT, zeros))
                failed[f"{variant}, zeros {zeros}: {', '.join(report.reasons) or 'passed'}"] += 1
    return "\n".join(f"- {words}, in {times}" for words, times in sorted(failed.items()))


def people_of(seed: int, own: Recipe) -> Curated:
    return curate(census_1901(seed), own, "generated census")


def repeated(real: Rows, synthetic: Rows, fitted: DenseFit, strangers: dict[str, Rows | None]) -> dict[str, float]:
    """Real uniques, and how many of them a table has, the fit has to have, and rows have that never saw them."""
    own = replicated_uniques(real, synthetic)
    found = {"real uniques": own.real, "synthetic table": own.replicated}
    found |= {name: replicated_uniques(real, rows).replicated for name, rows in strangers.items() if rows is not None}
    return {**found, "mean of such tables (exact)": expected_replicated(real, fitted, PEOPLE)}


def outcomes(
    populations: Iterable[int], own: Recipe, tried: list[Variant], uniques: list[dict[str, float]]
) -> pl.DataFrame:
    """A row for each population, solver and variant; `uniques` gets a row for each population."""
    found: list[Outcome] = []
    earlier: Rows | None = None
    for population in populations:
        people = people_of(population, own)
        real, margins = people.rows, people.margin_set()
        other = people_of(population + 10_000, own).rows
        for solver, fit in SOLVERS.items():
            for variant in tried:
                fitted = fit(variant.of(margins))
                synthetic = Rows(real.domain, fitted.draw(PEOPLE, np.random.default_rng([population, 1])))
                found.append(judge(population, solver, variant.title, real, synthetic, fitted.report))
                if solver == "residuals" and variant.title == "coarsened, zeros lifted":
                    strangers = {"another sample of the population": other, "table of a fit to other people": earlier}
                    uniques.append(repeated(real, synthetic, fitted, strangers))
                    earlier = synthetic
                del fitted
        found.append(judge(population, "none", "another sample", real, other, None))
    table = pl.DataFrame([asdict(outcome) for outcome in found])
    # The null of a tree: one permutation a table, their mean over the tables of a population.
    null = pl.col("cart_null").mean().over("population")
    return table.with_columns((pl.col("cart_pmse") / null).alias("cart"))


def markdown(table: pl.DataFrame, solver: str) -> str:
    """A line for each variant: mean and, in brackets, standard error over populations."""
    heads = ["variant", *MEASURES.values(), "fit"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    own = table.filter(pl.col("solver").is_in([solver, "none"]))
    for (variant,), rows in own.group_by("variant", maintain_order=True):
        ended = ", ".join(f"{status} {count}" for status, count in rows["status"].value_counts(sort=True).iter_rows())
        cells = [_cell(rows[name].drop_nulls().to_numpy(), name) for name in MEASURES]
        lines.append(f"| {variant} | " + " | ".join([*cells, ended]) + " |")
    return "\n".join(lines)


def _cell(values: Floats, name: str) -> str:
    digits = {"cycles": 0, "residual": 5, "signs": 3, "overlap": 3}.get(name, 2)
    mean = f"{values.mean():.{digits}f}"
    if name in ("cycles", "residual") or len(values) < 2:
        return mean
    return f"{mean} ({values.std(ddof=1) / np.sqrt(len(values)):.{digits}f})"


def paired(table: pl.DataFrame, solver: str) -> str:
    """Each adjustment less the coarsened and the controlled variant with the same zeros, over populations."""
    own = table.filter(pl.col("solver") == solver)
    lines = [
        "| adjusted less … | coarsened: two-way S_pMSE | better in | p | controlled | better in | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for zeros in ("kept", "lifted"):
        for adjustment in ADJUSTMENTS:
            title = f"adjusted: {adjustment}, zeros {zeros}"
            values = own.filter(pl.col("variant") == title)["two_way"].to_numpy()
            cells = []
            for against in ("coarsened", "controlled"):
                theirs = own.filter(pl.col("variant") == f"{against}, zeros {zeros}")["two_way"].to_numpy()
                difference = values - theirs
                p = ttest_rel(values, theirs).pvalue if difference.std() else 1.0
                cells += [f"{difference.mean():+.3f}", f"{int((difference < 0).sum())} of {len(values)}", f"{p:.1g}"]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    released = own.filter(pl.col("variant") != "unaltered")
    best = (
        released.sort("two_way").group_by("population", maintain_order=True).first()["variant"].value_counts(sort=True)
    )
    return "\n".join(lines) + "\n\nBest of all: " + ", ".join(f"{name} in {times}" for name, times in best.iter_rows())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--populations", type=int, default=20)
    parser.add_argument("--full", action="store_true", help="eleven variables, 52 million cells; one population")
    parser.add_argument("--rows", type=Path, help="a CSV file for the figures of every table")
    arguments = parser.parse_args()
    start, uniques = time.perf_counter(), list[dict[str, float]]()
    if arguments.full:
        tried = variants(("apportion",), ("lifted",))[1:]
        table = outcomes([1], FULL, tried, uniques)
    else:
        table = outcomes(range(1, arguments.populations + 1), NINE, variants(), uniques)
    if arguments.rows:
        table.write_csv(arguments.rows)
    for solver in SOLVERS:
        print(f"\nSolver: {solver}\n\n{markdown(table, solver)}")
        if not arguments.full:
            print(f"\n{paired(table, solver)}")
    print("\nReplicated uniques, coarsened margins with lifted zeros:")
    for name, value in pl.DataFrame(uniques).mean().row(0, named=True).items():
        print(f"- {name}: {value:,.1f}")
    if not arguments.full:
        print(f"\nDisclosure gate:\n\n{gates(range(1, arguments.populations + 1), NINE)}")
    print(f"\n{time.perf_counter() - start:.0f} s, {time.process_time():.0f} CPU s")


if __name__ == "__main__":
    main()
