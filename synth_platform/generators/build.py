"""From a cohort's registered options to a generator, and to the fresh rows that only a virtual world can give."""

from __future__ import annotations

from dataclasses import replace

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.generators.g0 import G0
from synth_platform.generators.g0a.generator import G0A
from synth_platform.generators.protocol import DPGenerator, GeneratorState, Measured, PrivacyTarget
from synth_platform.normalize.batch import BatchCorrection
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.virtual import draw_fresh

FRESH_SEED = 1


def make_generator(code: GeneratorCode, reference: PublicReference, spec: CohortSpec, plan: Plan) -> DPGenerator:
    """The DP generator `code` at one plan. Raises ValueError for a code that is a control."""
    target = PrivacyTarget(plan.epsilon, plan.delta)
    if code == "G0":
        return G0(reference, spec.g0, target)
    if code == "G0A":
        return G0A(reference, spec.g0a, target)
    raise ValueError(f"{code} is a control and has no privacy target")


def fit_measured(generator: DPGenerator, measured: Measured) -> GeneratorState:
    """The fitted state, carrying along any access that no ledger entry pays for."""
    return replace(generator.fit(measured.releases), unledgered=measured.unledgered)


def fresh_rows(spec: CohortSpec, reference: PublicReference, correction: BatchCorrection) -> EncodedRows | None:
    """Rows of the same world that nobody trained on, as the real arm would see them: enough for every sampling seed.

    None where the cohort is not a virtual one.
    """
    if spec.source.reader != "virtual":
        return None
    needed = spec.synthetic.rows * len(spec.synthetic.seeds)
    return correction.apply(reference.encoder.encode(draw_fresh(spec, needed, FRESH_SEED)))
