"""Which TensorRT engines an environment needs, and what builds each: one a platform and archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.archives.contents import lacks_plan
from tritonstack.archives.source import ArchiveSource
from tritonstack.catalogue import load_catalogue
from tritonstack.engines.builders import Builder, NoBuilderError, builder_for, least_tensorrt
from tritonstack.errors import Problem
from tritonstack.naming import Platform
from tritonstack.settings import Endpoint, Environment
from tritonstack.settings.findings import Finding, to_problems
from tritonstack.settings.yaml_source import Location

STRONGLY_TYPED = (11,)
"""From this TensorRT on trtexec has no --fp16: an engine has the precision of its ONNX file."""


@dataclass(frozen=True, kw_only=True)
class EngineNeed:
    """An archive whose engine an endpoint needs.

    Attributes:
        endpoint: the endpoint.
        location: where its settings name the archive, or the folder that brings it.
        source: the archive's source.
    """

    endpoint: Endpoint
    location: Location
    source: ArchiveSource


@dataclass(frozen=True, kw_only=True)
class PlannedBuild:
    """The engines of one platform that one builder builds.

    Attributes:
        builder: what builds them.
        endpoints: the endpoints that serve them, sorted.
        archives: the archives that need one, sorted; each is built once, whichever endpoints serve it.
    """

    builder: Builder
    endpoints: tuple[str, ...]
    archives: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class EnginePlan:
    """The engines of an environment.

    Attributes:
        builds: what is built, by platform and image.
        problems: what cannot be built at all, with what would work.
    """

    builds: tuple[PlannedBuild, ...]
    problems: tuple[Problem, ...]


def plan_engines(
    environment: Environment, archives: Mapping[str, Sequence[ArchiveSource]], *, file: Path
) -> EnginePlan:
    """What builds the engines of an environment, and what cannot be built.

    Args:
        environment: the settings.
        archives: entry of an endpoint's ``models`` → the sources of the archives that it means.
        file: the environment's file, as the problems shall name it.
    """
    builders: dict[tuple[Platform, str], Builder] = {}
    served: dict[tuple[Platform, str], list[EngineNeed]] = {}
    findings: list[Finding] = []
    for needs in _by_entry(environment, archives):
        endpoint, location = needs[0].endpoint, needs[0].location
        precision = list(_precision(needs))
        findings += precision
        try:
            builder = builder_for(endpoint.platform, environment.region, image=endpoint.image)
        except NoBuilderError as error:
            found = f"{_engines(needs)} cannot be built: {error.found}"
            findings.append(Finding(location=location, found=found, allowed=error.allowed, advice=error.advice))
            continue
        if precision:
            continue
        key = (builder.platform, builder.image)
        builders[key] = builder
        served.setdefault(key, []).extend(needs)
    builds = [
        PlannedBuild(
            builder=builders[key],
            endpoints=tuple(sorted({need.endpoint.name for need in served[key]})),
            archives=tuple(sorted({need.source.name for need in served[key]})),
        )
        for key in sorted(builders)
    ]
    return EnginePlan(builds=tuple(builds), problems=tuple(to_problems(findings=findings, path=file)))


def _by_entry(
    environment: Environment, archives: Mapping[str, Sequence[ArchiveSource]]
) -> Iterator[tuple[EngineNeed, ...]]:
    """The needs of each entry of each endpoint's ``models``, where it has any."""
    for index, endpoint in enumerate(environment.endpoints):
        for position, entry in enumerate(endpoint.models):
            location: Location = ("endpoints", index, "models", position)
            needs = tuple(
                EngineNeed(endpoint=endpoint, location=location, source=source)
                for source in archives[entry]
                if lacks_plan(source)
            )
            if needs:
                yield needs


def _precision(needs: Sequence[EngineNeed]) -> Iterator[Finding]:
    """FP16 that a strongly typed TensorRT has no option for."""
    release = load_catalogue().release(needs[0].endpoint.release)
    half = [need for need in needs if need.source.recipe.engine and need.source.recipe.engine.precision != "fp32"]
    if release is None or least_tensorrt(release) < STRONGLY_TYPED or not half:
        return
    older = [row.version for row in load_catalogue().releases.values() if least_tensorrt(row) < STRONGLY_TYPED]
    yield Finding(
        location=needs[0].location,
        found=f"{_engines(half)} in fp16 with release {release.version}, whose TensorRT {release.tensorrt} has no "
        "option for a precision and builds the one of the ONNX file",
        allowed=f"engine.precision: fp32 in the recipe, or release {older[-1]} or older",
    )


def _engines(needs: Sequence[EngineNeed]) -> str:
    names = [need.source.name for need in needs]
    return f"the engine of {names[0]}" + (f" and of {len(names) - 1} more archives" if len(names) > 1 else "")
