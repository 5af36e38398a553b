"""Attribute inference: what an attacker guesses of a patient known but for one attribute (Giomi et al. 2023).

The guess is the attribute of the synthetic row that is nearest in all other columns. A table that learned the
population helps to guess anyone's attribute; only what it helps more for training rows than for others is a leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from synth_platform.evaluation.distances import require_measurable
from synth_platform.normalize.clinical import column_names
from synth_platform.normalize.encoder import Encoder, covariates
from synth_platform.normalize.rows import BoolArray, EncodedRows, FloatArray

OMICS_SECRETS = 8
# A quarter of a public standard deviation: less than one step of any code or indicator, so those must be met exactly.
TOLERANCE = 0.25
_SEED = 8_138
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class Secret:
    """An attribute and its columns: positions among the p features, or p for the label and p + 1 for the event.

    The attacker does not know the features among them; outcomes are never known.
    """

    name: str
    columns: tuple[int, ...]


def registered_secrets(encoder: Encoder) -> tuple[Secret, ...]:
    """The label, the event, every clinical covariate, and eight omics columns drawn by a public seed."""
    p, omics = len(encoder.features), len(encoder.omics_columns)
    secrets = [Secret(encoder.outcome.label, (p,)), Secret(encoder.outcome.event, (p + 1,))]
    at = omics
    for variable in covariates(encoder.variables, encoder.outcome):
        end = at + len(column_names(variable))
        secrets.append(Secret(variable.name, tuple(range(at, end))))
        at = end
    drawn = np.sort(np.random.default_rng(_SEED).permutation(omics)[:OMICS_SECRETS])
    secrets += [Secret(encoder.features[column], (int(column),)) for column in drawn]
    return tuple(secrets)


def right_guesses(rows: EncodedRows, synthetic: EncodedRows, secrets: Sequence[Secret]) -> BoolArray:
    """Whether each of `rows` [n] loses each of `secrets` [k] to its nearest synthetic row, [n, k].

    A guess is right within a quarter of a public standard deviation in every column of the secret; of equally near
    synthetic rows the first one guesses.

    Raises ValueError without synthetic rows, or for rows that are not finite or beyond 1e145.
    """
    if len(synthetic) == 0:
        raise ValueError("attribute inference needs synthetic rows")
    require_measurable(rows.x, synthetic.x)
    truth, guesses = _attributes(rows), _attributes(synthetic)
    right = np.empty((len(rows), len(secrets)), np.bool_)
    step = max(1, _BLOCK_CELLS // len(synthetic))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        x = rows.x[block]
        # cdist uses no BLAS: the nearest row is the same one whatever the number of threads.
        squares = cdist(x, synthetic.x, "sqeuclidean")
        for k, secret in enumerate(secrets):
            own = [column for column in secret.columns if column < x.shape[1]]
            known = squares - cdist(x[:, own], synthetic.x[:, own], "sqeuclidean") if own else squares
            nearest = known.argmin(axis=1)
            columns = list(secret.columns)
            off = np.abs(truth[block][:, columns] - guesses[nearest][:, columns])
            right[block, k] = (off <= TOLERANCE).all(axis=1)
    return right


def _attributes(rows: EncodedRows) -> FloatArray:
    """Features, label and event, [n, p + 2]."""
    return np.column_stack([rows.x, rows.label, rows.event])
