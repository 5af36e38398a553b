"""YAML whose scalars stay as they were written: `no` is a category, not False, and 007 is no number."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from synth_platform.contract.categories import first_repeated


class AsWritten(yaml.BaseLoader):
    """Scalars as text, and no key twice: the first of the two would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """As of a BaseLoader. Raises ConstructorError with the place of a key that is there twice."""
        twice = first_repeated(str(key.value) for key, _ in node.value)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"{twice!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)
