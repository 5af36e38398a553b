"""cyvcf2, the binding of htslib: one variant at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from cyvcf2 import VCF
from genotypes_measure import main

DOSAGE = np.array([0, 1, 2, -1])  # of gt_types with gts012


def read(path: Path) -> Iterator[np.ndarray]:
    for variant in VCF(str(path), gts012=True):
        yield DOSAGE[variant.gt_types][np.newaxis]


if __name__ == "__main__":
    main(read)
