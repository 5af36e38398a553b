"""Stage `cohort`: read a cohort, hold it to the contract, set public rows apart and close the private ones."""

from typing import Any

import dagster as dg

from assets.metadata import CODE_VERSION, open_table_metadata, private_table_metadata
from assets.partitions import omics_cohorts
from checks.descriptions import TABLES, describe_features, describe_table
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.private import close, fingerprint_key
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.features import feature_manifest
from synth_platform.contract.tables import of_split
from synth_platform.contract.validate import rejections_frame, select_registered, validate
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.sources.read import read_cohort
from synth_platform.sources.tables import SourceError

REJECTIONS = dg.AssetKey(["cohort", "rejections"])
FEATURES = dg.AssetKey(["cohort", "features"])
PUBLIC_ROWS = dg.AssetKey(["public", "rows"])
SHOWN = 20  # findings in a message
PRIVATE = {name: dg.AssetKey(["cohort", name]) for name in TABLES}


def _out(key: dg.AssetKey, description: str) -> dg.AssetOut:
    return dg.AssetOut(
        key=key, group_name=key.path[0], description=description, code_version=CODE_VERSION, is_required=False
    )


@dg.multi_asset(
    name="cohort",
    partitions_def=omics_cohorts,
    outs={
        "rejections": _out(REJECTIONS, "What the contract refused: code, table, column and count, never the cell."),
        "features": _out(FEATURES, "The frozen feature manifest."),
        "public_rows": _out(PUBLIC_ROWS, "Rows of the public arm, the only ones that travel open."),
        **{name: _out(key, f"Private rows of the {name} table, closed.") for name, key in PRIVATE.items()},
    },
    check_specs=[
        check_spec(
            "contract",
            REJECTIONS,
            omics_cohorts,
            blocking=True,
            description="The contract accepts the cohort; a refused one stops here.",
        ),
        *(schema_check_spec(key, omics_cohorts) for key in (FEATURES, PUBLIC_ROWS, *PRIVATE.values())),
    ],
)
def cohort(context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource):
    """Read and validate one cohort; a rejected one materialises its rejections and nothing else."""
    spec = registry.spec(context.partition_key)
    folder = registry.folder(spec.name)
    with quiet_errors("reading the cohort", readable=(SourceError, CohortSpecError)):
        report = validate(select_registered(read_cohort(spec, folder), spec), spec)
    findings = sorted({f"{r.code} {r.table}{'.' + r.column if r.column else ''}" for r in report.rejections})
    yield dg.MaterializeResult(
        asset_key=REJECTIONS,
        value=rejections_frame(report.rejections),
        check_results=[
            dg.AssetCheckResult(
                check_name="contract",
                asset_key=REJECTIONS,
                passed=not report.cohort_rejected,
                metadata={"findings": findings},
                description=("The contract refuses this cohort" if report.cohort_rejected else "Accepted")
                + (f"; found: {', '.join(findings)}." if findings else "."),
            )
        ],
    )
    if report.cohort_rejected:
        more = f" and {len(findings) - SHOWN} more" if len(findings) > SHOWN else ""
        raise dg.Failure(
            f"the contract refuses cohort {spec.name!r}: {', '.join(findings[:SHOWN])}{more}; "
            "correct the files or the registration (synth cohort check FOLDER shows all of it)",
            allow_retries=False,
        )

    def schema(key: dg.AssetKey, described: Any) -> list[dg.AssetCheckResult]:
        return [schema_check(described, key, home.validations(context, key))]

    features = feature_manifest(spec)
    yield dg.MaterializeResult(
        asset_key=FEATURES,
        value=features.frame,
        metadata={"sha256": features.sha256, **open_table_metadata(features.frame)},
        check_results=schema(FEATURES, describe_features(features.frame)),
    )
    public = of_split(report.accepted, spec.reference.split)
    yield dg.MaterializeResult(
        asset_key=PUBLIC_ROWS,
        value=public,
        metadata=open_table_metadata(public.clinical),
        check_results=schema(PUBLIC_ROWS, describe_table(public.clinical, spec, "clinical")),
    )
    private = of_split(report.accepted, "train", "holdout", "test")
    keys_only = {name: private.manifest.select("row_key") for name in TABLES}  # a modality the cohort does not have
    for name, frame in (keys_only | dict(private)).items():
        with quiet_errors(f"describing table {name}"):
            described = describe_table(frame, spec, name)
        yield dg.MaterializeResult(
            asset_key=PRIVATE[name],
            value=close(frame, fingerprint_key(home)),
            metadata=private_table_metadata(frame),
            check_results=schema(PRIVATE[name], described),
        )
