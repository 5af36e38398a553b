"""scikit-learn's exhaustive search of synthetic rows among training rows."""

from measure import Table, main
from sklearn.neighbors import NearestNeighbors


def search(train: Table, holdout: Table, synthetic: Table, public: Table) -> float:
    distances, _ = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(train).kneighbors(synthetic)
    return float(distances.mean())


if __name__ == "__main__":
    main(search, "scikit-learn")
