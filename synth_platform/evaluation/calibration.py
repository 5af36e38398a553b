"""Tolerances of the closest-record gate, fixed from sizes and public rows before a synthetic table is seen (8-1 §3.4).

A tolerance must leave room for what chance does to a generator that leaks nothing. The published rule takes that from
probes: mean + 2 standard deviations + Clopper-Pearson half width. How far the share nearer to training rows wanders
depends on how many synthetic rows share a neighbour, so there the probes are all we have; the registered tolerance is
the larger of those for independent rows and for resampled ones, because generators that resample public rows leak no
more. For the excess share the law is known exactly and free of the world: given the training rows, the distances of
holdout and of independent synthetic rows are exchangeable, so the number of synthetic rows below the holdout's 5 %
order statistic is beta-binomial. That law is recommended over the rule: it refuses a stated share of harmless tables,
where the rule's share moves with the probes it was made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import betabinom

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.closest_record import NEAR_SHARE, closest_record_gate
from synth_platform.evaluation.null import Null, NullRows, NullSource, Sizes
from synth_platform.evaluation.statistics import clopper_pearson_upper, six
from synth_platform.normalize.rows import EncodedRows

PROBE_SEEDS = tuple(range(813_600, 813_664))
FALSE_ALARM = 0.025
TableKind = Literal["independent", "resampled"]
TABLE_KINDS: tuple[TableKind, ...] = ("independent", "resampled")


def excess_failure(synthetic_rows: int, holdout_rows: int, tolerance: float) -> float:
    """Probability that a generator which leaks nothing fails the excess share at `tolerance`, exactly."""
    rank = NEAR_SHARE * (holdout_rows - 1) + 1
    limit = six(NEAR_SHARE + tolerance)
    passing = [k for k in range(synthetic_rows) if six(clopper_pearson_upper(k, synthetic_rows)) <= limit]
    return float(betabinom.sf(max(passing, default=-1), synthetic_rows, rank, holdout_rows + 1 - rank))


def excess_tolerance(synthetic_rows: int, holdout_rows: int, false_alarm: float = FALSE_ALARM) -> float:
    """The smallest tolerance, rounded up to three decimals, at which `excess_failure` is at most `false_alarm`."""
    rank = NEAR_SHARE * (holdout_rows - 1) + 1
    count = int(betabinom.ppf(1 - false_alarm, synthetic_rows, rank, holdout_rows + 1 - rank))
    return _up(clopper_pearson_upper(count, synthetic_rows) - NEAR_SHARE)


def probe_rule(shares: Sequence[float], centre: float, synthetic_rows: int) -> dict[str, float]:
    """8-1's rule over the shares of null probes: (mean - centre) + 2 sd + half width of Clopper-Pearson at `centre`.

    Returns mean, sd, half_width and tolerance; the last is rounded up to three decimals, the others to six.
    """
    half_width = clopper_pearson_upper(centre * synthetic_rows, synthetic_rows) - centre
    mean, sd = float(np.mean(shares)), float(np.std(shares, ddof=1))
    return {
        "mean": round(mean, 6),
        "sd": round(sd, 6),
        "half_width": round(half_width, 6),
        "tolerance": _up(mean - centre + 2 * sd + half_width),
    }


@dataclass(frozen=True)
class Probes:
    """The two judged shares of one kind of harmless table, probe by probe."""

    train_closer: tuple[float, ...]
    excess: tuple[float, ...]

    @classmethod
    def judge(cls, drawn: Sequence[tuple[NullRows, EncodedRows]], options: GateOptions) -> Probes:
        """By the closest-record gate itself, table by table; its tolerances do not enter the two shares."""
        verdicts = [closest_record_gate(rows.train, rows.holdout, table, options) for rows, table in drawn]
        return cls(tuple(v.train_closer for v in verdicts), tuple(v.excess for v in verdicts))

    def statistics(self, synthetic_rows: int) -> dict[str, dict[str, float]]:
        """The rule over each share."""
        return {
            "train_closer": probe_rule(self.train_closer, 0.5, synthetic_rows),
            "excess": probe_rule(self.excess, NEAR_SHARE, synthetic_rows),
        }


@dataclass(frozen=True)
class Calibration:
    """The probes of one cohort and what follows from them; `as_dict` is its calibration.json.

    source, sizes, digest: the null the probes came from. probes: by kind of table.
    """

    cohort: str
    source: NullSource
    sizes: Sizes
    digest: str
    seeds: tuple[int, ...]
    probes: Mapping[TableKind, Probes]

    @property
    def statistics(self) -> dict[str, dict[str, dict[str, float]]]:
        """The rule over each share of each kind of table."""
        return {kind: probes.statistics(self.sizes.synthetic) for kind, probes in self.probes.items()}

    @property
    def tolerances(self) -> dict[str, float]:
        """What to register: the rule for the nearer side, the exact law for the excess share."""
        return {
            "train_closer_tolerance": max(s["train_closer"]["tolerance"] for s in self.statistics.values()),
            "excess_tolerance": excess_tolerance(self.sizes.synthetic, self.sizes.holdout),
        }

    def as_dict(self) -> dict[str, Any]:
        """Probes, statistics and tolerances as JSON values; the probes are all that the rest follows from."""
        tolerances = self.tolerances
        false_alarm = excess_failure(self.sizes.synthetic, self.sizes.holdout, tolerances["excess_tolerance"])
        return {
            "cohort": self.cohort,
            "sizes": asdict(self.sizes),
            "null": {"source": self.source, "depends_on": self.digest},
            "seeds": list(self.seeds),
            "probes": {
                kind: {"train_closer": list(probes.train_closer), "excess": list(probes.excess)}
                for kind, probes in self.probes.items()
            },
            "statistics": self.statistics,
            "tolerances": tolerances,
            "excess_false_alarm": round(false_alarm, 6),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Calibration:
        """The calibration of a calibration.json. Raises ValueError where a field is missing or not of its kind."""
        try:
            return cls(
                cohort=document["cohort"],
                source=document["null"]["source"],
                sizes=Sizes(**document["sizes"]),
                digest=document["null"]["depends_on"],
                seeds=tuple(document["seeds"]),
                probes={
                    kind: Probes(*(tuple(map(float, document["probes"][kind][s])) for s in ("train_closer", "excess")))
                    for kind in TABLE_KINDS
                },
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is not a calibration ({error!r})") from error


def calibrate(cohort: str, null: Null, options: GateOptions, seeds: Sequence[int] = PROBE_SEEDS) -> Calibration:
    """One null draw per seed, both kinds of its tables judged."""
    drawn = [null.draw(seed) for seed in seeds]
    return Calibration(
        cohort=cohort,
        source=null.source,
        sizes=null.sizes,
        digest=null.digest,
        seeds=tuple(seeds),
        probes={
            "independent": Probes.judge([(rows, rows.synthetic) for rows in drawn], options),
            "resampled": Probes.judge([(rows, rows.resampled) for rows in drawn], options),
        },
    )


def contradictions(document: Mapping[str, Any], cohort: str, null: Null, options: GateOptions) -> tuple[str, ...]:
    """Why a frozen calibration does not back the registered tolerances, in words; empty if it does.

    Tighter tolerances than the frozen ones are nobody's loss but the steward's, so they are no contradiction.
    """
    try:
        frozen = Calibration.from_dict(document)
        derived = frozen.as_dict()
    except (ValueError, TypeError) as error:
        return (f"it cannot be read: {error}",)
    found = []
    if derived != document:
        found.append("its figures do not follow from its probes")
    if frozen.cohort != cohort:
        found.append(f"it was made for cohort {frozen.cohort!r}")
    if frozen.sizes != null.sizes:
        found.append(f"it was made for {_in_words(frozen.sizes)} rows, the cohort registers {_in_words(null.sizes)}")
    if (frozen.source, frozen.digest) != (null.source, null.digest):
        found.append("it was made from other public rows or another world")
    found += [
        f"{name} is registered as {getattr(options, name)}, looser than the calibrated {calibrated}"
        for name, calibrated in frozen.tolerances.items()
        if six(getattr(options, name)) > six(calibrated)
    ]
    return tuple(found)


def _in_words(sizes: Sizes) -> str:
    return f"{sizes.train} training, {sizes.holdout} holdout and {sizes.synthetic} synthetic"


def _up(tolerance: float) -> float:
    """Rounded up to three decimals; float noise below 1e-12 does not count as a step."""
    return float(np.ceil(tolerance * 1000 - 1e-9) / 1000)
