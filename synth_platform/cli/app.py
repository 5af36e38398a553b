"""`synth`: the platform from a shell. Exit codes: 0 fine, 1 a verdict failed, 2 bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from resources.home import SynthHome
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.normalize.encoder import EncodeError
from synth_platform.privacy.ledger import LedgerError
from synth_platform.sources.tables import SourceError

VERDICT_FAILED, BAD_INPUT = 1, 2
WIDE = 165

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def console(*, stderr: bool = False) -> Console:
    """Terminal output; tables keep their width where there is no terminal to measure."""
    plain = Console(stderr=stderr)
    return plain if plain.is_terminal else Console(width=WIDE, stderr=stderr)


def home() -> SynthHome:
    """The platform's home, ready for use."""
    return SynthHome.from_environment().prepare()


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(document, indent=1, sort_keys=False, allow_nan=False))


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong on standard error and leave."""
    typer.echo(f"synth: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn the errors of bad input into exit code 2 with their message."""
    try:
        yield
    except (CohortSpecError, SourceError, EncodeError, LedgerError) as error:
        fail(str(error))


def existing_folder(path: Path) -> Path:
    """A cohort folder, or the folder of a cohort.yaml given by name."""
    return path.parent if path.name == "cohort.yaml" else path
