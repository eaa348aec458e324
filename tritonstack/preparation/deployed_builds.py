"""Builds of a deployment: the orders of its endpoints, the builders of engines, Python environments and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonstack.archives.execution_environment import TORCH, locked_names
from tritonstack.engines.engine_builds import Builder
from tritonstack.models.contents import contents_of
from tritonstack.models.source import ArchiveSource
from tritonstack.preparation.build_order import build_set
from tritonstack.served import Served

ALWAYS = ("main", "triton", "backends", "exporters")
"""Environments that every build needs: the commands, the server that proves archives, and ONNX Runtime."""

OF_BACKEND = {"pytorch": "torch", "dali": "dali", "tensorflow": "tensorflow"}
"""Backend → the environment of its stand-in in the server that proves archives."""


@dataclass(frozen=True, kw_only=True)
class DeployedBuilds:
    """Builds of a deployment."""

    build_sets: Mapping[str, tuple[str, ...]]  # endpoint → the document of all that it serves, for each platform
    builders: tuple[Builder, ...]  # of engines, by platform and image; empty where no archive needs one
    environments: tuple[str, ...]  # the Python environments that exports and proofs need, in the order to make them
    weights: tuple[str, ...]  # URLs of pretrained weights in S3, sorted
    models: Path  # the folder of the model folders


def deployed_builds(served: Served, models: Path) -> DeployedBuilds:
    """Builds of a deployment of a matched environment. ``models``: the folder of the model folders.

    Reads files alone.
    """
    sources = tuple(served.sources.values())
    return DeployedBuilds(
        build_sets={
            each.name: tuple(build_set(served, of_one).to_json() for of_one in each.platform_settings)
            for each in served.environment.endpoints
        },
        builders=tuple(build.builder for build in served.engines.builds),
        environments=build_environments(sources),
        weights=tuple(sorted(set(_weights(sources)))),
        models=models,
    )


def build_environments(sources: Iterable[ArchiveSource]) -> tuple[str, ...]:
    """The Python environments that exports and proofs of these archives need, those of every build first."""
    names: set[str] = set()
    for source in _with_used(sources):
        names |= {export.environment for export in source.recipe.exports}
        names |= {OF_BACKEND[backend] for backend in contents_of(source).backends if backend in OF_BACKEND}
        files = [source.folder / part.requirements for part in source.recipe.environments]
        if any(TORCH in locked_names(file) for file in files):
            names.add(TORCH)  # where the local Triton proves the archive, it replaces the build for CUDA
    return (*ALWAYS, *sorted(names - set(ALWAYS)))


def _weights(sources: Iterable[ArchiveSource]) -> Iterator[str]:
    for source in _with_used(sources):
        part = source.recipe.source
        if part is not None and part.s3 is not None and source.weights == "pretrained":
            yield part.s3
        yield from (stored.s3 for stored in source.recipe.files.values())


def _with_used(sources: Iterable[ArchiveSource]) -> Iterator[ArchiveSource]:
    for source in sources:
        yield source
        yield from source.used
