"""What a trial works on: one cohort with its rows open, and generators trained on them that are never released.

Trials judge the judges: they train generators again and again to learn how often a gate errs. Their noise comes from a
seeded source, so a trial can be repeated and resumed, and nothing they make can ever be released (8-1 §3.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.contract.tables import CohortTables, from_wide, split_public
from synth_platform.generators.build import make_generator
from synth_platform.generators.protocol import Ask, GeneratorState
from synth_platform.generators.registry import sample
from synth_platform.normalize.batch import BatchCorrection
from synth_platform.normalize.real_arm import correct_attacked, correct_real_arm
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.mechanisms import gaussian_sum
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease

TRIAL_ENTRY = "trial"  # no ledger entry pays for it: it never leaves


@dataclass(frozen=True)
class Stage:
    """A cohort on which generators can be tried.

    rows: all private rows in model space, as generators see them. real: the same rows after batch correction, in the
    same order, as the gates of utility and closest records see them. correction: that batch correction.
    """

    spec: CohortSpec
    reference: PublicReference
    rows: EncodedRows
    real: EncodedRows
    correction: BatchCorrection

    @cached_property
    def attacked(self) -> EncodedRows:
        """The same rows in the same order as attacks score them: corrected by one fit on all of them."""
        return correct_attacked(self.rows, self.reference, self.spec)


def make_stage(spec: CohortSpec, tables: CohortTables) -> Stage:
    """The stage of accepted contract tables, public rows among them."""
    public, private = split_public(tables, spec)
    reference = build_reference(public, spec)
    rows = reference.encoder.encode(private)
    correction, real = correct_real_arm(rows, reference, spec)
    return Stage(spec, reference, rows, real, correction)


def seeded_ask(rows: EncodedRows, seed: int) -> Ask:
    """Answers over `rows` through the real mechanism, without a ledger and with noise that can be repeated."""
    noise = SeededNoise(seed)

    def ask(query: StatisticQuery[EncodedRows]) -> StatisticRelease:
        values, step = gaussian_sum(
            query.contribution(rows), sensitivity=query.sensitivity, sigma=query.sigma, noise=noise
        )
        return StatisticRelease(
            code=query.code,
            values=values,
            sensitivity=query.sensitivity,
            sigma=query.sigma,
            granularity=step,
            source=noise.source,
            entry_id=TRIAL_ENTRY,
            fingerprint="",
        )

    return ask


def fit_trial(
    code: GeneratorCode, spec: CohortSpec, reference: PublicReference, plan: Plan, rows: EncodedRows, *, seed: int
) -> GeneratorState:
    """The DP generator `code` trained on `rows` at `plan`, with the noise of `seed`."""
    generator = make_generator(code, reference, spec, plan)
    return generator.fit(generator.measure(seeded_ask(rows, seed)))


def trial_table(
    state: GeneratorState, spec: CohortSpec, reference: PublicReference, *, seed: int, rows: int | None = None
) -> EncodedRows:
    """A table of `rows` (default: as registered) in its released form, encoded again (8-1 §3.1 rule 4)."""
    wide = reference.encoder.decode(sample(state, rows=rows or spec.synthetic.rows, seed=seed))
    return reference.encoder.encode(from_wide(wide, spec))
