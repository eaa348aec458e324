"""Orders of builds: the archives that an endpoint needs in the bucket, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from tritonstack.catalogue.instances import BuilderKind
from tritonstack.config.yaml_loader import YamlDocument, validate
from tritonstack.errors import InputError, Problem
from tritonstack.models.recipe import Dependency, Size, Weights
from tritonstack.models.source import BuildChoice
from tritonstack.naming import DIGEST_PATTERN, NAME_PATTERN, ArchiveName, Platform
from tritonstack.served import Served
from tritonstack.untrusted.foreign_text import parse_json

if TYPE_CHECKING:
    from tritonstack.config import EndpointSettings


_Name = Annotated[str, Field(pattern=NAME_PATTERN)]


# Synthesis writes the build set, everything that an endpoint will serve. An order has the same form and only the
# missing archives, among them those of recorded digests that are served no more.
class _BuildSetModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class OrderedArchive(_BuildSetModel):
    """One archive of an order."""

    model: _Name  # the archive's name
    digest: Annotated[str, Field(pattern=rf"^{DIGEST_PATTERN}$")]  # 16 hexadecimal digits
    # what its bytes depend on in addition to its inputs; None where only its manifest has it (a recorded digest of
    # other sources than those of this commit)
    dependency: Dependency | None = None

    @property
    def name(self) -> ArchiveName:
        """Model and digest."""
        return ArchiveName(model=self.model, digest=self.digest)


class JobNetwork(_BuildSetModel):
    """The part of a VPC that engine jobs of SageMaker join."""

    subnet_ids: Annotated[tuple[str, ...], Field(min_length=1)]
    security_group_ids: Annotated[tuple[str, ...], Field(min_length=1)]


class Order(_BuildSetModel):
    """The archives that one endpoint needs, and how they are built."""

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

    @field_serializer("platform")
    def _spelled_as_before(self, platform: Platform) -> dict[str, str]:
        """Spell the GPU in documents as its maker does, so that build sets of earlier versions compare equal."""
        return {"release": platform.release, "gpu": platform.gpu.upper()}

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


def build_set(served: Served, endpoint: EndpointSettings) -> Order:
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
        tags=environment.resource_tags,
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
