"""Retries: which failures are retried, how often, after which pauses."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    ResponseStreamingError,
    SSLError,
)

from tests.fake_aws import client_error
from tritonstack.client.invocation import FailureKind, failure_kind, pause_after

LOADING, UNAVAILABLE, DOUBTFUL, FINAL = FailureKind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (client_error("ModelNotReadyException", status=429), LOADING),
        (client_error("ServiceUnavailable", status=503), UNAVAILABLE),
        (client_error("InternalDependencyException", status=530), UNAVAILABLE),
        (client_error("ThrottlingException", status=429), UNAVAILABLE),
        (client_error("TooManyRequestsException", status=400), UNAVAILABLE),
        (client_error("502", status=502), UNAVAILABLE),
        (client_error("ValidationError", status=400), FINAL),
        (client_error("RequestEntityTooLarge", status=413), FINAL),
        (client_error("ModelError", status=424, OriginalStatusCode=400), FINAL),
        (client_error("ModelError", status=424, OriginalStatusCode=501), FINAL),
        (client_error("ModelError", status=424, OriginalStatusCode=404), UNAVAILABLE),
        (client_error("ModelError", status=424, OriginalStatusCode=507), UNAVAILABLE),
        (client_error("ModelError", status=424, OriginalStatusCode=500), DOUBTFUL),
        (client_error("ModelError", status=424, OriginalStatusCode=0), DOUBTFUL),
        (client_error("ModelError", status=424), DOUBTFUL),
        (ReadTimeoutError(endpoint_url="u"), DOUBTFUL),
        (ConnectTimeoutError(endpoint_url="u"), UNAVAILABLE),
        (ConnectionClosedError(endpoint_url="u"), UNAVAILABLE),
        (ResponseStreamingError(error=OSError("cut")), UNAVAILABLE),
        (SSLError(endpoint_url="u", error=OSError("certificate")), FINAL),
        (NoCredentialsError(), FINAL),
        (ParamValidationError(report="r"), FINAL),
    ],
    ids=lambda value: str(value)[:60],
)
def test_each_failure_has_its_kind(error: Exception, kind: FailureKind) -> None:
    assert failure_kind(error) is kind


def pauses(kind: FailureKind, *, seconds: float = 420) -> list[float]:
    """All pauses until no further attempt is made, with a clock that only the pauses move; the shortest ones."""
    found: list[float] = []
    failures = [kind]
    while (pause := pause_after(failures, passed=sum(found), seconds=seconds, chance=0)) is not None:
        found.append(pause)
        failures.append(kind)
    return found


@pytest.mark.parametrize("kind", [FINAL, DOUBTFUL, UNAVAILABLE])
def test_the_number_of_retries_is_bounded_and_their_pauses_double(kind: FailureKind) -> None:
    doubled = [0.125, 0.25, 0.5, 1, 2, 4, 4, 4]
    assert pauses(kind) == doubled[: {FINAL: 0, DOUBTFUL: 3, UNAVAILABLE: 8}[kind]]
    assert pauses(kind, seconds=0) == [], "no try begins after the whole time"


def test_a_loading_model_is_waited_for_as_long_as_sagemaker_loads_and_no_longer() -> None:
    assert 360 <= sum(pauses(LOADING)) <= 368
    assert 100 <= sum(pauses(LOADING, seconds=100)) <= 108
