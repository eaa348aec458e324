"""Refused requests in the error form of the service that was asked."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from tritonstack_local.emulator.request_validation import RefusedError, service_model

Answer = tuple[int, list[tuple[str, str]], bytes]
_JSON = "application/x-amz-json-1.1"
# What services call a refusal, by protocol, where it is not the code itself. Sources: botocore's models; EC2 API
# reference, "Error codes"; S3 API reference, "Error responses"; SNS API reference, "Common errors"; "Common Errors" of
# the JSON services, which answer 400.
_JSON_CODES = {
    "AccessDenied": "AccessDeniedException",
    "ExpiredToken": "ExpiredTokenException",
    "InvalidClientTokenId": "UnrecognizedClientException",
    "MissingAuthenticationToken": "MissingAuthenticationTokenException",
}
_CODES = {
    "json": _JSON_CODES,
    "rest-json": _JSON_CODES,
    "ec2": {
        "AccessDenied": "UnauthorizedOperation",
        "ExpiredToken": "RequestExpired",
        "InvalidClientTokenId": "AuthFailure",
        "MissingAuthenticationToken": "AuthFailure",
    },
    "rest-xml": {"InvalidClientTokenId": "InvalidAccessKeyId", "MissingAuthenticationToken": "AccessDenied"},
}
_OF_SERVICE = {("sns", "AccessDenied"): "AuthorizationError"}


def error_code(service: str, code: str, *, protocol: str) -> str:
    """The service's own code of a refusal."""
    return _OF_SERVICE.get((service, code)) or _CODES.get(protocol, {}).get(code, code)


def protocol_of(service: str, *, has_target: bool) -> str:
    """The protocol that a request of a service is answered in."""
    if has_target:
        return "json"
    spoken: str = service_model(service).metadata["protocol"]
    return "query" if spoken in ("json", "smithy-rpc-v2-cbor") else spoken


def refusal_answer(service: str, refused: RefusedError, *, has_target: bool) -> Answer:
    """Status, headers and body.

    Args:
        service: botocore's name.
        refused: the refusal; a code of IAM's is turned into the service's.
        has_target: whether the request names its operation in ``X-Amz-Target``, as AWS JSON does.
    """
    protocol = protocol_of(service, has_target=has_target)
    code, text = error_code(service, refused.code, protocol=protocol), str(refused)
    if protocol == "json":
        body = json.dumps({"__type": code, "Message": text, "message": text}).encode()
        return 400, [("Content-Type", _JSON), ("x-amzn-ErrorType", code)], body
    if protocol == "rest-json":
        body = json.dumps({"Message": text, "message": text}).encode()
        return refused.status, [("Content-Type", "application/json"), ("x-amzn-ErrorType", code)], body
    inside = f"<Code>{escape(code)}</Code><Message>{escape(text)}</Message>"
    if protocol == "rest-xml":
        document = f"<Error>{inside}</Error>"
    elif protocol == "ec2":
        document = f"<Response><Errors><Error>{inside}</Error></Errors><RequestID>iam</RequestID></Response>"
    else:
        error = f"<Error><Type>Sender</Type>{inside}</Error>"
        document = f"<ErrorResponse>{error}<RequestId>iam</RequestId></ErrorResponse>"
    return refused.status, [("Content-Type", "text/xml")], document.encode()
