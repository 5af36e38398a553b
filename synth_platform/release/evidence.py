"""The evidence document: everything that the independent audit needs, and nothing that must not lie there (8-1 §3.6).

One document a cohort and plan. Documents stand in it as they are stored, beside the SHA-256 of what is stored and of
what the same gate says when it is run again on the stored tables. It holds scores, distances and test features: private
data, which stay in the restricted zone. Rows in native units, keys and free text are not in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.contract.features import feature_manifest
from synth_platform.evaluation.attribute_inference import registered_secrets
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE
from synth_platform.generators.protocol import GeneratorState
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.replicates import SEED
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.statistic_store import StatisticStore, StoredReleaseError
from synth_platform.release.assess import schema_violations
from synth_platform.release.folder import CHECKSUMS

FORMAT = "synth-evidence-1"
BODY = "body_sha256"
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Judged:
    """One generator as it is stored: its documents by name, its state and the tables of all sampling seeds.

    package: folder of its published package, None without one.
    """

    documents: Mapping[str, Document]
    state: GeneratorState
    tables: pl.DataFrame
    package: Path | None = None


def write_evidence(
    *,
    spec: CohortSpec,
    plan_key: str,
    reference: PublicReference,
    real: EncodedRows,
    attacked: EncodedRows,
    judged: Mapping[GeneratorCode, Judged],
    cohort_documents: Mapping[str, Document],
    fingerprints: Mapping[str, str],
    ledger: Ledger,
    store: StatisticStore,
) -> dict[str, Any]:
    """The sealed evidence of one cohort and plan.

    real, attacked: the batch-corrected rows that the gates judge against. cohort_documents: documents of the cohort
    alone, by asset. fingerprints: keyed names of the stored inputs, by asset. Every gate is run once more on the
    stored tables: seconds a generator for thousands of rows. Raises PrivateComputationError where a gate fails.
    """
    locked = {f"{code}/{name}": _sha256(d) for code, g in judged.items() for name, d in g.documents.items()}
    locked |= {name: _sha256(document) for name, document in cohort_documents.items()}
    reruns = {
        f"{code}/{gate}": digest
        for code, g in judged.items()
        for gate, digest in _judged_again(spec, reference, real, attacked, g).items()
    }
    return sealed(
        {
            "format": FORMAT,
            "scope": {"cohort": spec.name, "plan": plan_key, "domain": spec.privacy.domain},
            "locks": {
                "registration": spec.registration,
                "feature_manifest": feature_manifest(spec).sha256,
                "inputs": dict(fingerprints),
                "documents": locked,
                "reruns": reruns,
            },
            "registered": _registered(spec, plan_key, reference),
            "generators": {code: _generator(spec, generator) for code, generator in judged.items()},
            "cohort_documents": {name: dict(document) for name, document in cohort_documents.items()},
            "ledger": ledger_evidence(spec.privacy.domain, ledger, store),
            "packages": {code: package_evidence(g.package) for code, g in judged.items() if g.package is not None},
        }
    )


def sealed(body: Document) -> dict[str, Any]:
    """The document with the SHA-256 of its canonical JSON beside it. Raises ValueError for NaN."""
    plain: dict[str, Any] = json.loads(canonical_json(body))
    return plain | {BODY: sha256_hex(canonical_json(plain))}


def _sha256(document: Document) -> str:
    return sha256_hex(canonical_json(document))


def _judged_again(
    spec: CohortSpec, reference: PublicReference, real: EncodedRows, attacked: EncodedRows, generator: Judged
) -> dict[str, str]:
    digests = {}
    for gate in (*GATES, INFERENCE_GATE):
        if gate.name in generator.documents:
            with quiet_errors(gate.name):
                digests[gate.name] = _sha256(gate.judge(spec, reference, real, attacked, generator.tables))
    return digests


def _registered(spec: CohortSpec, plan_key: str, reference: PublicReference) -> dict[str, Any]:
    """The public constants that verdicts are held to; their digest is the registration."""
    return {
        "cohort": spec.name,
        "domain": spec.privacy.domain,
        "unit": spec.privacy.unit,
        "n_ref": spec.privacy.n_ref,
        "budget": spec.privacy.budget.model_dump(),
        "plan": spec.plan(plan_key).model_dump(),
        "dua_tag": spec.dua_tag,
        "publication": spec.publication,
        "generators": list(spec.generators),
        "endpoints": [endpoint.model_dump() for endpoint in spec.endpoints],
        "classes": len(spec.labels),
        "gates": spec.gates.model_dump(),
        "g0": spec.g0.model_dump(),
        "rows": spec.synthetic.rows,
        "seeds": list(spec.synthetic.seeds),
        "secrets": [secret.name for secret in registered_secrets(reference.encoder)],
    }


def _generator(spec: CohortSpec, generator: Judged) -> dict[str, Any]:
    state = generator.state
    sizes = generator.tables.group_by(SEED).len()
    with quiet_errors("counting schema violations"):
        violations = schema_violations(generator.tables, spec)
    return {
        "documents": {name: dict(document) for name, document in generator.documents.items()},
        "state": {"entries": list(state.entries), "unledgered": list(state.unledgered), "seeded": state.seeded},
        "tables": {str(seed): rows for seed, rows in sizes.iter_rows()},
        "violations": violations,
    }


def ledger_evidence(domain: str, ledger: Ledger, store: StatisticStore) -> dict[str, Any]:
    """The whole chain, because its hashes run through every domain, and what the domain's statistics hash to now."""
    report = ledger.verify()
    statistics: dict[str, str] = {}
    if report.ok:
        for entry in ledger.entries(domain):
            try:
                statistics[entry.entry_id] = store.load(entry).fingerprint
            except StoredReleaseError:
                continue  # the audit finds it missing
    return {
        "rows": ledger.chain(),
        "head": ledger.head_hash(),
        "verified": report.ok,
        "statistics": statistics,
    }


def package_evidence(folder: Path) -> dict[str, Any]:
    """What of a published package is a document, its checksums as listed and as they are now."""
    listed = [line.split("  ", 1) for line in _lines(folder / CHECKSUMS)]
    return {
        "decision": _document(folder / "decision.json"),
        "ledger": _document(folder / "ledger.json"),
        "checksums": {line[-1]: line[0] for line in listed},
        "files": {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(folder.iterdir())
            if file.is_file() and file.name != CHECKSUMS
        },
    }


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []


def _document(file: Path) -> Any:
    """A JSON file of a package; None where it is missing or cannot be read, which the audit then finds."""
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
