"""Every kind of value comes back as it went in, through open formats."""

from __future__ import annotations

import json
import pickletools
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from resources.codecs import CODECS, codec_of
from resources.private import close, stored_rows
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables, of_split
from synth_platform.generators.protocol import GeneratorState, Measured
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.fit import fit
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.margins.rows import Rows, two_way_margins
from synth_platform.margins.structural_zeros import StructuralZero
from synth_platform.normalize.real_arm import correct_real_arm
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.fingerprint import FingerprintKey, load_or_create_key
from synth_platform.privacy.private_table import PrivateTable, unledgered
from synth_platform.privacy.statistics import StatisticRelease
from synth_platform.sources.virtual import draw_cohort

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> FingerprintKey:
    return load_or_create_key(tmp_path_factory.mktemp("home") / "key")


def margins_values() -> dict[str, Any]:
    """One value of every kind that a census is stored as."""
    generator = np.random.default_rng(3)
    domain = Domain((Variable("age", ("0-15", "16+")), Variable("rooms", ("1", "2", "?"), "integer", "?")))
    codes = generator.integers(0, domain.shape, (80, 2))
    rows = Rows(domain, codes[(codes != (0, 1)).any(axis=1)])
    margins = two_way_margins(rows, "people.csv", (StructuralZero.of({"age": ("0-15",), "rooms": ("2",)}),))
    return {
        "margins": margins,
        "noisy_margins": NoisyMargins(margins, ("M-1",), seeded=True, unledgered=("a look",), rows="f" * 64),
        "coded_rows": rows,
        **{f"fitted_{name}": fit(margins, generator, name) for name in ("dense", "junction_tree", "weighted_rows")},
    }


@pytest.fixture(scope="module")
def values(key: FingerprintKey) -> dict[str, Any]:
    """One value of every kind, of a small virtual cohort."""
    document = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["source"]["options"] |= {"train": 60, "holdout": 20, "test": 20, "public": 80}
    spec = CohortSpec.model_validate(document)
    tables = draw_cohort(spec)
    reference = build_reference(of_split(tables, "public"), spec)
    rows = reference.encoder.encode(of_split(tables, "train"))
    correction, corrected = correct_real_arm(rows, reference, spec)
    release = StatisticRelease("C", np.array([1.5, -2.0]), 1.0, 3.0, 0.125, "seeded", "C-1", "f" * 64)
    return {
        "frame": tables.clinical,
        "tables": tables,
        "reference": reference,
        "rows": corrected,
        "batch_correction": correction,
        "closed": close(rows, key),
        "measured": Measured((release, replace(release, code="D", values=np.zeros(0))), ("a look",)),
        "state": GeneratorState("G0", {"a": np.arange(3), "b": np.eye(2)}, {"features": ["x"]}, ("C-1",), ("a look",)),
        **margins_values(),
        "document": {"status": "PASS", "summary": {"a": 0.1, "b": None}, "evidence": [1, 2.5]},
    }


def there_and_back(value: Any, key: FingerprintKey) -> Any:
    codec = codec_of(value)
    return codec.load(dict(codec.dump(value)), key)


def test_the_fixture_has_every_kind(values: dict[str, Any]) -> None:
    """Claim: no codec goes untested."""
    assert set(values) == {codec.name for codec in CODECS}
    assert {name: codec_of(value).name for name, value in values.items()} == {name: name for name in values}


def same(left: Any, right: Any) -> bool:
    """Deep equality over records, arrays and frames, types included."""
    if type(left) is not type(right):
        return False
    if isinstance(left, PrivateTable):
        return same(stored_rows(left), stored_rows(right)) and left.fingerprint == right.fingerprint
    if isinstance(left, pl.DataFrame):
        return left.schema == right.schema and left.equals(right)
    if isinstance(left, np.ndarray):
        return left.dtype.kind == right.dtype.kind and np.array_equal(left, right)
    if isinstance(left, CohortTables):
        return all(same(a, b) for (_, a), (_, b) in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if hasattr(left, "__dataclass_fields__"):
        return all(same(getattr(left, f.name), getattr(right, f.name)) for f in fields(left))
    return bool(left == right)


@pytest.mark.parametrize("name", [codec.name for codec in CODECS if codec.name != "reference"])
def test_a_value_comes_back_as_it_went_in(values: dict[str, Any], key: FingerprintKey, name: str) -> None:
    """Claim: values, types and names survive, bit for bit."""
    assert same(values[name], there_and_back(values[name], key))


def test_a_reference_encodes_as_it_did(values: dict[str, Any], key: FingerprintKey) -> None:
    """Claim: a reference read back encodes rows and names its public constants exactly as the one that was stored."""
    before, tables = values["reference"], values["tables"]
    after: PublicReference = there_and_back(before, key)
    assert same(before.rows, after.rows)
    assert same(before.encoder.encode(tables), after.encoder.encode(tables))
    for name in ("labels", "batches", "latent_batches", "n_ref"):
        assert getattr(before, name) == getattr(after, name)


@pytest.mark.parametrize("name", [codec.name for codec in CODECS])
def test_nothing_is_pickled(values: dict[str, Any], name: str) -> None:
    """Claim: every file is Parquet, safetensors or JSON by its first bytes, and none parses as a pickle."""
    for file, payload in codec_of(values[name]).dump(values[name]).items():
        match Path(file).suffix:
            case ".parquet":
                assert payload[:4] == payload[-4:] == b"PAR1"
            case ".safetensors":
                json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")])
            case ".json":
                json.loads(payload)
            case suffix:
                raise AssertionError(f"{file}: {suffix} is not an open format")
        with pytest.raises(Exception, match=r".*"):
            list(pickletools.genops(payload))


def test_an_unknown_kind_is_refused() -> None:
    """Claim: what nobody taught the store is a TypeError that says where to teach it, not a pickle."""
    with pytest.raises(TypeError, match="no codec for set"):
        codec_of({1, 2})


def test_a_stored_table_keeps_its_openings(values: dict[str, Any], key: FingerprintKey) -> None:
    """Claim: an opening without a ledger entry stays on record through storing, so that no step can launder it; the
    record is part of the content, so the artefact has another fingerprint."""
    rows: EncodedRows = stored_rows(values["closed"])
    opened = close(rows, key)
    opened.open_for_gate("a look")
    assert unledgered(there_and_back(opened, key).accesses) == ("a look",)
    assert unledgered(there_and_back(there_and_back(opened, key), key).accesses) == ("a look",)
    assert unledgered(there_and_back(close(rows, key), key).accesses) == ()
    assert codec_of(opened).dump(opened) != codec_of(opened).dump(close(rows, key))


def test_documents_without_a_json_form_are_refused() -> None:
    """Claim: not-a-number has no place in a stored document; it is an error and not a null."""
    with pytest.raises(ValueError, match="Out of range float values"):
        codec_of({}).dump({"figure": float("nan")})
