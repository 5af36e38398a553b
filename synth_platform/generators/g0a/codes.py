"""Clinical columns that are not measurements on a line: codes, 0/1 values, categories, missing cells.

Adding a shift to a code and rounding it would lose small shifts and make large ones jump. So a code moves by chance:
per class a transition matrix carries the public distribution of levels to one with the estimated mean, moving as few
rows as that takes. Measured values that can be missing are shifted where observed, so that the mean with zeros filled
in fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth_platform.contract.cohort_sections import ClinicalVariable
from synth_platform.normalize.clinical import MISSING_SUFFIX, column_names
from synth_platform.normalize.encoder import Encoder, covariates
from synth_platform.normalize.rows import FloatArray, IntArray

BISECTIONS = 60
SMALLEST_SHARE = 1e-3
UNSEEN = -1


@dataclass(frozen=True, eq=False)
class Coded:
    """A coded variable: its columns, the values [m, len(columns)] they take at each level, whether levels are ordered.

    indicator: position of the column that says the cell is missing, or None. is_indicator: this is such a column.
    """

    columns: tuple[int, ...]
    levels: FloatArray
    ordered: bool
    indicator: int | None
    is_indicator: bool = False

    def codes(self, x: FloatArray) -> IntArray:
        """[n] nearest level of each row."""
        distance = ((x[:, None, list(self.columns)] - self.levels) ** 2).sum(axis=2)
        return np.asarray(distance.argmin(axis=1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ClinicalLayout:
    """coded: indicators of missing cells first, then coded variables. nullable: (column, indicator) of measurements."""

    coded: tuple[Coded, ...]
    nullable: tuple[tuple[int, int], ...]


def clinical_layout(encoder: Encoder) -> ClinicalLayout:
    """Where the coded and the nullable clinical columns are, and the standardised values of their levels."""
    position = {name: j for j, name in enumerate(encoder.features)}
    mean, scale = encoder.standardisation.mean, encoder.standardisation.scale
    indicators, coded, nullable = [], [], []
    for variable in covariates(encoder.variables, encoder.outcome):
        columns = [position[name] for name in column_names(variable)]
        indicator = None
        if variable.nullable:
            indicator = position[variable.name + MISSING_SUFFIX]
            columns.remove(indicator)
            levels = (np.array([[0.0], [1.0]]) - mean[indicator]) / scale[indicator]
            indicators.append(Coded((indicator,), levels, ordered=True, indicator=None, is_indicator=True))
        raw = _raw_levels(variable)
        if raw is not None:
            levels = (raw - mean[columns]) / scale[columns]
            coded.append(Coded(tuple(columns), levels, variable.kind != "categorical", indicator))
        elif indicator is not None:
            nullable.append((columns[0], indicator))
    return ClinicalLayout((*indicators, *coded), tuple(nullable))


def _raw_levels(variable: ClinicalVariable) -> FloatArray | None:
    match variable.kind:
        case "binary" | "event":
            return np.array([[0.0], [1.0]])
        case "ordinal":
            return np.arange(len(variable.categories), dtype=np.float64)[:, None]
        case "categorical":
            return np.eye(len(variable.categories))
        case _:
            return None


def transition(coded: Coded, share: FloatArray, target: FloatArray) -> FloatArray:
    """[m, m] row-stochastic matrix from levels with `share` [m] to levels whose mean is as near `target` as can be."""
    if coded.ordered:
        return _ordered_transition(coded.levels[:, 0], share, float(target[0]))
    wanted = np.clip((target - coded.levels.min(axis=0)) / np.ptp(coded.levels, axis=0), 0.0, None)
    wanted = wanted / wanted.sum() if wanted.sum() > 0 else share
    stay = np.where(share > 0, np.minimum(1.0, wanted / np.where(share > 0, share, 1.0)), 0.0)
    deficit = np.maximum(wanted - share, 0.0)
    deficit = deficit / deficit.sum() if deficit.sum() > 0 else wanted
    return np.diag(stay) + (1 - stay)[:, None] * deficit


def _ordered_transition(levels: FloatArray, share: FloatArray, target: float) -> FloatArray:
    """Levels + delta, cut to their range and rounded to one of the two neighbours by chance, which keeps the mean."""
    span = levels[-1] - levels[0]
    low, high = -span, span
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if share @ np.clip(levels + middle, levels[0], levels[-1]) < target:
            low = middle
        else:
            high = middle
    delta = (low + high) / 2
    delta = 0.0 if abs(delta) < 1e-9 * span else delta
    moved = np.clip(levels + delta, levels[0], levels[-1])
    lower = np.clip(np.searchsorted(levels, moved, side="right") - 1, 0, len(levels) - 2)
    up = (moved - levels[lower]) / (levels[lower + 1] - levels[lower])
    matrix = np.zeros((len(levels), len(levels)))
    every = np.arange(len(levels))
    matrix[every, lower] = 1 - up
    matrix[every, lower + 1] += up
    return matrix


def fit_codes(
    layout: ClinicalLayout, x: FloatArray, label: IntArray, *, means: FloatArray, shift: FloatArray
) -> tuple[dict[str, FloatArray | IntArray], FloatArray]:
    """Arrays of the sampler, and the additive shift [K, p] of every column (zero in coded ones).

    x [n, p], label [n]: public rows. means, shift [K, p]: public class means and their shift, missing cells as zeros.
    """
    arrays: dict[str, FloatArray | IntArray] = {}
    offset = shift.copy()
    before: dict[int, FloatArray] = {}  # [K] share of missing cells by indicator, of public rows and as estimated
    after: dict[int, FloatArray] = {}
    gone: dict[int, NDArray[np.bool_]] = {}

    def of_observed(columns: list[int], indicator: int | None) -> FloatArray:
        """[K, len(columns)] by how much the mean of observed cells has to move."""
        if indicator is None:
            return shift[:, columns]
        now, then = (np.maximum(1 - share[indicator], SMALLEST_SHARE)[:, None] for share in (after, before))
        return np.asarray((means + shift)[:, columns] / now - means[:, columns] / then)

    for i, coded in enumerate(layout.coded):
        columns = list(coded.columns)
        codes = coded.codes(x)
        if coded.indicator is not None:
            codes = np.where(gone[coded.indicator], UNSEEN, codes)
        share = _level_shares(codes, label, len(means), len(coded.levels))
        target = share @ coded.levels + of_observed(columns, coded.indicator)
        matrices = np.stack([transition(coded, s, t) for s, t in zip(share, target, strict=True)])
        moved = np.einsum("km,kml->kl", share, matrices)
        if coded.is_indicator:
            gone[columns[0]], before[columns[0]], after[columns[0]] = codes == 1, share[:, 1], moved[:, 1]
            arrays[f"missing.{columns[0]}"] = (codes == 1).astype(np.int64)
        arrays |= {f"code.{i}.donor": codes, f"code.{i}.share": moved, f"code.{i}.transition": matrices}
        arrays[f"code.{i}.levels"] = coded.levels
        offset[:, columns] = 0.0
    for column, indicator in layout.nullable:
        offset[:, [column]] = of_observed([column], indicator)
    return arrays, offset


def _level_shares(codes: IntArray, label: IntArray, classes: int, levels: int) -> FloatArray:
    """[K, m] share of each level among the observed codes of a class; of all rows for a class that has none."""
    pooled = np.bincount(codes[codes != UNSEEN], minlength=levels)
    counts = [np.bincount(codes[(label == c) & (codes != UNSEEN)], minlength=levels) for c in range(classes)]
    usable = np.stack([count if count.any() else pooled for count in counts]).astype(np.float64)
    return np.asarray(usable / np.maximum(usable.sum(axis=1, keepdims=True), 1.0))
