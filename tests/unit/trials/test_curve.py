"""The epsilon curve: how points are averaged, what a setting is, and that table and picture say the same."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from matplotlib.image import imread

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.sources.virtual import draw_cohort
from synth_platform.trials import curve as module
from synth_platform.trials.curve import (
    CEILING,
    CurvePoint,
    Grid,
    Setting,
    curve,
    curve_table,
    draw_stage,
    reached,
    settings,
)
from synth_platform.trials.curve_plot import curve_png
from synth_platform.trials.preserved import ENDPOINTS, preserved, real_scores
from synth_platform.trials.stage import Stage, make_stage

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
GRID = Grid(epsilons=(1.0, 8.0), draws=2, tables=2, sizes=(60, 120), shifts=(0.0, 0.5), shares=(0.5, 1.0))


@cache
def stage() -> Stage:
    document = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["privacy"]["n_ref"] = 120
    document["synthetic"]["rows"] = 100
    document["source"]["options"] |= {"train": 120, "holdout": 30, "test": 90, "public": 150}
    for modality, features in (("expression", 4), ("methylation", 3)):
        document[modality]["panel"] = document[modality]["panel"][:features]
    spec = CohortSpec.model_validate(document)
    return make_stage(spec, draw_cohort(spec))


def real_stage() -> Stage:
    """The same rows as if a steward had brought them."""
    spec = stage().spec
    return replace(
        stage(), spec=spec.model_copy(update={"source": spec.source.model_copy(update={"reader": "tables"})})
    )


def point(epsilon: float | None, preservation: float, **changes: Any) -> CurvePoint:
    fields: dict[str, Any] = {
        "setting": Setting(rows=60, shift=0.5),
        "generator": "G0",
        "epsilon": epsilon,
        "endpoint": "auroc",
        "preservation": preservation,
        "minimum": preservation - 0.1,
        "standard_error": 0.01,
        "trtr": 0.9,
    }
    return CurvePoint(**fields | changes)


def test_mean_and_minimum_are_over_all_tables_and_the_error_is_over_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of one draw share its noise and its rows: taking them for independent would understate the error."""
    values = {0: [0.5, 0.7], 1: [0.9, 0.7]}  # draw -> TSTR of its tables, at TRTR = 0.8

    def one_state(_: Stage, __: object, seed: int) -> Iterator[tuple[str, float, int]]:
        yield "G0", 1.0, seed

    monkeypatch.setattr(module, "_states", one_state)
    monkeypatch.setattr(module, "draw_stage", lambda *_: stage())
    monkeypatch.setattr(module, "real_scores", lambda _: dict.fromkeys(ENDPOINTS, 0.8))
    monkeypatch.setattr(
        module, "table_scores", lambda _, state, seed: dict.fromkeys(ENDPOINTS, values[state][seed % 1000 - 1])
    )
    found = list(curve(stage(), replace(GRID, sizes=(60,), shifts=(0.0,))))
    assert {p.endpoint for p in found} == set(ENDPOINTS)
    for p in found:
        assert p.preservation == pytest.approx((0.5 + 0.7 + 0.9 + 0.7) / 4 / 0.8)
        assert p.minimum == pytest.approx(0.5 / 0.8)
        assert p.standard_error == pytest.approx((1.0 - 0.75) / 2)  # half the difference of two draws' means
        assert p.trtr == pytest.approx(0.8)


def test_a_virtual_cohort_has_sizes_and_shifts_and_a_real_one_shares() -> None:
    assert settings(stage().spec, GRID) == tuple(Setting(rows=n, shift=s) for s in (0.0, 0.5) for n in (60, 120))
    assert settings(real_stage().spec, GRID) == (Setting(share=0.5), Setting(share=1.0))


def test_every_draw_of_a_world_has_other_rows_of_it() -> None:
    setting = Setting(rows=60, shift=0.5)
    first, second, again = (draw_stage(stage(), setting, draw) for draw in (0, 1, 0))
    assert len(first.rows.where_split("train")) == 60
    assert first.spec.privacy.n_ref == 60
    assert first.spec.synthetic.rows == 50
    assert (first.rows.x == again.rows.x).all()
    assert not np.isin(first.rows.time, second.rows.time).all()
    world = ("world_seed", "public")
    assert all(first.spec.source.options[k] == stage().spec.source.options[k] for k in world)
    assert first.spec.source.options["public_shift"] == 0.5


def test_a_share_of_a_real_cohort_keeps_its_test_rows_and_corrects_anew() -> None:
    whole = real_stage()
    half = draw_stage(whole, Setting(share=0.5), 3)
    train = half.rows.where_split("train")
    assert len(train) == 60
    assert set(train.key) < set(whole.rows.where_split("train").key)
    assert set(train.key) != set(draw_stage(whole, Setting(share=0.5), 4).rows.where_split("train").key)
    assert (half.rows.where_split("test").x == whole.rows.where_split("test").x).all()
    assert not np.allclose(half.correction.location, whole.correction.location)
    full = draw_stage(whole, Setting(share=1.0), 3)
    assert (full.rows.where_split("train").x == whole.rows.where_split("train").x).all()


def test_words_of_a_real_cohort_tell_no_count() -> None:
    said: list[str] = []
    list(curve(real_stage(), replace(GRID, epsilons=(8.0,), shares=(0.5,)), said.append))
    assert said == ["50% of the training rows: draw 1 of 2", "50% of the training rows: draw 2 of 2"]


def test_the_whole_way_over_a_small_world() -> None:
    points = list(curve(stage(), replace(GRID, sizes=(120,), shifts=(0.0,))))
    targets = {(p.generator, p.epsilon) for p in points}
    assert targets == {(g, e) for g in ("G0", "G0A") for e in (1.0, 8.0, CEILING)} | {
        ("S_PUBLIC", None),
        ("S_ORACLE", None),
    }
    assert len(points) == len(targets) * len(ENDPOINTS)
    by = {(p.generator, p.epsilon): p.preservation for p in points if p.endpoint == "auroc"}
    assert by["G0", 1.0] < by["G0", CEILING]
    assert all(p.minimum <= p.preservation for p in points)
    table = curve_table(points)
    assert table.height == len(points)
    read = json.loads(json.dumps(table.to_dicts(), allow_nan=False))
    assert read[0]["preservation"] == pytest.approx(points[0].preservation, abs=1e-6)
    assert (read[0]["rows"], read[0]["shift"], read[0]["share"]) == (120, 0.0, None)


def test_the_real_arm_preserves_itself() -> None:
    own = real_scores(stage())
    assert preserved(own, own) == dict.fromkeys(ENDPOINTS, 1.0)
    assert math.isnan(preserved(own, dict.fromkeys(ENDPOINTS, 0.0))["auroc"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({0.5: 0.9, 1.0: 0.96, 2.0: 0.97}, 1.0),
        ({0.5: 0.96, 1.0: 0.94, 2.0: 0.97}, 2.0),  # a dip is no target: it holds from there on
        ({0.5: 0.9, 1.0: 0.94}, None),
        ({0.5: 0.95}, 0.5),
        ({0.5: 0.97, 1.0: math.nan, 2.0: math.nan}, None),
        ({}, None),
    ],
)
def test_the_target_from_which_on_it_is_preserved(values: dict[float, float], expected: float | None) -> None:
    ceiling_and_floor = [point(CEILING, 0.99), point(None, 0.99)]
    assert reached([*(point(e, p) for e, p in values.items()), *ceiling_and_floor]) == expected


def test_what_is_not_defined_is_null_in_the_table() -> None:
    table = curve_table([point(1.0, math.nan, standard_error=math.nan)])
    assert table["preservation"].to_list() == [None]
    assert json.loads(table.write_json())[0]["standard_error"] is None


def picture(*found: Setting) -> Any:
    """Pixels of a curve over `found` whose Spearman is not defined."""
    points = [
        point(e, math.nan if endpoint == "spearman" else p, setting=s, endpoint=endpoint, generator=g)
        for s in found
        for endpoint in ENDPOINTS
        for g, e, p in (
            *((g, e, 0.5 + 0.05 * e) for g in ("G0", "G0A") for e in (0.5, 8.0, CEILING)),
            ("S_PUBLIC", None, 0.93),
        )
    ]
    return imread(io.BytesIO(curve_png(points, "A cohort")), format="png")


def test_the_picture_has_a_column_per_setting() -> None:
    few, many = picture(Setting(share=1.0)), picture(*(Setting(rows=n, shift=0.1) for n in range(4)))
    assert few.shape[0] == many.shape[0]
    assert many.shape[1] > 1.2 * few.shape[1]
    assert few[..., :3].std() > 0.05  # something is drawn
