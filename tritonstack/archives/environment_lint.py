"""Lint what an environment serves, each archive for the endpoint that serves it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from tritonstack.archives.lint import Finding, Target, lint_folder
from tritonstack.archives.lint.built import unpacked_bytes
from tritonstack.archives.places import Places
from tritonstack.archives.resolving import choice_of, sources_of
from tritonstack.errors import InputError
from tritonstack.settings import Environment


def refuse_errors_of_environment(
    environment: Environment, *, models: Sequence[str] = (), places: Places | None = None
) -> None:
    """Raise :class:`InputError` with every error of what an environment serves, or of ``models`` alone; warnings pass.

    Each archive is held against the release and the instance type of its endpoints, as ``tritonstack lint
    --environment`` does. ``models``: archives, or folders, which stand for all their archives.
    """
    found = dict.fromkeys(_findings(environment, frozenset(models), places or Places.of_project()))
    problems = [finding.problem() for finding in found if finding.level == "error"]
    if problems:
        raise InputError(problems)


def _findings(environment: Environment, models: frozenset[str], places: Places) -> Iterator[Finding]:
    choice = choice_of(environment)
    for endpoint in environment.endpoints:
        target = Target.of_endpoint(endpoint, environment.environment)
        sources = [source for entry in endpoint.models for source in sources_of(entry, places.repositories, choice)]
        for source in sources:
            if models and not models & {source.name, source.folder.name}:
                continue
            size = unpacked_bytes(source, endpoint.platform, places)
            served = dataclasses.replace(target, unpacked_bytes=size)
            yield from lint_folder(source.folder, target=served, archives={source.name})
