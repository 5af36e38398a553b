"""What `synth margins` leaves behind: files of the restricted zone, one JSON document, a summary for people."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synth_platform.cli.margins_advice import REASONS
from synth_platform.cli.margins_run import Made, plural
from synth_platform.contract.census_spec import CensusSpec
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.measures.heat_map import heat_map_png
from synth_platform.margins.measures.tables import documented
from synth_platform.margins.reading.census import Microdata
from synth_platform.release.folder import write_json
from synth_platform.release.margins import ASSURANCE, ELIGIBLE, release_name, stage_of
from synth_platform.release.margins_card import UNREGISTERED, band_counts
from synth_platform.release.margins_package import write_margins_package

Document = Mapping[str, Any]
RELEASED, RESTRICTED = "released", "restricted"


def write_restricted(
    out: Path, spec: CensusSpec, census: Microdata | MarginSet, disclosure: Document | None, made: Made | None
) -> Path:
    """Write OUT/restricted, for its owner alone: curation.json, disclosure.json, utility.json, heat_map.png."""
    folder = out / RESTRICTED
    folder.mkdir(mode=0o700)
    if isinstance(census, Microdata):
        write_json(folder / "curation.json", census.curated.report.to_json())
    if disclosure is not None:
        write_json(folder / "disclosure.json", disclosure)
    if made is not None and "two_way" in made.utility:
        write_json(folder / "utility.json", made.utility)
    if made is not None and made.utility.get("two_way"):  # a single variable has no pairs to draw
        (folder / "heat_map.png").write_bytes(_picture(made.utility, f"{spec.title}: first synthetic table"))
    return folder


def _picture(utility: Document, title: str) -> bytes:
    """The heat map of a utility document. Letters that its font lacks are boxes in it; the document has the names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        return heat_map_png(documented(utility["two_way"]), title)


def write_released(out: Path, spec: CensusSpec, name: str, made: Made) -> Path | None:
    """Write OUT/released/PACKAGE of an eligible plan; None for a blocked one."""
    stage = stage_of(spec.plan(name))
    if made.decision["decision"] != ELIGIBLE[stage]:
        return None
    return write_margins_package(
        out / RELEASED,
        name=release_name(spec.name, stage, name),
        spec=spec,
        stage=stage,
        protected=made.protected,
        fit=made.fitted.report,
        synthetic=made.synthetic,
        disclosure=made.disclosure,
        utility=made.utility,
        decision=made.decision,
        ledger_table=made.ledger,
    )


def report(
    spec: CensusSpec,
    name: str,
    protected: MarginSet,
    disclosure: Document | None,
    made: Made | None,
    *,
    package: Path | None,
    restricted: Path,
    advice: Sequence[str] = (),
) -> dict[str, Any]:
    """What `synth margins --json` prints. Figures of utility compare with private rows: for the restricted zone.

    made: None where the disclosure gate failed, and no tables were made.
    """
    plan = spec.plan(name)
    blocked = {"decision": "BLOCKED", "reasons": ["DISCLOSURE_FAIL"], "notes": [UNREGISTERED]}
    decision: Document = blocked if made is None else made.decision
    paid = decision.get("ledger")
    return {
        "name": spec.name,
        "policy": plan.policy,
        "assurance": ASSURANCE[stage_of(plan)],
        "options": plan.model_dump(mode="json"),
        "variables": len(protected.domain.variables),
        "margins": len(protected.margins),
        **{key: decision[key] for key in ("decision", "reasons", "notes")},
        "disclosure": None if disclosure is None else _disclosure(disclosure),
        "fit": None if made is None else _fit(made),
        "utility": None if made is None else _utility(made.utility),
        "rows": None if made is None else len(made.synthetic) // plan.replicates,
        "epsilon": decision.get("epsilon"),
        "delta": decision.get("delta"),
        "mu": decision.get("mu"),
        "entries": list(paid["entries"]) if paid else [],
        "released": None if package is None else str(package),
        "restricted": str(restricted),
        "advice": list(advice),
    }


def _disclosure(disclosure: Document) -> dict[str, Any]:
    told = {key: disclosure[key] for key in ("status", "reasons", "limit", "method")}
    return {**told, "tables": len(disclosure["tables"])}


def _fit(made: Made) -> dict[str, Any]:
    fit = made.fitted.report
    missed = sum(residual > fit.tolerance for residual in fit.residuals.values())
    return {
        "engine": fit.engine,
        "status": fit.status,
        "cycles": fit.cycles,
        "tolerance": fit.tolerance,
        "largest_residual": fit.largest_residual,
        "missed": missed,
        "total": fit.total,
        "effective_sample_size": made.fitted.report.effective_sample_size,
    }


def _utility(utility: Document) -> dict[str, Any]:
    if "two_way" not in utility:
        return {"status": utility["status"]}
    return {
        "status": utility["status"],
        **{size: band_counts(utility[size]) for size in ("two_way", "three_way")},
        **{model: {key: utility[model][key] for key in ("s_pmse", "band")} for model in ("logistic", "cart")},
    }


def summary(document: Document) -> list[str]:
    """The document for people, a line a thing; paths last."""
    lines = [f"{document['name']}: {document['decision']}, assurance {document['assurance']} ({_options(document)})"]
    disclosure, fit, utility = document["disclosure"], document["fit"], document["utility"]
    if disclosure is not None:
        found = "; ".join(REASONS[reason] for reason in disclosure["reasons"])
        lines.append(
            f"  disclosure  {disclosure['status']}, {plural(disclosure['tables'], 'table')} by "
            f"{disclosure['method'].replace('_', ' ')}{f': {found}' if found else ''}"
        )
    if document["entries"]:
        lines.append(
            f"  ledger      ε {document['epsilon']:g} at δ {document['delta']:g}, {', '.join(document['entries'])}"
        )
    if fit is not None:
        lines.append(
            f"  fit         {fit['engine'].replace('_', ' ')}, {fit['status'].replace('_', ' ')}; {fit['missed']:,} of "
            f"{plural(document['margins'], 'margin')} missed, by at most {fit['largest_residual']:.2g} of the people"
        )
    if utility is not None:
        lines.append(f"  utility     {_utility_words(utility)}")
    if document["rows"] is not None:
        number = document["options"]["replicates"]
        lines.append(
            f"  tables      {number} of {document['rows']:,} rows, {plural(document['variables'], 'variable')}"
        )
    lines += [f"  reasons     {', '.join(document['reasons'])}"] if document["reasons"] else []
    lines += [f"  try         {line}" for line in document["advice"]]
    lines.append(f"  may leave   {document['released'] or 'nothing'}")
    lines.append(f"  restricted  {document['restricted']}")
    return lines


def _options(document: Document) -> str:
    options = document["options"]
    if document["policy"] == "dp":
        return f"ε {options['epsilon']:g}"
    return f"{options['variant']}, limit {options['limit']}, zeros {options['zeros']}; not differential privacy"


def _utility_words(utility: Document) -> str:
    if "two_way" not in utility:
        return "not assessed: there are no rows to compare with"
    said = [
        f"{words} {', '.join(f'{number:,} {band}' for band, number in utility[size].items())}"
        for size, words in (("two_way", "pairs:"), ("three_way", "triples:"))
        if utility[size]
    ]
    models = [f"{model} S_pMSE {utility[model]['s_pmse']:.3g}" for model in ("logistic", "cart")]
    return "; ".join([*said, *models])
