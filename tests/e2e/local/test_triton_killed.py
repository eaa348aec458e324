"""Triton dies under load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psutil
import pytest
from botocore.exceptions import ClientError

from tests.e2e.calls import invoke, target_model
from tests.e2e.project import Project
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
CALLERS = 4


def fleet_of(aws: LocalAws) -> dict[str, object]:
    """The one fleet of the endpoint that is killed here."""
    found = next(item for item in aws.runtime_status()["endpoints"] if item["name"] == "local-memory")
    fleet: dict[str, object] = found["fleets"][0]
    return fleet


def kill_triton(aws: LocalAws) -> None:
    """Kill the endpoint's Triton by its own process id, and wait until another answers."""
    before = fleet_of(aws)
    psutil.Process(int(str(before["pid"]))).kill()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        after = fleet_of(aws)
        if after["pid"] not in (None, before["pid"]) and after["state"] == "ready":
            return
        time.sleep(0.1)
    raise AssertionError(f"no new Triton within 60 s: {after}")


def under_load(call: Callable[[float], None], aws: LocalAws) -> None:
    """Run ``call`` from several threads, kill Triton in the middle, and stop a little after it is back."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def caller(start: int) -> None:
        value = float(start)
        try:
            while not stop.is_set():
                call(value)
                value += CALLERS
        except BaseException as error:  # noqa: BLE001  (handed to the test's own thread)
            failures.append(error)

    threads = [threading.Thread(target=caller, args=(start,)) for start in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        kill_triton(aws)
        time.sleep(1)
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=120)
    if failures:
        raise failures[0]


def test_each_request_in_flight_ends_in_time_with_sagemakers_error(deployed: LocalAws) -> None:
    client = deployed.client("sagemaker-runtime")
    target = target_model(deployed, endpoint="memory", model="fits")
    assert invoke(client, endpoint="memory", target=target, value=1.0) == 2.0
    seen: list[str] = []

    def call(value: float) -> None:
        started = time.monotonic()
        try:
            assert invoke(client, endpoint="memory", target=target, value=value) == value * 2
        except ClientError as error:
            seen.append(error.response["Error"]["Code"])
        assert time.monotonic() - started < ENDS_WITHIN_S

    under_load(call, deployed)
    assert set(seen) <= DOCUMENTED
    assert seen, "the kill was never noticed by a caller"


def test_with_the_clients_retry_every_answer_is_right(deployed: LocalAws, project: Project) -> None:
    import numpy as np

    from tritonstack.client import ModelClient

    client = ModelClient(environment="local", session=deployed.session())

    def call(value: float) -> None:
        answer = client.invoke("memory/fits", {"x": np.array([[value]], dtype=np.float32)})
        assert answer.outputs["y"].item() == value * 2

    call(1.0)
    under_load(call, deployed)


def test_no_process_of_a_killed_triton_stays(deployed: LocalAws) -> None:
    target = target_model(deployed, endpoint="memory", model="fits")
    invoke(deployed.client("sagemaker-runtime"), endpoint="memory", target=target, value=1.0)
    stubs = psutil.Process(int(str(fleet_of(deployed)["pid"]))).children(recursive=True)
    assert stubs, "a Python-backend model runs in a process of its own"
    kill_triton(deployed)
    gone, alive = psutil.wait_procs(stubs, timeout=20)
    assert gone
    assert not alive
