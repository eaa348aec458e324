"""A model's sample request to an endpoint that streams: Triton's generate request, and the events of its response.

What a sample expects of an output are its values in all events, in their order.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ConnectionClosedError

from .samples import (
    BINARY_PREFIX,
    JSON_TYPE,
    Output,
    Request,
    VerificationError,
    as_binary,
    flat,
    output_of,
)

if TYPE_CHECKING:
    from mypy_boto3_sagemaker_runtime.client import SageMakerRuntimeClient

STREAM_SECONDS = 60.0
"""As long as an invocation without a stream may take: a run hands over so long before its end that one fits."""
STREAM_ERRORS = ("ModelStreamError", "InternalStreamFailure")


def request_of(body: bytes, content_type: str) -> Request:
    """A sample request (KServe's JSON, or with binary tensors) as a generate request: values by input.

    Raises ValueError: it is neither.
    """
    length = int(content_type.removeprefix(BINARY_PREFIX)) if content_type.startswith(BINARY_PREFIX) else len(body)
    raw = memoryview(body)[length:]
    values: dict[str, Any] = {}
    for given in json.loads(body[:length])["inputs"]:
        size = (given.get("parameters") or {}).get("binary_data_size", 0)
        found = output_of(given, raw[:size]).values
        raw = raw[size:]
        texts = [value.decode() if isinstance(value, bytes) else value for value in found]
        values[given["name"]] = texts[0] if len(texts) == 1 else texts
    return json.dumps(values).encode(), JSON_TYPE


def read_stream(
    runtime: SageMakerRuntimeClient, endpoint_name: str, request: Request, target: Mapping[str, Any]
) -> bytes:
    """The whole stream of a response. Raises ClientError, BotoCoreError; VerificationError: it goes on for too long."""
    body, content_type = request
    began = time.monotonic()
    response = runtime.invoke_endpoint_with_response_stream(
        EndpointName=endpoint_name, Body=body, ContentType=content_type, **target
    )
    parts, too_long = list[bytes](), False
    stream: Any = response["Body"]
    try:
        for event in stream:
            parts.append(part_of(event))
            if too_long := time.monotonic() - began > STREAM_SECONDS:
                break
    except ClientError:
        raise
    except Exception as error:  # within a stream botocore passes on the errors of urllib3, which is not imported here
        raise ConnectionClosedError(endpoint_url=endpoint_name, request=None) from error
    finally:
        stream.close()
    if too_long:
        raise VerificationError(
            f"the stream of the sample request goes on after {STREAM_SECONDS:.0f} s: make the sample shorter"
        )
    return b"".join(parts)


def part_of(event: Mapping[str, Any]) -> bytes:
    """The bytes of a part. Raises ClientError: it is an error of the stream that botocore has not raised."""
    for code in STREAM_ERRORS:
        if code in event:
            error: Any = {"Error": {"Code": code, "Message": str(event[code])}, "ResponseMetadata": {}}
            raise ClientError(error, "InvokeEndpointWithResponseStream")
    return bytes(event.get("PayloadPart", {}).get("Bytes", b""))


def decode(content: bytes, expected: Sequence[Mapping[str, Any]]) -> dict[str, Output]:
    """The expected outputs, by name, each with its values in all events; of another length in one dimension.

    Raises VerificationError: there is no event, one is an error, or none of Triton's.
    """
    events = []
    for line in content.decode(errors="replace").splitlines():
        if line.startswith("data:"):
            events.append(event_of(line.removeprefix("data:")))
    if not events:
        raise VerificationError(f"the response has no event: {content[:80]!r}")
    found = {}
    for output in expected:
        given = [event[output["name"]] for event in events if output["name"] in event]
        values = as_binary(output["datatype"], flat(given))
        shape = tuple(output["shape"])
        if given:
            whole = shape if math.prod(shape) == len(values) else (len(values),)
            found[output["name"]] = Output(datatype=output["datatype"], shape=whole, values=values)
    return found


def event_of(data: str) -> Mapping[str, Any]:
    """One response of the model. Raises VerificationError."""
    try:
        event = json.loads(data)
        error = event.get("error") if "model_name" not in event else None
    except (ValueError, AttributeError, TypeError, RecursionError) as malformed:
        raise VerificationError(f"an event is no response of Triton: {data[:80]!r}") from malformed
    if error is not None:
        raise VerificationError(f"the model ends its stream with an error: {error}")
    return dict(event)
