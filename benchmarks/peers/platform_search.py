"""The platform's nearest distances: one search of synthetic rows among training rows."""

from measure import Table, main

from synth_platform.evaluation.distances import nearest_distances


def search(train: Table, holdout: Table, synthetic: Table, public: Table) -> float:
    return float(nearest_distances(synthetic, train).mean())


if __name__ == "__main__":
    main(search, "synth-platform")
