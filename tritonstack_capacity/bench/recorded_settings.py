"""Settings in a document of results, and read back from it, so that a test can be repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tritonstack.errors import InputError, Problem
from tritonstack_capacity.bench.document import BenchDocument
from tritonstack_capacity.bench.settings import BenchSettings

_SETTINGS = TypeAdapter(BenchSettings)


def settings_part(settings: BenchSettings) -> dict[str, Any]:
    """The settings as JSON has them."""
    found: dict[str, Any] = _SETTINGS.dump_python(settings, mode="json")
    return found


def recorded_settings(document: BenchDocument, file: Path) -> BenchSettings:
    """With which settings a document's test ran; ``file``: where it was read.

    Raises:
        InputError: they are not those of a test that this program runs itself.
    """
    try:
        return _SETTINGS.validate_python(document.settings)
    except ValidationError as error:
        first = error.errors()[0]
        problem = Problem(
            file=str(file),
            field=".".join(["settings", *(str(part) for part in first["loc"])]),
            found=first["msg"],
            allowed="the results of tritonstack capacity bench NAME…; what ran in the cloud is repeated with --cloud",
        )
        raise InputError([problem]) from error
