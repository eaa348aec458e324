"""What an environment serves, and orders: the archives that an endpoint needs in the bucket, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from tritonstack.catalogue.instances import BuilderKind
from tritonstack.config import Environment, engines_built_on_deploy
from tritonstack.config.yaml_loader import YamlDocument, validate, with_lines
from tritonstack.engines.archive_checks import check_archives, with_archives, with_default_models
from tritonstack.engines.plan import Builder, EnginePlan, plan_engines
from tritonstack.errors import InputError, Problem, collecting, refuse
from tritonstack.foreign_text import parse_json
from tritonstack.models.inputs import digests_of, resolved_models
from tritonstack.models.recipe import Dependency, Size, Weights
from tritonstack.models.source import ArchiveSource, BuildChoice, contents_of
from tritonstack.naming import DIGEST_LENGTH, ENVIRONMENT_TAG, NAME_PATTERN, ArchiveName, Platform

if TYPE_CHECKING:
    from tritonstack.config import Endpoint


_Name = Annotated[str, Field(pattern=NAME_PATTERN)]
DIGEST = rf"[0-9a-f]{{{DIGEST_LENGTH}}}"


@dataclass(frozen=True, kw_only=True)
class Served:
    """What an environment serves."""

    # the settings with every archive by its own name, and the default model of each single-model endpoint, which its
    # archive decides
    environment: Environment
    sources: Mapping[str, ArchiveSource]  # archive's name → its source
    release_sets: Mapping[str, Mapping[str, str]]  # endpoint → archive's name → digest
    engines: EnginePlan  # the TensorRT engines that the archives need, and what builds them


def served_by(environment: Environment, repositories: Path, *, file: Path) -> Served:
    """Match an environment with the model folders in ``repositories``. ``file``: the environment's.

    Raises :class:`InputError`: a model means no sound folder or archive, or an archive does not fit its endpoint (a
    backend that the Triton release does not have, several archives on a single-model endpoint, a TensorRT engine that
    nothing can build).
    """
    resolved = resolved_models(environment, repositories, file=file)
    sources = {source.name: source for found in resolved.values() for source in found}
    digests = digests_of(sources.values())
    contents = {name: contents_of(source) for name, source in sources.items()}
    archives = {entry: tuple(source.name for source in found) for entry, found in resolved.items()}
    engines = plan_engines(environment, resolved, file=file)
    problems = [
        *check_archives(environment, contents, archives=archives, file=file),
        *engines.problems,
        *_check_closed_builds(environment, sources, engines=engines, file=file),
    ]
    refuse(problems)
    matched = with_default_models(with_archives(environment, archives), contents)
    sets = {endpoint.name: {name: digests[name] for name in sorted(endpoint.models)} for endpoint in matched.endpoints}
    return Served(environment=matched, sources=sources, release_sets=sets, engines=engines)


def _check_closed_builds(
    environment: Environment, sources: Mapping[str, ArchiveSource], *, engines: EnginePlan, file: Path
) -> Iterator[Problem]:
    """Whatever a deployment's builds would fetch in a network without outbound internet access, where they time out.

    Nothing is wrong with such a network where nothing is built.
    """
    network, builds = environment.joined_network, environment.builds
    if network is None or not network.is_closed or builds.network is not None or builds.outside_network:
        return
    if not engines_built_on_deploy(environment, bool(engines.builds)):
        return
    problems = []
    if builds.image.startswith("aws/codebuild"):
        problems.append(
            Problem(
                location=("network", "created", "nat"),
                found=f"false, and builds in {builds.image} fetch Python packages from the internet",
                allowed="one or each; or builds.outside_network: true; or an image in ECR that has the packages "
                "(builds.image); or no builds (builds.on_deploy: false)",
            )
        )
    parts = [part for source in sources.values() for part in (source, *source.used) if part.weights == "pretrained"]
    fetched = {part.folder.name for part in parts if part.recipe.source and part.recipe.source.hub is not None}
    if fetched and builds.hub.folder is None:
        problems.append(
            Problem(
                location=("network", "created", "nat"),
                found=f"false, and builds fetch the weights of {', '.join(sorted(fetched))} from the Hugging Face Hub",
                allowed="one or each; or builds.outside_network: true; or source.s3 in the recipes; or an image that "
                "has the weights (builds.image, builds.hub.folder); or no builds (builds.on_deploy: false)",
            )
        )
    yield from with_lines(problems, file)


def all_served(environments: Iterable[tuple[Environment, Path]], repositories: Path) -> list[Served]:
    """Each of several environments, with its file, as ``served_by`` matches it; raises with the problems of all."""
    found: list[Served] = []
    problems: list[Problem] = []
    for environment, file in environments:
        with collecting(problems):
            found.append(served_by(environment, repositories, file=file))
    refuse(problems)
    return found


# Synthesis writes the build set, everything that an endpoint will serve. An order has the same form and only the
# missing archives, among them those of recorded digests that are served no more.
class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class OrderedArchive(_Part):
    """One archive of an order."""

    model: _Name  # the archive's name
    digest: Annotated[str, Field(pattern=rf"^{DIGEST}$")]  # 16 hexadecimal digits
    # what its bytes depend on in addition to its inputs; None where only its manifest has it (a recorded digest of
    # other sources than those of this commit)
    dependency: Dependency | None = None

    @property
    def name(self) -> ArchiveName:
        """Model and digest."""
        return ArchiveName(model=self.model, digest=self.digest)


class JobNetwork(_Part):
    """The part of a VPC that engine jobs of SageMaker join."""

    subnet_ids: Annotated[tuple[str, ...], Field(min_length=1)]
    security_group_ids: Annotated[tuple[str, ...], Field(min_length=1)]


class Order(_Part):
    """What one endpoint needs."""

    schema_: Literal[1] = Field(alias="schema")  # of the document
    environment: _Name  # its name
    endpoint: _Name  # the endpoint's name within it
    region: Annotated[str, Field(min_length=1)]  # of the endpoint
    platform: Platform  # Triton release and GPU that the archives are for
    image: Annotated[str, Field(min_length=1)]  # URI of the endpoint's Triton image, in which its engines are built
    engine_builder: BuilderKind | None  # the one service that builds engines, or None for the first that has the GPU
    size: Size  # of the models
    weights: Weights  # of the models
    parallel_engines: Annotated[int, Field(ge=1)]  # how many engines are built at once
    engine_timeout_minutes: Annotated[int, Field(ge=1)]  # the limit for building one engine and its proof
    network: JobNetwork | None  # what engine jobs of SageMaker join; None: no network at all, for they need none
    archives: tuple[OrderedArchive, ...]  # sorted by model, then digest
    # key → value, of engine jobs of SageMaker: the environment's. An order of an older version has none
    tags: dict[str, str] = {}

    @property
    def choice(self) -> BuildChoice:
        """Size and weights of the models."""
        return BuildChoice(size=self.size, weights=self.weights)

    def with_archives(self, archives: Iterable[OrderedArchive]) -> Order:
        """The order with these archives instead, sorted."""
        return self.model_copy(update={"archives": _sorted(archives)})

    def to_json(self) -> str:
        """The document: the same bytes for the same order."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=1, sort_keys=True) + "\n"

    @field_validator("archives")
    @classmethod
    def _each_once(cls, archives: tuple[OrderedArchive, ...]) -> tuple[OrderedArchive, ...]:
        names = [row.name for row in archives]
        twice = sorted({name.model for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"each archive once, not {', '.join(twice)} twice")
        return _sorted(archives)


def _sorted(archives: Iterable[OrderedArchive]) -> tuple[OrderedArchive, ...]:
    return tuple(sorted(archives, key=lambda row: row.name))


def build_set(served: Served, endpoint: Endpoint) -> Order:
    """Everything that an endpoint of a matched environment serves. Reads only files.

    Raises :class:`LookupError` where the release has no image in the region, and where
    ``endpoint`` is none of ``served``.
    """
    environment, builds = served.environment, served.environment.builds
    return Order(
        schema=1,
        environment=environment.environment,
        endpoint=endpoint.name,
        region=environment.region,
        platform=endpoint.platform,
        image=endpoint.image_uri(environment.region),
        engine_builder=builds.engine_builder,
        size=builds.size,
        weights=builds.weights,
        parallel_engines=builds.parallel_engines,
        engine_timeout_minutes=builds.engine_timeout_minutes,
        network=builds.network,
        archives=tuple(
            OrderedArchive(model=model, digest=digest, dependency=served.sources[model].recipe.dependency)
            for model, digest in served.release_sets[endpoint.name].items()
        ),
        tags={**environment.tags, ENVIRONMENT_TAG: environment.environment},
    )


def read_order(content: str | bytes, *, file: str) -> Order:
    """The order of a document. ``file``: where it was read, for messages.

    Raises :class:`InputError`: it is no such document; every wrong field at once.
    """
    try:
        document = YamlDocument(value=parse_json(content))
    except ValueError as error:
        found = f"Invalid JSON: {error}"
        raise InputError([Problem(file=file, found=found, allowed="the document of an order")]) from error
    read = validate(document, Order)
    if read.value is None:
        raise InputError([replace(problem, file=file) for problem in read.problems])
    return read.value


# What a deployment builds.

ALWAYS = ("main", "triton", "backends", "exporters")
"""Environments that every build needs: the commands, the server that proves archives, and ONNX Runtime."""

OF_BACKEND = {"pytorch": "torch", "dali": "dali", "tensorflow": "tensorflow"}
"""Backend → the environment of its stand-in in the server that proves archives."""


@dataclass(frozen=True, kw_only=True)
class DeployedBuilds:
    """What a deployment builds."""

    build_sets: Mapping[str, str]  # endpoint → the document of all that it serves
    builders: tuple[Builder, ...]  # of engines, by platform and image; empty where no archive needs one
    environments: tuple[str, ...]  # the Python environments that exports and proofs need, in the order to make them
    weights: tuple[str, ...]  # URLs of pretrained weights in S3, sorted
    models: Path  # the folder of the model folders


def deployed_builds(served: Served, models: Path) -> DeployedBuilds:
    """What a deployment of a matched environment builds. ``models``: the folder of the model folders.

    Reads files alone.
    """
    sources = tuple(served.sources.values())
    return DeployedBuilds(
        build_sets={each.name: build_set(served, each).to_json() for each in served.environment.endpoints},
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
        if source.recipe.execution_environment is not None:
            names.add("torch")  # the stand-in for an execution environment runs there
    return (*ALWAYS, *sorted(names - set(ALWAYS)))


def _weights(sources: Iterable[ArchiveSource]) -> Iterator[str]:
    for source in _with_used(sources):
        part = source.recipe.source
        if part is not None and part.s3 is not None and source.weights == "pretrained":
            yield part.s3


def _with_used(sources: Iterable[ArchiveSource]) -> Iterator[ArchiveSource]:
    for source in sources:
        yield source
        yield from source.used
