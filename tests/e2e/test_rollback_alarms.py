"""A bad release goes back by the stack's own alarms, which see the new fleet alone; a good one passes. With the real
Triton, on callers' calls.

What a container does is told by a variable of its Model, so that the old and the new fleet differ in nothing else:
``first`` fails for negative numbers, ``fixed`` for none, ``bad`` for all. Two instances: the canary takes every second
call.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.e2e.calls import PAUSE_SECONDS, Callers, invoke
from tests.e2e.conftest import endpoint
from tests.e2e.deployments import SHARE_ENOUGH, Deployment, Updated
from tests.e2e.project import Project, environment_yaml
from tests.e2e.verification_project import CheckedProject, checked_project
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME = "watched"
WAIT, MINUTE = 600, 60
CANARY = f"kind: canary, size_instances: 1, wait_seconds: {WAIT}, termination_wait_seconds: {WAIT}"
KINDS = ("server-errors", "model-errors")
# Looked up in a dictionary with one key: what must not be is a KeyError, and so the model's error.
EXECUTE = (
    '{True: x * 2}[os.environ.get("RELEASE") == "fixed" '
    'or os.environ.get("RELEASE") == "first" and bool(x[0, 0] >= 0) or os.environ.get("RELEASE") is None]'
)


@pytest.fixture(scope="module")
def checked(project: Project, local_aws: LocalAws) -> Iterator[CheckedProject]:
    """An environment of its own, deployed."""
    checked = checked_project(project, local_aws, name=NAME)
    checked.write_model(EXECUTE)
    write(checked, "first")
    checked.deploy()
    yield checked
    updated = Updated(local_aws, NAME, "checked")
    while updated.pending is not None:  # of a test that failed; what is updated cannot be destroyed
        updated.advance(WAIT + 1)
        time.sleep(1)
    project.run("local", "destroy", "-e", NAME)
    left = local_aws.client("cloudwatch").describe_alarms(AlarmNamePrefix=f"{NAME}-")["MetricAlarms"]
    assert left == [], "the stack is gone, and so are its alarms"


def write(checked: CheckedProject, release: str) -> None:
    text = endpoint("checked", [checked.model]).replace("initial_instance_count: 1", "initial_instance_count: 2")
    rollout = f"rollout: {{{CANARY}, accept_multi_model: true, slowest_load_seconds: 60}}"
    settings = f"container: {{environment: {{RELEASE: {release}}}}}"
    text = f"{text.removesuffix('}')}, {settings}, {rollout}}}"
    checked.project.write(f"environments/{NAME}.yaml", environment_yaml(name=NAME, endpoints=[text]))


@pytest.fixture
def updated(checked: CheckedProject) -> Updated:
    return Updated(checked.aws, NAME, "checked")


class CountingCallers(Callers):
    """Callers some of whose calls may fail; each failure must be the container's own."""

    def check(self, *, more: int = 100, seconds: float = 60.0) -> None:
        """Wait for so many further calls, whatever they ended with."""
        goal, until = self.ended + more, time.monotonic() + seconds
        while self.ended < goal and time.monotonic() < until:
            time.sleep(0.02)
        assert self.ended >= goal
        others = [each for each in self.failures if not _of_the_model(each)]
        assert not others, others[0]

    @property
    def ended(self) -> int:
        return self.answered + len(self.failures)


def _of_the_model(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] == "ModelError"


def call(checked: CheckedProject, value: float) -> Callable[[], None]:
    """One call of the model with a number, which it must double."""
    client = checked.aws.client("sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}))
    target = checked.target

    def once() -> None:
        assert invoke(client, endpoint="checked", target=target, value=value, environment=NAME) == 2 * value

    return once


@contextlib.contextmanager
def rude(checked: CheckedProject) -> Iterator[None]:
    """Somebody who sends what the first release fails on, all the while."""
    stop, once = threading.Event(), call(checked, -1.0)

    def run() -> None:
        while not stop.wait(PAUSE_SECONDS):
            with contextlib.suppress(ClientError):
                once()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=90)


def alarms(updated: Updated) -> dict[str, str]:
    """Name → state of the alarms of the stack."""
    found = updated.aws.client("cloudwatch").describe_alarms(AlarmNamePrefix=f"{NAME}-serving-")["MetricAlarms"]
    return {alarm["AlarmName"]: alarm["StateValue"] for alarm in found}


def own_alarms(config: str | None) -> set[str]:
    return {f"{config}-{kind}" for kind in KINDS}


def states(updated: Updated, config: str | None) -> set[str]:
    return {state for name, state in alarms(updated).items() if name in own_alarms(config)}


def at_rest(updated: Updated, config: str, *, answering: Callers | None = None) -> None:
    """One fleet serves with this config; its alarms are there and no others, and its updates read them."""
    updated.one_fleet(config)
    assert alarms(updated).keys() == own_alarms(config)
    if answering is not None:
        answering.check()


def both_take_requests(updated: Updated, deployment: Deployment, *, old: str) -> str:
    """The pending config, once each fleet has ended enough calls."""
    deployment.until(lambda: updated.baking(1))
    new, before = updated.pending, {config: fleet["requests"] for config, fleet in updated.fleets().items()}
    assert new is not None
    assert before.keys() == {old, new}
    deployment.until(
        lambda: all(fleet["requests"] >= before[config] + SHARE_ENOUGH for config, fleet in updated.fleets().items())
    )
    assert alarms(updated).keys() == own_alarms(old) | own_alarms(new), "the old ones live until the update is over"
    return new


def pass_minutes(updated: Updated, deployment: Deployment, until: Callable[[], bool], *, minutes: int = 8) -> None:
    """Let minutes pass until something holds; figures that come late count in the next one."""
    for _ in range(minutes):
        updated.advance(MINUTE)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if until():
                return
            time.sleep(0.1)
        assert deployment.running, deployment.ended()
    raise AssertionError(f"it did not come to be within {minutes} minutes: {alarms(updated)}")


def end_waits(updated: Updated, deployment: Deployment) -> str:
    """End every wait of a deployment and of its rollback; returns what it printed."""
    while deployment.running:
        if updated.baking(1) or updated.baking(2):
            updated.advance(WAIT + 1)
        time.sleep(0.2)
    return deployment.ended()


def watch_whole_endpoint(updated: Updated) -> str:
    """An alarm on the errors of both fleets together, for comparison; its name."""
    name = "compared-with-the-whole-endpoint"
    updated.aws.client("cloudwatch").put_metric_alarm(
        AlarmName=name,
        Namespace="AWS/SageMaker",
        MetricName="InvocationModelErrors",
        Dimensions=[
            {"Name": "EndpointName", "Value": updated.name},
            {"Name": "VariantName", "Value": "g4dn-xlarge"},
        ],
        Period=MINUTE,
        EvaluationPeriods=3,
        DatapointsToAlarm=1,
        Statistic="Sum",
        Threshold=3,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        TreatMissingData="notBreaching",
    )
    return name


def state(updated: Updated, alarm: str) -> str:
    [found] = updated.aws.client("cloudwatch").describe_alarms(AlarmNames=[alarm])["MetricAlarms"]
    return str(found["StateValue"])


def test_a_bad_release_goes_back_by_our_own_alarms_and_the_good_one_after_it_passes(
    checked: CheckedProject, updated: Updated
) -> None:
    old = updated.config
    at_rest(updated, old)
    with CountingCallers([call(checked, 4.0), call(checked, 5.0)]).calling() as callers:
        write(checked, "bad")
        deployment = Deployment(checked.project, NAME, expect=1)
        new = both_take_requests(updated, deployment, old=old)
        assert updated.fleets()[old]["errors"] == 0
        pass_minutes(updated, deployment, lambda: updated.pending is None)
        printed = deployment.ended()
        assert any(alarm in printed for alarm in own_alarms(new))
        assert "Traceback" not in printed
        after = updated.described()
        assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", old)
        assert any(alarm in after["FailureReason"] for alarm in own_alarms(new))
        at_rest(updated, old, answering=callers)
        failed, answered = len(callers.failures), callers.answered
        assert failed >= SHARE_ENOUGH
        assert failed <= answered, "the new fleet took half of the calls at most"
        assert updated.fleets()[old]["errors"] == 0, "the old fleet failed none"
        callers.check()
        assert len(callers.failures) == failed, "none failed once the old fleet had them all again"

    whole = watch_whole_endpoint(updated)
    with rude(checked), Callers([call(checked, 4.0), call(checked, 5.0)]).calling() as answered_callers:
        write(checked, "fixed")
        deployment = Deployment(checked.project, NAME, expect=0)
        new = both_take_requests(updated, deployment, old=old)
        pass_minutes(updated, deployment, lambda: state(updated, whole) == "ALARM")
        assert updated.fleets()[old]["errors"] >= SHARE_ENOUGH
        assert updated.fleets()[new]["errors"] == 0
        assert states(updated, new) == {"OK"}, "both fleets together are bad, the new one is not"
        end_waits(updated, deployment)
        assert updated.config == new
        at_rest(updated, new, answering=answered_callers)
