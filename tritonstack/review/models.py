"""Models that a change adds, removes, rebuilds, rolls back or moves; their size beside an instance's disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tritonstack.catalogue import load_catalogue
from tritonstack.models.manifest import ArchiveSize, Sizes, python_target
from tritonstack.naming import Platform
from tritonstack.review.fleets import config_of
from tritonstack.review.served import Earlier, EarlierReleases, NoHistory, ServedSet, served_sets
from tritonstack.review.snapshot import EnvironmentSnapshot, Json

_KIB = 1024


def bytes_text(count: int) -> str:
    """Bytes by powers of 1024: ``17 bytes``, ``90.2 MiB``."""
    if count < _KIB:
        return f"{count} byte{'' if count == 1 else 's'}"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= _KIB
        if value < _KIB:
            return f"{value:.1f} {unit}"
    return f"{value / _KIB:.1f} TiB"


class ModelKind(StrEnum):
    """What happens to a model."""

    ADDED = "added"
    REMOVED = "removed"
    REBUILT = "rebuilt"
    """Another digest: other inputs, so another archive."""
    ROLLED_BACK = "rolled back"
    """A digest that the model had before the one that it has."""
    MOVED = "moved to another platform"
    """The same digest under another release or GPU."""


@dataclass(frozen=True, kw_only=True)
class ModelChange:
    """One model of one endpoint.

    Attributes:
        kind: what happens.
        stack: the stack's name in the environment.
        endpoint: the endpoint's name in the environment.
        model: the model.
        before: its digest; None where it is added.
        after: likewise; None where it is removed.
        platform_before: what its archive is for; None where it is added.
        platform_after: likewise; None where it is removed.
        size: of the archive after the change; where it is removed, of the one that goes.
        size_before: of the archive before; None where it is added.
        dependency: what the archive's bytes depend on beside its inputs: none, python, engine; None where nobody tells.
        rebuilt_for_platform: whether the platform alone makes it another archive; None where that is not known.
        earlier: the release that it is rolled back to.
        sentence: all of it in words.
    """

    kind: ModelKind
    stack: str
    endpoint: str
    model: str
    before: str | None
    after: str | None
    platform_before: Platform | None
    platform_after: Platform | None
    size: ArchiveSize
    size_before: ArchiveSize | None
    dependency: str | None
    rebuilt_for_platform: bool | None
    earlier: Earlier | None
    sentence: str

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the archive as an instance fetches it; None where that is not known, which ``size.reason`` tells."""
        return self.size.packed


def model_changes(
    before: EnvironmentSnapshot | None,
    after: EnvironmentSnapshot | None,
    *,
    sizes: Sizes,
    earlier: EarlierReleases | None = None,
    dependencies: Mapping[str, str] | None = None,
) -> tuple[ModelChange, ...]:
    """Every model that changes, by stack, endpoint and model.

    Args:
        before: the environment at the base; None where it is new.
        after: the environment now; None where it goes.
        sizes: what is known of archives.
        earlier: which releases were before; None: nothing is known, and a rollback shows as a rebuild.
        dependencies: model → what its archive depends on (none, python, engine), as its folder says; used where no
            manifest tells. Default: None.
    """
    known = _Known(sizes=sizes, history=earlier or NoHistory(), dependencies=dependencies or {})
    old = {(each.stack, each.endpoint): each for each in served_sets(before)}
    new = {(each.stack, each.endpoint): each for each in served_sets(after)}
    return tuple(
        change for key in sorted(old.keys() | new.keys()) for change in _of_endpoint(old.get(key), new.get(key), known)
    )


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What is known beside the templates."""

    sizes: Sizes
    history: EarlierReleases
    dependencies: Mapping[str, str]


def _of_endpoint(old: ServedSet | None, new: ServedSet | None, known: _Known) -> Iterator[ModelChange]:
    was: Mapping[str, str] = {} if old is None else old.models
    is_: Mapping[str, str] = {} if new is None else new.models
    for model in sorted(was.keys() | is_.keys()):
        found = _Change(old=old, new=new, model=model, before=was.get(model), after=is_.get(model))
        kind, release = found.kind(known.history)
        if kind is not None:
            yield found.told(kind, release, known)


@dataclass(frozen=True, kw_only=True)
class _Change:
    """One model on both sides of one endpoint."""

    old: ServedSet | None
    new: ServedSet | None
    model: str
    before: str | None
    after: str | None

    def kind(self, history: EarlierReleases) -> tuple[ModelKind | None, Earlier | None]:
        """What happens, and the release that it is rolled back to."""
        if self.before is None or self.old is None:
            return ModelKind.ADDED, None
        if self.after is None or self.new is None:
            return ModelKind.REMOVED, None
        if self.before == self.after:
            return (None if self.old.platform == self.new.platform else ModelKind.MOVED), None
        release = history.find(stack=self.new.stack, endpoint=self.new.endpoint, model=self.model, digest=self.after)
        return (ModelKind.REBUILT if release is None else ModelKind.ROLLED_BACK), release

    def told(self, kind: ModelKind, release: Earlier | None, known: _Known) -> ModelChange:
        """The change, in words."""
        present = self.new or self.old
        assert present is not None  # noqa: S101 - a model stands on one side at least
        size_before = self._size(self.old, self.before, known.sizes)
        size_after = self._size(self.new, self.after, known.sizes)
        size = size_after or size_before or ArchiveSize(reason="no archive")
        dependency = self._dependency(known)
        moves = self._moves(dependency)
        return ModelChange(
            kind=kind,
            stack=present.stack,
            endpoint=present.endpoint,
            model=self.model,
            before=self.before,
            after=self.after,
            platform_before=self.old.platform if self.old is not None and self.before is not None else None,
            platform_after=self.new.platform if self.new is not None and self.after is not None else None,
            size=size,
            size_before=size_before,
            dependency=dependency,
            rebuilt_for_platform=moves,
            earlier=release,
            sentence=" ".join(self._sentences(kind, release, size, size_before, moves)),
        )

    def _size(self, of: ServedSet | None, digest: str | None, sizes: Sizes) -> ArchiveSize | None:
        if of is None or digest is None:
            return None
        return sizes.size(self.model, digest, endpoint=of.endpoint, platform=of.platform)

    def _dependency(self, known: _Known) -> str | None:
        """As the manifest says; else as the folder does, where the model still has one."""
        for side, digest in ((self.new, self.after), (self.old, self.before)):
            if side is not None and digest is not None:
                told = known.sizes.dependency(self.model, digest, endpoint=side.endpoint, platform=side.platform)
                return told or known.dependencies.get(self.model)
        return None

    def _moves(self, dependency: str | None) -> bool | None:
        """Whether the platform alone makes another archive."""
        if self.old is None or self.new is None or self.before is None or self.after is None:
            return False
        if self.old.platform == self.new.platform or dependency == "none":
            return False
        if dependency == "engine":
            return True
        targets = [python_target(each.platform) for each in (self.old, self.new)]
        return None if dependency is None or None in targets else targets[0] != targets[1]

    def _sentences(
        self,
        kind: ModelKind,
        release: Earlier | None,
        size: ArchiveSize,
        size_before: ArchiveSize | None,
        moves: bool | None,
    ) -> Iterator[str]:
        of = f"{self.model} of {(self.new or self.old).endpoint}"  # type: ignore[union-attr]  # one side is there
        if kind is ModelKind.ADDED:
            yield f"{of} is added ({self.after}, {size_text(size)})."
        elif kind is ModelKind.REMOVED:
            yield f"{of} is removed ({self.before}, {size_text(size)}): calls for it fail from then on."
        elif kind is ModelKind.MOVED:
            yield f"{of} keeps its digest ({self.after}, {size_text(size)})."
        else:
            was = "" if size_before is None or size_before.packed is None else f", before {size_text(size_before)}"
            back = f" to what {release.where} had" if release is not None else ""
            yield f"{of} is {kind.value}{back}: {self.before} → {self.after} ({size_text(size)}{was})."
        stays = kind not in {ModelKind.ADDED, ModelKind.REMOVED}
        if stays and self.old is not None and self.new is not None and self.old.platform != self.new.platform:
            yield f"It moves from {self.old.platform} to {self.new.platform}: {_MOVES[moves]}."


_MOVES = {
    True: "its archive depends on the platform and is built anew",
    False: "its archive does not depend on that and is the same under another prefix",
    None: "whether its archive depends on that is not known here",
}


def size_text(size: ArchiveSize) -> str:
    """A size in words: ``3.8 KiB``, or ``size unknown: no manifest of … in .local/archives``."""
    return f"size unknown: {size.reason}" if size.packed is None else bytes_text(size.packed)


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
