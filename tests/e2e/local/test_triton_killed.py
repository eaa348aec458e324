"""Triton dies under load."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import psutil
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.e2e.calls import invoke, target_model
from tests.e2e.deployments import eventually
from tritonstack.client import ModelClient
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

DOCUMENTED = {
    "ModelError",
    "ModelNotReadyException",
    "ServiceUnavailable",
    "InternalFailure",
    "InternalDependencyException",
}
ENDS_WITHIN_S = 60.0 + 5.0  # the time limit of an invocation, and what a loaded machine may add
CALLERS = 2


def fleet_of(aws: LocalAws) -> dict[str, Any]:
    """The one fleet of the endpoint that is killed here."""
    found = next(item for item in aws.runtime_status()["endpoints"] if item["name"] == "local-memory")
    fleet: dict[str, Any] = found["fleets"][0]
    return fleet


def test_each_request_ends_in_time_with_an_error_or_a_retried_response_and_no_process_stays(
    deployed: LocalAws,
) -> None:
    # boto3's own retries could outlast the time without a container, and nobody would see an error.
    plain = deployed.client("sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}))
    ours = ModelClient(environment="local", session=deployed.session())
    target = target_model(deployed, endpoint="memory", model="fits")
    stop = threading.Event()
    seen: list[str] = []
    failures: list[BaseException] = []

    def by_sagemaker(value: float) -> None:
        started = time.monotonic()
        try:
            assert invoke(plain, endpoint="memory", target=target, value=value) == value * 2
        except ClientError as error:
            seen.append(error.response["Error"]["Code"])
        assert time.monotonic() - started < ENDS_WITHIN_S

    def by_client(value: float) -> None:
        answer = ours.invoke("memory/fits", {"x": np.array([[value]], dtype=np.float32)})
        assert answer.outputs["y"].item() == value * 2

    def caller(call: Any) -> None:
        value = 1.0
        try:
            while not stop.is_set():
                call(value)
                value += 1.0
        except BaseException as error:  # noqa: BLE001  (handed to the test's own thread)
            failures.append(error)

    by_client(1.0)
    before = fleet_of(deployed)
    triton = psutil.Process(before["pid"])
    stubs = triton.children(recursive=True)
    assert stubs, "a Python-backend model runs in a process of its own"
    threads = [threading.Thread(target=caller, args=(call,)) for call in (by_sagemaker, by_client) * CALLERS]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        triton.kill()
        eventually(lambda: fleet_of(deployed)["pid"] not in (None, before["pid"]), seconds=60)
        eventually(lambda: fleet_of(deployed)["state"] == "ready", seconds=60)
        time.sleep(1)
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=120)
    assert not failures, failures[0]
    assert set(seen) <= DOCUMENTED
    assert seen, "the kill was never noticed by a caller"
    _, alive = psutil.wait_procs(stubs, timeout=20)
    assert not alive
