"""G1: is the evidence whole, sealed, of one cohort and plan, and free of anything but codes and rounded numbers?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from synth_platform.audit.findings import Findings
from synth_platform.audit.reading import SHA256, TOKEN, Document, digest, item, leaves, mapping, parsed, text
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS

FORMAT = "synth-evidence-1"
BODY = "body_sha256"
INPUTS = ("normalized/attacked", "normalized/batch_corrected", "public/reference")
DOCUMENTS = ("utility_gate", "closest_record_gate", "membership_gate", "inference_gate", "decision")

# What a control may read outside the ledger is a fixed phrase of ours, with spaces in it.
_PURPOSE = re.compile(r"(UNLEDGERED_ACCESS:)?control S_[A-Z]+: [a-z]+ rows")
# Why a design could not be carried out, in words of ours.
_FAULT = re.compile(r"[a-z ]{1,100}")


def audit_structure(found: Findings, evidence: Document, expected: Mapping[str, str]) -> None:
    """Check seals, scope, locks and the form of every value. expected: the scope that was asked for, if any."""
    found.same("G1/format", "structure", evidence.get("format"), FORMAT)
    audit_seal(found, "G1", evidence)
    with found.section("G1/scope"):
        for key in ("cohort", "plan", "domain"):
            claimed = text(evidence, "scope", key)
            found.same(f"G1/scope/{key}", "scope", claimed, expected.get(key, claimed))
            registered = claimed if key == "plan" else text(evidence, "registered", key)
            found.same(f"G1/registered/{key}", "scope", registered, claimed)
    columns: frozenset[str] = frozenset()
    with found.section("G1/registered/secrets"):
        columns = frozenset(map(str, item(evidence, "registered", "secrets")))
    for section, value in evidence.items():
        strange = sum(not allowed for allowed in _tokens(value, section, columns))
        found.same(f"G1/{section}/codes", "free_text", strange, 0)
    with found.section("G1/locks"):
        locks = mapping(evidence, "locks")
        for name in ("registration", "feature_manifest"):
            found.holds(f"G1/locks/{name}", "lock", bool(SHA256.fullmatch(text(locks, name))), "not a SHA-256")
        for name in INPUTS:
            found.holds(f"G1/locks/{name}", "lock", bool(SHA256.fullmatch(str(item(locks, "inputs", name)))))
    with found.section("G1/generators"):
        _documents(found, evidence)


def audit_seal(found: Findings, name: str, document: Document) -> None:
    """The SHA-256 of the body is that of everything else in the document."""
    body = {key: value for key, value in document.items() if key != BODY}
    found.same(f"{name}/body", "hash", document.get(BODY), digest(body), public=False)


def _documents(found: Findings, evidence: Document) -> None:
    locks, registration = mapping(evidence, "locks"), text(evidence, "locks", "registration")
    locked, again = mapping(locks, "documents"), mapping(locks, "reruns")
    present = set()
    for code, generator in mapping(evidence, "generators").items():
        found.holds(f"G1/{code}/known", "structure", code in (*CONTROLS, *DP_GENERATORS), "no such generator")
        found.holds(
            f"G1/{code}/registered", "structure", code in item(evidence, "registered", "generators"), "not registered"
        )
        for name in DOCUMENTS:
            found.holds(f"G1/{code}/{name}/present", "present", name in mapping(generator, "documents"), "missing")
        with found.section(f"G1/{code}/lock"):
            found.same(f"G1/{code}/synthetic/lock", "lock", _is_sha(item(locks, "inputs", f"{code}/synthetic")), True)
            found.same(f"G1/{code}/checkpoint/lock", "lock", _is_sha(item(locks, "inputs", f"{code}/checkpoint")), True)
        for name, document in mapping(generator, "documents").items():
            path = f"{code}/{name}"
            present.add(path)
            found.same(f"G1/{path}/sha256", "hash", locked.get(path), digest(document), public=False)
            found.same(f"G1/{path}/registration", "registration", document.get("registration"), registration)
            if name == "decision":
                continue
            with found.section(f"G1/{path}/status"):
                found.same(
                    f"G1/{path}/status", "structure", text(document, "status"), text(document, "summary", "status")
                )
            loose = sum(round(v, 6) != v for _, v in _array_numbers(document.get("evidence")))
            found.same(f"G1/{path}/six_decimals", "six_decimals", loose, 0)
    for name, document in mapping(evidence, "cohort_documents").items():
        present.add(name)
        found.same(f"G1/{name}/sha256", "hash", locked.get(name), digest(document), public=False)
        found.same(f"G1/{name}/registration", "registration", document.get("registration"), registration)
    for path in sorted(set(locked) - present):
        found.holds(f"G1/{path}/present", "present", False, "locked, but missing")
    for path in sorted(set(again) | {p for p in present if p.endswith("_gate")}):
        found.same(f"G4/{path}/rerun", "rerun", again.get(path), locked.get(path), public=False)


def _is_sha(value: object) -> bool:
    return isinstance(value, str) and bool(SHA256.fullmatch(value))


def _array_numbers(value: object) -> Iterator[tuple[tuple[str, ...], float]]:
    """Floats that stand in arrays; single figures are limits of the cohort, which may have more decimals."""
    for path, leaf in leaves(value):
        if isinstance(leaf, float) and path[-1].isdigit():
            yield path, leaf


def _tokens(value: object, key: str, columns: frozenset[str]) -> Iterator[bool]:
    """Whether each key and string is a code token or a registered column, whose name is public but may be anything.

    The event of a ledger row is JSON of such, or it is free text.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name in columns or bool(TOKEN.fullmatch(str(name)))
            yield from _tokens(inner, str(name), columns)
    elif isinstance(value, list):
        for inner in value:
            yield from _tokens(inner, key, columns)
    elif isinstance(value, str):
        event = parsed(value) if key == "event" else None
        phrase = _FAULT if key == "fault" else _PURPOSE
        if isinstance(event, Mapping):
            yield from _tokens(event, "", columns)
        else:
            yield value == "" or value in columns or bool(TOKEN.fullmatch(value) or phrase.fullmatch(value))
