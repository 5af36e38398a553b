"""The inference gate: does the table tell more of training rows than of rows the generator never saw?

Anonymeter's questions are about a person rather than about membership: can an attribute be inferred, can somebody be
singled out (Giomi et al. 2023)? A success on a control row comes of what the table says about the population, which is
what it is for; only the excess on training rows is a risk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from synth_platform.evaluation.attribute_inference import Secret, right_guesses
from synth_platform.evaluation.evidence import Evidence, rounded
from synth_platform.evaluation.rate_difference import RateDifference, RateStatus, compare_rates
from synth_platform.evaluation.singling_out import singled_out
from synth_platform.normalize.rows import BoolArray, EncodedRows

# Five points of success, as the membership limit of .55 allows five points above chance.
MARGIN = 0.05
FAMILY_ERROR = 0.05
PARTS = 3
_MATCH_SEED = 8_137


@dataclass(frozen=True)
class InferenceVerdict:
    """Success on training and control rows of each attack, and the gate's status.

    attribute_inference: mean over all secrets. secrets: each by itself. singling_out: share of people singled out.
    status: FAIL if any of them fails; else UNDECIDED if the mean over secrets or singling out is; else PASS. A single
    secret that is undecided does not keep the gate from passing: with so many, most are.
    """

    attribute_inference: RateDifference
    singling_out: RateDifference
    secrets: Mapping[str, RateDifference]
    rows: int
    margin: float
    status: RateStatus
    evidence: Evidence = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Summary without arrays."""
        return {
            "attribute_inference": asdict(self.attribute_inference),
            "singling_out": asdict(self.singling_out),
            "secrets": {name: asdict(secret) for name, secret in self.secrets.items()},
            "rows": self.rows,
            "margin": self.margin,
            "status": self.status,
        }


def inference_risk(
    train: EncodedRows, control: EncodedRows, synthetic: EncodedRows, secrets: Sequence[Secret]
) -> InferenceVerdict:
    """Judge one synthetic table by attacks on training rows and on control rows of the same population.

    The larger side is thinned by a public seed. An error of 5 % is shared by three claims, the mean over secrets,
    singling out, and the single secrets, which share theirs again (Bonferroni).

    Raises ValueError with an empty side, no synthetic row, or rows that are not finite or beyond 1e145.
    """
    n = min(len(train), len(control))
    train, control = (rows if len(rows) == n else _thinned(rows, n) for rows in (train, control))
    if n == 0:
        raise ValueError("the inference gate needs training rows and control rows")
    guessed = [right_guesses(side, synthetic, secrets) for side in (train, control)]
    out = singled_out(train.x, control.x, synthetic.x)
    each = FAMILY_ERROR / PARTS
    average = compare_rates(*_mean(guessed[0]), *_mean(guessed[1]), margin=MARGIN, error=each)
    singling = compare_rates(float(out[0].mean()), n, float(out[1].mean()), n, margin=MARGIN, error=each)
    single = {
        secret.name: compare_rates(
            float(guessed[0][:, k].mean()),
            n,
            float(guessed[1][:, k].mean()),
            n,
            margin=MARGIN,
            error=each / len(secrets),
        )
        for k, secret in enumerate(secrets)
    }
    statuses = {average.status, singling.status}
    status: RateStatus
    if "FAIL" in statuses | {secret.status for secret in single.values()}:
        status = "FAIL"
    else:
        status = "UNDECIDED" if "UNDECIDED" in statuses else "PASS"
    return InferenceVerdict(
        attribute_inference=average,
        singling_out=singling,
        secrets=single,
        rows=n,
        margin=MARGIN,
        status=status,
        evidence={
            "margin": MARGIN,
            "guesses": {
                secret.name: {"train": rounded(guessed[0][:, k] * 1), "control": rounded(guessed[1][:, k] * 1)}
                for k, secret in enumerate(secrets)
            },
            "singled_out": {"train": rounded(out[0] * 1), "control": rounded(out[1] * 1)},
        },
    )


def _thinned(rows: EncodedRows, size: int) -> EncodedRows:
    return rows.take(np.sort(np.random.default_rng(_MATCH_SEED).permutation(len(rows))[:size]))


def _mean(right: BoolArray) -> tuple[float, float]:
    """Mean success over rows and secrets of [n, k] guesses, and the number of independent guesses it is worth.

    Secrets of one row go together: n over the design effect s^2 / (p (1 - p)) of the row means, from n (all secrets of
    a row agree) up to n k (none has to do with another).
    """
    n, k = right.shape
    rows = right.mean(axis=1)
    share = float(rows.mean())
    alone = share * (1 - share)
    effect = float(rows.var(ddof=1)) / alone if n > 1 and alone > 0 else 1.0
    return share, n / min(1.0, max(effect, 1 / k))
