"""Genotype e-values against rational arithmetic and against the general tilt of the same values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from synth_platform.discovery.statistics.dosage import DosageStatistic
from synth_platform.discovery.statistics.tilted_permutation import TiltedPermutation


def power(base: list[Fraction], exponent: int, degree: int) -> list[Fraction]:
    """Coefficients of (base_0 + base_1 z)^exponent up to z^degree."""
    return [math.comb(exponent, k) * base[0] ** (exponent - k) * base[1] ** k for k in range(min(exponent, degree) + 1)]


def coefficient(polynomials: list[list[Fraction]], degree: int) -> Fraction:
    """Of z^degree in the product of three."""
    first, second, third = polynomials
    return sum(
        (
            a * b * third[degree - i - j]
            for i, a in enumerate(first)
            for j, b in enumerate(second)
            if 0 <= degree - i - j < len(third)
        ),
        Fraction(0),
    )


def exact_log_e(genotypes: np.ndarray, case: np.ndarray, w: Fraction) -> float:
    """w^(alleles of cases) over its mean in rationals: [z^n1] (1 + z)^c0 (1 + wz)^c1 (1 + w²z)^c2."""
    n1 = int(case.sum())
    counts = [int((genotypes == g).sum()) for g in range(3)]
    polynomials = [power([Fraction(1), w**g], counts[g], n1) for g in range(3)]
    mean = coefficient(polynomials, n1) / math.comb(len(case), n1)
    e = w ** int(genotypes[case].sum()) / mean
    return math.log(e.numerator) - math.log(e.denominator)


@pytest.mark.parametrize("w", [Fraction(11, 10), Fraction(3, 2), Fraction(1000)])
@pytest.mark.parametrize(("n1", "n"), [(1, 60), (20, 60), (59, 60), (55, 150)])
def test_it_is_the_rational_number(w: Fraction, n1: int, n: int) -> None:
    """Claim: at every frequency, monomorphic included, log E is the exact one within rounding."""
    rng = np.random.default_rng(n1)
    frequency = np.array([0.0, 0.01, 0.1, 0.5, 0.9, 1.0])
    values = rng.binomial(2, frequency, (n, 6)).astype(np.int8)
    case = rng.permutation(np.arange(n) < n1)
    got = DosageStatistic(n1, n - n1, math.log(w), two_sided=False).log_e(values, case)
    assert got == pytest.approx([exact_log_e(column, case, w) for column in values.T], rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("two_sided", [True, False])
def test_it_is_the_general_tilt_of_the_same_values(two_sided: bool) -> None:
    """Claim: four sums say all: equal to `TiltedPermutation` record by record; the sums of 700 leave a byte."""
    rng = np.random.default_rng(8)
    values = rng.binomial(2, rng.uniform(0, 1, 300), (700, 300)).astype(np.int8)
    case = rng.permutation(np.arange(700) < 200)
    got = DosageStatistic(200, 500, 0.2, two_sided).log_e(values, case)
    want = TiltedPermutation(200, 500, 0.2, 0.0, 2.0, two_sided).log_e(values.astype(np.float64), case)
    assert got == pytest.approx(want, rel=1e-10, abs=1e-10)


class TestCodes:
    CASE = np.arange(9) < 4
    VALUES = np.array([[0, 1, 2, 2, 1, 0, 0, 1, 0], [2, 2, 2, 2, 2, 2, 2, 2, 2]], dtype=np.int8).T
    STATISTIC = DosageStatistic(4, 5, 0.4)

    def test_missing_is_no_effect_allele(self) -> None:
        missing = self.VALUES.copy()
        missing[[0, 5], 0] = -1
        assert np.array_equal(self.STATISTIC.log_e(missing, self.CASE), self.STATISTIC.log_e(self.VALUES, self.CASE))

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_imputed_dosages_are_rounded_and_nan_is_missing(self, kind: type) -> None:
        imputed = self.VALUES.astype(kind) + np.array([0.3, -0.4], dtype=kind)
        imputed[0, 0] = np.nan
        imputed[5, 0] = -1
        want = self.STATISTIC.log_e(self.VALUES, self.CASE)
        assert np.array_equal(self.STATISTIC.log_e(imputed, self.CASE), want)

    def test_any_layout_of_memory_and_any_blocks_will_do(self) -> None:
        values = np.random.default_rng(1).integers(-1, 3, (9, 500), dtype=np.int8)
        whole = self.STATISTIC.log_e(values, self.CASE)
        assert self.STATISTIC.log_e(np.asfortranarray(values), self.CASE) == pytest.approx(whole, rel=1e-13)
        parts = [self.STATISTIC.log_e(values[:, at : at + 7], self.CASE) for at in range(0, 500, 7)]
        assert np.concatenate(parts) == pytest.approx(whole, rel=1e-12, abs=1e-12)

    @pytest.mark.parametrize("bad", [3, -2, 127, -128])
    def test_other_codes_are_refused(self, bad: int) -> None:
        values = self.VALUES.copy()
        values[3, 1] = bad
        for given in (values, values.astype(np.float32)):
            with pytest.raises(ValueError, match="a code other than 0, 1, 2") as error:
                self.STATISTIC.log_e(given, self.CASE)
            assert str(bad) not in str(error.value).replace("0, 1, 2 and -1", "")

    def test_a_monomorphic_variant_is_no_evidence(self) -> None:
        assert self.STATISTIC.log_e(self.VALUES, self.CASE)[1] == pytest.approx(0.0, abs=1e-12)
