"""What a re-audit can find: codes and their words. Findings never carry a figure.

A release is recalled only for what was *found* to be wrong with it. What merely cannot be read (a server that is down,
a disk that is not mounted) hinders the re-audit, which is loud and leaves its look open for the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

RecallReason = Literal["WITHDRAWN", "CHECKSUMS", "LEDGER", "DUA", "DECISION", "TABLE", "AUDIT", "LEAKAGE"]
Note = Literal["SUPERSEDED", "ANCHOR_LOST"]
Hindrance = Literal[
    "UNREGISTERED",
    "PACKAGE_UNREADABLE",
    "COHORT_UNREADABLE",
    "LEDGER_UNREADABLE",
    "ARTEFACTS_UNREADABLE",
    "SOURCES_UNREADABLE",
    "ROWS_REPLACED",
    "TABLE_REPLACED",
    "NOT_AUDITED",
    "AUDIT_DISAGREES",
    "ATTACKS_FAILED",
]
Finding = RecallReason | Note

RECALLING: Mapping[RecallReason, str] = {
    "WITHDRAWN": "its package is no longer in the released zone",
    "CHECKSUMS": "its files are not those that were published",
    "LEDGER": "the ledger was altered, or no longer holds the entries and the head it rests on",
    "DUA": "the data use agreement of its cohort is no longer reviewed for release",
    "DECISION": "the standing decision on its table is BLOCKED",
    "TABLE": "its table is not the synthetic table that was judged",
    "AUDIT": "the independent audit does not confirm its verdicts",
    "LEAKAGE": "attacks with fresh randomness tell training rows from fresh ones, again and again",
}
NOTES: Mapping[Note, str] = {
    "SUPERSEDED": "the standing decision is eligible, but not the one in the package",
    "ANCHOR_LOST": "the head anchor of the ledger is missing (synth ledger anchor makes a new one)",
}
HINDRANCES: Mapping[Hindrance, str] = {
    "UNREGISTERED": "nobody released this here; take it out of the released zone",
    "PACKAGE_UNREADABLE": "its package cannot be read",
    "COHORT_UNREADABLE": "its cohort is not registered, or its cohort.yaml cannot be read",
    "LEDGER_UNREADABLE": "the ledger cannot be read",
    "ARTEFACTS_UNREADABLE": "its cohort's stored rows, reference or decision are missing or altered",
    "SOURCES_UNREADABLE": "its cohort's files cannot be read or are not accepted any more",
    "ROWS_REPLACED": "the stored rows, or those of its cohort's files, are not those that the ledger charged",
    "TABLE_REPLACED": "its plan was run again under another registration or on other rows; withdraw it",
    "NOT_AUDITED": "no independent audit of its verdicts is stored any more",
    "AUDIT_DISAGREES": "the audit of today does not confirm the very evidence that its stored report confirmed",
    "ATTACKS_FAILED": "the attacks could not be run on its cohort's rows",
}
_WORDS: Mapping[str, str] = {
    str(code): words for part in (RECALLING, NOTES, HINDRANCES) for code, words in part.items()
}


class HinderedError(RuntimeError):
    """A re-audit cannot be finished now: something it needs cannot be read. `code` is in `HINDRANCES`."""

    def __init__(self, code: Hindrance) -> None:
        super().__init__(in_words(code))
        self.code: Hindrance = code


def recalling(findings: Iterable[Finding]) -> tuple[RecallReason, ...]:
    """Those findings that recall a release at once, in the order of `RECALLING`."""
    found = set(findings)
    return tuple(code for code in RECALLING if code in found)


def in_words(code: str) -> str:
    """A code with what it means."""
    return f"{_WORDS[code]} ({code})"
