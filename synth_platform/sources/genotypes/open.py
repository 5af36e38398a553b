"""One door to every genotype file: open_genotypes."""

from __future__ import annotations

from pathlib import Path

from synth_platform.sources.genotypes.block import Field, GenotypeError, GenotypeReader
from synth_platform.sources.genotypes.plink import PlinkReader
from synth_platform.sources.genotypes.table import ParquetReader
from synth_platform.sources.genotypes.traw import TrawReader
from synth_platform.sources.genotypes.vcf import VcfReader

READABLE = ".vcf, .vcf.gz, .bed, .traw, .traw.gz, .parquet"
CONVERT = {
    ".raw": "is sorted by sample and cannot be streamed by variant; export it with plink2 --export A-transpose (.traw)",
    ".ped": "is sorted by sample and cannot be streamed by variant; convert it with plink2 --make-bed",
    ".pgen": "is PLINK 2's own format; convert it with plink2 --make-bed, or --export A-transpose for imputed dosages",
    ".bgen": "is not read here; convert it with plink2 --export A-transpose for imputed dosages, or --make-bed",
    ".bcf": "is binary VCF; convert it with bcftools view -Oz -o NAME.vcf.gz",
}


def open_genotypes(path: Path, field: Field = "GT") -> GenotypeReader:
    """The reader of a genotype file, chosen by its name; what the content is, the reader checks.

    field: GT for called genotypes (int8), DS for imputed dosages (float32), which a .bed does not have. Raises
    GenotypeError for a file that is missing, empty, of a format that is not read, or broken in its header.
    """
    if not path.is_file():
        raise GenotypeError(f"{path}: no such file; correct the path")
    if not path.stat().st_size:
        raise GenotypeError(f"{path}: the file is empty; export it again")
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix
    packed = name != path.name
    if suffix in CONVERT:
        raise GenotypeError(f"{path}: {suffix} {CONVERT[suffix]}")
    match suffix:
        case ".vcf":
            return VcfReader(path, field)
        case ".traw":
            return TrawReader(path, field)
        case ".parquet" if not packed:
            return ParquetReader(path, field)
        case ".bed" if not packed:
            if field == "DS":
                raise GenotypeError(f"{path}: a .bed has called genotypes only; ask for GT or give a file with dosages")
            return PlinkReader(path)
    raise GenotypeError(f"{path}: not a genotype file by its name; give one of {READABLE}")
