"""What a verification is asked for, and how far it has come: what one run of the function leaves to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..shared.names import shown
from ..shared.properties import read_properties


@dataclass(frozen=True)
class Properties:
    """The custom resource's properties.

    ``stops_at_unload``: whether an unload ends the warming. ``models`` and ``minutes``: at most so many models, and in
    so many minutes. ``manifest_prefix``: of the platform, with a trailing slash.
    """

    endpoint_name: str
    endpoint_config_name: str
    variant_name: str
    image: str
    multi_model: str
    stops_at_unload: str
    models: str
    minutes: str
    release_set_bucket: str
    release_set_key: str
    archive_bucket: str
    manifest_prefix: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Properties:
        """Read them from an event. Raises NotDoneError with all that are missing."""
        return cls(**read_properties(cls.__dataclass_fields__, given))


@dataclass
class Work:
    """What one run leaves to the next; JSON's types alone.

    Attributes:
        began: when the first event came, seconds since the epoch.
        waiting: archives without their ending (``bert.0123456789abcdef``) that have yet to answer, the next one first.
        checked: whether the endpoint was seen to run what was asked for.
        called: those that were called at least once.
        failures: of each, how many calls failed.
        said: of each, what the last failed call said.
        answered: those that answered as expected.
        left: why others were not called.
    """

    began: float
    waiting: list[str]
    checked: bool = False
    called: list[str] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    answered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.checked and not self.waiting

    def leave(self, names: list[str], why: str) -> None:
        """Call these no more."""
        if names:
            self.left.append(f"{shown(names)}: {why}")
            self.waiting = [name for name in self.waiting if name not in names]
