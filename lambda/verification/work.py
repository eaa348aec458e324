"""A verification's properties, and its progress, which one run of the function passes to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..shared.custom_resource import name_list, read_properties

OPTIONAL = {"variants": "Variants", "streams": "Streams", "pools": "Pools"}


@dataclass(frozen=True)
class Properties:
    """The custom resource's properties.

    ``variant_name``: of the only production variant. ``variants``: of several, model → variant, as JSON.
    ``streams``: whether responses are streams of events.
    ``stops_at_unload``: whether an unload ends the warming. ``models`` and ``minutes``: the most models, and the most
    minutes. ``manifest_prefix``: of the platform, with a trailing slash. ``pools``: instance type → the manifest prefix
    of its platform, in order of preference, as JSON; empty without instance pools.
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
    variants: str = "{}"
    streams: str = "false"
    pools: str = "{}"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Properties:
        """Read them from an event. Raises NotDoneError with all that are missing."""
        optional = {name: given[key] for name, key in OPTIONAL.items() if key in given}
        required = [name for name in cls.__dataclass_fields__ if name not in OPTIONAL]
        return cls(**read_properties(required, given), **optional)

    @property
    def variant_of(self) -> Mapping[str, str]:
        """Model → the variant that serves it alone; empty where the endpoint has one variant."""
        found: Mapping[str, str] = json.loads(self.variants)
        return found

    @property
    def prefix_of_type(self) -> Mapping[str, str]:
        """Instance type of a pool → the manifest prefix of its platform; empty without pools."""
        found: Mapping[str, str] = json.loads(self.pools)
        return found


@dataclass
class Work:
    """Progress of a verification; JSON's types alone. Archives are named without ``.tar.gz``."""

    began: float  # time of the first event, seconds since the epoch
    waiting: list[str]  # archives (``bert.0123456789abcdef``) that are not verified yet, the next one first
    checked: bool = False  # whether the endpoint was found to run what the template names
    invoked: list[str] = field(default_factory=list)  # at least once
    failures: dict[str, int] = field(default_factory=dict)  # archive → how many requests failed
    errors: dict[str, str] = field(default_factory=dict)  # archive → the error of the last failed request
    verified: list[str] = field(default_factory=list)  # those whose response was as expected
    left: list[str] = field(default_factory=list)  # why others were not invoked
    landed: dict[str, int] = field(
        default_factory=dict
    )  # instance type of a pool → live instances, where there are any

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.checked and not self.waiting

    def prefixes(self, properties: Properties) -> list[str]:
        """Manifest prefixes of the archives that may respond: of the live instance types, the preferred one first."""
        live = [prefix for name, prefix in properties.prefix_of_type.items() if self.landed.get(name)]
        return list(dict.fromkeys(live)) or [properties.manifest_prefix]

    def leave(self, names: list[str], why: str) -> None:
        """Invoke these no more."""
        if names:
            self.left.append(f"{name_list(names)}: {why}")
            self.waiting = [name for name in self.waiting if name not in names]
