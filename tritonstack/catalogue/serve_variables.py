"""Variables that the image's ``serve`` script and Triton's SageMaker front end read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.releases import release_order

Scope = Literal["platform", "single-model", "both"]


@dataclass(frozen=True, kw_only=True)
class ServeVariable:
    """One variable of the container's environment.

    Attributes:
        name: of the variable.
        field: the setting under ``container`` that renders it; None where SageMaker sets it itself.
        since: the first release that reads it (``YY.MM``).
        since_is_upper_bound: True where it was there already in the oldest release that was looked at.
        scope: ``platform`` (set by SageMaker), ``single-model`` (ignored in multi-model mode) or ``both``.
        flag: the tritonserver flag that serve makes of it.
        default: what holds when it is unset.
        meaning: in words.
    """

    name: str
    field: str | None
    since: str
    since_is_upper_bound: bool
    scope: Scope
    flag: str
    default: str
    meaning: str

    def known_to(self, release: str) -> bool:
        """Whether the image of ``release`` reads the variable."""
        return self.since_is_upper_bound or release_order(release) >= release_order(self.since)


@dataclass(frozen=True, kw_only=True)
class ServeTable:
    """The variables by name, and the flags that serve always gives."""

    variables: Mapping[str, ServeVariable]
    fixed_flags: tuple[str, ...]


def read_serve_variables() -> ServeTable:
    """The variables of ``data/serve_variables.json``."""
    document = read_data("serve_variables.json")
    variables = [ServeVariable(**row) for row in document["variables"]]
    return ServeTable(
        variables={variable.name: variable for variable in variables},
        fixed_flags=tuple(document["fixed_flags"]),
    )
