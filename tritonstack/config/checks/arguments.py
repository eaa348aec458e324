"""Further tritonserver flags: serve appends them unquoted, after the flags it makes of the other variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.config.checks.site import nearest
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding, shown
from tritonstack.config.yaml_source import Location

_FLAG = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(?P<value>=.+)?")
_UNSAFE = re.compile(r"[\s'\"\\*?\[\]]")
"""Blanks split; quotes and backslashes stay in the value; * ? [ ] may be replaced by file names."""


def check_arguments(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    """What is wrong with ``additional_args``; ``location`` is that of ``container``."""
    for index, argument in enumerate(endpoint.container.additional_args):
        wrong = _wrong(argument, release=endpoint.release)
        if wrong is not None:
            allowed, advice = wrong
            place = (*location, "additional_args", index)
            yield Finding(location=place, found=shown(argument), allowed=allowed, advice=advice)


def unread_arguments(endpoint: Endpoint) -> tuple[str, ...]:
    """The arguments of which it is not known whether the endpoint's release has them: it is newer than what was read.

    tritonserver ends at once at an option that it does not have, so each is worth a warning.
    """
    options = load_catalogue().serve_table.options
    found = [(argument, _FLAG.fullmatch(argument)) for argument in endpoint.container.additional_args]
    return tuple(
        argument for argument, flag in found if flag and options.lacks(flag["name"], release=endpoint.release) is None
    )


def _wrong(argument: str, *, release: str) -> tuple[str, str] | None:
    """What is allowed in place of ``argument`` and what to do; None where it may stand."""
    flag = _FLAG.fullmatch(argument)
    if flag is None or _UNSAFE.search(argument):
        return (
            "one --flag or --flag=value with no blank, quote, backslash, *, ?, [ or ] in it",
            "serve hands flags over unquoted: a blank would split one, a quote would stay in the value.",
        )
    return _taken(argument, flag["name"]) or _not_read(flag, release=release)


def _taken(argument: str, name: str) -> tuple[str, str] | None:
    """The same of a flag that serve gives itself, and of one that does not suit SageMaker."""
    for owned, field in flag_owners().items():
        if argument == owned or argument.startswith(f"{owned}="):
            advice = f"Set container.{field} instead." if field else "Remove it: SageMaker depends on this flag."
            return "a flag that serve does not give itself", advice
    reason = load_catalogue().serve_table.options.refused.get(name)
    return None if reason is None else (f"an option that suits SageMaker: {reason}", "Remove it.")


def _not_read(flag: re.Match[str], *, release: str) -> tuple[str, str] | None:
    """The same of an option that ``release`` lacks or does not heed, and of one without its value."""
    options, name = load_catalogue().serve_table.options, flag["name"]
    if options.lacks(name, release=release):
        advice = nearest(f"--{name}", [f"--{each}" for each in sorted(options.names)])
        newer = f"; it came after release {options.absent_in[name]}" if name in options.absent_in else ""
        return f"an option that tritonserver of release {release} has{newer}", advice or "It would end at once."
    since = options.effective_since.get(name, release)
    if release_order(release) < release_order(since):
        return f"release {since} or newer: older front ends of SageMaker do not read it", "Remove it."
    if name in options.without_value and flag["value"] is not None:
        return f"--{name} alone", ""
    if name in options.names - options.without_value and flag["value"] is None:
        return f"--{name}=value", "Without its value it would take the next flag for it."
    return None


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
