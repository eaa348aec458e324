"""Orders matched with the bucket: which archives lie there, which are copied from elsewhere, which have to be built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.contents import lacks_plan
from tritonstack.archives.manifest import Manifest
from tritonstack.archives.overlay import Dependency
from tritonstack.archives.source import ArchiveSource, BuildChoice
from tritonstack.archives.targets import LOCAL, python_of, target_of
from tritonstack.engines.builders import Builder, NoBuilderError, builder_for
from tritonstack.engines.order import Order, OrderedArchive
from tritonstack.engines.preparation import Failure, Prepared
from tritonstack.engines.stored import Place, stored_archives, stored_manifest
from tritonstack.errors import InputError, Problem, TritonstackError
from tritonstack.naming import ArchiveName, Platform

_LOOKS = 8
"""How many archives are looked at at once."""

SourceOf = Callable[[ArchiveName, BuildChoice], ArchiveSource]
"""The source of an archive: this checkout's, or the one that the bucket keeps for its digest."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """An archive that lies elsewhere, and serves here too."""

    name: ArchiveName
    manifest: Manifest
    source: Place
    place: Place


@dataclass(kw_only=True)
class Build:
    """An archive that lies nowhere.

    Attributes:
        name: the archive.
        source: what it is built from.
        target: what it is built for, where its bytes depend on it.
        platform: of the endpoint; None where the local Triton's serves.
        order: the first that asks for it; it says image, time-out and network of the engines.
        builder: what builds its engines; None where it needs none.
        places: where it goes.
    """

    name: ArchiveName
    source: ArchiveSource
    target: str | None
    platform: Platform | None
    order: Order
    builder: Builder | None
    places: list[Place]


@dataclass(kw_only=True)
class PreparationPlan:
    """What is to be done."""

    there: list[Prepared] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    refused: list[Failure] = field(default_factory=list)


def plan_preparation(
    orders: Sequence[Order], *, bucket: ArtifactBucket, source_of: SourceOf, local: bool
) -> PreparationPlan:
    """Match orders with the bucket. Nothing is written.

    An archive is equal to another of the same name (which is the digest of its inputs) where its bytes depend on
    nothing else, on the same Python, or on the same platform; which of these holds, its manifest says.

    Args:
        orders: what has to lie in the bucket.
        bucket: the environment's.
        source_of: finds what an archive is built from.
        local: the bucket is the local AWS's: archives without engines are built for the local Triton.

    Raises:
        WorkFailedError: S3 refuses.
    """
    plan = PreparationPlan()
    stored = stored_archives(bucket)
    absent: list[tuple[Order, OrderedArchive]] = []
    for order, row in _rows(orders):
        place = _place(order)
        if place in stored.get(row.name, ()):
            plan.there.append(Prepared(name=row.name, place=place, outcome="there already"))
        else:
            absent.append((order, row))
    with ThreadPoolExecutor(_LOOKS) as pool:
        looked = list(pool.map(lambda one: _copy_of(one[1], _place(one[0]), stored, bucket, local=local), absent))
    builds: dict[tuple[ArchiveName, str | None], Build] = {}
    for (order, row), copy in zip(absent, looked, strict=True):
        if copy is not None:
            plan.copies.append(copy)
            continue
        try:
            build = _build(row, order, source_of, local=local)
        except TritonstackError as error:
            plan.refused.append(Failure(phase="order", name=row.name, error=error))
            continue
        builds.setdefault((build.name, build.target), build).places.append(_place(order))
    plan.builds = list(builds.values())
    return plan


def target_for(dependency: Dependency, platform: Platform, *, local: bool) -> str | None:
    """What an archive of that dependency has to be built for, as its manifest says it; an engine's is never local."""
    if dependency == "none":
        return None
    if dependency == "engine":
        return str(platform)
    return LOCAL if local else f"python-{python_of(platform)}"


def _rows(orders: Sequence[Order]) -> Iterator[tuple[Order, OrderedArchive]]:
    """What the orders ask for, each archive once for each place."""
    seen: set[tuple[ArchiveName, Place]] = set()
    for order in orders:
        for row in order.archives:
            key = (row.name, _place(order))
            if key not in seen:
                seen.add(key)
                yield order, row


def _place(order: Order) -> Place:
    platform = Platform(release=order.platform.release, gpu=order.platform.gpu.lower())
    return Place(endpoint=order.endpoint, platform=platform)


def _copy_of(
    row: OrderedArchive,
    place: Place,
    stored: Mapping[ArchiveName, tuple[Place, ...]],
    bucket: ArtifactBucket,
    *,
    local: bool,
) -> Copy | None:
    """An archive elsewhere that serves here too; the own platform's first."""
    for other in sorted(stored.get(row.name, ()), key=lambda other: (other.platform != place.platform, other)):
        if row.dependency == "engine" and other.platform != place.platform:
            continue
        manifest = stored_manifest(bucket, row.name, other)
        if manifest is not None and manifest.target == target_for(manifest.dependency, place.platform, local=local):
            return Copy(name=row.name, manifest=manifest, source=other, place=place)
    return None


def _build(row: OrderedArchive, order: Order, source_of: SourceOf, *, local: bool) -> Build:
    """How an archive is built. Raises :class:`InputError` where nothing can build its engine."""
    source = source_of(row.name, order.choice)
    needs_engine = lacks_plan(source)
    platform = order.platform if needs_engine or not local else None
    return Build(
        name=row.name,
        source=source,
        target=target_of(source, platform),
        platform=platform,
        order=order,
        builder=_builder(order) if needs_engine else None,
        places=[],
    )


def _builder(order: Order) -> Builder:
    try:
        return builder_for(order.platform, order.region, image=order.image, kind=order.engine_builder)
    except NoBuilderError as error:
        problem = Problem(
            field="engine",
            found=f"an engine for {order.platform} in {order.region}: {error.found}",
            allowed=error.allowed,
            advice=error.advice,
        )
        raise InputError([problem]) from error
