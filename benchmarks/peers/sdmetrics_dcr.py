"""SDMetrics' DCROverfittingProtection: two searches, Gower distances by the ranges of training and of holdout rows."""

import pandas as pd
from measure import Table, main
from sdmetrics.single_table import DCROverfittingProtection


def share(train: Table, holdout: Table, synthetic: Table, public: Table) -> float:
    names = [f"c{j}" for j in range(train.shape[1])]
    frames = [pd.DataFrame(x, columns=names) for x in (train, synthetic, holdout)]
    metadata = {"columns": {name: {"sdtype": "numerical"} for name in names}}
    breakdown = DCROverfittingProtection.compute_breakdown(*frames, {"tables": {"t": metadata}}, "t")
    return float(breakdown["synthetic_data_percentages"]["closer_to_training"])


if __name__ == "__main__":
    main(share, "sdmetrics")
