"""What an endpoint's checks need to know of its environment."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from tritonstack.catalogue import Catalogue


@dataclass(frozen=True, kw_only=True)
class Site:
    """An environment's own fields; None where the file has no usable value, so that the rest can still be checked."""

    environment: str | None
    account: str | None
    region: str | None
    production: bool | None
    catalogue: Catalogue


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence that names the most alike of ``names``, or nothing."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"Did you mean {' or '.join(near)}?" if near else ""
