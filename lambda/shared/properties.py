"""The properties of a custom resource: texts, all of which must be there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .custom_resource import NotDoneError


def read_properties(fields: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, str]:
    """Field → value; ``record_path`` is the property ``RecordPath``. Raises NotDoneError with all that are missing."""
    names = {field: "".join(part.title() for part in field.split("_")) for field in fields}
    missing = [name for name in names.values() if not given.get(name)]
    if missing:
        raise NotDoneError(f"properties missing: {', '.join(missing)}")
    return {field: str(given[name]) for field, name in names.items()}
