"""G2, noisy margins: every answer is the one that was paid for, and enough was paid.

At μ-GDP the noise on each count of k tables is √k/μ, with the μ that has the plan's ε at the domain's δ, found by
bisection. Answers are held to the SHA-256 that the ledger committed and to the request it was asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import brentq

from synth_platform.audit.accounting import epsilon_gaussian
from synth_platform.audit.discovery_answers import stored_sha256
from synth_platform.audit.findings import Findings
from synth_platform.audit.formal import Promise, audit_formal
from synth_platform.audit.ledger import Book, audit_ledger
from synth_platform.audit.margins_adaptive import audit_adaptive
from synth_platform.audit.margins_answers import (
    CODE,
    audit_counts,
    audit_distance,
    audit_margin,
    request_sha256,
    tables_of,
)
from synth_platform.audit.margins_protection import audit_declared, audit_zeros, declared_margins
from synth_platform.audit.margins_tables import Counted, Space, title
from synth_platform.audit.reading import Document, item, mapping, number, sequence, text


def audit_noise(found: Findings, stage: str, evidence: Document, space: Space, released: Sequence[Counted]) -> Book:
    """Ledger, answers, cost, and noisy margins of one plan."""
    registered, measured = mapping(evidence, "registered"), mapping(evidence, "measured")
    domain, decision = text(registered, "domain"), mapping(evidence, "documents", "decision")
    # What other cohorts of the domain may change by is registered by them, and audited with them.
    book = audit_ledger(
        found, mapping(evidence, "ledger"), {key: item(registered, key) for key in ("domain", "budget")}
    )
    with found.section(f"G2/{stage}/promise"):
        epsilon, delta = number(registered, "plan", "epsilon"), number(registered, "budget", "delta")
        promise = Promise(domain, epsilon, delta, proven=None)
        audit_formal(found, stage, mapping(decision, "ledger"), measured, book, promise)
        spent = item(decision, "ledger", "mu")
        found.same(f"G2/{stage}/mu", "mu", item(decision, "mu"), spent)
    name = f"G3/{stage}/measured"
    audit_zeros(found, name, registered, space)
    ids = [str(entry) for entry in sequence(measured, "entries")]
    answers = [mapping({"answers": answer}, "answers") for answer in sequence(evidence, "answers")]
    found.same(f"G2/{stage}/answers/entries", "answers", [text(a, "entry_id") for a in answers], ids)
    sources = [book.entries[entry].reserved.get("noise_source") for entry in ids if entry in book.entries]
    if book.whole:
        found.same(f"G2/{stage}/seeded", "decision", item(measured, "seeded"), "seeded" in sources)
    for position, answer in enumerate(answers):
        with found.section(f"G2/{stage}/answer-{position}"):
            _paid(found, f"G2/{stage}/answer-{position}", answer, registered, book)
    mu = mu_of(number(registered, "plan", "epsilon"), number(registered, "budget", "delta"))
    if text(registered, "plan", "margins") == "adaptive":
        with found.section(f"G2/{stage}/rounds"):
            declared = declared_margins(registered, space, released)
            audit_adaptive(found, stage, evidence, space, answers, released, declared, book, mu)
        return book
    audit_declared(found, name, registered, space, released)
    with found.section(f"G2/{stage}/counts"):
        _declared(found, f"G2/{stage}/counts", name, answers, evidence, space, released, book, mu)
    return book


def mu_of(epsilon: float, delta: float) -> float:
    """The mu that has this epsilon at delta."""
    low, high = 1e-6, 2.0
    while epsilon_gaussian(high, delta) < epsilon:
        high *= 2
    return float(brentq(lambda mu: epsilon_gaussian(mu, delta) - epsilon, low, high, rtol=1e-12))


def _paid(found: Findings, name: str, answer: Document, registered: Document, book: Book) -> None:
    """The entry is of this cohort, and its answer is the one that was stored."""
    entry = book.entries.get(text(answer, "entry_id"))
    if not found.holds(f"{name}/entry", "entries", entry is not None, "not in the ledger") or entry is None:
        return
    row = entry.reserved
    claims = {"code": text(answer, "code"), "noise_source": text(answer, "source")}
    claims |= {key: text(registered, key) for key in ("cohort", "domain")}
    for key, claimed in claims.items():
        found.same(f"{name}/{key}", "entries", claimed, row.get(key))
    for key in ("sensitivity", "scale"):
        found.same(f"{name}/{key}", "entries", number(answer, key), number(row, key))
    committed = entry.committed or {}
    found.same(f"{name}/stored", "stored", stored_sha256(answer), committed.get("artefact_fingerprint"), public=False)


def _declared(
    found: Findings,
    name: str,
    measured: str,
    answers: Sequence[Document],
    evidence: Document,
    space: Space,
    released: Sequence[Counted],
    book: Book,
    mu: float,
) -> None:
    """One answer for all registered margins, and the margins made of it."""
    found.same(f"{name}/answers", "answers", [text(answer, "code") for answer in answers], [CODE])
    answer, tables = answers[0], [margin.names for margin in released]
    entry = book.entries[text(answer, "entry_id")]
    audit_counts(found, name, space, answer, entry, tables, math.sqrt(len(tables)) / mu)
    asked = request_sha256(evidence, space, answer, entry, tables)
    found.same(f"{name}/request", "request", asked, entry.reserved.get("request_fingerprint"), public=False)
    scale, total = number(answer, "scale"), float(released[0].counts.sum())
    distances = []
    told = f"noisy counts: discrete Gaussian of standard deviation {scale:.6g} on each cell"
    for position, (margin, noisy) in enumerate(zip(released, tables_of(space, answer, tables), strict=True)):
        here = f"{measured}/{position:02d}:{title(margin.names)}"
        distances.append(audit_margin(found, here, space, margin, noisy, scale, total))
        due = [told, "made to agree, none below 0"]
        found.same(f"{here}/provenance", "provenance", list(margin.provenance), due, public=False)
    audit_distance(found, measured, distances)
