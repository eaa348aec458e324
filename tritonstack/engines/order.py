"""An order: the archives that an endpoint needs in the bucket, as one JSON document; what an environment serves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tritonstack.catalogue.instances import BuilderKind
from tritonstack.catalogue.releases import RELEASE_PATTERN
from tritonstack.config import (
    Environment,
    check_archives,
    engines_built_on_deploy,
    with_archives,
    with_default_models,
)
from tritonstack.config.yaml_loader import with_lines
from tritonstack.engines.plan import EnginePlan, plan_engines
from tritonstack.errors import InputError, Problem
from tritonstack.models.inputs import digests_of, resolved_models
from tritonstack.models.recipe import Dependency, Size, Weights
from tritonstack.models.source import ArchiveSource, BuildChoice, contents_of
from tritonstack.naming import DIGEST_LENGTH, ENVIRONMENT_TAG, NAME_PATTERN, ArchiveName, Platform

if TYPE_CHECKING:
    from tritonstack.config import Endpoint


@dataclass(frozen=True, kw_only=True)
class Served:
    """What an environment serves.

    Attributes:
        environment: the settings with every archive by its own name, and the default model of each single-model
            endpoint, which its archive decides.
        sources: archive's name → its source.
        release_sets: endpoint → archive's name → digest.
        engines: the TensorRT engines that the archives need, and what builds them.
    """

    environment: Environment
    sources: Mapping[str, ArchiveSource]
    release_sets: Mapping[str, Mapping[str, str]]
    engines: EnginePlan


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
        *_check_hub(environment, sources, engines=engines, file=file),
    ]
    if problems:
        raise InputError(problems)
    matched = with_default_models(with_archives(environment, archives), contents)
    sets = {endpoint.name: {name: digests[name] for name in sorted(endpoint.models)} for endpoint in matched.endpoints}
    return Served(environment=matched, sources=sources, release_sets=sets, engines=engines)


def _check_hub(
    environment: Environment, sources: Mapping[str, ArchiveSource], *, engines: EnginePlan, file: Path
) -> Iterator[Problem]:
    """Builds without a way to the internet against recipes whose weights come from the hub."""
    network, builds = environment.joined_network, environment.builds
    inside = builds.network is None and not builds.outside_network
    if network is None or not network.is_closed or not inside or builds.hub.folder is not None:
        return
    if not engines_built_on_deploy(environment, bool(engines.builds)):
        return
    fetched = {part.folder.name for source in sources.values() for part in (source, *source.used) if _of_hub(part)}
    if fetched:
        problem = Problem(
            file=str(file),
            field="network.created.nat",
            found=f"false, and builds fetch the weights of {', '.join(sorted(fetched))} from the Hugging Face Hub",
            allowed="one or each; or builds.outside_network: true; or source.s3 in the recipes; or an image that has "
            "the weights (builds.image, builds.hub.folder); or no builds (builds.on_deploy: false)",
        )
        yield from with_lines([problem], file)


def _of_hub(source: ArchiveSource) -> bool:
    """Whether a build takes a folder's weights from the Hugging Face Hub."""
    origin = source.recipe.source
    return origin is not None and origin.hub is not None and source.weights == "pretrained"


def all_served(environments: Iterable[tuple[Environment, Path]], repositories: Path) -> list[Served]:
    """Each of several environments, with its file, as ``served_by`` matches it; raises with the problems of all."""
    found: list[Served] = []
    problems: dict[Problem, None] = {}
    for environment, file in environments:
        try:
            found.append(served_by(environment, repositories, file=file))
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise InputError(tuple(problems))
    return found


# Synthesis writes the build set, everything that an endpoint will serve, without a network call. An order has the same
# form and only the archives that are missing; what is recorded, but served no more, is among them, by its digest
# alone.
SCHEMA = 1
_Name = Annotated[str, Field(pattern=NAME_PATTERN)]
_Digest = Annotated[str, Field(pattern=rf"^[0-9a-f]{{{DIGEST_LENGTH}}}$")]


@dataclass(frozen=True, kw_only=True)
class OrderedArchive:
    """One archive of an order.

    Attributes:
        name: model and digest.
        dependency: what its bytes depend on beside its inputs; None where only its manifest can tell (a recorded digest
            of other sources than those of this commit).
    """

    name: ArchiveName
    dependency: Dependency | None


@dataclass(frozen=True, kw_only=True)
class JobNetwork:
    """The part of a VPC that engine jobs of SageMaker join."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What one endpoint needs.

    Attributes:
        environment: its name.
        endpoint: the endpoint's name within it.
        region: of the endpoint.
        platform: Triton release and GPU that the archives are for.
        image: URI of the endpoint's Triton image, in which its engines are built.
        engine_builder: the one service that builds engines, or None for the first that has the GPU.
        choice: size and weights of the models.
        parallel_engines: how many engines are built at once.
        engine_timeout_minutes: how long the build of one engine, with its proof, may take.
        network: what engine jobs of SageMaker join; None: no network at all, for they need none.
        archives: sorted by model, then digest.
        tags: key → value, of engine jobs of SageMaker: the environment's. An order of an older version has none.
    """

    environment: str
    endpoint: str
    region: str
    platform: Platform
    image: str
    engine_builder: BuilderKind | None
    choice: BuildChoice
    parallel_engines: int
    engine_timeout_minutes: int
    network: JobNetwork | None
    archives: tuple[OrderedArchive, ...]
    tags: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The document: the same bytes for the same order."""
        return json.dumps(_document(self), indent=1, sort_keys=True) + "\n"


def build_set(served: Served, endpoint: Endpoint) -> Order:
    """Everything that an endpoint of a matched environment serves. Reads files alone.

    Raises :class:`LookupError` where the release has no image in the region (``ImageNotFoundError``), and where
    ``endpoint`` is none of ``served``.
    """
    environment = served.environment
    digests = served.release_sets[endpoint.name]
    builds = environment.builds
    return Order(
        environment=environment.environment,
        endpoint=endpoint.name,
        region=environment.region,
        platform=endpoint.platform,
        image=endpoint.image_uri(environment.region),
        engine_builder=builds.engine_builder,
        choice=BuildChoice(size=builds.size, weights=builds.weights),
        parallel_engines=builds.parallel_engines,
        engine_timeout_minutes=builds.engine_timeout_minutes,
        network=JobNetwork(
            subnet_ids=tuple(builds.network.subnet_ids), security_group_ids=tuple(builds.network.security_group_ids)
        )
        if builds.network
        else None,
        archives=tuple(
            OrderedArchive(
                name=ArchiveName(model=model, digest=digest), dependency=served.sources[model].recipe.dependency
            )
            for model, digest in sorted(digests.items())
        ),
        tags={**environment.tags, ENVIRONMENT_TAG: environment.environment},
    )


def read_order(content: str | bytes, *, file: str) -> Order:
    """The order that a document spells.

    Args:
        content: the document.
        file: where it was read, for the messages.

    Raises:
        InputError: it is no such document; every wrong field at once.
    """
    try:
        document = _Document.model_validate_json(content)
    except ValidationError as error:
        raise InputError([_problem(dict(found), file) for found in error.errors(include_url=False)]) from error
    return Order(
        environment=document.environment,
        endpoint=document.endpoint,
        region=document.region,
        platform=Platform(release=document.platform.release, gpu=document.platform.gpu),
        image=document.image,
        engine_builder=document.engine_builder,
        choice=BuildChoice(size=document.size, weights=document.weights),
        parallel_engines=document.parallel_engines,
        engine_timeout_minutes=document.engine_timeout_minutes,
        network=JobNetwork(**document.network.model_dump()) if document.network else None,
        archives=tuple(
            sorted(
                (
                    OrderedArchive(name=ArchiveName(model=row.model, digest=row.digest), dependency=row.dependency)
                    for row in document.archives
                ),
                key=lambda row: row.name,
            )
        ),
        tags=document.tags,
    )


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Platform(_Part):
    release: Annotated[str, Field(pattern=RELEASE_PATTERN)]
    gpu: Annotated[str, Field(min_length=1)]


class _Archive(_Part):
    model: _Name
    digest: _Digest
    dependency: Dependency | None = None


class _Network(_Part):
    subnet_ids: Annotated[tuple[str, ...], Field(min_length=1)]
    security_group_ids: Annotated[tuple[str, ...], Field(min_length=1)]


class _Document(_Part):
    schema_: Literal[1] = Field(alias="schema")
    environment: _Name
    endpoint: _Name
    region: Annotated[str, Field(min_length=1)]
    platform: _Platform
    image: Annotated[str, Field(min_length=1)]
    engine_builder: BuilderKind | None
    size: Size
    weights: Weights
    parallel_engines: Annotated[int, Field(ge=1)]
    engine_timeout_minutes: Annotated[int, Field(ge=1)]
    network: _Network | None
    archives: tuple[_Archive, ...]
    tags: dict[str, str] = {}

    @field_validator("archives")
    @classmethod
    def _each_once(cls, archives: tuple[_Archive, ...]) -> tuple[_Archive, ...]:
        names = [(row.model, row.digest) for row in archives]
        twice = sorted({model for model, digest in names if names.count((model, digest)) > 1})
        if twice:
            raise ValueError(f"each archive once, not {', '.join(twice)} twice")
        return archives


def _document(order: Order) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "environment": order.environment,
        "endpoint": order.endpoint,
        "region": order.region,
        "platform": {"release": order.platform.release, "gpu": order.platform.gpu},
        "image": order.image,
        "engine_builder": order.engine_builder,
        "size": order.choice.size,
        "weights": order.choice.weights,
        "parallel_engines": order.parallel_engines,
        "engine_timeout_minutes": order.engine_timeout_minutes,
        "network": dataclasses.asdict(order.network) if order.network else None,
        "archives": [
            {"model": row.name.model, "digest": row.name.digest, "dependency": row.dependency} for row in order.archives
        ],
        "tags": dict(order.tags),
    }


_ALLOWED = {
    "engine_builder": f"{', '.join(get_args(BuilderKind))}, or null",
    "size": ", ".join(get_args(Size)),
    "weights": ", ".join(get_args(Weights)),
    "dependency": f"{', '.join(get_args(Dependency))}, or null",
}
_SHOWN = 100
"""Characters of a wrong value that a message quotes."""


def _problem(error: dict[str, Any], file: str) -> Problem:
    """A finding of pydantic's as the user reads it."""
    place = ""
    for part in error["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    found = "nothing" if error["type"] == "missing" else json.dumps(error.get("input"), default=str)[:_SHOWN]
    if error["type"] == "json_invalid":
        found = error["msg"]
    name = str(error["loc"][-1]) if error["loc"] else ""
    allowed = "no such field" if error["type"] == "extra_forbidden" else _ALLOWED.get(name) or error["msg"]
    if error["type"] == "json_invalid":
        allowed = "a JSON document of a build set or an order"
    return Problem(file=file, field=place, found=found, allowed=allowed)
