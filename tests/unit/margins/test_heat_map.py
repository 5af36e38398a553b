"""The heat map: a PNG with a square in its band's colour for each pair, outlined where a margin holds it."""

import io
from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from synth_platform.margins.measures.heat_map import ABOVE, COLOURS, heat_map_png
from synth_platform.margins.measures.tables import TableUtility


def table(first, second, s_pmse, preserved=False):
    return TableUtility((first, second), s_pmse * 10, 10, preserved)


def pixels(png, colour):
    image = np.rint(imread(io.BytesIO(png))[..., :3] * 255).astype(int)
    return int((image == np.rint(np.array(to_rgb(colour)) * 255)).all(axis=-1).sum())


@cache
def with_values(*values, held=1):
    return heat_map_png([table("a", f"b{at}", value, at < held) for at, value in enumerate(values)], "t")


@pytest.mark.parametrize(("s_pmse", "colour"), [(0.5, 0), (2.99, 2), (3, 3), (9.99, 4), (10, 5), (5000, 7)])
def test_a_square_has_the_colour_of_its_value(s_pmse, colour):
    own = (*COLOURS, ABOVE)[colour]
    assert pixels(with_values(1.5, s_pmse), own) - pixels(with_values(1.5, 1.5), own) > 600


def test_a_preserved_relation_is_outlined():
    dark = [(imread(io.BytesIO(with_values(1.5, 1.5, held=held)))[..., :3].max(axis=-1) < 0.5).sum() for held in (1, 2)]
    assert dark[1] - dark[0] > 100


def test_many_variables_and_names_that_look_like_formulas_are_drawn():
    names = [f"a${at}_$" for at in range(30)]
    png = heat_map_png([table(a, b, 1.5) for at, a in enumerate(names) for b in names[at + 1 :]], "costs $1 and $2")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    height, width = imread(io.BytesIO(png)).shape[:2]
    assert min(height, width) > 1000


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "at least one"),
        ([TableUtility(("a", "b", "c"), 1.0, 1, False)], "two variables"),
        ([table("a", "b", 1), table("b", "a", 1)], "the pair b × a is there twice"),
    ],
)
def test_what_is_wrong_is_named(tables, message):
    with pytest.raises(ValueError, match=message):
        heat_map_png(tables, "t")
