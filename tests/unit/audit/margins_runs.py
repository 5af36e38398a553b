"""Small real runs of both margins policies, made by the library as production makes them, as evidence."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from synth_platform.contract.census_spec import CensusSpec, DpPlan, SdcPlan
from synth_platform.margins.disclosure.plan import audit_released
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.tables import table_utility
from synth_platform.margins.noise.declared import in_declared
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.margins.planned import NOT_ASSESSED, model, protect, tables
from synth_platform.margins.reading.curate import curate
from synth_platform.margins.replicates import stacked
from synth_platform.margins.rows import Rows
from synth_platform.margins.utility import PropensityUtility, Utility
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.margins import decide_coarsened, decide_noisy, violations_of
from synth_platform.release.margins_evidence import write_margins_evidence
from synth_platform.release.margins_package import write_margins_package
from synth_platform.release.margins_rederive import bought

Document = dict[str, Any]
CATEGORIES = {
    "age": ["0-15", "16-24", "25-44", "45-64", "65+"],
    "sex": ["f", "m"],
    "region": [f"region {at}" for at in range(6)],
    "marital status": ["single", "married", "widowed"],
}
EPSILON, DELTA = 4.0, 1e-6


def people(rows: int = 3_000, seed: int = 1) -> pl.DataFrame:
    """Children are single, older people live in later regions, and few people in the last of them."""
    draw = np.random.default_rng(seed)
    age, sex = draw.integers(0, 5, rows), draw.integers(0, 2, rows)
    region = np.minimum(draw.poisson(1 + age * 0.5), 5)
    marital = np.where(age == 0, 0, draw.integers(0, 3, rows) * (draw.random(rows) < 0.2 + 0.2 * age))
    codes = zip(CATEGORIES.items(), (age, sex, region, marital), strict=True)
    return pl.DataFrame({name: [labels[at] for at in code] for (name, labels), code in codes})


def spec(
    *,
    policy: str = "sdc",
    dua_tag: str = "RELEASE_REVIEWED",
    margins: Any = "two_way",
    margins_of: str = "declared",
    publication: str = "statuses_only",
    **plan: Any,
) -> CensusSpec:
    """A census cohort of `people` with one plan, p. margins: of the recipe; margins_of: of a plan of policy dp."""
    noisy = policy == "dp"
    return CensusSpec.model_validate(
        {
            "name": "c",
            "kind": "census",
            "title": "Test",
            "dua_tag": dua_tag,
            "publication": publication,
            "source": {"microdata": "a census.csv"},
            "recipe": {
                "variables": {name: {"categories": labels} for name, labels in CATEGORIES.items()},
                "structural_zeros": [{"age": ["0-15"], "marital status": ["married", "widowed"]}],
                "margins": margins,
            },
            "privacy": {"domain": "d", "n_ref": 10_000, "budget": {"epsilon": 2 * EPSILON, "delta": DELTA}},
            "plans": {
                "p": {"policy": policy, **({"epsilon": EPSILON, "margins": margins_of} if noisy else {}), **plan}
            },
        }
    )


def compared(real: Rows, synthetic: Rows, margins: MarginSet) -> Document:
    """The utility document of `planned.compare`, with models that nobody fitted: they take seconds."""
    names = [margin.names for margin in margins]
    model_of = PropensityUtility(0.02, 0.01, 2.0, 0.1)
    measured = Utility(
        Compared(real, synthetic).independent_sample,
        tuple(table_utility(real, synthetic, 2, names)),
        tuple(table_utility(real, synthetic, 3, names)) if len(real.domain.variables) > 2 else (),
        model_of,
        model_of,
    )
    document = measured.document()
    bands = {table["band"] for table in document["two_way"] if table["preserved"]}
    worst = [band for band in ("poor", "acceptable", "good") if band in bands]
    return {**document, "status": worst[0] if worst else NOT_ASSESSED}


def coarsened_evidence(
    home: Path | None = None, *, frame: pl.DataFrame | None = None, real: bool = True, **options: Any
) -> Document:
    """What production stores of a plan of policy sdc. home: where its package is written, None for none."""
    own = spec(**options)
    plan = own.plan("p")
    assert isinstance(plan, SdcPlan)
    curated = curate(people() if frame is None else frame, own.recipe, "a census.csv")
    counted = curated.margin_set()
    protected = protect(counted, plan)
    # In fractions: programs of whole people take seconds.
    disclosure = audit_released(counted, plan, method="relaxation").document()
    fitted = model(protected, plan)
    synthetic = tables(fitted, plan)
    utility = (
        compared(curated.rows, synthetic[0], protected) if real else {"zone": "restricted", "status": NOT_ASSESSED}
    )
    decision = decide_coarsened(
        spec=own,
        plan="p",
        disclosure=disclosure,
        fit=fitted.report,
        violations=violations_of(stacked(synthetic), protected, plan),
        utility=utility,
    )
    package = None
    if home is not None:
        package = write_margins_package(
            home,
            name="c-margins-p",
            spec=own,
            stage="margins",
            protected=protected,
            fit=fitted.report,
            synthetic=stacked(synthetic),
            disclosure=disclosure,
            utility=utility,
            decision=decision,
        )
    return write_margins_evidence(
        spec=own,
        stage="margins",
        plan="p",
        counted=counted,
        real=curated.rows if real else None,
        protected=protected,
        disclosure=disclosure,
        fitted=fitted,
        synthetic=synthetic,
        utility=utility,
        decision=decision,
        measured=None,
        ledger=None,
        store=None,
        package=package,
    )


def noisy_evidence(home: Path, *, noise: NoiseSource | None = None, package: bool = False, **options: Any) -> Document:
    """What production stores of a plan of policy dp, with a ledger and a store under home."""
    own = spec(policy="dp", **options)
    plan, privacy = own.plan("p"), own.privacy
    assert isinstance(plan, DpPlan)
    assert privacy is not None
    ledger, store = Ledger(f"sqlite:///{home}/ledger.db"), StatisticStore(home / "statistics")
    ledger.set_budget("d", privacy.budget.epsilon, privacy.budget.delta)
    real = curate(people(), own.recipe, "a census.csv").rows
    closed = seal(
        real, key=FingerprintKey(bytes(32)), digest=lambda rows: hashlib.sha256(rows.codes.tobytes()).digest()
    )
    curator = Curator(ledger, store, noise or CryptographicNoise(), domain="d", cohort="c", run_id="run-1")
    margins, releases = bought(own, plan, lambda query: closed.measure(query, curator))
    measured = NoisyMargins(
        margins,
        tuple(release.entry_id for release in releases),
        any(release.source == "seeded" for release in releases),
        (),
        closed.fingerprint,
    )
    fitted = model(margins, plan)
    synthetic = tables(fitted, plan)
    real = in_declared(real, margins.domain)
    utility = compared(real, synthetic[0], margins)
    decision = decide_noisy(
        spec=own,
        plan="p",
        measured=measured,
        fit=fitted.report,
        violations=violations_of(stacked(synthetic), margins, plan),
        utility=utility,
        ledger=ledger,
        store=store,
    )
    folder = None
    if package:
        folder = write_margins_package(
            home / "released",
            name="c-dp_margins-p",
            spec=own,
            stage="dp_margins",
            protected=margins,
            fit=fitted.report,
            synthetic=stacked(synthetic),
            disclosure=None,
            utility=utility,
            decision=decision,
            ledger_table=ledger.table(),
        )
    return write_margins_evidence(
        spec=own,
        stage="dp_margins",
        plan="p",
        counted=None,
        real=real,
        protected=margins,
        disclosure=None,
        fitted=fitted,
        synthetic=synthetic,
        utility=utility,
        decision=decision,
        measured=measured,
        ledger=ledger,
        store=store,
        package=folder,
    )
