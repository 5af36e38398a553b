"""The distances of mostlyai-qa's report and nothing else of it: three searches on each of seven sets of columns."""

import pandas as pd
from measure import Table, main
from mostlyai.qa._distances import calculate_dcr_share, calculate_distances
from mostlyai.qa._embeddings import encode_data


def share(train: Table, holdout: Table, synthetic: Table, public: Table) -> float:
    names = [f"c{j}" for j in range(train.shape[1])]
    encoded = encode_data(*(pd.DataFrame(x, columns=names) for x in (synthetic, train, holdout)))
    distances = calculate_distances(**dict(zip(("syn_embeds", "trn_embeds", "hol_embeds"), encoded, strict=True)))
    return float(calculate_dcr_share(distances["dcr_syn_trn"], distances["dcr_syn_hol"]))


if __name__ == "__main__":
    main(share, "mostlyai-qa")
