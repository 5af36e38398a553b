"""G2, formal status: what the ledger says of one generator, derived anew from its rows (8-1 §2.1, §3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synth_platform.audit.accounting import auroc_bound, compose, epsilon_rdp, epsilon_tight
from synth_platform.audit.findings import Findings
from synth_platform.audit.ledger import Book
from synth_platform.audit.reading import Document, figure, item, mapping, number, sequence, six, text

RELATIVE = 2e-6


@dataclass(frozen=True)
class Promise:
    """What a generator was promised to cost, in which domain, and what stands against it.

    proven: the epsilon that an attack proves, None for a control. contradicted: whether canaries refute the mechanisms.
    """

    domain: str
    epsilon: float
    delta: float
    proven: float | None
    contradicted: bool = False


def audit_formal(found: Findings, code: str, ledger: Document, state: Document, book: Book, promise: Promise) -> None:
    """Recompute the ledger block of a decision: entries, four figures, status and reasons."""
    name = f"G2/{code}/ledger"
    ids = [str(entry) for entry in dict.fromkeys(sequence(state, "entries"))]
    found.same(f"{name}/entries", "entries", item(ledger, "entries"), ids)
    absent = list(dict.fromkeys(_absent(ids, state, book, promise.domain)))
    if absent:
        for key in ("epsilon_rdp", "epsilon_pld", "mu", "auroc_bound"):
            found.same(f"{name}/{key}", "absent", item(ledger, key), None)
        _status(found, name, ledger, "ABSENT", absent)
        return
    plan = compose(book.entries[entry].event for entry in ids)
    delta = promise.delta
    low, high = epsilon_tight(plan, delta)
    _figure(found, f"{name}/epsilon_rdp", "rdp", figure(ledger, "epsilon_rdp"), *2 * (epsilon_rdp(plan, delta),))
    _figure(found, f"{name}/epsilon_pld", "pld", figure(ledger, "epsilon_pld"), low, high)
    if plan.mu is None:
        found.same(f"{name}/mu", "mu", item(ledger, "mu"), None)
    else:
        _figure(found, f"{name}/mu", "mu", figure(ledger, "mu"), plan.mu, plan.mu)
    bound_delta = delta if ids else 0.0
    bounds = auroc_bound(low, bound_delta), auroc_bound(high, bound_delta)
    _figure(found, f"{name}/auroc_bound", "auroc_bound", figure(ledger, "auroc_bound"), *bounds)

    claimed = figure(ledger, "epsilon_pld")
    spent = high if claimed is None else claimed
    contradictions = list(_contradictions(spent, promise))
    excesses = list(_excesses(spent, book, promise)) if ids else []
    status = "CONTRADICTION" if contradictions else "BUDGET_EXCEEDED" if excesses else "OK"
    _status(found, name, ledger, status, [*contradictions, *excesses])


def _status(found: Findings, name: str, ledger: Document, status: str, reasons: Sequence[str]) -> None:
    found.same(f"{name}/status", "status", item(ledger, "status"), status)
    found.same(f"{name}/reasons", "reasons", sorted(map(str, sequence(ledger, "reasons"))), sorted(reasons))


def _figure(found: Findings, name: str, kind: str, claimed: float | None, low: float, high: float) -> None:
    """A public figure inside [low, high], with a relative margin for the last digits."""
    inside = claimed is not None and low * (1 - RELATIVE) - 1e-12 <= claimed <= high * (1 + RELATIVE) + 1e-12
    found.holds(name, kind, inside, f"claimed {claimed}, found {low:.9g}")


def _absent(ids: Sequence[str], state: Document, book: Book, domain: str) -> Iterator[str]:
    for purpose in sequence(state, "unledgered"):
        yield f"UNLEDGERED_ACCESS:{purpose}"
    if item(state, "seeded") is not False:
        yield "SEEDED_NOISE"
    if not book.whole:
        yield "LEDGER_BROKEN"
        return
    for entry_id in ids:
        entry = book.entries.get(entry_id)
        if entry is None:
            yield f"ENTRY_MISSING:{entry_id}"
            continue
        if text(entry.reserved, "domain") != domain:
            yield f"ENTRY_OF_OTHER_DOMAIN:{entry_id}"
        if text(entry.reserved, "noise_source") != "cryptographic":
            yield "SEEDED_NOISE"
        if entry.committed is None:
            yield f"ENTRY_UNCOMMITTED:{entry_id}"
        elif book.statistics.get(entry_id) != text(entry.committed, "artefact_fingerprint"):
            yield f"ARTEFACT_MISMATCH:{entry_id}"


def _contradictions(spent: float, promise: Promise) -> Iterator[str]:
    if promise.proven is not None and six(promise.proven) > six(spent):
        yield "DP_AUDIT_CONTRADICTION"
    if promise.contradicted:
        yield "MECHANISM_AUDIT_CONTRADICTION"


def _excesses(spent: float, book: Book, promise: Promise) -> Iterator[str]:
    if six(spent) > six(promise.epsilon):
        yield "PLAN_EXCEEDED"
    cap = book.cap(promise.domain)
    total = compose(entry.event for entry in book.of_domain(promise.domain))
    if cap is None or six(epsilon_rdp(total, cap[1])) > six(cap[0]):
        yield f"DOMAIN_OVER_CAP:{promise.domain}"


def promise_of(registered: Document, documents: Document, *, dp: bool, proven: float | None) -> Promise:
    """The plan's promise for a DP generator; a control promises nothing, at the domain's delta."""
    target = mapping(registered, "plan" if dp else "budget")
    return Promise(
        domain=text(registered, "domain"),
        epsilon=number(target, "epsilon") if dp else 0.0,
        delta=number(target, "delta"),
        proven=proven if dp else None,
        contradicted=dp and text(documents, "mechanism_audit", "status") == "CONTRADICTION",
    )
