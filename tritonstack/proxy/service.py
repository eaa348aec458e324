"""The proxy itself: a KServe request in, its answer out, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tritonstack.client.body import Body
from tritonstack.client.calls import RawAnswer, Target, Wait
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.client.releases import ModelReference, Release
from tritonstack.errors import InputError, TritonstackError
from tritonstack.http_server import Answer, Headers, Request, Sender
from tritonstack.proxy import descriptions
from tritonstack.proxy.encodings import CodingError
from tritonstack.proxy.endpoints import EndpointStates
from tritonstack.proxy.errors import answer_of, error_answer, is_denied
from tritonstack.proxy.inference import BadRequestError, http_answer, kserve_answer, request_body
from tritonstack.proxy.manifests import Manifest, Manifests
from tritonstack.proxy.routes import NoRouteError, Route, read_route
from tritonstack.proxy.threads import CallThreads

MAX_PAYLOAD_BYTES = 25 * 1024 * 1024
"""The largest request that InvokeEndpoint may take (SageMaker developer guide); older pages say 6 MB."""
LOOKUP_THREADS = 4
"""For everything but inference, so that a question about readiness does not wait behind models that load."""
NO_STATISTICS = (
    "InvokeEndpoint tells no statistics of Triton's, and this proxy makes none up; see the endpoint's metrics in "
    "CloudWatch (namespace AWS/SageMaker), or tritonstack local status for the local AWS"
)
NO_MANIFEST = "its manifest cannot be read: it takes s3:GetObject and s3:ListBucket on the bucket's manifests/"
_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
log = logging.getLogger("tritonstack.proxy")


class CallerGoneError(Exception):
    """Nobody waits for the answer any more."""


class WrongNameError(Exception):
    """A model's name that can be none here: 404."""


class Client(Protocol):
    """What the proxy needs of ModelClient."""

    def send_raw(self, name: str, body: Body) -> tuple[Target, RawAnswer]:
        """Ask a model; the answer as it came."""

    def resolve(self, name: str) -> Release:
        """A model's current archive."""

    def releases(self) -> tuple[Release, ...]:
        """Every current release."""


class CallerWatch:
    """Ends the tries for a caller that has gone away: its thread is for others. A try on its way is left alone."""

    def __init__(self) -> None:
        """Watches nobody yet."""
        self._current = threading.local()

    @contextmanager
    def of(self, sender: Sender) -> Iterator[None]:
        """This thread works for ``sender`` while the block runs."""
        self._current.sender = sender
        try:
            yield
        finally:
            self._current.sender = None

    def on_wait(self, wait: Wait) -> None:
        """For ModelClient: told of each pause before another try. Raises CallerGoneError."""
        sender: Sender | None = getattr(self._current, "sender", None)
        if sender is not None and sender.gone:
            raise CallerGoneError(f"{wait.target.endpoint_name}: nobody waits for the answer any more")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a proxy works with; ``watch`` is the one that ``client`` tells of its pauses."""

    client: Client
    states: EndpointStates
    manifests: Manifests
    watch: CallerWatch


class Proxy:
    """Answers KServe requests for the models of one environment, or of one of its endpoints."""

    def __init__(
        self,
        *,
        parts: Parts,
        endpoint: str | None = None,
        concurrency: int = 32,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
    ) -> None:
        """Calls nobody yet.

        Args:
            parts: what it works with.
            endpoint: the one endpoint whose models have names here; None for all.
            concurrency: how many invocations are on their way at once; more wait for their turn.
            max_payload_bytes: the largest request body, decompressed.
        """
        self._parts = parts
        self._endpoint = endpoint
        self._limit = max_payload_bytes
        self._callers = CallThreads(count=concurrency, name="invoke")
        self._lookups = CallThreads(count=LOOKUP_THREADS, name="look-up")
        self._answers: dict[str, Callable[[Route, Request], Answer]] = {
            "server": lambda _route, _request: Answer.of_json(descriptions.server_metadata()),
            "ready": self._server_ready,
            "index": self._index,
            "model": self._metadata,
            "model-ready": self._model_ready,
            "config": self._config,
            "infer": self._infer,
        }

    async def handle(self, request: Request) -> Answer:
        """Answer a request."""
        try:
            refuse_browsers(request.headers)
            route = read_route(request.method, request.path)
        except NoRouteError as error:
            return error_answer(error.status, str(error))
        if route.what == "live":
            return Answer(200, {}, b"")
        if route.what == "statistics":
            return error_answer(501, NO_STATISTICS)
        threads = self._callers if route.what == "infer" else self._lookups
        return await asyncio.wrap_future(threads.submit(lambda: self.answer(route, request)))

    def answer(self, route: Route, request: Request) -> Answer:
        """The answer to a routed request; blocks."""
        try:
            if route.version and not (route.version.isascii() and route.version.isdigit()):
                return error_answer(400, f"model version {route.version[:40]!r} is no number")
            answer = self._answers[route.what](route, request)
        except TritonstackError as error:
            answer = answer_of(error)
        except WrongNameError as error:
            answer = error_answer(404, str(error))
        except BadRequestError as error:
            answer = error_answer(400, str(error))
        except CodingError as error:
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
        body = request_body(request.headers, request.body, limit=self._limit)
        with self._parts.watch.of(request.sender):
            target, raw = self._parts.client.send_raw(name, body)
        answer = kserve_answer(raw, model=route.model)
        if route.version and int(route.version) != _number(answer.model_version):
            return error_answer(
                404,
                f"version {route.version} of {route.model} was asked for: InvokeEndpoint cannot choose one, and the "
                f"model's version policy answers with {answer.model_version or 'one that it does not name'}",
            )
        accept = request.headers.get(b"accept-encoding", b"").decode("latin-1")
        return http_answer(answer, target=target, raw=raw, accept_encoding=accept)

    def _server_ready(self, _route: Route, _request: Request) -> Answer:
        try:
            self._parts.client.releases()
        except ReleaseLookupError as error:
            if not is_denied(error):  # names with their endpoints need no permission to list
                return answer_of(error)
        return Answer(200, {}, b"")

    def _model_ready(self, route: Route, _request: Request) -> Answer:
        release = self._parts.client.resolve(self._named(route.model))
        reason = self._parts.states.unready(release.endpoint)
        return error_answer(503, reason) if reason else Answer(200, {}, b"")

    def _metadata(self, route: Route, _request: Request) -> Answer:
        return self._described(route, descriptions.model_metadata)

    def _config(self, route: Route, _request: Request) -> Answer:
        return self._described(route, descriptions.model_config)

    def _described(self, route: Route, describe: Callable[[descriptions.Described], dict[str, Any]]) -> Answer:
        name, step = descriptions.split_address(route.model)
        manifest: Manifest | None = self._parts.manifests.of(self._named(name))
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

    def _index(self, _route: Route, request: Request) -> Answer:
        index = descriptions.repository_index(
            [one for one in self._parts.client.releases() if self._endpoint in (None, one.endpoint)],
            unready=lambda release: self._parts.states.unready(release.endpoint),
            only_ready=_only_ready(request.body),
        )
        return Answer.of_json(index)

    def _named(self, model: str) -> str:
        """The name as the client takes it, with the endpoint where only one is served. Raises WrongNameError."""
        name = model if self._endpoint is None or "/" in model else f"{self._endpoint}/{model}"
        try:
            reference = ModelReference.parse(name)
        except InputError as error:
            allowed = error.problems[0].allowed
            raise WrongNameError(f"there can be no model {model[:200]!r}; allowed: {allowed}") from error
        if self._endpoint is not None and reference.endpoint != self._endpoint:
            raise WrongNameError(f"{model[:200]!r} is of another endpoint: this proxy serves {self._endpoint} alone")
        return name


def refuse_browsers(headers: Headers) -> None:
    """Refuse what a web page sends: it must not spend a person's credentials behind their back.

    A page's requests carry Origin; one that has given its own name this machine's address carries that name in Host.
    Raises NoRouteError.
    """
    host = headers.get(b"host", b"localhost").decode("latin-1").lower()
    name = host if host in _HOSTS else host.rpartition(":")[0]
    if b"origin" in headers or name not in _HOSTS:
        raise NoRouteError(
            403, "this proxy signs with a person's credentials: it answers programs on this machine alone"
        )


def _only_ready(body: bytes) -> bool:
    """Whether a request for the index asks for ready models alone. Raises BadRequestError."""
    if not body:
        return False
    try:
        asked = json.loads(body)
    except ValueError as error:
        raise BadRequestError(f"the request is no JSON: {error}") from error
    return isinstance(asked, dict) and asked.get("ready") is True


def _number(version: str) -> int | None:
    return int(version) if version.isascii() and version.isdigit() else None
