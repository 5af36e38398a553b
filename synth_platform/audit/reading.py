"""Reading evidence documents: every field by its path, of the kind and length it must have, or MalformedError."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.audit.findings import MalformedError

Document = Mapping[str, Any]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A code: what may stand where nothing else is allowed.
TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:,+|/#@=-]{0,199}")
SHA256 = re.compile(r"[0-9a-f]{64}")


def canonical(value: object) -> bytes:
    """The bytes that are hashed: JSON with sorted keys and no spaces. Raises ValueError for NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value)).hexdigest()


def digest_or_unreadable(value: object) -> str:
    """`digest`, or "unreadable" for what is no JSON."""
    try:
        return digest(value)
    except (TypeError, ValueError, RecursionError):
        return "unreadable"


def parsed(value: str) -> Any:
    """The value of a JSON string, None for any other string."""
    try:
        return json.loads(value)
    except ValueError:
        return None


def codes_only(
    value: object,
    path: tuple[str, ...],
    *,
    named: Callable[[tuple[str, ...]], bool],
    said: Callable[[tuple[str, ...], str], bool],
) -> Iterator[bool]:
    """Whether each key and string below `path` is a code token, where nothing else may stand.

    named: of a path, whether public names stand there and below, which may be any text. said: of a path and a string,
    whether it is a phrase of ours. Events, which are JSON in a string, are looked into.
    """
    if named(path):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield bool(TOKEN.fullmatch(str(key)))
            yield from codes_only(inner, (*path, str(key)), named=named, said=said)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from codes_only(inner, (*path, str(position)), named=named, said=said)
    elif isinstance(value, str):
        event = parsed(value) if path[-1] == "event" else None
        if isinstance(event, Mapping):
            yield from codes_only(event, path, named=named, said=said)
        else:
            yield said(path, value) or bool(TOKEN.fullmatch(value))


def six(value: float | Fraction) -> Fraction:
    """A figure at six decimals as a rational, by way of its decimal digits (8-1 §3.3)."""
    return Fraction(round(value * 10**6), 10**6) if isinstance(value, Fraction) else Fraction(format(value, ".6f"))


def item(document: object, *path: str) -> Any:
    """The value at a path of keys. Raises MalformedError naming the path."""
    value = document
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            raise MalformedError(".".join(path))
        value = value[key]
    return value


def mapping(document: object, *path: str) -> Document:
    """The object at a path."""
    value = item(document, *path)
    if not isinstance(value, Mapping):
        raise MalformedError(".".join(path))
    return value


def section_of(document: Document, key: str) -> Document:
    """The object under a key, an empty one where there is none."""
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def sequence(document: object, *path: str) -> list[Any]:
    """The list at a path."""
    value = item(document, *path)
    if not isinstance(value, list):
        raise MalformedError(".".join(path))
    return value


def text(document: object, *path: str) -> str:
    """The string at a path."""
    value = item(document, *path)
    if not isinstance(value, str):
        raise MalformedError(".".join(path))
    return value


def number(document: object, *path: str) -> float:
    """The finite number at a path."""
    value = item(document, *path)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise MalformedError(".".join(path))
    return float(value)


def figure(document: object, *path: str) -> float | None:
    """The finite number at a path, or None where it says that it is not defined."""
    return None if item(document, *path) is None else number(document, *path)


def whole(document: object, *path: str) -> int:
    """The integer at a path."""
    value = item(document, *path)
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedError(".".join(path))
    return value


def array(document: object, *path: str, shape: tuple[int | None, ...] = (None,)) -> FloatArray:
    """The array of finite numbers at a path. shape: its dimensions, None where any length will do."""
    try:
        values = np.array(sequence(document, *path), dtype=np.float64)
    except (TypeError, ValueError):
        raise MalformedError(".".join(path)) from None
    fits = values.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, values.shape, strict=True))
    if not fits or not np.isfinite(values).all():
        raise MalformedError(".".join(path))
    return values


def codes(document: object, *path: str, shape: tuple[int | None, ...] = (None,)) -> IntArray:
    """The array of integers at a path."""
    values = array(document, *path, shape=shape)
    if (values != np.round(values)).any():
        raise MalformedError(".".join(path))
    return values.astype(np.int64)


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that holds no other, with its path; positions in lists count as keys."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from leaves(inner, (*path, str(position)))
    else:
        yield path, value
