"""bed-reader, a compiled reader of PLINK 1 files: blocks of 4096 variants."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bed_reader import open_bed
from genotypes_measure import main

BLOCK = 4096


def read(path: Path) -> Iterator[np.ndarray]:
    with open_bed(path, num_threads=1) as bed:
        for low in range(0, bed.sid_count, BLOCK):
            dosages = bed.read(index=np.s_[:, low : low + BLOCK], dtype="int8")
            yield np.where(dosages == -127, -1, dosages).T


if __name__ == "__main__":
    main(read)
