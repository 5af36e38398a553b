"""L0: what one row's own values and public constants give, at no privacy cost (8-1 §1.2)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from synth_platform.contract.rules import HIGHEST_COUNT, HIGHEST_TPM, LOG2_LIMIT, M_LIMIT

FloatArray = NDArray[np.float64]
Unit = Literal["tpm", "count", "log2_expression", "beta", "m_value"]

M_OFFSET = 1e-3
PER_MILLION = 1e6
_HIGHEST_LOG = np.log2(PER_MILLION + 1)
_HIGHEST_M = np.log2((1 + M_OFFSET) / M_OFFSET)


def library_sizes(counts: FloatArray) -> FloatArray:
    """Total count of each row over the columns given, [n, p] -> [n].

    A cohort that brings a panel has only the panel's total; CPM is then relative to the panel, in every row alike.
    """
    return np.asarray(np.nansum(counts, axis=1), dtype=np.float64)


def to_log_scale(values: FloatArray, unit: Unit) -> FloatArray:
    """Native values [n, p] on the log2 scale; NaN stays NaN.

    tpm: log2(TPM + 1). count: CPM by the row's own library size, then the same. beta: M = log2((β + ε)/(1 − β + ε)),
    ε = 1e-3. log2_expression and m_value are on the scale already (8-1 §1.2).
    """
    match unit:
        case "tpm":
            return np.asarray(np.log1p(values) / np.log(2))
        case "count":
            size = library_sizes(values)
            per_million = np.where(size > 0, PER_MILLION / np.where(size > 0, size, 1), 0)
            return np.asarray(np.log1p(values * per_million[:, None]) / np.log(2))
        case "beta":
            return np.asarray(np.log2((values + M_OFFSET) / (1 - values + M_OFFSET)))
        case "log2_expression" | "m_value":
            return values


def to_native(values: FloatArray, unit: Unit, library_size: float | FloatArray = PER_MILLION) -> FloatArray:
    """Inverse of `to_log_scale`, clipped to what the contract's unit can hold, CPM to [0, 1e6].

    library_size: a public constant, or [n] for each row's own; only counts use it. Counts are not rounded here.
    """
    match unit:
        case "tpm":
            per_million = np.expm1(np.clip(values, 0, _HIGHEST_LOG) * np.log(2))
            return np.asarray(np.minimum(per_million, HIGHEST_TPM))  # the logarithm of 1e6 + 1 is rounded
        case "count":
            size = np.asarray(library_size, dtype=np.float64).reshape(-1, 1)
            counts = np.expm1(np.clip(values, 0, _HIGHEST_LOG) * np.log(2)) * (size / PER_MILLION)
            return np.asarray(np.minimum(counts, HIGHEST_COUNT))
        case "beta":
            ratio = np.exp2(np.clip(values, -_HIGHEST_M, _HIGHEST_M))
            return np.asarray(np.clip((ratio * (1 + M_OFFSET) - M_OFFSET) / (1 + ratio), 0, 1))
        case "log2_expression":
            return np.clip(values, -LOG2_LIMIT, LOG2_LIMIT)
        case "m_value":
            return np.clip(values, -M_LIMIT, M_LIMIT)


def reference_quantiles(public: FloatArray) -> FloatArray:
    """F_ref of a modality: the mean of the public rows' order statistics, [n, p] -> [p] ascending.

    Rows with missing cells contribute their own quantiles at the same p levels. ValueError if no row is observed.
    """
    ranks = np.arange(1, public.shape[1] + 1, dtype=np.float64)
    rows = [_quantiles(np.sort(row[~np.isnan(row)]), ranks) for row in public if not np.isnan(row).all()]
    if not rows:
        raise ValueError("a quantile map needs at least one public row with observed values")
    return np.asarray(np.mean(rows, axis=0), dtype=np.float64)


def map_to_quantiles(values: FloatArray, reference: FloatArray) -> FloatArray:
    """F_ref⁻¹(F̂_i(x)) for every row, [n, p] -> [n, p]; ties share their average rank, NaN stays NaN (8-1 §1.2).

    F̂_i is (rank − 1/2) / observed cells of the row, F_ref⁻¹ interpolates `reference` linearly. Not invertible: decoding
    returns values of the reference distribution.
    """
    mapped = np.full_like(values, np.nan)
    for target, row in zip(mapped, values, strict=True):
        observed = ~np.isnan(row)
        if observed.any():
            target[observed] = _quantiles(reference, rankdata(row[observed], method="average"))
    return mapped


def _quantiles(ascending: FloatArray, ranks: FloatArray) -> FloatArray:
    """Quantiles at (rank − 1/2) / n of `ascending` [m], whose k-th value (from 0) is its (k + 1/2) / m quantile."""
    last = ascending.size - 1
    position = np.clip((ranks - 0.5) * (ascending.size / ranks.size) - 0.5, 0, last)
    below = position.astype(np.int64)
    low, high = ascending[below], ascending[np.minimum(below + 1, last)]
    return np.asarray(low + (position - below) * (high - low), dtype=np.float64)
