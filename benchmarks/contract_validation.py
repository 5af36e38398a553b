"""Contract validation of a wide cohort: seconds and peak memory, beside great-expectations on the same matrix.

    python -m benchmarks.contract_validation [--rows 1000] [--features 20000] [--peer-features 500]

Every line is measured in a process of its own. "broken cell" has one negative TPM (a row is set aside, the accepted
rows are copied), "all broken" has one in every column, "transposed" has foreign column names throughout. The peer holds
every column to the same rule (type; no null; finite and not negative) in three expectations; it runs on the first
`--peer-features` columns, because its time on all of them is out of proportion, and the ratio is taken on those.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue

import numpy as np
import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables
from synth_platform.contract.validate import validate

MIB = 2**20
Measured = tuple[float, float, str]


def wide_spec(features: int) -> CohortSpec:
    return CohortSpec.model_validate(
        {
            "name": "wide",
            "kind": "omics",
            "title": "A wide cohort",
            "source_code": "VIRTUAL",
            "dua_tag": "RELEASE_REVIEWED",
            "privacy": {"domain": "wide", "n_ref": 1000, "budget": {"epsilon": 1.0, "delta": 1e-5}},
            "source": {"reader": "tables"},
            "batches": ["B-01"],
            "expression": {"unit": "tpm", "annotation": "x", "panel": [f"ENSG{i:011d}" for i in range(features)]},
            "clinical": [
                {"name": "subtype", "kind": "categorical", "categories": ["A", "B"]},
                {"name": "days", "kind": "survival_time", "minimum": 1, "maximum": 5000},
                {"name": "died", "kind": "event"},
            ],
            "outcome": {"label": "subtype", "time": "days", "event": "died"},
            "endpoints": [{"name": n, "chance": 0.0} for n in ("c_index", "macro_f1", "auroc", "spearman")],
            "plans": {},
            "generators": ["G0"],
            "synthetic": {"rows": 1, "seeds": [1, 2, 3, 4, 5]},
        }
    )


def wide_tables(spec: CohortSpec, rows: int, state: str) -> CohortTables:
    """Valid tables, or tables in one of the broken states."""
    rng = np.random.default_rng(20)
    keys = pl.Series("row_key", [f"P-{number:06d}" for number in range(1, rows + 1)])
    assert spec.expression is not None
    columns = []
    for position, feature in enumerate(spec.expression.panel):
        values = rng.gamma(2.0, 3.0, rows)
        if state == "all broken" or (state == "broken cell" and position == 0):
            values[rows // 2] = -1.0
        columns.append(pl.Series(f"P-{position:06d}" if state == "transposed" else feature, values))
    manifest = {
        "row_key": keys,
        "source": "VIRTUAL",
        "batch_id": "B-01",
        "split": "train",
        "dua_tag": "RELEASE_REVIEWED",
        "modality_mask": "expression,clinical",
    }
    clinical = {"row_key": keys, "subtype": "A", "days": 10.0, "died": 1}
    types = {"died": pl.Int64}
    return CohortTables(
        manifest=pl.DataFrame(manifest),
        expression=pl.DataFrame([keys, *columns]),
        methylation=None,
        clinical=pl.DataFrame(clinical, schema_overrides=types),
    )


def ours(rows: int, features: int, state: str) -> Measured:
    spec = wide_spec(features)
    tables = wide_tables(spec, rows, state)
    before = peak()
    started = time.perf_counter()
    report = validate(tables, spec)
    seconds = time.perf_counter() - started
    return seconds, peak() - before, f"{len(report.rejections)} finding(s), {report.rejected_rows} row(s) aside"


def peer(rows: int, features: int, state: str) -> Measured:
    import great_expectations as gx  # noqa: PLC0415  # its memory belongs to the peer's process alone
    import great_expectations.expectations as gxe  # noqa: PLC0415

    spec = wide_spec(features)
    expression = wide_tables(spec, rows, state).expression
    assert expression is not None
    matrix = expression.drop("row_key").to_pandas()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("wide").add_dataframe_asset("expression")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": matrix})
    expectations = [
        expectation
        for column in matrix.columns
        for expectation in (
            gxe.ExpectColumnValuesToBeOfType(column=column, type_="float64"),
            gxe.ExpectColumnValuesToNotBeNull(column=column),
            gxe.ExpectColumnValuesToBeBetween(column=column, min_value=0, max_value=float(np.finfo(np.float64).max)),
        )
    ]
    suite = gx.ExpectationSuite(name="wide", expectations=expectations)
    before = peak()
    started = time.perf_counter()
    result = batch.validate(suite, result_format="BOOLEAN_ONLY")
    seconds = time.perf_counter() - started
    return seconds, peak() - before, f"{sum(not r.success for r in result.results)} expectation(s) fail"


def peak() -> float:
    """Peak resident memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def alone(run: Callable[[int, int, str], Measured], rows: int, features: int, state: str) -> Measured:
    """`run` in a fresh process, so that its peak is its own."""
    context = multiprocessing.get_context("spawn")
    answers: SimpleQueue[tuple[Measured, float]] = context.SimpleQueue()
    process = context.Process(target=_answer, args=(answers, run, rows, features, state))
    process.start()
    (seconds, extra, found), total = answers.get()
    process.join()
    print(
        f"{run.__name__:5} {rows:6} x {features:6}  {state:12} {seconds:8.2f} s  {extra:7.0f}  {total:7.0f}   {found}"
    )
    return seconds, extra, found


def _answer(
    answers: SimpleQueue[tuple[Measured, float]],
    run: Callable[[int, int, str], Measured],
    rows: int,
    features: int,
    state: str,
) -> None:
    answers.put((run(rows, features, state), peak()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--peer-features", type=int, default=500)
    options = parser.parse_args()
    matrix = options.rows * options.features * 8 / MIB
    print(f"the matrix itself: {matrix:.0f} MiB; memory columns: beyond the input, whole process (peak MiB)")
    for state in ("valid", "broken cell", "all broken", "transposed"):
        alone(ours, options.rows, options.features, state)
    seconds, _, _ = alone(ours, options.rows, options.peer_features, "broken cell")
    peer_seconds, _, _ = alone(peer, options.rows, options.peer_features, "broken cell")
    print(
        f"great-expectations / ours on {options.peer_features} columns: {peer_seconds / seconds:.0f} times the seconds"
    )


if __name__ == "__main__":
    main()
