"""The neighbour search under anonymeter's linkability and inference attacks: two searches, Gower distances."""

import anonymeter.evaluators  # noqa: F401  (its modules import each other: neighbours cannot come first)
import pandas as pd
from anonymeter.neighbors.mixed_types_kneighbors import MixedTypeKNeighbors
from measure import Table, main


def share(train: Table, holdout: Table, synthetic: Table, public: Table) -> float:
    names = [f"c{j}" for j in range(train.shape[1])]
    to_train, to_holdout = (
        MixedTypeKNeighbors(n_neighbors=1)
        .fit(pd.DataFrame(x, columns=names), ctypes={"num": names, "cat": []})
        .kneighbors(pd.DataFrame(synthetic, columns=names), return_distance=True)[0][:, 0]
        for x in (train, holdout)
    )
    return float((to_train < to_holdout).mean() + (to_train == to_holdout).mean() / 2)


if __name__ == "__main__":
    main(share, "anonymeter")
