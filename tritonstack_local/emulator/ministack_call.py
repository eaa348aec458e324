"""One API call to a service of MiniStack, inside this process.

The request is serialised with botocore, handed to the service's own handler on MiniStack's event loop, and the answer
parsed back. Only for worker threads: MiniStack refuses it on the loop.
"""

from __future__ import annotations

import urllib.parse
from typing import Any

import botocore.awsrequest
import botocore.parsers
import botocore.serialize
import ministack.app

from tritonstack_local.emulator import request_validation
from tritonstack_local.emulator.refusal import RefusedError

_SECONDS = 60.0


def call(service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Call ``operation``; raises ``RefusedError`` with the model's problems or the service's own error.

    Args:
        service: botocore's name (``s3``, ``cloudwatch``), which is also MiniStack's module.
        operation: the API operation.
        request: its parameters; strings where a template may spell numbers so.
    """
    request = request_validation.coerce(service, operation, request)
    request_validation.validate(service, operation, request)
    model = request_validation.service_model(service)
    shape = model.operation_model(operation)
    protocol = "query" if "query" in model.metadata.get("protocols", ()) else model.metadata["protocol"]
    method, path, query, headers, body = _serialised(service, shape, protocol, request)
    handler = ministack.app._get_module(service).handle_request
    status, answer_headers, answer_body = ministack.app.call_service_handler_sync(
        handler, method, path, headers, body, query, timeout=_SECONDS
    )
    parsed: dict[str, Any] = botocore.parsers.create_parser(protocol).parse(
        {
            "status_code": status,
            "headers": botocore.awsrequest.HeadersDict(answer_headers),
            "body": answer_body if isinstance(answer_body, bytes) else (answer_body or "").encode(),
        },
        shape.output_shape,
    )
    if status >= 300:
        error = parsed["Error"]
        raise RefusedError(error["Code"], error["Message"], source=f"MiniStack's {service} {operation}", status=status)
    return parsed


def _serialised(
    service: str, shape: Any, protocol: str, request: dict[str, Any]
) -> tuple[str, str, dict[str, list[str]], dict[str, str], bytes]:
    made = botocore.serialize.create_serializer(protocol).serialize_to_request(request, shape)
    path, _, flags = made["url_path"].partition("?")
    if service == "s3":  # the bucket travels in the endpoint, not in the serialised path
        path = "/" + request["Bucket"] + path.removeprefix("/" + request["Bucket"])
    query = {k: v if isinstance(v, list) else [str(v)] for k, v in (made.get("query_string") or {}).items()}
    query |= {name: [""] for name in flags.split("&") if name}
    body = made["body"]
    if isinstance(body, dict):
        body = urllib.parse.urlencode(body)
    headers = {name.lower(): value for name, value in made["headers"].items()}
    return made["method"], path, query, headers, body.encode() if isinstance(body, str) else body
