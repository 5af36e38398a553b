"""A release once more from what the ledger paid for: nothing else in the restricted zone is believed.

Whoever may write there can edit a table, its verdicts, its decision and the event log alike, until all of them agree.
Only the noisy statistics are beyond their reach, because the ledger holds the hash of each; the rows, public and
private, are read again from the steward's own files, and the training rows must be those the ledger charged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from dp_accounting import DpEvent

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError, GeneratorCode
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE
from synth_platform.generators.build import make_generator
from synth_platform.generators.protocol import GeneratorState
from synth_platform.generators.registry import sample
from synth_platform.generators.store import state_files
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.replicates import draw_replicates
from synth_platform.normalize.rows import EncodedRows, content_digest
from synth_platform.privacy.accounting import compose
from synth_platform.privacy.figures import six_decimals
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.replay import NotPaidError, Replay
from synth_platform.privacy.statistic_store import StatisticStore, StoredReleaseError
from synth_platform.release.verdicts import CROSS_FIT_UTILITY, HALF_SPLIT, MECHANISM, POWER
from synth_platform.sources.read import read_cohort
from synth_platform.sources.tables import SourceError
from synth_platform.trials.cross_fit import cross_fit_utility, not_registered
from synth_platform.trials.half_split import dp_half_split
from synth_platform.trials.half_split_gate import half_split_document, registers_half_split
from synth_platform.trials.half_split_gate import not_registered as half_split_not_registered
from synth_platform.trials.power import gate_power
from synth_platform.trials.stage import Stage, make_stage

Document = Mapping[str, Any]


class NotRederivedError(ValueError):
    """What is stored does not follow from the statistics that the ledger paid for; the message names what differs."""


def require_rederived(
    *,
    spec: CohortSpec,
    folder: Path,
    code: GeneratorCode,
    plan_key: str,
    reference: PublicReference,
    tables: pl.DataFrame,
    state: GeneratorState,
    verdicts: Mapping[str, Document],
    power: Document,
    real: EncodedRows,
    attacked: EncodedRows,
    ledger: Ledger,
    store: StatisticStore,
    key: FingerprintKey,
) -> None:
    """Derive reference, state, tables and verdicts again and require that the stored ones are equal, to the last bit.

    folder: the cohort's folder. tables: the stored tables of all sampling seeds. verdicts: stored
    documents by name; the mechanism audit among them draws fresh noise: it must be of this generator and plan, and of
    the cost that the ledger charged. power: the cohort's `gates/power`.
    real, attacked: the stored rows the gates judged by. key: the home's, under which the ledger names private rows.
    Raises NotRederivedError, SourceError where the cohort's files cannot be read any more.
    """
    stage = stage_of_files(spec, folder)
    if not same_constants(reference, stage.reference):
        raise NotRederivedError("public/reference does not follow from the public rows of the cohort's files")
    for name, stored, derived in (("batch_corrected", real, stage.real), ("attacked", attacked, stage.attacked)):
        if content_digest(stored) != content_digest(derived):
            raise NotRederivedError(f"normalized/{name} does not follow from the rows of the cohort's files")
    generator = make_generator(code, reference, spec, spec.plan(plan_key))
    rows = key.name(content_digest(stage.rows.where_split("train")))
    try:
        releases = generator.measure(Replay(ledger, store, spec.privacy.domain, spec.name, rows).ask)
        fitted = generator.fit(releases)
    except (NotPaidError, StoredReleaseError) as error:
        raise NotRederivedError(f"{code} at plan {plan_key!r}: {error}") from error
    if tuple(release.entry_id for release in releases) != tuple(state.entries):
        raise NotRederivedError(f"{code}/checkpoint names other ledger entries than those of plan {plan_key!r}")
    if state_files(fitted) != state_files(state):
        raise _differs(f"{code}/checkpoint")
    # From the stored state, which equals the fitted one: arrays laid out otherwise in memory differ in the last bits.
    drawn = draw_replicates(
        lambda seed: sample(state, rows=spec.synthetic.rows, seed=seed), reference.encoder, spec.synthetic.seeds
    )
    if not drawn.equals(tables):
        raise _differs(f"{code}/synthetic")
    judges: dict[str, Callable[[], Document]] = {
        gate.name: partial(gate.judge, spec, reference, real, attacked, drawn) for gate in (*GATES, INFERENCE_GATE)
    }
    judges |= _designs(spec, code, spec.plan(plan_key), stage)
    for name, judge in judges.items():
        if _judged(name, judge) != verdicts[name]:
            raise _differs(f"{code}/{name}")
    if _judged(POWER, partial(gate_power, stage)) != power:
        raise NotRederivedError(f"{POWER} does not follow from the rows of the cohort's files; materialise it again")
    charged = {entry.entry_id: entry.event for entry in ledger.entries(spec.privacy.domain)}
    _require_charged(verdicts[MECHANISM], code, spec.plan(plan_key), [charged[entry] for entry in state.entries])


def _judged(name: str, judge: Callable[[], Document]) -> Document:
    """A verdict as it is stored."""
    with quiet_errors(name):
        document: Document = json.loads(json.dumps(judge()))
    return document


def _require_charged(document: Document, code: GeneratorCode, plan: Plan, events: Sequence[DpEvent]) -> None:
    """A mechanism audit says nothing of another generator, another plan or other noise than the ledger charged."""
    audited = document["evidence"]
    if (audited["generator"], audited["epsilon"], audited["delta"]) != (code, plan.epsilon, plan.delta):
        raise NotRederivedError(f"{code}/{MECHANISM} is of another generator or plan; run the plan again")
    paid = compose(events, plan.delta).mu
    if paid is None or six_decimals(document["summary"]["mu_claimed"]) != six_decimals(paid):
        raise NotRederivedError(f"{code}/{MECHANISM} is of another cost than the ledger charged; run the plan again")


def _designs(spec: CohortSpec, code: GeneratorCode, plan: Plan, stage: Stage) -> dict[str, Callable[[], Document]]:
    """The verdicts of the other designs; the trainings behind them are repeated, noise and all."""

    def half_split() -> Document:
        if not registers_half_split(spec):
            return half_split_not_registered(spec)
        audit = dp_half_split(code, spec, stage.reference, plan, stage.rows, fingerprint="")
        parts = [audit.scores(repetition) for repetition in range(audit.halves.repetitions)]
        scores = {attack: np.array([part[attack] for part in parts]) for attack in parts[0]}
        return half_split_document(spec, code, plan, audit.halves, scores)

    def cross_fit() -> Document:
        return not_registered(spec) or cross_fit_utility(code, spec, stage.reference, plan, stage.rows)

    return {HALF_SPLIT: half_split, CROSS_FIT_UTILITY: cross_fit}


def _differs(artefact: str) -> NotRederivedError:
    return NotRederivedError(f"{artefact} does not follow from the statistics the ledger paid for; run the plan again")


def same_constants(one: PublicReference, other: PublicReference) -> bool:
    """Whether two references agree in everything that fitting, sampling and decoding depend on."""
    names = [(r.labels, r.batches, r.latent_batches, r.n_ref) for r in (one, other)]
    return (
        names[0] == names[1]
        and one.encoder.to_document() == other.encoder.to_document()
        and content_digest(one.rows) == content_digest(other.rows)
    )


def stage_of_files(spec: CohortSpec, folder: Path) -> Stage:
    """The cohort in model space from its files, whatever the restricted zone holds in its place."""
    with quiet_errors("reading the cohort again", readable=(SourceError, CohortSpecError)):
        return make_stage(spec, validate(select_registered(read_cohort(spec, folder), spec), spec).accepted)
