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

from tests.client.fakes import FakeTime, client_error
from tritonstack.client.invocation import FailureKind, RetryPolicy, RetryState, failure_kind

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
        (client_error("ModelError", status=424, OriginalStatusCode="?"), DOUBTFUL),
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


def pauses(policy: RetryPolicy, kind: FailureKind, *, chance: float = 0.0) -> list[float]:
    """All pauses until the policy gives up, with a clock that only the pauses move."""
    time = FakeTime()
    state = RetryState(policy=policy, clock=time.clock(chance))
    while (pause := state.pause_after(kind)) is not None:
        time.sleep(pause)
    return time.slept


def test_pauses_double_up_to_the_longest() -> None:
    policy = RetryPolicy(unavailable_retries=7, first_pause=1, longest_pause=10)
    assert pauses(policy, UNAVAILABLE) == [0.5, 1, 2, 4, 5, 5, 5]


@pytest.mark.parametrize(("kind", "count"), [(FINAL, 0), (DOUBTFUL, 3), (UNAVAILABLE, 8)])
def test_the_number_of_retries_is_bounded(kind: FailureKind, count: int) -> None:
    assert len(pauses(RetryPolicy(), kind)) == count


def test_a_loading_model_is_waited_for_as_long_as_sagemaker_loads_and_no_longer() -> None:
    waited = sum(pauses(RetryPolicy(), LOADING))
    assert 360 <= waited <= 368


def test_no_try_begins_after_the_whole_time() -> None:
    time = FakeTime()
    state = RetryState(policy=RetryPolicy(total_seconds=100, unavailable_retries=1000), clock=time.clock())
    assert state.pause_after(UNAVAILABLE) is not None
    time.seconds += 100
    assert state.pause_after(UNAVAILABLE) is None
