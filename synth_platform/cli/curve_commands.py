"""`synth curve`: what G0 and G0A preserve at every privacy target, as a table and a picture for the restricted zone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from upath import UPath

from resources.cohorts import CohortRegistry
from synth_platform.cli.app import Json, app, console, existing_folder, fail, home, print_json
from synth_platform.contract.cohort_spec import CohortSpec, load_cohort_spec
from synth_platform.contract.validate import select_registered, validate
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.sources.read import read_cohort

if TYPE_CHECKING:
    from synth_platform.trials.curve import CurvePoint

RESTRICTED = (
    "They are functions of private rows and belong in the restricted zone; the trainings behind them had seeded noise, "
    "so nothing was released and no budget was spent."
)


@app.command()
def curve(
    cohort: Annotated[str, typer.Argument(help="A registered cohort's name, or a folder with a cohort.yaml in it.")],
    out: Annotated[Path | None, typer.Option(help="Where to write, instead of the home's restricted zone.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer targets, sizes and draws: a first look.")] = False,
    as_json: Json = False,
) -> None:
    """The ε curve: preservation by G0 and G0A over targets, sizes and public shifts, between ceiling and floor.

    Writes curve-COHORT.png, .csv and .json. The ceiling is the generator without its noise (ε = 1000), the floor public
    rows alone.
    """
    from synth_platform.trials.curve import QUICK, Grid, curve_table
    from synth_platform.trials.curve import curve as points_of
    from synth_platform.trials.curve_plot import curve_png
    from synth_platform.trials.stage import make_stage

    if out is not None and out.exists() and not out.is_dir():
        fail(f"{out} is a file; --out takes a folder")
    spec, folder = _cohort(cohort)
    report = validate(select_registered(read_cohort(spec, folder), spec), spec)
    if report.cohort_rejected:
        fail(f"the contract refuses cohort {spec.name!r}; `synth cohort check {folder}` shows why")
    with quiet_errors("the epsilon curve"):
        stage = make_stage(spec, report.accepted)
        points = list(points_of(stage, QUICK if quick else Grid(), lambda said: typer.echo(f"synth: {said}", err=True)))
    table = curve_table(points)
    place = home().restricted / "curve" if out is None else UPath(out)
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"curve-{spec.name}"
    file.with_suffix(".png").write_bytes(curve_png(points, spec.title))
    file.with_suffix(".csv").write_text(table.write_csv(), encoding="utf-8")
    file.with_suffix(".json").write_text(table.write_json(), encoding="utf-8")
    if as_json:
        print_json(table.to_dicts())
        return
    console().print(_summary(points))
    typer.echo(f"wrote {file}.png, .csv and .json. {RESTRICTED}")


def _cohort(named: str) -> tuple[CohortSpec, Path]:
    folder = existing_folder(Path(named))
    if (folder / "cohort.yaml").is_file():
        return load_cohort_spec(folder / "cohort.yaml"), folder
    registry = CohortRegistry(path=str(home().cohorts))
    return registry.spec(named), registry.folder(named)


def _summary(points: Sequence[CurvePoint]) -> Table:
    """Where every generator reaches 95 %, and its ceiling, by setting and endpoint."""
    from synth_platform.trials.curve import CEILING, reached
    from synth_platform.trials.preserved import ENDPOINTS

    table = Table("setting", "generator", *ENDPOINTS, title="ε from which P ≥ .95 (and P without noise)")
    codes = dict.fromkeys(p.generator for p in points if p.epsilon is not None)
    for setting, code in itertools.product(dict.fromkeys(p.setting for p in points), codes):
        cells = []
        for endpoint in ENDPOINTS:
            own = [p for p in points if (p.setting, p.generator, p.endpoint) == (setting, code, endpoint)]
            epsilon = reached(own)
            ceiling = next(p.preservation for p in own if p.epsilon == CEILING)
            cells.append(f"{'never' if epsilon is None else f'{epsilon:g}'} ({ceiling:.3f})")
        table.add_row(", ".join(setting.words), code, *cells)
    return table
