"""InvokeEndpointWithResponseStream: a container's response as an event stream, part by part as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from tritonstack.loopback.http_server import Headers, HttpResponse, InvokeError, Request, StreamedResponse
from tritonstack_local.runtime import errors
from tritonstack_local.runtime.fleet import RunningFleet
from tritonstack_local.runtime.invocation import CUSTOM_ATTRIBUTES, check_members, container_head, running_client
from tritonstack_local.runtime.pool import ContainerGoneError
from tritonstack_local.runtime.streaming import event_stream
from tritonstack_local.runtime.streaming.upstream_stream import UpstreamStream

ACCEPT = b"x-amzn-sagemaker-accept"
CONTENT_TYPE = b"x-amzn-sagemaker-content-type"


async def invoke_streamed(fleet: RunningFleet, request: Request) -> HttpResponse:
    """Begin the response to a request by this fleet, and count it at the end of its stream.

    Raises InvokeError: as InvokeEndpointWithResponseStream fails before its first part.
    """
    return await _Streamed(fleet, request).begin()


class _Streamed:
    """A request that is in flight until its stream has ended."""

    def __init__(self, fleet: RunningFleet, request: Request) -> None:
        fleet.in_flight += 1
        self._fleet, self._request = fleet, request
        self._concurrent = fleet.in_flight
        self._began = 0.0
        self._ends = request.received + fleet.stream_seconds

    async def begin(self) -> HttpResponse:
        try:
            upstream, headers = await self._begin()
        except TimeoutError as error:
            raise self._failed(self._fleet.address.timed_out()) from error
        except ContainerGoneError as error:
            raise self._failed(self._fleet.address.no_answer()) from error
        except InvokeError as error:
            raise self._failed(error) from error
        given: Headers = {
            b"content-type": event_stream.CONTENT_TYPE,
            b"x-amzn-invoked-production-variant": self._fleet.variant_header,
            CONTENT_TYPE: headers.get(b"content-type", b""),
        }
        if CUSTOM_ATTRIBUTES in headers:
            given[CUSTOM_ATTRIBUTES] = headers[CUSTOM_ATTRIBUTES]
        return StreamedResponse(200, given, b"", self._events(upstream))

    async def _begin(self) -> tuple[UpstreamStream, Headers]:
        """The container's response from its first part on. Raises InvokeError, TimeoutError, ContainerGoneError."""
        fleet, request = self._fleet, self._request
        check_members(fleet, request)
        if fleet.config.model.multi_model:  # the operation has no TargetModel
            raise errors.validation_error(f"Request {request.id} is missing a target model header.")
        client = running_client(fleet)
        accepted = request.headers.get(ACCEPT)
        accept = {} if accepted is None else {b"accept": accepted}
        head = container_head(client.single_model_line, {**request.headers, **accept}, length=len(request.body))
        self._began = time.monotonic()
        async with asyncio.timeout(self._left):
            upstream = await client.stream(head, request.body)
            try:
                status, headers = await upstream.head
                if status == 200:
                    return upstream, headers
                response = await upstream.response()
            except BaseException:
                upstream.close()
                raise
        raise fleet.address.model_error(status=status, message=response.body.decode(errors="replace"))

    @property
    def _left(self) -> float:
        return max(self._ends - time.monotonic(), 0.0)

    async def _events(self, upstream: UpstreamStream) -> AsyncIterator[bytes]:
        """The stream's messages; the last one is an exception where the container fails."""
        error: InvokeError | None = None
        parts = aiter(upstream.parts())
        try:
            while True:
                async with asyncio.timeout(self._left):
                    part = await anext(parts)
                yield event_stream.payload_parts(part)
        except StopAsyncIteration:
            pass
        except TimeoutError:
            error = self._fleet.address.stream_timed_out(seconds=self._fleet.stream_seconds)
        except ContainerGoneError:
            error = self._fleet.address.stream_broken()
        finally:
            upstream.close()
            self._ended(error)
        if error is not None:
            members = {"ErrorCode": error.members["ErrorCode"], "Message": error.message}
            yield event_stream.exception(error.code, members)

    def _failed(self, error: InvokeError) -> InvokeError:
        self._ended(error)
        return error

    def _ended(self, error: InvokeError | None) -> None:
        now, fleet = time.monotonic(), self._fleet
        if error is not None:
            fleet.failed(error)
        fleet.request_ended()
        fleet.metrics.invocation(
            in_model=now - self._began if self._began else 0.0,
            total=now - self._request.received,
            error=error,
            hit=None,
            concurrent=self._concurrent,
        )
