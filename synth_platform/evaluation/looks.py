"""One more look at a published table: every registered attack again, with randomness nobody knew when it was made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_platform.contract.options import AttackCode
from synth_platform.evaluation.attacks import attack_scores
from synth_platform.evaluation.e_values import mann_whitney_log_e
from synth_platform.normalize.rows import FloatArray

_SMALLEST_SHARE = 0.25  # of the features, in the narrowest view of the rows


def look_log_e(
    members: FloatArray,
    nonmembers: FloatArray,
    synthetic: FloatArray,
    public: FloatArray,
    *,
    attacks: Sequence[AttackCode],
    neighbours: int,
    limit: float,
    seed: int,
) -> dict[AttackCode, float]:
    """log e-value of each attack on the rows [n1, d] and [n0, d] by one synthetic table, for the look of `seed`.

    The seed decides which share of the features the attacks see (between a quarter and all, and which) and the number
    of neighbours (up to twice the registered one): a leak in a few columns, or in small clusters, shows in some looks.
    Members and non-members are scored together, by functions that do not know which are which.
    """
    rng = np.random.default_rng(seed)
    features = members.shape[1]
    kept = max(1, round(rng.uniform(_SMALLEST_SHARE, 1.0) * features))
    seen = np.sort(rng.choice(features, kept, replace=False))
    near = int(rng.integers(1, min(2 * neighbours, len(synthetic), len(public)), endpoint=True))
    rows = np.concatenate([members, nonmembers])[:, seen]
    scores = attack_scores(rows, synthetic[:, seen], public[:, seen], neighbours=near, attacks=attacks)
    return {
        code: mann_whitney_log_e(score[: len(members)], score[len(members) :], limit) for code, score in scores.items()
    }
