"""Rebuild the simulated genotype study, byte for byte.

    python cohorts/virtual_gwas/build.py OUT

Every block of variants is a Markov chain along a haplotype: the next variant keeps the uniform number u of the one
before it, or draws another with probability RECOMBINATION, and carries the effect allele where u is below the variant's
frequency. Blocks and the two haplotypes of a sample are independent, so genotypes stand in Hardy-Weinberg proportions.

A causal variant stands in the middle of its block. Under a multiplicative model of a rare disease a haplotype of a case
carries it with odds OR times those of a control; given that allele, the rest of the block is as in the population, and
a chain that is run from the middle both ways is the same chain. So cases are drawn outright, exactly and without a
logarithm: numbers come from the generator's raw words, which no version of NumPy changes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CASES, CONTROLS = 600, 600
BLOCKS, BLOCK = 200, 10  # variants come in blocks of linkage
MIDDLE = BLOCK // 2
BLOCKS_ON_CHROMOSOME = 10
RECOMBINATION = 0.25
RARE, COMMON = 0.1, 0.5  # frequencies of effect alleles
MISSING = 0.004
# Block -> odds ratio of its middle variant; three protect.
CAUSAL = {
    8: 1.7, 23: 1.8, 41: 1.8, 58: 0.55, 72: 1.9, 89: 1.9, 104: 0.5, 117: 2.0, 136: 2.0, 151: 0.45, 168: 2.1, 187: 2.2,
}  # fmt: skip
CAUSAL_FREQUENCY = 0.3
SEED = 20
ALLELES = ("A\tG", "C\tT", "G\tA", "T\tC")  # effect allele, other allele
CODE = np.array([0b11, 0b10, 0b00, 0b01], dtype=np.uint8)  # of 0, 1, 2 effect alleles and of a missing genotype


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder that receives the files")
    build(parser.parse_args().out)


def build(out: Path) -> None:
    """Write genotypes.bed, .bim and .fam, and truth.csv, the causal variants."""
    words = np.random.PCG64(SEED)
    frequency = RARE + (COMMON - RARE) * uniform(words, (BLOCKS, BLOCK))
    frequency[list(CAUSAL), MIDDLE] = CAUSAL_FREQUENCY
    cases = np.arange(CASES + CONTROLS) < CASES
    cases = cases[np.argsort(words.random_raw(cases.size), kind="stable")]
    genotypes = np.concatenate(
        [draw_block(words, frequency[block], cases, CAUSAL.get(block, 1.0)) for block in range(BLOCKS)]
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "genotypes.bed").write_bytes(b"\x6c\x1b\x01" + packed(genotypes).tobytes())
    write_lines(out / "genotypes.bim", (bim_line(block, at) for block in range(BLOCKS) for at in range(BLOCK)))
    write_lines(out / "genotypes.fam", (f"S{n:04d}\tS{n:04d}\t0\t0\t0\t{1 + case}" for n, case in enumerate(cases, 1)))
    write_lines(
        out / "truth.csv", ["variant,odds_ratio", *(f"{name(b, MIDDLE)},{ratio}" for b, ratio in CAUSAL.items())]
    )


def draw_block(
    words: np.random.PCG64, frequency: NDArray[np.float64], cases: NDArray[np.bool_], odds_ratio: float
) -> NDArray[np.int64]:
    """[BLOCK, n] copies of the effect allele, 3 for missing."""
    shape = (2, cases.size)  # haplotypes
    p = frequency[MIDDLE]
    carried = np.where(cases, odds_ratio * p / (1 - p + odds_ratio * p), p)
    carries, place = uniform(words, shape) < carried, uniform(words, shape)
    u = np.empty((BLOCK, *shape))
    u[MIDDLE] = np.where(carries, p * place, p + (1 - p) * place)
    for step in (1, -1):
        for at in range(MIDDLE + step, BLOCK if step > 0 else -1, step):
            fresh = uniform(words, shape) < RECOMBINATION
            u[at] = np.where(fresh, uniform(words, shape), u[at - step])
    copies = (u < frequency[:, np.newaxis, np.newaxis]).sum(axis=1)
    return np.where(uniform(words, copies.shape) < MISSING, 3, copies)


def packed(genotypes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """[m, n / 4] bytes of a .bed: four samples a byte, from the low bits up."""
    four = CODE[genotypes].reshape(len(genotypes), -1, 4) << np.array([0, 2, 4, 6], dtype=np.uint8)
    return np.bitwise_or.reduce(four, axis=2)


def bim_line(block: int, at: int) -> str:
    """Chromosome, name, position and alleles of a variant."""
    chromosome, place = divmod(block, BLOCKS_ON_CHROMOSOME)
    position = 1_000_000 * (place + 1) + 5_000 * at
    return f"{chromosome + 1}\t{name(block, at)}\t0\t{position}\t{ALLELES[(block + at) % len(ALLELES)]}"


def name(block: int, at: int) -> str:
    """What a variant is called."""
    return f"v{BLOCK * block + at + 1:04d}"


def uniform(words: np.random.PCG64, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Numbers in [0, 1) of 53 bits each."""
    raw = words.random_raw(int(np.prod(shape)))
    return ((raw >> np.uint64(11)) * 2.0**-53).reshape(shape)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Lines of a text file, the same on every system."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    main()
