"""Archives that an environment's endpoints serve, each with what it is built for, and those left to the deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tritonstack.models.build_target import target_of
from tritonstack.models.digest import model_digest
from tritonstack.models.selection import choice_of, sources_of
from tritonstack.models.source import ArchiveSource
from tritonstack.models.tensorrt_models import lacks_plan
from tritonstack.naming import ArchiveName, Platform

if TYPE_CHECKING:
    from tritonstack.config import BuildSettings, EndpointSettings, Environment


@dataclass(frozen=True, kw_only=True)
class WantedArchive:
    """One archive of one endpoint."""

    endpoint: EndpointSettings
    source: ArchiveSource  # what it is built from
    platform: Platform | None  # the endpoint's; None for the local Triton
    leaves_engine: bool  # whether the deployment builds its TensorRT engine, and so the archive

    @cached_property
    def name(self) -> ArchiveName:
        """Model and digest. Raises :class:`InputError` as :func:`model_digest`."""
        return ArchiveName(model=self.source.name, digest=model_digest(self.source))

    @property
    def target(self) -> str | None:
        """What it is built for, where its bytes depend on it."""
        return target_of(self.source, self.platform)


def wanted_archives(environment: Environment, repositories: Path, *, local: bool) -> tuple[WantedArchive, ...]:
    """The archives of every endpoint, for each of its platforms, in the order of the environment's file.

    ``local``: for the local Triton, whatever the endpoints' platforms. Raises :class:`InputError` where a name means
    nothing or a recipe is wrong.
    """
    choice, leaves = choice_of(environment), leaves_engines(environment.builds)
    return tuple(
        WantedArchive(
            endpoint=endpoint,
            source=source,
            platform=None if local else endpoint.platform,
            leaves_engine=leaves and lacks_plan(source),
        )
        for each in environment.endpoints
        for endpoint in each.platform_settings
        for entry in endpoint.models
        for source in sources_of(entry, repositories, choice)
    )


def leaves_engines(builds: BuildSettings) -> bool:
    """Whether archives that need a TensorRT engine are left to the deployment, which has its GPU."""
    return builds.on_deploy is not False


def left_to_deployment(names: Sequence[str], environment: str) -> str:
    """The summary's line about archives that the deployment builds; empty without any."""
    if not names:
        return ""
    count = f"{len(names)} archives with an engine are" if len(names) > 1 else "1 archive with an engine is"
    return f"{count} built before the deployment: tritonstack prepare -e {environment}"
