"""`synth margins`: safe synthetic tables from one file or from a folder of tables, without any cohort folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from synth_platform.cli.app import VERDICT_FAILED, Json, app, console, fail, home, print_json, shown
from synth_platform.contract.census_spec import CensusSpec, SdcPlan, Variant, Zeros
from synth_platform.release.folder import CHECKSUMS, verify_package

DP = "Differential privacy instead of coarsening"


@app.command()
def margins(
    file: Annotated[Path | None, typer.Argument(help="Microdata: one CSV, CSV.GZ or Parquet file.")] = None,
    tables: Annotated[Path | None, typer.Option(help="Published tables instead: their folder, or a package.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where results go: a new or an empty folder.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="recipe.yaml: how columns become categories.")] = None,
    limit: Annotated[int | None, typer.Option(help="People that a count needs.", min=2, show_default="10")] = None,
    variant: Annotated[
        Variant | None, typer.Option(help="How counts are made coarse.", show_default="coarsened")
    ] = None,
    zeros: Annotated[Zeros | None, typer.Option(help="Combinations without people.", show_default="lifted")] = None,
    totals: Annotated[
        Literal["equal", "differ"] | None,
        typer.Option(help="Of --tables: those that were rounded differ.", show_default="equal"),
    ] = None,
    dp_epsilon: Annotated[
        float | None, typer.Option(help="Noise at this ε on the margins, paid for in the ledger.", rich_help_panel=DP)
    ] = None,
    people: Annotated[
        int | None, typer.Option(help="How many there are, a public, rounded number.", min=2, rich_help_panel=DP)
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="Whose budget pays.", show_default="the file's name", rich_help_panel=DP)
    ] = None,
    replicates: Annotated[int, typer.Option(help="Synthetic tables to draw.", min=1, max=100)] = 1,
    rows: Annotated[int | None, typer.Option(help="Rows of each.", min=1, show_default="people in the margins")] = None,
    seed: Annotated[int, typer.Option(help="Of the drawing; public.", min=0)] = 1,
    as_json: Json = False,
) -> None:
    """Synthetic tables from microdata or published tables: coarsened, audited, fitted, drawn, with a card.

    OUT/released holds what may leave, OUT/restricted figures of private rows. Exit code 1 if nothing may leave.
    """
    if (file is None) == (tables is None):
        fail("give FILE (microdata) or --tables FOLDER (published tables), one of them")
    if out is None:
        fail("--out: name a new folder for the results")
    coarsening = {"limit": limit, "variant": variant, "zeros": zeros}
    if dp_epsilon is None:
        _refuse({"people": people, "domain": domain}, "it belongs to --dp-epsilon; add that or leave it out")
        plan: dict[str, Any] = {"policy": "sdc", **coarsening}
    else:
        if tables is not None:
            fail("--dp-epsilon: noise is added to counts of rows; published tables are counted already, so give FILE")
        _refuse(coarsening, "--dp-epsilon adds noise and coarsens nothing; leave one of them out")
        if people is None:
            fail("--people: with --dp-epsilon give the number of people, public and rounded; δ has to be below 1 in it")
        plan = {"policy": "dp", "epsilon": dp_epsilon}
    if tables is None:
        _refuse({"totals": totals}, "microdata have one total; leave it out")
    _require_usable(out)
    plan |= {"replicates": replicates, "rows": rows, "seed": seed}

    from synth_platform.cli.margins_run import readable
    from synth_platform.cli.margins_spec import privacy_of, spec_of

    with readable(), _source(file, tables) as (source, package):
        privacy = None
        if dp_epsilon is not None and people is not None:
            privacy = privacy_of(home(), source, dp_epsilon, people, domain)
        told = None if tables is None else totals or ("differ" if package else "equal")
        spec = spec_of(source, totals=told, recipe=recipe, plan=plan, privacy=privacy)
        document = _run(spec, source.parent, out)
    if as_json:
        print_json(document)
    else:
        from synth_platform.cli.margins_report import summary

        screen = console()
        for line in summary(document):
            screen.print(shown(line), soft_wrap=True)
    if document["released"] is None:
        raise typer.Exit(VERDICT_FAILED)


def _run(spec: CensusSpec, folder: Path, out: Path) -> dict[str, Any]:
    """Read, protect, judge, make and write; the document of `report`."""
    from synth_platform.cli.margins_advice import advice, swollen
    from synth_platform.cli.margins_report import report, write_released, write_restricted
    from synth_platform.cli.margins_run import MarginsError, disclosed, make_coarsened, make_noisy, read_source, step
    from synth_platform.margins.margin import MarginSet

    (name, plan), *_ = spec.plans.items()
    with step(f"reading {spec.source.microdata or spec.source.tables}"):
        census = read_source(spec, folder)
    made, disclosure, said = None, None, list[str]()
    if isinstance(plan, SdcPlan):
        with step("coarsening margins and auditing what they disclose"):
            protected, disclosure = disclosed(spec, plan, census)
        if disclosure["status"] == "PASS":
            said = swollen(protected, plan)
            for line in said:
                typer.echo(f"warning: {line}", err=True)
            made = make_coarsened(spec, name, census, protected, disclosure)
        else:
            with step("looking for what would pass"):
                said = advice(spec, name, folder, disclosure)
    elif isinstance(census, MarginSet):
        raise MarginsError("published tables are counted already; policy dp adds noise to counts of rows")
    else:
        made = make_noisy(spec, name, census, home())
        protected = made.protected
    with step("writing"):
        out.mkdir(parents=True, exist_ok=True)
        restricted = write_restricted(out, spec, census, disclosure, made)
        package = None if made is None else write_released(out, spec, name, made)
    return report(spec, name, protected, disclosure, made, package=package, restricted=restricted, advice=said)


@contextmanager
def _source(file: Path | None, tables: Path | None) -> Iterator[tuple[Path, bool]]:
    """The file or the folder of tables, and whether the tables are those of a package of this command."""
    source = (file or tables or Path()).absolute()
    if file is not None and source.is_dir():
        fail(f"{file} is a folder; of published tables say --tables {file}")
    if tables is None or not (source / CHECKSUMS).is_file():
        yield source, False
        return
    from synth_platform.release.margins_package import released_margins

    verify_package(source)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / source.name
        folder.mkdir()
        released_margins(source, folder)
        yield folder, True


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Leave with a message about the first option that was given."""
    for name, value in options.items():
        if value is not None:
            fail(f"--{name}: {why}")


def _require_usable(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        fail(f"--out {out} is there already and not empty; results of two runs would mix: name a new folder")
    above = next(parent for parent in (out.absolute(), *out.absolute().parents) if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        fail(f"--out {out} cannot be made: {above} is no folder that you may write to; name another one")
