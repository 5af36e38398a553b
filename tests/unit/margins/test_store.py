"""Stored margins, rows and fits come back to the last bit; what was altered or is unknown is an error by name."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_safetensors

from synth_platform.margins import store
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.dense import DenseFit, fit_dense
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.fitting.junction_tree import fit_junction_tree
from synth_platform.margins.fitting.weighted_rows import fit_weighted_rows
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.rows import Rows, count_margins, two_way_margins
from synth_platform.margins.sealed_files import SealedFilesError, array_bytes, arrays_of, sealed
from synth_platform.margins.store import (
    content_digest,
    fitted_files,
    fitted_from_files,
    margin_set_files,
    margin_set_from_files,
    rows_files,
    rows_from_files,
)
from synth_platform.margins.structural_zeros import StructuralZero

DOMAIN = Domain(
    (
        Variable("age, \n", tuple(f"{at}-" for at in range(300))),
        Variable("Größe", ("false", "true"), "boolean"),
        Variable("rooms", ("1", "2", "?"), "integer", "?"),
    )
)
ROWS = Rows(DOMAIN, np.random.default_rng(1).integers(0, DOMAIN.shape, (500, 3)))
ZERO = StructuralZero.of({"rooms": ["2"], "Größe": ["true"]})


@st.composite
def domains(draw):
    label = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=4)
    names = draw(st.lists(label, min_size=1, max_size=3, unique=True))
    labels = st.lists(label, min_size=1, max_size=4, unique=True)
    variables = []
    for name in names:
        categories = draw(labels)
        missing = draw(st.sampled_from([None, *categories]))
        variables.append(Variable(name, tuple(categories), "text", missing))
    return Domain(tuple(variables))


@st.composite
def tables(draw):
    domain = draw(domains())
    rows = draw(st.integers(0, 20))
    codes = [draw(st.lists(st.integers(0, size - 1), min_size=rows, max_size=rows)) for size in domain.shape]
    return Rows(domain, np.array(codes, dtype=np.int64).reshape(len(domain.shape), rows).T)


@settings(deadline=None, max_examples=60)
@given(tables())
def test_any_rows_come_back_in_their_order(rows):
    back = rows_from_files(rows_files(rows))
    assert back.domain == rows.domain
    assert back.codes.dtype == np.int64
    assert np.array_equal(back.codes, rows.codes)
    assert content_digest(back) == content_digest(rows)


@settings(deadline=None, max_examples=60)
@given(tables(), st.floats(1e-300, 1e300), st.text(st.characters(exclude_categories=("Cs",)), max_size=5))
def test_any_margins_come_back_to_the_last_bit(rows, count, step):
    domain = rows.domain
    counts = np.asfortranarray(rows.count(domain.names) + 1.0)
    counts.ravel()[0] = count
    zeros = ()
    if domain.shape[0] > 1:
        zeros = (StructuralZero.of({domain.names[0]: domain.variables[0].categories[1:2]}),)
        counts[1] = 0
    margins = MarginSet(domain, (Margin(domain.names, counts, ("microdata", step)),), zeros)
    back = margin_set_from_files(margin_set_files(margins))
    assert (back.domain, back.zeros) == (domain, zeros)
    (margin,) = back
    assert (margin.names, margin.provenance) == (domain.names, ("microdata", step))
    assert margin.counts.tobytes() == np.ascontiguousarray(counts).tobytes()


def test_every_margin_has_its_own_counts():
    margins = two_way_margins(ROWS, "microdata", ())
    back = margin_set_from_files(margin_set_files(margins))
    for one, other in zip(margins, back, strict=True):
        assert one.names == other.names
        assert np.array_equal(one.counts, other.counts)


def fits():
    small = Rows(DOMAIN.project(("Größe", "rooms")), ROWS.codes[:, 1:])
    possible = Rows(small.domain, small.codes[~((small.codes[:, 0] == 1) & (small.codes[:, 1] == 1))])
    margins = two_way_margins(possible, zeros=(ZERO,))
    chain = count_margins(ROWS, [("age, \n", "rooms"), ("rooms", "Größe")], "microdata")
    return {
        "dense": fit_dense(margins),
        "junction_tree": fit_junction_tree(chain),
        "weighted_rows": fit_weighted_rows(margins, np.random.default_rng(3), 500),
    }


@pytest.mark.parametrize("engine", ["dense", "junction_tree", "weighted_rows"])
def test_a_fit_comes_back_and_draws_the_same_rows(engine):
    fitted = fits()[engine]
    back = fitted_from_files(fitted_files(fitted))
    assert type(back) is type(fitted)
    assert back.report == fitted.report
    document = back.report.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["largest_residual"] == max(document["residuals"].values())
    assert (document["effective_sample_size"] is None) is (document["unreached"] is None) is (engine != "weighted_rows")
    assert back.domain == fitted.domain
    names = ("rooms", "Größe")
    assert back.probabilities(names).tobytes() == fitted.probabilities(names).tobytes()
    drawn = [each.draw(200, np.random.default_rng(9)) for each in (fitted, back)]
    assert np.array_equal(*drawn)
    assert fitted_files(back) == fitted_files(fitted)


def test_a_table_of_float32_keeps_its_numbers():
    report = FitReport("dense", "matched", 1, 1e-5, {"a × b": 0.0}, {"a × b": 10.0}, 10.0)
    domain = Domain((Variable("a", ("0", "1")), Variable("b", ("0", "1", "2"))))
    table = np.random.default_rng(5).random((3, 2), dtype=np.float32)
    back = fitted_from_files(fitted_files(DenseFit(domain, report, (1, 0), table)))
    assert back.table.dtype == np.float32
    assert back.order == (1, 0)
    assert back.table.tobytes() == table.tobytes()


def test_the_array_file_is_safetensors_as_others_read_it():
    arrays = {
        "b": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "a": np.array([np.nan, -0.0, np.inf]),
        "c": np.array(7, dtype=np.int64),
        "empty": np.zeros((0, 3), dtype=np.float32),
    }
    content = array_bytes(arrays)
    for read in (load_safetensors(content), arrays_of(content)):
        assert read.keys() == arrays.keys()
        for key, array in arrays.items():
            assert read[key].dtype == array.dtype
            assert read[key].shape == array.shape
            assert read[key].tobytes() == array.tobytes()
    with pytest.raises(SealedFilesError, match=r"'x' has type uint8, none of float64"):
        array_bytes({"x": np.zeros(2, np.uint8)})


def test_a_large_table_is_read_in_place():
    content = array_bytes({"table": np.zeros(10**6, np.float32)})
    table = arrays_of(content)["table"]
    assert np.shares_memory(table, np.frombuffer(content, np.uint8))


def test_rows_are_small_and_open_to_other_readers():
    files = rows_files(ROWS)
    frame = pl.read_parquet(files["codes.parquet"])
    assert frame.columns == list(DOMAIN.names)
    assert frame.dtypes == [pl.UInt16, pl.UInt8, pl.UInt8]


def test_a_digest_tells_rows_their_order_and_their_domain_apart():
    first, second = DOMAIN.variables[2], DOMAIN.variables[1]
    others = [
        Rows(DOMAIN, ROWS.codes[::-1]),
        ROWS.take(np.arange(499)),
        Rows(Domain((*DOMAIN.variables[:2], replace(first, missing=None, kind="text"))), ROWS.codes),
        Rows(Domain((DOMAIN.variables[0], replace(second, name="size"), first)), ROWS.codes),
    ]
    digests = {content_digest(each) for each in (ROWS, *others)}
    assert len(digests) == 5
    assert content_digest(Rows(DOMAIN, np.asfortranarray(ROWS.codes))) == content_digest(ROWS)


KINDS = {
    "margins": (lambda: margin_set_files(two_way_margins(ROWS)), margin_set_from_files),
    "rows": (lambda: rows_files(ROWS), rows_from_files),
    "fitted": (lambda: fitted_files(fits()["junction_tree"]), fitted_from_files),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_changed_or_lost_byte_is_found(kind):
    written, read = KINDS[kind]
    files = written()
    for name, content in files.items():
        for position in range(0, len(content), max(1, len(content) // 40)):
            altered = bytearray(content)
            altered[position] ^= 1
            with pytest.raises(SealedFilesError, match=name.replace(".", r"\.")):
                read({**files, name: bytes(altered)})
        for short in (b"", content[:-1]):
            with pytest.raises(SealedFilesError, match=name.replace(".", r"\.")):
                read({**files, name: short})
        with pytest.raises(SealedFilesError, match=rf"{name}: missing"):
            read({other: content for other, content in files.items() if other != name})


def test_another_kind_format_or_engine_is_an_error_by_name():
    files = margin_set_files(two_way_margins(ROWS))
    with pytest.raises(SealedFilesError, match=r"rows\.json: missing"):
        rows_from_files(files)
    with pytest.raises(SealedFilesError, match=r"rows\.json: not rows in format 1"):
        rows_from_files({**files, "rows.json": files["margins.json"]})
    document = json.loads(files.pop("margins.json"))["document"]
    del document["zeros"]
    with pytest.raises(SealedFilesError, match=r"margins\.json: 'zeros' is missing: written by another version"):
        margin_set_from_files(sealed(store.MARGINS, document, files))
    fitted = fitted_files(fits()["dense"])
    document = json.loads(fitted["fitted.json"])["document"]
    document["report"]["engine"] = "quantum"
    with pytest.raises(SealedFilesError, match="engine 'quantum' is none of"):
        fitted_from_files(sealed(store.FITTED, document, {"tables.safetensors": fitted["tables.safetensors"]}))
    with pytest.raises(SealedFilesError, match="object is a fit of no known engine"):
        fitted_files(object())


def test_what_json_does_not_carry_is_refused():
    for value in ((1, 2), {1: "a"}, float("nan"), {1.5}):
        with pytest.raises(SealedFilesError, match=r"thing\.json: a value"):
            sealed("thing", {"value": value}, {})


def test_rows_are_picked_by_position():
    picked = ROWS.take(np.array([3, 1, 3]))
    assert len(picked) == 3
    assert np.array_equal(picked.codes, ROWS.codes[[3, 1, 3]])
