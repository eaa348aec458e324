"""Background threads of the emulator: a fault at one item stops the work on neither that item nor the others.

Each runs in the emulator's own environment, on the modules themselves.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.tritonstack_local.emulator.running import PYTHON, REPOSITORY

ALARMS = """
from tritonstack_local.emulator.cloudwatch import alarm_evaluator as evaluator
from tritonstack_local.emulator.ministack_adapter import cloudwatch

def evaluate(alarm):
    evaluated.append(alarm["AlarmName"])
    if alarm["AlarmName"] == "broken":
        raise KeyError("unlisted")

evaluated = []
evaluator.evaluate = evaluate
for name in ("broken", "good"):
    cloudwatch.alarms()[name] = {
        "AlarmName": name, "AlarmArn": evaluator.arn(name), "StateValue": "OK", "StateReason": "",
        "ActionsEnabled": False, "StateUpdatedTimestamp": 0.0,
    }
evaluator.note_change = lambda alarm, before: None
evaluator.AlarmEvaluator(before=(), after=()).evaluate_all()
assert evaluated == ["broken", "good"], evaluated
states = {name: cloudwatch.alarms()[name]["StateValue"] for name in ("broken", "good")}
assert states == {"broken": "INSUFFICIENT_DATA", "good": "OK"}, states
"""

BAKING = """
import threading
from types import SimpleNamespace
from tritonstack_local.emulator.sagemaker import endpoints as module
from tritonstack_local.emulator.sagemaker.deployment import Deployment, EndpointRecord, Guardrails, ShiftStep

def record(name, alarm):
    made = EndpointRecord(
        name=name, arn=f"arn:aws:sagemaker:us-east-1:123456789012:endpoint/{name}", request={}, config_name="old"
    )
    steps = (ShiftStep(instances=1, wait_seconds=0.0),)
    made.begin(
        Deployment(
            config_name="new", variants=(), deployment_config=None,
            guardrails=Guardrails(count=1, steps=steps, alarms=(alarm,)),
        ),
        status="Updating",
    )
    made.pending.shift()
    made.pending.bake()
    return made

def broken_alarm(names):
    if names == ("broken",):
        raise AttributeError("unlisted")

module.broken_alarm = broken_alarm
records = [record("a", "broken"), record("b", "good")]
state = SimpleNamespace(endpoints=SimpleNamespace(everywhere=lambda: records), changed=threading.Condition())
module.Endpoints.bake(SimpleNamespace(_state=state))
assert [one.status for one in records] == ["InService", "InService"]
assert [one.config_name for one in records] == ["old", "new"]
assert "AttributeError('unlisted')" in records[0].failure_reason
"""

DELIVERY = """
from tritonstack_local.emulator import service_events

def execute(record, event):
    tried.append(event)
    raise OSError("no process can be started")

tried, failed = [], []
service_events.lambda_functions.execute_function = execute
service_events._RETRY_SECONDS = (0.0, 0.0)
service_events._send_to_failure_destination = lambda name, record, event, result: failed.append(result["body"])
service_events._deliver("f", {"config": {}}, "event")
assert len(tried) == 3
assert "no process can be started" in failed[0]
"""

BUILD = """
import types
from tritonstack_local.emulator.codebuild import worker as module

class Shell:
    def end(self):
        raise OSError("unlisted")

class Build:
    def __init__(self):
        self.id, self.phases, self.status, self.end = "b", [], "IN_PROGRESS", None
    def begin(self, name):
        self.phases.append(types.SimpleNamespace(name=name, end=None))
        return self.phases[-1]

build = Build()
worker = object.__new__(module.BuildWorker)
worker._build, worker._shell, worker._changed = build, Shell(), lambda: None
worker._finish("SUCCEEDED")
assert (build.status, build.phases[-1].name, build.end is None) == ("FAULT", "COMPLETED", False)
"""


@pytest.mark.parametrize("script", [ALARMS, BAKING, DELIVERY, BUILD], ids=["alarms", "baking", "delivery", "build"])
def test_a_fault_at_one_item_stops_the_work_on_neither_it_nor_the_others(script: str) -> None:
    ran = subprocess.run([PYTHON, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
