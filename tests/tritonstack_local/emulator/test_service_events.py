"""How often, and after how long, a Lambda that fails on an event is invoked again; in the emulator's interpreter."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.tritonstack_local.emulator.running import PYTHON, REPOSITORY

# Stands in for the Lambda, which fails so many times, and for the wait, which moves the clock instead.
SCRIPT = """
import json
import sys

from ministack.services import lambda_svc

from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import clock

given = json.loads(sys.argv[1])
attempts, waits, sent = [], [], []

def execute(record, event):
    attempts.append(event)
    return {"error": len(attempts) <= given["failures"], "body": "no"}

def wait_for(happened, deadline):
    waits.append(round(deadline.remaining))
    clock.advance(deadline.remaining)
    return happened()

lambda_svc._execute_function_with_config_scope = execute
lambda_svc._route_async_failure = lambda arn, *rest: sent.append(arn)
clock.wait_for = wait_for
service_events._deliver("name", {"config": {}, "event_invoke_config": given["settings"]}, {"a": 1})
print(json.dumps({"attempts": len(attempts), "waits": waits, "sent": sent}))
"""
QUEUE = {"DestinationConfig": {"OnFailure": {"Destination": "arn:queue"}}}


@pytest.mark.parametrize(
    ("failures", "settings", "attempts", "waits", "sent"),
    [
        (0, QUEUE, 1, [], []),
        (1, QUEUE, 2, [60], []),
        (9, QUEUE, 3, [60, 120], ["arn:queue"]),
        (9, {"MaximumRetryAttempts": 1}, 2, [60], []),
        (9, {**QUEUE, "MaximumRetryAttempts": 0}, 1, [], ["arn:queue"]),
        (9, {**QUEUE, "MaximumEventAgeInSeconds": 100}, 2, [60], ["arn:queue"]),
    ],
)
def test_function_that_fails_is_invoked_again_after_one_minute_and_two(
    failures: int, settings: dict[str, Any], attempts: int, waits: list[int], sent: list[str]
) -> None:
    ran = subprocess.run(
        [PYTHON, "-c", SCRIPT, json.dumps({"failures": failures, "settings": settings})],
        env={"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told == {"attempts": attempts, "waits": waits, "sent": sent}
