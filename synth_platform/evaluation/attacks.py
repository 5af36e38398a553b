"""Membership attacks: how much a synthetic table knows of each row, one score a row and attack (8-1 §3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from synth_platform.contract.options import AttackCode
from synth_platform.evaluation.density import log_density_ratio
from synth_platform.evaluation.distances import nearest_distances
from synth_platform.normalize.rows import FloatArray

# Distances are rounded to six decimals; the logarithm of a copy's distance is taken at that resolution.
_SMALLEST_DISTANCE = 1e-6


def attack_scores(
    rows: FloatArray, synthetic: FloatArray, public: FloatArray, *, neighbours: int, attacks: Sequence[AttackCode]
) -> dict[AttackCode, FloatArray]:
    """The score of each row under each of `attacks`, [n] each, rounded to six decimals; larger = more likely a member.

    A1 = -(distance to the nearest synthetic row); A2 = log d_k(public) - log d_k(synthetic) with k = `neighbours`;
    A3 = log p(synthetic) - log p(public), kernel densities in a space that public rows fix (`density`).

    Raises ValueError for an unknown attack, rows that are not finite, or too few synthetic or public rows.
    """
    unknown = [code for code in attacks if code not in get_args(AttackCode)]
    if unknown:
        known = ", ".join(get_args(AttackCode))
        raise ValueError(f"there is no membership attack {', '.join(unknown)}; there are {known}")
    scores: dict[AttackCode, FloatArray] = {}
    if "A1" in attacks or "A2" in attacks:
        to_synthetic = nearest_distances(rows, synthetic, neighbours if "A2" in attacks else 1)
        scores["A1"] = -to_synthetic[:, 0]
    if "A2" in attacks:
        scores["A2"] = _log_distance(nearest_distances(rows, public, neighbours)) - _log_distance(to_synthetic)
    if "A3" in attacks:
        scores["A3"] = log_density_ratio(rows, synthetic, public)
    return {code: np.round(scores[code], 6) for code in attacks}


def _log_distance(nearest: FloatArray) -> FloatArray:
    """log d_k of distances to the k nearest rows, [n, k] -> [n]."""
    return np.log(np.maximum(nearest[:, -1], _SMALLEST_DISTANCE))
