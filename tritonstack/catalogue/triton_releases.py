"""Triton releases: contents, AWS's images, host AMIs, known vulnerabilities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.instances import InstanceType

RELEASE_PATTERN = r"^[0-9]{2}\.(0[1-9]|1[0-2])$"
"""``YY.MM``."""


def release_order(release: str) -> tuple[int, int]:
    """A key that sorts releases by age: ``24.09`` → ``(24, 9)``. Raises ValueError where the text is no ``YY.MM``."""
    if not re.fullmatch(RELEASE_PATTERN, release):
        raise ValueError(f"no Triton release: {release!r}")
    year, month = release.split(".")
    return int(year), int(month)


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A backend and the releases that contain it."""

    name: str  # as in ``backend: "…"`` of a config.pbtxt
    since: str | None = None  # the first release that has it, or None (all known ones)
    last: str | None = None  # the last release that has it, or None (still there)
    replacement: str | None = None  # what to serve instead, or None

    def in_release(self, release: str) -> bool:
        """Whether ``release`` (``YY.MM``) contains this backend."""
        order = release_order(release)
        return not (self.since and order < release_order(self.since)) and not (
            self.last and order > release_order(self.last)
        )


@dataclass(frozen=True, kw_only=True)
class TritonRelease:
    """A Triton release."""

    version: str  # the container's ``YY.MM``
    server_version: str  # of tritonserver (``2.50.0``)
    # inferred version, or None where UNVERIFIED; an engine build reads the real one inside the image
    tensorrt: str | None
    tensorrt_evidence: str  # where that version was read
    cuda: str | None  # ``major.minor`` or ``major.minor.patch``, or None where UNVERIFIED
    driver: str | None  # the driver whose compatibility libraries the image carries, or None
    onnxruntime: str | None  # version, or None
    python: str  # minor version of the Python backend's interpreter; execution environments must have the same
    backends: frozenset[str]  # names of the backends in the image
    note: str  # what changed with this release, or empty
    # the known release whose facts these are, where the catalogue has none of this one; else None
    taken_from: str | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Sorts releases by age."""
        return release_order(self.version)

    def supports(self, instance: InstanceType) -> bool:
        """Whether the release's CUDA knows the GPU. One that is unknown is older than every known one."""
        first = instance.first_cuda
        return first is None or (self.cuda is not None and minor_version(self.cuda) >= minor_version(first))

    def at_least(self, version: str) -> bool:
        """Whether this release is ``version`` or newer."""
        return self.order >= release_order(version)


def read_releases() -> tuple[dict[str, Backend], dict[str, TritonRelease]]:
    """The backends, and the releases oldest first, of ``data/triton_releases.json``; both by name."""
    document = read_data("triton_releases.json")
    backends = {name: Backend(name=name, **row) for name, row in document["backends"].items()}
    releases = {
        version: TritonRelease(
            version=version,
            backends=frozenset(backend.name for backend in backends.values() if backend.in_release(version)),
            **row,
        )
        for version, row in sorted(document["releases"].items(), key=lambda item: release_order(item[0]))
    }
    return backends, releases


# AWS's images are in two generations of accounts: tags up to 23.10 in the older, tags from 23.12 in those of the Deep
# Learning Containers.


NEAREST_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class ImageTable:
    """The registry's accounts by generation and region, and each release's generation and regions.

    ``without_region_list``: the releases whose image AWS documents without naming its regions, with the source. They
    are assumed in the regions of both the release before and the one after (UNVERIFIED; preflight checks the registry).
    """

    repository: str
    tags: Mapping[str, str]
    accounts: Mapping[str, Mapping[str, str]]
    generations: Mapping[str, str]
    regions: Mapping[str, frozenset[str]]
    without_region_list: Mapping[str, str]


def read_images() -> ImageTable:
    """The images of ``data/triton_images.json``."""
    document = read_data("triton_images.json")
    legacy_regions = frozenset(document["accounts"]["legacy"])
    regions = {release: frozenset(names) for release, names in document["dlc_releases"].items()}
    unlisted: Mapping[str, str] = document["without_region_list"]
    regions |= {release: _regions_between(release, regions) for release in unlisted}
    generations = dict.fromkeys(regions, "dlc")
    for release in document["legacy_releases"]:
        regions[release] = legacy_regions
        generations[release] = "legacy"
    return ImageTable(
        repository=document["repository"],
        tags=document["tag"],
        accounts=document["accounts"],
        generations=generations,
        regions=regions,
        without_region_list=unlisted,
    )


def _regions_between(release: str, listed: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Where both the last listed release before ``release`` and the first one after it lie."""
    before = [each for each in listed if release_order(each) < release_order(release)]
    after = [each for each in listed if release_order(each) > release_order(release)]
    return listed[max(before, key=release_order)] & listed[min(after, key=release_order)]


def nearest_releases(release: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """The candidates that are nearest to ``release`` in time, nearest first, at most three."""
    wanted = _months(release)
    ordered = sorted(candidates, key=lambda candidate: (abs(_months(candidate) - wanted), candidate))
    return tuple(ordered[:NEAREST_SHOWN])


def _months(release: str) -> int:
    year, month = release_order(release)
    return year * 12 + month


@dataclass(frozen=True, kw_only=True)
class HostDriver:
    """The NVIDIA driver of a host."""

    driver: str  # its major version
    cuda: str  # the newest CUDA that it supports, ``major.minor``

    def covers(self, release: TritonRelease) -> bool:
        """Whether the driver supports the release's CUDA outright. True where that CUDA is unknown."""
        return release.cuda is None or minor_version(self.cuda) >= minor_version(release.cuda)

    def too_old_for(self, release: TritonRelease) -> bool:
        """Whether the release's CUDA has a higher major version: CUDA's minor-version compatibility ends there."""
        return release.cuda is not None and minor_version(self.cuda)[0] < minor_version(release.cuda)[0]

    def supports(self, instance: InstanceType) -> bool:
        """Whether the driver knows the GPU."""
        return instance.first_cuda is None or minor_version(self.cuda) >= minor_version(instance.first_cuda)


@dataclass(frozen=True, kw_only=True)
class HostAmi(HostDriver):
    """A host AMI for GPU instances."""

    name: str  # the value of ``InferenceAmiVersion``
    cuda_compat_mount: bool  # whether the container's forward-compatibility libraries are used


def read_host_amis() -> tuple[HostAmi, ...]:
    """The AMIs of ``data/host_amis.json``, oldest CUDA first."""
    rows = read_data("host_amis.json")["amis"]
    return tuple(sorted((HostAmi(name=name, **row) for name, row in rows.items()), key=_age))


def read_default_drivers() -> dict[str, HostDriver]:
    """Instance family → the driver that SageMaker takes without ``InferenceAmiVersion``, where AWS documents it."""
    return {family: HostDriver(**row) for family, row in read_data("host_amis.json")["defaults"].items()}


def propose_host_ami(
    *, release: TritonRelease, amis: Iterable[HostAmi], instance: InstanceType | None = None
) -> HostAmi | None:
    """The newest AMI of the release's CUDA major version; else the oldest one whose driver covers that CUDA.

    ``instance``: AMIs whose driver does not know its GPU are left out.

    So AWS tests its own images: for CUDA 12 on ``gpu-3-1``, for CUDA 13 on ``gpu-4-1`` (aws/deep-learning-containers,
    tests of SageMaker endpoints), though a newer driver would cover every CUDA before it. None where the release's CUDA
    is unknown, or where every AMI is too old. That a newer minor version runs on an older driver is CUDA's
    minor-version compatibility; on SageMaker it is UNVERIFIED.
    """
    if release.cuda is None:
        return None
    major = minor_version(release.cuda)[0]
    ordered = sorted((ami for ami in amis if instance is None or ami.supports(instance)), key=_age)
    same = [ami for ami in ordered if minor_version(ami.cuda)[0] == major]
    return same[-1] if same else next((ami for ami in ordered if ami.covers(release)), None)


def _age(ami: HostAmi) -> tuple[tuple[int, int], str]:
    return minor_version(ami.cuda), ami.name


def minor_version(version: str) -> tuple[int, int]:
    """Major and minor version as numbers: ``10.4.0.26`` → ``(10, 4)``. Raises ValueError for anything else."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


@dataclass(frozen=True, kw_only=True)
class Vulnerability:
    """One vulnerability of the server, a backend or SageMaker's front end."""

    id: str  # the CVE, or a name of this catalogue for a fix of the front end that has none
    fixed_in: str  # the first release without it
    since: str | None  # the first release with it, or None (every earlier one)
    score: float | None  # CVSS 3.1 by NVIDIA, or None where there is none
    about: str  # what it is, in a few words
    source: str  # where it was read

    def in_release(self, release: str) -> bool:
        """Whether ``release`` (``YY.MM``) has it."""
        order = release_order(release)
        return order < release_order(self.fixed_in) and not (self.since and order < release_order(self.since))


def read_vulnerabilities() -> tuple[Vulnerability, ...]:
    """Vulnerabilities of ``data/vulnerabilities.json``, the most severe first; those without a score last."""
    document = read_data("vulnerabilities.json")
    bulletins = document["bulletins"]
    found = [
        *(_cve(name, row, bulletins[row["bulletin"]]) for name, row in document["cves"].items()),
        *(
            Vulnerability(
                id=name, fixed_in=row["fixed_in"], since=None, score=None, about=row["about"], source=row["evidence"]
            )
            for name, row in document["front_end"].items()
        ),
    ]
    return tuple(sorted(found, key=lambda each: (-(each.score or 0), each.id)))


def _cve(name: str, row: dict[str, Any], bulletin: dict[str, str]) -> Vulnerability:
    number = row["bulletin"]
    return Vulnerability(
        id=name,
        fixed_in=row["fixed_in"],
        since=row.get("since"),
        score=row["score"],
        about=row["about"],
        source=f"NVIDIA security bulletin {number} of {bulletin['date']}: "
        f"https://github.com/NVIDIA/product-security/blob/main/{bulletin['folder']}/{number}.md",
    )
