"""Called genotypes (GT) to counts of one allele, by table look-up on the first four bytes of every cell.

A diploid call is allele, separator, allele: `0/1`, `1|0`, `./.`. Its count of allele k is [first = k] + [second = k]; a
call with any part missing is missing; a haploid call counts its one allele, 0 or 1. Phase is not used. Two tables of
2^16 entries turn bytes 1-2 and bytes 3-4 into codes, a third turns the two codes into the count. What does not fit
into four bytes (alleles of two digits, the leading separator of VCF 4.4) is read cell by cell.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
from numpy.typing import NDArray

MISSING = -1
UNREADABLE = -2
CELL_BY_CELL = -3
DIGITS = b"0123456789"
SINGLE_DIGIT = 9
SEPARATORS = b"/|"
TERMINATORS = b":\t\n\r"
CALL = re.compile(rb"[/|]?(\d+|\.)(?:[/|](\d+|\.))?")

# Codes of the first half: what the first allele adds; with HAPLOID added where the cell ends after it.
NONE, ONE, NO_CALL, ODD, HAPLOID = 0, 1, 2, 3, 4
CODES = 8


@cache
def _tables(allele: int, alleles: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int8]]:
    """first half -> code, second half -> code, CODES * first code + second code -> count."""
    first, second = np.full(1 << 16, ODD, dtype=np.uint8), np.full(1 << 16, ODD, dtype=np.uint8)
    symbols = {DIGITS[number]: ONE if number == allele else NONE for number in range(min(alleles, 1 + SINGLE_DIGIT))}
    symbols[ord(".")] = NO_CALL
    for symbol, code in symbols.items():
        for mark in SEPARATORS:
            first[symbol | mark << 8] = code
        for mark in TERMINATORS:
            first[symbol | mark << 8] = HAPLOID + code
            second[symbol | mark << 8] = code
    counts = np.full((CODES, CODES), CELL_BY_CELL, dtype=np.int8)
    for code in (NONE, ONE, NO_CALL):
        counts[HAPLOID + code] = MISSING if code == NO_CALL else code
        for other in (NONE, ONE, NO_CALL):
            counts[code, other] = MISSING if NO_CALL in {code, other} else code + other
    return first * np.uint8(CODES), second, counts.ravel()


def allele_counts(cells: NDArray[np.unsignedinteger], allele: int, alleles: int) -> NDArray[np.int8]:
    """First four bytes of every cell (little-endian) -> copies of `allele`, MISSING, or CELL_BY_CELL; same shape.

    allele: its number, 1 for the first alternative; alleles: how many the site has, reference included.
    """
    first, second, counts = _tables(allele, alleles)
    found: NDArray[np.int8] = counts[first[cells & 0xFFFF] + second[cells >> 16]]
    return found


def allele_count(cell: bytes, allele: int, alleles: int) -> int:
    """One whole cell (up to its colon) -> copies of `allele`, MISSING, or UNREADABLE."""
    call = CALL.fullmatch(cell.partition(b":")[0])
    if call is None:
        return UNREADABLE
    called = [part for part in call.groups() if part is not None]
    if any(part != b"." and int(part) >= alleles for part in called):
        return UNREADABLE
    return MISSING if b"." in called else sum(int(part) == allele for part in called)
