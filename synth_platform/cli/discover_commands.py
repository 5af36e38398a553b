"""`synth discover`: private discoveries of a cohort's contrasts or of a genotype study's phenotypes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from synth_platform.cli.app import VERDICT_FAILED, Json, app, console, home, print_json
from synth_platform.cli.discoveries import read_list, show_list
from synth_platform.cli.run_commands import report_failures
from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG, CohortSpecError
from synth_platform.contract.discovery_options import LARGEST_MU, DiscoveryPlan, impossible
from synth_platform.release.discovery import ELIGIBLE


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
    spec = runner.registry.contrasted(cohort)
    plans = [_terms(spec.plan_of(name), mu, alpha, size) for name in contrast or spec.contrasts]
    if not plans:
        raise CohortSpecError(
            f"cohort {cohort!r} registers no contrasts; write discovery.contrasts into its cohort.yaml"
        )
    for plan in plans:
        spec.discovery_plan(plan.key)
        faults = impossible(plan, spec.hypotheses_of(plan.contrast), spec.privacy.budget)
        if faults:
            raise CohortSpecError("; ".join(f"--{term}: {fault}" for term, fault in faults.items()))
    if spec.dua_tag != RELEASABLE_DUA_TAG:
        console(stderr=True).print(
            f"warning: dua_tag of {cohort!r} is {spec.dua_tag}, not {RELEASABLE_DUA_TAG}: its lists will be BLOCKED "
            "(DUA_NOT_REVIEWED), and the privacy budget is spent all the same",
            highlight=False,
            markup=False,
        )
    runner.add_cohort(spec)
    report_failures(runner.discover(spec, plans))
    found = [read_list(home(), spec, plan.key) for plan in plans]
    if as_json:
        print_json(found)
    else:
        for document in found:
            show_list(console(), document)
    if any(document["decision"] != ELIGIBLE for document in found):
        raise typer.Exit(VERDICT_FAILED)


def _terms(plan: DiscoveryPlan, mu: float | None, alpha: float | None, size: int | None) -> DiscoveryPlan:
    """A plan on other terms than the registered ones. Raises CohortSpecError for what cannot be a plan."""
    if mu is not None and not (0 < mu <= LARGEST_MU and round(mu, 6) == mu):
        raise CohortSpecError(f"--mu {mu:g}: mu must be > 0 and at most {LARGEST_MU:g}, at six decimals")
    if alpha is not None and not (0 < alpha < 1 and round(alpha, 6) == alpha):
        raise CohortSpecError(f"--alpha {alpha:g}: the false discovery rate lies between 0 and 1, at six decimals")
    if size is not None and size < 1:
        raise CohortSpecError(f"--size {size}: at least one hypothesis has to be selected")
    other = {"mu": mu, "alpha": alpha, "size": size}
    return replace(plan, **{name: value for name, value in other.items() if value is not None})  # type: ignore[arg-type]
