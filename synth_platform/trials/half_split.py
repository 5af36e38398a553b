"""The experiment of the repeated half-split audit (8-1 §3.4), for cohorts with too few rows to ask the table directly.

Every repetition trains the generator on a half of all private rows at the plan's (ε, δ), draws one table in its
released form, and scores every private row by every registered attack; the half is the members. Halves come in pairs, a
random one and the rest. Nothing of it is ever released, so nothing is in the ledger. `half_split_gate` judges scores.

Pool: all private rows whatever their split, in an order fixed by their content. A half of it may be smaller than the
released training; a row then weighs more in the audit than in the release, and the audit errs towards leakage.

Space: a row is scored as the generator saw it, in L1 space (8-1 §3.4) and before any batch correction. The real arm's
correction is fitted on the registered training split, so it treats the rows of a half unequally (frozen for some,
aligned by their own batch for others), and nobody can apply it to a single record. Without it the score of a row
depends on that row, on public constants and on the table alone: members and non-members are exactly exchangeable under
a table that ignores what it was trained on, and a row that was copied lies at distance 0 of its copy.
docs/half_split.md compares the spaces.

Time is one training and two nearest-neighbour passes a repetition; memory is one table and the scores of a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.evaluation.attacks import attack_scores
from synth_platform.generators.build import make_generator
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import BoolArray, EncodedRows, FloatArray, IntArray
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex
from synth_platform.trials.blocks import BlockStore
from synth_platform.trials.stage import seeded_ask, trial_table

Training = Callable[[EncodedRows, int, int], EncodedRows]

BLOCK = 8  # repetitions a block: what a killed audit may lose
SEED = 8_134
# A block is of the code that made it: these rooms decide its numbers.
_ROOMS = ("contract", "normalize", "privacy", "generators", "evaluation", "trials")


@dataclass(frozen=True)
class Halves:
    """Who is trained on in each of `repetitions` repetitions over `rows` rows, and the other seeds, all public.

    Raises ValueError with fewer than four rows.
    """

    rows: int
    repetitions: int

    def __post_init__(self) -> None:
        if self.rows < 4:
            raise ValueError(f"{self.rows} private row(s) cannot be split in halves of two; the audit needs at least 4")

    def seeds(self, repetition: int) -> tuple[int, int, int]:
        """Seeds of the half (that of the pair), of the noise and of the table."""
        [half] = np.random.SeedSequence([SEED, repetition // 2]).generate_state(1).tolist()
        noise, table = np.random.SeedSequence([SEED, repetition // 2, repetition % 2]).generate_state(2).tolist()
        return int(half), int(noise), int(table)

    def members(self, repetition: int) -> BoolArray:
        """[rows] True for the rows that are trained on: rows // 2 at random, or in an odd repetition all the others."""
        inside = np.zeros(self.rows, np.bool_)
        inside[np.random.default_rng(self.seeds(repetition)[0]).permutation(self.rows)[: self.rows // 2]] = True
        return ~inside if repetition % 2 else inside

    def all_members(self) -> BoolArray:
        """[repetitions, rows]."""
        return np.array([self.members(r) for r in range(self.repetitions)])

    @property
    def shadows(self) -> int:
        """The first half of the pairs, from which the likelihood-ratio attack learns; it attacks the others."""
        return self.repetitions // 4 * 2

    def block(self, block: int) -> range:
        """Repetitions of a block."""
        return range(block * BLOCK, min((block + 1) * BLOCK, self.repetitions))


def block_count(repetitions: int) -> int:
    """Number of blocks of a registered number of repetitions; the last one may be shorter."""
    return -(-(repetitions // 2 * 2) // BLOCK)


def dp_training(code: GeneratorCode, spec: CohortSpec, reference: PublicReference, plan: Plan) -> Training:
    """(rows, noise seed, table seed) -> the table of generator `code` trained on `rows` at `plan`.

    The public part of the generator is made once and shared by all repetitions.
    """
    generator = make_generator(code, reference, spec, plan)

    def train(rows: EncodedRows, noise: int, table: int) -> EncodedRows:
        state = generator.fit(generator.measure(seeded_ask(rows, noise)))
        return trial_table(state, spec, reference, seed=table)

    return train


@dataclass(frozen=True, eq=False)
class HalfSplit:
    """One audit: `train` on the rows of a cohort. identity: names whatever the scores depend on, rows by a keyed name.

    rows: all private rows in model space, in any order.
    """

    spec: CohortSpec
    reference: PublicReference
    rows: EncodedRows
    train: Training
    identity: Mapping[str, object]

    @cached_property
    def pool(self) -> EncodedRows:
        """The rows in the order of their content: opaque keys are issued anew whenever a cohort is read."""
        return self.rows.take(_content_order(self.rows))

    @cached_property
    def halves(self) -> Halves:
        """The registered repetitions over the pool; an odd last one has no partner and is left out."""
        return Halves(len(self.rows), self.spec.gates.repetitions // 2 * 2)

    def digest(self, block: int) -> str:
        """Name of a block: all that its numbers depend on, in SHA-256."""
        document = {"registration": self.spec.registration, "code": code_digest(), "block": block, "size": BLOCK}
        return sha256_hex(canonical_json({**self.identity, **document}))

    def scores(self, repetition: int) -> dict[str, FloatArray]:
        """{attack: [N]} of one repetition."""
        _, noise, table = self.halves.seeds(repetition)
        synthetic = self.train(self.pool.take(self.halves.members(repetition)), noise, table)
        gates = self.spec.gates
        found = attack_scores(
            self.pool.x, synthetic.x, self.reference.rows.x, neighbours=gates.neighbours, attacks=gates.attacks
        )
        return {code: found[code] for code in sorted(found)}

    def run_block(self, store: BlockStore, block: int) -> bool:
        """Compute and store a block unless it is stored already; whether it had to be computed."""
        if store.holds(self.digest(block)):
            return False
        parts = [self.scores(repetition) for repetition in self.halves.block(block)]
        store.save(self.digest(block), {code: np.array([part[code] for part in parts]) for code in parts[0]})
        return True

    def collect(self, store: BlockStore) -> dict[str, FloatArray]:
        """{attack: [R, N]} of all blocks; raises BlockError if one is missing or altered. Blocks of others go."""
        names = [self.digest(block) for block in range(block_count(self.spec.gates.repetitions))]
        blocks = [store.load(name) for name in names]
        store.keep_only(names)
        return {code: np.concatenate([block[code] for block in blocks]) for code in blocks[0]}


def dp_half_split(
    code: GeneratorCode,
    spec: CohortSpec,
    reference: PublicReference,
    plan: Plan,
    rows: EncodedRows,
    fingerprint: str,
) -> HalfSplit:
    """The audit of a DP generator at one plan; `fingerprint` is the keyed name of the rows."""
    identity = {"generator": code, "plan": plan.model_dump(mode="json"), "rows": fingerprint}
    return HalfSplit(spec, reference, rows, dp_training(code, spec, reference, plan), identity)


@cache
def code_digest() -> str:
    """SHA-256 over the sources of every room that a block's numbers come from."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for file in sorted(file for room in _ROOMS for file in (root / room).rglob("*.py")):
        digest.update(sha256_hex(file.read_bytes()).encode())
    return digest.hexdigest()


def _content_order(rows: EncodedRows) -> IntArray:
    columns = np.column_stack([rows.x, rows.label, rows.event, rows.time, rows.batch])
    return np.lexsort(columns.T[::-1])
