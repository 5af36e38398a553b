"""`synth reaudit` and `synth releases`: what was published, looked at again now or as the register has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import typer
from rich.table import Table

from resources.artefacts import read_artefact
from resources.home import HomeResource
from resources.private import fingerprint_key
from synth_platform.cli.app import BAD_INPUT, VERDICT_FAILED, Json, app, console, fail, home, print_json
from synth_platform.release.findings import in_words


@app.command()
def reaudit(as_json: Json = False) -> None:
    """Look at every published release again, as the schedule does at night; exit code 1 for a recalled or open one."""
    from assets.governance import REGISTER
    from synth_platform.cli.runner import Runner

    place = home()
    outcome = Runner(place, console(stderr=as_json)).reaudit()
    if outcome.failure is not None:
        fail(outcome.failure, BAD_INPUT)
    stored = read_artefact(place.artefact(REGISTER), fingerprint_key(HomeResource(root=str(place.root))))
    document = cast(Mapping[str, Any], stored)
    if as_json:
        print_json(document)
    else:
        _show(document["releases"])
        for name, codes in document["hindered"].items():
            typer.echo(f"{name} could not be looked at: {'; '.join(map(in_words, codes))}", err=True)
    if document["recalled"] or document["hindered"]:
        raise typer.Exit(VERDICT_FAILED)


@app.command()
def releases(as_json: Json = False) -> None:
    """Every release of the register with its status and when it was looked at last."""
    from resources.register import home_register

    listed = [release.as_dict() for release in home_register(home()).releases().values()]
    if as_json:
        print_json(listed)
    else:
        _show(listed)


def _show(listed: Sequence[Mapping[str, Any]]) -> None:
    table = Table("release", "status", "published", "looks", "last look")
    for release in listed:
        table.add_row(
            release["name"],
            release["status"],
            release["published_at"],
            str(release["looks"]),
            release["last_look"] or "-",
        )
    console().print(table if listed else "nothing was released yet")
    for release in listed:
        if said := [*release["reasons"], *(code for code in release["findings"] if code not in release["reasons"])]:
            typer.echo(f"{release['name']}: {'; '.join(map(in_words, said))}")
