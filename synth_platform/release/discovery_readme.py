"""The README that travels with a list of discoveries."""

from __future__ import annotations

from typing import Any

from synth_platform.release.readme import environment

TEMPLATE = """\
# {{ title }}: private discoveries

{{ discoveries.discoveries }} {{ "discovery" if discoveries.discoveries == 1 else "discoveries" }} \
among {{ discoveries.hypotheses }} hypotheses, at a false discovery rate of \
{{ decision.fdr.level | figure }}.
Nothing here was computed from private records but through the noisy answers listed in `ledger.json`.

| file | what it is |
|---|---|
| `table.parquet`, `table.csv` | the {{ e_values.size }} selected hypotheses: rank, name, private log e-value (nats), \
whether it is a discovery |
| `discoveries.png` | the same as a picture, with the line that a discovery has to reach |
| `ledger.json` | every access to private records this list rests on, and what they cost together |
| `decision.json` | the release decision |
| `SHA256SUMS` | checksums of all files |

## What was compared

Cohort `{{ decision.cohort }}`, contrast `{{ decision.contrast }}`, \
{{ "groups" if sizes | length > 1 else "one group" }} of {{ sizes | join(" and ") }} records.
{% for name, value in e_values.compared.items() if value or (name == "control" and e_values.compared.case) -%}
{% if name != "family" -%}
{{ name }}: {{ value if value is string else (value | join(", ") or "every other value") }}; {% endif %}{% endfor %}\
the family of hypotheses has digest `{{ e_values.compared.family }}`.
Statistic `{{ e_values.statistic.name }}`; {{ e_values.size }} of {{ e_values.hypotheses }} hypotheses were selected \
({{ e_values.method }} size).

## What a discovery means

An e-value is a statistic of mean at most 1 where nothing is there. Those told here carry noise, and stay e-values.
Boosted e-BH at level {{ decision.fdr.level | figure }} keeps the expected share of false discoveries at or below it, \
under any dependence between
hypotheses, for the null that group and feature are independent: a confounder, or a batch that differs between the
groups, is a reason for a discovery as well. A hypothesis that is not listed was not selected; that is no evidence
against it.
A discovery is two-sided: it does not tell whether \
{{ "values are higher in cases or lower" if sizes | length > 1 else "higher or lower values live longer" }}.
The rate is that of this one list. Over several lists, or if this is the best of several lists of the same contrast, \
it is not kept.

## What it cost

One record replaced by any other within its group changes the probability of any content of this package no more than
moving a unit Gaussian by {{ decision.mu | figure }} changes its own ({{ decision.mu | figure }}-GDP): at most by a \
factor e^{{ decision.epsilon | figure }}, up to {{ decision.delta }}.
Group sizes are public; two people who change groups are two records.
Spent by the entries in `ledger.json`: mu {{ decision.ledger.mu | figure }}, epsilon \
{{ decision.ledger.epsilon_rdp | figure }} (RDP), {{ decision.ledger.epsilon_pld | figure }} (tight).
Other releases from the same privacy domain add to it.

| code | mechanism | sensitivity | noise scale |
|---|---|---:|---:|
{% for entry in ledger -%}
| {{ entry.code }} | {{ entry.event | mechanism }} | {{ entry.sensitivity | figure }} | {{ entry.scale | figure }} |
{% endfor %}
The sensitivity of E_VALUES is that of all values together; that of a choice is of each log e-value.
All of the package, the picture and the decision included, follows from these answers and from public constants: unlike
the gates of a synthetic table, nothing compared it with private records.

## How to verify

`sha256sum --check SHA256SUMS` in this folder. The list follows from its log e-values: sort them, and reject the k
largest for the largest k whose smallest is at or above {{ discoveries.log_threshold_of_one | figure }} - log k.

Registered with digest `{{ decision.registration }}`.
"""


def render_list_readme(**context: Any) -> str:
    """The README of one list.

    Needs title, decision, e_values, discoveries, ledger (published entries) and sizes. Raises jinja2.UndefinedError
    for a missing name.
    """
    return environment().from_string(TEMPLATE).render(**context)
