"""One invocation of a fleet: what SageMaker checks, the model, the container, the response.

There are two ways. ``invoke`` is the whole of it, as a coroutine. ``invoke_at_once`` takes the ordinary request alone:
its model is loaded and a connection is idle, so that nothing is to be waited for but the container. It needs no task
and no future, only a callback. The processor time saved is throughput, since the models run on the same processor.
Whatever it does not take goes the whole way.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from tritonstack import aws_names
from tritonstack.aws.sagemaker_rules import INSUFFICIENT_STORAGE
from tritonstack.loopback.http_server import Headers, HttpResponse, InvokeError, Request
from tritonstack_local.runtime import errors
from tritonstack_local.runtime.container import ContainerClient
from tritonstack_local.runtime.fleet import FleetState, RunningFleet
from tritonstack_local.runtime.model_cache import TARGET_MODEL, CachedModel
from tritonstack_local.runtime.pool import ContainerGoneError, RequestOutcome, UpstreamConnection

CUSTOM_ATTRIBUTES = b"x-amzn-sagemaker-custom-attributes"
TARGET_VARIANT = b"x-amzn-sagemaker-target-variant"
COMPONENT = b"x-amzn-sagemaker-inference-component"
UNSUPPORTED = {
    b"x-amzn-sagemaker-target-container-hostname": "TargetContainerHostname",
    b"x-amzn-sagemaker-session-id": "SessionId",
    b"x-amzn-sagemaker-enable-explanations": "EnableExplanations",
}
"""Headers of InvokeEndpoint's members that would change what answers (botocore's model of sagemaker-runtime)."""
_NOT_AT_ONCE = frozenset({TARGET_VARIANT, COMPONENT, *UNSUPPORTED})
COMPONENT_NOT_ALLOWED = (
    "Inference Component Name header is not allowed for endpoints to which you dont plan to deploy inference "
    "components."
)
"""SageMaker's own spelling (tests of BerriAI/litellm); what follows it there is not known."""
PASSED_ON = (b"content-type", b"accept", CUSTOM_ATTRIBUTES)
GIVEN_BACK = (b"content-type", CUSTOM_ATTRIBUTES)
_TARGET_MODEL = re.compile(r"[!-~][ -~]{0,1023}")


def checked_target(raw: bytes) -> str:
    """The TargetModel of a request: a relative path that stays below the prefix.

    Raises InvokeError: ValidationError.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    parts = text.split("/")
    if not _TARGET_MODEL.fullmatch(text) or "\\" in text or any(part in ("", ".", "..") for part in parts):
        raise errors.validation_error(
            f"Invalid target model header '{errors.shortened(text)}': a path relative to the model data prefix is "
            "expected, of printable ASCII characters."
        )
    return text


async def invoke(fleet: RunningFleet, request: Request) -> HttpResponse:
    """Respond to one request by this fleet, and count it. Raises InvokeError: as InvokeEndpoint fails."""
    fleet.in_flight += 1
    concurrent = fleet.in_flight
    measured = _Measured()
    error: InvokeError | None = None
    try:
        return await _invoke(fleet, request, measured)
    except InvokeError as failure:
        error = failure
        fleet.failed(failure)
        raise
    finally:
        fleet.request_ended()
        fleet.metrics.invocation(
            in_model=measured.in_model,
            total=time.monotonic() - request.received,
            error=error,
            hit=measured.hit,
            concurrent=concurrent,
        )


def refused(fleet: RunningFleet, error: InvokeError) -> None:
    """Count a request that was refused before it was read."""
    fleet.failed(error)
    fleet.metrics.invocation(in_model=0.0, total=0.0, error=error, hit=None, concurrent=fleet.in_flight + 1)


Done = Callable[[HttpResponse | Exception], None]
"""Takes a request's response, or what it failed with."""


def invoke_at_once(fleet: RunningFleet, request: Request, done: Done) -> bool:
    """Begin a request if nothing is to be waited for but the container.

    Returns:
        True: begun; ``done`` is called once, with the response or InvokeError. False: nothing was done nor counted.
    """
    client = fleet.client
    target = request.headers.get(TARGET_MODEL)
    ready = fleet.state is FleetState.READY and fleet.ready.is_set() and fleet.config.model.multi_model
    if client is None or target is None or not ready or not _NOT_AT_ONCE.isdisjoint(request.headers):
        return False
    connection = client.pool.take_idle()
    if connection is None:
        return False
    model = fleet.models.claim_loaded(target.decode("latin-1"))
    if model is None:
        client.pool.release(connection)
        return False
    fleet.in_flight += 1
    call = _CallAtOnce(
        fleet=fleet,
        client=client,
        model=model,
        connection=connection,
        request=request,
        done=done,
        concurrent=fleet.in_flight,
        began=time.monotonic(),
    )
    head = container_head(model.line, request.headers, length=len(request.body))
    connection.start(head, request.body, seconds=_left(fleet, request), ended=call.ended)
    return True


@dataclass(slots=True, kw_only=True, eq=False)
class _CallAtOnce:
    """A request that was sent to the container at once, and the slots to release when it ends."""

    fleet: RunningFleet
    client: ContainerClient
    model: CachedModel
    connection: UpstreamConnection
    request: Request
    done: Done
    concurrent: int
    began: float

    def ended(self, outcome: RequestOutcome) -> None:
        """The container responded, or will not: count it, and pass the response on."""
        ended, fleet = time.monotonic(), self.fleet
        error: InvokeError | None = None
        answer: HttpResponse | Exception
        try:
            self.client.pool.release(self.connection)
            fleet.models.release(self.model)
            answer = _given(fleet, outcome, model=self.model)
        except InvokeError as failure:
            answer = error = failure
            fleet.failed(failure)
        except Exception as fault:  # noqa: BLE001  (the caller must get a response; the server logs it)
            answer = fault
        fleet.request_ended()
        fleet.metrics.invocation(
            in_model=ended - self.began,
            total=ended - self.request.received,
            error=error,
            hit=True,
            concurrent=self.concurrent,
        )
        self.done(answer)


@dataclass(slots=True)
class _Measured:
    """Seconds in the container, and whether the model was loaded already."""

    in_model: float = 0.0
    hit: bool | None = None


def check_members(fleet: RunningFleet, request: Request) -> None:
    """Raise InvokeError where a header names what is not here, or what the local runtime does not have."""
    variant = request.headers.get(TARGET_VARIANT)
    for header in UNSUPPORTED.keys() & request.headers.keys():
        raise errors.validation_error(f"The local runtime does not support {UNSUPPORTED[header]} of InvokeEndpoint.")
    if COMPONENT in request.headers and fleet.config.component is None:
        raise errors.validation_error(COMPONENT_NOT_ALLOWED)
    if variant is not None and variant.decode("latin-1") != fleet.config.variant:
        unknown = errors.shortened(variant.decode("latin-1"))
        raise errors.validation_error(f"Variant {unknown} was not found for endpoint {fleet.endpoint}.")


async def _invoke(fleet: RunningFleet, request: Request, measured: _Measured) -> HttpResponse:
    target = request.headers.get(TARGET_MODEL)
    check_members(fleet, request)
    if not fleet.config.model.multi_model:
        if target is not None:
            raise errors.validation_error(
                f"Endpoint {fleet.endpoint} is not a multi-model endpoint and does not support target model header.",
                error_code="TARGET_MODEL_HEADER_NOT_SUPPORTED",
            )
        return await _call(fleet, None, request, measured)
    if target is None:
        raise errors.validation_error(f"Request {request.id} is missing a target model header.")
    model = fleet.models.claim_loaded(target.decode("latin-1"))
    measured.hit = model is not None
    if model is None:
        name = checked_target(target)
        try:
            model = await fleet.models.claim(name, seconds=_left(fleet, request))
        finally:
            fleet.metrics.duration(aws_names.MODEL_LOADING_WAIT_TIME, time.monotonic() - request.received)
    try:
        return await _call(fleet, model, request, measured)
    finally:
        fleet.models.release(model)


def running_client(fleet: RunningFleet) -> ContainerClient:
    """The fleet's container. Raises InvokeError: ServiceUnavailable."""
    if not fleet.ready.is_set():
        raise errors.service_unavailable(f"The container of endpoint {fleet.endpoint} is being started again.")
    if fleet.client is None or fleet.state is FleetState.STOPPED:
        raise errors.service_unavailable(f"The container of endpoint {fleet.endpoint} is stopped.")
    return fleet.client


def container_head(line: bytes, headers: Headers, *, length: int) -> bytes:
    """The head of a request to the container, with a body of ``length`` bytes."""
    parts = [line]
    for name in PASSED_ON:
        value = headers.get(name)
        if value is not None:
            parts.append(b"%b: %b\r\n" % (name, value))
    parts.append(b"content-length: %d\r\n\r\n" % length)
    return b"".join(parts)


async def _call(fleet: RunningFleet, model: CachedModel | None, request: Request, measured: _Measured) -> HttpResponse:
    """Send the request to the container; ``model`` is None where it serves a single one."""
    client = running_client(fleet)
    line = client.single_model_line if model is None else model.line
    head = container_head(line, request.headers, length=len(request.body))
    send = client.generate if model is None and client.generates else client.invoke
    outcome: RequestOutcome
    began = time.monotonic()
    try:
        outcome = await send(head, request.body, seconds=_left(fleet, request))
    except (TimeoutError, ContainerGoneError) as error:
        outcome = error
    finally:
        measured.in_model = time.monotonic() - began
    return _given(fleet, outcome, model=model)


def _given(fleet: RunningFleet, outcome: RequestOutcome, *, model: CachedModel | None) -> HttpResponse:
    """The caller's response, by the outcome of the container's request. Raises InvokeError.

    On a 507 SageMaker unloads another model (developer guide, mms-container-apis); the caller gets the error too.
    """
    if isinstance(outcome, TimeoutError):
        raise fleet.address.timed_out()
    if isinstance(outcome, ContainerGoneError):
        raise fleet.address.no_answer()
    if outcome.status != 200:
        if outcome.status == INSUFFICIENT_STORAGE and model is not None:
            fleet.models.evict_for(model)
        raise fleet.address.model_error(status=outcome.status, message=outcome.body.decode(errors="replace"))
    headers = outcome.headers
    given: Headers = {b"x-amzn-invoked-production-variant": fleet.variant_header}
    for name in GIVEN_BACK:
        if name in headers:
            given[name] = headers[name]
    return HttpResponse(200, given, outcome.body)


def _left(fleet: RunningFleet, request: Request) -> float:
    """Seconds left until SageMaker's time-out, which includes loading; at least one."""
    return max(fleet.invoke_seconds - (time.monotonic() - request.received), 1.0)
