"""GPU machines: regions, SageMaker instance types, and machines that build TensorRT engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from tritonstack.catalogue.data_file import read_data
from tritonstack.naming import gpu_in_names

_PARTITIONS = (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"))


def partition(region: str) -> str:
    """The partition that ARNs of ``region`` name: ``aws``, ``aws-cn`` or ``aws-us-gov``."""
    return next((name for prefix, name in _PARTITIONS if region.startswith(prefix)), "aws")


def dns_suffix(region: str) -> str:
    """The suffix of a registry's host name in ``region``; China has one of its own."""
    return "amazonaws.com.cn" if partition(region) == "aws-cn" else "amazonaws.com"


MultiModelSupport = Literal["listed", "unlisted", "refused"]
"""Whether multi-model mode works on a type.

``listed``: AWS names the type. ``unlisted``: it has one GPU, but AWS does not name it (UNVERIFIED, a setting decides).
``refused``: it has several GPUs, and multi-model mode takes single-GPU types only.
"""


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """A GPU instance type."""

    name: str  # SageMaker's name (``ml.g4dn.xlarge``)
    family: str  # the part between the dots (``g4dn``)
    gpu: str  # the GPU model (``T4``); what an engine is built for
    gpu_count: int  # GPUs in one instance
    gpu_memory_mib: int  # memory of one GPU, MiB
    memory_gib: float  # memory of the instance, GiB
    vcpu: int  # virtual CPUs
    compute_capability: str  # of the GPU (``7.5``)
    architecture: str  # of the GPU (``Turing``)
    # the first CUDA that knows the GPU (``12.8``), of the image and of the host's driver; None: every release's does
    first_cuda: str | None
    # instance store, GB; 0 where there is none. Instances that have one get no EBS volume for models
    local_nvme_gb: int
    multi_model_support: MultiModelSupport  # see ``MultiModelSupport``
    regions: tuple[str, ...]  # where SageMaker offers the type for hosting, sorted

    @property
    def multi_model(self) -> bool:
        """Whether AWS names the type as one that serves GPU models in multi-model mode."""
        return self.multi_model_support == "listed"


@lru_cache(maxsize=1)
def instance_types() -> Mapping[str, InstanceType]:
    """The types of ``data/instances.json`` by name, each with its regions from ``data/hosting_regions.json``."""
    document = read_data("instances.json")
    hosted: dict[str, list[str]] = read_data("hosting_regions.json")["regions"]
    listed = frozenset(document["multi_model_types"])
    types: dict[str, InstanceType] = {}
    for name, row in document["types"].items():
        family = name.split(".")[1]
        types[name] = InstanceType(
            name=name,
            family=family,
            multi_model_support="refused" if row["gpu_count"] > 1 else "listed" if name in listed else "unlisted",
            regions=tuple(sorted(region for region, names in hosted.items() if name in names)),
            first_cuda=document["first_cuda"].get(document["families"][family]["compute_capability"]),
            **document["families"][family],
            **row,
        )
    return types


BuilderKind = Literal["codebuild", "processing"]
"""``codebuild``: an on-demand build in a GPU container; ``processing``: a SageMaker Processing job."""


@dataclass(frozen=True, kw_only=True)
class BuildMachine:
    """One kind of build machine of AWS."""

    kind: BuilderKind  # which service lends it
    name: str  # CodeBuild's compute type (``BUILD_GENERAL1_SMALL``) or SageMaker's instance type (``ml.g4dn.xlarge``)
    gpu: str  # the GPU model (``A10G``), as in the catalogue's instance types
    compute_capability: str  # of the GPU (``8.6``)
    gpu_count: int  # GPUs in one machine; an engine is built on one
    vcpu: int  # virtual CPUs
    memory_gib: float  # memory of the machine, GiB
    quota: str  # the service quota that must not be 0: CodeBuild's by its code, SageMaker's by its name
    regions: tuple[str, ...]  # where the service lends it, sorted
    driver: str | None = None  # major version of its NVIDIA driver; None where it is UNVERIFIED


@dataclass(frozen=True, kw_only=True)
class BuildMachineTable:
    """Every build machine with a GPU, which GPUs a TensorRT still builds for, and the memory of those without a GPU."""

    # CodeBuild's before those of SageMaker Processing: they need no job that a build must await
    machines: tuple[BuildMachine, ...]
    # CodeBuild's compute type for LINUX_CONTAINER → its memory, which exports and proofs share
    cpu_memory_gib: Mapping[str, float]
    # TensorRT version → the oldest compute capability from that version on
    oldest_compute_capability: Mapping[tuple[int, ...], tuple[int, ...]]

    def of_gpu(self, gpu: str) -> tuple[BuildMachine, ...]:
        """The machines with a GPU model (in any case), preferred first."""
        return tuple(machine for machine in self.machines if gpu_in_names(machine.gpu) == gpu_in_names(gpu))


@lru_cache(maxsize=1)
def load_build_machines() -> BuildMachineTable:
    """The machines of ``data/build_machines.json``; read once."""
    document = read_data("build_machines.json")
    types = [instance_types()[name] for name in document["processing"]["types"]]
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
