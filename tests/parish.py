"""A parish of a few thousand made-up people as a census cohort, small enough to be run in seconds.

Nobody of one group is in one of its categories: zeros that are kept tell it, so that plan is blocked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

PEOPLE, CENSUS = 2911, "parish"
SDC, KEPT, NOISY = "sdc", "kept", "eps2"
Document = dict[str, Any]

SPEC: Document = {
    "name": CENSUS,
    "kind": "census",
    "title": "A parish of two thousand",
    "dua_tag": "RELEASE_REVIEWED",
    "source": {"microdata": "people.csv"},
    "privacy": {"domain": CENSUS, "n_ref": 3000, "budget": {"epsilon": 6.0, "delta": 1e-5}},
    "recipe": {
        "drop": ["name"],
        "variables": {
            "age": {"bands": ["0", "16", "40", "65"], "top": "65", "bottom": "-1"},
            "sex": {"categories": ["female", "male"]},
            "married": {"categories": ["no", "yes"]},
            "work": {"groups": {"land": ["farmer", "shepherd"], "trade": ["smith", "tailor"], "none": ["none"]}},
            "servants": {"categories": ["0", "1", "2"]},
        },
        "structural_zeros": [{"age": ["0-15"], "married": ["yes"]}],
    },
    "plans": {
        SDC: {"policy": "sdc", "replicates": "2"},
        KEPT: {"policy": "sdc", "zeros": "kept", "variant": "controlled"},
        NOISY: {"policy": "dp", "epsilon": "2", "rows": "2500"},  # the noisy total may be near the true one
    },
}


def people() -> pl.DataFrame:
    """Ages with marriage, work and servants that depend on them; children are never married."""
    rng = np.random.default_rng(11)
    age = rng.integers(0, 95, PEOPLE)
    married = (age >= 16) & (rng.random(PEOPLE) < 0.6)
    work = np.where(age < 16, "none", rng.choice(["farmer", "shepherd", "smith", "tailor", "none"], PEOPLE))
    servants = np.minimum(rng.poisson(0.1 + 0.6 * (work == "farmer") + 0.3 * married), 2)
    sex = rng.choice(["female", "male"], PEOPLE)
    columns = {"name": [f"PERSON{n:05d}" for n in range(PEOPLE)], "age": age, "sex": sex}
    return pl.DataFrame(columns | {"married": np.where(married, "yes", "no"), "work": work, "servants": servants})


def write_census(folder: Path) -> Path:
    """A table of microdata beside its census.yaml."""
    folder.mkdir(parents=True)
    people().write_csv(folder / "people.csv")
    (folder / "census.yaml").write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    return folder
