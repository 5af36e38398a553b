"""Rows that a mechanism must be able to hide: extreme, broken and undeclared ones, one in every kind of cell.

All are made of public rows and public declarations. Which of them is the worst is found by asking, not by thinking:
`mechanism_audit` probes every one through the real mechanism without noise.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray, concatenate

FAR = 1e3  # public standard deviations: beyond every clip norm, and still an ordinary number
HUGE = 1e100  # its square is a float, its fourth power is not


def worst_rows(reference: PublicReference) -> EncodedRows:
    """Candidates: far and huge rows on both sides of the public centre in every kind of cell, and broken rows."""
    return concatenate([extreme_rows(reference, directions=1), _huge(reference), broken_rows(reference)])


def extreme_rows(reference: PublicReference, *, directions: int, both_ways: bool = True) -> EncodedRows:
    """Rows FAR out along each of the leading public directions, for every label, event and kind of batch.

    Kinds of batch are those with an effect of their own, one without, and an undeclared one. both_ways: on both sides
    of the centre, and with the shortest as well as the longest public time.
    """
    centre, axes = _axes(reference, directions)
    known = [reference.batches.index(batch) for batch in reference.latent_batches]
    others = [code for code in range(len(reference.batches)) if code not in known][:1]
    shortest, longest = float(reference.rows.time.min()), float(reference.rows.time.max())
    ways = list(product((1, -1), (longest, shortest))) if both_ways else [(1, longest)]
    kinds = list(product(range(len(reference.labels)), (0, 1), [*known, *others, -1], range(len(axes)), ways))
    return _rows(
        reference,
        x=np.stack([centre + side * FAR * axes[axis] for *_, axis, (side, _) in kinds]),
        label=np.array([kind[0] for kind in kinds]),
        event=np.array([kind[1] for kind in kinds]),
        batch=np.array([kind[2] for kind in kinds]),
        time=np.array([time for *_, (_, time) in kinds]),
    )


def broken_rows(reference: PublicReference) -> EncodedRows:
    """Rows that the contract would refuse: not finite, or without a declared label, event or batch."""
    centre, axes = _axes(reference, 1)
    far = centre + FAR * axes[0]
    count = 10
    x = np.tile(far, (count, 1))
    x[0], x[1, 0], x[2], x[3, 0] = np.nan, np.nan, np.inf, -np.inf
    time = np.full(count, float(reference.rows.time.max()))
    time[4:8] = np.nan, np.inf, 0.0, -1.0
    label, event, batch = np.zeros(count, np.int64), np.ones(count, np.int64), np.zeros(count, np.int64)
    label[8], label[9] = -1, len(reference.labels)
    event[8], batch[9] = 2, len(reference.batches)
    return _rows(reference, x=x, label=label, event=event, batch=batch, time=time)


def with_canary(base: EncodedRows, candidates: EncodedRows, row: int, copies: int) -> EncodedRows:
    """`base` and `copies` of one candidate."""
    return concatenate([base, candidates.take(np.full(copies, row))])


def _huge(reference: PublicReference) -> EncodedRows:
    centre, axes = _axes(reference, 1)
    labels = len(reference.labels)
    return _rows(
        reference,
        x=np.tile(centre + HUGE * axes[0], (labels, 1)),
        label=np.arange(labels),
        event=np.ones(labels, np.int64),
        batch=np.zeros(labels, np.int64),
        time=np.full(labels, float(reference.rows.time.max())),
    )


def _axes(reference: PublicReference, directions: int) -> tuple[FloatArray, FloatArray]:
    """Public centre [p] and leading principal axes [j, p], each one public standard deviation long."""
    x = reference.rows.x
    centre = x.mean(axis=0)
    _, singular, axes = np.linalg.svd(x - centre, full_matrices=False)
    spread = singular[:directions] / np.sqrt(len(x))
    return centre, axes[:directions] * spread[:, None]


def _rows(
    reference: PublicReference, *, x: FloatArray, label: IntArray, event: IntArray, batch: IntArray, time: FloatArray
) -> EncodedRows:
    n = len(x)
    return EncodedRows(
        features=reference.rows.features,
        x=x,
        label=label.astype(np.int64),
        event=event.astype(np.int64),
        time=time,
        batch=batch.astype(np.int64),
        split=np.full(n, "train"),
        key=np.array([f"C-{i:06d}" for i in range(n)]),
    )
