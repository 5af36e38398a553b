"""What every categorical variable is held to, whoever declares it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

MOST_CATEGORIES = 10_000


def first_repeated(labels: Iterable[str]) -> str | None:
    """The first label that is there more than once, if one is."""
    return next((label for label, times in Counter(labels).items() if times > 1), None)
