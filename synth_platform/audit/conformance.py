"""G2, conformance: the platform's answers to fixed questions, held against answers that the audit has by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product

import numpy as np
from scipy.special import gammaincc

from synth_platform.audit.accounting import (
    Composed,
    auroc_bound,
    epsilon_gaussian,
    epsilon_rdp,
)
from synth_platform.audit.findings import Findings
from synth_platform.audit.reading import Document, array, codes, figure, item, mapping, number, sequence, text, whole
from synth_platform.audit.rules import (
    CLOSEST_RECORD,
    FORMAL,
    MEMBERSHIP,
    UTILITY,
    preservation_status,
    preserved,
    release_rule,
    required_rows,
)
from synth_platform.audit.statistics import variance_ratio
from synth_platform.audit.structure import audit_seal

FORMAT = "synth-conformance-1"
RELATIVE = 1e-6

# Each case breaks one rule of the contract. ROWS stands for every row of the table.
ROWS = -1
SCHEMA: Mapping[str, list[tuple[str, str, str, int]]] = {
    "SC01": [],
    "SC02": [("FORBIDDEN_FIELD", "clinical", "#9", ROWS)],
    "SC03": [("FORBIDDEN_FIELD", "clinical", "#9", ROWS)],
    "SC04": [("FORBIDDEN_FIELD", "clinical", "survival_days", ROWS)],
    "SC05": [("UNKNOWN_FIELD", "clinical", "#9", ROWS)],
    "SC06": [("FEATURE_SET", "expression", "G02", ROWS)],
    "SC07": [("FEATURE_SET", "expression", "#14", ROWS)],
    "SC08": [("RANGE", "expression", "G01", 1)],
    "SC09": [("RANGE", "methylation", "M02", 1)],
    "SC10": [("CATEGORY", "clinical", "stage", 1)],
    "SC11": [("NON_FINITE", "expression", "G03", 1)],
    "SC12": [("DTYPE", "clinical", "age", ROWS)],
    "SC13": [("DUPLICATE_UNIT", "clinical", "row_key", 2)],
    "SC14": [("KEY_FORMAT", "methylation", "row_key", 1), ("KEY_SET", "methylation", "row_key", 2)],
    "SC15": [("MISSING", "clinical", "survival_days", 1)],
}
PRESERVATION: Mapping[str, str] = {
    "RC01": "HOLD_UNDEFINED",
    "RC02": "HOLD_UNDEFINED",
    "RC03": "HOLD_UNINFORMATIVE",
    "RC04": "HOLD_UNINFORMATIVE",
    "RC05": "PASS_CONFIRMED",
    "RC06": "HOLD_UNINFORMATIVE",
    "RC07": "FAIL_RATIO",
    "RC08": "PASS_CONFIRMED",
    "RC09": "FAIL_SKILL",
    "RC10": "PASS_CONFIRMED",
    "RC11": "PASS_POINT",
    "RC12": "PASS_CONFIRMED",
}
# 8-1 §2.5 by n_ref, B, T and delta: noise multipliers at epsilon 1, 3, 8 and where the AUROC bound is .55.
DPSGD: Mapping[str, tuple[tuple[int, int, int, float], tuple[float, ...]]] = {
    "TCGA_BRCA_LATENT": ((372, 62, 360, 1e-5), (15.94, 5.62, 2.41, 78.00)),
    "MIMIC_IV_SUBJECT": ((50_000, 1_000, 1_500, 1e-6), (4.35, 1.67, 0.92, 20.94)),
}
DIMENSIONS = {"G0_COUNTS": 6 * 3, "G0_SUMS": 6 * 3 * 7, "G0_MOMENT": 7 * 8 // 2}  # 3 classes x event, 3 batches, k = 6
_TAIL = 1e-6


def audit_conformance(found: Findings, document: Document) -> None:
    """Every part of the conformance document; each is read by itself, so that one that is missing hides no other."""
    found.same("G1/conformance/format", "structure", document.get("format"), FORMAT)
    audit_seal(found, "G1/conformance", document)
    for name, part in (
        ("schema", _schema),
        ("preservation", _preservation),
        ("release_rule", _release_rule),
        ("dpsgd", _dpsgd),
        ("gaussian", _gaussian),
        ("required_rows", _required_rows),
        ("batch_effect", _batch_effect),
        ("empty_data", _empty_data),
    ):
        with found.section(f"G2/{name}"):
            part(found, f"G2/{name}", document)


def _schema(found: Findings, name: str, document: Document) -> None:
    cases = mapping(document, "schema_cases")
    found.same(f"{name}/cases", "schema_case", sorted(cases), sorted(SCHEMA))
    for code, expected in SCHEMA.items():
        with found.section(f"{name}/{code}"):
            case = mapping(cases, code)
            rows = whole(case, "rows")
            own = sorted([c, t, column, rows if n == ROWS else n] for c, t, column, n in expected)
            found.same(f"{name}/{code}/findings", "schema_case", sequence(case, "findings"), own)
            accepted = 0 if any(n == ROWS for *_, n in expected) else rows - bool(expected)
            found.same(f"{name}/{code}/accepted", "schema_case", item(case, "accepted"), accepted)


def _preservation(found: Findings, name: str, document: Document) -> None:
    cases = mapping(document, "preservation_cases")
    found.same(f"{name}/cases", "preservation_case", sorted(cases), sorted(PRESERVATION))
    for code, status in PRESERVATION.items():
        with found.section(f"{name}/{code}"):
            asked, judged = mapping(cases, code, "asked"), mapping(cases, code, "judged")
            tstr, trtr, chance = figure(asked, "tstr"), figure(asked, "trtr"), number(asked, "chance")
            tstr_groups, trtr_groups = (
                array(asked, arm, shape=(20,)).tolist() for arm in ("tstr_groups", "trtr_groups")
            )
            own = preserved(tstr, trtr, tstr_groups, trtr_groups, chance)
            for key, value in (("tstr", tstr), ("trtr", trtr)):
                found.close(f"{name}/{code}/{key}", "preservation_case", figure(judged, key), value, public=True)
            for key in ("preservation", "skill", "lcb_preservation", "lcb_trtr"):
                found.close(
                    f"{name}/{code}/{key}", "preservation_case", figure(judged, key), getattr(own, key), public=True
                )
            derived = preservation_status(
                tstr=tstr, trtr=trtr, lcb_trtr=own.lcb_trtr, lcb_preservation=own.lcb_preservation, chance=chance
            )
            found.same(f"{name}/{code}/status", "preservation_case", item(judged, "status"), status)
            found.same(f"{name}/{code}/derived", "preservation_case", derived, status)


def _release_rule(found: Findings, name: str, document: Document) -> None:
    rows = sequence(document, "release_rule")
    eligible = 0
    seen: Counter[tuple[object, ...]] = Counter()
    for position, row in enumerate(rows):
        with found.section(f"{name}/{position}"):
            given = {gate: text(row, gate) for gate in ("utility", "closest_record", "membership", "formal")}
            violations = whole(row, "violations")
            grade, reasons = release_rule(violations=violations, **given)
            claimed = (item(row, "decision"), sorted(sequence(row, "reasons")))
            found.same(f"{name}/{position}", "release_rule", claimed, (grade, sorted(reasons)))
            seen[bool(violations), *given.values()] += 1
            eligible += item(row, "decision") != "BLOCKED"
    every = Counter(product((False, True), UTILITY, CLOSEST_RECORD, MEMBERSHIP, FORMAL))
    found.holds(f"{name}/every_combination", "release_rule", seen == every, f"{len(seen)} of {len(every)} rows")
    found.same(f"{name}/eligible", "release_rule", eligible, 2)


def _dpsgd(found: Findings, name: str, document: Document) -> None:
    plans = sequence(document, "dpsgd_plans")
    found.same(f"{name}/plans", "dpsgd", len(plans), 4 * len(DPSGD))
    for code, (constants, sigmas) in DPSGD.items():
        of_plan = [plan for plan in plans if plan.get("plan") == code]
        for plan, published in zip(of_plan, sigmas, strict=True):
            target, delta = number(plan, "target"), number(plan, "delta")
            part = f"{name}/{code}/{target:.4g}"
            with found.section(part):
                claimed = (whole(plan, "n_ref"), whole(plan, "batch"), whole(plan, "steps"), delta)
                found.same(f"{part}/constants", "dpsgd", claimed, constants)
                sigma, prior = number(plan, "sigma"), number(plan, "prior_rho")
                found.close(f"{part}/sigma", "dpsgd", sigma, published, tolerance=0.0051, public=True)
                step = {(constants[1] / constants[0], sigma): constants[2]}
                cost = epsilon_rdp(Composed(2 * prior, Counter(step)), delta)
                margin = RELATIVE * cost
                found.close(f"{part}/epsilon", "rdp", number(plan, "epsilon_rdp"), cost, tolerance=margin, public=True)
                found.holds(
                    f"{part}/promise", "dpsgd", target * (1 - 1e-5) <= cost <= target + margin,
                    f"target {target:.9g}, found {cost:.9g}",
                )  # fmt: skip
                alone = epsilon_rdp(Composed(2 * prior), delta)
                found.close(f"{part}/prior", "rdp", target / 5, alone, tolerance=RELATIVE * alone, public=True)


def _gaussian(found: Findings, name: str, document: Document) -> None:
    for position, cost in enumerate(sequence(document, "gaussian_costs")):
        mu, delta = number(cost, "mu"), number(cost, "delta")
        own = {"epsilon_pld": epsilon_gaussian(mu, delta), "epsilon_rdp": epsilon_rdp(Composed(mu * mu), delta)}
        for key, value in own.items():
            found.close(
                f"{name}/{position}/{key}",
                "gaussian",
                number(cost, key),
                value,
                tolerance=RELATIVE * value,
                public=True,
            )
    for position, bound in enumerate(sequence(document, "auroc_bounds")):
        own_bound = auroc_bound(number(bound, "epsilon"), number(bound, "delta"))
        claimed = number(bound, "bound")
        found.close(f"{name}/{position}/auroc_bound", "auroc_bound", claimed, own_bound, tolerance=1e-9, public=True)


def _required_rows(found: Findings, name: str, document: Document) -> None:
    claims = sequence(document, "required_rows")
    for claim in claims:
        attacks = whole(claim, "attacks")
        own = required_rows(number(claim, "limit"), attacks)
        found.same(f"{name}/{attacks}", "required_rows", whole(claim, "rows"), own)
    # 8-1 §3.4: two attacks and a limit of .55 need 701 rows a side.
    published = [c for c in claims if (c.get("limit"), c.get("attacks"), c.get("rows")) == (0.55, 2, 701)]
    found.same(f"{name}/published", "required_rows", len(published), 1)


def _batch_effect(found: Findings, name: str, document: Document) -> None:
    effect = mapping(document, "batch_effect")
    batch = codes(effect, "batch")
    means = {}
    for state in ("before", "after"):
        cells = array(effect, state, shape=(len(batch), None))
        found.same(f"{name}/{state}/columns", "batch_effect", cells.shape[1], 20)
        means[state] = float(variance_ratio(cells, batch).mean())
        claimed = number(effect, f"eta_squared_{state}")
        found.close(f"{name}/{state}", "batch_effect", claimed, means[state], tolerance=2e-6, public=True)
    found.holds(
        f"{name}/removed", "batch_effect", means["after"] < 0.01 * means["before"], f"left {means['after']:.4g}"
    )


def _empty_data(found: Findings, name: str, document: Document) -> None:
    """Noise of the full dimension and of the claimed size, where there is nobody (8-1 §2.2, §2.5)."""
    releases = {text(release, "code"): release for release in sequence(document, "empty_data")}
    found.same(f"{name}/statistics", "empty_data", sorted(releases), sorted(DIMENSIONS))
    precision = 0.0
    for code, dimension in DIMENSIONS.items():
        with found.section(f"{name}/{code}"):
            values = array(releases, code, "values", shape=(dimension,))
            sigma = number(releases, code, "sigma")
            precision += (number(releases, code, "sensitivity") / sigma) ** 2
            found.holds(f"{name}/{code}/everywhere", "empty_data", bool((values != 0).all()), "a place without noise")
            # The sum of squares over sigma^2 is chi-squared: its survival function is an incomplete gamma function.
            tail = float(gammaincc(dimension / 2, float(np.square(values / sigma).sum()) / 2))
            found.holds(f"{name}/{code}/size", "empty_data", _TAIL < tail < 1 - _TAIL, "noise of another size")
    spent = epsilon_rdp(Composed(precision), 1e-5)
    found.close(f"{name}/cost", "rdp", 2.0, spent, tolerance=2e-6, public=True)
