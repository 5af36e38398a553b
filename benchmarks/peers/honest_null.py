"""The variance of an honest share: given all real rows, which half of them is called training is chance.

With c_j synthetic rows whose nearest real row is row j of 2 n, the share is the sum of c_j over a random half, divided
by their number m: its mean is 1/2, its variance 2 n / (4 (2 n - 1)) times the sum of (c_j - m / 2 n)^2, over m^2.
"""

import numpy as np
from measure import Table, main
from scipy.spatial import cKDTree


def variance(train: Table, holdout: Table, synthetic: Table, public: Table) -> float:
    real = np.vstack([train, holdout]) / public.std(axis=0)
    count = np.bincount(cKDTree(real).query(synthetic / public.std(axis=0))[1], minlength=len(real))
    return float(len(real) / (4 * (len(real) - 1)) * ((count - count.mean()) ** 2).sum() / len(synthetic) ** 2)


if __name__ == "__main__":
    main(variance, "scipy")
