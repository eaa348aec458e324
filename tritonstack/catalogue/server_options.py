"""Variables of the image's ``serve`` and flags of ``tritonserver``, by Triton release."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from tritonstack.catalogue.triton_releases import release_order

Scope = Literal["platform", "single-model", "both"]


@dataclass(frozen=True, kw_only=True)
class ServeVariable:
    """One variable of the container's environment."""

    name: str  # of the variable
    field: str | None  # the setting under ``container`` that renders it; None where SageMaker sets it itself
    since: str  # the first release that reads it (``YY.MM``)
    since_is_upper_bound: bool  # True where it was there already in the oldest release that was looked at
    scope: Scope  # ``platform`` (set by SageMaker), ``single-model`` (ignored in multi-model mode) or ``both``
    flag: str  # the tritonserver flag that serve makes of it
    default: str  # what holds when it is unset
    meaning: str  # in words

    def known_to(self, release: str) -> bool:
        """Whether the image of ``release`` reads the variable."""
        return self.since_is_upper_bound or release_order(release) >= release_order(self.since)


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The command line of ``tritonserver``, by release."""

    source: str  # where they were read
    names: Collection[str]  # every option that a release has, without its dashes
    # option → the newest release that was read and lacks it; others are in all that were read
    absent_in: Mapping[str, str]
    newest_read: str  # the newest release whose options were read in full. A newer one may have more
    without_value: Collection[str]  # options that take no value; all others need one
    effective_since: Mapping[str, str]  # option → the release from which it acts on SageMaker's front end
    refused: Mapping[str, str]  # option → why no endpoint may have it

    def lacks(self, name: str, *, release: str) -> bool:
        """Whether ``release`` lacks the option; no unknown one of a release that is newer than those that were read."""
        if name not in self.names:
            return release_order(release) <= release_order(self.newest_read)
        absent = self.absent_in.get(name)
        return absent is not None and release_order(release) <= release_order(absent)
