"""Fingerprints are stable where they must be, secret where they must be, and one key survives any race."""

from __future__ import annotations

import hashlib
import math
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.privacy.figures import exceeds, six_decimals
from synth_platform.privacy.fingerprint import (
    FingerprintKey,
    FingerprintKeyError,
    canonical_json,
    load_or_create_key,
    sha256_hex,
)


def test_one_value_has_one_form() -> None:
    assert canonical_json({"b": [1.5, (2,)], "a": "é"}) == b'{"a":"\\u00e9","b":[1.5,[2]]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": math.nan})
    with pytest.raises(TypeError, match="set"):
        canonical_json({"x": {1}})


def test_published_digests() -> None:
    """FIPS 180-4's "abc"; a keyed BLAKE2b-256 of the bytes 0..9 as RFC 7693's reference implementation gives it."""
    assert sha256_hex(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    key = bytes(range(32))
    assert FingerprintKey(key).name(bytes(10)) == hashlib.blake2b(bytes(10), digest_size=32, key=key).hexdigest()
    assert FingerprintKey(key).name(b"x") != hashlib.blake2b(b"x", digest_size=32).hexdigest()


def test_the_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "restricted" / "fingerprint.key"
    key = load_or_create_key(path)
    assert load_or_create_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes()) == 32
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes().hex() not in repr(key)
    assert load_or_create_key(tmp_path / "other.key") != key


def test_of_racing_makers_all_get_the_same_key(tmp_path: Path) -> None:
    for attempt in range(20):
        path = tmp_path / str(attempt) / "fingerprint.key"
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(load_or_create_key, [path] * 8))) == 1


def test_an_unusable_key_is_an_error_by_name(tmp_path: Path) -> None:
    path = tmp_path / "fingerprint.key"
    load_or_create_key(path)
    path.chmod(0o640)
    with pytest.raises(FingerprintKeyError, match=r"fingerprint\.key: mode 0640"):
        load_or_create_key(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(FingerprintKeyError, match=r"fingerprint\.key.*32 bytes"):
        load_or_create_key(path)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.floats(-4.9e-7, 4.9e-7))
def test_dust_decides_nothing_and_a_millionth_does(millionths: int, dust: float) -> None:
    limit = millionths / 10**6
    assert six_decimals(limit) * 10**6 == millionths
    assert not exceeds(limit + dust, limit)
    assert exceeds(limit + 1e-6 + dust, limit)


def test_infinity_is_past_every_limit_and_nan_is_none() -> None:
    assert exceeds(math.inf, 1e9)
    for figure, limit in ((math.nan, 1.0), (1.0, math.nan), (1.0, math.inf)):
        with pytest.raises(ValueError, match="cannot compare"):
            exceeds(figure, limit)
