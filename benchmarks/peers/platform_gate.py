"""The platform's closest-record gate: three searches, distances after standardisation by public rows."""

import numpy as np
from measure import Table, main

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.closest_record import closest_record_gate
from synth_platform.normalize.rows import EncodedRows
from synth_platform.normalize.standardise import fit_standardisation


def encoded(x: Table) -> EncodedRows:
    n, columns = x.shape
    zeros, name = np.zeros(n, np.int64), np.full(n, "-")
    return EncodedRows(tuple(map(str, range(columns))), x, zeros, zeros, np.ones(n), zeros, name, name)


def share(train: Table, holdout: Table, synthetic: Table, public: Table) -> float:
    names = tuple(map(str, range(public.shape[1])))
    standardise = fit_standardisation(public, np.full(len(names), 1e-9), names).apply
    tables = (encoded(standardise(x)) for x in (train, holdout, synthetic))
    return closest_record_gate(*tables, GateOptions()).train_closer


if __name__ == "__main__":
    main(share, "synth-platform")
