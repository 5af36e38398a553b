"""Stored artefacts: whole or an error that names the file; swapped in one step; nothing pickled."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from upath import UPath

import resources.artefacts as artefacts
from resources.artefacts import CONTENT, ArtefactError, artefact_fingerprint, read_artefact, write_artefact
from synth_platform.privacy.fingerprint import FingerprintKey, load_or_create_key

OLD, NEW = pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [3, 4]})


@pytest.fixture
def key(tmp_path: Path) -> FingerprintKey:
    return load_or_create_key(tmp_path / "key")


@pytest.fixture
def folder(tmp_path: Path) -> UPath:
    folder = UPath(tmp_path / "artefact")
    write_artefact(folder, OLD)
    return folder


def payload(folder: UPath) -> UPath:
    [file] = [path for path in folder.iterdir() if path.name != CONTENT]
    return file


def test_an_altered_file_is_an_error_by_name(folder: UPath, key: FingerprintKey) -> None:
    """Claim: one changed byte is noticed and the file named."""
    file = payload(folder)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(ArtefactError, match=f"{file.name} was altered"):
        read_artefact(folder, key)


def test_a_truncated_file_is_an_error_by_name(folder: UPath, key: FingerprintKey) -> None:
    """Claim: half a file is noticed and named."""
    file = payload(folder)
    file.write_bytes(file.read_bytes()[:10])
    with pytest.raises(ArtefactError, match=f"{file.name} was altered"):
        read_artefact(folder, key)


def test_a_missing_file_is_an_error_by_name(folder: UPath, key: FingerprintKey) -> None:
    """Claim: a listed file that is gone is named."""
    file = payload(folder)
    file.unlink()
    with pytest.raises(ArtefactError, match=f"{file.name} is missing"):
        read_artefact(folder, key)


def test_a_folder_without_its_manifest_is_half_written(folder: UPath, key: FingerprintKey) -> None:
    """Claim: files without the manifest, which is written last, are not an artefact."""
    (folder / CONTENT).unlink()
    with pytest.raises(ArtefactError, match=CONTENT):
        read_artefact(folder, key)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"codec": "frame"}', '{"codec": "unknown", "files": {}}'])
def test_a_manifest_that_is_not_one_is_an_error_by_name(folder: UPath, key: FingerprintKey, content: str) -> None:
    """Claim: an emptied, cut or foreign manifest is an ArtefactError with its name, not a JSON or key error."""
    (folder / CONTENT).write_text(content, encoding="utf-8")
    with pytest.raises(ArtefactError, match=CONTENT):
        read_artefact(folder, key)


@pytest.mark.parametrize("written", [0, 1])
def test_a_write_that_dies_leaves_the_old_artefact(
    folder: UPath, key: FingerprintKey, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """Claim: whether it dies before its first file or before the manifest, a reader still gets the old value whole."""
    put, done = artefacts._put, []

    def dying(path: UPath, content: bytes) -> None:
        if len(done) == written:
            raise KeyboardInterrupt
        put(path, content)
        done.append(path)

    monkeypatch.setattr(artefacts, "_put", dying)
    with pytest.raises(KeyboardInterrupt):
        write_artefact(folder, NEW)
    assert read_artefact(folder, key).equals(OLD)
    monkeypatch.undo()
    write_artefact(folder, NEW)
    assert read_artefact(folder, key).equals(NEW)
    assert len(list(folder.iterdir())) == 2, "what the dead write left behind is gone"


def test_a_draft_that_was_cut_short_changes_nothing(folder: UPath, key: FingerprintKey) -> None:
    """Claim: a half-written draft of a dead process is neither read nor kept."""
    (folder / f"{CONTENT}.tmp").write_text("{", encoding="utf-8")
    assert read_artefact(folder, key).equals(OLD)
    write_artefact(folder, OLD)
    assert not (folder / f"{CONTENT}.tmp").exists()


def test_the_same_content_has_the_same_fingerprint(folder: UPath, key: FingerprintKey, tmp_path: Path) -> None:
    """Claim: fingerprints follow content, not time or place; another key gives another name, so nobody without the
    key can test a guess of a private table."""
    again = UPath(tmp_path / "again")
    write_artefact(again, OLD)
    other_key = load_or_create_key(tmp_path / "other_key")
    assert artefact_fingerprint(folder, key) == artefact_fingerprint(again, key)
    assert artefact_fingerprint(folder, other_key) != artefact_fingerprint(folder, key)
    write_artefact(again, NEW)
    assert artefact_fingerprint(folder, key) != artefact_fingerprint(again, key)


def test_files_are_open_formats(folder: UPath) -> None:
    """Claim: the manifest is plain JSON and the table plain Parquet, readable without this platform."""
    manifest = json.loads((folder / CONTENT).read_text(encoding="utf-8"))
    assert manifest["codec"] == "frame"
    assert pl.read_parquet(payload(folder).read_bytes()).equals(OLD)


def test_an_object_store_holds_artefacts_too(key: FingerprintKey) -> None:
    """Claim: nothing assumes a local disk; the same calls work on another fsspec file system."""
    folder = UPath("memory://bucket/artefact")
    write_artefact(folder, OLD)
    write_artefact(folder, NEW)
    assert read_artefact(folder, key).equals(NEW)
