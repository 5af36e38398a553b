"""The epsilon curve as one picture: a row of panels per endpoint, a column per training size and public shift."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from synth_platform.contract.cohort_sections import EndpointName
from synth_platform.contract.cohort_spec import GeneratorCode
from synth_platform.trials.curve import CEILING, REQUIRED, CurvePoint, Setting
from synth_platform.trials.preserved import ENDPOINTS

# Okabe and Ito's colours, which every kind of colour vision tells apart; markers tell the generators apart in print.
COLOUR: dict[str, str] = {"G0": "#D55E00", "G0A": "#0072B2"}
MARKER: dict[str, str] = {"G0": "s", "G0A": "o"}
GREY = "#8C8C8C"
NAMES: dict[EndpointName, str] = {
    "c_index": "C-index",
    "macro_f1": "macro-F1",
    "auroc": "AUROC",
    "spearman": "Spearman",
}
LOWEST, HIGHEST, SKY = 0.6, 1.06, 1.25  # the axis ends at HIGHEST, or higher up to SKY where a mean does
TICKS = {0.6: "0.6", 0.7: "0.7", 0.8: "0.8", 0.9: "0.9", REQUIRED: "0.95", 1.0: "1", 1.1: "1.1", 1.2: "1.2"}
ERRORS = 2  # half width of bars and band, in standard errors
_CLEAR = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
PANEL_WIDTH, MARGIN, HEIGHT = 1.75, 1.2, 8.6  # inches


def curve_png(points: Sequence[CurvePoint], title: str) -> bytes:
    """The picture of one cohort's curve as a PNG file; points below the axis are marked by a triangle at its foot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (seconds of imports, for a picture)
    from matplotlib.figure import Figure  # noqa: PLC0415

    settings = list(dict.fromkeys(p.setting for p in points))
    groups = [list(own) for _, own in itertools.groupby(settings, key=lambda setting: setting.words[:-1])]
    width = MARGIN + PANEL_WIDTH * max(len(settings), 3)
    figure = Figure(figsize=(width, HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    ratios = [len(group) + (0.3 if number == 0 else 0.0) for number, group in enumerate(groups)]  # 0.3: its labels
    top = max([HIGHEST, *(min(p.preservation + 0.03, SKY) for p in points if np.isfinite(p.preservation))])
    parts = figure.subfigures(1, len(groups), width_ratios=ratios, squeeze=False)[0]
    for number, (part, group) in enumerate(zip(parts, groups, strict=True)):
        part.suptitle(", ".join(group[0].words[:-1]), fontsize=12, fontweight="bold")
        axes = part.subplots(len(ENDPOINTS), len(group), squeeze=False)
        _draw_group(axes, group, points, top, first=number == 0)
    figure.suptitle(f"{title}\nP = TSTR / TRTR over ε", x=0.01, ha="left", fontsize=13, fontweight="bold")
    named = dict(zip(*reversed(part.axes[0].get_legend_handles_labels()), strict=True))
    figure.legend(
        named.values(),
        named,
        loc="outside lower left",
        ncols=len(named) if width > 12 else 3,
        frameon=False,
        fontsize=11,
    )
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def _draw_group(axes: Any, group: Sequence[Setting], points: Sequence[CurvePoint], top: float, *, first: bool) -> None:
    for (row, endpoint), (column, setting) in itertools.product(enumerate(ENDPOINTS), enumerate(group)):
        axis = axes[row, column]
        _panel(axis, [p for p in points if p.setting == setting and p.endpoint == endpoint], top)
        if row == 0:
            axis.set_title(setting.words[-1], fontsize=11)
        if row < len(ENDPOINTS) - 1:
            axis.set_xticklabels([])
        else:
            axis.set_xlabel("ε", fontsize=11)
        if column > 0 or not first:
            axis.set_yticklabels([])
        else:
            axis.set_ylabel(NAMES[endpoint], fontsize=12, fontweight="bold")


def _panel(axis: Any, points: Sequence[CurvePoint], top: float) -> None:
    found: dict[tuple[GeneratorCode, float | None], CurvePoint] = {(p.generator, p.epsilon): p for p in points}
    epsilons = sorted({e for _, e in found if e is not None and e < CEILING})
    axis.axhline(REQUIRED, color="black", linewidth=0.8)
    for code in dict.fromkeys(code for code, epsilon in found if epsilon is not None):
        colour = COLOUR[code]
        value = np.array([found[code, e].preservation for e in epsilons])
        error = np.array([ERRORS * found[code, e].standard_error for e in epsilons])
        axis.errorbar(
            epsilons,
            value,
            error,
            label=f"{code} ± {ERRORS} SE",
            color=colour,
            marker=MARKER[code],
            markersize=4.5,
            linewidth=1.6,
            elinewidth=1,
            zorder=3,
        )
        below = [e for e, v in zip(epsilons, value, strict=True) if v < LOWEST]
        axis.plot(below, [LOWEST + 0.012] * len(below), linestyle="", color=colour, marker="v", markersize=5)
        ceiling = found[code, CEILING].preservation
        axis.axhline(ceiling, color=colour, linewidth=1.3, linestyle="--", label=f"{code} without noise")
    floor = found["S_PUBLIC", None]
    half = ERRORS * floor.standard_error
    axis.axhspan(floor.preservation - half, floor.preservation + half, color=GREY, alpha=0.25, linewidth=0)
    axis.axhline(floor.preservation, color=GREY, linewidth=1.2, label=f"public rows alone ± {ERRORS} SE")
    if ("S_ORACLE", None) in found:
        truth = found["S_ORACLE", None].preservation
        axis.axhline(truth, color="black", linewidth=1.2, linestyle=":", label="fresh draw of the truth")
    undefined = np.isnan([p.preservation for p in points]).all()
    said = "not defined" if undefined else f"TRTR {points[0].trtr:.2f}"  # P says little where TRTR is chance
    axis.text(
        0.97, 0.04, said, transform=axis.transAxes, ha="right", fontsize=9, color="#595959", bbox=_CLEAR, zorder=5
    )
    ticks = [tick for tick in TICKS if tick < top]
    axis.set_yticks(ticks, [TICKS[tick] for tick in ticks])
    axis.set(ylim=(LOWEST, top), xscale="log", xlim=(min(epsilons) / 1.3, max(epsilons) * 1.3))
    axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons], minor=False)
    axis.set_xticks([], minor=True)
    axis.tick_params(labelsize=9)
    axis.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
