"""Membership attacks: how much a synthetic table knows of each row, one score a row and attack (8-1 §3.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_platform.contract.options import AttackCode
from synth_platform.evaluation.distances import nearest_distances
from synth_platform.normalize.rows import FloatArray

# Distances are rounded to six decimals; the logarithm of a copy's distance is taken at that resolution.
_SMALLEST_DISTANCE = 1e-6


def attack_scores(
    rows: FloatArray, synthetic: FloatArray, public: FloatArray, *, neighbours: int, attacks: Sequence[AttackCode]
) -> dict[AttackCode, FloatArray]:
    """The score of each row under each of `attacks`, [n] each, rounded to six decimals; larger = more likely a member.

    A1 = -(distance to the nearest synthetic row); A2 = log d_k(public) - log d_k(synthetic) with k = `neighbours`.
    """
    to_synthetic = nearest_distances(rows, synthetic, neighbours)
    to_public = nearest_distances(rows, public, neighbours)[:, -1]
    density = np.log(np.maximum(to_public, _SMALLEST_DISTANCE)) - np.log(
        np.maximum(to_synthetic[:, -1], _SMALLEST_DISTANCE)
    )
    scores: dict[AttackCode, FloatArray] = {"A1": -to_synthetic[:, 0], "A2": np.round(density, 6)}
    return {code: scores[code] for code in attacks if code in scores}
