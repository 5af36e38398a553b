"""A published package is looked at again: its files against their checksums, its decision against the standing one."""

from collections.abc import Mapping

import dagster as dg

from checks.specs import partitioned_checks
from resources.artefacts import read_artefact
from resources.cohorts import CohortRegistry
from resources.evaluations import latest_metadata
from resources.home import HomeResource
from resources.private import fingerprint_key
from resources.register import RegisterResource
from synth_platform.release.findings import in_words
from synth_platform.release.folder import PackageError, verify_package
from synth_platform.release.standing import standing_fault


def package_check(code: str, partitions: dg.MultiPartitionsDefinition) -> dg.AssetChecksDefinition:
    """`<code>/release`: the package that was published is still what was published, and still may be."""
    asset = dg.AssetKey([code, "release"])
    with partitioned_checks():

        @dg.asset_check(
            asset=asset,
            name="package_verifies",
            partitions_def=partitions,
            blocking=True,
            description="Every file of the published package matches its checksum, its decision still stands, and it "
            "was not recalled.",
        )
        def package_verifies(
            context: dg.AssetCheckExecutionContext,
            home: HomeResource,
            registry: CohortRegistry,
            register: RegisterResource,
        ) -> dg.AssetCheckResult:
            latest = latest_metadata(context.instance, asset, context.partition_key)
            if latest is None:
                return dg.AssetCheckResult(passed=False, description="Nothing was published for this partition.")
            package = home.paths.released / str(latest[1]["package_name"].value)
            cohort, plan = context.partition_key.split("|")
            stored = home.paths.artefact(dg.AssetKey([code, "decision"]), cohort, plan)
            try:
                verify_package(package)
                decision = read_artefact(stored, fingerprint_key(home))
                fault = standing_fault(package, decision, registry.registered(cohort).publication)
            except PackageError as error:
                fault = str(error)
            listed = register.register().releases().get(package.name)
            if listed is None:
                fault = f"{package.name}: {in_words('UNREGISTERED')}"
            elif listed.status == "RECALLED":
                fault = f"{package.name} is RECALLED: {'; '.join(map(in_words, listed.reasons))}"
            if fault is not None:
                return dg.AssetCheckResult(passed=False, description=fault)
            return dg.AssetCheckResult(passed=True, description="All checksums match, and the decision stands.")

    return package_verifies


def package_checks(partitions_of: Mapping[str, dg.MultiPartitionsDefinition]) -> list[dg.AssetChecksDefinition]:
    """One check per release asset, by generator or stage."""
    return [package_check(code, partitions) for code, partitions in partitions_of.items()]
