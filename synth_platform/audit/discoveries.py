"""The audit of a private list: one evidence document in, one report out. Nothing it reads can stop it.

From what the ledger committed to, by way of the answers that it paid for, to the list, its decision and its package.
G1 form and scope; G2 ledger and costs, G3 e-values (`discovery_answers`), their statistic (`discovery_statistics`),
boost and discoveries (`discovery_list`); G4 decision and package.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import polars as pl

from synth_platform.audit.accounting import epsilon_gaussian
from synth_platform.audit.decisions import audit_package
from synth_platform.audit.discovery_answers import audit_answers
from synth_platform.audit.discovery_list import audit_list
from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.formal import RELATIVE, Promise, audit_formal
from synth_platform.audit.ledger import Book, audit_ledger
from synth_platform.audit.reading import (
    SHA256,
    Document,
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
from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG

FORMAT = "synth-discovery-evidence-1"
DOCUMENTS = ("private_e_values", "discoveries", "decision")
STAGES = ("discovery", "gwas")
ELIGIBLE = "ELIGIBLE_FORMAL"
PROCEDURE = "boosted e-BH on private e-values"
PACKAGE = ("README.md", "decision.json", "discoveries.png", "ledger.json", "table.csv", "table.parquet")
COSTS = ("auroc_bound", "epsilon_pld", "epsilon_rdp", "mu")
REASONS = {"ABSENT": "LEDGER_ABSENT", "BUDGET_EXCEEDED": "BUDGET_EXCEEDED", "CONTRADICTION": "DP_AUDIT_CONTRADICTION"}
# Held to the ledger's requests, but no document of the evidence says which name has which position of the family, nor
# how the constants of a statistic were designed.
UNCOVERED = tuple(f"private_e_values/{field}" for field in ("selected", "statistic/parameters", "chooser/parameters"))

_SECTIONS = ("answers", BODY, "documents", "format", "ledger", "package", "registered", "scope")
_DECISION = (
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
_PURPOSE = re.compile(r"(UNLEDGERED_ACCESS:)?[a-z_.]+( [a-z_.]+){0,9}")
# Where a purpose of an access outside the ledger may stand, in words of ours.
_PHRASES = frozenset({"unledgered", "reasons"})
USUAL = 20  # discoveries that adaptive e-values are made for, unless a plan says otherwise


def audit_discoveries(evidence: object, *, expected: Mapping[str, str] = MappingProxyType({})) -> Report:
    """Recompute everything that the evidence of a list claims. Never raises for what it holds.

    expected: cohort, plan, stage or domain that the evidence must be of. The report's documents are by
    `<stage>/<document>`; there is no conformance document.
    """
    found = Findings()
    body: Document = evidence if isinstance(evidence, Mapping) else {}
    scope = {str(key): value for key, value in section_of(body, "scope").items() if isinstance(value, str)}
    stage = scope.get("stage", "none")
    book = EMPTY_BOOK
    with found.section("G1"):
        _audit_structure(found, body, expected)
    with found.section("G2/ledger"):
        # What a domain's other mechanisms may change by is registered by their cohorts, and audited with those.
        registered = {key: item(body, "registered", key) for key in ("domain", "budget")}
        book = audit_ledger(found, mapping(body, "ledger"), registered)
    with found.section(f"G3/{stage}/private_e_values"):
        audit_answers(found, stage, body, book)
    sound = False
    with found.section(f"G3/{stage}/discoveries"):
        documents = mapping(body, "documents")
        e_values, discoveries = mapping(documents, "private_e_values"), mapping(documents, "discoveries")
        plan = mapping(body, "registered", "plan")
        sound = audit_list(found, f"G3/{stage}/discoveries", e_values, discoveries, plan)
    with found.section(f"G2/{stage}/ledger"):
        decision = mapping(body, "documents", "decision")
        state = mapping(body, "documents", "private_e_values")
        # At the epsilon that the decision says its mu is, which `_audit_decision` recomputes: not to its last digit.
        promise = Promise(
            text(body, "registered", "domain"),
            number(decision, "epsilon"),
            number(body, "registered", "budget", "delta"),
            proven=None,
        )
        audit_formal(found, stage, mapping(decision, "ledger"), state, book, promise)
    with found.section(f"G4/{stage}/decision"):
        _audit_decision(found, stage, body, book, sound=sound)
    with found.section(f"G4/{stage}/package"):
        if item(body, "package") is not None:
            _audit_package(found, stage, body, book)
    return Report(
        scope=scope,
        checks=tuple(found.checks),
        counts=found.counts(),
        notes=tuple(found.notes),
        uncovered=tuple(f"{stage}/{path}" for path in UNCOVERED),
        documents={
            f"{stage}/{name}": digest_or_unreadable(document)
            for name, document in section_of(body, "documents").items()
        },
        evidence_sha256=digest_or_unreadable(body),
        conformance_sha256="",
    )


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
            strange = sum(not code for code in codes_only(value, (str(section),), named=_is_name, said=_said))
            found.same(f"G1/{section}/codes", "free_text", strange, 0)
    with found.section("G1/scope"):
        for key in ("cohort", "plan", "stage", "domain"):
            claimed = text(evidence, "scope", key)
            found.same(f"G1/scope/{key}", "scope", claimed, expected.get(key, claimed))
            if key in ("cohort", "domain"):
                found.same(f"G1/registered/{key}", "scope", text(evidence, "registered", key), claimed)
        stage, key = text(evidence, "scope", "stage"), plan_key(mapping(evidence, "registered", "plan"))
        found.holds("G1/scope/known", "scope", stage in STAGES, "no such stage")
        found.same("G1/registered/plan", "scope", text(evidence, "scope", "plan"), key)
    documents = mapping(evidence, "documents")
    found.same("G1/documents", "present", sorted(map(str, documents)), sorted(DOCUMENTS))
    for name in DOCUMENTS:
        with found.section(f"G1/{name}"):
            for field in ("plan", "contrast"):
                own = (
                    item(evidence, "scope", "plan") if field == "plan" else item(evidence, "registered", "plan", field)
                )
                found.same(f"G1/{name}/{field}", "scope", item(documents, name, field), own)
    with found.section("G1/registration"):
        registration = text(evidence, "registered", "registration")
        found.holds("G1/registration", "registration", bool(SHA256.fullmatch(registration)), "not a SHA-256")
        found.same(
            "G1/decision/registration", "registration", item(documents, "decision", "registration"), registration
        )


def plan_key(plan: Document) -> str:
    """The one name of a registered plan: contrast, mu and alpha at six decimals without trailing zeros, and the size it
    is fixed at, or the number it is made for where that is not the usual one."""
    for field in ("mu", "alpha"):
        number(plan, field)
    figures = [f"{name}{format(plan[name], '.6f').rstrip('0').rstrip('.')}" for name in ("mu", "alpha")]
    made_for = whole(plan, "expected")
    if plan["size"] == "adaptive":
        end = [] if made_for == USUAL else [f"for{made_for}"]
    else:
        end = [f"top{whole(plan, 'size')}"]
    return "-".join([text(plan, "contrast"), *figures, *end])


def _audit_decision(found: Findings, stage: str, evidence: Document, book: Book, *, sound: bool) -> None:
    """The decision follows from the list, its ledger block and what is registered."""
    name, registered = f"G4/{stage}/decision", mapping(evidence, "registered")
    documents, plan = mapping(evidence, "documents"), mapping(registered, "plan")
    decision, e_values = mapping(documents, "decision"), mapping(documents, "private_e_values")
    found.same(f"{name}/fields", "structure", sorted(decision), sorted(_DECISION))
    fields: dict[str, Any] = {
        "cohort": text(registered, "cohort"),
        "generator": text(evidence, "scope", "stage"),
        "plan": text(evidence, "scope", "plan"),
        "contrast": text(plan, "contrast"),
        "mu": item(plan, "mu"),
        "delta": item(registered, "budget", "delta"),
        "fdr": {"level": item(plan, "alpha"), "procedure": PROCEDURE, "dependence": "arbitrary"},
        "notes": [],
    }
    for field, own in fields.items():
        found.same(f"{name}/{field}", "decision_field", item(decision, field), own)
    claimed = number(decision, "epsilon")
    own = epsilon_gaussian(number(plan, "mu"), number(registered, "budget", "delta"))
    same = math.isclose(claimed, own, rel_tol=RELATIVE)
    found.holds(f"{name}/epsilon", "epsilon", same, f"claimed {claimed:.9g}, found {own:.9g}")
    violations = whole(decision, "schema", "violations")
    found.holds(f"{name}/schema", "schema", sound is (violations == 0), f"claimed {violations}")

    entries = [book.entries.get(str(entry)) for entry in sequence(e_values, "entries")]
    rows = [entry.reserved if entry else {} for entry in entries]
    seeded = any(row.get("noise_source") == "seeded" for row in rows)
    if book.whole:
        found.same(f"{name}/seeded", "decision", item(e_values, "seeded"), seeded)
    reasons = [] if text(registered, "dua_tag") == RELEASABLE_DUA_TAG else ["DUA_NOT_REVIEWED"]
    reasons += ["SEEDED_NOISE"] if item(e_values, "seeded") is not False else []
    reasons += ["SCHEMA_VIOLATION"] if violations else []
    status = text(decision, "ledger", "status")
    reasons += [] if status == "OK" else [REASONS[status]]
    reasons += [] if sequence(decision, "ledger", "entries") else ["LEDGER_ABSENT"]
    found.same(f"{name}/reasons", "decision", sorted(sequence(decision, "reasons")), sorted(reasons))
    found.same(f"{name}/grade", "decision", item(decision, "decision"), "BLOCKED" if reasons else ELIGIBLE)
    paid = bool(entries) and all(entry is not None and entry.committed is not None for entry in entries)
    blocked = item(decision, "decision") == "BLOCKED"
    found.holds(f"{name}/paid", "paid", paid or blocked, "eligible without committed ledger entries")


def _audit_package(found: Findings, stage: str, evidence: Document, book: Book) -> None:
    """The package says what the decision and the ledger say, and its table is the list."""
    name, package = f"G4/{stage}/package", mapping(evidence, "package")
    decision = mapping(evidence, "documents", "decision")
    found.same(f"{name}/decision", "package", item(package, "decision"), decision)
    found.same(f"{name}/files", "package", sorted(mapping(package, "files")), sorted(PACKAGE))
    found.same(f"{name}/costs", "package_ledger", sorted(mapping(package, "ledger", "cost")), sorted(COSTS))
    lines = sequence(evidence, "documents", "discoveries", "list")
    schema = {"rank": pl.Int64, "feature": pl.String, "log_e": pl.Float64, "discovered": pl.Boolean}
    with found.section(f"{name}/table"):
        columns = {column: [item(line, column) for line in lines] for column in schema}
        try:
            table = pl.DataFrame(columns, schema=schema).write_csv()
        except pl.exceptions.PolarsError:
            raise MalformedError("list") from None
        own = hashlib.sha256(table.encode()).hexdigest()
        found.same(f"{name}/table", "package_hash", item(package, "files", "table.csv"), own)
    # A list has one policy, all of its decision; its unit is one person in a group of public size.
    unit = {"discovery": "patient", "gwas": "sample"}.get(stage)
    terms = {**mapping(evidence, "registered"), "publication": "aggregates", "unit": unit}
    audit_package(found, stage, package, decision, terms, book)


def _said(path: tuple[str, ...], value: str) -> bool:
    """Whether it is a phrase of ours, where one may stand, the procedure, or nothing."""
    return value in ("", PROCEDURE) or (bool(_PHRASES.intersection(path)) and bool(_PURPOSE.fullmatch(value)))


def _is_name(path: tuple[str, ...]) -> bool:
    """Names of hypotheses and of who is compared are public, whatever characters they have."""
    line = path[:3] == ("documents", "discoveries", "list") and path[4:] == ("feature",)
    return line or path[:3] in [("documents", "private_e_values", part) for part in ("selected", "compared")]
