"""Conditioning cells and what one row contributes to the three statistics of 8-1 §2.2, all within-row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_platform.generators.basis import PublicBasis
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray

POOLED = "(all)"
OTHER = "(other)"


@dataclass(frozen=True)
class Cells:
    """Cells label x event, crossed with batches; every list is a public declaration, never read from private rows.

    labels:         declared class labels; cell of a row = 2 * label code + event.
    batches:        declared batches, in code order.
    latent_batches: batches with an effect of their own; empty pools all rows in one. When some declared batch is left
                    out, a last group "(other)" takes every row of those and of undeclared batches; otherwise an
                    undeclared batch counts with the first. Either way a row belongs to exactly one group.
    """

    labels: tuple[str, ...]
    batches: tuple[str, ...]
    latent_batches: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the batch groups that rows are counted in."""
        if not self.latent_batches:
            return (POOLED,)
        return self.latent_batches + ((OTHER,) if set(self.batches) - set(self.latent_batches) else ())

    @property
    def count(self) -> int:
        """Number of cells C = 2 K."""
        return 2 * len(self.labels)

    @property
    def size(self) -> int:
        """Number of cell x group combinations."""
        return self.count * len(self.groups)

    def membership(self, rows: EncodedRows) -> FloatArray:
        """[n, size] one-hot position of each row, cell-major; a row without a declared label belongs to none."""
        groups = self.groups
        default = groups.index(OTHER) if OTHER in groups else 0
        group_of = [groups.index(batch) if batch in groups else default for batch in self.batches]
        # The last place answers for every code outside the declared list.
        lookup: IntArray = np.array([*group_of, default], dtype=np.int64)
        declared = (rows.batch >= 0) & (rows.batch < len(self.batches))
        group = lookup[np.where(declared, rows.batch, len(self.batches))]
        cell = 2 * rows.label + (rows.event > 0)
        known = (rows.label >= 0) & (rows.label < len(self.labels))
        one_hot = np.zeros((len(rows), self.size))
        index = np.flatnonzero(known)
        one_hot[index, (cell * len(groups) + group)[index]] = 1.0
        return one_hot


def clip_rows(z: FloatArray, clip: float) -> FloatArray:
    """Rows scaled to L2 norm at most `clip`: z * min(1, R / |z|)."""
    norm = np.linalg.norm(z, axis=1, keepdims=True)
    clipped: FloatArray = z * np.minimum(1.0, clip / np.maximum(norm, np.finfo(np.float64).tiny))
    return clipped


@dataclass(frozen=True)
class CountContribution:
    """rows [n] -> [n, C B]: 1 in the row's own cell and group; L2 norm <= 1."""

    cells: Cells

    def __call__(self, rows: EncodedRows) -> FloatArray:
        """Contribution of each row."""
        return self.cells.membership(rows)


@dataclass(frozen=True, eq=False)
class SumContribution:
    """rows [n] -> [n, C B (k + 1)]: the clipped latent vector in the row's own cell and group; L2 norm <= R."""

    cells: Cells
    basis: PublicBasis
    clip: float

    def __call__(self, rows: EncodedRows) -> FloatArray:
        """Contribution of each row."""
        z = clip_rows(self.basis.latent(rows), self.clip)
        return (self.cells.membership(rows)[:, :, None] * z[:, None, :]).reshape(
            len(rows), self.cells.size * self.basis.size
        )


@dataclass(frozen=True, eq=False)
class MomentContribution:
    """rows [n] -> [n, (k + 1)(k + 2) / 2]: upper triangle of z z' for the clipped latent vector; L2 norm <= R^2."""

    cells: Cells
    basis: PublicBasis
    clip: float

    def __call__(self, rows: EncodedRows) -> FloatArray:
        """Contribution of each row."""
        z = clip_rows(self.basis.latent(rows), self.clip)
        a, e = np.triu_indices(self.basis.size)
        in_a_cell = self.cells.membership(rows).sum(axis=1, keepdims=True)
        triangle: FloatArray = z[:, a] * z[:, e] * in_a_cell
        return triangle
