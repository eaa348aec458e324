"""Which TensorRT engines an environment needs, and what builds each: one a platform and archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.archives.contents import lacks_plan
from tritonstack.archives.engine_recipe import Engine
from tritonstack.archives.recipe import RECIPE, read_recipe
from tritonstack.archives.source import ArchiveSource
from tritonstack.engines.builders import Builder, NoBuilderError, builder_for
from tritonstack.engines.trtexec import engine_problems
from tritonstack.errors import Problem
from tritonstack.naming import Platform
from tritonstack.settings import Endpoint, Environment
from tritonstack.settings.findings import Finding, shown, to_problems
from tritonstack.settings.yaml_source import Location

VERSION_COMPATIBLE = "--backend-config=tensorrt,version-compatible=true"
"""What has Triton load a plan that was built to be loaded by later TensorRT versions too."""


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
    refused: list[Problem] = []
    for needs in _by_entry(environment, archives):
        builder = _builder(needs, environment)
        wrong = [*_without_recipe(needs), *_unloadable(needs), *([builder] if isinstance(builder, Finding) else ())]
        options = _refused_options(needs, file=file)
        findings += wrong
        refused += options
        if isinstance(builder, Builder) and not wrong and not options:
            builders[builder.platform, builder.image] = builder
            served.setdefault((builder.platform, builder.image), []).extend(needs)
    return EnginePlan(
        builds=tuple(_build(builders[key], served[key]) for key in sorted(builders)),
        problems=(*to_problems(findings=findings, path=file), *dict.fromkeys(refused)),
    )


def _build(builder: Builder, needs: Sequence[EngineNeed]) -> PlannedBuild:
    return PlannedBuild(
        builder=builder,
        endpoints=tuple(sorted({need.endpoint.name for need in needs})),
        archives=tuple(sorted({need.source.name for need in needs})),
    )


def _builder(needs: Sequence[EngineNeed], environment: Environment) -> Builder | Finding:
    """What builds the engines of one entry, or why nothing does."""
    endpoint, kind = needs[0].endpoint, environment.builds.engine_builder
    try:
        return builder_for(endpoint.platform, environment.region, image=endpoint.image, kind=kind)
    except NoBuilderError as error:
        found = f"{_engines(needs)} cannot be built: {error.found}"
        return Finding(location=needs[0].location, found=found, allowed=error.allowed, advice=error.advice)


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


def _without_recipe(needs: Sequence[EngineNeed]) -> Iterator[Finding]:
    """TensorRT models for which no recipe, their own or that of a folder that they are taken from, has an engine."""
    without = [need for need in needs if not _recipes(need.source)]
    if without:
        yield Finding(
            location=without[0].location,
            found=f"{_engines(without)} cannot be built: there is no plan, and no engine in its recipe",
            allowed="a recipe with engine: and its shapes, or a model.plan in the folder",
        )


def _unloadable(needs: Sequence[EngineNeed]) -> Iterator[Finding]:
    """Plans that later versions load, on an endpoint whose Triton is not told to load such (tensorrt_backend, README).

    Triton then executes code that the plan carries, so it does that only where it is told to.
    """
    compatible = [need for need in needs if any(engine.version_compatible for engine in _recipes(need.source))]
    if compatible and VERSION_COMPATIBLE not in needs[0].endpoint.container.additional_args:
        yield Finding(
            location=(*needs[0].location[:2], "container", "additional_args"),
            found=f"{shown(list(needs[0].endpoint.container.additional_args))}, and {compatible[0].source.name} has an "
            "engine with version_compatible: true, which Triton would not load",
            allowed=f"a list with {VERSION_COMPATIBLE}",
            advice="Add that element, or take version_compatible out of the recipe.",
        )


def _recipes(source: ArchiveSource) -> tuple[Engine, ...]:
    """The engines of an archive: its own, and those of the folders that it takes models from."""
    used = [read_recipe(source.folder.parent / used.folder).engine for used in source.recipe.uses]
    return tuple(engine for engine in (source.recipe.engine, *used) if engine is not None)


def _refused_options(needs: Sequence[EngineNeed], *, file: Path) -> list[Problem]:
    """What recipes want of their engines and the endpoint's release or GPU does not have; each recipe once."""
    endpoint = needs[0].endpoint
    problems = [
        problem
        for need in needs
        for engine in _recipes(need.source)
        for problem in engine_problems(
            engine,
            release=endpoint.release,
            gpu=endpoint.platform.gpu,
            own_image=True,  # whether there is an image to build in, the choice of the builder asks
            file=str(need.source.folder / RECIPE),
        )
    ]
    return [
        dataclasses.replace(problem, found=f"{problem.found} (endpoint {endpoint.name} of {file})")
        for problem in dict.fromkeys(problems)
    ]


def _engines(needs: Sequence[EngineNeed]) -> str:
    names = [need.source.name for need in needs]
    return f"the engine of {names[0]}" + (f" and of {len(names) - 1} more archives" if len(names) > 1 else "")
