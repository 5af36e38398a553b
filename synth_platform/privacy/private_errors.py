"""Errors of code that runs on private rows: where and what kind, never the message, because messages quote values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class PrivateComputationError(RuntimeError):
    """Code failed while it ran on private rows; the text is made of public names only."""


@contextmanager
def quiet_errors(name: str, readable: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Replace any error of the block by a PrivateComputationError with its kind and traceback, without its message.

    readable: errors whose messages are made of public names, such as a file that is missing; they pass as they are.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (PrivateComputationError, *readable)):
            raise
        raise PrivateComputationError(
            f"{name} failed on private rows with {type(error).__name__}; its message is withheld because it may quote "
            "values. Run the same code on public rows to see it."
        ).with_traceback(error.__traceback__) from None
