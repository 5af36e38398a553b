"""What is written about a cohort outside its restricted tables says nothing about its private rows."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl
import pytest
import yaml

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables
from synth_platform.privacy.curator import Curator
from synth_platform.sources.virtual import draw_cohort

SHARED = (
    "cohort/rejections", "cohort/features", "cohort/manifest", "cohort/expression", "cohort/methylation",
    "cohort/clinical", "public/rows", "public/reference", "normalized/matrix", "normalized/batch_correction",
    "normalized/batch_corrected", "normalized/attacked",
)  # fmt: skip
MEASURED = [f"{code}/{name}" for code in ("G0", "G0A") for name in ("checkpoint", "synthetic")]
COUNTS = {"train": 137, "holdout": 67, "test": 91}

# What differs between any two runs: ids, times, durations, places and keyed fingerprints.
PASSING = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "RUN"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(\+\d\d:\d\d|Z)?", "TIME"),
    (r'"(timestamp|duration_ms|pid|storage_id|create_timestamp)": "?[\d.e+-]+"?', r'"\1": 0'),
    (r"\b[\d.]+ ?(ms|s)\b", "LASTED"),
    (r'"(log_key|file_key)": "\w+"', r'"\1": "KEY"'),
    (r"pid: \d+", "PID"),
    (r'"dagster/input_event_pointer/([^"]+)": "\d+"', r'"pointer/\1": "ID"'),
    (r'"text": "\d+"', '"text": "PID"'),
    (r"\b([0-9a-f]{64}|[0-9a-f]{12})\b", "HEX"),
]


def events(platform: Any) -> Iterator[str]:
    """Every event of every run as stored, without what differs between any two runs, oldest first."""
    for run in reversed(platform.instance.get_runs()):
        for entry in platform.instance.all_logs(run.run_id):
            text = json.dumps(json.loads(entry.to_json()), sort_keys=True).replace(str(platform.home.root), "HOME")
            for pattern, word in PASSING:
                text = re.sub(pattern, word, text)
            yield text


AUDIT = dg.AssetKey(["audit", "report"])


def metadata_numbers(platform: Any) -> Iterator[float]:
    """Every number in the metadata of materialisations and check evaluations."""
    for run in platform.instance.get_runs():
        for entry in platform.instance.all_logs(run.run_id):
            event = entry.dagster_event
            if event is None or event.event_type_value not in ("ASSET_MATERIALIZATION", "ASSET_CHECK_EVALUATION"):
                continue
            if event.asset_key == AUDIT:
                continue  # numbers of checks: they follow from what was registered and from the ledger
            data = event.event_specific_data
            described = getattr(data, "materialization", data).metadata
            for value in described.values():
                if isinstance(value, dg.IntMetadataValue | dg.FloatMetadataValue):
                    yield float(value.value)


# --- two private tables over the same public rows -------------------------------------------------------------------


def as_files(spec: CohortSpec, tables: CohortTables, folder: Path) -> dict[str, str]:
    """Contract tables as Parquet files beside cohort.yaml."""
    for name, frame in tables:
        frame.write_parquet(folder / f"{name}.parquet")
    return {name: f"{name}.parquet" for name, _ in tables}


def other_private_rows(tables: CohortTables) -> CohortTables:
    """One patient fewer, a label gone, other ranges and other gaps; public rows as they were."""
    manifest = tables.manifest
    private = manifest.filter(pl.col("split") != "public")["row_key"].to_list()
    gone = private[5]
    hit = pl.col("row_key").is_in(private)

    def change(name: str, frame: pl.DataFrame) -> pl.DataFrame:
        frame = frame.filter(pl.col("row_key") != gone)
        if name == "clinical":
            return frame.with_columns(
                pl.when(hit & (pl.col("subtype") == "S3")).then(pl.lit("S1")).otherwise("subtype").alias("subtype"),
                pl.when(hit).then(pl.lit(None, pl.String)).otherwise("stage").alias("stage"),
                pl.when(hit).then(pl.col("marker").fill_null(3.0) * 0.5 + 900).otherwise("marker").alias("marker"),
                pl.when(hit).then(pl.lit(93)).otherwise("age").cast(pl.Int64).alias("age"),
            )
        if name == "expression":
            return frame.with_columns(
                pl.when(hit).then(pl.col(c) * 7 + 1).otherwise(c).alias(c) for c in frame.columns if c != "row_key"
            )
        return frame

    return tables.map(change)


@dataclass(frozen=True)
class Trace:
    """What one run over one private table left behind."""

    platform: Any
    queries: list[tuple[Any, ...]]
    answers: list[np.ndarray]
    logged: list[str]


@pytest.fixture
def trace(
    finished: Any,  # libraries log their first use, which is behind us then
    new_platform: Any,
    document: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> Callable[[str, Callable[[CohortTables], CohortTables]], Trace]:
    """Run shared stages and both generators over a changed private table, with seeded noise."""

    def run(name: str, change: Callable[[CohortTables], CohortTables]) -> Trace:
        folder = tmp_path / f"{name}_cohort"
        folder.mkdir()
        drawn = draw_cohort(CohortSpec.model_validate(document))
        tables_document = json.loads(json.dumps(document))
        tables_document["generators"] = ["G0", "G0A"]
        files = as_files(CohortSpec.model_validate(document), change(drawn), folder)
        tables_document["source"] = {"reader": "tables", "files": files}
        (folder / "cohort.yaml").write_text(yaml.safe_dump(tables_document), encoding="utf-8")
        queries: list[tuple[Any, ...]] = []
        answers: list[np.ndarray] = []
        ask = Curator.ask

        def recorded(self: Curator, table: Any, query: Any, draw: int = 0) -> Any:
            described = (query.code, query.contribution.name, query.dimension, query.sensitivity, query.sigma)
            queries.append((*described, json.dumps(dict(query.parameters), sort_keys=True), draw))
            release = ask(self, table, query, draw)
            answers.append(release.values)
            # Later queries may be chosen from earlier answers, which are paid for; here both runs get the same ones.
            return replace(release, values=np.full(query.dimension, 50.0))

        caplog.clear()
        with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
            patch.setattr(Curator, "ask", recorded)
            platform = new_platform(name, seeded=7)
            platform.add(folder)
            platform.run(*SHARED, plan=None)
            platform.run("statistics/G0", "statistics/G0A", *MEASURED)
        logged = [r.getMessage() for r in caplog.records if not r.name.startswith(("dagster", "alembic"))]
        return Trace(platform, queries, answers, logged)

    return run


def test_private_rows_change_nothing_outside(trace: Any) -> None:
    """Claim: with other private rows - one patient fewer, a label never seen, other ranges and gaps - the queries, the
    public artefacts, the ledger's terms, every event, every piece of metadata and every log line stay the same."""
    one, other = trace("one", lambda tables: tables), trace("other", other_private_rows)
    assert one.queries
    assert one.queries == other.queries
    for asset in ("cohort/features", "public/rows", "public/reference", "cohort/rejections"):
        contents = [t.platform.folder(asset, plan=None) / "content.json" for t in (one, other)]
        assert contents[0].read_bytes() == contents[1].read_bytes()
    terms = [[(r["code"], r["event"], r["sensitivity"], r["scale"]) for r in t.platform.rows()] for t in (one, other)]
    assert terms[0] == terms[1]
    both = zip(events(one.platform), events(other.platform), strict=True)
    assert [(mine, theirs) for mine, theirs in both if mine != theirs] == []
    assert [clean(line) for line in one.logged] == [clean(line) for line in other.logged]
    for mine, theirs in zip(one.answers, other.answers, strict=True):
        assert not np.array_equal(mine, theirs), "the tables must differ in every statistic, or the test shows nothing"


def clean(line: str) -> str:
    """A log line without temporary folders."""
    return re.sub(r"/tmp\S+|0x[0-9a-f]+", "PLACE", line)


# --- one run, searched for what its private table holds -------------------------------------------------------------


@pytest.fixture(scope="module")
def private(finished: Any) -> CohortTables:
    """The private rows of the finished run, as they were drawn."""
    tables = draw_cohort(finished.spec())
    keys = tables.manifest.filter(pl.col("split") != "public")["row_key"].to_list()
    return tables.map(lambda _, frame: frame.filter(pl.col("row_key").is_in(keys)))


@pytest.fixture(scope="module")
def written(finished: Any) -> str:
    """Everything the event log holds of the finished run."""
    return "\n".join(events(finished))


def cells(private: CohortTables) -> np.ndarray:
    """Every fractional cell of the private rows, sorted."""
    found = [
        frame[name].drop_nulls().to_numpy()
        for _, frame in private
        for name in frame.columns
        if frame.schema[name] == pl.Float64
    ]
    values = np.concatenate(found)
    return np.unique(values[values != np.round(values, 3)])


def numbers(text: str) -> np.ndarray:
    """Numbers with four decimals or more."""
    return np.array([float(token) for token in re.findall(r"(?<![\w.])-?\d+\.\d{4,}(?:e-?\d+)?", text)])


def meet(found: np.ndarray, secret: np.ndarray) -> list[float]:
    """Numbers that agree with one of the sorted secrets to six figures."""
    place = np.clip(np.searchsorted(secret, found), 1, len(secret) - 1)
    nearest = np.minimum(np.abs(found - secret[place]), np.abs(found - secret[place - 1]))
    return list(found[nearest <= 1e-6 * np.abs(found)])


def test_the_search_finds_what_it_looks_for(private: CohortTables) -> None:
    """Claim: one private cell, even cut to eight figures, in a page of text is found."""
    cell = float(cells(private)[100])
    assert meet(numbers(f"between 1.23456 and {cell:.8g} there"), cells(private))


def test_no_private_cell_in_the_event_log(written: str, private: CohortTables) -> None:
    """Claim: no cell of a private row stands in any event, message, metadata or check of the whole run."""
    assert numbers(written).size > 50, "there are public figures to look through"
    assert meet(numbers(written), cells(private)) == []


def test_no_row_key_in_the_event_log(written: str) -> None:
    """Claim: not even opaque row keys are written, of any table."""
    assert re.findall(r"\b[PS]-\d{6}\b", written) == []


def test_no_gate_figure_in_the_event_log(finished: Any, written: str) -> None:
    """Claim: figures of the gates are functions of private rows and stay in their restricted documents."""
    figures: set[float] = set()
    for code in ("G0", "G0A"):
        for gate in ("utility_gate", "closest_record_gate", "membership_gate"):
            figures |= set(numbers(json.dumps(finished.read(f"{code}/{gate}")["summary"])))
    assert len(figures) > 30
    assert meet(numbers(written), np.sort(np.array(list(figures)))) == []


def test_metadata_counts_public_things_only(finished: Any, private: CohortTables) -> None:
    """Claim: every whole number in metadata is one of the public constants of the cohort; no count of private rows."""
    spec = finished.spec()
    public = {300, spec.privacy.n_ref, spec.synthetic.rows, spec.synthetic.rows * len(spec.synthetic.seeds)}
    found = {number for number in metadata_numbers(finished) if number == int(number)}
    splits = private.manifest.group_by("split").len()["len"].to_list()
    assert sorted(splits) == sorted(COUNTS.values())
    assert {float(n) for n in public} <= found | {float(spec.synthetic.rows)}
    assert {number for number in found - {float(n) for n in public} if number > 40} == set()


@pytest.mark.parametrize("count", [137, 67, 91, 137 + 67 + 91, 67 + 91, 137 + 67 + 91 + 300])
def test_no_row_count_in_the_event_log(written: str, count: int) -> None:
    """Claim: neither a split's size nor a sum of them is written anywhere."""
    assert re.findall(rf".{{60}}(?<![\w.-]){count}(?![\w.])", written) == []


def test_nothing_private_leaves_in_a_package(finished: Any, private: CohortTables) -> None:
    """Claim: the release package holds no private cell, no origin key, no count of private rows and no home path."""
    folder = finished.home.released / "tiny-G0A-eps8"
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.suffix != ".parquet"}
    assert {"README.md", "table.csv", "ledger.json", "decision.json", "data_dictionary.csv"} <= set(texts)
    exact = {repr(float(cell)) for cell in cells(private)}
    for name, text in texts.items():
        assert not exact & set(re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)), name
        assert not re.findall(r"\bP-\d{6}\b", text), name
        assert str(finished.home.root) not in text, name
        if name != "table.csv":
            for count in (137, 67, 91, 295, 158):
                assert not re.findall(rf"(?<![\w.-]){count}(?![\w.])", text), (name, count)
    assert pl.read_parquet(folder / "table.parquet").height == finished.spec().synthetic.rows
