"""`synth ledger show | verify | budget`, and the explicit acts `cap`, `anchor` and `new-key`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from resources.home import HomeResource, SynthHome
from resources.ledger import home_ledger, statistic_store
from resources.private import key_file
from synth_platform.cli.app import VERDICT_FAILED, Json, app, console, fail, home, print_json
from synth_platform.privacy.fingerprint import load_or_create_key
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.ledger_chain import Problem, VerifyReport
from synth_platform.privacy.statistic_store import StoredReleaseError
from synth_platform.release.folder import PackageError, verify_package

ledger = typer.Typer(no_args_is_help=True, help="The privacy ledger: every private access, and what is left.")
app.add_typer(ledger, name="ledger")
Domain = Annotated[str | None, typer.Option("--domain", help="One privacy domain only.")]


def open_ledger() -> Ledger:
    """The ledger of the home."""
    return home_ledger(home())


@ledger.command()
def show(domain: Domain = None, as_json: Json = False) -> None:
    """Every row of the chain, oldest first."""
    rows = open_ledger().table()
    if domain is not None:
        known = sorted({str(row["domain"]) for row in rows})
        rows = [row for row in rows if row["domain"] == domain]
        if not rows:
            fail(f"no row of privacy domain {domain!r}; domains are {', '.join(known) or 'none yet'}")
    if as_json:
        print_json(rows)
        return
    columns = ("id", "state", "domain", "cohort", "code", "sensitivity", "scale", "epsilon", "time", "entry_id")
    table = Table(*columns)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in columns))
    console().print(table if rows else "the ledger is empty")


@ledger.command()
def verify(as_json: Json = False) -> None:
    """Check the chain, its anchor, every stored statistic and every release; exit code 1 if anything was altered."""
    report = verify_everything(home())
    if as_json:
        print_json(report.as_dict())
    else:
        typer.echo(f"{'sound' if report.ok else 'BROKEN'}: {report.rows} rows")
        for problem in report.problems:
            typer.echo(f"  {_where(problem)}{problem.what}")
        for notice in report.notices:
            typer.echo(f"  {_where(notice)}note: {notice.what}")
    if not report.ok:
        raise typer.Exit(VERDICT_FAILED)


def verify_everything(place: SynthHome) -> VerifyReport:
    """The ledger's own report, with what is wrong with stored statistics and release packages.

    Statistics are looked up by the entries of a sound chain only: an altered one may name anything.
    """
    book = home_ledger(place)
    report = book.verify()
    problems = [*report.problems, *(_statistic_problems(place, book) if report.ok else ()), *_package_problems(place)]
    return replace(report, ok=not problems, problems=tuple(problems))


def _statistic_problems(place: SynthHome, book: Ledger) -> Iterator[Problem]:
    store = statistic_store(place)
    for entry in book.entries():
        try:
            if entry.state == "committed":
                store.load(entry)
        except StoredReleaseError as error:
            yield Problem(None, f"statistic {error}")


def _package_problems(place: SynthHome) -> Iterator[Problem]:
    for package in sorted(place.released.iterdir()):
        try:
            if package.is_dir() and not package.name.startswith("."):  # a draft of a running release begins with a dot
                verify_package(package)
        except (PackageError, OSError, ValueError) as error:
            yield Problem(None, f"release {package.name}: {error}; restore the package from a backup")


@ledger.command()
def budget(domain: Domain = None, as_json: Json = False) -> None:
    """Cap and spending of every privacy domain."""
    book = open_ledger()
    summaries = [book.budget_summary(name) for name in ([domain] if domain else book.domains())]
    if as_json:
        print_json(summaries)
        return
    table = Table("domain", "cap ε", "δ", "spent ε (RDP)", "spent ε (tight)", "μ", "left", "committed", "pending")
    for s in summaries:
        table.add_row(
            s["domain"],
            *(
                _cell(s[name])
                for name in ("cap", "delta", "spent_rdp", "spent_pld", "mu", "remaining", "committed", "reserved")
            ),
        )
    console().print(table if summaries else "no privacy domain has spent anything")


@ledger.command()
def cap(
    domain: Annotated[str, typer.Argument(help="A privacy domain of the ledger.")],
    epsilon: Annotated[float, typer.Option(help="The new cap ε.")],
    delta: Annotated[float, typer.Option(help="Its δ.")],
) -> None:
    """Change the cap of a privacy domain: the data steward's explicit act, a row of the chain and a notice for ever."""
    book = open_ledger()
    before = book.budget(domain)
    after = book.set_budget(domain, epsilon, delta, change=True)
    if before == after:
        typer.echo(f"the cap of {domain} is epsilon {epsilon:g} at delta {delta:g} already; nothing was done")
        return
    typer.echo(
        f"cap of {domain}: epsilon {before.epsilon:g} at delta {before.delta:g} -> epsilon {after.epsilon:g} at delta "
        f"{after.delta:g}. This is a row of the ledger now, and `synth ledger verify` will note it for ever.\n"
        f"Write the same figures into privacy.budget of every cohort of {domain}."
    )


@ledger.command()
def anchor() -> None:
    """Make a new head anchor in place of a lost one, after checking everything else; rows cut before do not show."""
    head = open_ledger().anchor_anew()
    typer.echo(f"anchored: {head.rows} rows, head hash {head.hash}; compare both with the last ones you noted")


@ledger.command("new-key")
def new_key() -> None:
    """Make a new fingerprint key in place of a lost one; statistics that were paid for are not recognised under it."""
    file = key_file(HomeResource(root=str(home().root)))
    if file.exists():
        fail(f"{file} is there; a key in use is not replaced")
    load_or_create_key(file)
    typer.echo(f"{file}: a new key. Requests that were paid for under the old one will be charged again.")


def _where(problem: Problem) -> str:
    return "" if problem.row is None else f"row {problem.row}: "


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
