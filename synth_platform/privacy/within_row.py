"""Within-row maps: the operations on private rows that cost no budget, because each output row sees one input row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_REGISTRY: dict[str, str] = {}


@dataclass(frozen=True)
class WithinRow(Generic[T, U]):
    """A named map whose i-th output row depends on the i-th input row and public constants alone.

    Made by `within_row`; a table opens for nothing else. `tests/unit/privacy` checks every registered name for row
    independence on random subsets.
    """

    name: str
    apply: Callable[[T], U]

    def __call__(self, rows: T) -> U:
        return self.apply(rows)


def within_row(name: str, apply: Callable[[T], U]) -> WithinRow[T, U]:
    """Declare `apply` a within-row map under `name` ("room.function"); the registry lists who declared what."""
    _REGISTRY.setdefault(name, f"{apply.__module__}.{getattr(apply, '__qualname__', type(apply).__name__)}")
    return WithinRow(name, apply)


def registered() -> dict[str, str]:
    """Every declared within-row map: name -> where it is defined."""
    return dict(_REGISTRY)
