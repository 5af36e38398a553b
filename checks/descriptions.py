"""How each kind of artefact is described to its schema check: what it is, beside what it should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from checks.summaries import ANY_NUMBER_OF_NULLS, SUMMARY, Described, Rule, rules, summarise_arrays, summarise_document
from synth_platform.contract.census_spec import REPLICATE
from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.features import FEATURE_COLUMNS
from synth_platform.contract.rules import ValueRule, value_rules
from synth_platform.contract.summary import column_summary
from synth_platform.generators.protocol import GeneratorState
from synth_platform.margins.domain import Domain
from synth_platform.margins.fitting.fitted import Fitted
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.rows import Rows
from synth_platform.normalize.batch import BatchCorrection
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.replicates import SEED
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.statistics import StatisticRelease

VERDICT_FIELDS = ("status", "summary", "evidence", "registration")
DECISION_FIELDS = (
    "cohort",
    "generator",
    "plan",
    "epsilon",
    "delta",
    "mu",
    "utility",
    "endpoints",
    "closest_record",
    "membership",
    "inference",
    "power",
    "limits",
    "registration",
    "ledger",
    "schema",
    "decision",
    "reasons",
    "notes",
)
E_VALUE_FIELDS = (
    "contrast",
    "plan",
    "method",
    "statistic",
    "chooser",
    "compared",
    "rows",
    "hypotheses",
    "mu",
    "mu_parts",
    "size",
    "positions",
    "selected",
    "log_e",
    "scale",
    "entries",
    "unledgered",
    "seeded",
)
DISCOVERIES_FIELDS = ("contrast", "plan", "alpha", "hypotheses", "log_threshold_of_one", "discoveries", "list")
STUDY_FIELDS = ("file", "field", "variants", "list_sha256", "phenotype", "people", "rows")
COMPARISON_FIELDS = ("contrast", "plan", "without_noise", "came_back", "only_private", "before_noise")
LIST_DECISION_FIELDS = (
    "cohort",
    "generator",
    "plan",
    "contrast",
    "mu",
    "epsilon",
    "delta",
    "fdr",
    "registration",
    "ledger",
    "schema",
    "decision",
    "reasons",
    "notes",
)
DISCLOSURE_FIELDS = ("status", "reasons", "method", "limit", "consistent", "unsettled", "tables", "differences")
MARGINS_DECISION_FIELDS = (
    "cohort",
    "generator",
    "plan",
    "policy",
    "assurance",
    "options",
    "registration",
    "disclosure",
    "fit",
    "schema",
    "utility",
    "ledger",
    "epsilon",
    "delta",
    "mu",
    "decision",
    "reasons",
    "notes",
)
MAY_BE_NULL = frozenset({"plan", "epsilon", "delta", "mu", "chooser", "disclosure", "ledger"})
TABLES: tuple[TableName, ...] = ("manifest", "expression", "methylation", "clinical")


def describe_table(frame: pl.DataFrame, spec: CohortSpec, table: TableName) -> Described:
    """A contract table beside its value rules."""
    registered = [("row_key", "String", 0, None, None), *_value_rule_rows(value_rules(spec, table))]
    return Described(_summary(frame), rules(registered))


def describe_synthetic(tables: pl.DataFrame, spec: CohortSpec) -> Described:
    """Synthetic tables of all seeds beside the rules of every registered column."""
    registered: list[Rule] = [(SEED, "Int64", 0, None, None), ("row_key", "String", 0, None, None)]
    for table in ("expression", "methylation", "clinical"):
        registered += _value_rule_rows(value_rules(spec, table))
    return Described(_summary(tables), rules(registered))


def describe_features(frame: pl.DataFrame) -> Described:
    """The feature manifest: its columns are all text, none missing."""
    return Described(_summary(frame), rules([(name, "String", 0, None, None) for name in FEATURE_COLUMNS]))


def describe_rows(rows: EncodedRows, reference: PublicReference) -> Described:
    """Encoded rows beside the reference's features: finite values, registered codes, positive times."""
    registered: list[Rule] = [(name, "float64", 0, None, None) for name in reference.rows.features]
    registered += [
        ("label", "int64", 0, 0.0, len(reference.labels) - 1.0),
        ("event", "int64", 0, 0.0, 1.0),
        ("time", "float64", 0, float(np.nextafter(0, 1)), None),
        ("batch", "int64", 0, -1.0, len(reference.batches) - 1.0),
    ]
    columns = dict(zip(rows.features, rows.x.T, strict=True))
    outcome = {name: getattr(rows, name) for name in ("label", "event", "time", "batch")}
    return Described(summarise_arrays(columns | outcome), rules(registered))


def describe_reference(reference: PublicReference) -> Described:
    """The public reference: its encoded public rows."""
    return describe_rows(reference.rows, reference)


def describe_correction(correction: BatchCorrection) -> Described:
    """Batch-correction parameters: finite, spreads above zero."""
    arrays = {"mean": correction.mean, "location": correction.location, "spread": correction.spread}
    smallest = {"spread": float(np.nextafter(0, 1))}
    return Described(summarise_arrays(arrays), rules([(n, "float64", 0, smallest.get(n), None) for n in arrays]))


def describe_releases(releases: Sequence[StatisticRelease]) -> Described:
    """Statistic releases: finite vectors under distinct codes."""
    return Described(
        summarise_arrays({release.code: release.values for release in releases}),
        rules([(release.code, "float64", 0, None, None) for release in releases]),
    )


def describe_state(state: GeneratorState) -> Described:
    """A generator state: finite arrays and the document keys every sampler needs."""
    summary = pl.concat([summarise_arrays(state.arrays), summarise_document({"features": state.document["features"]})])
    registered = [(name, None, 0, None, None) for name in (*state.arrays, "features")]
    return Described(summary, rules(registered))


def describe_margins(margins: MarginSet) -> Described:
    """Margins by title: finite counts, none negative."""
    registered: list[Rule] = [(margin.title, "float64", 0, 0.0, None) for margin in margins]
    return Described(summarise_arrays({margin.title: margin.counts for margin in margins}), rules(registered))


def describe_coded(rows: Rows) -> Described:
    """Rows in codes: positions in each variable's categories."""
    domain = rows.domain
    registered: list[Rule] = [(v.name, "int64", 0, 0.0, len(v) - 1.0) for v in domain.variables]
    return Described(summarise_arrays(dict(zip(domain.names, rows.codes.T, strict=True))), rules(registered))


def describe_fitted(fitted: Fitted, margins: MarginSet) -> Described:
    """A fitted distribution by the margins it was fitted to: probabilities."""
    arrays = {margin.title: fitted.probabilities(margin.names) for margin in margins}
    return Described(summarise_arrays(arrays), rules([(title, "float64", 0, 0.0, 1.0) for title in arrays]))


def describe_replicates(tables: pl.DataFrame, domain: Domain, replicates: int) -> Described:
    """Synthetic tables of all replicates: registered types, and missing values only where they are a category."""
    blank = domain.frame(np.zeros((0, len(domain.variables)), dtype=np.int64))
    registered: list[Rule] = [(REPLICATE, "Int64", 0, 1.0, float(replicates))]
    registered += [
        (v.name, str(blank.schema[v.name]), 0 if v.missing is None else ANY_NUMBER_OF_NULLS, None, None)
        for v in domain.variables
    ]
    return Described(_summary(tables), rules(registered))


def describe_document(document: Mapping[str, Any], fields: Sequence[str]) -> Described:
    """A JSON document: exactly these top-level fields, null only where there is nothing to say."""
    registered = [(name, None, ANY_NUMBER_OF_NULLS if name in MAY_BE_NULL else 0, None, None) for name in fields]
    return Described(summarise_document(document), rules(registered))


def _summary(frame: pl.DataFrame) -> pl.DataFrame:
    return column_summary(frame).select(list(SUMMARY))


def _value_rule_rows(registered: Mapping[str, ValueRule]) -> list[Rule]:
    dtypes = {"real": "Float64", "integer": "Int64", "text": "String"}
    return [
        (name, dtypes[r.storage], ANY_NUMBER_OF_NULLS if r.nullable else 0, r.lower, r.upper)
        for name, r in registered.items()
    ]
