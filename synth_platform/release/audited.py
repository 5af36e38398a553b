"""Whether an audit report speaks of the very documents that a release rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth_platform.privacy.fingerprint import canonical_json, sha256_hex

Document = Mapping[str, Any]


def unaudited(report: Document, *, scope: Mapping[str, str], code: str, documents: Mapping[str, Document]) -> list[str]:
    """What is wrong with relying on `report` for these documents; empty where it passed and audited exactly them.

    scope: the cohort and plan of the release. documents: its decision and verdicts, by name under the generator.
    """
    problems = [] if report["status"] == "PASS" else ["the audit does not pass"]
    problems += [f"the audit is of another {key}" for key, value in scope.items() if report["scope"].get(key) != value]
    audited = report["documents"]
    return problems + [
        f"{code}/{name} is not the document that was audited"
        for name, document in documents.items()
        if audited.get(f"{code}/{name}") != sha256_hex(canonical_json(document))
    ]
