"""All two-way margins of 24 census variables: fits, what they cost and what they keep, as Markdown tables.

    python -m benchmarks.margins_acs [DATA.csv.gz]

The data are the NIST excerpt of the American Community Survey (default: ../shared/data/census), curated by RECIPE.

fits: 276 pairs where a tool can have them, and the 23 of the tree that tells most (Chow & Liu 1968). Residuals are over
all 276 pairs. Triples: mean total variation of 60 three-way tables from those of the data, whose own sampling is part
of it. trees: the tree alone, by mbi and by our junction tree, with their difference in pairs that it does not hold.

tables: rows drawn of our fit beside the real rows, S_pMSE by tables. ten variables: weighted rows and the full table
given the same 45 margins; the full table is exact, so the difference is what candidates cost.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.margins_tools import IPFN, MBI, OURS, Fitted, Fitter, count, furthest, run
from benchmarks.peers.margins_measure import Axes, Task
from synth_platform.contract.recipe import Recipe
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.fitting.weighted_rows import WeightedRowsFit, fit_weighted_rows
from synth_platform.margins.measures.tables import TableUtility, table_utility
from synth_platform.margins.reading.curate import curate
from synth_platform.margins.reading.microdata import read_microdata
from synth_platform.margins.rows import Rows, two_way_margins
from synth_platform.margins.sample import sample

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "census" / "nist_acs_national2019.csv.gz"
MONEY = {"null_values": ["N"], "missing": "none"}
RECIPE = Recipe.model_validate(
    {
        "variables": {
            "AGEP": {"bands": [0, 5, 16, 18, 25, 35, 45, 55, 65, 75], "top": 75},
            "INDP": {**MONEY, "bands": list(range(0, 10_001, 1_000))},
            "PINCP": {**MONEY, "bottom": -1, "bands": [0, 1, 10_000, 20_000, 30_000, 50_000, 100_000], "top": 100_000},
            "POVPIP": {**MONEY, "bands": [0, 50, 100, 150, 200, 300, 400, 501], "top": 501},
            "PWGTP": {"bands": [1, 50, 100, 200], "top": 200},
            "WGTP": {"bands": [0, 1, 50, 100, 200], "top": 200},
        }
    }
)
TEN = ("AGEP", "SEX", "MSP", "HISP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "DVET", "DPHY")
TRIPLES = 60
OTHERS = 6  # pairs outside the tree in which fits of it are compared
TOLERANCE = 1e-4
MBI_SECONDS = 100
MIXTURE = Fitter(
    "mbi 2.0.0, mixture of 200 products", MBI, True, {"MBI_ESTIMATOR": "mixture", "MBI_SECONDS": str(MBI_SECONDS)}
)
EXACT = Fitter("mbi 2.0.0, accelerated", MBI, True, {"MBI_SECONDS": str(MBI_SECONDS)})


def tree(codes: np.ndarray, shape: tuple[int, ...]) -> list[Axes]:
    """Pairs of the spanning tree with the largest mutual information."""
    told = {axes: information(count(codes, shape, axes)) for axes in combinations(range(len(shape)), 2)}
    parts = {axis: {axis} for axis in range(len(shape))}
    chosen = []
    for axes in sorted(told, key=lambda axes: -told[axes]):
        one, other = parts[axes[0]], parts[axes[1]]
        if one is not other:
            chosen.append(axes)
            one |= other
            parts.update(dict.fromkeys(one, one))
    return sorted(chosen)


def information(counts: np.ndarray) -> float:
    joint = counts / counts.sum()
    product = np.outer(joint.sum(1), joint.sum(0))
    return float((joint[joint > 0] * np.log(joint[joint > 0] / product[joint > 0])).sum())


def distances(found: Fitted, tables: list[np.ndarray]) -> np.ndarray:
    """Total variation between the tables a tool was asked for and those of the data."""
    return np.array([np.abs(a - t / t.sum()).sum() / 2 for a, t in zip(found.answers, tables, strict=True)])


def fits(rows: Rows) -> None:
    shape, codes = rows.domain.shape, rows.codes
    pairs = list(combinations(range(len(shape)), 2))
    every = list(combinations(range(len(shape)), 3))
    triples = [every[at] for at in np.random.default_rng(7).choice(len(every), TRIPLES, replace=False)]
    asked = [*pairs, *triples]
    tables = [count(codes, shape, axes) for axes in asked]
    all_pairs = Task(shape, tuple(zip(pairs, tables[: len(pairs)], strict=True)), tuple(asked))
    held = tree(codes, shape)
    of_tree = replace(all_pairs, margins=tuple((axes, count(codes, shape, axes)) for axes in held))
    print(
        "| margins | tool | says | wall s | CPU s | peak MiB | largest residual | mean residual | triples |\n"
        "|---|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    for title, task, fitters in (
        ("276 pairs", all_pairs, (OURS, Fitter("ipfn 1.4.4", IPFN), EXACT, MIXTURE)),
        ("tree of 23 pairs", of_tree, (OURS,)),
    ):
        for fitter in fitters:
            if fitter.tool.packages and not fitter.tool.installed():
                continue
            found = run(fitter, task, TOLERANCE)
            if found.stopped:
                print(f"| {title} | {fitter.title} | {found.stopped} | | | | | | |", flush=True)
                continue
            of, far = found.figures, distances(found, tables)
            print(
                f"| {title} | {fitter.title} | {of['status']}, {of['cycles']} cycles | {of['wall']:.2f} "
                f"| {of['cpu']:.2f} | {of['peak_mib']:,.0f} | {far[: len(pairs)].max():.1e} "
                f"| {far[: len(pairs)].mean():.1e} | {far[len(pairs) :].mean():.3f} |",
                flush=True,
            )
            if "effective" in of:
                print(
                    f"| | | effective sample size {of['effective']:,.0f}; most unreached {of['unreached']:.1e}; "
                    f"{len(rows):,} rows drawn in {of['draw']:.2f} s | | | | | | |"
                )
    trees(replace(of_tree, queries=tuple(axes for axes in pairs if axes not in held)[:: len(pairs) // OTHERS]))


def trees(task: Task) -> None:
    print(
        "\n| tool | says | wall s | CPU s | peak MiB | largest residual of the tree | difference |\n"
        "|---|---|---|---|---|---|---|"
    )
    ours = run(OURS, task, TOLERANCE)
    for fitter in (OURS, *((EXACT,) if MBI.installed() else ())):
        found = ours if fitter is OURS else run(fitter, task, TOLERANCE)
        of = found.figures
        line = found.stopped or (
            f"{of['status']}, {of['cycles']} cycles | {of['wall']:.2f} | {of['cpu']:.2f} | {of['peak_mib']:,.0f} "
            f"| {of['residual']:.1e} | {'' if fitter is OURS else f'{furthest(ours.answers, found.answers):.1e}'}"
        )
        print(f"| {fitter.title} | {line} |", flush=True)


def kept(title: str, tables: list[TableUtility]) -> None:
    ratios = np.array([table.s_pmse for table in tables])
    print(
        f"| {title} | {len(tables)} | {ratios.mean():.2f} | {np.median(ratios):.2f} | {(ratios < 3).mean():.0%} "
        f"| {(ratios < 10).mean():.0%} | {ratios.max():.1f} |",
        flush=True,
    )


def utility(rows: Rows) -> None:
    fitted = fit_weighted_rows(two_way_margins(rows), np.random.default_rng(1))
    (drawn,) = sample(fitted, np.random.default_rng(2))
    distinct = len(np.unique(drawn.codes, axis=0))
    print(
        f"\n{len(drawn):,} rows drawn of 276 pairs, {distinct:,} of them distinct "
        f"(real: {len(np.unique(rows.codes, axis=0)):,} of {len(rows):,})\n\n"
        "| tables | number | mean S_pMSE | median | below 3 | below 10 | largest |\n|---|---|---|---|---|---|---|"
    )
    kept("of two, drawn", table_utility(rows, drawn, 2))
    kept("of three, drawn", table_utility(rows, drawn, 3))
    alone = Rows(rows.domain, np.random.default_rng(3).permuted(rows.codes, axis=0))
    kept("of two, variables apart", table_utility(rows, alone, 2))
    kept("of three, variables apart", table_utility(rows, alone, 3))


def ten_variables(rows: Rows) -> None:
    domain = rows.domain.project(TEN)
    part = Rows(domain, rows.codes[:, list(rows.domain.axes(TEN))])
    margins = two_way_margins(part)
    exact = fit_dense(margins)
    print(
        f"\n{domain.cells:,} cells of ten variables, 45 margins; full table: {exact.report.status}, largest residual "
        f"{exact.report.largest_residual:.1e}\n\n"
        "| candidates | largest residual | effective sample size | most unreached | triples from the full table: mean "
        "| largest |\n|---|---|---|---|---|---|"
    )
    for candidates in (12_500, 50_000, 200_000):
        fitted = fit_weighted_rows(margins, np.random.default_rng(4), candidates)
        far, report = triples_apart(fitted, exact, domain.names), fitted.report
        print(
            f"| {candidates:,} | {report.largest_residual:.1e} | {report.effective_sample_size:,.0f} "
            f"| {max((report.unreached or {}).values(), default=0.0):.1e} | {far.mean():.4f} | {far.max():.4f} |",
            flush=True,
        )
    (drawn,) = sample(exact, np.random.default_rng(5))
    far = np.array([tv(drawn.count(n) / len(drawn), exact.probabilities(n)) for n in combinations(domain.names, 3)])
    print(f"| {len(drawn):,} rows drawn of the full table | | | | {far.mean():.4f} | {far.max():.4f} |")


def triples_apart(fitted: WeightedRowsFit, exact: object, names: tuple[str, ...]) -> np.ndarray:
    return np.array(
        [tv(fitted.probabilities(n), exact.probabilities(n)) for n in combinations(names, 3)]  # type: ignore[attr-defined]
    )


def tv(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).sum() / 2)


def main() -> None:
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    if not data.is_file():
        print(f"{data} is not there: census variables are left out")
        return
    rows = curate(read_microdata(data), RECIPE).rows
    cells = rows.domain.cells
    print(f"{len(rows):,} rows × {len(rows.domain.names)} variables, {cells:.1e} cells ({cells * 8 / 2**40:.0e} TiB)\n")
    fits(rows)
    utility(rows)
    ten_variables(rows)


if __name__ == "__main__":
    main()
