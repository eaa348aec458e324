"""The proxy server: a loopback KServe v2 server that signs InvokeEndpoint, and describes models by their manifests."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import re
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import VERSION
from tritonstack.aws.sagemaker_rules import MAX_PAYLOAD_BYTES
from tritonstack.aws.session import Session
from tritonstack.client.body import BINARY_PREFIX, JSON_TYPE, Body, header_size
from tritonstack.client.errors import MalformedResponseError, ReleaseLookupError
from tritonstack.client.invocation import Clock, RawResponse, Wait
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import ModelReference, TimedCache
from tritonstack.errors import InputError, TritonstackError
from tritonstack.loopback.http_server import Headers, HttpResponse, Request, Server
from tritonstack.models.model_config import ModelConfig, config_json, read_config
from tritonstack.naming import ArchiveName, endpoint_name
from tritonstack.proxy.errors import HttpError, answer_of, error_answer, is_denied

# The paths are those of KServe's predict protocol v2 and of Triton's extensions (triton-inference-server/server,
# ``docs/protocol`` and ``src/http_server.cc``). A model's name may be ``endpoint/model``, its slash as it is or as %2F.
_PATH = re.compile(
    r"/v2(/health/(?P<server>live|ready)|/models/(?P<all>stats)|/models/(?P<model>[^/]+(/[^/]+)??)"
    r"(/versions/(?P<version>[^/]+))?(/(?P<of>ready|config|infer|stats))?)?/?"
)


@dataclass(frozen=True, kw_only=True)
class Route:
    """A parsed method and path."""

    what: str  # the operation: live, ready, server, stats, model, model-ready, model-config, model-infer, model-stats
    model: str = ""  # ``[endpoint/]model`` as the client spells it; empty for operations of the server
    version: str = ""  # the model version in the path; empty where there is none


def read_route(method: bytes, path: bytes) -> Route:
    """The route of a request. Raises HttpError."""
    text = path.split(b"?", 1)[0].decode("latin-1")
    shown = text if len(text) <= 200 else text[:200] + "…"
    found = _PATH.fullmatch(text)
    if found is None:
        raise HttpError(404, f"{shown} is no path of KServe's protocol v2 that this proxy knows; they begin with /v2")
    model, version = unquote(found["model"] or ""), unquote(found["version"] or "")
    if model:
        route = Route(what=f"model-{found['of']}" if found["of"] else "model", model=model, version=version)
    else:
        route = Route(what=found["server"] or found["all"] or "server")
    wanted = "POST" if route.what == "model-infer" else "GET"
    given = method.decode("latin-1")
    if given != wanted:
        raise HttpError(405, f"{shown} takes {wanted}, not {given}")
    return route


STATE_SECONDS = 5.0
"""How long an endpoint's state is used."""
LOOKUPS = 4
"""At once, for everything but inference, so that readiness does not wait behind models that load."""
NO_STATISTICS = (
    "InvokeEndpoint reports no statistics of Triton's, and this proxy makes none up; see the endpoint's metrics in "
    "CloudWatch (namespace AWS/SageMaker), or tritonstack local status for the local AWS"
)
NO_MANIFEST = "its manifest cannot be read: it takes s3:GetObject and s3:ListBucket on the bucket's manifests/"
log = logging.getLogger("tritonstack.proxy")


async def in_thread(work: Callable[[], HttpResponse]) -> HttpResponse:
    """The result of ``work``, done in a thread that ends with the process.

    Not in a ``ThreadPoolExecutor``: the interpreter's end waits for its threads, and an invocation may take over a
    minute.
    """
    future: Future[HttpResponse] = Future()
    future.set_running_or_notify_cancel()  # from here on nothing cancels it

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001  (raised where the future is waited for)
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


class Proxy:
    """Handles KServe requests for the models of one environment."""

    def __init__(self, *, environment: str, session: Session, concurrency: int, clock: Clock | None = None) -> None:
        """Does not call AWS yet.

        Args:
            environment: its name.
            session: makes the AWS clients.
            concurrency: concurrent invocations, which is also the size of the connection pool; further ones wait.
            clock: time and randomness, for tests.
        """
        self.client = ModelClient(environment=environment, session=session, max_connections=concurrency, clock=clock)

        @functools.cache
        def sagemaker() -> Any:
            config = Config(retries={"total_max_attempts": 2, "mode": "standard"}, connect_timeout=5, read_timeout=20)
            return session.client("sagemaker", config=config)

        self._sagemaker = sagemaker
        self._states: TimedCache[str, str] = TimedCache(seconds=STATE_SECONDS, now=(clock or Clock()).now)
        self._callers = asyncio.Semaphore(concurrency)
        self._lookups = asyncio.Semaphore(LOOKUPS)
        self._answers: dict[str, Callable[[Route, Request], HttpResponse]] = {
            "server": lambda _route, _request: HttpResponse.of_json(SERVER_METADATA),
            "ready": self._server_ready,
            "model": lambda route, _request: self._described(route, model_metadata),
            "model-ready": self._model_ready,
            "model-config": lambda route, _request: self._described(route, model_config),
            "model-infer": self._infer,
        }

    async def handle(self, request: Request) -> HttpResponse:
        """The response to a request."""
        try:
            route = read_route(request.method, request.path)
        except HttpError as error:
            return error_answer(error.status, str(error))
        if route.what == "live":
            return HttpResponse(200, {}, b"")
        if route.what in ("stats", "model-stats"):
            return error_answer(501, NO_STATISTICS)
        async with self._callers if route.what == "model-infer" else self._lookups:
            return await in_thread(lambda: self.answer(route, request))

    def answer(self, route: Route, request: Request) -> HttpResponse:
        """The response to a routed request; blocks."""
        try:
            if route.version and not (route.version.isascii() and route.version.isdigit()):
                return error_answer(400, f"model version {route.version[:40]!r} is no number")
            answer = self._answers[route.what](route, request)
        except TritonstackError as error:
            answer = answer_of(error)
        except HttpError as error:
            answer = error_answer(error.status, str(error))
        if answer.status >= 500:
            log.warning("%s: %d %s", route.model or route.what, answer.status, answer.body[:1000].decode())
        return answer

    def _infer(self, route: Route, request: Request) -> HttpResponse:
        name = self._named(route.model)

        def stop_for_nobody(_wait: Wait | None = None) -> None:
            """Before each attempt: retries end for a client that closed its connection. A running attempt goes on."""
            if request.sender.gone:
                raise HttpError(503, f"{name}: the client no longer waits for the response")

        stop_for_nobody()
        body = request_body(request.headers, request.body)
        raw = self.client.send_raw(name, body, on_wait=stop_for_nobody)
        answer, version = kserve_answer(raw, model=route.model)
        if route.version and str(int(route.version)) != version:
            return error_answer(
                404,
                f"version {route.version} of {route.model} was requested: InvokeEndpoint cannot choose one, and the "
                f"model's version policy chooses {version or 'one that it does not name'}",
            )
        return answer

    def _server_ready(self, _route: Route, _request: Request) -> HttpResponse:
        try:
            self.client.releases()
        except ReleaseLookupError as error:
            if not is_denied(error):  # names with their endpoints need no permission to list
                return answer_of(error)
        return HttpResponse(200, {}, b"")

    def _model_ready(self, route: Route, _request: Request) -> HttpResponse:
        release = self.client.resolve(self._named(route.model))
        name = endpoint_name(environment=self.client.environment, endpoint=release.endpoint)
        reason = self._states.get(name, lambda: unready(self._sagemaker(), name))
        return error_answer(503, reason) if reason else HttpResponse(200, {}, b"")

    def _described(self, route: Route, describe: Callable[[Described], dict[str, Any]]) -> HttpResponse:
        name, step = split_address(route.model)
        manifest = self.client.manifest(self._named(name))
        if manifest is None:
            return error_answer(503, f"{name}: {NO_MANIFEST}")
        try:
            if step and step not in manifest["configs"]:
                return error_answer(
                    404, f"{name} has no step {step!r}; it has {', '.join(sorted(manifest['configs']))}"
                )
            return HttpResponse.of_json(describe(Described(manifest=manifest, name=name, step=step)))
        except (KeyError, TypeError, ValueError) as error:
            return error_answer(502, f"{name}: its manifest is none that tritonstack publish writes: {error!r}")

    def _named(self, model: str) -> str:
        """The name, where a model could have it. Raises HttpError."""
        try:
            ModelReference.parse(model)
        except InputError as error:
            allowed = error.problems[0].allowed
            raise HttpError(404, f"there can be no model {model[:200]!r}; allowed: {allowed}") from error
        return model


# KServe's binary tensor extension gives the length of the JSON in the header ``Inference-Header-Content-Length``.
# SageMaker passes no header on, so Triton's SageMaker front end has it in the content type. The bytes are the same:
# bodies pass through unchanged, except for the model's name in a response's JSON.


LENGTH_HEADER = b"inference-header-content-length"

_STRING = rb'"(?:[^"\\]|\\.)*"'
_HEAD = re.compile(
    rb'\{\s*(?:"id"\s*:\s*%b\s*,\s*)?"model_name"\s*:\s*(?P<name>%b)\s*,\s*"model_version"\s*:\s*(?P<version>%b)'
    % (_STRING, _STRING, _STRING),
    re.DOTALL,
)
"""Beginning of Triton's responses (``src/http_server.cc``, FinalizeResponse): the rest is not parsed."""


def request_body(headers: Headers, content: bytes) -> Body:
    """The InvokeEndpoint body of a KServe request.

    Raises HttpError where the header's length does not fit the body, or the body is compressed.
    """
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise HttpError(415, "a compressed body; allowed: Content-Encoding identity")
    length = headers.get(LENGTH_HEADER)
    if length is None:
        return Body(content=content, content_type=JSON_TYPE)
    text = length.decode("latin-1").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) > len(content):
        allowed = f"allowed: 0 to the body's {len(content)} bytes"
        raise HttpError(400, f"Inference-Header-Content-Length is {text[:40]!r}; {allowed}")
    return Body(content=content, content_type=f"{BINARY_PREFIX}{int(text)}")


def kserve_answer(raw: RawResponse, *, model: str) -> tuple[HttpResponse, str]:
    """A response of InvokeEndpoint in KServe's form, with ``model`` instead of the archive's name; its model version.

    Raises MalformedResponseError where it is no inference response, or its length does not fit.
    """
    length = header_size(raw.content_type, len(raw.content))
    if length is None:
        content, version = _renamed(raw.content, model)
        return HttpResponse(200, {b"content-type": JSON_TYPE.encode()}, content), version
    renamed, version = _renamed(raw.content[:length], model)
    headers = {b"content-type": b"application/octet-stream", LENGTH_HEADER: b"%d" % len(renamed)}
    return HttpResponse(200, headers, b"".join((renamed, memoryview(raw.content)[length:]))), version


def _renamed(described: bytes, model: str) -> tuple[bytes, str]:
    """A response's JSON with another model name, and its model version."""
    head = _HEAD.match(described)
    if head is not None:
        start, end = head.span("name")
        return b"".join((described[:start], json.dumps(model).encode(), described[end:])), json.loads(head["version"])
    answer: Any = None
    with suppress(ValueError):
        answer = json.loads(described)
    if not isinstance(answer, dict) or "outputs" not in answer:
        raise MalformedResponseError(f"no inference response: {len(described)} bytes, {bytes(described[:80])!r} …")
    answer["model_name"] = model
    return json.dumps(answer, separators=(",", ":")).encode(), str(answer.get("model_version", ""))


LAST_REQUESTS_SECONDS = 5.0
"""How long running requests may take to end once the proxy is interrupted."""


def make_server(proxy: Proxy, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> Server:
    """The HTTP server of a proxy, not yet listening. ``max_payload_bytes``: of a request's body."""
    return Server(
        handle=proxy.handle,
        max_payload_bytes=max_payload_bytes,
        log=log.error,
        name="proxy",
        error_answer=lambda error: error_answer(error.status, error.message),
        id_header=b"x-tritonstack-request-id",
    )


async def serve(proxy: Proxy, *, port: int, listening: Callable[[int], None]) -> None:
    """Serve on 127.0.0.1 until SIGINT or SIGTERM.

    Args:
        proxy: handles requests.
        port: 0 takes a free one.
        listening: called with the port once the server listens.

    Raises:
        OSError: the port is in use or not permitted.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = make_server(proxy)
    listening(await server.start(port=port))
    await stop.wait()
    await server.stop(seconds=LAST_REQUESTS_SECONDS)


CALLABLE = frozenset({"InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed"})
"""Endpoint states in which a fleet responds (botocore's service model of sagemaker: DescribeEndpoint)."""


def unready(sagemaker: Any, name: str) -> str:
    """Why an endpoint cannot be invoked; empty where it can, or where its state cannot be read.

    ``sagemaker``: the boto3 client. ``name``: the endpoint's at SageMaker.
    """
    try:
        status = str(sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"])
    except ClientError as error:
        missing = "Could not find" in str(error.response.get("Error", {}).get("Message", ""))
        return f"there is no endpoint {name}" if missing else ""
    except BotoCoreError:
        return ""
    return "" if status in CALLABLE else f"endpoint {name} is {status}"


# InvokeEndpoint reports neither the versions of a model nor statistics, so neither is described.
EXTENSIONS = ("classification", "schedule_policy", "model_configuration", "binary_tensor_data", "parameters")
"""Triton's extensions that InvokeEndpoint carries. Without ``statistics`` perf_analyzer requests none."""
SERVER_METADATA = {"name": "tritonstack-proxy", "version": VERSION, "extensions": EXTENSIONS}


@dataclass(frozen=True, kw_only=True)
class Described:
    """A model to describe."""

    manifest: Mapping[str, Any]  # of its archive
    name: str  # ``[endpoint/]model`` as the client spells it
    step: str = ""  # directory of an ensemble's step in the archive; empty for the model itself

    @property
    def address(self) -> str:
        """Its name in the description."""
        return step_address(self.name, self.step) if self.step else self.name

    def config(self) -> ModelConfig:
        """Its ``config.pbtxt``. Raises KeyError where the archive has none, or the manifest is none."""
        return read_config(self.manifest["configs"][self.step or self.manifest["model"]["name"]])

    def tensors(self, kind: str) -> list[Mapping[str, Any]]:
        """Its ``inputs`` or ``outputs`` as requests have them: name, KServe's datatype, shape."""
        if not self.step:
            return list(self.manifest["model"][kind])
        config = self.config()
        tensors = config.inputs if kind == "inputs" else config.outputs
        return [
            {"name": one.name, "datatype": one.data_type, "shape": one.shape(config.max_batch_size)} for one in tensors
        ]


def step_address(ensemble: str, step: str) -> str:
    """The name of an ensemble's step in descriptions; no model's name has a full stop."""
    return f"{ensemble}.{step}"


def split_address(name: str) -> tuple[str, str]:
    """Model and step of a name; the step is empty for a model or an archive."""
    endpoint, slash, rest = name.rpartition("/")
    model, _, step = rest.partition(".")
    if not step or ArchiveName.parse(rest) is not None:
        return name, ""
    return f"{endpoint}{slash}{model}", step


def model_metadata(model: Described) -> dict[str, Any]:
    """A model's tensors. Raises KeyError, TypeError or ValueError for an invalid manifest."""
    config = model.config()
    return {
        "name": model.address,
        "versions": [],  # InvokeEndpoint does not report them; each response names its own
        "platform": config.node.text("platform") or config.backend,
        "inputs": [_tensor(tensor) for tensor in model.tensors("inputs")],
        "outputs": [_tensor(tensor) for tensor in model.tensors("outputs")],
    }


def model_config(model: Described) -> dict[str, Any]:
    """A model's configuration in its archive, under the requested name.

    An ensemble's steps are in its archive and cannot be invoked. Clients such as perf_analyzer request their
    configurations by the names given here, so these are ``<ensemble>.<step>``.

    Raises KeyError, TypeError or ValueError for what is no manifest.
    """
    config = model.config()
    found = {**config_json(config.node), "name": model.address}
    for field, kind in (("input", "inputs"), ("output", "outputs")):
        found[field] = found[field] or [_described(one, config.max_batch_size) for one in model.tensors(kind)]
    found["backend"] = found["backend"] or ("" if config.is_ensemble else config.backend)
    for step in found.get("ensemble_scheduling", {}).get("step", ()):
        step["model_name"] = step_address(model.name, step["model_name"])
    return found


def _tensor(tensor: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tensor["name"], "datatype": tensor["datatype"], "shape": list(tensor["shape"])}


def _described(tensor: Mapping[str, Any], max_batch_size: int) -> dict[str, Any]:
    """A tensor as a configuration has it: without the batch dimension, with Triton's name of the type."""
    shape = list(tensor["shape"])
    kind = "STRING" if tensor["datatype"] == "BYTES" else tensor["datatype"]
    return {"name": tensor["name"], "data_type": f"TYPE_{kind}", "dims": shape[1:] if max_batch_size > 0 else shape}
