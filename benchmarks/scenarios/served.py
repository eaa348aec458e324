"""One model in one container of its own: unpacked, loaded, called, measured, as SageMaker's front end serves it."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tritonstack.archives.config_merge import ConfigFile, merge_configs
from tritonstack.archives.unpacking import UnpackLimits, unpack
from tritonstack.bench.budget import Budget
from tritonstack.bench.entrance import entrance
from tritonstack.bench.http_caller import OpenSocket, http_caller
from tritonstack.bench.load import Users
from tritonstack.bench.measuring import Measuring, Point, Timing
from tritonstack.bench.request import ReadyRequest
from tritonstack.bench.stability import StabilityRule
from tritonstack.bench.triton_statistics import ServerFigures, between, read_counters
from tritonstack.client.body import Body
from tritonstack.errors import WorkFailedError
from tritonstack.local.container import ContainerSettings, TritonContainer, prepare_model_data

TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
HASH = "0123456789abcdef"
METRICS_PORT = 8002
LIMITS = UnpackLimits(max_bytes=2**33, max_members=10_000)
TIMING = Timing(warm_up=2.0, round=5.0)
RULE = StabilityRule(within=0.1, confidence=0.95, least=3, most=5, percentile=95.0)
MOST_CALLS, MOST_SECONDS, TIMEOUT_SECONDS = 1_000_000, 60.0, 60.0


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
class Measured:
    """What came of a variant. Seconds; ``first_call_seconds``: of the first call after the load."""

    unpack_seconds: float
    load_seconds: float
    first_call_seconds: float
    answer_bytes: int
    point: Point | None
    server: ServerFigures | None

    @property
    def cold_seconds(self) -> float:
        """From the archive on the disk to the first answer."""
        return self.unpack_seconds + self.load_seconds + self.first_call_seconds


def measure(variant: Variant) -> Measured:
    """Serve a variant and measure it. Raises WorkFailedError."""
    with tempfile.TemporaryDirectory(prefix="measurements-") as name, _container(variant, Path(name)) as container:
        began = time.perf_counter()
        folder = container.model_folder(HASH)
        folder.parent.mkdir(parents=True)
        unpack(variant.archive, folder, limits=LIMITS)
        unpacked = time.perf_counter()
        _configure(folder, variant)
        began_load = time.perf_counter()
        _load(container, variant)
        loaded = time.perf_counter()
        with _open_socket(container) as open_socket:
            parts = uvloop.run(_calls(variant, open_socket))
        return Measured(
            unpack_seconds=unpacked - began,
            load_seconds=loaded - began_load,
            first_call_seconds=parts.first_call_seconds,
            answer_bytes=parts.answer_bytes,
            point=parts.point,
            server=parts.server,
        )


@dataclass(frozen=True, kw_only=True)
class _Calls:
    first_call_seconds: float
    answer_bytes: int
    point: Point | None
    server: ServerFigures | None


async def _calls(variant: Variant, open_socket: OpenSocket) -> _Calls:
    headers = {"Content-Type": variant.body.content_type, TARGET_MODEL: _target(variant)}
    url = f"http://127.0.0.1:8080/models/{HASH}/invoke"
    request = ReadyRequest(url=url, headers=headers, body=variant.body.content)
    async with http_caller(
        lambda: request,
        connections=max(1, variant.users),
        timeout_seconds=TIMEOUT_SECONDS,
        open_socket=open_socket,
    ) as caller:
        began = time.perf_counter()
        failure = await caller()
        first = time.perf_counter() - began
        if failure is not None or caller.last is None:
            raise WorkFailedError(f"{variant.name}: {failure}")
        if not variant.users:
            return _Calls(first_call_seconds=first, answer_bytes=len(caller.last[0]), point=None, server=None)
        measuring = Measuring(
            caller,
            timing=TIMING,
            rule=RULE,
            budget=Budget(calls=MOST_CALLS, seconds=MOST_SECONDS, now=time.perf_counter),
            seed=0,
            most_under_way=variant.users,
            now=time.perf_counter,
        )
        before = read_counters(_metrics(open_socket))
        point = await measuring.level(Users(count=variant.users))
        counted = between(before, read_counters(_metrics(open_socket)))
        if point is None or point.all.failed:
            raise WorkFailedError(f"{variant.name}: {'no whole round' if point is None else point.failures}")
        return _Calls(
            first_call_seconds=first,
            answer_bytes=len(caller.last[0]),
            point=point,
            server=counted[0] if counted else None,
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
