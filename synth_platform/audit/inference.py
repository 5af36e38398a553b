"""G3, inference: success rates on training and control rows again from single guesses (Giomi et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from synth_platform.audit.findings import Findings
from synth_platform.audit.reading import Document, codes, figure, item, mapping, number, six, whole
from synth_platform.audit.statistics import normal_quantile

MARGIN, FAMILY_ERROR, CLAIMS = 0.05, 0.05, 3
_BISECTIONS = 100


def audit_inference(found: Findings, name: str, document: Document, registered: Document) -> None:
    """Recompute every rate, interval, risk and status of one inference document from its zeros and ones."""
    evidence, summary = mapping(document, "evidence"), mapping(document, "summary")
    rows = whole(summary, "rows")
    for part, claimed in (("summary", summary), ("evidence", evidence)):
        found.same(f"{name}/margin/{part}", "registration", number(claimed, "margin"), MARGIN)
    secrets = mapping(evidence, "guesses")
    found.same(f"{name}/secrets", "length", sorted(mapping(summary, "secrets")), sorted(secrets))
    found.same(f"{name}/registered", "registration", sorted(secrets), sorted(item(registered, "secrets")))
    sides = {side: [_ones(secrets, rows, secret, side) for secret in secrets] for side in ("train", "control")}
    each = FAMILY_ERROR / CLAIMS
    train, control = (_mean_share(guesses) for guesses in sides.values())
    _audit_rates(found, f"{name}/attribute_inference", mapping(summary, "attribute_inference"), train, control, each)
    train, control = ((_share(_ones(evidence, rows, "singled_out", side)), float(rows)) for side in sides)
    _audit_rates(found, f"{name}/singling_out", mapping(summary, "singling_out"), train, control, each)
    for position, secret in enumerate(secrets):
        with found.section(f"{name}/{secret}"):
            train, control = ((_share(guesses[position]), float(rows)) for guesses in sides.values())
            claimed = mapping(summary, "secrets", secret)
            _audit_rates(found, f"{name}/{secret}", claimed, train, control, each / len(secrets))
    whole_table = {item(summary, part, "status") for part in ("attribute_inference", "singling_out")}
    everything = whole_table | {item(claimed, "status") for claimed in mapping(summary, "secrets").values()}
    status = "FAIL" if "FAIL" in everything else "UNDECIDED" if "UNDECIDED" in whole_table else "PASS"
    found.same(f"{name}/status", "status", item(summary, "status"), status)


def _audit_rates(
    found: Findings,
    name: str,
    claimed: Document,
    train: tuple[float, float],
    control: tuple[float, float],
    error: float,
) -> None:
    """One comparison. train, control: success rate and what number of guesses it is worth."""
    z = normal_quantile(1 - error)
    lower, upper = difference_interval(train, control, z)
    left = 1 - control[0]
    figures = {
        "train": train[0],
        "control": control[0],
        "excess": train[0] - control[0],
        "lower": lower,
        "upper": upper,
        "risk": max(0.0, (train[0] - control[0]) / left) if left > 0 else None,
        "detectable": _detectable(control[0], train[1], control[1], z),
    }
    for key, own in figures.items():
        kind = "share" if key in ("train", "control", "excess", "risk") else "newcombe"
        found.close(f"{name}/{key}", kind, figure(claimed, key), own, tolerance=1.1e-6)
    low, high = six(number(claimed, "lower")), six(number(claimed, "upper"))
    status = "FAIL" if low > six(MARGIN) else "PASS" if high <= six(MARGIN) else "UNDECIDED"
    found.same(f"{name}/status", "status", item(claimed, "status"), status)


def score_interval(share: float, trials: float, z: float) -> tuple[float, float]:
    """Both p with |share - p| = z sqrt(p (1 - p) / trials), the roots of a quadratic (Wilson 1927)."""
    c = z * z / trials
    a, b = 1 + c, 2 * share + c
    larger = (b + math.sqrt(max(0.0, b * b - 4 * a * share * share))) / (2 * a)
    smaller = share * share / (a * larger) if larger > 0 else 0.0  # their product, which does not cancel
    return max(0.0, smaller), min(1.0, larger)


def difference_interval(first: tuple[float, float], second: tuple[float, float], z: float) -> tuple[float, float]:
    """Newcombe's interval (1998, method 10) of the difference of two shares, each with its number of trials."""
    (p, m), (q, n) = first, second
    (p_low, p_high), (q_low, q_high) = score_interval(p, m, z), score_interval(q, n, z)
    below = math.sqrt((p - p_low) ** 2 + (q_high - q) ** 2)
    above = math.sqrt((p_high - p) ** 2 + (q - q_low) ** 2)
    return p - q - below, p - q + above


def _detectable(control: float, train_trials: float, control_trials: float, z: float) -> float | None:
    """The excess whose expected lower bound clears the margin by 1.28 standard errors, by bisection."""

    def found(excess: float) -> bool:
        train = min(1.0, control + excess)
        lower, _ = difference_interval((train, train_trials), (control, control_trials), z)
        error = math.sqrt(train * (1 - train) / train_trials + control * (1 - control) / control_trials)
        return lower - MARGIN - normal_quantile(0.9) * error >= 0

    low, high = MARGIN, 1 - control
    if high <= low or not found(high):
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def _ones(document: Document, rows: int, *path: str) -> list[int]:
    values = codes(document, *path, shape=(rows,)).tolist()
    if not set(values) <= {0, 1}:
        raise ValueError("a guess is right or wrong")
    return [int(value) for value in values]


def _share(ones: Sequence[int]) -> float:
    return sum(ones) / len(ones)


def _mean_share(guesses: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Success over all secrets, and the trials it is worth: rows over the design effect of the row means."""
    k, n = len(guesses), len(guesses[0])
    means = [sum(row) / k for row in zip(*guesses, strict=True)]
    share = math.fsum(means) / n
    if n < 2 or share in (0, 1):
        return share, float(n)
    spread = math.fsum((mean - share) ** 2 for mean in means) / (n - 1)
    effect = min(1.0, max(spread / (share * (1 - share)), 1 / k))
    return share, n / effect
