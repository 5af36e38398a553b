"""The README that travels with a released table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, StrictUndefined

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.closest_record import NEAR_SHARE
from synth_platform.evaluation.inference_risk import MARGIN

TEMPLATE = """\
# {{ title }}: synthetic table

{{ rows }} synthetic rows, {{ columns }} columns. No row is one of the private cohort: every row was drawn from a model
that saw that cohort only through the noisy statistics listed in `ledger.json`.

| file | what it is |
|---|---|
| `table.parquet`, `table.csv` | the table, native units; an empty CSV field is a missing value |
| `data_dictionary.csv` | every column: kind, unit, bounds, categories |
| `ledger.json` | every access to private rows this table rests on, and what they cost together |
| `decision.json` | the release decision and the status of every gate |
| `SHA256SUMS` | checksums of all files |

## What it is

Cohort `{{ decision.cohort }}`, generator `{{ decision.generator }}`{% if decision.plan %}, plan \
`{{ decision.plan }}`{% endif %}. Grade: **{{ decision.decision }}**.

## What is preserved

{% if decision.decision == "ELIGIBLE_CONFIRMED" -%}
For every endpoint below, models trained on tables of this generator keep at least 95 % of the performance of models
trained on the real rows, and a one-sided 95 % lower bound confirms it.
{%- else -%}
For every endpoint below, models trained on tables of this generator keep at least 95 % of the performance of models
trained on the real rows *as a point estimate*; where the status is PASS_POINT, the test rows were too few for more.
{%- endif %}
{% if decision.utility.design == "cross_fit" %}
Judged by cross-fitting: for each group of institutions the generator was trained anew on all the others.
{% endif %}
| endpoint | status |{% if aggregates %} preserved | skill preserved | lift over public rows |{% endif %}
|---|---|{% if aggregates %}---:|---:|---:|{% endif %}
{% for name, endpoint in decision.endpoints.items() -%}
| {{ name }} | {{ endpoint.status }} |{% if aggregates %} {{ endpoint.preservation | figure }} | \
{{ endpoint.skill | figure }} | {{ endpoint.lift | figure }} |{% endif %}
{% endfor %}
Anything else (another outcome, a rare subgroup, an interaction nobody registered) was not measured.
{% if "NO_PRIVATE_LIFT" in decision.notes %}
Note NO_PRIVATE_LIFT: on these endpoints the table does not beat the public reference rows alone.
{% endif %}
## What it cost

One patient more or less in the private cohort changes the probability of any content of the table by at most a factor \
e^{{ decision.epsilon | figure }}, up to {{ decision.delta }} (promised epsilon and delta).
Spent by the entries in `ledger.json`: epsilon {{ decision.ledger.epsilon_rdp | figure }} (RDP), \
{{ decision.ledger.epsilon_pld | figure }} (tight){% if decision.ledger.mu is not none %}, \
mu {{ decision.ledger.mu | figure }} (Gaussian DP){% endif %}.
No test of whether one given patient was in the cohort can reach an AUROC above \
{{ decision.ledger.auroc_bound | figure }} from the content of this table alone; other releases
from the same privacy domain add to it.

| code | mechanism | sensitivity | noise scale |
|---|---|---:|---:|
{% for entry in ledger -%}
| {{ entry.code }} | {{ entry.event.type }} | {{ entry.sensitivity | figure }} | {{ entry.scale | figure }} |
{% endfor %}
## Attacks that were tried

| gate | status | registered limit |
|---|---|---|
| closest record | {{ decision.closest_record.status }} | nearer to training rows at most \
{{ (0.5 + decision.limits.train_closer_tolerance) | figure }}, near share at most \
{{ (near_share + decision.limits.excess_tolerance) | figure }} |
| membership{% if decision.membership.design == "half_split" %}, by repeated half splits{% endif %} | \
{{ decision.membership.status }} | AUROC at most {{ decision.limits.membership_limit | figure }} |
| attribute inference, singling out | {{ decision.inference.status }} | success at most \
{{ (100 * margin) | figure }} points above that on people the generator never saw |

Registered in `cohort.yaml` with digest `{{ decision.registration }}`.
{% if "LOOSENED_MEMBERSHIP_LIMIT" in decision.notes %}
Note LOOSENED_MEMBERSHIP_LIMIT: the cohort registers a looser membership limit than the platform's default of \
{{ default_membership_limit | figure }}; the status above says less than it would under that one.
{% endif %}
## How to verify

`sha256sum --check SHA256SUMS` in this folder. The costs follow from `ledger.json` alone: compose the listed mechanisms
with any accountant at the stated delta.

## Limits

- The guarantee is for one patient. Whatever the public reference rows say about people is outside it.
- The guarantee is about the noisy statistics and everything computed from them, which is the content of the table.
  Whether a table was published at all, and the statuses, grade and notes beside it{% if aggregates %} with their \
figures{% endif %}, were decided by comparing
  it with the private rows themselves: they carry no such guarantee.
- `{{ decision.membership.status }}` says that the registered attacks were held to an AUROC of \
{{ decision.limits.membership_limit | figure }}, with a 95 % upper bound; other attacks
  may do better, and the guarantee above does not rest on it.{% for note in decision.notes if "LOW_POWER" in note %}
- {{ note }}: on so few rows this gate would often refuse, or not confirm, a table that is as good as the truth.\
{% endfor %}
- Do not use this table for decisions about individuals, and do not link it with other tables to look for people.
"""


def environment() -> Environment:
    """How every README of a package is rendered: plain text, no name left undefined."""
    plain = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    plain.filters["figure"] = _figure
    plain.filters["mechanism"] = _mechanism
    return plain


def _mechanism(event: Mapping[str, Any]) -> str:
    """An event document as people say it."""
    times, single = (event["count"], event["event"]) if event["type"] == "SelfComposedDpEvent" else (1, event)
    names = {"GaussianDpEvent": "Gaussian noise", "BoundedRangeDpEvent": "choice by Gumbel noise"}
    name = names.get(single["type"], single["type"])
    return name if times == 1 else f"{name}, {times} times"


def _figure(value: float | None) -> str:
    return "not stated" if value is None else f"{value:.6g}"


def render_readme(**context: Any) -> str:
    """The README of one package.

    Needs title, rows, columns, decision (the published document), ledger (published entries) and aggregates (whether
    gate figures may be shown). Raises jinja2.UndefinedError for a missing name.
    """
    return (
        environment()
        .from_string(TEMPLATE)
        .render(
            **context, near_share=NEAR_SHARE, default_membership_limit=GateOptions().membership_limit, margin=MARGIN
        )
    )
