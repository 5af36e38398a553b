"""Check specifications per partition, and the pieces every check shares."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg


@contextmanager
def partitioned_checks() -> Iterator[None]:
    """Partitioned checks carry a preview notice in this Dagster release; what they do here is pinned by tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        yield


def check_spec(
    name: str,
    asset: dg.AssetKey,
    partitions: dg.PartitionsDefinition[Any] | None,
    *,
    description: str,
    blocking: bool = False,
) -> dg.AssetCheckSpec:
    """A check evaluated partition by partition, beside the asset's own partitions if it has any."""
    with partitioned_checks():
        return dg.AssetCheckSpec(
            name, asset=asset, partitions_def=partitions, description=description, blocking=blocking
        )
