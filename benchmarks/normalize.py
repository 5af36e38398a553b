"""CPU seconds of L0 + L1, restore and batch correction, beside NumPy's log2 with scikit-learn's StandardScaler.

python benchmarks/normalize.py [rows] [features]
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl
from sklearn.preprocessing import StandardScaler

from synth_platform.contract.cohort_sections import ClinicalVariable, Modality
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables, modality_mask
from synth_platform.normalize.batch import BatchCorrection, fit_batch
from synth_platform.normalize.encoder import fit_encoder


def seconds(task: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds, best of `repeats`, so that other load on the machine counts little."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def cohort(rows: int, features: int, quantile_map: bool) -> tuple[CohortSpec, CohortTables]:
    """TPM expression of the given size with three clinical variables of the outcome; one feature in twenty is null."""
    panel = tuple(f"G{j:05d}" for j in range(features))
    spec = CohortSpec.model_validate(
        {
            "name": "bench",
            "kind": "omics",
            "title": "Benchmark",
            "source_code": "LOCAL",
            "dua_tag": "RELEASE_REVIEWED",
            "privacy": {"domain": "bench", "n_ref": rows, "budget": {"epsilon": 1.0, "delta": 1e-6}},
            "source": {"reader": "tables"},
            "batches": ["A", "B", "C"],
            "expression": Modality(unit="tpm", panel=panel, annotation="none"),
            "clinical": [
                ClinicalVariable(name="subtype", kind="categorical", categories=("S1", "S2")),
                ClinicalVariable(name="days", kind="survival_time", minimum=1, maximum=4000),
                ClinicalVariable(name="died", kind="event"),
            ],
            "outcome": {"label": "subtype", "time": "days", "event": "died"},
            "endpoints": [{"name": name, "chance": 0.5} for name in ("c_index", "macro_f1", "auroc", "spearman")],
            "quantile_map": quantile_map,
            "plans": {},
            "generators": ["S_PUBLIC"],
            "synthetic": {"rows": rows, "seeds": [1, 2, 3, 4, 5]},
        }
    )
    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, 50.0, (rows, features))
    values[rng.random((rows, features)) < 0.05] = np.nan
    keys = pl.Series("row_key", [f"P-{i:06d}" for i in range(rows)])
    constants = {"source": "LOCAL", "split": "public", "dua_tag": spec.dua_tag, "modality_mask": modality_mask(spec)}
    manifest = pl.DataFrame([keys, pl.Series("batch_id", [spec.batches[i % 3] for i in range(rows)])])
    clinical = {"subtype": ["S1", "S2"] * (rows // 2) + ["S1"] * (rows % 2), "days": rng.uniform(1, 4000, rows)}
    return spec, CohortTables(
        manifest=manifest.with_columns(**{name: pl.lit(value) for name, value in constants.items()}),
        expression=pl.DataFrame([keys, *(pl.Series(g, values[:, j]).fill_nan(None) for j, g in enumerate(panel))]),
        methylation=None,
        clinical=pl.DataFrame({"row_key": keys, **clinical, "died": rng.integers(0, 2, rows)}),
    )


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    features = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    print(f"CPU seconds at {rows:,} rows x {features:,} features")
    for quantile_map in (False, True):
        spec, tables = cohort(rows, features, quantile_map)
        encoder = fit_encoder(tables, spec)
        encoded = encoder.encode(tables)
        print("with the within-row quantile map" if quantile_map else "log and standardise")
        print(f"  fit encoder   {seconds(lambda s=spec, t=tables: fit_encoder(t, s)):8.2f}")
        print(f"  encode        {seconds(lambda e=encoder, t=tables: e.encode(t)):8.2f}")
        print(f"  decode        {seconds(lambda e=encoder, r=encoded: e.decode(r)):8.2f}")
    assert tables.expression is not None
    matrix = tables.expression.drop("row_key")
    scaler = StandardScaler().fit(np.log2(matrix.to_numpy() + 1))
    print(f"  peer encode   {seconds(lambda: np.nan_to_num(scaler.transform(np.log2(matrix.to_numpy() + 1)))):8.2f}")

    def fit() -> BatchCorrection:
        return fit_batch(encoded, columns=encoder.omics_columns, minimum_batch=8, preserve_labels=True)

    correction = fit()
    print(f"  fit batches   {seconds(fit, repeats=1):8.2f}")
    print(f"  apply batches {seconds(lambda: correction.apply(encoded)):8.2f}")
    print(f"peak resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
