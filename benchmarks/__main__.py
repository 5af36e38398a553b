"""Every benchmark, one after the other, each in a process of its own.

    python -m benchmarks [NAME ...]

Figures are ratios against the named peer in the same run; docs/benchmarks.md holds one run with its machine.
"""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = (
    "contract_validation",
    "noise",
    "normalize",
    "dagster_share",
    "generator_table",
    "cross_fit",
    "half_split",
    "closest_record",
    "planted_leaks",
    "gate_error_rates",
    "gate_power",
    "confusion",
    "discovery_single",
    "discovery_peeling",
    "discovery_tcga",
    "discovery_dosage",
    "discovery_genotypes",
    "discovery_survival",
    "margins_fit",
    "margins_acs",
    "margins_aim",
    "margins_paper",
)


def main() -> None:
    wanted = sys.argv[1:] or list(BENCHMARKS)
    unknown = sorted(set(wanted) - set(BENCHMARKS))
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    for name in wanted:
        print(f"\n== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)


if __name__ == "__main__":
    main()
