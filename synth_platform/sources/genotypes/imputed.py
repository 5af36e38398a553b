"""Imputed dosages (DS) of a VCF: one number of [0, 2] per sample and alternative allele, among the fields of a cell.

A cell reads GT:DS:GP or the like, fields at its end may be dropped. Where the field starts follows from counting
colons; the numbers are read by Polars. Sites with several alternatives hold lists and are rare: cell by cell.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.text import COLON, Bytes, Lines, Positions, UnreadableRowError, joined, numbers

NUMBER = re.compile(rb"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
MISSING = b"."
NO_LIST = -1.0


def imputed_dosages(
    lines: Lines,
    starts: Positions,
    ends: Positions,
    places: Positions,
    record: Positions,
    allele: Positions,
    alleles: Positions,
) -> NDArray[np.float32]:
    """DS of allele `allele[i]` of line `record[i]`, one of `alleles[i]`: [rows, n], NaN for missing.

    starts, ends: the cells of the samples, [lines, n]; places: position of DS in FORMAT, [lines]. Raises GenotypeError.
    """
    text, starts, ends = _subfield(lines, starts, ends, places)
    dosages = np.empty((len(record), starts.shape[1]), dtype=np.float32)
    single = alleles == 2
    if single.any():
        at = record[single]
        try:
            dosages[single] = numbers(text, starts[at], ends[at], MISSING.decode())
        except UnreadableRowError as unreadable:
            raise _bad_dosage(lines, int(at[unreadable.row])) from None
    for row in np.flatnonzero(~single).tolist():
        lists = joined(text, starts[record[row]], ends[record[row]]).split(b"\n")[:-1]
        dosages[row] = [_one_of(cell, int(allele[row]), int(alleles[row])) for cell in lists]
    outside = ((dosages < 0) | (dosages > 2)).any(axis=1)
    if outside.any():
        raise _bad_dosage(lines, int(record[outside.argmax()]))
    return dosages


def _subfield(
    lines: Lines, starts: Positions, ends: Positions, places: Positions
) -> tuple[Bytes, Positions, Positions]:
    """A text, and where in it field `places[line]` of every cell starts and ends; MISSING where a cell dropped it."""
    colon = lines.text == COLON
    beyond = len(lines.text)
    colons = np.append(np.flatnonzero(colon), np.full(int(places.max()) + 1, beyond))
    before = np.cumsum(colon, dtype=np.int32)[starts] - colon[starts]  # int32: a third of the time, a block is short
    place = places[:, np.newaxis]
    begin = np.where(place == 0, starts, colons[np.maximum(before + place - 1, 0)] + 1)
    stop = np.minimum(colons[before + place], ends)
    dropped = begin > ends
    text = np.append(lines.text, np.frombuffer(MISSING + b"\n", dtype=np.uint8))
    return text, np.where(dropped, beyond, begin), np.where(dropped, beyond + 1, stop)


def _one_of(cell: bytes, allele: int, alleles: int) -> float:
    """The dosage of one alternative out of a list, NaN for missing, NO_LIST for what is no list of dosages."""
    values = cell.split(b",")
    if cell == MISSING:
        return float("nan")
    if len(values) != alleles - 1:
        return NO_LIST
    value = values[allele - 1]
    if value == MISSING:
        return float("nan")
    return float(value) if NUMBER.fullmatch(value) else NO_LIST


def _bad_dosage(lines: Lines, line: int) -> GenotypeError:
    return GenotypeError(
        f"{lines.place(line)}: DS is not one number of 0 to 2 per alternative allele in every sample; correct it"
    )
