"""`synth`: the platform from a shell. Exit codes: 0 fine, 1 a verdict failed, 2 bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text
from sqlalchemy.exc import DatabaseError
from typer.core import TyperGroup

from resources.cohorts import LOADERS, CohortRegistry
from resources.home import SynthHome
from synth_platform.contract.printable import printable

VERDICT_FAILED, BAD_INPUT = 1, 2
WIDE = 200
PACKAGES = ("synth_platform", "resources", "assets", "checks")


class Synth(TyperGroup):
    """Errors of the platform's own classes say what is wrong and what to do: exit code 2 with their message.

    Any other error is a fault of the platform and keeps its traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DatabaseError as error:  # the ledger's own say more: what is left are Dagster's
            folder = SynthHome.from_environment().dagster
            fail(
                f"a database of Dagster under {folder} cannot be used ({error.orig}); restore that folder from a backup"
            )
        except Exception as error:
            if type(error).__module__.split(".")[0] not in PACKAGES:
                raise
            fail(str(error))


app = typer.Typer(cls=Synth, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def console(*, stderr: bool = False) -> Console:
    """Terminal output; tables keep their width where there is no terminal to measure."""
    plain = Console(stderr=stderr)
    return plain if plain.is_terminal else Console(width=WIDE, stderr=stderr)


def shown(words: str, style: str = "") -> Text:
    """Words of a cohort or a file as they are: neither markup nor emoji, and nothing that moves the cursor."""
    return Text(printable(words), style=style)


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


def existing_folder(path: Path) -> Path:
    """A cohort folder, that of a cohort.yaml, study.yaml or census.yaml given by name, or that of a registered name."""
    if not path.exists():
        registered = CohortRegistry(path=str(SynthHome.from_environment().cohorts)).folders()
        return registered.get(str(path), path)
    return path.parent if path.name in LOADERS else path
