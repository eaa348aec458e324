"""An HTTP request that is ready to be sent again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReadyRequest:
    """A POST as it goes out, headers signed where the endpoint asks for it."""

    url: str
    headers: Mapping[str, str]
    body: bytes


Prepare = Callable[[], ReadyRequest]
"""Makes the request; called again when a signature grows old. May block."""
