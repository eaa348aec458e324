"""Orders compared with the bucket: what is stored, copied, built or refused, and the outcome of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal

from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.archives.outcome import ArchiveOutcome, counted
from tritonstack.archives.publish import stored_manifest
from tritonstack.engines.engine_builds import Builder, NoBuilderError, builder_for
from tritonstack.engines.portability import serves_on
from tritonstack.errors import InputError, TritonstackError
from tritonstack.models.build_target import target_for, target_of
from tritonstack.models.manifest import Manifest
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.models.tensorrt_models import lacks_plan
from tritonstack.naming import ArchiveName, Platform
from tritonstack.preparation.build_order import Order, OrderedArchive
from tritonstack.preparation.gpu_step import EngineFailedError
from tritonstack.preparation.stored_archives import stored_archives

Phase = Literal["order", "copy", "export", "engine", "proof", "commit"]

LONGEST_REASON = 500
"""Characters of a reason in its one line: CloudFormation shows about a thousand of several."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One archive at one place."""

    name: ArchiveName  # the archive
    place: Place  # of the archive
    outcome: ArchiveOutcome  # how it got there
    seconds: float = 0.0  # 0 where nothing was done
    source: Place | None = None  # the place that it was copied from, or None


def one_line(error: TritonstackError) -> str:
    """An error's reason as one line, cut where it is long; of several problems the first, and how many more."""
    text = error.reason if isinstance(error, EngineFailedError) else str(error)
    if isinstance(error, InputError):
        first, more = error.problems[0], len(error.problems) - 1
        text = f"{first.field}: " if first.field else ""
        text += f"{first.found}; allowed: {first.allowed}" + (f"; do: {first.advice}" if first.advice else "")
        text = (f"{more + 1} problems, the first: " if more else "") + text
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One missing archive: the phase that failed, and why."""

    phase: Phase
    name: ArchiveName
    error: TritonstackError

    @property
    def reason(self) -> str:
        """Why, in one line."""
        short = one_line(self.error)
        link = self.error.link if isinstance(self.error, EngineFailedError) else ""
        return f"{short} (log: {link})" if link else short

    def __str__(self) -> str:
        return f"FAILED in phase {self.phase} of {self.name}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class PrepareSummary:
    """The outcome of every archive of a run."""

    bucket: str
    archives: tuple[Prepared, ...]

    def __str__(self) -> str:
        return counted(item.outcome for item in self.archives) or "nothing to prepare"


class PrepareFailedError(TritonstackError):
    """Some archives are missing after a run.

    Exit code 2 where every failure is wrong input, else 1. The message's last lines are one for each failure.
    """

    def __init__(self, failures: Sequence[Failure], *, left: Sequence[ArchiveName], summary: PrepareSummary) -> None:
        """``left``: archives given up since another failed. ``summary``: finished archives, which stay."""
        self.failures, self.left, self.summary = tuple(failures), tuple(left), summary
        is_input = bool(failures) and all(isinstance(failure.error, InputError) for failure in failures)
        self.exit_code = 2 if is_input else 1
        details = [f"{failure.name}:\n{failure.error}" for failure in failures if "\n" in str(failure.error)]
        lines = [*details, f"done, and stays: {summary}"] if summary.archives else details
        if left:
            names = ", ".join(sorted(str(name) for name in left))
            lines.append(f"given up, since {'another failed' if failures else 'the work was stopped'}: {names}")
        super().__init__("\n".join([*lines, *map(str, failures)]))


_LOOKS = 8
"""How many archives are looked at at once."""

SourceOf = Callable[[ArchiveName, BuildChoice], ArchiveSource]
"""The source of an archive: this checkout's, or the one that the bucket keeps for its digest."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """An archive of another place that serves here too."""

    name: ArchiveName
    manifest: Manifest
    source: Place
    place: Place


@dataclass(kw_only=True)
class Build:
    """An archive that is not in the bucket."""

    name: ArchiveName  # the archive
    source: ArchiveSource  # of the archive
    target: str | None  # platform or Python that its bytes depend on, or None
    platform: Platform | None  # of the endpoint; None where the local Triton's serves
    order: Order  # the first with it; decides image, time-out and network of the engines
    builder: Builder | None  # of its engines; None where it needs none
    places: list[Place]  # of the archive


@dataclass(kw_only=True)
class NeededWork:
    """Archives that are stored, to be copied, to be built, and refused."""

    there: list[Prepared] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    refused: list[Failure] = field(default_factory=list)


def needed_work(orders: Sequence[Order], *, bucket: ArtifactBucket, source_of: SourceOf, local: bool) -> NeededWork:
    """Compare orders with the bucket, read-only.

    An archive is equal to another of the same name (which is the digest of its inputs) where its bytes depend on
    nothing else, on the same Python, or on the same platform, by its manifest. An engine also serves on platforms
    that it was built to be compatible with.

    ``local``: the bucket is the local AWS's: archives without engines are built for the local Triton. Raises
    :class:`WorkFailedError` where S3 refuses.
    """
    work = NeededWork()
    stored = stored_archives(bucket)
    absent: list[tuple[Order, OrderedArchive]] = []
    for order in orders:
        for row in order.archives:
            if _place(order) in stored.get(row.name, ()):
                work.there.append(Prepared(name=row.name, place=_place(order), outcome="there already"))
            else:
                absent.append((order, row))
    with ThreadPoolExecutor(_LOOKS) as pool:
        looked = list(pool.map(lambda one: copy_of(one[1], _place(one[0]), stored, bucket, local=local), absent))
    builds: dict[tuple[ArchiveName, str | None], Build] = {}
    for (order, row), copy in zip(absent, looked, strict=True):
        if copy is not None:
            work.copies.append(copy)
            continue
        try:
            build = _build(row, order, source_of, local=local)
        except TritonstackError as error:
            work.refused.append(Failure(phase="order", name=row.name, error=error))
            continue
        builds.setdefault((build.name, build.target), build).places.append(_place(order))
    work.builds = list(builds.values())
    return work


def _place(order: Order) -> Place:
    """The place of an order's archives."""
    return Place(endpoint=order.endpoint, platform=order.platform)


def copy_of(
    row: OrderedArchive,
    place: Place,
    stored: Mapping[ArchiveName, tuple[Place, ...]],
    bucket: ArtifactBucket,
    *,
    local: bool,
) -> Copy | None:
    """An archive of another place that serves here too; the own platform's first."""
    for other in sorted(stored.get(row.name, ()), key=lambda other: (other.platform != place.platform, other)):
        manifest = stored_manifest(bucket, row.name, other)
        if manifest is None:
            continue
        if manifest.dependency == "engine" and other.platform != place.platform:
            if serves_on(manifest, built=other.platform, platform=place.platform):
                return Copy(name=row.name, manifest=manifest, source=other, place=place)
            continue
        is_local = local and manifest.dependency != "engine"  # an engine is the platform's, in the local AWS too
        if manifest.target == target_for(manifest.dependency, None if is_local else place.platform):
            return Copy(name=row.name, manifest=manifest, source=other, place=place)
    return None


def _build(row: OrderedArchive, order: Order, source_of: SourceOf, *, local: bool) -> Build:
    """The build of an archive. Raises :class:`InputError` where nothing can build its engine."""
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
        found = f"an engine for {order.platform} in {order.region}: {error.problem.found}"
        problem = replace(error.problem, field="engine", found=found)
        raise InputError([problem]) from error
