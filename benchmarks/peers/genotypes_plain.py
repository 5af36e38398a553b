"""Plain Python, cell by cell: what a script without a library does."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from genotypes_measure import main

BED_CODES = (2, -1, 1, 0)


def vcf_call(cell: str) -> int:
    call = cell.split(":", 1)[0]
    return -1 if "." in call else call.count("1")


def read(path: Path) -> Iterator[np.ndarray]:
    if path.suffix == ".bed":
        samples = len(path.with_suffix(".fam").read_text().splitlines())
        row_bytes = -(-samples // 4)
        with path.open("rb") as file:
            file.read(3)
            while row := file.read(row_bytes):
                codes = [BED_CODES[byte >> shift & 3] for byte in row for shift in (0, 2, 4, 6)]
                yield np.array([codes[:samples]])
        return
    fixed, dosage = (9, vcf_call) if ".vcf" in path.name else (6, lambda cell: -1 if cell == "NA" else int(cell))
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for line in file:
            if not line.startswith(("#", "CHR\t")):
                yield np.array([[dosage(cell) for cell in line.rstrip("\n").split("\t")[fixed:]]])


if __name__ == "__main__":
    main(read)
