"""A published package is looked at again: every file against its checksum, as often as anybody asks."""

import warnings

import dagster as dg

from resources.evaluations import latest_metadata
from resources.home import HomeResource
from synth_platform.contract.cohort_spec import DP_GENERATORS
from synth_platform.release.package import PackageError, verify_package


def package_check(code: str, partitions: dg.PartitionsDefinition[str]) -> dg.AssetChecksDefinition:
    """`<code>/release`: the package that was published is still what was published."""
    asset = dg.AssetKey([code, "release"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)

        @dg.asset_check(
            asset=asset,
            name="package_verifies",
            partitions_def=partitions,
            blocking=True,
            description="Every file of the published package matches its checksum.",
        )
        def package_verifies(context: dg.AssetCheckExecutionContext, home: HomeResource) -> dg.AssetCheckResult:
            latest = latest_metadata(context.instance, asset, context.partition_key)
            if latest is None:
                return dg.AssetCheckResult(passed=False, description="Nothing was published for this partition.")
            package = home.paths.released / str(latest[1]["package_name"].value)
            try:
                verify_package(package)
            except PackageError as error:
                return dg.AssetCheckResult(passed=False, description=str(error))
            return dg.AssetCheckResult(passed=True, description="All checksums match.")

    return package_verifies


def package_checks(partitions: dg.PartitionsDefinition[str]) -> list[dg.AssetChecksDefinition]:
    """One check per release asset."""
    return [package_check(code, partitions) for code in DP_GENERATORS]
