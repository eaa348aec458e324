"""Machines with a GPU that can build a TensorRT engine: CodeBuild's, and the instances of SageMaker Processing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from tritonstack.catalogue.catalogue import load_catalogue
from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.instances import InstanceType

BuilderKind = Literal["codebuild", "processing"]
"""``codebuild``: an on-demand build in a GPU container; ``processing``: a SageMaker Processing job."""


@dataclass(frozen=True, kw_only=True)
class BuildMachine:
    """One kind of machine that AWS lends for the time of a build.

    Attributes:
        kind: which service lends it.
        name: CodeBuild's compute type (``BUILD_GENERAL1_SMALL``) or SageMaker's instance type (``ml.g4dn.xlarge``).
        gpu: the GPU model (``A10G``), as in the catalogue's instance types.
        compute_capability: of the GPU (``8.6``).
        gpu_count: GPUs in one machine; an engine is built on one.
        vcpu: virtual CPUs.
        memory_gib: memory of the machine, GiB.
        quota: the service quota that must not be 0: CodeBuild's by its code, SageMaker's by its name.
        regions: where the service lends it, sorted.
        driver: major version of its NVIDIA driver; None where it is UNVERIFIED.
    """

    kind: BuilderKind
    name: str
    gpu: str
    compute_capability: str
    gpu_count: int
    vcpu: int
    memory_gib: float
    quota: str
    regions: tuple[str, ...]
    driver: str | None = None


@dataclass(frozen=True, kw_only=True)
class BuildMachineTable:
    """Every build machine with a GPU, which GPUs a TensorRT still builds for, and the memory of those without a GPU.

    Attributes:
        machines: CodeBuild's before those of SageMaker Processing: they need no job that a build must await.
        cpu_memory_gib: CodeBuild's compute type for LINUX_CONTAINER → its memory, which exports and proofs share.
        oldest_compute_capability: TensorRT version → the oldest compute capability from that version on.
    """

    machines: tuple[BuildMachine, ...]
    cpu_memory_gib: Mapping[str, float]
    oldest_compute_capability: Mapping[tuple[int, ...], tuple[int, ...]]

    def of_gpu(self, gpu: str) -> tuple[BuildMachine, ...]:
        """The machines with a GPU model (in any case), preferred first."""
        return tuple(machine for machine in self.machines if machine.gpu.lower() == gpu.lower())

    def oldest_capability(self, tensorrt: tuple[int, ...]) -> tuple[int, ...]:
        """The oldest compute capability that a TensorRT version builds for; ``(0,)`` where none is known to be lost."""
        known = [oldest for since, oldest in self.oldest_compute_capability.items() if tensorrt >= since]
        return max(known, default=(0,))


@lru_cache(maxsize=1)
def load_build_machines() -> BuildMachineTable:
    """The machines of ``data/build_machines.json``; read once."""
    document = read_data("build_machines.json")
    types = [load_catalogue().instances[name] for name in document["processing"]["types"]]
    oldest = document["oldest_compute_capability"]
    return BuildMachineTable(
        machines=(*_codebuild(document["codebuild"]), *_processing(types, document["processing"])),
        cpu_memory_gib=document["cpu_memory_gib"],
        oldest_compute_capability={version_parts(since): version_parts(least) for since, least in oldest.items()},
    )


def version_parts(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparison: ``10.4.0.26`` → ``(10, 4, 0, 26)``, ``11.x`` → ``(11,)``."""
    parts: list[int] = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return tuple(parts)


def _codebuild(document: Mapping[str, Any]) -> Iterator[BuildMachine]:
    for name, row in document["machines"].items():
        regions = tuple(document["regions"])
        yield BuildMachine(kind="codebuild", name=name, regions=regions, driver=document["driver"], **row)


def _processing(types: Iterable[InstanceType], document: Mapping[str, Any]) -> Iterator[BuildMachine]:
    """The smallest type of each family: trtexec uses one GPU, and a larger type has no faster one."""
    smallest: dict[str, InstanceType] = {}
    for row in sorted(types, key=lambda row: (row.gpu_count, row.vcpu, row.memory_gib, row.name)):
        smallest.setdefault(row.family, row)
    for family, row in smallest.items():
        yield BuildMachine(
            kind="processing",
            name=row.name,
            gpu=row.gpu,
            compute_capability=row.compute_capability,
            gpu_count=row.gpu_count,
            vcpu=row.vcpu,
            memory_gib=row.memory_gib,
            quota=f"{row.name} for processing job usage",
            regions=tuple(sorted(region for region, names in document["families"].items() if family in names)),
            driver=document["driver"],
        )
