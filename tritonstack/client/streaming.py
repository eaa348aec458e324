"""Streamed responses: InvokeEndpointWithResponseStream, Triton's generate requests, and their server-sent events.

A container that generates (``container.inference_type: generate_stream``) takes a JSON object, tensor or parameter by
name, and sends ``data: {…}`` events, one for each response of the model. SageMaker passes its bytes on in parts that
may be cut anywhere, also within a character. Once the first event has begun, errors are events, or end the stream.
Sources: triton-inference-server/server ``src/http_server.cc`` (HandleGenerate); botocore's ``sagemaker-runtime`` model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from tritonstack.aws.session import code_of
from tritonstack.client.body import JSON_TYPE, Array, Body, json_values
from tritonstack.client.errors import InvokeTarget, MalformedResponseError, ModelFailedError, StreamBrokenError
from tritonstack.client.invocation import Attempts, FailureKind, failure_kind, failure_message
from tritonstack.client.kserve_request import typed
from tritonstack.errors import InputError, Problem, refuse

EVENTS_TYPE = "text/event-stream"
Parameter = bool | int | float | str
_RESERVED = "id"
"""Key of the request's own id, which no tensor and no parameter can have."""


def generate_body(inputs: Mapping[str, Array], parameters: Mapping[str, Parameter]) -> Body:
    """The body of a generate request: a scalar or a flat list by the name of each input, and parameters by theirs.

    Raises InputError: values that JSON cannot carry, a name that is taken.
    """
    values = json_values(inputs)
    taken = [*sorted(parameters.keys() & values.keys()), *({_RESERVED} & {*values, *parameters})]
    refuse(
        [Problem(field=name, found="a name that is taken", allowed=f"another, and not {_RESERVED}") for name in taken]
    )
    return Body(content=json.dumps({**values, **parameters}, separators=(",", ":")).encode(), content_type=JSON_TYPE)


@dataclass(frozen=True, kw_only=True)
class StreamEvent:
    """One response of a model within a stream.

    Attributes:
        outputs: output name → its value: a number, truth value or text; a flat list where it has several elements.
        model_name: the model's name at Triton.
        model_version: Triton's model version.
        milliseconds: from sending the request to having this event; of the first one the time to the first token.
    """

    outputs: Mapping[str, Any]
    model_name: str
    model_version: str
    milliseconds: float


def data_of_events(parts: Iterable[bytes]) -> Iterator[str]:
    """The data of the events in parts that are cut anywhere. Raises as :class:`EventReader`."""
    reader = EventReader()
    for part in parts:
        yield from reader.feed(part)
    reader.end()


class EventReader:
    """Reads server-sent events (WHATWG HTML, 9.2) as they come; fields other than ``data`` are passed over."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._held = b""
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> Iterator[str]:
        """The data of the events that this part completes. Raises MalformedResponseError: one is no UTF-8."""
        *lines, self._held = (self._held + part).split(b"\n")
        for line in (each.removesuffix(b"\r") for each in lines):
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not line and self._data:
                data, self._data = self._data, []
                yield _text(b"\n".join(data))

    def end(self) -> None:
        """There are no more parts. Raises MalformedResponseError: the last event does not end."""
        if self._held or self._data:
            rest = b" ".join([*self._data, self._held])
            raise MalformedResponseError(f"the stream ended within an event: {rest[:80]!r}")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedResponseError(f"an event is no UTF-8 text: {data[:80]!r}") from error


class StreamingEndpoint:
    """Sends requests whose response is a stream."""

    def __init__(self, runtime: Any, target: InvokeTarget, *, attempts: Callable[[], Attempts]) -> None:
        """``runtime``: a boto3 ``sagemaker-runtime`` client whose own retries are off."""
        self._runtime, self.target, self._attempts = runtime, target, attempts
        self.variant = ""
        """The production variant that responded, once there is an event."""

    def events(self, body: Body) -> Iterator[StreamEvent]:
        """Send the request, and give the events as they come. Closing the iterator closes the connection.

        Until the first event it is sent again as another request is; after it no more, for the caller has seen a part.

        Raises InvokeError: one of its subclasses, with botocore's error as its cause; MalformedResponseError.
        """
        attempts = self._attempts()
        while True:
            begun = False
            attempts.begin()
            try:
                for event in self._once(body, attempts):
                    begun = True
                    yield event
                return
            except (ClientError, BotoCoreError, HTTPError) as error:
                if begun:
                    code, message = code_of(error), failure_message(error)
                    raise StreamBrokenError(message, code=code, place=str(self.target)) from error
                attempts.failed(error, kind=stream_failure_kind(error), target=self.target)

    def _once(self, body: Body, attempts: Attempts) -> Iterator[StreamEvent]:
        request = {"EndpointName": self.target.endpoint_name, "Body": body.content, "ContentType": body.content_type}
        if self.target.variant:
            request["TargetVariant"] = self.target.variant
        response = self._runtime.invoke_endpoint_with_response_stream(**request)
        stream, content_type = response["Body"], response.get("ContentType", "")
        self.variant = response.get("InvokedProductionVariant", "")
        try:
            if not content_type.startswith(EVENTS_TYPE):
                raise MalformedResponseError(
                    f"{self.target} sends {content_type!r}, no stream of events\n"
                    "  do: set container.inference_type: generate_stream of the endpoint, and deploy it"
                )
            for data in data_of_events(_parts(stream)):
                yield self._event(data, attempts.milliseconds())
        finally:
            stream.close()

    def _event(self, data: str, milliseconds: float) -> StreamEvent:
        """Raises ModelFailedError: it is an error of the model or of Triton."""
        try:
            document = json.loads(data)
            if "error" in document and not isinstance(document.get("model_name"), str):
                raise ModelFailedError(
                    place=str(self.target), status=200, container_message=str(document["error"]), log_stream_arn=""
                )
            name, version = document.pop("model_name"), document.pop("model_version")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise MalformedResponseError(f"an event that is no response of Triton: {data[:80]!r}") from error
        return StreamEvent(outputs=document, model_name=name, model_version=version, milliseconds=milliseconds)


def _parts(stream: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The bytes of a stream's parts. Raises ClientError where the stream ends with an error."""
    for event in stream:
        if "PayloadPart" in event:
            yield bytes(event["PayloadPart"]["Bytes"])
            continue
        for code in STREAM_ERRORS.keys() & event.keys():  # botocore raises these, where AWS sends them as exceptions
            error = {"Code": code, "Message": str(event[code].get("Message", "the stream ended with it"))}
            raise ClientError({"Error": error}, "InvokeEndpointWithResponseStream")  # type: ignore[typeddict-item]


STREAM_ERRORS = {"ModelStreamError": FailureKind.DOUBTFUL, "InternalStreamFailure": FailureKind.UNAVAILABLE}
"""Error that ends a stream → whether a retry can succeed; of the second AWS says "Try your request again"."""


def stream_failure_kind(error: Exception) -> FailureKind:
    """The kind of a failure before or within a stream."""
    if isinstance(error, HTTPError):  # within a stream botocore passes urllib3's errors on as they are
        return FailureKind.UNAVAILABLE
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    return STREAM_ERRORS.get(code) or failure_kind(error)


def joined_outputs(events: Iterable[Mapping[str, Any]], datatypes: Mapping[str, str]) -> dict[str, Array]:
    """The values of each output in all events, in their order, as an array of one dimension: what a sample expects.

    ``events``: their outputs. ``datatypes``: output → KServe's datatype; others are left out. Raises
    MalformedResponseError: a value that is none of its datatype.
    """
    values: dict[str, list[Any]] = {}
    for event in events:
        for name in datatypes.keys() & event.keys():
            values.setdefault(name, []).extend(event[name] if isinstance(event[name], list) else [event[name]])
    try:
        return {name: typed(datatype=datatypes[name], shape=[len(found)], data=found) for name, found in values.items()}
    except ValueError as error:
        raise MalformedResponseError(f"events whose outputs are not of their datatypes: {error}") from error


def check_streams(*, endpoint: str, streams: bool, wanted: bool) -> None:
    """Raise InputError where a request wants a stream of an endpoint that infers, or the other way round."""
    if streams is wanted:
        return
    if wanted:
        found, allowed = "does not stream", "an endpoint with container.inference_type: generate_stream"
        advice = "invoke it without --stream, in code by ModelClient.invoke; read `tritonstack docs streaming`"
    else:
        found, allowed = "streams", "a request for a stream: its container takes no other"
        advice = "add --stream to `tritonstack invoke`, in code call ModelClient.stream"
    raise InputError(
        [Problem(field="model's name", found=f"a model of {endpoint}, which {found}", allowed=allowed, advice=advice)]
    )
