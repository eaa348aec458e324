"""Everything that is known about instances, releases, images, host AMIs and variables, in one object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tritonstack.catalogue.instances import InstanceTable, InstanceType, read_instances
from tritonstack.catalogue.options import ServeTable, ServeVariable, read_serve_variables
from tritonstack.catalogue.releases import (
    RELEASE_PATTERN,
    Backend,
    HostAmi,
    ImageTable,
    ReleaseTable,
    TritonRelease,
    Vulnerability,
    nearest_releases,
    propose_host_ami,
    read_host_amis,
    read_images,
    read_releases,
    read_vulnerabilities,
)


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The facts that settings are checked against. Read-only; made by ``load_catalogue``."""

    instance_table: InstanceTable
    release_table: ReleaseTable
    image_table: ImageTable
    serve_table: ServeTable
    host_amis: tuple[HostAmi, ...]
    all_vulnerabilities: tuple[Vulnerability, ...]

    @property
    def instances(self) -> Mapping[str, InstanceType]:
        """Every known instance type by name."""
        return self.instance_table.types

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region where SageMaker hosts endpoints, sorted."""
        return self.instance_table.regions

    @property
    def releases(self) -> Mapping[str, TritonRelease]:
        """Every known Triton release by version, oldest first."""
        return self.release_table.releases

    @property
    def backends(self) -> Mapping[str, Backend]:
        """Every backend that some release has or had, by name."""
        return self.release_table.backends

    @property
    def serve_variables(self) -> Mapping[str, ServeVariable]:
        """The variables that the image's serve script reads, by name."""
        return self.serve_table.variables

    def instance(self, name: str) -> InstanceType | None:
        """The instance type called ``name`` (``ml.g4dn.xlarge``), or None."""
        return self.instances.get(name)

    def release(self, version: str) -> TritonRelease | None:
        """The Triton release ``version`` (``24.09``).

        One that the catalogue has no row of gets the facts of the one before it (``TritonRelease.taken_from``). None
        for a text that is no release, and for releases older than the oldest known one.
        """
        return self.release_table.row(version) if re.fullmatch(RELEASE_PATTERN, version) else None

    def vulnerabilities(self, release: str) -> tuple[Vulnerability, ...]:
        """The known vulnerabilities of ``release`` that a later one fixes, the most severe first."""
        return tuple(each for each in self.all_vulnerabilities if each.in_release(release))

    def backend_name(self, backend_or_platform: str) -> str:
        """The backend that a config.pbtxt's ``backend`` or ``platform`` means (``tensorrt_plan`` → ``tensorrt``)."""
        return self.release_table.platforms.get(backend_or_platform, backend_or_platform)

    def image_uri(self, *, release: str, region: str) -> str:
        """The URI of AWS's image of a release in a region.

        Raises ImageNotFoundError (a LookupError) where there is none; it names the nearest releases that exist there.
        """
        return self.image_table.uri(release=release, region=region)

    def releases_in(self, region: str) -> tuple[str, ...]:
        """The releases whose image lies in ``region``, oldest first."""
        return self.image_table.releases_in(region)

    def served_releases(self, region: str | None = None) -> tuple[str, ...]:
        """The known releases whose image AWS has in ``region``, or without one anywhere; oldest first."""
        table = self.image_table.regions
        return tuple(each for each in self.releases if (region in table.get(each, ()) if region else each in table))

    def without_backend(self, backend: Backend, *, release: str, region: str | None = None) -> str:
        """What to do where ``release`` lacks ``backend``: the nearest release with both it and an image, or another."""
        having = nearest_releases(release, (each for each in self.served_releases(region) if backend.in_release(each)))
        ways = [f"Take release {having[0]}"] if having else []
        ways += [f"serve {backend.replacement}"] if backend.replacement else []
        sentence = ", or ".join(ways)
        return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""

    def host_ami(self, name: str) -> HostAmi | None:
        """The host AMI called ``name``, or None."""
        return next((ami for ami in self.host_amis if ami.name == name), None)

    def propose_host_ami(self, release: str) -> HostAmi | None:
        """The host AMI that suits a release (see ``host_amis.propose_host_ami``); None for an unknown release."""
        row = self.release(release)
        return propose_host_ami(release=row, amis=self.host_amis) if row else None

    def types_in(self, region: str) -> tuple[str, ...]:
        """The types that SageMaker hosts in ``region``, in the catalogue's order."""
        return tuple(row.name for row in self.instances.values() if region in row.regions)


@lru_cache(maxsize=1)
def load_catalogue() -> Catalogue:
    """The catalogue of this version's data files; read once."""
    return Catalogue(
        instance_table=read_instances(),
        release_table=read_releases(),
        image_table=read_images(),
        serve_table=read_serve_variables(),
        host_amis=read_host_amis(),
        all_vulnerabilities=read_vulnerabilities(),
    )
