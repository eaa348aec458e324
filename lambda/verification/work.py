"""A verification's properties, its progress, which one run of the function passes to the next, and its clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..shared.custom_resource import name_list, read_properties


@dataclass(frozen=True)
class Properties:
    """The custom resource's properties.

    ``stops_at_unload``: whether an unload ends the warming. ``models`` and ``minutes``: the most models, and the most
    minutes. ``manifest_prefix``: of the platform, with a trailing slash.
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
    """Progress of a verification; JSON's types alone.

    Attributes:
        began: time of the first event, seconds since the epoch.
        waiting: archives without ``.tar.gz`` (``bert.0123456789abcdef``) that are not verified yet, the next one first.
        checked: whether the endpoint was found to run what the template names.
        invoked: those that were invoked at least once.
        failures: of each, how many requests failed.
        errors: of each, the error of the last failed request.
        verified: those whose response was as expected.
        left: why others were not invoked.
    """

    began: float
    waiting: list[str]
    checked: bool = False
    invoked: list[str] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    verified: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.checked and not self.waiting

    def leave(self, names: list[str], why: str) -> None:
        """Invoke these no more."""
        if names:
            self.left.append(f"{name_list(names)}: {why}")
            self.waiting = [name for name in self.waiting if name not in names]


class Clock:
    """The time, and what is left of this run."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: until Lambda ends the run."""
        self._end = time.time() + seconds

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def left(self) -> float:
        """Seconds until Lambda ends the run."""
        return self._end - time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
