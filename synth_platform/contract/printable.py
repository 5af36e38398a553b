"""Words of files as a screen may show them: a control character moves the cursor, U+202E turns the line around."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with "?" for every character that `str.isprintable` refuses."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
