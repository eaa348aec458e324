"""The proxy server: a loopback KServe v2 server that signs InvokeEndpoint."""

from __future__ import annotations

import asyncio
import functools
import logging
import queue
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

from botocore.config import Config

from tritonstack.aws_session import Session
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.client.invocation import Clock, Wait
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import ModelReference
from tritonstack.errors import InputError, TritonstackError
from tritonstack.http_server import Answer, Headers, Manner, Request, Sender, Server
from tritonstack.proxy import descriptions
from tritonstack.proxy.descriptions import EndpointStates
from tritonstack.proxy.errors import HttpError, answer_of, error_answer, is_denied
from tritonstack.proxy.inference import kserve_answer, request_body

# Not ``concurrent.futures.ThreadPoolExecutor``: the interpreter's end waits for its threads, and an invocation may take
# over a minute. These end with the process.


Result = TypeVar("Result")
_Job = Callable[[], None]


class CallThreads:
    """``count`` threads. What is submitted beyond that waits for its turn."""

    def __init__(self, *, count: int, name: str) -> None:
        """Starts them."""
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Have ``work`` done by the next free thread."""
        future: Future[Result] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  (it is raised where the future is waited for)
                future.set_exception(error)
            else:
                future.set_result(result)

        self._jobs.put(job)
        return future

    def _work(self) -> None:
        while True:
            self._jobs.get()()


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


MAX_PAYLOAD_BYTES = 25 * 1024 * 1024
"""The largest request that InvokeEndpoint may take (SageMaker developer guide); older pages say 6 MB."""
LOOKUP_THREADS = 4
"""For everything but inference, so that readiness does not wait behind models that load."""
NO_STATISTICS = (
    "InvokeEndpoint reports no statistics of Triton's, and this proxy makes none up; see the endpoint's metrics in "
    "CloudWatch (namespace AWS/SageMaker), or tritonstack local status for the local AWS"
)
NO_MANIFEST = "its manifest cannot be read: it takes s3:GetObject and s3:ListBucket on the bucket's manifests/"
_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
log = logging.getLogger("tritonstack.proxy")


class CallerGoneError(Exception):
    """The client closed its connection before the response."""


class CallerWatch:
    """Stops retries for a client that closed its connection, to free the thread. A running attempt goes on."""

    def __init__(self) -> None:
        """No client yet."""
        self._current = threading.local()

    @contextmanager
    def of(self, sender: Sender) -> Iterator[None]:
        """Bind this thread to ``sender`` while the block runs."""
        self._current.sender = sender
        try:
            yield
        finally:
            self._current.sender = None

    def on_wait(self, wait: Wait) -> None:
        """Callback of ModelClient before each retry. Raises CallerGoneError."""
        sender: Sender | None = getattr(self._current, "sender", None)
        if sender is not None and sender.gone:
            raise CallerGoneError(f"{wait.target.endpoint_name}: nobody waits for the answer any more")


class Proxy:
    """Handles KServe requests for the models of one environment."""

    def __init__(self, *, environment: str, session: Session, concurrency: int, clock: Clock | None = None) -> None:
        """Start the threads, without calling AWS.

        Args:
            environment: its name.
            session: makes the AWS clients.
            concurrency: concurrent invocations, which is also the size of the connection pool; further ones wait.
            clock: time and randomness, for tests.
        """
        self._watch = CallerWatch()
        self.client = ModelClient(
            environment=environment,
            session=session,
            max_connections=concurrency,
            clock=clock,
            on_wait=self._watch.on_wait,
        )

        @functools.cache
        def sagemaker() -> Any:
            config = Config(retries={"total_max_attempts": 2, "mode": "standard"}, connect_timeout=5, read_timeout=20)
            return session.client("sagemaker", config=config)

        self._states = EndpointStates(environment=environment, sagemaker=sagemaker)
        self._callers = CallThreads(count=concurrency, name="invoke")
        self._lookups = CallThreads(count=LOOKUP_THREADS, name="look-up")
        self._answers: dict[str, Callable[[Route, Request], Answer]] = {
            "server": lambda _route, _request: Answer.of_json(descriptions.SERVER_METADATA),
            "ready": self._server_ready,
            "model": lambda route, _request: self._described(route, descriptions.model_metadata),
            "model-ready": self._model_ready,
            "model-config": lambda route, _request: self._described(route, descriptions.model_config),
            "model-infer": self._infer,
        }

    async def handle(self, request: Request) -> Answer:
        """The response to a request."""
        try:
            refuse_browsers(request.headers)
            route = read_route(request.method, request.path)
        except HttpError as error:
            return error_answer(error.status, str(error))
        if route.what == "live":
            return Answer(200, {}, b"")
        if route.what in ("stats", "model-stats"):
            return error_answer(501, NO_STATISTICS)
        threads = self._callers if route.what == "model-infer" else self._lookups
        return await asyncio.wrap_future(threads.submit(lambda: self.answer(route, request)))

    def answer(self, route: Route, request: Request) -> Answer:
        """The response to a routed request; blocks."""
        try:
            if route.version and not (route.version.isascii() and route.version.isdigit()):
                return error_answer(400, f"model version {route.version[:40]!r} is no number")
            answer = self._answers[route.what](route, request)
        except TritonstackError as error:
            answer = answer_of(error)
        except HttpError as error:
            answer = error_answer(error.status, str(error))
        except CallerGoneError as error:
            return error_answer(503, str(error))
        if answer.status >= 500:
            log.warning("%s: %d %s", route.model or route.what, answer.status, answer.body[:1000].decode())
        return answer

    def _infer(self, route: Route, request: Request) -> Answer:
        name = self._named(route.model)
        if request.sender.gone:
            raise CallerGoneError(f"{name}: nobody waits for the answer any more")
        body = request_body(request.headers, request.body)
        with self._watch.of(request.sender):
            raw = self.client.send_raw(name, body)
        answer, version = kserve_answer(raw, model=route.model)
        if route.version and str(int(route.version)) != version:
            return error_answer(
                404,
                f"version {route.version} of {route.model} was asked for: InvokeEndpoint cannot choose one, and the "
                f"model's version policy answers with {version or 'one that it does not name'}",
            )
        return answer

    def _server_ready(self, _route: Route, _request: Request) -> Answer:
        try:
            self.client.releases()
        except ReleaseLookupError as error:
            if not is_denied(error):  # names with their endpoints need no permission to list
                return answer_of(error)
        return Answer(200, {}, b"")

    def _model_ready(self, route: Route, _request: Request) -> Answer:
        release = self.client.resolve(self._named(route.model))
        reason = self._states.unready(release.endpoint)
        return error_answer(503, reason) if reason else Answer(200, {}, b"")

    def _described(self, route: Route, describe: Callable[[descriptions.Described], dict[str, Any]]) -> Answer:
        name, step = descriptions.split_address(route.model)
        manifest = self.client.manifest(self._named(name))
        if manifest is None:
            return error_answer(503, f"{name}: {NO_MANIFEST}")
        try:
            if step and step not in manifest["configs"]:
                return error_answer(
                    404, f"{name} has no step {step!r}; it has {', '.join(sorted(manifest['configs']))}"
                )
            return Answer.of_json(describe(descriptions.Described(manifest=manifest, name=name, step=step)))
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


def refuse_browsers(headers: Headers) -> None:
    """Refuse requests of web pages, which must not use the user's credentials.

    A page's requests carry Origin; a page whose host name resolves to this machine carries that name in Host.
    Raises HttpError.
    """
    host = headers.get(b"host", b"localhost").decode("latin-1").lower()
    name = host if host in _HOSTS else host.rpartition(":")[0]
    if b"origin" in headers or name not in _HOSTS:
        raise HttpError(403, "this proxy signs with a person's credentials: it answers programs on this machine alone")


LAST_REQUESTS_SECONDS = 5.0
"""How long running requests may take to end once the proxy is interrupted."""
RECEIVE_SECONDS = 60.0


def make_server(proxy: Proxy, *, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> Server:
    """The HTTP server of a proxy, not yet listening. ``max_payload_bytes``: of a request's body."""
    return Server(
        handle=proxy.handle,
        max_payload_bytes=max_payload_bytes,
        log=log.error,
        receive_seconds=RECEIVE_SECONDS,
        manner=Manner(
            name="proxy",
            error_answer=lambda error: error_answer(error.status, error.message),
            id_header=b"x-tritonstack-request-id",
        ),
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
