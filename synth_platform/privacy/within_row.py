"""Within-row maps: the operations on private rows that cost no budget, because each output row sees one input row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
    declared: bool = field(default=False, init=False, repr=False, compare=False)

    def __call__(self, rows: T) -> U:
        """The mapped rows."""
        return self.apply(rows)


def within_row(name: str, apply: Callable[[T], U]) -> WithinRow[T, U]:
    """Declare `apply` a within-row map under `name` ("room.function"); the registry lists who declared what."""
    _REGISTRY.setdefault(name, f"{apply.__module__}.{getattr(apply, '__qualname__', type(apply).__name__)}")
    row_map = WithinRow(name, apply)
    object.__setattr__(row_map, "declared", True)
    return row_map


def registered() -> dict[str, str]:
    """Every declared within-row map: name -> where it is defined."""
    return dict(_REGISTRY)


def require_declared(row_map: object) -> None:
    """Raise TypeError unless `row_map` was made by `within_row`."""
    if not (isinstance(row_map, WithinRow) and row_map.declared):
        raise TypeError(
            f"a {type(row_map).__name__} does not open private rows: declare the map with within_row(name, function)"
        )
