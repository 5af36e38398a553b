"""Tilted permutation of genotypes: the number of effect alleles of the cases against all choices of the cases.

**Null.** Given the genotypes of a variant, every choice of the n1 cases among the n records is equally likely.

**E-value.** `tilted_permutation` with x in {0, 1, 2}. Weights are 1, e^κ or e^{2κ}, so with c_g records of genotype g

    log E = κ Σ_{case} x − log[ [z^{n1}] (1 + z)^{c0} (1 + e^κ z)^{c1} (1 + e^{2κ} z)^{c2} / C(n, n1) ]

depends on the four sums (c1, c2, allele count of the cases; c0 = n − c1 − c2) alone: one pass over bytes and then
`choice_moment` on three weights. −κ is κ with c0 and c2 exchanged. Δ is that of a tilt of width w = 2κ,
attained by 0 ↔ 2.

**Codes.** −1 (NaN of a float) is a missing genotype and is read as 0, no effect allele: a public constant and a map of
each record by itself, so a record still moves within {0, 1, 2} and Δ holds, and a test among called samples only, whose
n would change with a record, is avoided. The null then speaks of the genotype *with* its missingness: where calling
fails more often among cases than among controls the null is false, so filter on missingness by public rules. Imputed
(fractional) dosages are rounded to the nearest genotype, a half to the even one; `TiltedPermutation` with bounds 0 and
2 keeps fractions.

**Tilt.** κ is one public constant for all variants: a sample frequency is private. `designed` takes a public reference
frequency p for the variance 2p(1 − p) of a genotype; at another frequency the test stays valid and Δ as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from synth_platform.discovery.statistics.checks import require_rows
from synth_platform.discovery.statistics.choice_moment import log_choice_moment
from synth_platform.discovery.statistics.design import log_passing_threshold
from synth_platform.discovery.statistics.log_sums import log_average
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray
from synth_platform.discovery.statistics.tilted_permutation import designed_kappa, require_kappa, tilted_sensitivity
from synth_platform.discovery.statistics.two_groups import column_blocks, require_case, require_groups

Genotypes = NDArray[np.int8] | NDArray[np.float32] | FloatArray
"""0, 1, 2 or −1 as bytes, or imputed dosages."""

_WIDTH = 2
_BYTE_ROWS = 255 // _WIDTH  # whose sum still fits in a byte
_GENOTYPES = np.arange(3.0)[:, np.newaxis]


@dataclass(frozen=True)
class DosageStatistic:
    """κ Σ_{case} x − log of its mean over all choices of the cases; one-sided it looks for more alleles among cases.

    Raises ValueError for an empty group, κ = kappa <= 0 or 2κ above LARGEST_WIDTH of `tilted_permutation`.
    """

    n_case: int
    n_control: int
    kappa: float
    two_sided: bool = True

    def __post_init__(self) -> None:
        require_groups(self.n_case, self.n_control)
        require_kappa(self.kappa, _WIDTH)

    @classmethod
    def designed(
        cls,
        n_case: int,
        n_control: int,
        *,
        frequency: float,
        features: int,
        size: int,
        alpha: float,
        value_mu: float,
        two_sided: bool = True,
    ) -> DosageStatistic:
        """The κ that passes e-BH most often for variants of a public allele `frequency` in (0, 1), see `design`.

        `size` of `features` variants are released with value_mu each. All constants public.
        """
        require_groups(n_case, n_control)
        if not 0 < frequency < 1:
            raise ValueError(f"frequency is {frequency}: an allele frequency lies strictly between 0 and 1")
        kappa = designed_kappa(
            n_case,
            n_control,
            width=_WIDTH,
            variance=2 * frequency * (1 - frequency),
            log_threshold=log_passing_threshold(features=features, size=size, alpha=alpha, two_sided=two_sided),
            value_mu=value_mu,
        )
        return cls(n_case, n_control, kappa, two_sided)

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "dosage"

    @property
    def sensitivity(self) -> float:
        """Δ = log[1 + (max(n1, n0) / n)(e^{2κ} − 1)]: attained one-sided, a bound two-sided."""
        return tilted_sensitivity(self.kappa * _WIDTH, self.n_case, self.n_control)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        return asdict(self)

    def log_e(self, values: Genotypes, case: BoolArray) -> FloatArray:
        """values [n, m] genotypes 0, 1, 2, missing −1 or NaN; case [n] -> [m] log e-values.

        Every column by itself: stream a cohort through it in blocks of variants. Beside `values`, memory is a few
        numbers per column and under 10 MiB; int8 is the fastest.

        Raises ValueError for other group sizes than the registered ones, or another code.
        """
        require_rows(cast(FloatArray, values), self.n_case + self.n_control)
        require_case(case, self.n_case, self.n_control)
        n, m = values.shape
        alleles, twos, in_cases = np.empty(m), np.empty(m), np.empty(m)
        for block in column_blocks(m, n):
            genotypes = _genotypes(values[:, block])
            alleles[block] = _sums(genotypes)
            twos[block] = _sums(genotypes >> np.uint8(1))
            in_cases[block] = _sums(genotypes[case])
        ones = alleles - 2 * twos
        counts = np.stack([n - ones - twos, ones, twos])
        log_e = np.empty(m)
        for block in column_blocks(m, 64):  # `log_choice_moment` of three weights
            up = self._side(counts[:, block], in_cases[block])
            if self.two_sided:
                down = self._side(counts[::-1, block], 2 * self.n_case - in_cases[block])
                up = log_average(up, down)
            log_e[block] = up
        return log_e

    def _side(self, counts: FloatArray, in_cases: FloatArray) -> FloatArray:
        """counts [3, b] of each genotype, in_cases [b] alleles of the cases -> [b] log e-values for larger cases."""
        log_weights = np.broadcast_to(self.kappa * _GENOTYPES, counts.shape)
        return np.asarray(self.kappa * in_cases - log_choice_moment(log_weights, self.n_case, counts))


def _genotypes(values: Genotypes) -> NDArray[np.uint8]:
    """[n, b] codes as bytes 0, 1, 2."""
    codes = values if values.dtype == np.int8 else np.where(np.isnan(values), -1, np.rint(values))
    if codes.min() < -1 or codes.max() > _WIDTH:
        raise ValueError("values holds a code other than 0, 1, 2 and -1 (missing): recode it by a public rule first")
    return np.maximum(codes, 0).astype(np.uint8, order="C")


def _sums(genotypes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Column sums by way of bytes, which the processor adds 32 at a time."""
    total = np.zeros(genotypes.shape[1], dtype=np.int64)
    for start in range(0, len(genotypes), _BYTE_ROWS):
        total += genotypes[start : start + _BYTE_ROWS].sum(axis=0, dtype=np.uint8)
    return total
