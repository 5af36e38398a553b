"""S_pMSE of every pair of variables as one picture, with the relations that fitted margins hold outlined."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

import numpy as np

from synth_platform.margins.measures.compared import ACCEPTABLE, GOOD
from synth_platform.margins.measures.tables import TableUtility

BOUNDARIES = (0.0, 1.0, 2.0, GOOD, 5.0, ACCEPTABLE, 30.0, 100.0)
# Light to dark, so that print and every colour vision keep the order: three greens are good, two yellows acceptable.
COLOURS = ("#F1F8F4", "#D3EBDD", "#A8D8C0", "#FBE08A", "#F2B84B", "#D9713C", "#A83A2B")
ABOVE, OUTLINE = "#5E1224", "#000000"
DARK = 30.0  # figures are white on colours from here on
MOST_WRITTEN = 26  # variables up to which the figures fit into their squares
SQUARE = 0.38  # inches
LEAST_WIDTH, LEAST_HEIGHT = 10, 6  # squares that the scale needs
LETTERS = 12  # of the title, an inch


def heat_map_png(tables: Sequence[TableUtility], title: str) -> bytes:
    """The picture of the tables of two variables as a PNG file, variables in the order they appear in.

    It compares with private rows: for the restricted zone until a policy says otherwise. Raises ValueError for no
    tables, a table of more or fewer than two variables, or one pair twice.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (seconds of imports, for a picture)
    from matplotlib.colors import BoundaryNorm, ListedColormap  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    if not tables or any(len(table.names) != 2 for table in tables):
        raise ValueError("a heat map is of tables of two variables, at least one")
    names = list(dict.fromkeys(name for column in zip(*(t.names for t in tables), strict=True) for name in column))
    values = np.full((len(names), len(names)), np.nan)
    outlined = []
    for table in tables:
        column, row = sorted(map(names.index, table.names))
        if not np.isnan(values[row, column]):
            raise ValueError(f"the pair {' × '.join(table.names)} is there twice")
        values[row, column] = table.s_pmse
        if table.preserved:
            outlined.append((row, column))

    last = len(names) - 1
    width, height = max(LEAST_WIDTH, last), max(LEAST_HEIGHT, last)
    figure = Figure(figsize=(SQUARE * width + 1.7, SQUARE * height + 1.4), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    colours = ListedColormap(COLOURS).with_extremes(over=ABOVE)
    # The first variable needs no row and the last no column.
    shown = np.ma.masked_invalid(values[1:, :-1])
    mesh = axis.pcolormesh(
        shown, cmap=colours, norm=BoundaryNorm(BOUNDARIES, len(COLOURS)), edgecolors="#FFFFFF", linewidth=3
    )
    axis.set_xlim(0, width)
    axis.set_ylim(last, last - height)
    axis.set_aspect("equal")
    for row, column in outlined:
        axis.add_patch(Rectangle((column + 0.04, row - 0.96), 0.92, 0.92, fill=False, edgecolor=OUTLINE, linewidth=1.2))
    if len(names) <= MOST_WRITTEN:
        for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
            value = values[row, column]
            axis.text(
                column + 0.5, row - 0.5, _figure(value), ha="center", va="center", fontsize=6.5,
                color="#FFFFFF" if value >= DARK else "#000000",
            )  # fmt: skip
    middle = np.arange(last) + 0.5
    axis.set_xticks(middle, names[:-1], rotation=45, ha="right", rotation_mode="anchor", fontsize=8, parse_math=False)
    axis.set_yticks(middle, names[1:], fontsize=8, parse_math=False)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    letters = int(figure.get_figwidth() * LETTERS)
    figure.suptitle(  # a dollar is a dollar
        textwrap.fill(title, letters), x=0.01, ha="left", fontsize=11, parse_math=False
    )

    # The upper triangle is empty: the scale and the legend stand there.
    tall = max(0.48, 4.2 / height)
    scale = axis.inset_axes((0.9, 0.93 - tall, 0.3 / width + 0.015, tall))
    bar = figure.colorbar(mesh, cax=scale, extend="max", ticks=BOUNDARIES, spacing="uniform")
    bar.ax.tick_params(labelsize=8, length=0)
    bar.ax.yaxis.set_ticks_position("right")
    for position, word in ((1.5, "good"), (4, "acceptable"), (6, "poor")):
        bar.ax.text(
            -0.4, position / len(COLOURS), word, transform=bar.ax.transAxes, fontsize=8, ha="right", va="center"
        )
    bar.ax.set_title("S_pMSE", fontsize=9, pad=14)
    if outlined:
        axis.legend(
            handles=[Rectangle((0, 0), 1, 1, fill=False, edgecolor=OUTLINE, linewidth=1.2)],
            labels=["held by a fitted margin"], frameon=False, fontsize=8, loc="lower right",
            bbox_to_anchor=(1.0, 0.98), handlelength=1, handleheight=1,
        )  # fmt: skip
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def _figure(value: float) -> str:
    """Two digits below ten, whole numbers above, thousands as k."""
    if value < 9.95:
        return f"{value:.1f}"
    return f"{value:.0f}" if value < 999.5 else f"{value / 1000:.0f}k"
