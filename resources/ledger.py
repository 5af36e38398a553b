"""The ledger, its curator and the source of noise, as assets see them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import dagster as dg

from resources.home import HomeResource, SynthHome
from synth_platform.contract.registered import Registered
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource, SeededNoise
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.margins import SDC_POLICY, SDC_STAGE


def home_ledger(home: SynthHome, url: str | None = None, *, release: str | None = None) -> Ledger:
    """The ledger of a home. A server keeps no file beside its database, so its head is anchored in the home.

    It is held to every release of the home: a ledger that lost what a release rests on spends nothing any more. With
    `release` it is held to that one alone, which is then judged for itself.
    """
    url = url or home.ledger_url
    anchor = None if url.startswith("sqlite") else home.root / "ledger.head"

    def heads() -> dict[str, str | None]:
        published = published_heads(home.released)
        return published if release is None else {name: head for name, head in published.items() if name == release}

    return Ledger(url, anchor=anchor, known_heads=heads)


def published_heads(released: Path) -> dict[str, str | None]:
    """The head hash that each package under `released` carries, None where its ledger.json says none.

    A package of policy `sdc` rests on no ledger: its decision says so, and it has no ledger.json.
    """
    packages = [path for path in sorted(released.glob("*")) if path.is_dir() and not path.name.startswith(".")]
    return {package.name: _head(package / "ledger.json") for package in packages if not _unledgered(package)}


def _unledgered(package: Path) -> bool:
    if (package / "ledger.json").exists() or package.name.split("-")[1:2] != [SDC_STAGE]:
        return False
    try:
        return bool(json.loads((package / "decision.json").read_bytes())["policy"] == SDC_POLICY)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _head(file: Path) -> str | None:
    try:
        head = json.loads(file.read_bytes())["head_hash"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return head if isinstance(head, str) else None


def statistic_store(home: SynthHome) -> StatisticStore:
    """Stored statistic releases of a home."""
    return StatisticStore(home.restricted / "statistic_releases")


class NoiseResource(dg.ConfigurableResource[None]):
    """Where noise comes from. A seeded source is for tests: what it draws can never be released."""

    source: Literal["cryptographic", "seeded"] = "cryptographic"
    seed: int = 0

    def draw_from(self) -> NoiseSource:
        """The source of this run."""
        return CryptographicNoise() if self.source == "cryptographic" else SeededNoise(self.seed)


class LedgerResource(dg.ConfigurableResource[None]):
    """The privacy ledger at `url`, with the store of what it paid for."""

    url: str
    home: HomeResource
    noise: NoiseResource

    def ledger(self) -> Ledger:
        """The ledger itself."""
        return home_ledger(self.home.paths, self.url)

    def rows(self, entry_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Rows of the chain that belong to the given entries, JSON-ready, for metadata and packages."""
        wanted = set(entry_ids)
        return [row for row in self.ledger().table() if row["entry_id"] in wanted]

    def store(self) -> StatisticStore:
        """Stored statistic releases."""
        return statistic_store(self.home.paths)

    def curator(self, spec: Registered, *, run_id: str) -> Curator:
        """The curator of one cohort; gives its privacy domain the registered cap on first use."""
        if spec.privacy is None:
            raise ValueError(f"{spec.name!r} registers no privacy domain, so nothing can be spent for it")
        ledger, budget = self.ledger(), spec.privacy.budget
        ledger.set_budget(spec.privacy.domain, budget.epsilon, budget.delta)
        return Curator(
            ledger,
            self.store(),
            self.noise.draw_from(),
            domain=spec.privacy.domain,
            cohort=spec.name,
            run_id=run_id,
        )
