"""How fast genotype files are read, and that memory does not grow with them, as a Markdown table.

    python -m benchmarks.discovery_genotypes

500 samples in Hardy-Weinberg proportions, one call in a hundred missing; the same genotypes as .vcf.gz, .bed, .traw.
Every reader is a process of its own, peers run in environments of their own (see `closest_record`), and all readers of
a file have to agree on every sum over it. Rates are variants a second of CPU time, one thread each. Peak memory is of
the whole process; the second file has four times the variants of the first.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.closest_record import Tool

SAMPLES = 500
VARIANTS = (5_000, 20_000)
WRITTEN = 1_000  # variants at a time

OURS = Tool("synth_platform", "genotypes_platform")
PLAIN = Tool("plain Python", "genotypes_plain")
PEERS = {
    ".vcf.gz": Tool("cyvcf2 0.35.0", "genotypes_cyvcf2", ("cyvcf2==0.35.0",)),
    ".bed": Tool("bed-reader 1.1.0", "genotypes_bed_reader", ("bed-reader==1.1.0",)),
    ".traw": Tool("polars, whole file", "genotypes_polars"),
}
AGREED = ("variants", "missing", "weighted")


def write_files(folder: Path, variants: int) -> dict[str, Path]:
    """The same genotypes in three formats, by format."""
    paths = {suffix: folder / f"{variants}{suffix}" for suffix in PEERS}
    names = [f"s{at}" for at in range(SAMPLES)]
    rng = np.random.default_rng(variants)
    calls, cells = np.array(["0/0", "0/1", "1/1", "./."]), np.array(["0", "1", "2", "NA"])
    codes = np.array([0b11, 0b10, 0b00, 0b01], dtype=np.uint8)
    paths[".bed"].with_suffix(".fam").write_text("".join(f"{name} {name} 0 0 0 -9\n" for name in names))
    with (
        gzip.open(paths[".vcf.gz"], "wt", compresslevel=1) as vcf,
        paths[".traw"].open("w") as traw,
        paths[".bed"].open("wb") as bed,
        paths[".bed"].with_suffix(".bim").open("w") as bim,
    ):
        vcf.write('##fileformat=VCFv4.3\n##contig=<ID=1>\n##FORMAT=<ID=GT,Number=1,Type=String,Description="Call">\n')
        vcf.write("\t".join(["#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT", *names]) + "\n")
        traw.write("\t".join(["CHR\tSNP\t(C)M\tPOS\tCOUNTED\tALT", *names]) + "\n")
        bed.write(b"\x6c\x1b\x01")
        for low in range(0, variants, WRITTEN):
            frequency = rng.uniform(0.05, 0.5, (WRITTEN, 1))
            dosage = rng.binomial(2, frequency, (WRITTEN, SAMPLES))
            dosage[rng.random(dosage.shape) < 0.01] = 3
            for at, row in enumerate(dosage, start=low + 1):
                vcf.write("\t".join([f"1\t{at}\trs{at}\tA\tG\t.\tPASS\t.\tGT", *calls[row]]) + "\n")
                traw.write("\t".join([f"1\trs{at}\t0\t{at}\tG\tA", *cells[row]]) + "\n")
                bim.write(f"1\trs{at}\t0\t{at}\tG\tA\n")
            fours = np.pad(codes[dosage], ((0, 0), (0, -SAMPLES % 4))).reshape(WRITTEN, -1, 4)
            bed.write((fours << np.array([0, 2, 4, 6], dtype=np.uint8)).sum(axis=2, dtype=np.uint8).tobytes())
    return paths


def compare(suffix: str, path: Path, variants: int, tools: tuple[Tool, ...]) -> None:
    ours: dict[str, float] = {}
    for tool in tools:
        figures = tool.run(path)
        if figures is None:
            raise SystemExit(f"{tool.name} took too long over {path.name}")
        ours = ours or figures
        if any(figures[name] != ours[name] for name in AGREED):
            raise SystemExit(f"{tool.name} and {OURS.name} do not read the same from {path.name}")
        ratio = "" if tool is OURS else f"{figures['cpu'] / ours['cpu']:.1f} ×"
        rate = variants / figures["cpu"]
        file = f"{suffix}, {variants:,} ({path.stat().st_size / 2**20:.1f} MiB)"
        print(f"| {file} | {tool.name} | {rate:,.0f} | {figures['peak_mib']:.0f} | {ratio} |", flush=True)


def main() -> None:
    peers = {suffix: tool for suffix, tool in PEERS.items() if not tool.packages or tool.installed()}
    print(f"{SAMPLES} samples; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| file, variants | reader | variants / CPU s | peak MiB | CPU of ours |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for variants in VARIANTS:
            for suffix, path in write_files(Path(folder), variants).items():
                tools = (OURS, PLAIN, *([peers[suffix]] if suffix in peers else []))
                compare(suffix, path, variants, tools)


if __name__ == "__main__":
    main()
