"""`synth discover`: private discoveries of a cohort's contrasts or of a genotype study's phenotypes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

import dagster as dg
import typer
from rich.table import Table

from resources.artefacts import CONTENT, read_artefact
from resources.cohorts import Registered
from resources.home import HomeResource, SynthHome
from resources.private import fingerprint_key
from synth_platform.cli.app import VERDICT_FAILED, Json, app, console, home, print_json
from synth_platform.cli.run_commands import report_failures
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.release.discovery import DISCOVERY_STAGE, ELIGIBLE, GWAS_STAGE

SHOWN, BESIDE = 40, 5  # discoveries on a screen, and others that were selected


@app.command()
def discover(
    cohort: Annotated[str, typer.Argument(help="A registered cohort or genotype study.")],
    contrast: Annotated[list[str] | None, typer.Option(help="A contrast or phenotype; may be given again.")] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy of each contrast (Gaussian DP).")] = None,
    alpha: Annotated[float | None, typer.Option(help="False discovery rate.")] = None,
    size: Annotated[int | None, typer.Option(help="Select so many hypotheses, instead of choosing how many.")] = None,
    as_json: Json = False,
) -> None:
    """Which features or variants carry signal, with a privacy guarantee and false discovery control.

    All contrasts on their registered terms, unless others are asked for. Exit code 1 if a list is blocked.
    """
    from synth_platform.cli.runner import Runner

    runner = Runner(home(), console(stderr=as_json))
    spec = runner.registry.registered(cohort)
    plans = [_terms(spec.plan_of(name), mu, alpha, size) for name in contrast or spec.contrasts]
    if not plans:
        raise CohortSpecError(
            f"cohort {cohort!r} registers no contrasts; write discovery.contrasts into its cohort.yaml"
        )
    for plan in plans:
        spec.discovery_plan(plan.key)
    runner.add_cohort(spec)
    report_failures(runner.discover(spec, plans))
    found = [read_list(home(), spec, plan.key) for plan in plans]
    if as_json:
        print_json(found)
    else:
        for document in found:
            show_list(document)
    if any(document["decision"] != ELIGIBLE for document in found):
        raise typer.Exit(VERDICT_FAILED)


def read_list(place: SynthHome, spec: Registered, plan: str) -> dict[str, Any]:
    """What `synth discover --json` tells of one plan: cost, method, list, decision. All of it may leave."""
    stage = stage_of(spec)
    stored = {
        name: _stored(place, stage, name, spec.name, plan) for name in ("private_e_values", "discoveries", "decision")
    }
    e_values, discoveries, decision = (stored[name] for name in stored)
    package = place.released / f"{spec.name}-{stage}-{plan}"
    return {
        "cohort": spec.name,
        "contrast": decision["contrast"],
        "plan": plan,
        "mu": decision["mu"],
        "epsilon": decision["epsilon"],
        "delta": decision["delta"],
        "alpha": discoveries["alpha"],
        "statistic": e_values["statistic"]["name"],
        "hypotheses": e_values["hypotheses"],
        "method": e_values["method"],
        "size": e_values["size"],
        "discoveries": [_line(line) for line in discoveries["list"] if line["discovered"]],
        "selected": [_line(line) for line in discoveries["list"] if not line["discovered"]],
        "entries": e_values["entries"],
        "decision": decision["decision"],
        "reasons": decision["reasons"],
        "package": str(package) if package.is_dir() else None,
    }


def stage_of(spec: Registered) -> str:
    """Where the discoveries of a cohort or study are made."""
    return GWAS_STAGE if isinstance(spec, GenotypeSpec) else DISCOVERY_STAGE


def show_list(document: Mapping[str, Any]) -> None:
    """One list as a table."""
    screen, found = console(), len(document["discoveries"])
    title = (
        f"{document['cohort']} · {document['contrast']}: {found} discoveries of "
        f"{document['hypotheses']} at FDR {document['alpha']:g}"
    )
    table = Table("rank", "feature", "private log e-value", "discovered", title=title, title_justify="left")
    lists = (("yes", document["discoveries"], SHOWN, 1), ("no", document["selected"], BESIDE, 1 + found))
    for said, lines, limit, first in lists:
        for rank, line in enumerate(lines[:limit], start=first):
            table.add_row(str(rank), line["feature"], f"{line['log_e']:.2f}", said)
    screen.print(table)
    if more := document["size"] - table.row_count:
        screen.print(f"and {more} more that were selected: --json has all", highlight=False)
    reasons = f" ({', '.join(document['reasons'])})" if document["reasons"] else ""
    screen.print(
        f"mu {document['mu']:g} (epsilon {document['epsilon']:.3g} at delta {document['delta']:g}), "
        f"{document['statistic']}, {document['method']} size {document['size']}, ledger entries "
        f"{', '.join(document['entries'])}\n{document['decision']}{reasons}"
        + (f": {document['package']}" if document["package"] else ""),
        highlight=False,
    )


def _terms(plan: DiscoveryPlan, mu: float | None, alpha: float | None, size: int | None) -> DiscoveryPlan:
    """A plan on other terms than the registered ones. Raises CohortSpecError for what cannot be a plan."""
    if mu is not None and not (0 < mu < math.inf and round(mu, 6) == mu):
        raise CohortSpecError(f"--mu {mu:g}: mu must be > 0 and finite, at six decimals, at least 0.000001")
    if alpha is not None and not (0 < alpha < 1 and round(alpha, 6) == alpha):
        raise CohortSpecError(f"--alpha {alpha:g}: the false discovery rate lies between 0 and 1, at six decimals")
    if size is not None and size < 1:
        raise CohortSpecError(f"--size {size}: at least one hypothesis has to be selected")
    other = {"mu": mu, "alpha": alpha, "size": size}
    return replace(plan, **{name: value for name, value in other.items() if value is not None})  # type: ignore[arg-type]


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"feature": line["feature"], "log_e": line["log_e"]}


def _stored(place: SynthHome, stage: str, name: str, cohort: str, plan: str) -> Mapping[str, Any]:
    folder = place.artefact(dg.AssetKey([stage, name]), cohort, plan)
    if not (folder / CONTENT).exists():
        raise CohortSpecError(f"{stage}/{name} of {cohort}, {plan} is not there; run synth discover {cohort} again")
    return cast(Mapping[str, Any], read_artefact(folder, fingerprint_key(HomeResource(root=str(place.root)))))
