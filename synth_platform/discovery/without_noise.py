"""What a list of private discoveries would have been without noise: for the restricted zone, to judge the price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.discovery.contrast import ContrastRows, contrast_study
from synth_platform.discovery.e_bh import e_bh
from synth_platform.normalize.reference import PublicReference


def comparison_document(
    spec: CohortSpec,
    plan: DiscoveryPlan,
    reference: PublicReference,
    rows: ContrastRows,
    discoveries: Mapping[str, Any],
) -> dict[str, Any]:
    """Discoveries of e-BH on e-values that were made for no noise, and how many of them came back.

    before_noise: log e-values of the selected features as they were perturbed. Every figure is one of private rows.
    """
    private = contrast_study(spec, plan, reference)
    names = private.names(range(private.hypotheses))
    adaptive = plan.size == "adaptive"
    scores, _ = private.asked_for(len(discoveries["list"]) if adaptive else private.expected)
    perturbed = dict(zip(names, scores(rows).tolist(), strict=True))
    without = discovered_without_noise(spec, plan, reference, rows)
    found = {line["feature"] for line in discoveries["list"] if line["discovered"]}
    return {
        "contrast": plan.contrast,
        "plan": plan.key,
        "without_noise": len(without),
        "came_back": len(found & without),
        "only_private": len(found - without),
        "before_noise": {line["feature"]: perturbed[line["feature"]] for line in discoveries["list"]},
    }


def discovered_without_noise(
    spec: CohortSpec, plan: DiscoveryPlan, reference: PublicReference, rows: ContrastRows
) -> set[str]:
    """Features that e-BH discovers when nothing is perturbed, by e-values made for that: a figure of private rows."""
    study = contrast_study(spec, replace(plan, mu=math.inf), reference)
    scores, _ = study.asked_for(study.expected)
    return set(study.names(e_bh(scores(rows), plan.alpha).tolist()))
