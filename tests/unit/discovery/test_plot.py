"""The picture of a list: a PNG that shows what is discovered, and what was before noise only where it is asked for."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from synth_platform.discovery.documents import discoveries_document
from synth_platform.discovery.plot import FOUND, LARGEST_NAMED, REST, TRUTH, discoveries_png

MARKERS = 50  # pixels of two: the edges of black letters have a few of the same grey
TITLE = "Small cohort: basal-mu1-alpha0.05"


def document(values: list[float]) -> dict[str, Any]:
    e_values = {
        "contrast": "basal",
        "plan": "basal-mu1-alpha0.05",
        "hypotheses": 2000,
        "scale": 1.0,
        "log_e": values,
        "selected": [f"gene{at}" for at in range(len(values))],
    }
    return discoveries_document(e_values, 0.05)


LIST = document([20.0, 15.0, 12.0, 1.0, -2.0])
BEFORE = {f"gene{at}": value for at, value in enumerate([18.0, 16.0, 13.0, 0.0, 4.0])}


def pixels(png: bytes, colour: str) -> int:
    """How many pixels of a PNG have exactly this colour."""
    image = np.rint(imread(io.BytesIO(png))[..., :3] * 255).astype(int)
    return int((image == np.rint(np.array(to_rgb(colour)) * 255)).all(axis=-1).sum())


def test_it_is_a_png_of_the_size_of_a_page() -> None:
    png = discoveries_png(LIST, TITLE)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert imread(io.BytesIO(png)).shape[:2] == (528, 880)


def test_discoveries_and_the_others_are_told_apart() -> None:
    """Claim: each is drawn where there is one, and only there."""
    assert LIST["discoveries"] == 3
    both, none, all_ = (discoveries_png(d, TITLE) for d in (LIST, document([1.0, 0.0]), document([30.0, 20.0])))
    assert [pixels(png, FOUND) > MARKERS for png in (both, none, all_)] == [True, False, True]
    assert [pixels(png, REST) > MARKERS for png in (both, none, all_)] == [True, True, False]


def test_what_was_before_noise_is_drawn_only_if_it_is_given() -> None:
    """Claim: the picture of a release has no trace of it; the restricted one moves with it, feature by feature."""
    released, restricted = discoveries_png(LIST, TITLE), discoveries_png(LIST, TITLE, BEFORE)
    assert pixels(released, TRUTH) == 0
    assert pixels(restricted, TRUTH) > MARKERS
    assert restricted != discoveries_png(LIST, TITLE, BEFORE | {"gene4": 3.0})
    assert restricted == discoveries_png(LIST, TITLE, dict(reversed(BEFORE.items())))


def test_a_feature_without_a_value_before_noise_is_an_error() -> None:
    with pytest.raises(KeyError):
        discoveries_png(LIST, TITLE, {"gene0": 1.0})


def test_one_list_has_one_picture() -> None:
    """Claim: no clock and no library version is written into it."""
    assert discoveries_png(LIST, TITLE) == discoveries_png(LIST, TITLE)
    assert b"tEXt" not in discoveries_png(LIST, TITLE)


@pytest.mark.parametrize("number", [1, LARGEST_NAMED, LARGEST_NAMED + 1, 2000])
def test_lists_of_any_length_are_drawn(number: int) -> None:
    assert pixels(discoveries_png(document([30.0] * number), TITLE), FOUND) > 0


def test_names_are_no_formulas() -> None:
    """Claim: a dollar, a backslash or an unclosed formula in a title or a name is drawn as it is."""
    odd = document([20.0, 1.0])
    odd["list"][0]["feature"] = r"HLA_$\frac"
    odd["list"][1]["feature"] = "$x_$"
    assert pixels(discoveries_png(odd, r"Trial of $5_$ \frac{"), FOUND) > 0
