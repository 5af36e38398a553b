"""What `synth margins` does without any cohort folder: the platform's own functions, from a file to a decision."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import typer

from resources.home import HomeResource, SynthHome
from resources.ledger import home_ledger, statistic_store
from resources.private import close_census, fingerprint_key
from synth_platform.contract.census_spec import CensusSpec, DpPlan, SdcPlan
from synth_platform.margins.fitting.fitted import Fitted
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.declared import declared_domain, in_declared
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.margins.planned import compare, judge, model, protect, tables
from synth_platform.margins.reading.census import Microdata, read_census
from synth_platform.margins.replicates import stacked
from synth_platform.margins.rows import Rows
from synth_platform.privacy.affordable import require_affordable
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.noise import CryptographicNoise
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import unledgered
from synth_platform.release.margins import decide_coarsened, decide_noisy, violations_of
from synth_platform.release.margins_card import UNREGISTERED
from synth_platform.release.margins_rederive import bought, counted

Document = Mapping[str, Any]


OTHER_SIGNS = ";\t|"


class MarginsError(ValueError):
    """What was asked of `synth margins` cannot be done; the message says what to do."""


@dataclass(frozen=True, eq=False)
class Made:
    """The tables of a plan and what the platform stores beside them; ledger: its rows, of policy `dp` alone."""

    protected: MarginSet
    fitted: Fitted
    synthetic: pl.DataFrame
    disclosure: Document | None
    utility: Document
    decision: Document
    ledger: Sequence[Document] = ()


@contextmanager
def step(what: str) -> Iterator[None]:
    """Tell a step on standard error, and what it took."""
    typer.echo(f"{what} … ", err=True, nl=False)
    start = time.monotonic()
    try:
        yield
    except BaseException:
        typer.echo("", err=True)
        raise
    typer.echo(f"{time.monotonic() - start:.1f} s", err=True)


def plural(number: int, what: str) -> str:
    """Two tables, one table."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@contextmanager
def readable() -> Iterator[None]:
    """Errors of library code, whose messages are made of public names, as errors of this command."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise MarginsError(str(error)) from error


def read_source(spec: CensusSpec, folder: Path) -> Microdata | MarginSet:
    """The source of a census in `folder`.

    Raises as `read_census` does, and MarginsError for a file that is split at other signs than commas, or a variable
    named count, which could not be told from the counts of the released margins.
    """
    with quiet_errors("reading the file", readable=(ValueError,)):
        census = read_census(spec, folder)
    domain = census.domain if isinstance(census, MarginSet) else census.curated.rows.domain
    if len(domain.names) == 1 and any(sign in domain.names[0] for sign in OTHER_SIGNS):
        raise MarginsError(
            f"{spec.source.microdata} has one column, {domain.names[0]!r}: CSV is split at commas, not at other signs; "
            "write it again with commas"
        )
    return census


def disclosed(spec: CensusSpec, plan: SdcPlan, census: Microdata | MarginSet) -> tuple[MarginSet, Document]:
    """Coarsened margins, and what can be inferred of them. Raises ValueError as `protect` does."""
    with quiet_errors("counting margins", readable=(ValueError,)):
        margins = counted(spec, census if isinstance(census, MarginSet) else census.curated.rows)
        return protect(margins, plan, spec.counted_by), judge(margins, plan, spec.source.totals)


def make_coarsened(
    spec: CensusSpec, name: str, census: Microdata | MarginSet, protected: MarginSet, disclosure: Document
) -> Made:
    """The tables of plan `name` of policy `sdc`, whose margins passed the audit."""
    plan = spec.plan(name)
    real = None if isinstance(census, MarginSet) else census.curated.rows
    fitted, synthetic, utility = _synthesised(protected, plan, real)
    decision = decide_coarsened(
        spec=spec,
        plan=name,
        disclosure=disclosure,
        fit=fitted.report,
        violations=violations_of(synthetic, protected, plan),
        utility=utility,
    )
    return Made(protected, fitted, synthetic, disclosure, utility, _unregistered(decision))


def make_noisy(spec: CensusSpec, name: str, census: Microdata, home: SynthHome) -> Made:
    """The tables of plan `name` of policy `dp`, paid for in the home's ledger.

    A domain without a cap gets that of `spec`. Raises UndeclaredError or OtherCategoriesError before anything is
    asked, and LedgerError, such as BudgetExceeded, before anything is drawn.
    """
    plan, privacy = spec.plan(name), spec.privacy
    if not isinstance(plan, DpPlan) or privacy is None:
        raise MarginsError(f"plan {name!r} is of policy {plan.policy}, not dp")
    real = in_declared(census.curated.rows, declared_domain(spec.recipe))
    ledger, store = home_ledger(home), statistic_store(home)
    with step("buying noisy margins"):
        rows = close_census(census, fingerprint_key(HomeResource(root=str(home.root))))
        for entry in ledger.entries():
            if entry.input_fingerprint == rows.source and entry.domain != privacy.domain:
                raise MarginsError(
                    f"the people of {spec.source.microdata} are charged to privacy domain {entry.domain!r} already, "
                    f"and have one budget; say --domain {entry.domain}"
                )
        if privacy.domain not in ledger.domains():
            ledger.set_budget(privacy.domain, privacy.budget.epsilon, privacy.budget.delta)
        curator = Curator(
            ledger,
            store,
            CryptographicNoise(),
            domain=privacy.domain,
            cohort=spec.name,
            run_id=f"synth-margins-{uuid.uuid4().hex}",
        )
        require_affordable(lambda ask: bought(spec, plan, ask), rows, curator, ledger, privacy.domain)
        margins, releases = bought(spec, plan, lambda query: rows.measure(query, curator))
        measured = NoisyMargins(
            margins,
            entries=tuple(release.entry_id for release in releases),
            seeded=any(release.source == "seeded" for release in releases),
            unledgered=unledgered(rows.accesses),
            rows=rows.fingerprint,
        )
    fitted, synthetic, utility = _synthesised(margins, plan, real)
    decision = decide_noisy(
        spec=spec,
        plan=name,
        measured=measured,
        fit=fitted.report,
        violations=violations_of(synthetic, margins, plan),
        utility=utility,
        ledger=ledger,
        store=store,
    )
    return Made(margins, fitted, synthetic, None, utility, _unregistered(decision), ledger.table())


def _synthesised(
    protected: MarginSet, plan: SdcPlan | DpPlan, real: Rows | None
) -> tuple[Fitted, pl.DataFrame, Document]:
    with step(
        f"fitting {plural(len(protected.margins), 'margin')} of {plural(len(protected.domain.variables), 'variable')}"
    ):
        fitted = model(protected, plan)
    with step("drawing tables"):
        drawn = tables(fitted, plan)
    if real is None:
        return fitted, stacked(drawn), compare(None, drawn[0], protected, plan)
    with step("comparing with the rows"), quiet_errors("comparing with the rows", readable=(ValueError,)):
        return fitted, stacked(drawn), compare(real, drawn[0], protected, plan)


def _unregistered(decision: dict[str, Any]) -> dict[str, Any]:
    return {**decision, "notes": [*decision["notes"], UNREGISTERED]}
