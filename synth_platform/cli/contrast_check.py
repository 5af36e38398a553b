"""What `synth cohort check` says of contrasts: the sizes that cohort.yaml or study.yaml has to tell the public.

Counts of private rows, for the steward who decides whether they may be known: a command for the restricted zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from synth_platform.cli.app import BAD_INPUT, print_json
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.contract.tables import CohortTables, split_public
from synth_platform.discovery.contrast import contrast_rows, group_sizes
from synth_platform.discovery.genotypes import phenotype_sizes
from synth_platform.normalize.reference import PublicReference
from synth_platform.sources.genotypes.open import open_genotypes
from synth_platform.sources.genotypes.study import list_variants


def contrast_sizes(spec: CohortSpec, accepted: CohortTables, reference: PublicReference) -> dict[str, dict[str, Any]]:
    """Registered and found group sizes of every contrast of a cohort."""
    private = split_public(accepted, spec)[1]
    rows = reference.encoder.encode(private)
    found = {
        name: group_sizes(contrast_rows(rows, private.clinical, spec.contrast(name), reference.encoder))
        for name in spec.contrasts
    }
    return {name: _standing(spec.sizes_of(name), sizes) for name, sizes in found.items()}


def check_study(spec: GenotypeSpec, folder: Path, *, as_json: bool) -> None:
    """Read a genotype study and hold it to what is registered; exit code 2 where it does not fit."""
    variants, digest = list_variants(open_genotypes(folder / spec.genotypes.file, spec.genotypes.field))
    fits = (variants, digest) == (spec.genotypes.variants, spec.genotypes.list_sha256)
    sizes = {name: _standing(spec.sizes_of(name), phenotype_sizes(spec, folder, name)) for name in spec.contrasts}
    accepted = fits and all(size["fits"] for size in sizes.values())
    if as_json:
        listed = {"variants": variants, "list_sha256": digest, "fits": fits}
        print_json({"cohort": spec.name, "accepted": accepted, "variants": listed, "contrasts": sizes})
    else:
        typer.echo(f"{spec.name}: {'accepted' if accepted else 'rejected'}")
        typer.echo(
            f"genotypes: {{variants: {variants}, list_sha256: {digest}}}{'' if fits else ' is not what is registered'}"
        )
        for name, size in sizes.items():
            typer.echo(size_line(name, size))
    if not accepted:
        raise typer.Exit(BAD_INPUT)


def size_line(name: str, size: Mapping[str, Any]) -> str:
    """One contrast in a line."""
    registered, found = size["registered"], size["found"]
    said = (
        "as registered" if size["fits"] else f"but sizes: {registered} is registered; correct it if these may be known"
    )
    return f"contrast {name}: {' and '.join(map(str, found))} private rows, {said}"


def _standing(registered: tuple[int, ...], found: tuple[int, ...]) -> dict[str, Any]:
    return {"registered": list(registered), "found": list(found), "fits": registered == found}
