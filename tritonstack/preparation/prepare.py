"""Put the archives of orders into the bucket: copy or build what is missing, with engines on other machines.

One thread exports, proves, packs and commits, one archive after the other; meanwhile several engines are built. After a
failure nothing new is started, running engines are stopped, and finished archives are committed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.build import build_archive, refuse_errors_of_folders
from tritonstack.archives.outcome import ArchiveOutcome
from tritonstack.archives.programs import Report
from tritonstack.archives.publish import BuiltArchive, publish_archives, stored_manifest
from tritonstack.archives.staging import Proofs, Task
from tritonstack.archives.stored_inputs import source_of_digest
from tritonstack.aws.session import Session, stack_value
from tritonstack.disk import partial_folder
from tritonstack.engines.engine_builds import Builder
from tritonstack.errors import TritonstackError, WorkFailedError
from tritonstack.local_aws import is_local
from tritonstack.models.build_target import refuse_unservable
from tritonstack.models.manifest import Manifest, Places
from tritonstack.naming import ArchiveName, artifact_parameter, builds_parameter
from tritonstack.preparation.build_order import Order
from tritonstack.preparation.codebuild_runner import CodeBuildRunner
from tritonstack.preparation.export_step import EngineJob, EngineWork, prepare_engines
from tritonstack.preparation.gpu_step import EngineFailedError, EngineRunner, EngineStoppedError, build_engine, job_key
from tritonstack.preparation.needed_work import (
    Build,
    Copy,
    Failure,
    NeededWork,
    Phase,
    Prepared,
    PrepareFailedError,
    PrepareSummary,
    SourceOf,
    needed_work,
)
from tritonstack.preparation.pack_step import finish_archive
from tritonstack.preparation.processing_runner import ProcessingRunner
from tritonstack.preparation.stored_archives import copy_archive

_COPIES = 8
"""How many archives are copied at once: S3 does the work."""

RunnerFor = Callable[[Builder, Order], EngineRunner]
Submit = Callable[[Build, EngineJob], Future[Path]]


@dataclass(kw_only=True)
class _Running:
    """An archive whose engines are being built."""

    build: Build
    work: EngineWork
    folder: ExitStack
    started: float
    engines: Mapping[str, Future[Path]]


@dataclass(kw_only=True)
class Preparation:
    """One run over some orders."""

    orders: Sequence[Order]  # of one environment
    source_of: SourceOf  # finds the source of an archive
    bucket: ArtifactBucket  # the environment's
    places: Places  # where archives are built
    watch: Callable[[str, str], None]  # called with a model and its progress
    runner_for: RunnerFor  # makes the runners, each for a builder and the network of an order
    stop: threading.Event  # set to give up running engines

    def __post_init__(self) -> None:
        self._local = is_local(self.bucket.s3)
        self._proofs: Proofs = {}
        self._done: list[Prepared] = []
        self._failures: list[Failure] = []
        self._left: list[ArchiveName] = []
        self._linted: set[Path] = set()
        self._runners: dict[Builder, EngineRunner] = {}
        self._engines: dict[str, Future[Path]] = {}

    def needed_work(self) -> NeededWork:
        """The work that a run would do. Raises :class:`WorkFailedError` where S3 refuses."""
        return needed_work(self.orders, bucket=self.bucket, source_of=self.source_of, local=self._local)

    def run(self) -> PrepareSummary:
        """Do the needed work.

        Raises:
            PrepareFailedError: some archives are still missing; finished ones stay.
            WorkFailedError: S3 refuses before anything is started.
        """
        work = self.needed_work()
        self._done += work.there
        self._failures += work.refused
        builds = deque(self._buildable(work.builds))
        begun = len(self._failures)
        self._copy_all(work.copies, begun)
        if len(self._failures) == begun:
            self._build_all(builds, begun)
        self._left += [build.name for build in builds]
        done = sorted(self._done, key=lambda item: (item.place, item.name))
        summary = PrepareSummary(bucket=self.bucket.name, archives=tuple(done))
        if self._failures or self._left:
            raise PrepareFailedError(self._failures, left=self._left, summary=summary)
        return summary

    def _buildable(self, builds: Sequence[Build]) -> list[Build]:
        """Builds whose engines have a runner, engines first: they take longest, and run elsewhere."""
        found: list[Build] = []
        for build in builds:
            try:
                if build.builder is not None:
                    self._runner(build.builder, build.order)
            except TritonstackError as error:
                self._fail("order", build.name, error)
            else:
                found.append(build)
        return sorted(found, key=lambda build: build.builder is None)

    def _runner(self, builder: Builder, order: Order) -> EngineRunner:
        if builder not in self._runners:
            self._runners[builder] = self.runner_for(builder, order)
        return self._runners[builder]

    def _copy_all(self, copies: Sequence[Copy], begun: int) -> None:
        """Copy until one fails or the work is interrupted; then start no further one."""

        def copied(copy: Copy) -> None:
            if self.stop.is_set() or len(self._failures) > begun:
                self._left.append(copy.name)
            else:
                self._copy(copy)

        with ThreadPoolExecutor(_COPIES, thread_name_prefix="copy") as pool:
            try:
                list(pool.map(copied, copies))
            except BaseException:
                self.stop.set()
                raise

    def _copy(self, copy: Copy) -> None:
        """Copy an archive to another place."""
        started = time.monotonic()
        self.watch(copy.name.model, f"copying it from {copy.source.endpoint}, {copy.source.platform}")
        try:
            first = copy_archive(self.bucket, copy.name, copy.manifest, source=copy.source, target=copy.place)
        except TritonstackError as error:
            self._fail("copy", copy.name, error)
            return
        self._add(
            Prepared(
                name=copy.name,
                place=copy.place,
                outcome="copied" if first else "another was first",
                seconds=time.monotonic() - started,
                source=copy.source,
            )
        )

    def _build_all(self, waiting: deque[Build], begun: int) -> None:
        """Export and commit one archive after the other, while the engines of others are built."""
        limit = max((order.parallel_engines for order in self.orders), default=1)
        with (
            partial_folder(self.places.archives, name=".engines") as outputs,
            ExitStack() as folders,
            ThreadPoolExecutor(limit, thread_name_prefix="engine") as pool,
        ):
            try:
                self._build_each(waiting, begun, partial(self._submit, pool, outputs), folders)
            except BaseException:
                self._give_up_engines()
                raise

    def _build_each(self, waiting: deque[Build], begun: int, submit: Submit, folders: ExitStack) -> None:
        running: list[_Running] = []
        while waiting or running:
            for over in [one for one in running if all(engine.done() for engine in one.engines.values())]:
                running.remove(over)
                self._finish(over)
            failed = len(self._failures) > begun
            if failed:
                self._give_up_engines()
                if not running:
                    return
            if waiting and not failed:
                begins = self._begin(waiting.popleft(), submit, folders)
                running += [begins] if begins else []
            else:
                unfinished = [engine for one in running for engine in one.engines.values() if not engine.done()]
                wait(unfinished, return_when=FIRST_COMPLETED)

    def _give_up_engines(self) -> None:
        """Start no further engine, and give up running ones."""
        self.stop.set()
        for engine in self._engines.values():
            engine.cancel()

    def _begin(self, build: Build, submit: Submit, folders: ExitStack) -> _Running | None:
        """Build an archive, or submit its engines; None where none are running."""
        started = time.monotonic()
        phase: Phase = "order"
        folder = folders.enter_context(ExitStack())
        try:
            if not self._is_missing(build):
                return None
            phase = "export"
            made = self._built_before(build) or self._export(build, folder)
        except TritonstackError as error:
            folder.close()
            self._fail(phase, build.name, error)
            return None
        if isinstance(made, EngineWork):
            engines = {job.model: submit(build, job) for job in made.jobs}
            return _Running(build=build, work=made, folder=folder, started=started, engines=engines)
        folder.close()
        self._commit(build, made, started)
        return None

    def _is_missing(self, build: Build) -> bool:
        """Whether an archive is still missing: another run may have built it since this one looked."""
        missing = [place for place in build.places if self.bucket.look(place.archive(build.name)) is None]
        for place in build.places:
            if place not in missing:
                self._add(Prepared(name=build.name, place=place, outcome="another was first"))
        build.places = missing
        return bool(missing)

    def _export(self, build: Build, folder: ExitStack) -> EngineWork | Manifest:
        """The export step of an archive with engines, or the whole build of one without."""
        report = self._report(build.name.model)
        report("export")
        work = folder.enter_context(partial_folder(self.places.archives, name=f".{build.name.model}"))
        task = Task(source=build.source, name=build.name, platform=build.platform)
        if build.source.folder not in self._linted:
            refuse_errors_of_folders([build.source.folder])
            self._linted.add(build.source.folder)
        if build.builder is None:
            refuse_unservable([build.source], platform=build.platform)
            manifest, _ = build_archive(task, work, self.places, report, self._proofs)
            return manifest
        seconds = 60.0 * build.order.engine_timeout_minutes
        return prepare_engines(task, work, self.places, report, timeout_seconds=seconds, proofs=self._proofs)

    def _submit(self, pool: ThreadPoolExecutor, outputs: Path, build: Build, job: EngineJob) -> Future[Path]:
        """Build an engine as soon as a machine is free; equal jobs, those of copies, get the same future."""
        builder = build.builder
        if builder is None:
            raise AssertionError("an archive without engines has no jobs")
        key = job_key(job.folder, builder=f"{builder.machine.name} {builder.image}")
        if key not in self._engines:
            self._engines[key] = pool.submit(
                build_engine,
                job.folder,
                outputs / key,
                model=job.model,
                environment=build.order.environment,
                builder=builder,
                runner=self._runner(builder, build.order),
                bucket=self.bucket,
                report=self._report(build.name.model),
            )
        return self._engines[key]

    def _finish(self, over: _Running) -> None:
        """Prove, pack and commit an archive whose engines are done; record a failure of one."""
        build, report = over.build, self._report(over.build.name.model)
        phase: Phase = "engine"
        with over.folder:
            try:
                outputs = {model: future.result() for model, future in over.engines.items()}
                phase = "proof"
                report("proof of the engine")
                manifest = finish_archive(over.work, outputs, self.places, report)
            except (EngineStoppedError, CancelledError):
                self._left.append(build.name)
                return
            except TritonstackError as error:
                self._fail(error.phase if isinstance(error, EngineFailedError) else phase, build.name, error)
                return
        self._commit(build, manifest, over.started)

    def _commit(self, build: Build, manifest: Manifest, started: float) -> None:
        """Publish a built archive to its first place, and copy it from there to the others."""
        first, *others = build.places
        report = self._report(build.name.model)
        archive = BuiltArchive(
            source=build.source, name=build.name, place=first, target=build.target, manifest=manifest
        )
        try:
            [done] = publish_archives(
                [archive], bucket=self.bucket, local=self._local, places=self.places, report=report
            )
            outcome: ArchiveOutcome = "built" if done.outcome == "published" else "another was first"
            seconds = time.monotonic() - started
            self._add(Prepared(name=build.name, place=first, outcome=outcome, seconds=seconds))
            committed = stored_manifest(self.bucket, build.name, first) if others else None
        except TritonstackError as error:
            self._fail("commit", build.name, error)
            return
        for place in others:
            if committed is None:
                gone = WorkFailedError(f"s3://{self.bucket.name}/{first.archive(build.name)} has no manifest any more")
                self._fail("copy", build.name, gone)
                return
            self._copy(Copy(name=build.name, manifest=committed, source=first, place=place))

    def _built_before(self, build: Build) -> Manifest | None:
        """The manifest of an earlier run's build that was not committed; None for a stand-in's plan, but locally."""
        manifest = self.places.built(build.name, build.target)
        if manifest is None or build.builder is None:
            return manifest
        stands_in = any(entry.stand_in for entry in manifest.engines.values())
        return manifest if manifest.engines and stands_in == self._local else None

    def _add(self, item: Prepared) -> None:
        self._done.append(item)
        self.watch(item.name.model, f"{item.outcome}: {item.place.archive(item.name)}, {item.seconds:.1f} s")

    def _fail(self, phase: Phase, name: ArchiveName, error: TritonstackError) -> None:
        failure = Failure(phase=phase, name=name, error=error)
        self._failures.append(failure)
        self.watch(name.model, str(failure))

    def _report(self, model: str) -> Report:
        return partial(self.watch, model)


@contextmanager
def preparation_of_project(
    orders: Sequence[Order], *, session: Session, watch: Callable[[str, str], None]
) -> Iterator[Preparation]:
    """A run on this machine: from the project's model folders, or from the inputs that the bucket keeps of a digest."""
    places, stop = Places.of_project(), threading.Event()
    bucket = ArtifactBucket(environment=orders[0].environment, session=session)
    with partial_folder(places.archives, name=".inputs") as kept:
        yield Preparation(
            orders=orders,
            source_of=lambda name, choice: source_of_digest(
                name.model, name.digest, repositories=places.repositories, bucket=bucket, work=kept, choice=choice
            ),
            bucket=bucket,
            places=places,
            watch=watch,
            runner_for=partial(runner_for, session=session, bucket=bucket, stop=stop),
            stop=stop,
        )


def runner_for(
    builder: Builder, order: Order, *, session: Session, bucket: ArtifactBucket, stop: threading.Event
) -> EngineRunner:
    """The runner for a builder of an order's engines.

    Raises :class:`InputError` where the environment has no builds stack, :class:`WorkFailedError` where SSM refuses.
    """
    environment = order.environment
    builds = f"{environment}/builds"
    if builder.kind == "codebuild":
        name = builds_parameter(environment=environment, value="engine-project-name")
        project = stack_value(session, name, stack=builds)
        return CodeBuildRunner(builder=builder, session=session, bucket=bucket, project=project, stop=stop)
    role = builds_parameter(environment=environment, value="processing-role-arn")
    key = artifact_parameter(environment=environment, value="key-arn")
    return ProcessingRunner(
        builder=builder,
        session=session,
        bucket=bucket,
        role_arn=stack_value(session, role, stack=builds),
        key_arn=stack_value(session, key, stack=f"{environment}/artifacts"),
        network=order.network,
        tags=order.tags,
        stop=stop,
    )
