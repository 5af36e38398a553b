"""What every release does once nothing speaks against it: written, verified and entered in the register."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from synth_platform.release.folder import verify_package
from synth_platform.release.reaudit import package_checksum
from synth_platform.release.register import ReleaseRegister, Terms


def publish(
    releases: ReleaseRegister,
    write: Callable[[], Path],
    *,
    name: str,
    cohort: str,
    generator: str,
    plan: str,
    table: str,
    terms: Terms,
) -> Path:
    """Write the package of a release that nobody recalled, verify it and record it. table: SHA-256 of table.parquet.

    Raises RegisterError before anything is written where the name or the table was recalled.
    """
    releases.require_open(name, table)
    package = write()
    verify_package(package)
    releases.record(
        name=name,
        cohort=cohort,
        generator=generator,
        plan=plan,
        checksum=package_checksum(package),
        table=table,
        terms=terms,
    )
    return package
