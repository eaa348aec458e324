"""One subject measured: its cold starts, its first call, its loads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.body import decode
from tritonstack.engines.polling import is_local
from tritonstack.errors import WorkFailedError
from tritonstack.local_aws import LocalSession, find_local_aws
from tritonstack_capacity.bench.analyser import Analyser
from tritonstack_capacity.bench.analyser_way import AnalyserWay, at_container, by_proxy
from tritonstack_capacity.bench.budget import Budget
from tritonstack_capacity.bench.callers import Callers
from tritonstack_capacity.bench.cloudwatch import publish_latencies
from tritonstack_capacity.bench.cold_start import cold_starts
from tritonstack_capacity.bench.container import LocalContainer, local_container, name_hash_of, serving_fleet
from tritonstack_capacity.bench.document import EVERY_LOAD, ResultPart
from tritonstack_capacity.bench.http_caller import HttpCaller
from tritonstack_capacity.bench.load_line import load_line, round_line
from tritonstack_capacity.bench.measuring import Measuring, Point
from tritonstack_capacity.bench.parts import point_part, result_part
from tritonstack_capacity.bench.progress import Progress
from tritonstack_capacity.bench.server_counters import ServerCounters
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.subject import Subject

Keep = Callable[[ResultPart], object]


class OneModel:
    """Measures a subject. ``keep`` gets the result so far after each load.

    Attributes:
        result: so far.
    """

    def __init__(
        self, settings: BenchSettings, subject: Subject, *, session: Any, progress: Progress, keep: Keep
    ) -> None:
        """``session``: makes AWS clients."""
        self._settings = settings
        self._subject = subject
        self._session = session
        self._progress = progress
        self._keep = keep
        self._sagemaker = session.client("sagemaker")
        self._local = is_local(self._sagemaker)
        self._callers = Callers(settings, subject, session=session)
        self.result = result_part(subject, self._callers.body, local=self._local, container=settings.container)

    async def run(self) -> None:
        """The whole measurement; ``result`` is what it came to.

        Raises:
            WorkFailedError: a first call fails, AWS cannot be asked, or a container cannot be reached.
        """
        try:
            await self._run()
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(f"{self._subject.target.name} cannot be called: {error}") from error

    async def _run(self) -> None:
        await self._cold_starts()
        async with AsyncExitStack() as stack:
            caller = await stack.enter_async_context(self._callers.endpoint())
            await self._first_call(caller)
            container = stack.enter_context(self._container())
            if container is not None:
                self._set(server_version=container.server_version)
            if self._settings.container and container is not None:
                straight = self._callers.straight(container, name_hash=self._name_hash())
                caller = await stack.enter_async_context(straight)
                await self._first_call(caller)
            await self._loads(stack, caller, container)

    async def _cold_starts(self) -> None:
        count = self._settings.cold_starts
        if not count:
            return
        self._progress.say(f"{self._subject.title}: {count} cold starts")
        found = await cold_starts(self._session, self._subject.target, count=count, ask=self._ask_archive)
        self._set(cold=found, calls=count)

    async def _ask_archive(self, archive: str) -> str | None:
        async with self._callers.endpoint(archive) as caller:
            return await caller()

    async def _first_call(self, caller: HttpCaller) -> None:
        """A call whose answer must be one; the first of all is kept."""
        name = self._subject.target.name
        self._progress.say(f"{self._subject.title}: first call")
        began = time.perf_counter()
        failure = await caller()
        took = (time.perf_counter() - began) * 1000
        if failure is not None or caller.last is None:
            raise WorkFailedError(f"{name}: the first call failed: {failure}\n  do: tritonstack invoke {name}")
        decode(*caller.last)
        if self.result.first_call_ms is None:
            self._set(first_call_ms=took)
        self._set(answer_bytes=len(caller.last[0]), calls=self.result.calls + 1)

    async def _loads(self, stack: AsyncExitStack, caller: HttpCaller, container: LocalContainer | None) -> None:
        settings = self._settings
        budget = Budget(calls=settings.max_calls, seconds=settings.max_seconds, now=time.perf_counter)
        measuring = Measuring(
            caller,
            timing=settings.timing,
            rule=settings.rule,
            budget=budget,
            seed=settings.seed,
            most_under_way=settings.most_under_way,
            now=time.perf_counter,
            on_round=lambda *told: self._progress.say(round_line(self._subject.title, *told)),
        )
        analyser: Analyser | None = None
        if settings.generator == "perf-analyzer":
            analyser = Analyser(settings, await self._analyser_way(stack, container), budget=budget)
        counters = ServerCounters(container, progress=self._progress)
        points = (
            measuring.ramp(settings.phases, settings.stop) if settings.phases else self._levels(analyser or measuring)
        )
        ended_by, before = EVERY_LOAD, self.result.calls
        async with contextlib.aclosing(points):
            async for point, reason in points:
                ended_by = reason or ended_by
                self._progress.note(load_line(self._subject.title, point))
                self._set(
                    points=[*self.result.points, point_part(point, counters.since())],
                    calls=before + settings.max_calls - budget.calls,
                )
                if analyser is not None:
                    self._set(generator=f"perf_analyzer {analyser.version}")
                self._keep(self.result)
        published = self._publish(measuring) if settings.publish_metric else 0
        calls = before + settings.max_calls - budget.calls
        self._set(ended_by=budget.why or ended_by, published=published, calls=calls)

    async def _levels(self, generator: Measuring | Analyser) -> AsyncGenerator[tuple[Point, str | None]]:
        """Each load, and why it was the last."""
        for load in self._settings.loads:
            self._progress.say(f"{self._subject.title}: {load.name}")
            found = await generator.level(load)
            if found is None:
                return
            reason = self._settings.stop.reason(found.all)
            yield found, reason
            if reason is not None:
                return

    async def _analyser_way(self, stack: AsyncExitStack, container: LocalContainer | None) -> AnalyserWay:
        subject = self._subject
        if not self._settings.container or container is None:
            chosen = isinstance(self._session, LocalSession)  # by option or name; variables are inherited
            return await stack.enter_async_context(by_proxy(self._settings, subject, local=chosen))
        request = container.request(subject.target, self._callers.body, name_hash=self._name_hash())
        return at_container(request, model=subject.target.release.model, enter=container.enter)

    @contextmanager
    def _container(self) -> Iterator[LocalContainer | None]:
        """The container of a local endpoint; None in the cloud, or where only its figures would be had of it."""
        if not self._local:
            yield None
            return
        with contextlib.ExitStack() as stack:
            container: LocalContainer | None = None
            try:
                status = self._runtime_status()
                container = stack.enter_context(local_container(status, self._subject.target.call.endpoint_name))
            except WorkFailedError as error:
                if self._settings.container:
                    raise
                self._progress.note(f"without Triton's own figures: {error}")
            yield container

    def _runtime_status(self) -> dict[str, Any]:
        """What the runtime says of its fleets. Raises WorkFailedError where another local AWS than ours is called."""
        aws = self._session.aws if isinstance(self._session, LocalSession) else find_local_aws()
        url = self._sagemaker.meta.endpoint_url
        if aws is None or aws.emulator_url != url:
            raise WorkFailedError(
                f"{url}, which is called, is no local AWS that tritonstack local up started\n"
                '  do: eval "$(tritonstack local env)", or --local'
            )
        status: dict[str, Any] = aws.runtime_status()
        return status

    def _name_hash(self) -> str | None:
        """Under which name the container knows the archive; None: it has one model."""
        call = self._subject.target.call
        if call.target_model is None:
            return None
        return name_hash_of(serving_fleet(self._runtime_status(), call.endpoint_name), call.target_model)

    def _publish(self, measuring: Measuring) -> int:
        target = self._subject.target
        return publish_latencies(
            self._session.client("cloudwatch"),
            measuring.latencies_ms(),
            endpoint=target.call.endpoint_name,
            variant=target.fleet.variant or "unknown",
            model=target.release.model,
            at=datetime.now(UTC),
        )

    def _set(self, **changes: Any) -> None:
        self.result = self.result.model_copy(update=changes)
