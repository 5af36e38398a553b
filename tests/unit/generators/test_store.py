import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from synth_platform.generators import store
from synth_platform.generators.protocol import GeneratorState
from synth_platform.generators.store import StateError, load_state, save_state, state_files

STATE = GeneratorState(
    generator="G0",
    arrays={"means": np.arange(6, dtype=float).reshape(2, 3), "codes": np.array([1, -2], dtype=np.int64)},
    document={"features": ["a", "β"], "epsilon": 2.0, "nested": {"public_prior": False, "none": None}},
    entries=("e-1", "e-2"),
    unledgered=(),
    seeded=True,
)


def same(one: GeneratorState, other: GeneratorState) -> bool:
    return (
        (one.generator, dict(one.document), one.entries, one.unledgered, one.seeded)
        == (other.generator, dict(other.document), other.entries, other.unledgered, other.seeded)
        and one.arrays.keys() == other.arrays.keys()
        and all(
            one.arrays[name].dtype == other.arrays[name].dtype
            and one.arrays[name].shape == other.arrays[name].shape
            and one.arrays[name].tobytes() == other.arrays[name].tobytes()
            for name in one.arrays
        )
    )


def test_a_state_comes_back_as_it_went(tmp_path):
    save_state(STATE, tmp_path / "state")
    assert same(load_state(tmp_path / "state"), STATE)


@settings(deadline=None, max_examples=25)
@given(
    array=hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    document=st.dictionaries(
        st.text(max_size=5),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5),
    ),
)
def test_any_array_and_any_json_come_back(tmp_path_factory, array, document):
    """Bit for bit: NaN, infinities, empty and zero-dimensional arrays, Fortran order."""
    state = GeneratorState("G0A", {"a": array, "t": np.asfortranarray(array)}, document, unledgered=("control",))
    folder = tmp_path_factory.mktemp("state")
    save_state(state, folder)
    assert same(load_state(folder), state)


def test_the_same_state_is_the_same_bytes(tmp_path):
    reordered = GeneratorState(
        "G0",
        dict(reversed(list(STATE.arrays.items()))),
        dict(reversed(list(STATE.document.items()))),
        STATE.entries,
        seeded=True,
    )
    other = GeneratorState("G0", STATE.arrays, STATE.document, ("e-1", "e-3"), seeded=True)
    assert state_files(reordered) == state_files(STATE)
    assert state_files(other)[store.STATE_FILE] != state_files(STATE)[store.STATE_FILE]


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_every_changed_or_lost_byte_is_found(tmp_path):
    save_state(STATE, tmp_path)
    for path in files(tmp_path):
        whole = path.read_bytes()
        for position in range(0, len(whole), 7):
            altered = bytearray(whole)
            altered[position] ^= 1
            path.write_bytes(bytes(altered))
            with pytest.raises(StateError, match=r"state\.json|arrays-"):
                load_state(tmp_path)
        for kept in (0, 1, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:kept])
            with pytest.raises(StateError, match=path.name):
                load_state(tmp_path)
        path.unlink()
        with pytest.raises(StateError, match=path.name):
            load_state(tmp_path)
        path.write_bytes(whole)
    assert same(load_state(tmp_path), STATE)


def test_a_ledger_entry_cannot_be_edited_in(tmp_path):
    save_state(GeneratorState("S_COPY", {}, {}, unledgered=("control S_COPY: train rows",)), tmp_path)
    path = tmp_path / store.STATE_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"unledgered": [], "entries": ["e-1"]}))
    with pytest.raises(StateError, match="altered"):
        load_state(tmp_path)


@pytest.mark.parametrize("fails_at", [0, 1])
def test_a_save_that_stops_half_way_leaves_the_state_before_it(tmp_path, monkeypatch, fails_at):
    save_state(STATE, tmp_path)
    newer = GeneratorState("G0", {"means": np.ones(3)}, {})
    write, calls = store._write, []

    def stop(path, payload):
        calls.append(path)
        if len(calls) > fails_at:
            raise OSError("disk full")
        write(path, payload)

    monkeypatch.setattr(store, "_write", stop)
    with pytest.raises(OSError, match="disk full"):
        save_state(newer, tmp_path)
    monkeypatch.undo()
    assert same(load_state(tmp_path), STATE)
    save_state(newer, tmp_path)
    assert same(load_state(tmp_path), newer)
    assert len(files(tmp_path)) == 2


def test_nothing_saved_is_an_error_that_says_so(tmp_path):
    with pytest.raises(StateError, match="no generator state here"):
        load_state(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("arrays", "document", "message"),
    [
        ({"a": np.zeros(2, dtype=np.float32)}, {}, "float32"),
        ({"a": np.array([object()])}, {}, "object"),
        ({}, {"a": (1, 2)}, "JSON does not carry"),
        ({}, {1: "a"}, "JSON does not carry"),
        ({}, {"a": float("nan")}, "not JSON"),
        ({}, {"a": object()}, "not JSON"),
    ],
)
def test_what_would_not_come_back_is_refused(tmp_path, arrays, document, message):
    with pytest.raises(StateError, match=message):
        save_state(GeneratorState("G0", arrays, document), tmp_path / "state")
    with pytest.raises(StateError, match="no generator state here"):
        load_state(tmp_path / "state")
