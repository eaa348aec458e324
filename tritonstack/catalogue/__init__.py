"""Facts with a source: GPU instances, Triton releases, their images, host AMIs and the variables that serve reads.

The facts are data (``data/*.json``, each file with its source); the modules give them types.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.instances import InstanceType, dns_suffix, instance_types, partition
from tritonstack.catalogue.server_options import ServerOptions, ServeVariable
from tritonstack.catalogue.triton_releases import (
    RELEASE_PATTERN,
    Backend,
    HostAmi,
    HostDriver,
    ImageTable,
    TritonRelease,
    Vulnerability,
    nearest_releases,
    propose_host_ami,
    read_default_drivers,
    read_host_amis,
    read_images,
    read_releases,
    read_vulnerabilities,
    release_order,
)
from tritonstack.naming import gpu_in_names

__all__ = [
    "Backend",
    "Catalogue",
    "HostAmi",
    "HostDriver",
    "InstanceType",
    "ServeVariable",
    "TritonRelease",
    "Vulnerability",
    "dns_suffix",
    "load_catalogue",
    "partition",
    "release_order",
]


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The facts that settings are checked against. Read-only; made by ``load_catalogue``."""

    instances: Mapping[str, InstanceType]  # by name
    omitted_types: Mapping[str, str]  # types that SageMaker has and the catalogue leaves out → the reason
    regions: tuple[str, ...]  # where SageMaker hosts endpoints, sorted
    releases: Mapping[str, TritonRelease]  # by version, oldest first
    images_without_a_row: Mapping[str, str]  # image tags whose contents are unknown → the reason
    backends: Mapping[str, Backend]  # what some release has or had, by name
    platforms: Mapping[str, str]  # a value of ``platform:`` → its backend
    image_table: ImageTable
    serve_variables: Mapping[str, ServeVariable]  # what the image's serve script reads, by name
    fixed_flags: tuple[str, ...]  # the flags that serve always gives
    server_options: ServerOptions
    host_amis: tuple[HostAmi, ...]
    # instance family → the driver that SageMaker takes by itself, where AWS documents it
    default_drivers: Mapping[str, HostDriver]
    all_vulnerabilities: tuple[Vulnerability, ...]

    def instance(self, name: str) -> InstanceType | None:
        """The instance type called ``name`` (``ml.g4dn.xlarge``), or None."""
        return self.instances.get(name)

    def instances_with(self, gpu: str) -> tuple[InstanceType, ...]:
        """The instance types with a GPU model, in any spelling (``t4``, ``T4``)."""
        return tuple(row for row in self.instances.values() if gpu_in_names(row.gpu) == gpu_in_names(gpu))

    def release(self, version: str) -> TritonRelease | None:
        """The Triton release ``version`` (``24.09``).

        One that the catalogue has no row of gets the facts of the one before it (``TritonRelease.taken_from``): CUDA,
        drivers and Python have never gone back, so those are the least that it has. None for a text that is no release,
        and for releases older than the oldest known one.
        """
        if version in self.releases or not re.fullmatch(RELEASE_PATTERN, version):
            return self.releases.get(version)
        known = list(self.releases.values())
        older = [row for row in known if row.order < release_order(version)]
        if not older:
            return None
        nearest = older[-1]
        return dataclasses.replace(
            nearest,
            version=version,
            server_version="",
            tensorrt=nearest.tensorrt if nearest is known[-1] else None,
            tensorrt_evidence=f"not known; at least that of {nearest.version}",
            driver=None,
            onnxruntime=None,
            backends=frozenset(backend.name for backend in self.backends.values() if backend.in_release(version)),
            note="",
            taken_from=nearest.version,
        )

    def vulnerabilities(self, release: str) -> tuple[Vulnerability, ...]:
        """The known vulnerabilities of ``release`` that a later one fixes, the most severe first."""
        return tuple(each for each in self.all_vulnerabilities if each.in_release(release))

    def image_uri(self, *, release: str, region: str) -> str:
        """The URI of AWS's image of a release in a region.

        Raises LookupError where there is none; it names the nearest releases that exist there.
        """
        table = self.image_table
        if region not in table.regions.get(release, ()):
            nearest = ", ".join(nearest_releases(release, self.releases_in(region))) or "none"
            raise LookupError(f"no Triton image of release {release} in {region} (nearest there: {nearest})")
        account, tag = table.accounts[table.generations[release]][region], table.tags["gpu"].format(version=release)
        return f"{account}.dkr.ecr.{region}.{dns_suffix(region)}/{table.repository}:{tag}"

    def releases_in(self, region: str) -> tuple[str, ...]:
        """The releases whose image is in ``region``, oldest first."""
        there = (release for release, regions in self.image_table.regions.items() if region in regions)
        return tuple(sorted(there, key=release_order))

    def served_releases(self, region: str | None = None) -> tuple[str, ...]:
        """The known releases whose image AWS has in ``region``, or without one anywhere; oldest first."""
        table = self.image_table.regions
        return tuple(each for each in self.releases if (region in table.get(each, ()) if region else each in table))

    def fitting_releases(
        self,
        *,
        region: str | None = None,
        instances: Collection[InstanceType] = (),
        backends: Collection[str] = (),
        own_image: bool = False,
    ) -> tuple[str, ...]:
        """The releases that an endpoint could take as it stands; oldest first. What a message suggests is one of them.

        Each has an image of AWS's in ``region`` (without one anywhere; with ``own_image`` none is needed), each of
        ``backends``, a CUDA that knows the GPU of every one of ``instances``, and a host AMI for both.
        """
        known = tuple(self.releases) if own_image else self.served_releases(region)
        rows = (row for each in known if (row := self.release(each)) is not None and row.backends >= set(backends))
        return tuple(row.version for row in rows if self._runs_on(row, instances))

    def _runs_on(self, release: TritonRelease, instances: Collection[InstanceType]) -> bool:
        """Whether CUDA and some host AMI fit both the release and each instance type."""
        hosts = [ami for ami in self.host_amis if not ami.too_old_for(release)]
        return bool(hosts) and all(
            release.supports(each) and any(ami.supports(each) for ami in hosts) for each in instances
        )

    def default_release(self, *, region: str | None = None, instance: InstanceType | None = None) -> str | None:
        """The release that a new endpoint gets: the newest that fits and whose image AWS lists with its regions.

        None where no release fits. Why the newest: docs/decisions/0030-release-of-a-new-endpoint.md.
        """
        instances = () if instance is None else (instance,)
        fitting = self.fitting_releases(region=region, instances=instances)
        return next((each for each in reversed(fitting) if each not in self.image_table.without_region_list), None)

    def without_backend(
        self,
        backend: Backend,
        *,
        release: str,
        region: str | None = None,
        instances: Collection[InstanceType] = (),
        backends: Collection[str] = (),
    ) -> str:
        """What to do where ``release`` lacks ``backend``: the nearest release that fits and has it, or another form.

        ``backends``: what else the release must have.
        """
        needed = {backend.name, *backends}
        having = nearest_releases(release, self.fitting_releases(region=region, instances=instances, backends=needed))
        ways = [f"Take release {having[0]}"] if having else []
        ways += [f"serve {backend.replacement}"] if backend.replacement else []
        sentence = ", or ".join(ways)
        return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""

    def host_ami(self, name: str) -> HostAmi | None:
        """The host AMI called ``name``, or None."""
        return next((ami for ami in self.host_amis if ami.name == name), None)

    def propose_host_ami(self, release: str, *, instance: InstanceType | None = None) -> HostAmi | None:
        """The host AMI that suits a release and a GPU (``triton_releases.propose_host_ami``); None where none does."""
        row = self.release(release)
        return propose_host_ami(release=row, amis=self.host_amis, instance=instance) if row else None


@lru_cache(maxsize=1)
def load_catalogue() -> Catalogue:
    """The catalogue of this version's data files; read once."""
    backends, releases = read_releases()
    rows, serve = read_data("triton_releases.json"), read_data("serve_variables.json")
    return Catalogue(
        instances=instance_types(),
        omitted_types=read_data("instances.json")["omitted"],
        regions=tuple(sorted(read_data("hosting_regions.json")["regions"])),
        releases=releases,
        images_without_a_row=rows["images_without_a_row"],
        backends=backends,
        platforms=rows["platforms"],
        image_table=read_images(),
        serve_variables={row["name"]: ServeVariable(**row) for row in serve["variables"]},
        fixed_flags=tuple(serve["fixed_flags"]),
        server_options=ServerOptions(**serve["server_options"]),
        host_amis=read_host_amis(),
        default_drivers=read_default_drivers(),
        all_vulnerabilities=read_vulnerabilities(),
    )
