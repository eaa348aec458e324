"""What all archives of an endpoint come to, beside the disk and the GPU memory of one of its instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritonstack.archives.manifest_stores import Sizes
from tritonstack.catalogue import load_catalogue
from tritonstack.review.bytes_text import bytes_text
from tritonstack.review.fleets import config_of
from tritonstack.review.served import ServedSet, served_sets
from tritonstack.review.snapshot import EnvironmentSnapshot, Json

_GB = 10**9
"""Of an instance store."""
_GIB = 1024**3
"""Of an EBS volume, which the API calls GB."""
_MIB = 1024**2


@dataclass(frozen=True, kw_only=True)
class Total:
    """All archives of one endpoint.

    Attributes:
        models: how many archives there are.
        packed: bytes of those whose size is known, as an instance fetches them.
        unpacked: likewise, as they lie on its disk.
        unknown: how many sizes are not known.
    """

    models: int
    packed: int
    unpacked: int
    unknown: int

    @property
    def text(self) -> str:
        """In words: ``2 archives, 11.9 KiB (20.0 KiB unpacked)``, ``…, at least …, plus 1 of unknown size``."""
        of = f"{self.models} archive{'' if self.models == 1 else 's'}"
        if self.unknown == self.models:
            return f"{of} of unknown size" if self.models else "no archives"
        told = f"{bytes_text(self.packed)} ({bytes_text(self.unpacked)} unpacked)"
        return f"{of}, at least {told}, plus {self.unknown} of unknown size" if self.unknown else f"{of}, {told}"


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What one instance has for models.

    Attributes:
        instance_type: the smallest of the endpoint's variants; None where the template names none.
        disk_bytes: of the volume or the instance store that models lie on; None where neither template nor catalogue
            tells.
        gpu_bytes: memory of all its GPUs; None where the catalogue does not know the type.
    """

    instance_type: str | None
    disk_bytes: int | None
    gpu_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class EndpointSizes:
    """One endpoint.

    Attributes:
        stack: the stack's name in the environment.
        endpoint: the endpoint's name in the environment.
        before: all its archives before the change; None where it is new.
        after: likewise after it; None where it goes.
        capacity: of one instance, after the change; before it, where the endpoint goes.
    """

    stack: str
    endpoint: str
    before: Total | None
    after: Total | None
    capacity: Capacity

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it in words."""
        return tuple(_sentences(self))

    @property
    def exceeds_disk(self) -> bool | None:
        """Whether the unpacked archives are more than the disk holds; None where that is not known."""
        disk = self.capacity.disk_bytes
        if self.after is None or disk is None:
            return None
        if self.after.unpacked > disk:
            return True
        return None if self.after.unknown else False


def endpoint_sizes(
    before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None, *, sizes: Sizes
) -> tuple[EndpointSizes, ...]:
    """Every endpoint with a release set, the unchanged ones included, by stack and name.

    Args:
        before: the environment at the base; None where it is new.
        after: the environment now; None where it goes.
        sizes: what is known of archives.
    """
    old = {(each.stack, each.endpoint): each for each in served_sets(before)}
    new = {(each.stack, each.endpoint): each for each in served_sets(after)}
    return tuple(
        _endpoint(
            old.get(key), new.get(key), _capacity(new.get(key) or old[key], after if key in new else before), sizes
        )
        for key in sorted(old.keys() | new.keys())
    )


def _endpoint(old: ServedSet | None, new: ServedSet | None, capacity: Capacity, sizes: Sizes) -> EndpointSizes:
    present = new or old
    assert present is not None  # noqa: S101 - the caller's keys are those of the two sides
    before, after = (None if each is None else _total(each, sizes) for each in (old, new))
    return EndpointSizes(stack=present.stack, endpoint=present.endpoint, before=before, after=after, capacity=capacity)


def _total(served: ServedSet, sizes: Sizes) -> Total:
    found = [
        sizes.size(model, digest, endpoint=served.endpoint, platform=served.platform)
        for model, digest in served.models.items()
    ]
    return Total(
        models=len(found),
        packed=sum(each.packed or 0 for each in found),
        unpacked=sum(each.unpacked or 0 for each in found),
        unknown=sum(each.packed is None for each in found),
    )


def _capacity(served: ServedSet, environment: EnvironmentSnapshot | None) -> Capacity:
    """Of the variant with the smallest disk, as far as disks are known."""
    stack = None if environment is None else environment.stacks[served.stack]
    if stack is None or served.logical_id is None:
        return Capacity(instance_type=None, disk_bytes=None, gpu_bytes=None)
    variants = config_of(stack.resources[served.logical_id], stack).get("ProductionVariants", [])
    found = [_of_variant(each) for each in variants]
    if not found:
        return Capacity(instance_type=None, disk_bytes=None, gpu_bytes=None)
    return min(found, key=lambda each: (each.disk_bytes is not None, each.disk_bytes or 0, each.gpu_bytes or 0))


def _of_variant(variant: Mapping[str, Json]) -> Capacity:
    name = variant.get("InstanceType")
    row = load_catalogue().instance(name) if isinstance(name, str) else None
    volume = variant.get("VolumeSizeInGB")
    disk = volume * _GIB if isinstance(volume, int) else 0 if row is None else row.local_nvme_gb * _GB
    return Capacity(
        instance_type=name if isinstance(name, str) else None,
        disk_bytes=disk or None,
        gpu_bytes=None if row is None else row.gpu_memory_mib * row.gpu_count * _MIB,
    )


def _sentences(sizes: EndpointSizes) -> Iterator[str]:
    if sizes.after is None:
        yield f"{sizes.endpoint} serves nothing any more; it had {sizes.before.text if sizes.before else 'nothing'}."
        return
    was = f", before {sizes.before.text}" if sizes.before is not None and sizes.before != sizes.after else ""
    yield f"{sizes.endpoint} serves {sizes.after.text}{was}."
    capacity = sizes.capacity
    disk = "a disk of unknown size" if capacity.disk_bytes is None else f"{bytes_text(capacity.disk_bytes)} of disk"
    gpu = (
        "GPU memory of unknown size"
        if capacity.gpu_bytes is None
        else f"{bytes_text(capacity.gpu_bytes)} of GPU memory"
    )
    yield f"An instance ({capacity.instance_type or 'of unknown type'}) has {disk} and {gpu}."
    if sizes.exceeds_disk:
        yield "All of them do not fit on its disk at once."
