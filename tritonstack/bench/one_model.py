"""One model in one payload format, measured: cold starts, the first call, the loads."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.config import Config

from tritonstack.bench.analyser import Analyser
from tritonstack.bench.budget import Budget
from tritonstack.bench.cloudwatch import publish_latencies
from tritonstack.bench.cold_start import copies, first_calls
from tritonstack.bench.container import LocalContainer, local_container, name_hash_of, serving_fleet
from tritonstack.bench.document import ColdPart, PointPart, ResultPart
from tritonstack.bench.http_caller import HttpCaller, http_caller
from tritonstack.bench.measuring import Measuring, Point
from tritonstack.bench.parts import point_part
from tritonstack.bench.payload import Format, Payload
from tritonstack.bench.request import Prepare
from tritonstack.bench.settings import BenchSettings
from tritonstack.bench.signed_request import SignedRequests
from tritonstack.bench.target import BenchTarget
from tritonstack.bench.triton_statistics import ServerFigures, between, read_counters
from tritonstack.client.body import decode
from tritonstack.client.calls import Target
from tritonstack.errors import WorkFailedError
from tritonstack.local.aws import LocalSession

THIS_MACHINE = "this-machine"
"""What stands for the instance type of a local endpoint: no type of SageMaker's has this processor."""
RUNTIME = Config(retries={"total_max_attempts": 1})

Progress = Callable[[str], None]
Keep = Callable[[ResultPart], None]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is measured.

    Attributes:
        configuration: how tables call it.
        target: who is called.
        payload: with what.
        payload_format: in which format.
        manifest: of the archive; None where this caller cannot read it.
    """

    configuration: str
    target: BenchTarget
    payload: Payload
    payload_format: Format
    manifest: Any


class OneModel:
    """Measures a subject. ``keep`` gets the result so far after each load."""

    def __init__(
        self, settings: BenchSettings, subject: Subject, *, session: Any, progress: Progress, keep: Keep
    ) -> None:
        """``session``: makes AWS clients."""
        self._settings = settings
        self._subject = subject
        self._session = session
        self._progress = progress
        self._keep = keep
        self._body = subject.payload.body(subject.payload_format)
        self._points: list[PointPart] = []
        self._silent = False

    async def run(self) -> ResultPart:
        """The whole measurement.

        Raises:
            WorkFailedError: the first call fails, or a container cannot be reached.
        """
        cold = await self._cold() if self._settings.cold_starts else None
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(self._caller(self._signed(self._subject.target.call), None))
            first_call = await self._first(first)
            container = stack.enter_context(self._local_container())
            caller = first
            if self._settings.container and container is not None:
                caller = await stack.enter_async_context(self._caller(self._straight(container), container))
                await self._first(caller)
            result = self._result(caller, first_call=first_call, cold=cold)
            return await self._loads(caller, container, result)

    async def _loads(self, caller: HttpCaller, container: LocalContainer | None, result: ResultPart) -> ResultPart:
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
        )
        ended_by = "every load was measured"
        async for point, server, reason in self._measured(measuring, container):
            self._progress(_line(result, point))
            self._points.append(point_part(point, server))
            if reason is not None:
                ended_by = reason
            result = result.model_copy(update={"points": list(self._points), "ended_by": reason or "under way"})
            self._keep(result)
        if budget.spent:
            ended_by = budget.why
        published = self._publish(measuring) if settings.publish_metric else 0
        return result.model_copy(update={"ended_by": ended_by, "published": published})

    async def _measured(
        self, measuring: Measuring, container: LocalContainer | None
    ) -> AsyncIterator[tuple[Point, tuple[ServerFigures, ...], str | None]]:
        """Each load with Triton's own figures of it, and why it was the last."""
        settings = self._settings
        before = self._counters(container)
        if settings.phases:
            async with contextlib.aclosing(measuring.ramp(settings.phases, settings.stop)) as points:
                async for point, reason in points:
                    after = self._counters(container)
                    yield point, between(before, after), reason
                    before = after
            return
        analyser = self._analyser() if settings.generator == "perf-analyzer" else None
        for load in settings.loads:
            found = await (measuring.level(load) if analyser is None else asyncio.to_thread(analyser.level, load))
            if found is None:
                return
            after = self._counters(container)
            reason = settings.stop.reason(found.all)
            yield found, between(before, after), reason
            before = after
            if reason is not None:
                return

    def _analyser(self) -> Analyser:
        subject = self._subject
        return Analyser(
            self._settings,
            payload=subject.payload,
            endpoint=subject.target.release.endpoint,
            model=subject.target.release.model,
            manifest=subject.manifest,
            local=isinstance(self._session, LocalSession),
        )

    async def _first(self, caller: HttpCaller) -> float:
        """The first call, whose answer must be one. Milliseconds."""
        name = self._subject.target.name
        began = time.perf_counter()
        failure = await caller()
        took = (time.perf_counter() - began) * 1000
        if failure is not None or caller.last is None:
            raise WorkFailedError(f"{name}: the first call failed: {failure}\n  do: tritonstack invoke {name}")
        decode(*caller.last)
        return took

    async def _cold(self) -> ColdPart:
        target = self._subject.target
        self._progress(f"{self._subject.configuration}: {self._settings.cold_starts} cold starts")
        with copies(
            self._session.client("s3"),
            target,
            model_data_url=model_data_url(self._session, target),
            count=self._settings.cold_starts,
        ) as names:
            times, failures = await first_calls(names, self._ask_once)
        return ColdPart(milliseconds=times, failures=failures)

    async def _ask_once(self, archive: str) -> str | None:
        call = Target(endpoint_name=self._subject.target.call.endpoint_name, target_model=archive)
        async with self._caller(self._signed(call), None) as caller:
            return await caller()

    def _signed(self, call: Target) -> Prepare:
        requests = SignedRequests(self._session.client("sagemaker-runtime", config=RUNTIME))
        body = self._body
        return lambda: requests.make(call, body)

    def _straight(self, container: LocalContainer) -> Prepare:
        target, body = self._subject.target, self._body
        named = None
        if target.call.target_model is not None:
            fleet = serving_fleet(self._session.aws.runtime_status(), target.call.endpoint_name)
            named = name_hash_of(fleet, target.call.target_model)
        return lambda: container.request(target, body, name_hash=named)

    @asynccontextmanager
    async def _caller(self, prepare: Prepare, container: LocalContainer | None) -> AsyncIterator[HttpCaller]:
        async with http_caller(
            prepare,
            connections=self._settings.most_under_way,
            timeout_seconds=self._settings.timeout_seconds,
            open_socket=None if container is None else container.open_socket,
            proxies=not isinstance(self._session, LocalSession),
        ) as caller:
            yield caller

    @contextmanager
    def _local_container(self) -> Iterator[LocalContainer | None]:
        """The container of a local endpoint; None in the cloud, or where only its figures would be had of it."""
        if not isinstance(self._session, LocalSession):
            yield None
            return
        with contextlib.ExitStack() as stack:
            try:
                status = self._session.aws.runtime_status()
                entered = local_container(status, self._subject.target.call.endpoint_name)
                container: LocalContainer | None = stack.enter_context(entered)
            except WorkFailedError as error:
                if self._settings.container:
                    raise
                self._progress(f"without Triton's own figures: {error}")
                container = None
            yield container

    def _result(self, caller: HttpCaller, *, first_call: float, cold: ColdPart | None) -> ResultPart:
        subject, target = self._subject, self._subject.target
        manifest = subject.manifest or {}
        local = isinstance(self._session, LocalSession)
        return ResultPart(
            configuration=subject.configuration,
            name=target.name,
            endpoint=target.call.endpoint_name,
            archive=str(target.release.archive),
            archive_sha256=manifest.get("archive", {}).get("sha256"),
            config=dict(manifest.get("configs", {})),
            variant=target.fleet.variant,
            instance_type=THIS_MACHINE if local else target.fleet.instance_type or "unknown",
            instance_count=1 if local else target.fleet.instance_count or 1,
            image=target.fleet.image,
            way="container" if self._settings.container else "endpoint",
            generator="aiohttp, one process"
            if self._settings.generator == "client"
            else "perf_analyzer through the proxy",
            payload_format=subject.payload_format,
            payload=subject.payload.source,
            request_bytes=len(self._body.content),
            answer_bytes=len(caller.last[0]) if caller.last else 0,
            first_call_ms=first_call,
            cold=cold,
            points=[],
            endpoint_figures=[],
            published=0,
            ended_by="under way",
        )

    def _counters(self, container: LocalContainer | None) -> dict[tuple[str, str], float]:
        """Triton's own counters; none where its metrics are off, as SageMaker's script has them unless told."""
        if container is None or self._silent:
            return {}
        try:
            return read_counters(container.metrics())
        except WorkFailedError as error:
            self._silent = True
            self._progress(f"without Triton's own figures: {error}\n  do: container: {{allow_metrics: true}}")
            return {}

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


def model_data_url(session: Any, target: BenchTarget) -> str:
    """The prefix under which a multi-model endpoint finds its archives."""
    sagemaker = session.client("sagemaker")
    described = sagemaker.describe_endpoint(EndpointName=target.call.endpoint_name)
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    return str(model["PrimaryContainer"]["ModelDataUrl"])


def _line(result: ResultPart, point: Point) -> str:
    latency = "".join(
        f", p{share:g} {value:.4g} ms" for share, value in point.all.percentiles_ms.items() if share >= 50
    )
    rounds = f"{len(point.rounds)} round{'' if len(point.rounds) == 1 else 's'}"
    stable = "" if point.agreement.stable or len(point.rounds) == 1 else ", not stable"
    failed = f", {point.all.failed} failed" if point.all.failed else ""
    return (
        f"{result.configuration} ({result.payload_format}): {point.load}: {point.all.per_minute:,.0f} a minute"
        f"{latency} ({rounds}{stable}{failed})"
    )
