"""The gateway's own routes, InvokeEndpoint through it, and the process around it."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.building import ENDLESS, alive, buildspec, endless_processes, make_project, start
from tests.tritonstack_local.emulator.processing_jobs import STUBBORN, entrypoint_of, start_job, wait_for_log
from tests.tritonstack_local.emulator.running import (
    PYTHON,
    REPOSITORY,
    Emulator,
    free_port,
    make_function,
    make_role,
    wait_until,
)
from tritonstack_local.emulator.clock import MOST_AHEAD_SECONDS, MOST_SECONDS, Clock

FILLED_WHILE_READ = """
import gc
from tritonstack_local.emulator.ministack_adapter import core

core.read_tables_whole()
here = core.get_account_id(), core.get_region()
regional, whole = core.account_region_table(), core.account_table()
for table in (regional, whole):
    for row in range(2000):
        table[str(row)] = {}

def fill(*_):
    for table in (regional, whole):
        table[str(len(table._data))] = {}

gc.callbacks.append(fill)
gc.set_threshold(1)  # as another thread that is let in between two rows
for read in (regional.items, regional.values, regional.all_items, whole.items, whole.values):
    assert len(read()) >= 2000
for read in (regional.items_scoped, regional.values_scoped):
    assert len(read(*here)) >= 2000
"""


def test_tables_are_read_while_threads_fill_them() -> None:
    """Deletions of log groups failed with "dictionary changed size during iteration" while builds wrote logs."""
    ran = subprocess.run([PYTHON, "-c", FILLED_WHILE_READ], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_invocation_is_passed_to_the_runtime_and_its_response_returned(fleets: Emulator) -> None:
    for body in (b"", b"\x00\xff" * 500, b"x" * (5 * 1024 * 1024)):
        response = fleets.client("sagemaker-runtime").invoke_endpoint(
            EndpointName="dev-digits",
            ContentType="application/vnd.sagemaker-triton.binary+json;json-header-size=12",
            TargetModel="digits.0123456789abcdef.tar.gz",
            Body=body,
        )
        assert response["Body"].read() == body
        assert response["ContentType"] == "application/vnd.sagemaker-triton.binary+json;json-header-size=12"
        assert response["InvokedProductionVariant"] == "main"
        assert response["CustomAttributes"] == "digits.0123456789abcdef.tar.gz"


def test_a_stream_is_passed_from_the_runtime_to_the_client(fleets: Emulator) -> None:
    response = fleets.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName="dev-digits", ContentType="application/json", Body=b"!"
    )
    assert [event["PayloadPart"]["Bytes"] for event in response["Body"]] == [b"one!", b"two!"]
    assert (response["ContentType"], response["InvokedProductionVariant"]) == ("text/event-stream", "main")


def test_model_error_of_the_runtime_reaches_the_client_as_one(fleets: Emulator) -> None:
    runtime = fleets.client("sagemaker-runtime")
    with pytest.raises(runtime.exceptions.ModelError) as refused:
        runtime.invoke_endpoint(EndpointName="fail", ContentType="application/json", Body=b"{}")
    assert refused.value.response["OriginalStatusCode"] == 400


def test_invocation_without_a_runtime_or_of_one_that_is_down_is_unavailable(aws: Emulator, tmp_path: Path) -> None:
    emulator = Emulator(tmp_path, TRITONSTACK_RUNTIME_URL=f"http://127.0.0.1:{free_port()}")
    try:
        for one, words in ((aws, "started without a runtime"), (emulator.wait_ready(), "does not respond")):
            with pytest.raises(ClientError, match=words) as refused:
                one.client("sagemaker-runtime").invoke_endpoint(EndpointName="x", Body=b"{}")
            assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    finally:
        emulator.stop()


FUNCTION = """
    import os, sys
    import boto3

    def handler(event, context):
        boto3.client("ssm").put_parameter(Name=event["name"], Value="written", Type="String", Overwrite=True)
        found = [path for path in sys.path if os.path.isdir(os.path.join(path, "tritonstack"))]
        return {"python": sys.executable, "pid": os.getpid(), "finds_repository": found}
"""


def _invoke(emulator: Emulator, name: str) -> dict[str, Any]:
    make_function(emulator, name, FUNCTION)
    response = emulator.client("lambda").invoke(FunctionName=name, Payload=json.dumps({"name": "/" + name}))
    result: dict[str, Any] = json.loads(response["Payload"].read())
    assert "FunctionError" not in response, result
    return result


def test_lambda_runs_in_the_emulators_environment_and_reaches_the_gateway(aws: Emulator, name: str) -> None:
    result = _invoke(aws, name)
    assert Path(result["python"]).parent == PYTHON.parent
    assert result["finds_repository"] == []
    assert aws.client("ssm").get_parameter(Name="/" + name)["Parameter"]["Value"] == "written"


def test_sigterm_ends_the_emulator_its_lambdas_builds_jobs_and_its_temporary_files(tmp_path: Path, name: str) -> None:
    emulator = Emulator(tmp_path).wait_ready()
    worker = _invoke(emulator, name)["pid"]
    make_role(emulator)
    emulator.client("s3").create_bucket(Bucket=name)
    start_job(emulator, name, STUBBORN)
    make_project(emulator, name, buildspec(ENDLESS))
    of_build = endless_processes(emulator, start(emulator, name))
    wait_for_log(emulator, name, "hanging")
    processes = [worker, entrypoint_of(emulator, name).pid, *of_build]
    assert any(emulator.temporary.iterdir())
    assert emulator.stop() == 0
    assert not any(map(alive, processes))
    assert not any(emulator.temporary.iterdir())


def test_the_next_start_ends_what_a_killed_emulator_started_and_removes_its_temporary_files(
    tmp_path: Path, name: str
) -> None:
    killed = Emulator(tmp_path).wait_ready()
    worker = _invoke(killed, name)["pid"]
    make_role(killed)
    make_project(killed, name, buildspec(ENDLESS))
    of_build = endless_processes(killed, start(killed, name))
    killed.process.kill()
    killed.process.wait(timeout=30)
    left = set(killed.temporary.iterdir())
    assert left
    assert any(map(alive, of_build))
    again = Emulator(tmp_path).wait_ready()
    try:
        wait_until(lambda: [pid for pid in (worker, *of_build) if alive(pid)], lambda living: not living)
        assert not left & set(again.temporary.iterdir())
    finally:
        again.stop()
    assert not any(again.temporary.iterdir())


def test_who_is_refused_before_the_body_was_sent_goes_on_with_the_same_connection(aws: Emulator) -> None:
    """The connection was closed unannounced: an S3 client's next request ended in ConnectionClosedError."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", aws.port, timeout=10)) as connection:
        for _ in range(2):
            connection.putrequest("PUT", "/no-bucket/object")
            connection.putheader("Content-Length", "1")
            connection.endheaders()
            time.sleep(0.3)  # the refusal's time
            connection.send(b"1")
            refused = connection.getresponse()
            assert (refused.status, refused.will_close) == (403, False)
            refused.read()


def test_taken_port_ends_a_second_emulator(aws: Emulator, tmp_path: Path) -> None:
    second = Emulator(tmp_path, GATEWAY_PORT=str(aws.port))
    assert second.process.wait(timeout=30) == 1
    assert "is already in use" in second.log.read_text()


LONG = 3600.0


def test_moving_the_clock_passes_a_deadline_and_wakes_who_waits_for_it() -> None:
    clock, reported, responses = Clock(), list[float](), list[bool]()
    clock.on_advance(lambda: reported.append(clock.now()))
    deadline = clock.deadline(LONG)
    waiter = threading.Thread(target=lambda: responses.append(clock.wait_for(lambda: False, deadline)))
    waiter.start()
    clock.advance(LONG / 2)
    assert not deadline.passed
    assert waiter.is_alive()
    clock.advance(LONG / 2)
    waiter.join(timeout=10)
    assert (responses, deadline.passed, deadline.remaining, len(reported)) == ([False], True, 0, 2)
    assert clock.wait_for(lambda: True, clock.deadline(LONG)), "what happens before the deadline ends the wait"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"[" * 100_000,
        *(b'{"advance_seconds": %b}' % value for value in (b"-1", b"1e18", b"NaN", b"Infinity", b"true", b'"60"')),
        b'{"advance_seconds": 1%b}' % (b"0" * 400),
    ],
)
def test_what_is_no_move_of_the_clock_is_refused_and_moves_nothing(aws: Emulator, body: bytes) -> None:
    before = float(aws.get("/_tritonstack/clock")["now"])
    status, response = aws._http("POST", "/_tritonstack/clock", body)
    assert (status, "from 0 to 31622400" in response["message"]) == (400, True)
    assert 0 <= float(aws.get("/_tritonstack/clock")["now"]) - before < LONG


def test_a_clock_does_not_get_so_far_ahead_that_its_times_are_no_dates() -> None:
    clock = Clock()
    for _ in range(MOST_AHEAD_SECONDS // MOST_SECONDS):
        clock.advance(MOST_SECONDS)
    with pytest.raises(ValueError, match="ahead"):
        clock.advance(1)
    assert time.gmtime(clock.now()).tm_year < 2300
