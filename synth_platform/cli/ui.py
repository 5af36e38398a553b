"""`synth ui`: the Dagster webserver and daemon of the home, on loopback only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import Annotated

import typer

from resources.cohorts import CohortRegistry
from synth_platform.cli.app import app, console, fail, home
from synth_platform.cli.daemon import MODULE
from synth_platform.contract.cohort_spec import CohortSpecError

LOOPBACK = "127.0.0.1"


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 3000,
    read_only: Annotated[bool, typer.Option("--read-only", help="For governance: look, but change nothing.")] = False,
) -> None:
    """Open the platform in Dagster's UI, with the schedules and sensors of the home running (Ctrl-C stops both)."""
    from synth_platform.cli.runner import Runner

    _require_free(port)
    place = home()
    registry = CohortRegistry(path=str(place.cohorts))
    runner = Runner(place, console())  # also migrates an empty home before two processes meet in it
    for name in registry.folders():
        try:
            runner.add_cohort(registry.registered(name))
        except CohortSpecError as error:
            typer.echo(f"synth: warning: cohort {name!r} is left out: {error}", err=True)
    web = ["-m", "dagster_webserver", "--host", LOOPBACK, "--port", str(port), *MODULE]
    # Re-audits run wherever somebody looks: the daemon of the home, or a process that waits to take over from it.
    commands = [[*web, "--read-only"] if read_only else web, ["-m", "synth_platform.cli.daemon"]]
    typer.echo(f"{'read-only ' if read_only else ''}UI: http://{LOOPBACK}:{port}   home: {place.root}   stop: Ctrl-C")
    children = [subprocess.Popen([sys.executable, *command], env=dict(os.environ)) for command in commands]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        finished = os.wait()[1]
    except KeyboardInterrupt:
        finished = 0
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(timeout=30)
    if finished:
        fail(f"the server stopped with status {os.waitstatus_to_exitcode(finished)}; the lines above say why", 1)


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was just closed is free
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            fail(f"port {port} of {LOOPBACK} cannot be used ({error}); choose another one with --port")
