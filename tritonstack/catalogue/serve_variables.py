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
class ServerOptions:
    """The command line of ``tritonserver``, by release.

    Attributes:
        names: every option that a release has, without its dashes.
        absent_in: option → the newest release that was read and lacks it; others are in all that were read.
        newest_read: the newest release whose options were read in full. A newer one may have more.
        without_value: options that take no value; all others need one.
        effective_since: option → the release from which it acts on SageMaker's front end.
        refused: option → why no endpoint may have it.
    """

    names: frozenset[str]
    absent_in: Mapping[str, str]
    newest_read: str
    without_value: frozenset[str]
    effective_since: Mapping[str, str]
    refused: Mapping[str, str]

    def lacks(self, name: str, *, release: str) -> bool | None:
        """Whether ``release`` lacks the option; None where the option is unknown and the release newer than read."""
        if name not in self.names:
            return None if release_order(release) > release_order(self.newest_read) else True
        absent = self.absent_in.get(name)
        return absent is not None and release_order(release) <= release_order(absent)


@dataclass(frozen=True, kw_only=True)
class ServeTable:
    """The variables by name, the flags that serve always gives, and the options that tritonserver has."""

    variables: Mapping[str, ServeVariable]
    fixed_flags: tuple[str, ...]
    options: ServerOptions


def read_serve_variables() -> ServeTable:
    """The variables of ``data/serve_variables.json``."""
    document = read_data("serve_variables.json")
    options = document["server_options"]
    variables = [ServeVariable(**row) for row in document["variables"]]
    return ServeTable(
        variables={variable.name: variable for variable in variables},
        fixed_flags=tuple(document["fixed_flags"]),
        options=ServerOptions(
            names=frozenset(options["names"]),
            absent_in=options["absent_in"],
            newest_read=options["newest_read"],
            without_value=frozenset(options["without_value"]),
            effective_since=options["effective_since"],
            refused=options["refused"],
        ),
    )
