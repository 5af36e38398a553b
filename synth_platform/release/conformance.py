"""The conformance document: what the code of this platform says to fixed questions with known answers (8-1 §3.6 G2).

It is about the code that runs, not about a cohort: no private row is read, and every draw is seeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import product
from typing import Any, get_args

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

from synth_platform.contract.options import G0Options
from synth_platform.contract.tables import CohortTables, split_public
from synth_platform.contract.validate import validate
from synth_platform.evaluation.closest_record import ClosestRecordStatus
from synth_platform.evaluation.evidence import rounded
from synth_platform.evaluation.membership import MembershipStatus, required_rows
from synth_platform.evaluation.preservation import UtilityStatus, judge
from synth_platform.generators.g0 import G0
from synth_platform.generators.protocol import PrivacyTarget
from synth_platform.normalize.batch import batch_variance_ratio, fit_batch
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.accounting import (
    calibrate_dpsgd,
    epsilon_rdp,
    gaussian_epsilon,
    rho_from_epsilon,
)
from synth_platform.privacy.bounds import epsilon_for_auroc, membership_auroc_bound
from synth_platform.privacy.formal import FormalStatus
from synth_platform.release.conformance_cases import PRESERVATION_CASES, SCHEMA_CASES, conformance_spec
from synth_platform.release.evidence import sealed
from synth_platform.release.rule import decide
from synth_platform.sources.virtual import draw_cohort
from synth_platform.trials.stage import seeded_ask

FORMAT = "synth-conformance-1"
Document = dict[str, Any]

# 8-1 §2.5: n_ref, B, T, delta. A fifth of each target goes to the statistics of stage B1.
DPSGD_PLANS: Mapping[str, tuple[int, int, int, float]] = {
    "TCGA_BRCA_LATENT": (372, 62, 360, 1e-5),
    "MIMIC_IV_SUBJECT": (50_000, 1_000, 1_500, 1e-6),
}
TARGETS = (1.0, 3.0, 8.0)
LIMIT = 0.55
_EMPTY_SEED = 8_137


def conformance() -> Document:
    """The sealed conformance document; about a second."""
    spec = conformance_spec(train=240, holdout=24, test=24, public=300)
    public, private = split_public(draw_cohort(spec), spec)
    reference = build_reference(public, spec)
    rows = reference.encoder.encode(private).where_split("train")
    return sealed(
        {
            "format": FORMAT,
            "schema_cases": dict(_schema_cases()),
            "preservation_cases": dict(_preservation_cases()),
            "release_rule": list(_release_rule()),
            "dpsgd_plans": list(_dpsgd_plans()),
            "gaussian_costs": list(_gaussian_costs()),
            "auroc_bounds": list(_auroc_bounds()),
            "required_rows": [
                {"limit": LIMIT, "attacks": attacks, "rows": required_rows(LIMIT, attacks)} for attacks in (1, 2, 3)
            ],
            "batch_effect": _batch_effect(rows, reference, spec.reference.minimum_batch),
            "empty_data": list(_empty_data(rows, reference)),
        }
    )


def _schema_cases() -> Iterator[tuple[str, Document]]:
    spec = conformance_spec(train=6, holdout=0, test=6, public=6)
    valid = draw_cohort(spec)
    for name, (table, change) in SCHEMA_CASES.items():
        tables: CohortTables = replace(valid, **{table: change(valid.frame(table))})
        report = validate(tables, spec)
        # An unregistered column is told by its position; the words after it are for people.
        findings = [[r.code, r.table, (r.column or "").split(" ")[0], r.count] for r in report.rejections]
        yield (
            name,
            {
                "findings": sorted(findings),
                "rows": valid.manifest.height,
                "accepted": report.accepted.manifest.height,
            },
        )


def _preservation_cases() -> Iterator[tuple[str, Document]]:
    for name, case in PRESERVATION_CASES.items():
        synthetic, real = case.groups()
        judged = judge(tstr=case.tstr, trtr=case.trtr, tstr_groups=synthetic, trtr_groups=real, chance=case.chance)
        asked = {"tstr": case.tstr, "trtr": case.trtr, "chance": case.chance}
        yield name, {"asked": asked | {"tstr_groups": synthetic, "trtr_groups": real}, "judged": asdict(judged)}


def _release_rule() -> Iterator[Document]:
    statuses = product((0, 3), *map(get_args, (UtilityStatus, ClosestRecordStatus, MembershipStatus, FormalStatus)))
    for violations, utility, closest_record, membership, formal in statuses:
        given = {"utility": utility, "closest_record": closest_record, "membership": membership, "formal": formal}
        rule = decide(schema_violations=violations, **given)
        yield {"violations": violations, **given, "decision": rule.decision, "reasons": list(rule.reasons)}


def _dpsgd_plans() -> Iterator[Document]:
    for name, (n_ref, batch, steps, delta) in DPSGD_PLANS.items():
        for target in (*TARGETS, epsilon_for_auroc(LIMIT, delta)):
            prior = rho_from_epsilon(target / 5, delta)
            q = batch / n_ref
            sigma = calibrate_dpsgd(epsilon=target, delta=delta, sampling_rate=q, steps=steps, prior_rho=prior)
            step = PoissonSampledDpEvent(q, GaussianDpEvent(sigma))
            events = [SelfComposedDpEvent(step, steps), GaussianDpEvent((2 * prior) ** -0.5)]
            yield {
                "plan": name,
                "n_ref": n_ref,
                "batch": batch,
                "steps": steps,
                "delta": delta,
                "target": target,
                "prior_rho": prior,
                "sigma": sigma,
                "epsilon_rdp": epsilon_rdp(events, delta),
            }


def _gaussian_costs() -> Iterator[Document]:
    for mu, delta in product((0.05, 0.2506, 1.0, 2.5), (1e-5, 1e-6)):
        events = [GaussianDpEvent(1 / mu)]
        yield {
            "mu": mu,
            "delta": delta,
            "epsilon_pld": gaussian_epsilon(mu, delta),
            "epsilon_rdp": epsilon_rdp(events, delta),
        }


def _auroc_bounds() -> Iterator[Document]:
    for epsilon, delta in product((0.0, 0.2, 1.0, 2.0, 3.0, 8.0), (0.0, 1e-5)):
        yield {"epsilon": epsilon, "delta": delta, "bound": membership_auroc_bound(epsilon, delta)}


def _batch_effect(rows: EncodedRows, reference: PublicReference, minimum_batch: int) -> Document:
    """eta^2 of the batches over the omics columns, before and after the real arm's correction, with the cells."""
    columns = reference.encoder.omics_columns
    corrected = fit_batch(rows, columns=columns, minimum_batch=minimum_batch).apply(rows)
    return {
        "batch": rounded(rows.batch),
        "before": rounded(rows.x[:, columns]),
        "after": rounded(corrected.x[:, columns]),
        "eta_squared_before": round(batch_variance_ratio(rows, columns), 6),
        "eta_squared_after": round(batch_variance_ratio(corrected, columns), 6),
    }


def _empty_data(rows: EncodedRows, reference: PublicReference) -> Iterator[Document]:
    """What G0 measures where nobody is there: noise of the full dimension, or the emptiness itself would show."""
    target = PrivacyTarget(epsilon=2.0, delta=1e-5)
    generator = G0(reference=reference, options=G0Options(), target=target)
    for release in generator.measure(seeded_ask(rows.take(slice(0, 0)), _EMPTY_SEED)):
        yield {
            "code": release.code,
            "sensitivity": release.sensitivity,
            "sigma": release.sigma,
            "values": rounded(release.values),
        }
