"""A list of discoveries as one picture: private log e-value against rank, what is discovered, and the line to reach."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

# Okabe and Ito's colours, which every kind of colour vision tells apart; markers tell the points apart in print.
FOUND, REST, TRUTH, LINE = "#0072B2", "#8C8C8C", "#D55E00", "#000000"
LARGEST_NAMED = 12


def discoveries_png(document: Mapping[str, Any], title: str, without_noise: Mapping[str, float] | None = None) -> bytes:
    """The picture of a discoveries document as a PNG file.

    without_noise: log e-values of the same features before noise, drawn beside them: for the restricted zone alone.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (seconds of imports, for a picture)
    from matplotlib.figure import Figure  # noqa: PLC0415

    lines = document["list"]
    ranks = [line["rank"] for line in lines]
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    if without_noise is not None:
        axis.plot(
            ranks, [without_noise[line["feature"]] for line in lines], linestyle="", marker="x", markersize=5,
            color=TRUTH, label="the same before noise: restricted",
        )  # fmt: skip
    for found, colour, marker, label in ((True, FOUND, "o", "discovered"), (False, REST, "s", "selected only")):
        own = [line for line in lines if line["discovered"] is found]
        if own:
            axis.plot(
                [line["rank"] for line in own], [line["log_e"] for line in own], linestyle="", marker=marker,
                markersize=5, color=colour, label=f"{label} ({len(own)})",
            )  # fmt: skip
    one = document["log_threshold_of_one"]
    axis.plot(
        ranks, [one - math.log(rank) for rank in ranks], color=LINE, linewidth=1, marker="_" if len(ranks) == 1 else "",
        label=f"to be reached for FDR {document['alpha']:g}",
    )  # fmt: skip
    if len(lines) <= LARGEST_NAMED:
        axis.set_xticks(ranks, [line["feature"] for line in lines], rotation=45, ha="right", parse_math=False)
    else:
        axis.set_xlabel("rank by private e-value")
    axis.set_ylabel("private log e-value (nats)")
    axis.set_title(title, loc="left", fontsize=11, parse_math=False)  # a dollar is a dollar
    axis.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.legend(frameon=False)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()
