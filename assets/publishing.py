"""What every release does: held back while anything speaks against it, else written, verified and registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from synth_platform.release.folder import verify_package
from synth_platform.release.reaudit import package_checksum
from synth_platform.release.rederive import NotRederivedError
from synth_platform.release.register import ReleaseRegister, Terms


def held_back(
    context: dg.AssetExecutionContext, released: Path, name: str, decision: Mapping[str, Any], called: str
) -> bool:
    """Whether a decision is BLOCKED, which the log tells, and whether its package has to be withdrawn.

    called: what the log calls it.
    """
    if decision["decision"] != "BLOCKED":
        return False
    context.log.warning(f"{called} is BLOCKED, nothing is released: {', '.join(decision['reasons'])}")
    if (released / name).exists():
        context.log.error(f"{name} was released under an earlier decision; withdraw it")
    return True


def require_none(problems: Sequence[str]) -> None:
    """Raise Failure where checks do not stand, or assets or the audit are of other content."""
    if problems:
        raise dg.Failure(f"nothing is released: {'; '.join(problems)}; run the plan again", allow_retries=False)


@contextmanager
def deriving_again() -> Iterator[None]:
    """What is stored and does not follow from files and ledger is a Failure that says what."""
    try:
        yield
    except NotRederivedError as error:
        raise dg.Failure(f"nothing is released: {error}", allow_retries=False) from error


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
