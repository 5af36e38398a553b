"""The epsilon curve: what a generator preserves at each privacy target, between a floor and a ceiling (8-1 §3.7).

Ceiling: the same generator with the noise practically removed, so that what it lacks is its structure. Floor:
`S_PUBLIC`, which touches nothing private. `S_ORACLE`, a fresh draw of the truth, is what nobody can be asked to exceed.

Every draw starts anew: in a virtual world with other rows of it, on real data with another subset of the training rows,
and with other noise and other tables. P = TSTR / TRTR, with TRTR of the same draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from synth_platform.contract.cohort_sections import EndpointName
from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec, GeneratorCode
from synth_platform.generators.controls import fit_control
from synth_platform.generators.protocol import GeneratorState
from synth_platform.normalize.real_arm import correct_real_arm
from synth_platform.normalize.rows import concatenate
from synth_platform.sources.virtual import VirtualOptions, draw_cohort
from synth_platform.trials.preserved import ENDPOINTS, Scores, fit_at, oracle, preserved, real_scores, table_scores
from synth_platform.trials.stage import Stage, make_stage

CEILING = 1000.0
REQUIRED = 0.95
TEST_ROWS = 1000  # of a virtual world: so many that the test split adds little to the error
_SEEDS_APART = 1000


@dataclass(frozen=True)
class Grid:
    """What the curve is drawn over.

    epsilons; draws of each and tables of every draw; sizes (training rows) and shifts of the public rows of a virtual
    cohort; shares of the training rows of a real one.
    """

    epsilons: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
    draws: int = 6
    tables: int = 2
    sizes: tuple[int, ...] = (240, 720, 2000)
    shifts: tuple[float, ...] = (0.0, 0.3, 0.7)
    shares: tuple[float, ...] = (0.5, 1.0)


QUICK = Grid(epsilons=(0.5, 2.0, 8.0), draws=2, tables=1, sizes=(720,), shares=(1.0,))


@dataclass(frozen=True)
class Setting:
    """One column of panels: training rows and public shift of a virtual cohort, or a share of a real one's rows."""

    rows: int | None = None
    shift: float | None = None
    share: float | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What it is, without a private count."""
        if self.share is not None:
            return (f"{self.share:.0%} of the training rows",)
        return f"public shift {self.shift:g}", f"{self.rows} training rows"


@dataclass(frozen=True)
class CurvePoint:
    """P of one endpoint for one generator and target in one setting, over draws x tables; NaN where it is not defined.

    epsilon: None for a control. minimum: the smallest single P. standard_error: of the mean, over draws. trtr: the real
    arm's own value, mean over draws.
    """

    setting: Setting
    generator: GeneratorCode
    epsilon: float | None
    endpoint: EndpointName
    preservation: float
    minimum: float
    standard_error: float
    trtr: float


def settings(spec: CohortSpec, grid: Grid) -> tuple[Setting, ...]:
    """Shifts x sizes of a virtual cohort, shares of a real one."""
    if spec.source.reader == "virtual":
        return tuple(Setting(rows=rows, shift=shift) for shift in grid.shifts for rows in grid.sizes)
    return tuple(Setting(share=share) for share in grid.shares)


def curve(stage: Stage, grid: Grid, tell: Callable[[str], None] = lambda _: None) -> Iterator[CurvePoint]:
    """The points of every setting, registered generator, target and endpoint. tell: hears what comes next."""
    for setting in settings(stage.spec, grid):
        real: list[Scores] = []
        found: dict[tuple[GeneratorCode, float | None], list[list[Scores]]] = {}
        for draw in range(grid.draws):
            tell(f"{', '.join(setting.words)}: draw {draw + 1} of {grid.draws}")
            drawn = draw_stage(stage, setting, draw)
            real.append(real_scores(drawn))
            seeds = [_SEEDS_APART * draw + table for table in range(1, grid.tables + 1)]
            for code, epsilon, state in _states(drawn, grid, draw):
                scores = [preserved(table_scores(drawn, state, seed), real[-1]) for seed in seeds]
                found.setdefault((code, epsilon), []).append(scores)
        for (code, epsilon), draws in found.items():
            for endpoint in ENDPOINTS:
                values = np.array([[scores[endpoint] for scores in tables] for tables in draws])
                yield CurvePoint(
                    setting=setting,
                    generator=code,
                    epsilon=epsilon,
                    endpoint=endpoint,
                    preservation=float(values.mean()),
                    minimum=float(values.min()),
                    standard_error=float(values.mean(axis=1).std(ddof=1) / math.sqrt(len(values))),
                    trtr=float(np.mean([scores[endpoint] for scores in real])),
                )


def draw_stage(stage: Stage, setting: Setting, draw: int) -> Stage:
    """Draw `draw` of a setting: the cohort as it would be registered at that size, with a table as large in proportion.

    Virtual: other rows of the cohort's own world, without a holdout split and with 1,000 test rows. Real: a random
    share of the training rows, corrected anew; the test split stays.
    """
    if setting.share is None:
        options = VirtualOptions.model_validate(stage.spec.source.options)
        rows = options.train if setting.rows is None else setting.rows
        wanted = {"train": rows, "holdout": 0, "test": TEST_ROWS, "row_seed": options.row_seed + draw}
        spec = _resized(stage.spec, rows / options.train)
        chosen = stage.spec.source.options | wanted | {"public_shift": setting.shift}
        spec = spec.model_copy(update={"source": spec.source.model_copy(update={"options": chosen})})
        return make_stage(spec, draw_cohort(spec))
    spec = _resized(stage.spec, setting.share)
    train, test = stage.rows.where_split("train"), stage.rows.where_split("test")
    order = np.random.default_rng(draw).permutation(len(train))
    arm = concatenate([train.take(np.sort(order[: round(setting.share * len(train))])), test])
    correction, real = correct_real_arm(arm, stage.reference, spec)
    return Stage(spec, replace(stage.reference, n_ref=spec.privacy.n_ref), arm, real, correction)


def reached(points: Iterable[CurvePoint]) -> float | None:
    """Of one generator's points for one endpoint, the smallest epsilon from which on every mean P is at least .95."""
    found: float | None = None
    targets = [(p.epsilon, p.preservation) for p in points if p.epsilon is not None and p.epsilon < CEILING]
    for epsilon, preservation in sorted(targets, reverse=True):
        if not preservation >= REQUIRED:
            break
        found = epsilon
    return found


def curve_table(points: Iterable[CurvePoint]) -> pl.DataFrame:
    """One row per point, six decimals, null for what is not defined: for CSV and JSON."""
    rows = [asdict(point) | asdict(point.setting) for point in points]
    numbers = ("epsilon", "preservation", "minimum", "standard_error", "trtr")
    schema = {"rows": pl.Int64, "shift": pl.Float64, "share": pl.Float64, "generator": pl.String}
    schema |= {"epsilon": pl.Float64, "endpoint": pl.String} | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema).with_columns(pl.col(numbers).fill_nan(None).round(6))


def _states(stage: Stage, grid: Grid, seed: int) -> Iterator[tuple[GeneratorCode, float | None, GeneratorState]]:
    for code in (code for code in DP_GENERATORS if code in stage.spec.generators):
        for epsilon in (*grid.epsilons, CEILING):
            yield code, epsilon, fit_at(stage, code, epsilon, seed=seed)
    yield "S_PUBLIC", None, fit_control("S_PUBLIC", reference=stage.reference)
    truth = oracle(stage, tables=grid.tables)
    if truth is not None:
        yield "S_ORACLE", None, truth


def _resized(spec: CohortSpec, ratio: float) -> CohortSpec:
    privacy = spec.privacy.model_copy(update={"n_ref": round(ratio * spec.privacy.n_ref)})
    synthetic = spec.synthetic.model_copy(update={"rows": round(ratio * spec.synthetic.rows)})
    return spec.model_copy(update={"privacy": privacy, "synthetic": synthetic})
