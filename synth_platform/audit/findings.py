"""What the audit has found so far: one named check a claim, and a failed one for everything that could not be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

Gate = Literal["G1", "G2", "G3", "G4"]
GATES: tuple[Gate, ...] = get_args(Gate)

# Half a unit of the sixth decimal, and room for the last bits of a double on both sides.
ROUNDING = 0.6e-6
_NOT_A_TOKEN = re.compile(r"[^A-Za-z0-9_.:+@-]")

Number = float | int | Fraction


class MalformedError(ValueError):
    """A field is missing, of the wrong kind or of the wrong length; the message is its path and nothing else."""


@dataclass(frozen=True)
class Check:
    """One claim of the evidence, held against what the audit found.

    name: `<gate>/<generator or part>/<document>/<what>`. kind: what was recomputed, for counting. detail: statuses,
    and figures of public matters only; what is a function of private rows is named and never shown.
    """

    name: str
    kind: str
    passed: bool
    detail: str = ""

    @property
    def gate(self) -> str:
        """G1 frozen inputs, G2 schema, ledger and rule tables, G3 metrics and bounds, G4 verdicts and decisions."""
        return self.name.split("/", 1)[0]


class Findings:
    """Collects checks. Nothing here raises for what the evidence says, however wrong it is."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.uncovered: list[str] = []
        self.notes: list[str] = []

    def holds(self, name: str, kind: str, passed: bool, detail: str = "") -> bool:
        """Record whether a claim holds; `detail` is kept for a failed one."""
        self.checks.append(Check(_path(name), kind, bool(passed), "" if passed else detail))
        return bool(passed)

    def close(
        self,
        name: str,
        kind: str,
        claimed: Number | None,
        found: Number | None,
        *,
        tolerance: float = ROUNDING,
        public: bool = False,
    ) -> bool:
        """Record whether a claimed figure is what was found, None standing for a figure that is not defined."""
        passed = (
            claimed is found if claimed is None or found is None else abs(float(claimed) - float(found)) <= tolerance
        )
        return self.holds(name, kind, passed, _difference(claimed, found) if public else "the figure differs")

    def same(self, name: str, kind: str, claimed: object, found: object, *, public: bool = True) -> bool:
        """Record whether a status, code, count or document is what was found; shown where it is a public matter."""
        passed = type(claimed) is type(found) and claimed == found
        return self.holds(name, kind, passed, _difference(claimed, found) if public else "it differs")

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """A part of the audit: whatever cannot be read in it is a failed check that names the field."""
        try:
            yield
        except MalformedError as error:
            self.holds(f"{name}/{error}", "readable", False, "missing, cut short or of the wrong kind")
        # Evidence is whatever somebody put there: no content of it may stop the audit of the rest.
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            self.holds(f"{name}/computable", "readable", False, f"cannot be recomputed ({type(error).__name__})")

    def counts(self) -> dict[str, dict[str, int]]:
        """Number of checks by gate and kind."""
        found = Counter((check.gate, check.kind) for check in self.checks)
        return {gate: {kind: n for (g, kind), n in sorted(found.items()) if g == gate} for gate in GATES}


def _path(name: str) -> str:
    return "/".join(_NOT_A_TOKEN.sub("?", part)[:80] for part in name.split("/"))


def _difference(claimed: object, found: object) -> str:
    return f"claimed {_shown(claimed)}, found {_shown(found)}"


def _shown(value: object) -> str:
    if isinstance(value, Fraction):
        value = float(value)
    return f"{value:.9g}" if isinstance(value, float) else str(value)[:120]
