"""The audit of a release of margins: one evidence document in, one report out. Nothing it reads can stop it.

From the true counts, or the answers that the ledger paid for, to the margins, the model, the tables drawn from it, the
decision and the package. G1 form and scope; G2 ledger and noise (`margins_noise`); G3 coarsening
(`margins_protection`), disclosure (`margins_disclosure`), model, synthetic tables and utility; G4 decision and package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np

from synth_platform.audit.findings import Findings
from synth_platform.audit.margins_decision import POLICIES, audit_margins_decision
from synth_platform.audit.margins_disclosure import audit_disclosure
from synth_platform.audit.margins_model import audit_model
from synth_platform.audit.margins_noise import audit_noise
from synth_platform.audit.margins_package import audit_margins_package
from synth_platform.audit.margins_protection import audit_protection
from synth_platform.audit.margins_synthetic import audit_synthetic
from synth_platform.audit.margins_tables import Counted, Names, Space, counted_of, space_of, title
from synth_platform.audit.margins_utility import audit_utility_of_margins
from synth_platform.audit.reading import (
    SHA256,
    Document,
    FloatArray,
    codes_only,
    digest_or_unreadable,
    item,
    leaves,
    mapping,
    number,
    section_of,
    sequence,
    text,
    whole,
)
from synth_platform.audit.report import EMPTY_BOOK, Report
from synth_platform.audit.structure import BODY, audit_seal

FORMAT = "synth-margins-evidence-1"
DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "margins": ("disclosure_gate", "utility_gate", "decision"),
    "dp_margins": ("utility_gate", "decision"),
}
# Parts of the evidence that a release can compare with what is stored, besides its documents.
PARTS = ("protected", "model", "synthetic")
_SECTIONS = (
    "answers",
    BODY,
    "counted",
    "documents",
    "format",
    "ledger",
    "measured",
    "model",
    "package",
    "people",
    "protected",
    "registered",
    "scope",
    "synthetic",
    "tables",
    "variables",
    "zeros",
)
# Names and labels of a table, which may have any characters; those of documents are held to the variables.
_TITLES = frozenset({"names", "title", "over", "first", "second"})
_NAMED = _TITLES | {"variables", "zeros", "tables", "provenance", "margins", "structural_zeros"}
# Where words of ours may stand: the rule of a gate, the purpose of an access outside the ledger.
_PHRASES = frozenset({"rule", "unledgered", "reasons"})
_PHRASE = re.compile(r"[A-Za-z_:=<>.,()0-9 -]{0,200}")


def audit_margins(evidence: object, *, expected: Mapping[str, str] = MappingProxyType({})) -> Report:
    """Recompute everything that the evidence of one plan claims. Never raises for what it holds.

    expected: cohort, plan or stage that the evidence must be of. The report's documents are by `<stage>/<document>`;
    the parts `protected`, `model` and `synthetic` of the evidence stand among them. There is no conformance document.
    """
    found = Findings()
    body: Document = evidence if isinstance(evidence, Mapping) else {}
    scope = {str(key): value for key, value in section_of(body, "scope").items() if isinstance(value, str)}
    stage = scope.get("stage", "none")
    with found.section("G1"):
        _audit_structure(found, body, expected)
    space: Space | None = None
    with found.section("G1/tables"):
        space = space_of(body)
        _audit_space(found, body, space)
    if space is not None:
        _audit_tables(found, stage, body, space)
    parts = {part: body[part] for part in PARTS if part in body} | dict(section_of(body, "documents"))
    return Report(
        scope=scope,
        checks=tuple(found.checks),
        counts=found.counts(),
        notes=tuple(found.notes),
        uncovered=tuple(found.uncovered),
        documents={f"{stage}/{name}": digest_or_unreadable(document) for name, document in parts.items()},
        evidence_sha256=digest_or_unreadable(body),
        conformance_sha256="",
    )


def _audit_tables(found: Findings, stage: str, evidence: Document, space: Space) -> None:
    released: Sequence[Counted] = ()
    true: Sequence[Counted] = ()
    fitted: dict[Names, FloatArray] = {}
    wrong, book = 1, EMPTY_BOOK
    with found.section(f"G3/{stage}/protected"):
        released = counted_of(evidence, "protected", space)
    if stage == "margins":
        with found.section(f"G2/{stage}/ledger"):
            _no_ledger(found, stage, evidence)
        with found.section(f"G3/{stage}/coarsened"):
            true = counted_of(evidence, "counted", space)
            audit_protection(found, stage, mapping(evidence, "registered"), space, true, released)
        with found.section(f"G3/{stage}/disclosure_gate"):
            gate = mapping(evidence, "documents", "disclosure_gate")
            audit_disclosure(found, stage, mapping(evidence, "registered"), space, true, gate)
    if stage == "dp_margins":
        with found.section(f"G2/{stage}"):
            book = audit_noise(found, stage, evidence, space, released)
    people = None
    with found.section(f"G3/{stage}/people"):
        people = _people(found, stage, evidence, space, true)
    with found.section(f"G3/{stage}/model"):
        fitted = audit_model(found, stage, evidence, space, released)
    with found.section(f"G3/{stage}/synthetic"):
        total = number(evidence, "model", "total")
        wrong = audit_synthetic(found, stage, evidence, space, fitted, total, people)
    with found.section(f"G3/{stage}/utility_gate"):
        utility = mapping(evidence, "documents", "utility_gate")
        first = sequence(evidence, "synthetic")[0]
        margins = [margin.names for margin in released]
        audit_utility_of_margins(found, stage, space, utility, margins, people, space.tables_at(first, "tables"))
    with found.section(f"G4/{stage}/decision"):
        audit_margins_decision(found, stage, evidence, wrong, book)
    with found.section(f"G4/{stage}/package"):
        if item(evidence, "package") is not None:
            audit_margins_package(found, stage, evidence, space, released, book)


def _no_ledger(found: Findings, stage: str, evidence: Document) -> None:
    """A release that promises no differential privacy shows no ledger either."""
    for part in ("ledger", "measured"):
        found.same(f"G2/{stage}/{part}", "promise", item(evidence, part), None, public=False)
    found.same(f"G2/{stage}/answers", "promise", len(sequence(evidence, "answers")), 0)


def _people(
    found: Findings, stage: str, evidence: Document, space: Space, true: Sequence[Counted]
) -> list[FloatArray | None] | None:
    """Tables of the private rows, which are those of the true margins."""
    if item(evidence, "people") is None:
        return None
    rows, tables = whole(evidence, "people", "rows"), space.tables_at(evidence, "people", "tables")
    for names, table in zip(space.tables, tables, strict=True):
        counted = table is not None and int(table.sum()) == rows
        found.holds(f"G3/{stage}/people/{title(names)}", "length", counted, "it does not count all rows")
    held = dict(zip(space.tables, tables, strict=True))
    for margin in true:
        table = held.get(margin.names)
        same = table is not None and np.array_equal(table, margin.counts)
        found.holds(f"G3/{stage}/counted/{title(margin.names)}", "margins_agree", same, "not a count of the rows")
    return tables


def _audit_structure(found: Findings, evidence: Document, expected: Mapping[str, str]) -> None:
    found.same("G1/format", "structure", evidence.get("format"), FORMAT)
    found.same("G1/sections", "structure", sorted(map(str, evidence)), sorted(_SECTIONS))
    with found.section("G1/body"):
        audit_seal(found, "G1", evidence)
    with found.section("G1/finite"):
        strange = sum(isinstance(leaf, float) and not math.isfinite(leaf) for _, leaf in leaves(evidence))
        found.same("G1/finite", "structure", strange, 0)
    with found.section("G1/codes"):
        for section, value in evidence.items():
            strange = sum(not code for code in codes_only(value, (str(section),), named=_named, said=_said))
            found.same(f"G1/{section}/codes", "free_text", strange, 0)
    stage = "none"
    with found.section("G1/scope"):
        stage = text(evidence, "scope", "stage")
        for key in ("cohort", "plan", "stage"):
            claimed = text(evidence, "scope", key)
            found.same(f"G1/scope/{key}", "scope", claimed, expected.get(key, claimed))
        for key in ("cohort", "domain"):
            found.same(f"G1/registered/{key}", "scope", item(evidence, "registered", key), item(evidence, "scope", key))
        found.holds("G1/scope/known", "scope", stage in POLICIES, "no such stage")
    with found.section("G1/documents"):
        documents = mapping(evidence, "documents")
        found.same("G1/documents", "present", sorted(map(str, documents)), sorted(DOCUMENTS.get(stage, ())))
    with found.section("G1/registration"):
        registration = text(evidence, "registered", "registration")
        found.holds("G1/registration", "registration", bool(SHA256.fullmatch(registration)), "not a SHA-256")


def _audit_space(found: Findings, evidence: Document, space: Space) -> None:
    """The evidence has every margin, every declared zero and every pair of variables, or tells that it has not."""
    held = {frozenset(names) for names in space.tables}
    found.same("G1/tables", "tables", len(held), len(space.tables))
    missing = [pair for pair in combinations(space.names, 2) if frozenset(pair) not in held]
    found.uncovered += [f"tables/{title(pair)}" for pair in missing]
    known = {*space.names, *(" × ".join(names) for names in (*combinations(space.names, 2), *space.tables))}
    named = [leaf for path, leaf in leaves(evidence.get("documents")) if _TITLES.intersection(path)]
    found.holds("G1/documents/names", "free_text", known.issuperset(named), "a name that is no variable's or table's")
    for zero in space.zeros:
        found.holds(f"G1/zeros/{title(tuple(zero))}", "tables", frozenset(zero) in held, "no table of it")


def _named(path: tuple[str, ...]) -> bool:
    """Whether names of variables, categories and tables may stand there."""
    return bool((_TITLES if path[0] == "documents" else _NAMED).intersection(path))


def _said(path: tuple[str, ...], value: str) -> bool:
    """Whether it is a phrase of ours, where one may stand, or nothing."""
    return value == "" or (bool(_PHRASES.intersection(path)) and bool(_PHRASE.fullmatch(value)))
