"""A scenario as it is written, and what other files tell of it: an environment, manifests, results of a load test.

What the scenario says itself stands; the other files fill in what it leaves out. Each value that was filled in has an
origin, so that an answer can say what it rests on.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tritonstack.errors import Problem
from tritonstack.settings.findings import Finding
from tritonstack.settings.yaml_source import Location


@dataclass(kw_only=True)
class Filled:
    """A scenario's values, not checked yet.

    Attributes:
        value: as YAML gives it; the rest does nothing where it is no mapping.
        origins: location of a value that was filled in → who says it, in words.
        findings: what is wrong with what the scenario says of other files.
        problems: what is wrong with those files.
    """

    value: Any
    origins: dict[Location, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of(cls, value: Any) -> Filled:
        """Of what a file holds, which stays as it is."""
        return cls(value=copy.deepcopy(value))

    def get(self, *location: str | int) -> Any:
        """What stands at a place; None where nothing does."""
        found = self.value
        for part in location:
            if isinstance(found, dict):
                found = found.get(part)
            elif isinstance(found, list) and isinstance(part, int):
                found = found[part]
            else:
                return None
        return found

    def fill(self, location: Location, values: Mapping[str, Any], *, origin: str) -> None:
        """Fields of the mapping at ``location`` that are not there yet; None is nothing to fill in."""
        mapping = self.value
        for part in location:
            if isinstance(mapping, dict):
                mapping = mapping.setdefault(part, {})
            elif isinstance(mapping, list) and isinstance(part, int):
                mapping = mapping[part]
        if not isinstance(mapping, dict):
            return
        for name, value in values.items():
            if name not in mapping and value is not None:
                mapping[name] = value
                self.origins[(*location, name)] = origin

    def groups(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The mappings among the models, each with its place."""
        models = self.get("models")
        for place, group in enumerate(models if isinstance(models, list) else []):
            if isinstance(group, dict):
                yield place, group
