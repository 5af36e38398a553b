"""Artefacts on disk or in an object store: content-hashed, swapped in by one small manifest, never half-written."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg
from upath import UPath

from resources.codecs import CODECS, codec_named, codec_of
from resources.home import HomeResource
from resources.private import fingerprint_key
from synth_platform.privacy.fingerprint import FingerprintKey

CONTENT = "content.json"
CODEC_NAMES = frozenset(codec.name for codec in CODECS)


class ArtefactError(ValueError):
    """A stored artefact is missing, half-written or altered; the message names the file."""


@dataclass(frozen=True)
class Stored:
    """Where an artefact went and the SHA-256 of its content manifest."""

    path: str
    sha256: str


def write_artefact(folder: UPath, value: object) -> Stored:
    """Write `value` under `folder`. Files carry their hash in their name; the manifest is replaced last, so a reader
    sees the old artefact or the new one, never a mixture."""
    codec = codec_of(value)
    files = codec.dump(value)
    folder.mkdir(parents=True, exist_ok=True)
    entries = {}
    for name, payload in sorted(files.items()):
        digest = hashlib.sha256(payload).hexdigest()
        entries[name] = {"file": f"{digest[:16]}-{name}", "sha256": digest}
        _put(folder / entries[name]["file"], payload)
    manifest = json.dumps({"codec": codec.name, "files": entries}, sort_keys=True, indent=1).encode()
    _put(folder / CONTENT, manifest)
    kept = {entry["file"] for entry in entries.values()} | {CONTENT}
    for leftover in [path for path in folder.iterdir() if path.is_file() and path.name not in kept]:
        leftover.unlink()
    return Stored(str(folder), hashlib.sha256(manifest).hexdigest())


def read_artefact(folder: UPath, key: FingerprintKey) -> Any:
    """The value under `folder`, private rows closed under `key`. ArtefactError names a missing or altered file."""
    manifest = read_content(folder)
    payloads: dict[str, bytes] = {}
    for name, entry in manifest["files"].items():
        path = folder / entry["file"]
        if not path.exists():
            raise ArtefactError(f"{path} is missing although {CONTENT} lists it; materialise the asset again")
        payloads[name] = path.read_bytes()
        if hashlib.sha256(payloads[name]).hexdigest() != entry["sha256"]:
            raise ArtefactError(f"{path} was altered after it was written; materialise the asset again")
    return codec_named(manifest["codec"]).load(payloads, key)


def read_content(folder: UPath) -> Mapping[str, Any]:
    """The content manifest of an artefact folder: codec and file hashes."""
    path = folder / CONTENT
    if not path.exists():
        raise ArtefactError(f"{path} does not exist: the artefact was never materialised, or only half-written")
    try:
        manifest: Mapping[str, Any] = json.loads(path.read_bytes())
        whole = isinstance(manifest["files"], dict) and manifest["codec"] in CODEC_NAMES
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise ArtefactError(f"{path} is cut short or was altered; materialise the asset again")
    return manifest


def artefact_sha256(folder: UPath) -> str:
    """SHA-256 of the content manifest: the identity of the stored artefact."""
    read_content(folder)
    return hashlib.sha256((folder / CONTENT).read_bytes()).hexdigest()


def artefact_fingerprint(folder: UPath, key: FingerprintKey) -> str:
    """How metadata names a stored artefact: its hash under the home's key.

    The plain hash of a private table would let anyone who holds a candidate table confirm it.
    """
    return key.name(artefact_sha256(folder).encode())


def _put(path: UPath, payload: bytes) -> None:
    if path.protocol not in ("", "file"):
        path.write_bytes(payload)  # an object store makes a single object visible at once
        return
    draft = path.with_name(path.name + ".tmp")
    with open(str(draft), "wb") as stream:
        stream.write(payload)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(str(draft), str(path))


class RestrictedIOManager(dg.UPathIOManager):
    """Every asset value between steps lives in the restricted zone; packages are written by the release asset alone."""

    def __init__(self, root: UPath, key: FingerprintKey) -> None:
        super().__init__(base_path=root)
        self._key = key
        self._read: dict[tuple[str, str], dict[str, str]] = {}

    def dump_to_path(self, context: dg.OutputContext, obj: Any, path: UPath) -> None:
        """Store a value and name it, and what its step read, in the metadata."""
        write_artefact(path, obj)
        inputs = self._read.get((context.run_id, context.step_key), {})
        context.add_output_metadata(
            {
                "zone": "restricted",
                "fingerprint": artefact_fingerprint(path, self._key),
                "input_fingerprints": dg.MetadataValue.json(dict(sorted(inputs.items()))),
            }
        )

    def load_from_path(self, context: dg.InputContext, path: UPath) -> Any:
        """Read a value and remember for its step which artefact it was."""
        if context.has_asset_key and context.step_context is not None:
            key = (context.step_context.run_id, context.step_context.step.key)
            name = context.asset_key.to_user_string()
            self._read.setdefault(key, {})[name] = artefact_fingerprint(path, self._key)
        return read_artefact(path, self._key)

    def get_asset_relative_path(self, context: dg.InputContext | dg.OutputContext) -> UPath:
        """Folders are named as asset keys are."""
        return UPath(*context.asset_key.path)


class RestrictedStore(dg.ConfigurableIOManagerFactory[RestrictedIOManager]):
    """Makes the IO manager of a home's restricted zone."""

    home: HomeResource

    def create_io_manager(self, context: dg.InitResourceContext) -> RestrictedIOManager:
        """One manager per run."""
        return RestrictedIOManager(self.home.paths.restricted, fingerprint_key(self.home))
