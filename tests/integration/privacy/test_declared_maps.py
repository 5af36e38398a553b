"""Every map that is declared within-row is within-row, on the rows it is made for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.discovery_options import Contrast
from synth_platform.discovery import contrast
from synth_platform.generators.build import make_generator
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.noise.noisy import count_query
from synth_platform.margins.rows import Rows, two_way
from synth_platform.normalize import closed
from synth_platform.normalize.reference import PublicReference, build_reference, public_batch_map
from synth_platform.normalize.rows import EncodedRows
from synth_platform.normalize.select import select_split
from synth_platform.privacy.mechanisms import gaussian_sum
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.row_independence import assert_row_independent, contributions_of
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease
from synth_platform.privacy.within_row import WithinRow, within_row
from synth_platform.sources.virtual import draw_cohort

REPOSITORY = Path(__file__).resolve().parents[3]
CENSUS = Domain((Variable("age", ("0-15", "16+")), Variable("sex", ("f", "m", "?"))))


@dataclass(frozen=True)
class Frames:
    """Contract tables that are picked from patient by patient."""

    frames: Mapping[str, pl.DataFrame]

    def __len__(self) -> int:
        return self.frames["manifest"].height

    def take(self, index: np.ndarray) -> Frames:
        keys = self.frames["manifest"][index].select("row_key")
        return Frames(
            {
                name: keys.join(frame, on="row_key", how="inner", maintain_order="left")
                for name, frame in self.frames.items()
            }
        )


@dataclass(frozen=True)
class World:
    frames: Frames
    reference: PublicReference
    rows: EncodedRows


@pytest.fixture(scope="module")
def spec() -> Any:
    return load_cohort_spec(REPOSITORY / "cohorts" / "virtual" / "cohort.yaml")


@pytest.fixture(scope="module")
def world(spec: Any) -> World:
    tables = draw_cohort(spec)
    frames = Frames(dict(tables))
    public = frames.take(np.flatnonzero((tables.manifest["split"] == "public").to_numpy()))
    reference = build_reference(type(tables)(**public.frames), spec)
    private = frames.take(np.flatnonzero((tables.manifest["split"] != "public").to_numpy()))
    return World(private, reference, reference.encoder.encode(type(tables)(**private.frames)))


def assembling(world: World) -> WithinRow[Mapping[str, pl.DataFrame], EncodedRows]:
    """The map that `encode_closed` declares, taken where it hands it over."""
    taken: list[WithinRow[Mapping[str, pl.DataFrame], EncodedRows]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closed, "combine", lambda _tables, join, **_: taken.append(join))
        closed.encode_closed({}, world.reference)
    return taken[0]


def contrasting(spec: Any, world: World) -> WithinRow[Mapping[str, Any], contrast.ContrastRows]:
    """The map that `close_contrast` declares, taken where it hands it over."""
    taken: list[WithinRow[Mapping[str, Any], contrast.ContrastRows]] = []
    compared = Contrast(variable="stage", case=("III", "IV"), sizes=(1, 1), features=("expression", "methylation"))
    nothing: Any = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contrast, "combine", lambda _tables, join, **_: taken.append(join))
        contrast.close_contrast(nothing, nothing, compared, world.reference.encoder)
    return taken[0]


def queries(spec: Any, world: World) -> Iterator[StatisticQuery[EncodedRows]]:
    """Every query of both generators, answered with the little noise of a large epsilon."""
    asked: list[StatisticQuery[EncodedRows]] = []

    def ask(query: StatisticQuery[EncodedRows]) -> StatisticRelease:
        asked.append(query)
        values, step = gaussian_sum(
            query.contribution(world.rows), sensitivity=query.sensitivity, sigma=query.sigma, noise=SeededNoise(1)
        )
        return StatisticRelease(query.code, values, query.sensitivity, query.sigma, step, "seeded", query.code, "")

    for code in ("G0", "G0A"):
        make_generator(code, world.reference, spec, spec.plan("eps8")).measure(ask)
    yield from asked


@pytest.fixture(scope="module")
def maps(spec: Any, world: World) -> dict[str, tuple[WithinRow[Any, Any], Any]]:
    """Every declared map with rows to try it on."""
    encode, assemble = world.reference.encoder.encoding, assembling(world)
    compare = contrasting(spec, world)
    tables = type(draw_cohort(spec))

    def of_frames(row_map: WithinRow[Any, EncodedRows], kind: Callable[..., Any]) -> WithinRow[Frames, EncodedRows]:
        return within_row(f"tests.{row_map.name}", lambda rows: row_map(kind(**rows.frames)))

    tried: list[tuple[WithinRow[Any, Any], WithinRow[Any, Any], Any]] = [
        (encode, of_frames(encode, tables), world.frames),
        (assemble, of_frames(assemble, dict), world.frames),
    ]
    encoded_parts = within_row(
        f"tests.{compare.name}",
        lambda rows: compare({"matrix": encode(tables(**rows.frames)), "clinical": rows.frames["clinical"]}),
    )
    tried.append((compare, encoded_parts, world.frames))
    in_model_space = [public_batch_map(world.reference), select_split("train")]
    in_model_space += [query.contribution for query in queries(spec, world)]
    tried += [(row_map, row_map, world.rows) for row_map in in_model_space]
    counted = count_query(CENSUS, two_way(CENSUS), 1.0).cells
    tried.append((counted, counted, Rows(CENSUS, np.random.default_rng(3).integers(0, CENSUS.shape, size=(300, 2)))))
    return {declared.name: (row_map, rows) for declared, row_map, rows in tried}


def test_every_declared_map_looks_at_one_row_at_a_time(maps: dict[str, tuple[WithinRow[Any, Any], Any]]) -> None:
    rng = np.random.default_rng(11)
    for row_map, rows in maps.values():
        for _ in range(3):
            assert_row_independent(row_map, rows, rng)


def test_every_statistic_keeps_its_promises_on_any_number_of_rows(spec: Any, world: World) -> None:
    """[n, dimension] for every n, 0 included: a release must come out of an empty cohort too (8-1 §2.2)."""
    for query in queries(spec, world):
        for n in (0, 1, 2, 50):
            contributions = contributions_of(query.contribution, world.rows.take(slice(n)), np.random.default_rng(n))
            assert contributions.shape == (n, query.dimension), query.code
            norms = np.linalg.norm(contributions, axis=1)
            assert (norms <= query.sensitivity * (1 + 1e-9)).all(), f"{query.code} is clipped by its own sensitivity"


def declared_in_the_source() -> set[str]:
    """Names, or what stands before the first variable part of a name, of every `within_row` call of the library."""
    names: set[str] = set()
    for folder in ("synth_platform", "assets", "resources", "checks"):
        for file in sorted((REPOSITORY / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and getattr(node.func, "id", getattr(node.func, "attr", "")) == "within_row"
                ):
                    name = node.args[0]
                    first = name.values[0] if isinstance(name, ast.JoinedStr) else name
                    assert isinstance(first, ast.Constant), f"{file}: a within-row name must begin with its room"
                    names.add(str(first.value))
    return names


def test_no_declared_map_is_left_out(maps: dict[str, tuple[WithinRow[Any, Any], Any]]) -> None:
    left_out = [name for name in declared_in_the_source() if not any(tried.startswith(name) for tried in maps)]
    assert left_out == []
