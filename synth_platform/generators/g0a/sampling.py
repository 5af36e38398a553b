"""Rows from a stored G0A state: public donors carried to the private estimates, their times redrawn along its hazard.

A donor brings what no moment describes: skewness, joint missingness, how censoring and follow-up go together. It is a
public row, so using it costs nothing.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from synth_platform.generators.g0a.anchor import relative_risk
from synth_platform.generators.g0a.survival import CumulativeHazard
from synth_platform.generators.protocol import GeneratorState
from synth_platform.generators.synthetic import feature_names, synthetic_rows
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray


def sample(state: GeneratorState, *, rows: int, seed: int) -> EncodedRows:
    """`rows` synthetic rows, deterministic in `seed`; class quotas follow the estimated shares to less than one row."""
    a = cast(dict[str, Any], state.arrays)
    rng = np.random.default_rng(seed)
    label = _labels(rng, a["share"], rows)
    donor, partner = _donors(rng, a["donor.label"], label)
    x = _carried(a, donor, partner, label, float(cast(float, state.document["smoothing"])))
    _draw_codes(rng, state, x, donor=donor, partner=partner, label=label)
    time, event = _times(rng, a, x, donor)
    return synthetic_rows(feature_names(state), x=x, label=label, event=event, time=time)


def _labels(rng: np.random.Generator, share: FloatArray, rows: int) -> IntArray:
    """Class of each row, in random order: whole parts of share * rows, the rest drawn by the fractions."""
    quota = np.floor(share * rows).astype(np.int64)
    fraction = np.maximum(share * rows - quota, 1e-12)
    rest = rows - int(quota.sum())
    quota += np.bincount(rng.choice(len(share), rest, p=fraction / fraction.sum()), minlength=len(share))
    return rng.permutation(np.repeat(np.arange(len(share), dtype=np.int64), quota))


def _donors(rng: np.random.Generator, pool_label: IntArray, label: IntArray) -> tuple[IntArray, IntArray]:
    """A donor and a second one (for smoothing) of the row's class; no donor is used again before every other one was.

    A class without a public row borrows donors of all classes.
    """
    donor, partner = np.empty((2, len(label)), dtype=np.int64)
    for c in np.unique(label):
        wanted = np.flatnonzero(label == c)
        pool = np.flatnonzero(pool_label == c)
        pool = pool if len(pool) else np.arange(len(pool_label))
        passes = -(-len(wanted) // len(pool))
        donor[wanted] = np.concatenate([rng.permutation(pool) for _ in range(passes)])[: len(wanted)]
        partner[wanted] = np.roll(donor[wanted], 1)
    return donor, partner


def _carried(a: dict[str, Any], donor: IntArray, partner: IntArray, label: IntArray, smoothing: float) -> FloatArray:
    """[n, p] x = m_c + shift_c + T (sqrt(1 - s) r + sqrt(s) r'), r and r' the donors' residuals."""
    residuals = a["donor.x"] - a["means"][a["donor.label"]]
    s = np.where(donor == partner, 0.0, smoothing)[:, None]  # a donor is no smoothing for itself
    r = np.sqrt(1 - s) * residuals[donor] + np.sqrt(s) * residuals[partner]
    r = r + (r @ a["moment.project"]) @ a["moment.change"] @ a["moment.restore"]
    return np.asarray(a["means"][label] + a["offset"][label] + r)


def _draw_codes(
    rng: np.random.Generator,
    state: GeneratorState,
    x: FloatArray,
    *,
    donor: IntArray,
    partner: IntArray,
    label: IntArray,
) -> None:
    """Fill the coded columns of x from the transition matrices, and empty the cells that are missing."""
    a = cast(dict[str, Any], state.arrays)
    layout = cast(dict[str, Any], state.document["clinical"])
    gone: dict[int, Any] = {}
    for i, (columns, indicator) in enumerate(layout["coded"]):
        was = a[f"code.{i}.donor"][donor]
        odds = np.where((was < 0)[:, None], a[f"code.{i}.share"][label], a[f"code.{i}.transition"][label, was])
        code = np.minimum((odds.cumsum(axis=1) < rng.random(len(x))[:, None]).sum(axis=1), odds.shape[1] - 1)
        x[:, columns] = a[f"code.{i}.levels"][code]
        if indicator is None:
            gone[columns[0]] = code == 1
        else:
            x[np.ix_(gone[indicator], columns)] = 0.0
    for column, indicator in layout["nullable"]:
        # A donor without the measurement has none to shift, nor has a partner without it one to smooth with.
        lacks = a[f"missing.{indicator}"] == 1
        source = np.where(lacks[donor], partner, donor)
        borrowed = a["donor.x"][source, column] + a["offset"][label, column]
        x[:, column] = np.where(lacks[donor] | lacks[partner], borrowed, x[:, column])
        x[gone[indicator], column] = 0.0


def _times(rng: np.random.Generator, a: dict[str, Any], x: FloatArray, donor: IntArray) -> tuple[FloatArray, IntArray]:
    """Time and event: the donor's place on its own hazard scale, read off the private one.

    The cumulative hazard at a failure is standard exponential; where the donor was censored before, the rest of it is
    drawn (memoryless). Likewise for the censoring time of a donor that failed.
    """
    baseline = CumulativeHazard(a["baseline.times"], a["baseline.values"])
    censoring = CumulativeHazard(a["censoring.times"], a["censoring.values"])
    longest, level, censoring_level = a["survival"]
    time, failed = a["donor.time"][donor], a["donor.event"][donor] == 1

    def risk(points: FloatArray, beta: FloatArray) -> FloatArray:
        return relative_risk((points - a["centre"]) @ a["hazard.project"], beta)

    exposure = baseline.at(time) * risk(a["donor.x"][donor], a["beta"])
    exposure += np.where(failed, 0.0, rng.standard_exponential(len(x)))
    dropout = censoring.at(time) + np.where(failed, rng.standard_exponential(len(x)), 0.0)
    failure = baseline.inverse(exposure / (risk(x, a["beta"] + a["beta_shift"]) * np.exp(level)))
    lost = np.minimum(censoring.inverse(dropout * np.exp(-censoring_level)), longest)
    smallest = np.min(a["donor.time"])
    return np.maximum(np.minimum(failure, lost), smallest), (failure <= lost).astype(np.int64)
