"""InvokeEndpoint as a signed HTTP request, made by botocore itself and not sent.

botocore serialises, finds the address and signs as for any call; a handler of its event ``before-send`` takes the
request and answers in its place. So nothing of it is written a second time here, and nothing of it is done while load
is on: the same request is sent until its signature grows old (AWS takes one for 15 minutes, SageMaker for 5 after its
date: docs, «AWS Signature Version 4 for API requests»).

Why not an asynchronous boto3: aiobotocore pins the one botocore that it patches (3.10.0 wants 1.43.117), and this
project's is newer.
"""

from __future__ import annotations

import io
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from tritonstack.client.body import Body
from tritonstack.client.calls import Target
from tritonstack_capacity.bench.request import ReadyRequest

EVENT = "before-send.sagemaker-runtime.InvokeEndpoint"
FRESH_SECONDS = 60.0
"""How long one signature is used."""


class SignedRequests:
    """Makes the requests of one client. A client is given to it alone: it sends nothing from then on."""

    def __init__(self, runtime: Any) -> None:
        """``runtime``: a boto3 ``sagemaker-runtime`` client."""
        self._runtime = runtime
        self._taken: list[AWSPreparedRequest] = []
        runtime.meta.events.register_first(EVENT, self._take)

    def make(self, target: Target, body: Body) -> ReadyRequest:
        """A request signed now. Raises botocore's errors where credentials or the region are missing."""
        named = {"TargetModel": target.target_model} if target.target_model else {}
        self._runtime.invoke_endpoint(
            EndpointName=target.endpoint_name, Body=body.content, ContentType=body.content_type, **named
        )
        prepared = self._taken.pop()
        headers = {name: _text(value) for name, value in prepared.headers.items()}
        return ReadyRequest(url=str(prepared.url), headers=headers, body=body.content)

    def _take(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        self._taken.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders(), _Raw())


class _Raw(io.BytesIO):
    """An empty answer, with the one method that botocore wants besides."""

    def stream(self, *_: Any, **__: Any) -> Any:
        """Nothing."""
        return iter(())


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
