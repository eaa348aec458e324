"""One subject measured: cold starts, first request, loads, and CloudWatch's metrics of the endpoint meanwhile."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlparse

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.client.body import decode
from tritonstack.client.latency_metric import Called, LatencyMetric
from tritonstack.errors import WorkFailedError
from tritonstack.local_aws import LocalSession, find_local_aws, is_local
from tritonstack.naming import DIGEST_LENGTH, ArchiveName
from tritonstack_capacity.bench.container import (
    LocalContainer,
    ServerCounters,
    local_container,
    name_hash_of,
    serving_fleet,
)
from tritonstack_capacity.bench.document import EVERY_LOAD, ColdPart, EndpointPart, ResultPart, result_part
from tritonstack_capacity.bench.http_caller import HttpCaller, ReadyRequest, SignedRequests, http_caller
from tritonstack_capacity.bench.load import Budget
from tritonstack_capacity.bench.measuring import Measuring, PointPart, load_line
from tritonstack_capacity.bench.perf_analyzer import Analyser, kserve_data, running_proxy
from tritonstack_capacity.bench.settings import MOST_THREADS, BenchSettings, Progress
from tritonstack_capacity.bench.stream_caller import StreamCaller
from tritonstack_capacity.bench.subject import BenchTarget, Subject, describe_endpoint
from tritonstack_capacity.bench.utilization import ContainerUtilization, highest_of

ONCE = Config(retries={"total_max_attempts": 1})


# SageMaker has no request that unloads a model. A copy of the archive under a name without requests is as cold: the
# instance downloads, unpacks and loads it. The copies are removed from the bucket at the end; instances keep what they
# have loaded until they need the memory.


@contextmanager
def copies(s3: Any, target: BenchTarget, *, model_data_url: str, count: int) -> Iterator[list[str]]:
    """``count`` copies of a model's archive in its folder, for as long as the block lasts.

    Raises WorkFailedError: this caller may not write there, or the archive is not there.
    """
    place = urlparse(model_data_url)
    bucket, prefix = place.netloc, place.path.lstrip("/")
    names = [
        str(ArchiveName(model=target.release.model, digest=secrets.token_hex(DIGEST_LENGTH // 2))) for _ in range(count)
    ]
    source = {"Bucket": bucket, "Key": f"{prefix}{target.release.archive}"}
    made: list[str] = []
    try:
        for name in names:
            s3.copy(source, bucket, f"{prefix}{name}")
            made.append(name)
        yield made
    except (ClientError, BotoCoreError) as error:
        said = f"no copy of {target.release.archive} in {model_data_url} for a cold start"
        raise WorkFailedError(f"{said}: {error}") from error
    finally:
        for name in made:
            s3.delete_object(Bucket=bucket, Key=f"{prefix}{name}")


def endpoint_figures(
    cloudwatch: Any, *, endpoint: str, variant: str, begin: datetime, end: datetime
) -> list[EndpointPart]:
    """SageMaker's latencies of the minutes from ``begin`` to ``end``; empty where it has none yet, or none are given.

    A minute's figures come a minute or two after it (SageMaker developer guide, CloudWatch metrics).
    """
    start = begin.replace(second=0, microsecond=0)
    stop = end.replace(second=0, microsecond=0) + timedelta(minutes=1)
    period = int((stop - start).total_seconds())
    found = []
    for metric in (aws_names.MODEL_LATENCY, aws_names.OVERHEAD_LATENCY):
        asked = {
            "Namespace": aws_names.SAGEMAKER,
            "MetricName": metric,
            "Dimensions": aws_names.dimension_list(aws_names.variant_dimensions(endpoint, variant)),
            "StartTime": start,
            "EndTime": stop,
            "Period": period,
        }
        try:
            simple = cloudwatch.get_metric_statistics(**asked, Statistics=["SampleCount", "Average"])["Datapoints"]
            shares = ["p50", "p95", "p99"]
            extended = cloudwatch.get_metric_statistics(**asked, ExtendedStatistics=shares)["Datapoints"]
        except (ClientError, BotoCoreError):
            return []
        if not simple or not extended:
            continue
        values = extended[0]["ExtendedStatistics"]
        found.append(
            EndpointPart(
                metric=metric,
                invocations=int(simple[0]["SampleCount"]),
                mean_ms=simple[0]["Average"] / 1000,
                **{f"{share}_ms": values[share] / 1000 for share in shares},
            )
        )
    return found


Keep = Callable[[ResultPart], object]


class OneModel:
    """Measures a subject. ``keep`` gets the result so far after each load.

    Attributes:
        result: so far.
        times: begin and end of each load of ``result.points``.
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
        self._body = subject.body
        self.result = result_part(subject, self._body, local=self._local, container=settings.container)
        self.times: list[tuple[datetime, datetime]] = []

    async def run(self) -> None:
        """Run the whole measurement; ``result`` holds its outcome.

        Raises WorkFailedError: a first request fails, or AWS or a container cannot be reached.
        """
        try:
            await self._run()
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(f"{self._subject.target.name} cannot be invoked: {error}") from error

    async def _run(self) -> None:
        await self._cold_starts()
        async with AsyncExitStack() as stack:
            caller = await stack.enter_async_context(self._caller())
            await self._first_call(caller)
            container = stack.enter_context(self._container())
            if container is not None:
                self._set(server_version=container.server_version)
            if self._settings.container and container is not None:
                caller = await stack.enter_async_context(self._caller(container=container))
                await self._first_call(caller)
            await self._loads(stack, caller, container)

    def _caller(
        self, archive: str | None = None, *, container: LocalContainer | None = None
    ) -> AbstractAsyncContextManager[HttpCaller]:
        """Keeps its connections while its block lasts.

        By InvokeEndpoint, of another ``archive`` than the subject's; or straight at the port of a local ``container``.
        """
        target, name_hash = self._subject.target, None if container is None else self._name_hash()
        call = target.call if archive is None else replace(target.call, target_model=archive)
        requests = SignedRequests(self._session.client("sagemaker-runtime", config=ONCE))

        def prepare() -> ReadyRequest:
            if container is not None:
                return container.request(target, self._body, name_hash=name_hash)
            return requests.make(call, self._body, streamed=self._subject.streams)

        return http_caller(
            prepare,
            kind=StreamCaller if self._subject.streams else HttpCaller,
            connections=self._settings.most_under_way,
            timeout_seconds=self._settings.timeout_seconds,
            open_socket=None if container is None else container.open_socket,
            proxies=not self._local,
        )

    async def _cold_starts(self) -> None:
        """The first requests to copied archives that no instance has loaded, one after the other."""
        count, times, failures = self._settings.cold_starts, list[float](), list[str]()
        if not count:
            return
        self._progress.say(f"{self._subject.title}: {count} cold starts")
        target = self._subject.target
        _, _, model = describe_endpoint(self._sagemaker, target.call.endpoint_name)
        url = str(model["PrimaryContainer"]["ModelDataUrl"])
        with copies(self._session.client("s3"), target, model_data_url=url, count=count) as names:
            for name in names:
                began = time.perf_counter()
                failure = await self._ask_archive(name)
                if failure is None:
                    times.append((time.perf_counter() - began) * 1000)
                else:
                    failures.append(failure)
        self._set(cold=ColdPart(milliseconds=times, failures=failures), calls=count)

    async def _ask_archive(self, archive: str) -> str | None:
        async with self._caller(archive) as caller:
            return await caller()

    async def _first_call(self, caller: HttpCaller) -> None:
        """A request that must succeed; the first of all is kept."""
        name = self._subject.target.name
        self._progress.say(f"{self._subject.title}: first request")
        began = time.perf_counter()
        failure = await caller()
        took = (time.perf_counter() - began) * 1000
        if failure is not None or caller.last is None:
            stream = " --stream" if self._subject.streams else ""
            raise WorkFailedError(
                f"{name}: the first request failed: {failure}\n  do: tritonstack invoke {name}{stream}"
            )
        if not isinstance(caller, StreamCaller):  # which has read the events
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
            on_round=lambda line: self._progress.say(f"{self._subject.title}: {line}"),
        )
        analyser: Analyser | None = None
        if settings.generator == "perf-analyzer":
            chosen = isinstance(self._session, LocalSession)  # by option or name; variables are inherited
            options = ["--concurrency", str(min(settings.most_under_way, MOST_THREADS)), *["--local"] * chosen]
            address = stack.enter_context(running_proxy(settings.environment, *options))
            release = self._subject.target.release
            way = ["-m", f"{release.endpoint}/{release.model}", "-u", address]
            data = kserve_data(self._subject.payload, self._subject.manifest)
            analyser = Analyser(settings, way, data=data, budget=budget)
        counters = ServerCounters(container, progress=self._progress)
        usage = ContainerUtilization(None if container is None else container.pid)
        times = caller.times if isinstance(caller, StreamCaller) else None
        if times is not None:
            times.take()  # the first request's
        points = (
            measuring.ramp(settings.phases, settings.stop) if settings.phases else self._levels(analyser or measuring)
        )
        ended_by, before, began = EVERY_LOAD, self.result.calls, datetime.now(UTC)
        async with contextlib.aclosing(points):
            async for point, reason in points:
                ended_by = reason or ended_by
                self._progress.note(load_line(self._subject.title, point))
                changes = {"server": counters.since(), "utilization": usage.since()}
                found = point.model_copy(update=changes | {"stream": None if times is None else times.take()})
                points_so_far = [*self.result.points, found]
                self._set(
                    points=points_so_far,
                    utilization=highest_of(each.utilization for each in points_so_far),
                    calls=before + settings.max_calls - budget.calls,
                )
                self.times.append((began, ended := datetime.now(UTC)))
                began = ended
                if analyser is not None:
                    self._set(generator=f"perf_analyzer {analyser.version}")
                self._keep(self.result)
        calls = before + settings.max_calls - budget.calls
        published = self._publish(measuring) if settings.publish_metric else 0
        self._set(ended_by=budget.why or ended_by, calls=calls, published=published)

    def _publish(self, measuring: Measuring) -> int:
        """Put the latencies to CloudWatch, as a client does; returns how many. Raises WorkFailedError."""
        target = self._subject.target
        metric = LatencyMetric(lambda: self._session.client("cloudwatch"), now=time.time)
        called = Called(target.call.endpoint_name, target.variant or "unknown", target.release.model)
        for latency in measuring.latencies_ms():
            metric.add(called, latency)
        return metric.publish()

    async def _levels(self, generator: Measuring | Analyser) -> AsyncGenerator[tuple[PointPart, str | None]]:
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
        """Fleets of the local runtime. Raises WorkFailedError where another local AWS than ours is called."""
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
        """The container's name of the archive; None: it has one model."""
        call = self._subject.target.call
        if call.target_model is None:
            return None
        return name_hash_of(serving_fleet(self._runtime_status(), call.endpoint_name), call.target_model)

    def _set(self, **changes: Any) -> None:
        self.result = self.result.model_copy(update=changes)
