"""What the runtime's tests put in the place of the local AWS, and a runtime over it."""

from __future__ import annotations

import asyncio
import functools
import io
import json
import tarfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec

import boto3
from botocore.config import Config

from tests.local_keys import KEYS
from tests.tritonstack_local.runtime.fake_triton import FakeTriton
from tritonstack.loopback.http_server import HttpResponse, InvokeError, Request
from tritonstack_local.runtime.app import Runtime
from tritonstack_local.runtime.callers import Authority
from tritonstack_local.runtime.deployed import (
    DeployedComponent,
    DeployedConfig,
    DeployedEndpoint,
    DeployedModel,
    DeploymentError,
    EmulatorReader,
    Reported,
    S3Location,
    Traffic,
    UnreachableError,
)
from tritonstack_local.runtime.endpoint import RunningEndpoint
from tritonstack_local.runtime.errors import model_data_not_found
from tritonstack_local.runtime.fleet import FleetParts, RunningFleet
from tritonstack_local.runtime.model_store import S3Objects
from tritonstack_local.runtime.settings import RuntimeSettings

P = ParamSpec("P")
ROLE = "arn:aws:iam::123456789012:role/execution"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver"


def signed(access_key: str) -> dict[bytes, bytes]:
    """The header of a request's signature (Signature Version 4)."""
    scope = f"{access_key}/20260101/us-east-1/sagemaker/aws4_request"
    return {b"authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0".encode()}


def asynchronous(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an asynchronous test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


async def until(condition: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("it never came to hold")
        await asyncio.sleep(0.005)


def fails_with(error: Exception) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that raises."""

    async def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def archive(text: str = "a model", *, name: str = "model.txt") -> bytes:
    """A gzip-compressed tar archive with one file."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(text.encode())
        tar.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


class FakeObjects(S3Objects):
    """A bucket. Every ``<letter>.tar.gz`` below ``prefix/`` exists unless ``missing`` names it; reading one may raise
    what ``errors`` has for it."""

    def __init__(self) -> None:
        """Full."""
        self.missing: set[str] = set()
        self.contents: dict[str, bytes] = {}
        self.errors: dict[str, Exception] = {}
        self.downloads: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def chunks(self, location: S3Location) -> Iterator[bytes]:
        """An object's bytes."""
        self.downloads.append(location.key)
        name = location.key.rpartition("/")[2]
        if name in self.missing:
            raise model_data_not_found(bucket=location.bucket, key=location.key)
        self.gate.wait(30)
        if name in self.errors:
            raise self.errors[name]
        data = self.contents.get(name) or archive(name)
        yield data[:10]
        yield data[10:]


class FakeAuthority(Authority):
    """IAM: every access key may invoke but those in ``refused``."""

    def __init__(self) -> None:
        """Reachable."""
        self.refused: dict[str, InvokeError] = {}
        self.asked: list[tuple[str, str, Mapping[str, str]]] = []
        self.actions: list[str] = []
        self.reachable = True

    def refusal(self, *, access_key: str, action: str, resource: str, context: Mapping[str, str]) -> InvokeError | None:
        """The decision."""
        self.actions.append(action)
        self.asked.append((access_key, resource, context))
        if not self.reachable:
            raise UnreachableError("connection refused")
        return self.refused.get(access_key)


class FakeReader(EmulatorReader):
    """What is deployed, as the emulator keeps it: a report ends a deployment."""

    def __init__(self) -> None:
        """Nothing is deployed."""
        self.described: dict[str, DeployedEndpoint] = {}
        self.configs: dict[str, tuple[DeployedConfig, ...]] = {}
        self.reports: list[tuple[str, str, str, str]] = []
        self.shifts: list[tuple[str, int]] = []
        self.in_steps: set[str] = set()
        self.reachable = True
        self._deployments = 0

    def mark(self) -> str:
        """Differs when what is deployed does."""
        if not self.reachable:
            raise UnreachableError("connection refused")
        return repr(self.described)

    def endpoints(self) -> tuple[DeployedEndpoint, ...]:
        """Every endpoint."""
        if not self.reachable:
            raise UnreachableError("connection refused")
        return tuple(self.described.values())

    def config(self, name: str) -> tuple[DeployedConfig, ...]:
        """The variants of an endpoint config."""
        if name not in self.configs:
            raise DeploymentError(f"Could not find endpoint configuration {name}")
        return self.configs[name]

    def report(self, *, endpoint: str, config: str, outcome: str, reason: str = "", instances: int = 0) -> Reported:
        """What the emulator does with a report."""
        found = self.described.get(endpoint)
        if outcome == "shifted":
            self.shifts.append((config, instances))
            return Reported.IN_PROGRESS
        self.reports.append((endpoint, config, outcome, reason))
        if found is None or found.pending != config:
            return Reported.NOT_AWAITED
        if outcome == "failed":
            status = "Failed" if found.status == "Creating" else "InService"
            self.described[endpoint] = replace(found, status=status, pending=None)
        elif config in self.in_steps:
            return Reported.IN_PROGRESS
        else:
            self.end(endpoint, config)
        return Reported.ENDED

    def component(self, name: str, *, model: str | None, copies: int, endpoint: str = "e") -> None:
        """A change of a component, or its creation; ``model`` None keeps the one that serves."""
        found = self.described.get(endpoint) or DeployedEndpoint(
            name=endpoint,
            status="InService",
            config="config-1",
            pending=None,
            created="1",
            generation="1",
            has_components=True,
        )
        others = [each for each in found.components if each.name != name]
        before = next((each for each in found.components if each.name == name), None)
        changed = DeployedComponent(
            name=name,
            endpoint=endpoint,
            variant="fleet",
            generation=before.generation + 1 if before else 1,
            serving=before.serving if before else None,
            pending=model or (before.serving if before else None),
            copies=copies,
        )
        self.described[endpoint] = replace(found, components=(*others, changed))

    def component_config(self, component: DeployedComponent) -> DeployedConfig:
        """As ``config`` of the model's name."""
        model = component.pending or component.serving
        if model not in self.configs:
            raise DeploymentError(f"Could not find model {model}")
        return replace(self.configs[model][0], variant=component.variant, component=component.name)

    def report_component(self, component: DeployedComponent, *, outcome: str, reason: str = "") -> bool:
        """What the emulator does with a report."""
        found = self.described[component.endpoint]
        now = next((each for each in found.components if each.name == component.name), None)
        if now is None or now.generation != component.generation or now.pending is None:
            return False
        self.reports.append((component.name, str(now.pending), outcome, reason))
        serving = now.pending if outcome == "in_service" else now.serving
        ended = replace(now, serving=serving, pending=None)
        others = [each for each in found.components if each.name != component.name]
        self.described[component.endpoint] = replace(found, components=(*others, ended))
        return True

    def shift(self, endpoint: str, instances: int, *, of: int = 4) -> None:
        """A step of a deployment: the new fleet is to take the calls of so many instances."""
        self.described[endpoint] = replace(self.described[endpoint], traffic=Traffic(instances=instances, of=of))

    def end(self, endpoint: str, config: str | None) -> None:
        """A deployment is over, and ``config`` in service: the new one, or the old one again."""
        found = self.described[endpoint]
        self.described[endpoint] = replace(found, status="InService", config=config, pending=None, traffic=None)

    def deploy(
        self,
        endpoint: str,
        config: DeployedConfig,
        *others: DeployedConfig,
        max_models: int | None = None,
        weights: tuple[float, ...] = (),
        pools: Mapping[str, int] | None = None,
    ) -> None:
        """CreateEndpoint, or UpdateEndpoint where there is one, with the variants of a config."""
        variants = (config, *others)
        self.configs[config.name] = variants
        self._deployments += 1
        before = self.described.get(endpoint)
        self.described[endpoint] = DeployedEndpoint(
            name=endpoint,
            status="Updating" if before else "Creating",
            config=before.config if before else None,
            pending=config.name,
            created=before.created if before else str(self._deployments),
            generation=str(self._deployments),
            instance_counts={one.variant: one.instance_count for one in variants},
            weights={
                **(before.weights if before else {}),
                **{(one.name, one.variant): weight for one, weight in zip(variants, weights, strict=False)},
            },
            pools={(config.name, config.variant): pools} if pools else {},
            max_loaded_models=max_models,
        )


def config(name: str = "config-1", *, multi_model: bool = True, **changes: Any) -> DeployedConfig:
    """A variant of an endpoint config, over a model."""
    model = DeployedModel(
        name=f"{name}-model",
        image=f"{IMAGE}:{changes.pop('release', '24.09')}-py3",
        environment={"SAGEMAKER_TRITON_LOG_VERBOSE": "false", **changes.pop("environment", {})},
        multi_model=multi_model,
        data=S3Location(bucket="models", key=changes.pop("key", "prefix/" if multi_model else "prefix/one.tar.gz")),
        cache_enabled=changes.pop("cache_enabled", True),
        role=ROLE,
    )
    return DeployedConfig(
        name=name,
        variant=changes.pop("variant", "g4dn-xlarge"),
        instance_type="ml.g4dn.xlarge",
        instance_count=changes.pop("instance_count", 1),
        download_seconds=changes.pop("download_seconds", 60.0),
        startup_seconds=changes.pop("startup_seconds", 20.0),
        model=model,
    )


class Recorder:
    """A boto3 client that responds to every request and records it."""

    def __init__(self) -> None:
        """Nothing was called."""
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        """Any operation."""

        def operation(**arguments: Any) -> dict[str, Any]:
            self.calls.append((name, arguments))
            return {}

        return operation


@dataclass
class Stage:
    """A runtime over fakes, and the way to call it."""

    runtime: Runtime
    triton: FakeTriton
    reader: FakeReader
    objects: FakeObjects
    cloudwatch: Recorder
    logs: Recorder
    authority: FakeAuthority
    roles: list[str]  # as which the archives are downloaded and the logs written
    port: int = 0
    at_once: int = 0
    _client: Any = field(default=None)

    async def call(
        self,
        target: str | None = "a.tar.gz",
        *,
        endpoint: str = "e",
        body: bytes = b"x",
        variant: str | None = None,
        component: str | None = None,
        access_key: str = "testing",
    ) -> HttpResponse:
        """InvokeEndpoint as the HTTP server hands it over: at once where that goes. Raises InvokeError."""
        headers = {b"content-type": b"application/json", **signed(access_key)}
        if target is not None:
            headers[b"x-amzn-sagemaker-target-model"] = target.encode()
        if variant is not None:
            headers[b"x-amzn-sagemaker-target-variant"] = variant.encode()
        if component is not None:
            headers[b"x-amzn-sagemaker-inference-component"] = component.encode()
        request = Request(
            method=b"POST",
            path=f"/endpoints/{endpoint}/invocations".encode(),
            headers=headers,
            body=body,
            received=time.monotonic(),
            id="request",
        )
        ended: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

        def done(outcome: HttpResponse | Exception) -> None:
            if ended.done():
                return
            if isinstance(outcome, HttpResponse):
                ended.set_result(outcome)
            else:
                ended.set_exception(outcome)

        if self.runtime.handle_at_once(request, done):
            self.at_once += 1
            return await ended
        return await self.runtime.handle(request)

    async def model_of(self, target: str) -> str:
        """The model that responded."""
        return str(json.loads((await self.call(target)).body)["model"])

    def fleet(self, endpoint: str = "e") -> RunningFleet:
        """The only fleet in service."""
        serving = self.endpoint(endpoint).serving
        assert serving is not None
        assert serving.only is not None
        return serving.only

    def endpoint(self, name: str = "e") -> RunningEndpoint:
        """An endpoint whose variants have models."""
        found = self.runtime.reconciler.endpoints[name]
        assert isinstance(found, RunningEndpoint)
        return found

    async def boto3(self, **arguments: Any) -> Any:
        """InvokeEndpoint through boto3, in a thread; the response's Body is already read."""

        def invoke() -> dict[str, Any]:
            response = self.client.invoke_endpoint(**arguments)
            return {**response, "Body": response["Body"].read()}

        return await asyncio.to_thread(invoke)

    @property
    def client(self) -> Any:
        """A sagemaker-runtime client without retries."""
        if self._client is None:
            self._client = boto3.session.Session().client(
                "sagemaker-runtime",
                endpoint_url=f"http://127.0.0.1:{self.port}",
                region_name="us-east-1",
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
                config=Config(retries={"total_max_attempts": 1}),
            )
        return self._client

    async def in_service(self, name: str = "config-1", *, endpoint: str = "e") -> None:
        """Wait until a config serves and the emulator has its report."""
        await until(lambda: self.serves(name, endpoint))

    def serves(self, name: str, endpoint: str = "e") -> bool:
        """Whether this config's fleet takes the traffic."""
        found = self.runtime.reconciler.endpoints.get(endpoint)
        return isinstance(found, RunningEndpoint) and found.serving is not None and found.serving.config_name == name


class Callers:
    """Eight callers that send requests until ``stop``; a failed request raises there."""

    def __init__(self, at: Stage) -> None:
        """They begin at once."""
        self._at, self._stop, self.answered = at, asyncio.Event(), 0
        self._tasks = [asyncio.create_task(self._call(f"m{number}.tar.gz")) for number in range(8)]

    async def _call(self, target: str) -> None:
        while not self._stop.is_set():
            assert await self._at.model_of(target) == target
            self.answered += 1

    async def more(self, count: int = 100) -> None:
        """Wait for the given number of further responses."""
        goal = self.answered + count
        await until(lambda: self.answered >= goal or any(task.done() for task in self._tasks))

    async def stop(self) -> None:
        """Every request has a response."""
        self._stop.set()
        await asyncio.gather(*self._tasks)


def settings(folder: Path, **changes: Any) -> RuntimeSettings:
    """Quick settings for tests."""
    quick = RuntimeSettings(
        port=0,
        emulator_url="http://127.0.0.1:1",
        keys=KEYS,
        state=folder,
        invoke_seconds=10.0,
        reconcile_seconds=0.01,
        quiet_seconds=0.01,
        victim_patience_seconds=0.05,
        max_parallel_loads=4,
    )
    return replace(quick, **changes)


@asynccontextmanager
async def stage(
    folder: Path,
    *deployed: DeployedConfig,
    max_models: int | None = None,
    objects: FakeObjects | None = None,
    real: bool = False,
    weights: tuple[float, ...] = (),
    **changes: Any,
) -> AsyncIterator[Stage]:
    """A runtime in which endpoint ``e`` serves the variants ``deployed``; ``real`` starts the real Triton."""
    triton, reader, objects = FakeTriton(), FakeReader(), objects or FakeObjects()
    chosen = settings(folder, **changes)
    cloudwatch, logs, authority, roles = Recorder(), Recorder(), FakeAuthority(), list[str]()

    def of_role(made: FakeObjects | Recorder, role: str) -> Any:
        roles.append(role)
        return made

    parts = FleetParts(settings=chosen, objects=functools.partial(of_role, objects), check_role=lambda _role: None)
    if not real:
        parts = replace(parts, launch=triton.launch, prepare=lambda _folder, _release: None)
    runtime = Runtime(
        parts=parts,
        reader=reader,
        cloudwatch=cloudwatch,
        logs=functools.partial(of_role, logs),
        authority=authority,
    )
    made = Stage(
        runtime=runtime,
        triton=triton,
        reader=reader,
        objects=objects,
        cloudwatch=cloudwatch,
        logs=logs,
        authority=authority,
        roles=roles,
    )
    made.port = await runtime.start()
    try:
        if deployed:
            reader.deploy("e", *deployed, max_models=max_models, weights=weights)
            await made.in_service(deployed[0].name)
        yield made
    finally:
        for event in (*triton.held.values(), *triton.held_loads.values()):
            event.set()
        objects.gate.set()
        await runtime.stop()
