"""`synth daemon`: schedules and sensors of the home, one daemon at a time."""

from __future__ import annotations

import fcntl
import os
import sys

from synth_platform.cli.app import app, console, home

MODULE = ("-m", "synth_platform.definitions")


@app.command()
def daemon() -> None:
    """Run the schedules and sensors of the home without a UI, such as the nightly re-audit (Ctrl-C stops it)."""
    from synth_platform.cli.runner import Runner

    Runner(home(), console())  # also migrates an empty home before two processes meet in it
    become_daemon()


def become_daemon() -> None:
    """Turn this process into the Dagster daemon of the home, once no other process is.

    Two daemons would run every schedule twice. The lock belongs to an open file that the daemon inherits: the kernel
    frees it when the daemon is gone, however it went, and whoever waits takes over.
    """
    descriptor = os.open(home().dagster / "daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.set_inheritable(descriptor, True)
    os.execv(sys.executable, [sys.executable, "-m", "dagster._daemon", "run", *MODULE])


if __name__ == "__main__":
    become_daemon()
