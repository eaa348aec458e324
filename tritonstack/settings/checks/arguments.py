"""Further tritonserver flags: serve appends them unquoted, after the flags it makes of the other variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonstack.catalogue import load_catalogue
from tritonstack.settings.endpoint import Endpoint
from tritonstack.settings.findings import Finding, shown
from tritonstack.settings.yaml_source import Location

_FLAG = re.compile(r"--[a-z][a-z0-9-]*(=.+)?")
_UNSAFE = re.compile(r"[\s'\"\\*?\[\]]")
"""Blanks split; quotes and backslashes stay in the value; * ? [ ] may be replaced by file names."""


def check_arguments(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    """What is wrong with ``additional_args``; ``location`` is that of ``container``."""
    owners = flag_owners()
    for index, argument in enumerate(endpoint.container.additional_args):
        place = (*location, "additional_args", index)
        if _UNSAFE.search(argument) or not _FLAG.fullmatch(argument):
            yield Finding(
                location=place,
                found=shown(argument),
                allowed="one --flag or --flag=value with no blank, quote, backslash, *, ?, [ or ] in it",
                advice="serve hands flags over unquoted: a blank would split one, a quote would stay in the value.",
            )
            continue
        for flag, field in owners.items():
            if argument == flag or argument.startswith(f"{flag}="):
                yield Finding(
                    location=place,
                    found=shown(argument),
                    allowed="a flag that serve does not give itself",
                    advice=f"Set container.{field} instead." if field else "Remove it: SageMaker depends on this flag.",
                )


def flag_owners() -> dict[str, str | None]:
    """Flags that serve gives itself → the setting under ``container`` that decides them, or None where nothing does."""
    catalogue = load_catalogue()
    owners: dict[str, str | None] = {flag.split("=")[0]: None for flag in catalogue.serve_table.fixed_flags}
    for variable in catalogue.serve_variables.values():
        flag = variable.flag.split(" ")[0]
        if flag.startswith("--"):
            # "--model-namespacing=<value>" and "--model-repository=/tmp/…", but "--backend-config=python,shm-…" whole.
            owners[flag if "," in flag else flag.split("=")[0]] = variable.field
    return owners
