"""How perf_analyzer reaches a model: KServe's protocol by the proxy, or SageMaker's own path at a local container.

Straight at a container nothing listens that speaks KServe's protocol: SageMaker's ``serve`` script switches it off.
What perf_analyzer knows as an OpenAI service is a POST of JSON to any path of any server, and that is what SageMaker's
front end takes. So it goes there, as JSON, in the container's own network.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack_capacity.bench.payload import Payload
from tritonstack_capacity.bench.request import ReadyRequest
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.subject import Subject

ADDRESS = "KServe v2 at http://"
"""How the proxy's first line begins."""
MOST_THREADS = 512
"""The most invocations that the proxy has on their way."""
STOP_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class AnalyserWay:
    """A way to one model.

    Attributes:
        options: what it is told of the way.
        data: the request, as its ``--input-data`` has it.
        enter: what stands before its command.
    """

    options: tuple[str, ...]
    data: str
    enter: tuple[str, ...] = ()


@asynccontextmanager
async def by_proxy(settings: BenchSettings, subject: Subject, *, local: bool) -> AsyncIterator[AnalyserWay]:
    """Through a proxy of its own, on a free port, for as long as the block lasts; ``local``: with ``--local``.

    Raises:
        InputError: the payload cannot be given to it.
        WorkFailedError: the proxy does not start.
    """
    data = kserve_data(subject.payload, subject.manifest)
    release = subject.target.release
    command = [sys.executable, "-m", "tritonstack", "proxy", settings.environment, "--endpoint", release.endpoint]
    command += ["--port", "0", "--concurrency", str(min(settings.most_under_way, MOST_THREADS))]
    command += ["--local"] if local else []
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, start_new_session=True)
    try:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101 - they are pipes
        line = (await process.stdout.readline()).decode()
        if not line.startswith(ADDRESS):
            raise WorkFailedError(f"tritonstack proxy did not start: {line}{(await process.stderr.read()).decode()}")
        address = line.removeprefix(ADDRESS).split()[0]
        yield AnalyserWay(options=("-m", release.model, "-u", address), data=data)
    finally:
        await _end(process)


def at_container(request: ReadyRequest, *, model: str, enter: tuple[str, ...]) -> AnalyserWay:
    """At a local container's port for SageMaker.

    Args:
        request: as the container takes it, in JSON.
        model: what its reports call it.
        enter: what stands before a command that is to run in the container's network.
    """
    address = urlsplit(request.url)
    headers = [f"{name}:{value}" for name, value in request.headers.items() if name != "Content-Type"]
    return AnalyserWay(
        options=(
            *("--service-kind", "openai", "--async", "-m", model),
            *("-u", f"http://{address.netloc}", "--endpoint", address.path.lstrip("/")),
            *(word for header in headers for word in ("-H", header)),
        ),
        data=json.dumps({"data": [{"payload": [json.loads(request.body)]}]}),
        enter=enter,
    )


def kserve_data(payload: Payload, manifest: Mapping[str, Any] | None) -> str:
    """A request as its ``--input-data`` has it: values in a row, shapes without the batch dimension.

    ``manifest``: of the archive; it says whether the model batches.

    Raises:
        InputError: several inputs in one request, or bytes, which its JSON has in another form.
    """
    batched = manifest is not None and int(manifest["model"].get("max_batch_size", 0)) > 0
    data = {}
    for name, array in payload.inputs.items():
        if array.dtype.kind == "O" or (batched and array.shape[0] != 1):
            found = f"{name}: {'BYTES' if array.dtype.kind == 'O' else f'a batch of {array.shape[0]}'}"
            allowed = "numbers, one to a request"
            raise InputError([Problem(field="--generator perf-analyzer", found=found, allowed=allowed)])
        shape = list(array.shape[1:] if batched else array.shape)
        data[name] = {"content": array.ravel().tolist(), "shape": shape}
    return json.dumps({"data": [data]})


async def _end(process: asyncio.subprocess.Process) -> None:
    """As a person would end it; at once where it does not listen."""
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
