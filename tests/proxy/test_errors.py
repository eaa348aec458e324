"""Each error of the client as the HTTP response from which tritonclient makes its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    SSLError,
)

from tests.fake_aws import client_error
from tritonstack.client.errors import (
    AmbiguousModelError,
    ClientFileError,
    InvokeTarget,
    MalformedResponseError,
    ModelNotReadyError,
    ReleaseLookupError,
    UnknownModelError,
)
from tritonstack.client.invocation import failure_kind, final_error
from tritonstack.errors import InputError, Problem, TritonstackError
from tritonstack.proxy.errors import answer_of

TARGET = InvokeTarget(endpoint_name="dev-digits", target_model="digits.0123456789abcdef.tar.gz")


def response_to(error: TritonstackError, cause: Exception | None = None) -> tuple[int, Any]:
    """Status and JSON of the response for an error, raised from ``cause``."""
    error.__cause__ = cause
    response = answer_of(error)
    assert response.headers[b"content-type"] == b"application/json"
    return response.status, json.loads(response.body)


def invoked(error: Exception) -> tuple[int, str]:
    """Status and message of the response where InvokeEndpoint ends with ``error`` of botocore."""
    status, words = response_to(final_error(error, kind=failure_kind(error), target=TARGET, attempts=2), error)
    return status, words["error"]


def model_error(status: int, message: str) -> Exception:
    return client_error("ModelError", "Received …", status=424, OriginalStatusCode=status, OriginalMessage=message)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 501, 503, 507])
def test_triton_s_own_error_is_passed_on_with_its_status(status: int) -> None:
    assert invoked(model_error(status, '{"error":"unexpected input"}')) == (status, "unexpected input")
    assert invoked(model_error(status, "plain words")) == (status, "plain words")
    assert invoked(model_error(status, '{"other": 1}')) == (status, '{"other": 1}')
    assert invoked(model_error(status, ""))[0] == status


def test_a_container_without_a_response_is_a_bad_gateway() -> None:
    status, words = invoked(model_error(0, "Amazon SageMaker could not get a response from the endpoint."))
    assert status == 502
    assert "dev-digits" in words
    status, _ = invoked(
        model_error(0, "Your invocation timed out while waiting for a response from container primary.")
    )
    assert status == 504
    assert invoked(model_error(302, "moved"))[0] == 502


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (client_error("ModelNotReadyException", "not ready", status=429), 503, "not ready"),
        (client_error("ThrottlingException", "Rate exceeded", status=400), 429, "Rate exceeded"),
        (client_error("TooManyRequestsException", "slow down", status=429), 429, "slow down"),
        (client_error("ServiceUnavailable", "busy", status=503), 503, "busy"),
        (client_error("InternalFailure", "oh", status=500), 503, "oh"),
        (client_error("ValidationError", "Endpoint x not found."), 400, "not found"),
        (client_error("413", "HTTP content length exceeded", status=413), 413, "length exceeded"),
        (client_error("AccessDeniedException", "not authorized", status=403), 403, "not authorized"),
        (client_error("ExpiredTokenException", "is expired", status=403), 503, "renew the AWS credentials"),
        (NoCredentialsError(), 503, "renew the AWS credentials"),
        (ReadTimeoutError(endpoint_url="u"), 504, "u"),
        (ConnectTimeoutError(endpoint_url="u"), 503, "u"),
        (EndpointConnectionError(endpoint_url="u"), 503, "u"),
        (SSLError(endpoint_url="u", error=ValueError("certificate")), 502, "certificate"),
        (ParamValidationError(report="Invalid length"), 400, "Invalid length"),
    ],
)
def test_what_invoke_endpoint_ends_with_has_its_status(error: Exception, status: int, words: str) -> None:
    assert isinstance(error, BotoCoreError) or hasattr(error, "response")
    found, text = invoked(error)
    assert found == status
    assert words in text
    assert "\n" not in text


def test_every_problem_of_an_input_is_reported() -> None:
    status, words = response_to(
        InputError([Problem(found="a", allowed="b"), Problem(found="c", allowed="d", file="f")])
    )
    assert (status, words["error"]) == (400, "found: a allowed: b f found: c allowed: d")


@pytest.mark.parametrize(
    ("error", "cause", "status"),
    [
        (ModelNotReadyError("loading", place=str(TARGET)), None, 503),
        (ReleaseLookupError("no connection"), EndpointConnectionError(endpoint_url="u"), 503),
        (ReleaseLookupError("denied"), client_error("AccessDeniedException"), 503),
        (ReleaseLookupError("expired"), client_error("ExpiredTokenException"), 503),
        (UnknownModelError([Problem(found="'digit'", allowed="digits")]), None, 404),
        (AmbiguousModelError([Problem(found="'m'", allowed="one of a/m, b/m")]), None, 400),
        (MalformedResponseError("cut off"), None, 502),
        (ClientFileError("gone"), None, 500),
    ],
)
def test_other_errors_have_their_statuses(error: TritonstackError, cause: Exception | None, status: int) -> None:
    found, words = response_to(error, cause)
    assert found == status
    assert ("renew" in words["error"]) is ("expired" in str(error))
