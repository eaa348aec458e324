"""One model in one container of its own: unpacked, loaded, called, measured, as SageMaker's front end serves it."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import uvloop

from tritonstack.archives.config_merge import ConfigFile, merge_configs
from tritonstack.archives.unpacking import UnpackLimits, unpack
from tritonstack.bench.budget import Budget
from tritonstack.bench.entrance import entrance
from tritonstack.bench.http_caller import HttpCaller, OpenSocket, http_caller
from tritonstack.bench.load import Users
from tritonstack.bench.measuring import Measuring, Timing
from tritonstack.bench.request import ReadyRequest
from tritonstack.bench.stability import StabilityRule
from tritonstack.bench.triton_statistics import between, read_counters
from tritonstack.client.body import Body
from tritonstack.errors import WorkFailedError
from tritonstack.local.container import ContainerSettings, TritonContainer, prepare_model_data

TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
HASH = "0123456789abcdef"
METRICS_PORT = 8002
LIMITS = UnpackLimits(max_bytes=2**33, max_members=10_000)
TIMING = Timing(warm_up=1.0, round=4.0)
ONCE = StabilityRule(within=0.1, confidence=0.95, least=1, most=1, percentile=95.0)
CONFIDENCE = 0.95
COLD_STARTS = 3
TURNS = 5
MOST_CALLS, MOST_SECONDS, TIMEOUT_SECONDS = 10_000_000, 600.0, 60.0


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How a model is served.

    Attributes:
        name: in the table.
        archive: the model's .tar.gz.
        model: the folder in it.
        fragment: what is merged over its ``config.pbtxt``.
        arguments: of the server, besides those of SageMaker's script.
        users: of the closed loop; 0: no load, the cold start alone.
        body: the request.
    """

    name: str
    archive: Path
    model: str
    body: Body
    fragment: str = ""
    arguments: str = ""
    users: int = 1


@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """Seconds; ``first_call``: of the first call after the load."""

    unpack: float
    load: float
    first_call: float

    @property
    def whole(self) -> float:
        """From the archive on the disk to the first answer."""
        return self.unpack + self.load + self.first_call


@dataclass(frozen=True, kw_only=True)
class Load:
    """What came of a variant's turns.

    Attributes:
        rates: answers a second of each turn.
        p50_ms, p95_ms: of all turns' calls.
        mean_batch: inferences in one execution, as Triton counts them; None where it executed nothing.
    """

    rates: list[float]
    p50_ms: float
    p95_ms: float
    mean_batch: float | None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of a variant."""

    cold: list[ColdStart]
    load: Load | None

    def median(self, part: Callable[[ColdStart], float]) -> float:
        """Of the cold starts."""
        return statistics.median(part(one) for one in self.cold)


def measure(variants: Sequence[Variant]) -> list[Measured]:
    """Cold starts, then loads. All take turns, so that what else runs on this machine meets each of them alike.

    Raises:
        WorkFailedError: a model is not loaded, or a call fails.
    """
    colds: list[list[ColdStart]] = [[] for _ in variants]
    for turn in range(COLD_STARTS):
        for number in _order(len(variants), turn):
            with _served(variants[number]) as (cold, _):
                colds[number].append(cold)
    if not all(variant.users for variant in variants):
        return [Measured(cold=cold, load=None) for cold in colds]
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_served(variant))[1] for variant in variants]
        loads = uvloop.run(_loads(variants, sockets))
    return [Measured(cold=cold, load=load) for cold, load in zip(colds, loads, strict=True)]


def _order(count: int, turn: int) -> list[int]:
    """Every other turn the other way round."""
    return list(range(count))[:: -1 if turn % 2 else 1]


@contextmanager
def _served(variant: Variant) -> Iterator[tuple[ColdStart, OpenSocket]]:
    """The variant loaded in a container of its own, and called once."""
    with (
        tempfile.TemporaryDirectory(prefix="measurements-") as name,
        _container(variant, Path(name)) as container,
        _open_socket(container) as open_socket,
    ):
        began = time.perf_counter()
        folder = container.model_folder(HASH)
        folder.parent.mkdir(parents=True)
        unpack(variant.archive, folder, limits=LIMITS)
        unpacked = time.perf_counter()
        _configure(folder, variant)
        began_load = time.perf_counter()
        _load(container, variant)
        loaded = time.perf_counter()
        first_call = uvloop.run(_first_call(variant, open_socket))
        yield ColdStart(unpack=unpacked - began, load=loaded - began_load, first_call=first_call), open_socket


async def _first_call(variant: Variant, open_socket: OpenSocket) -> float:
    async with _caller(variant, open_socket) as caller:
        began = time.perf_counter()
        failure = await caller()
        if failure is not None:
            raise WorkFailedError(f"{variant.name}: {failure}")
        return time.perf_counter() - began


async def _loads(variants: Sequence[Variant], sockets: Sequence[OpenSocket]) -> list[Load]:
    async with contextlib.AsyncExitStack() as stack:
        measuring = []
        for variant, open_socket in zip(variants, sockets, strict=True):
            caller = await stack.enter_async_context(_caller(variant, open_socket))
            measuring.append(_measuring(variant, caller))
        before = [read_counters(_metrics(open_socket)) for open_socket in sockets]
        rates: list[list[float]] = [[] for _ in variants]
        for turn in range(TURNS):
            for number in _order(len(variants), turn):
                point = await measuring[number].level(Users(count=variants[number].users))
                if point is None or point.all.failed:
                    told = "no whole round" if point is None else point.failures
                    raise WorkFailedError(f"{variants[number].name}: {told}")
                rates[number].append(point.all.per_minute / 60)
        found = []
        for number, open_socket in enumerate(sockets):
            counted = between(before[number], read_counters(_metrics(open_socket)))
            p50, p95 = np.percentile(measuring[number].latencies_ms(), (50, 95))
            batch = counted[0].mean_batch if counted and counted[0].mean_batch else None
            found.append(Load(rates=rates[number], p50_ms=float(p50), p95_ms=float(p95), mean_batch=batch))
        return found


def _measuring(variant: Variant, caller: HttpCaller) -> Measuring:
    return Measuring(
        caller,
        timing=TIMING,
        rule=ONCE,
        budget=Budget(calls=MOST_CALLS, seconds=MOST_SECONDS, now=time.perf_counter),
        seed=0,
        most_under_way=variant.users,
        now=time.perf_counter,
    )


def _caller(variant: Variant, open_socket: OpenSocket) -> contextlib.AbstractAsyncContextManager[HttpCaller]:
    headers = {"Content-Type": variant.body.content_type, TARGET_MODEL: _target(variant)}
    url = f"http://127.0.0.1:8080/models/{HASH}/invoke"
    request = ReadyRequest(url=url, headers=headers, body=variant.body.content)
    return http_caller(
        lambda: request,
        connections=max(1, variant.users),
        timeout_seconds=TIMEOUT_SECONDS,
        open_socket=open_socket,
    )


@contextmanager
def _container(variant: Variant, folder: Path) -> Iterator[TritonContainer]:
    environment = {
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_ALLOW_METRICS": "true",
        **({"SAGEMAKER_TRITON_ADDITIONAL_ARGS": variant.arguments} if variant.arguments else {}),
    }
    settings = ContainerSettings(environment=environment, multi_model=True, release="24.09")
    with TritonContainer.start(settings, folder=folder / "container") as container:
        container.wait_ready(60)
        yield container


@contextmanager
def _open_socket(container: TritonContainer) -> Iterator[OpenSocket]:
    if container.isolation != "namespace":
        yield functools.partial(socket.socket, socket.AF_INET, socket.SOCK_STREAM)
        return
    with entrance(container.pid) as opened:
        yield opened.open_socket


def _configure(folder: Path, variant: Variant) -> None:
    config = folder / variant.model / "config.pbtxt"
    base = ConfigFile(file=str(config), text=config.read_text())
    fragments: Sequence[ConfigFile] = [ConfigFile(file=variant.name, text=variant.fragment)] if variant.fragment else []
    config.write_text(merge_configs(base, fragments))
    prepare_model_data(folder)


def _target(variant: Variant) -> str:
    return f"{variant.model}.{HASH}.tar.gz"


def _load(container: TritonContainer, variant: Variant) -> None:
    connection = http.client.HTTPConnection("localhost")
    with contextlib.closing(connection):
        connection.sock = container.connect()
        body = json.dumps({"model_name": HASH, "url": container.model_url(HASH)})
        connection.request("POST", "/models", body, {TARGET_MODEL: _target(variant)})
        answer = connection.getresponse()
        text = answer.read().decode()
    if answer.status != 200:
        raise WorkFailedError(f"{variant.name} was not loaded: {answer.status} {text}\n{container.log_tail()}")


def _metrics(open_socket: OpenSocket) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", METRICS_PORT)
    with contextlib.closing(connection):
        made = open_socket()
        made.connect(("127.0.0.1", METRICS_PORT))
        connection.sock = made
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
