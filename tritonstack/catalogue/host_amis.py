"""Host AMIs of SageMaker inference instances (``InferenceAmiVersion``): driver and CUDA of each, and what suits it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.releases import TritonRelease


@dataclass(frozen=True, kw_only=True)
class HostAmi:
    """A host AMI for GPU instances.

    Attributes:
        name: the value of ``InferenceAmiVersion``.
        driver: major version of the NVIDIA driver.
        cuda: the newest CUDA that the driver supports, ``major.minor``.
        cuda_compat_mount: whether the container's forward-compatibility libraries are used.
    """

    name: str
    driver: str
    cuda: str
    cuda_compat_mount: bool

    def covers(self, release: TritonRelease) -> bool:
        """Whether the driver supports the release's CUDA outright. True where that CUDA is unknown."""
        return release.cuda is None or _major_minor(self.cuda) >= _major_minor(release.cuda)

    def too_old_for(self, release: TritonRelease) -> bool:
        """Whether the release's CUDA has a higher major version: CUDA's minor-version compatibility ends there."""
        return release.cuda is not None and _major_minor(self.cuda)[0] < _major_minor(release.cuda)[0]


def read_host_amis() -> tuple[HostAmi, ...]:
    """The AMIs of ``data/host_amis.json``, oldest CUDA first."""
    rows = read_data("host_amis.json")["amis"]
    return tuple(sorted((HostAmi(name=name, **row) for name, row in rows.items()), key=_age))


def propose_host_ami(*, release: TritonRelease, amis: Iterable[HostAmi]) -> HostAmi | None:
    """The oldest AMI that covers the release's CUDA; else the newest one of the same CUDA major version.

    None where the release's CUDA is unknown, or where every AMI is too old. That a newer minor version runs on an older
    driver is CUDA's minor-version compatibility; for 26.x images on SageMaker it is UNVERIFIED.
    """
    if release.cuda is None:
        return None
    ordered = sorted(amis, key=_age)
    covering = [ami for ami in ordered if ami.covers(release)]
    if covering:
        return covering[0]
    usable = [ami for ami in ordered if not ami.too_old_for(release)]
    return usable[-1] if usable else None


def _age(ami: HostAmi) -> tuple[tuple[int, int], str]:
    return _major_minor(ami.cuda), ami.name


def _major_minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
