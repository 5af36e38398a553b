"""A list of discoveries once more from the steward's files and what the ledger paid for: nothing stored is believed.

The plan asks its queries again of the rows that the files give now, and is given stored answers only. A query that
nobody paid for is one of another plan, of other rows or of another statistic.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.contract.registered import Contrasted
from synth_platform.discovery.contrast import contrast_study
from synth_platform.discovery.documents import Study, discoveries_document, e_values_document
from synth_platform.discovery.genotypes import genotype_study, read_study
from synth_platform.normalize.rows import content_digest
from synth_platform.privacy.fingerprint import FingerprintKey, canonical_json
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.replay import NotPaidError, Replay
from synth_platform.privacy.statistic_store import StatisticStore, StoredReleaseError
from synth_platform.release.discovery import Stage, decide_discoveries
from synth_platform.release.rederive import NotRederivedError, stage_of_files
from synth_platform.sources.genotypes.study import content_digest as study_digest
from synth_platform.sources.tables import SourceError

Document = Mapping[str, Any]


def require_list_rederived(
    *,
    spec: Contrasted,
    folder: Path,
    stage: Stage,
    plan: DiscoveryPlan,
    documents: Mapping[str, Document],
    ledger: Ledger,
    store: StatisticStore,
    key: FingerprintKey,
) -> None:
    """Derive e-values, list and decision again and require that the stored `documents` are equal, to the last bit.

    Raises NotRederivedError naming what differs, SourceError where the files cannot be read any more.
    """
    study, source = asked_of_files(spec, folder, plan)
    replay = Replay(ledger, store, spec.privacy.domain, spec.name, key.name(source))
    try:
        e_values = e_values_document(study, replay.ask, rows=replay.input_fingerprint)
    except (NotPaidError, StoredReleaseError) as error:
        raise NotRederivedError(f"{stage}/private_e_values: {error}; run the plan again") from error
    discoveries = discoveries_document(e_values, plan.alpha)
    decision = decide_discoveries(
        spec=spec, stage=stage, plan=plan, e_values=e_values, discoveries=discoveries, ledger=ledger, store=store
    )
    derived = {"private_e_values": e_values, "discoveries": discoveries, "decision": decision}
    for name, document in derived.items():
        if canonical_json(document) != canonical_json(documents[name]):
            raise NotRederivedError(
                f"{stage}/{name} does not follow from the answers the ledger paid for; run the plan again"
            )


def asked_of_files(spec: Contrasted, folder: Path, plan: DiscoveryPlan) -> tuple[Study[Any], bytes]:
    """What a plan asks, made from the steward's files alone, and the digest of the private rows in them."""
    if isinstance(spec, GenotypeSpec):
        with quiet_errors("reading the study again", readable=(SourceError,)):
            return genotype_study(spec, folder, plan), study_digest(read_study(spec, folder, plan.contrast))
    stage = stage_of_files(spec, folder)
    return contrast_study(spec, plan, stage.reference), content_digest(stage.rows)
