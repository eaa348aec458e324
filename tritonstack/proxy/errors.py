"""Errors of the client as KServe responses: an HTTP status and ``{"error": "…"}``."""

from __future__ import annotations

from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError, ReadTimeoutError

from tritonstack.aws.session import CREDENTIAL_CODES, DENIED_CODES, THROTTLING_CODES, causes, code_of, credentials_ended
from tritonstack.client.errors import (
    EndpointUnavailableError,
    MalformedResponseError,
    ModelFailedError,
    ModelNotReadyError,
    ReleaseLookupError,
    RequestRefusedError,
    UnknownModelError,
)
from tritonstack.errors import InputError, TritonstackError
from tritonstack.loopback.http_server import HttpResponse
from tritonstack.untrusted.foreign_text import parse_json

RENEW = "renew the AWS credentials that tritonstack proxy was started with, and start it again if it keeps saying so"
TIMED_OUT = "timed out"
"""In SageMaker's sentence about a container that did not answer in 60 s, which has no status of its own."""


class HttpError(Exception):
    """A request that the proxy itself refuses; ``status`` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        """``message``: one sentence."""
        self.status = status
        super().__init__(message)


def error_answer(status: int, message: str) -> HttpResponse:
    """An error in KServe's form."""
    return HttpResponse.of_json({"error": message}, status=status)


def answer_of(error: TritonstackError) -> HttpResponse:
    """The response for an error of the client."""
    missing = (NoCredentialsError, PartialCredentialsError)
    refused = any(isinstance(one, missing) or code_of(one) in CREDENTIAL_CODES for one in causes(error))
    if refused or credentials_ended(error):
        return error_answer(503, f"{one_line(error)}; {RENEW}")
    if isinstance(error, ModelFailedError):
        return _models_own(error)
    return error_answer(_status(error), one_line(error))


def one_line(error: TritonstackError) -> str:
    """An error's message on one line, as a client's exception shows it."""
    return " ".join(str(error).split())


def is_denied(error: BaseException) -> bool:
    """Whether AWS denied a permission."""
    return any(code_of(one) in DENIED_CODES for one in causes(error))


def _models_own(error: ModelFailedError) -> HttpResponse:
    """The container's own response; 502 or 504 where it gave no HTTP error."""
    if not 400 <= error.status <= 599:
        return error_answer(504 if TIMED_OUT in error.container_message else 502, one_line(error))
    try:
        words = parse_json(error.container_message)
    except ValueError:
        words = None
    if isinstance(words, dict) and isinstance(words.get("error"), str):
        return HttpResponse.of_json(words, status=error.status)
    return error_answer(error.status, error.container_message or one_line(error))


def _status(error: TritonstackError) -> int:
    if isinstance(error, UnknownModelError):
        return 404
    if isinstance(error, InputError):
        return 400
    if isinstance(error, RequestRefusedError | EndpointUnavailableError):
        return _of_invocation(error)
    if isinstance(error, MalformedResponseError):
        return 502
    return 503 if isinstance(error, ModelNotReadyError | ReleaseLookupError) else 500


def _of_invocation(error: RequestRefusedError | EndpointUnavailableError) -> int:
    cause = error.__cause__
    response = cause.response if isinstance(cause, ClientError) else {}
    code, status = "" if cause is None else code_of(cause), response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if code in THROTTLING_CODES or status == 429:
        return 429
    if isinstance(error, EndpointUnavailableError):
        return 504 if isinstance(cause, ReadTimeoutError) else 503
    if code in DENIED_CODES:
        return 403
    if error.code in ("ValidationError", "ParamValidationError"):
        return 400
    return status if isinstance(status, int) and 400 <= status <= 499 else 502
