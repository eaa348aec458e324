"""GPU instance types that SageMaker hosts: what each one has, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tritonstack.catalogue.data_file import read_data

MultiModelSupport = Literal["listed", "unlisted", "refused"]
"""Whether multi-model mode works on a type.

``listed``: AWS names the type. ``unlisted``: it has one GPU, but AWS does not name it (UNVERIFIED, a setting decides).
``refused``: it has several GPUs, and multi-model mode takes single-GPU types only.
"""


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """A GPU instance type.

    Attributes:
        name: SageMaker's name (``ml.g4dn.xlarge``).
        family: the part between the dots (``g4dn``).
        gpu: the GPU model (``T4``); what an engine is built for.
        gpu_count: GPUs in one instance.
        gpu_memory_mib: memory of one GPU, MiB.
        memory_gib: memory of the instance, GiB.
        vcpu: virtual CPUs.
        compute_capability: of the GPU (``7.5``).
        architecture: of the GPU (``Turing``).
        local_nvme_gb: instance store, GB; 0 where there is none. Instances that have one get no EBS volume for models.
        multi_model_support: see ``MultiModelSupport``.
        regions: where SageMaker offers the type for hosting, sorted.
    """

    name: str
    family: str
    gpu: str
    gpu_count: int
    gpu_memory_mib: int
    memory_gib: float
    vcpu: int
    compute_capability: str
    architecture: str
    local_nvme_gb: int
    multi_model_support: MultiModelSupport
    regions: tuple[str, ...]

    @property
    def multi_model(self) -> bool:
        """Whether AWS names the type as one that serves GPU models in multi-model mode."""
        return self.multi_model_support == "listed"


@dataclass(frozen=True, kw_only=True)
class InstanceTable:
    """The known types by name, the known types that are left out with the reason, and every region."""

    types: Mapping[str, InstanceType]
    omitted: Mapping[str, str]
    regions: tuple[str, ...]


def read_instances() -> InstanceTable:
    """The types of ``data/instances.json``, each with its regions from ``data/hosting_regions.json``."""
    document = read_data("instances.json")
    hosted: dict[str, list[str]] = read_data("hosting_regions.json")["regions"]
    listed = frozenset(document["multi_model_types"])
    types: dict[str, InstanceType] = {}
    for name, row in document["types"].items():
        family = name.split(".")[1]
        types[name] = InstanceType(
            name=name,
            family=family,
            multi_model_support=_multi_model_support(listed=name in listed, gpu_count=row["gpu_count"]),
            regions=tuple(sorted(region for region, names in hosted.items() if name in names)),
            **document["families"][family],
            **row,
        )
    return InstanceTable(types=types, omitted=document["omitted"], regions=tuple(sorted(hosted)))


def _multi_model_support(*, listed: bool, gpu_count: int) -> MultiModelSupport:
    if gpu_count > 1:
        return "refused"
    return "listed" if listed else "unlisted"
