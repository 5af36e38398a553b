"""The closest-record gate: is the synthetic table nearer to training rows than chance allows? (8-1 §3.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.distances import matched, nearest_distances
from synth_platform.evaluation.evidence import Evidence, rounded
from synth_platform.evaluation.statistics import clopper_pearson_upper, six
from synth_platform.normalize.rows import EncodedRows

DUPLICATE_DISTANCE = 1e-6
NEAR_SHARE = 0.05
_MATCH_SEED = 8_134

ClosestRecordStatus = Literal["PASS", "FAIL"]


@dataclass(frozen=True)
class ClosestRecordVerdict:
    """The three judged statistics, two reported ratios, and the arrays behind them.

    duplicates: synthetic rows within 1e-6 of a training row. train_closer: share nearer to training than to holdout
    rows (ties 1/2). excess: share nearer to training rows than 95 % of holdout rows are. *_upper: one-sided 95 %
    Clopper-Pearson bounds. ratio_5, ratio_50: quantile of d_T over quantile of d_H, reported only.
    """

    duplicates: int
    train_closer: float
    train_closer_upper: float
    excess: float
    excess_upper: float
    ratio_5: float | None
    ratio_50: float | None
    status: ClosestRecordStatus
    evidence: Evidence = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Summary without arrays."""
        return {
            "duplicates": self.duplicates,
            "train_closer": self.train_closer,
            "train_closer_upper": self.train_closer_upper,
            "excess": self.excess,
            "excess_upper": self.excess_upper,
            "ratio_5": self.ratio_5,
            "ratio_50": self.ratio_50,
            "status": self.status,
        }


def closest_record_gate(
    train: EncodedRows, holdout: EncodedRows, synthetic: EncodedRows, options: GateOptions
) -> ClosestRecordVerdict:
    """Judge one synthetic table [m, p] against training rows and holdout rows of the same population.

    Duplicates and the excess share look at *all* training rows; only the comparison of the two sides needs equal sizes,
    and there the larger side is thinned by a public seed. Figures are computed from distances rounded to six decimals,
    so the evidence reproduces them; a distance that rounds to 1e-6 counts as a duplicate.

    Raises ValueError for an empty table or rows that are not finite.
    """
    if min(len(train), len(holdout), len(synthetic)) == 0:
        raise ValueError("the closest-record gate needs training, holdout and synthetic rows")
    matched_train, matched_holdout = matched(train.x, holdout.x, _MATCH_SEED)
    to_train = nearest_distances(synthetic.x, train.x)[:, 0]
    to_matched = to_train if len(matched_train) == len(train) else nearest_distances(synthetic.x, matched_train)[:, 0]
    to_holdout = nearest_distances(synthetic.x, matched_holdout)[:, 0]
    holdout_to_train = nearest_distances(holdout.x, train.x)[:, 0]

    m = len(synthetic)
    duplicates = int((to_train <= DUPLICATE_DISTANCE).sum())
    closer = float((to_matched < to_holdout).sum() + 0.5 * (to_matched == to_holdout).sum())
    near = round(float(np.quantile(holdout_to_train, NEAR_SHARE)), 6)
    excess = int((to_train < near).sum())
    closer_upper, excess_upper = clopper_pearson_upper(closer, m), clopper_pearson_upper(excess, m)
    passed = (
        duplicates == 0
        and six(closer_upper) <= six(0.5 + options.train_closer_tolerance)
        and six(excess_upper) <= six(NEAR_SHARE + options.excess_tolerance)
    )
    return ClosestRecordVerdict(
        duplicates=duplicates,
        train_closer=round(closer / m, 6),
        train_closer_upper=round(closer_upper, 6),
        excess=round(excess / m, 6),
        excess_upper=round(excess_upper, 6),
        ratio_5=_quantile_ratio(to_matched, to_holdout, 0.05),
        ratio_50=_quantile_ratio(to_matched, to_holdout, 0.5),
        status="PASS" if passed else "FAIL",
        evidence={
            "synthetic_to_train": rounded(to_train),
            "synthetic_to_matched_train": rounded(to_matched),
            "synthetic_to_matched_holdout": rounded(to_holdout),
            "holdout_to_train": rounded(holdout_to_train),
            "near_distance": near,
            "train_closer_tolerance": options.train_closer_tolerance,
            "excess_tolerance": options.excess_tolerance,
        },
    )


def _quantile_ratio(
    first: np.ndarray[Any, np.dtype[np.float64]], second: np.ndarray[Any, np.dtype[np.float64]], share: float
) -> float | None:
    bottom = float(np.quantile(second, share))
    return round(float(np.quantile(first, share)) / bottom, 6) if bottom > 0 else None
