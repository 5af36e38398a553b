"""Lists of discoveries as they are stored, for a screen and for `--json`: all of it may leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import dagster as dg
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from resources.artefacts import CONTENT, read_artefact
from resources.home import HomeResource, SynthHome
from resources.private import fingerprint_key
from synth_platform.cli.app import shown
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.contract.registered import Contrasted
from synth_platform.release.discovery import DISCOVERY_STAGE, GWAS_STAGE

SHOWN, BESIDE = 40, 5  # discoveries on a screen, and others that were selected


def read_list(place: SynthHome, spec: Contrasted, plan: str) -> dict[str, Any]:
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


def stage_of(spec: Contrasted) -> str:
    """Where the discoveries of a cohort or study are made."""
    return GWAS_STAGE if isinstance(spec, GenotypeSpec) else DISCOVERY_STAGE


def show_list(screen: Console, document: Mapping[str, Any]) -> None:
    """One list as a table."""
    found = len(document["discoveries"])
    title = (
        f"{document['cohort']} · {document['contrast']}: {found} discoveries of "
        f"{document['hypotheses']} at FDR {document['alpha']:g}"
    )
    columns = ("rank", "feature", "private log e-value", "discovered")
    table = Table(*columns, title=shown(title, "table.title"), title_justify="left")
    lists = (("yes", document["discoveries"], SHOWN, 1), ("no", document["selected"], BESIDE, 1 + found))
    for said, lines, limit, first in lists:
        for rank, line in enumerate(lines[:limit], start=first):
            table.add_row(str(rank), shown(line["feature"]), f"{line['log_e']:.2f}", said)
    screen.print(table)
    if more := document["size"] - table.row_count:
        screen.print(f"and {more} more that were selected: --json has all", highlight=False)
    reasons = f" ({', '.join(document['reasons'])})" if document["reasons"] else ""
    terms = (
        f"mu {document['mu']:g} (epsilon {document['epsilon']:.3g} at delta {document['delta']:g}), "
        f"{document['statistic']}, {document['method']} size {document['size']}, ledger entries "
        f"{', '.join(document['entries'])}"
    )
    package = f": {document['package']}" if document["package"] else ""
    screen.print(Text("\n").join([shown(terms), shown(f"{document['decision']}{reasons}{package}")]))


def lists_table(documents: Sequence[Mapping[str, Any]]) -> Table:
    """One line per list: what was asked, what it cost, what was found."""
    table = Table(
        title="Private discoveries   [not bold]μ-GDP; names of the first ones in order[/]",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for column in ("cohort", "contrast", "μ", "FDR", "selected of", "discoveries", "first", "decision"):
        table.add_column(column, justify="right" if column in ("μ", "FDR", "discoveries") else "left", no_wrap=True)
    for document in documents:
        first = ", ".join(line["feature"] for line in document["discoveries"][:3]) or "-"
        size = f"{document['size']} of {document['hypotheses']}"
        who, terms = (document["cohort"], document["contrast"]), (f"{document['mu']:g}", f"{document['alpha']:g}")
        cells = (*who, *terms, size, str(len(document["discoveries"])), first, document["decision"])
        table.add_row(*map(shown, cells))
    return table


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"feature": line["feature"], "log_e": line["log_e"]}


def _stored(place: SynthHome, stage: str, name: str, cohort: str, plan: str) -> Mapping[str, Any]:
    folder = place.artefact(dg.AssetKey([stage, name]), cohort, plan)
    if not (folder / CONTENT).exists():
        raise CohortSpecError(f"{stage}/{name} of {cohort}, {plan} is not there; run synth discover {cohort} again")
    return cast(Mapping[str, Any], read_artefact(folder, fingerprint_key(HomeResource(root=str(place.root)))))
