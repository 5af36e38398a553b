"""The platform's streamed readers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from genotypes_measure import main

from synth_platform.sources.genotypes.open import open_genotypes


def read(path: Path) -> Iterator[np.ndarray]:
    for block in open_genotypes(path).blocks():
        yield block.dosages.T


if __name__ == "__main__":
    main(read)
