"""Read one genotype file variant by variant or block by block and print rate, peak memory and sums as a line of JSON.

    python SCRIPT FILE

Sums are over what was read (copies of the counted allele weighted by place, missing calls): readers that agree print
the same ones. Only NumPy is imported, because every tool runs in an environment of its own.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

# A file -> arrays of dosages [variants, samples], in file order; anything negative is missing.
Read = Callable[[Path], Iterator[np.ndarray]]


def main(read: Read) -> None:
    variants, missing, weighted = 0, 0, 0
    wall, cpu = time.perf_counter(), time.process_time()
    for dosages in read(Path(sys.argv[1])):
        variants += len(dosages)
        missing += int((dosages < 0).sum())
        copies = np.maximum(dosages, 0).sum(axis=1, dtype=np.int64)
        weighted += int(copies @ (np.arange(variants - len(dosages), variants) % 97 + 1))
        weighted += int(np.maximum(dosages, 0).sum(axis=0, dtype=np.int64) @ (np.arange(dosages.shape[1]) % 89 + 1))
    figures = {"variants": variants, "missing": missing, "weighted": weighted}
    figures |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}  # type: ignore[dict-item]
    print(json.dumps({**figures, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
