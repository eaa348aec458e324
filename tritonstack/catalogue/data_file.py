"""Reads a data file that is shipped inside this package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def read_data(name: str) -> dict[str, Any]:
    """The JSON object in ``data/<name>``. Raises FileNotFoundError where the package has no such data file."""
    text = files("tritonstack.catalogue").joinpath("data", name).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
